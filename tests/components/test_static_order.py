"""The static order on problems whose best order is known, and prefixes of an order as policies."""

import numpy as np
import pytest

from askwise.components.boosting import ClassShares, loss_scales, unweighted
from askwise.components.prefixes import Prefix, affordable, lengths_of
from askwise.components.static_order import _cost_shares, elimination_order, ridge_order
from askwise.core.budget import HardBudget
from askwise.core.cost_spec import CostSpec
from askwise.core.episode import rollout
from askwise.core.problem import Problem
from askwise.core.schema import Schema


def problem_of(X: np.ndarray, y: np.ndarray, names: str, costs: dict, **more) -> Problem:
    told = {name: more.pop(name) for name in ("setup", "derived", "reveals") if name in more}
    return Problem.build(Schema.build(list(names), [0, 1], CostSpec(costs, **told)), X, y, **more)


def columns(n: int, c: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(n, c))


def names_of(problem: Problem, order: np.ndarray) -> str:
    return "".join(problem.schema.tests[i] for i in order)


def test_the_cheap_copy_comes_before_the_dear_one_and_noise_comes_last() -> None:
    X = columns(3000, 4)
    X[:, 2] = X[:, 1]  # b is the dear copy, c the cheap one
    y = (2 * X[:, 1] + X[:, 3] > 0).astype(int)
    problem = problem_of(X, y, "abcd", {"a": 1, "b": 5, "c": 1, "d": 1})
    order = names_of(problem, elimination_order(problem))
    assert order[:2] == "cd"
    assert order.index("b") > order.index("c")


def test_with_equal_costs_the_informative_test_is_first_in_both_orders() -> None:
    X = columns(3000, 5)
    y = (3 * X[:, 3] + X[:, 1] > 0).astype(int)
    problem = problem_of(X, y, "abcde", dict.fromkeys("abcde", 1))
    for order in (elimination_order(problem), ridge_order(problem)):
        assert names_of(problem, order)[:2] == "db"
        assert sorted(order.tolist()) == [0, 1, 2, 3, 4]


def test_a_set_up_counts_as_long_as_nothing_else_pays_it() -> None:
    X = columns(4000, 3)
    y = (X[:, 0] + 1.3 * X[:, 1] + 1.3 * X[:, 2] > 0).astype(int)
    alone = {"a": 1, "b": 1, "c": 1}
    cheap = problem_of(X, y, "abc", alone)
    dear = problem_of(X, y, "abc", alone, setup={"draw": (20, ["b", "c"])})
    assert names_of(cheap, elimination_order(cheap))[0] != "a"
    assert names_of(dear, elimination_order(dear))[0] == "a"  # the last test that would open the draw pays for it


def test_shares_add_up_to_the_cost_of_the_set() -> None:
    told = {"setup": {"draw": (6, ["a", "b", "c"])}, "derived": {"d": ["b", "c"]}}
    problem = problem_of(columns(4, 4), np.array([0, 1, 0, 1]), "abcd", {"a": 1, "b": 4, "c": 2, "d": 1}, **told)
    # the draw is shared by four, since d needs it too; b and c are each shared with d
    assert _cost_shares(problem, np.ones(4, bool)) == pytest.approx([1 + 1.5, 2 + 1.5, 1 + 1.5, 1 + 2 + 1 + 1.5])
    for left in ([True, False, True, False], [False, False, False, True]):
        mask = np.array(left)
        assert _cost_shares(problem, mask).sum() == problem.schema.costs.cost(mask[None])[0]


def test_what_is_free_comes_first_and_sources_come_before_what_is_computed_from_them() -> None:
    X = columns(2000, 4)
    X[:, 3] = X[:, 1] * X[:, 2]
    y = (X[:, 3] > 0).astype(int)
    problem = problem_of(X, y, "abcd", {"a": 0, "b": 2, "c": 3}, derived={"d": ["b", "c"]})
    order = names_of(problem, elimination_order(problem))
    assert order[0] == "a"
    assert order.index("d") == 3  # at once after its sources, which it costs nothing on top of
    known = problem_of(X, y, "abcd", {"a": 1, "b": 2, "c": 3}, derived={"d": ["b", "c"]}, known=["b", "c"])
    assert set(names_of(known, elimination_order(known))[:3]) == set("bcd")


def test_a_test_counts_with_all_its_columns() -> None:
    X = columns(3000, 4)
    y = (X[:, 0] + X[:, 1] + 1.2 * X[:, 2] > 0).astype(int)
    schema = Schema.build(list("abcd"), [0, 1], CostSpec({"pair": 1, "c": 1, "d": 1}, reveals={"pair": ["a", "b"]}))
    problem = Problem.build(schema, X, y)
    for order in (elimination_order(problem), ridge_order(problem)):
        assert [schema.tests[i] for i in order] == ["pair", "c", "d"]


def test_the_same_seed_gives_the_same_order() -> None:
    X = columns(500, 8)
    problem = problem_of(X, (X[:, :4].sum(1) > 0).astype(int), "abcdefgh", dict.fromkeys("abcdefgh", 1))
    assert elimination_order(problem, 3, rows=300).tolist() == elimination_order(problem, 3, rows=300).tolist()


def test_class_weights_are_undone() -> None:
    problem = problem_of(columns(100, 1), np.repeat([0, 1], [80, 20]), "a", {"a": 1}, class_weight="balanced")
    told = loss_scales(problem)
    assert told[1] == pytest.approx(4 * told[0])
    # of cases as they come 80 % are of class 0; a model trained with weights sees half and half
    assert unweighted(np.array([[0.5, 0.5]]), told) == pytest.approx(np.array([[0.8, 0.2]]))
    assert ClassShares.of(problem)(problem.X[:1]) == pytest.approx(np.array([[0.8, 0.2]]))


def test_a_prefix_is_bought_in_order_as_far_as_it_can_be_had() -> None:
    rng = np.random.default_rng(0)
    X = columns(60, 5)
    X[rng.random(X.shape) < 0.2] = np.nan
    known = (rng.random(X.shape) < 0.2) & ~np.isnan(X)
    schema = Schema.build(
        list("abcde"),
        [0, 1],
        CostSpec({"a": 1, "b": 2, "c": 1, "d": 3}, setup={"draw": (2, ["a", "b"])}, derived={"e": ["c", "d"]}),
    )
    problem = Problem.build(schema, X, rng.integers(0, 2, 60), known=known, loss=[[0, 1], [10, 0]])
    assert problem.available is not None
    tests = np.array([4, 1, 0, 2])
    policy = Prefix(tests, schema.first_test, lambda values: np.tile([0.8, 0.2], (len(values), 1)), problem.loss)
    for cap in (None, 5, 3, 0):
        done = rollout(problem, policy, cap)
        bought = done.mask & ~known
        assert not (bought & ~problem.available).any()
        assert not bought[:, 3].any()  # not in the prefix
        assert (done.decision == 1).all()  # 0.2 x 10 is more than 0.8 x 1
        assert (done.cost == schema.costs.cost(done.mask, known)).all()
        if cap is None:
            there = ~np.isnan(X)
            there[:, 4] &= (there | known)[:, [2, 3]].all(1)  # e is computed from c and d
            assert (done.mask == (known | (there & np.isin(np.arange(5), tests)))).all()
            first = done.action[done.first]
            assert (first[problem.available[:, 4] & ~known[:, 4]] == schema.first_test + 4).all()
        else:
            assert (done.cost <= cap).all()


def test_what_a_hard_budget_affords_together() -> None:
    schema = Schema.build(list("abcd"), [0, 1], CostSpec({"a": 1, "b": 2, "c": 3, "d": 1}, setup={"draw": (2, ["a", "b"])}))
    order = np.array([2, 1, 0, 3])
    cap = HardBudget(6).cap(schema.costs)
    assert affordable(order, schema.costs, cap).tolist() == [2, 0]  # b would be 4 more, a is 3 more
    assert affordable(order, schema.costs, None).tolist() == order.tolist()


def test_lengths_are_all_or_a_grid_that_is_fine_at_its_beginning() -> None:
    def lengths(F: int, most: int) -> list[int]:
        schema = Schema.build([f"t{i}" for i in range(F)], [0, 1])
        return lengths_of(Problem.build(schema, np.zeros((2, F)), [0, 1]), np.arange(F), most)

    assert lengths(20, 30) == list(range(21))
    wide = lengths(784, 1000)
    assert (wide[:8], wide[-1]) == (list(range(8)), 784)
    assert 25 < len(wide) <= 66
    assert len(lengths(54, 16)) <= 16
    assert len(lengths(784, 3)) <= 14


def test_in_no_time_it_takes_larger_steps(monkeypatch):
    asked = []

    def gain(X, y, *more):
        asked.append(X.shape[1])
        return np.arange(X.shape[1], dtype=float)

    monkeypatch.setattr("askwise.components.static_order.column_gain", gain)
    problem = Problem.build(Schema.build([f"x{i}" for i in range(100)], [0, 1]), np.zeros((20, 100)), np.arange(20) % 2)
    for seconds, least in ((None, 20), (1e-6, 4)):
        asked.clear()
        assert sorted(elimination_order(problem, seconds=seconds).tolist()) == list(range(100))
        assert (len(asked) > 20) == (seconds is None)
        assert len(asked) >= least
