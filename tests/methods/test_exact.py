"""The exact optimum against a naive twin that tries every plan, and against values worked out by hand."""

from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from tests.support.naive import expected_losses

from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff
from askwise.core.cases import Cases
from askwise.core.cost_spec import CostSpec
from askwise.core.episode import measure, rollout
from askwise.core.policy import Mixture
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.core.scoring import RULES
from askwise.errors import InputError
from askwise.methods import exact


def naive(problem: Problem, lam: Fraction, cap: Fraction | None) -> Fraction:
    """The least loss + lam * cost over all plans, by plain recursion over sets of rows."""
    schema, costs = problem.schema, problem.schema.costs
    rows = list(range(len(problem)))

    def cost(held: frozenset[int]) -> Fraction:
        mask = np.zeros((1, schema.n_tests), bool)
        mask[0, list(held)] = True
        known = None if problem.known is None else problem.known[:1]
        return int(costs.cost(mask, known)[0]) * costs.smallest_unit

    @cache
    def best(held: frozenset[int], these: tuple[int, ...]) -> Fraction:
        spent, options = cost(held), []
        for d in range(schema.n_decisions):
            price = int(schema.decision_cost[d]) * costs.smallest_unit
            if cap is None or spent + price <= cap:
                lost = sum(Fraction(str(problem.loss[problem.y[i], d])) for i in these)
                options.append(lost + lam * price * len(these))
        if schema.external_needs is not None:
            all_held = held | set(np.flatnonzero(schema.external_needs).tolist())
            if cap is None or cost(all_held) <= cap:
                said = sum(Fraction(str(problem.loss[problem.y[i], problem.external[i]])) for i in these)
                options.append(said + lam * (cost(all_held) - spent) * len(these))
        for f in range(schema.n_tests):
            more = held | {f}
            if f not in held and (cap is None or cost(more) <= cap):
                parts: dict[bytes, list[int]] = {}
                for i in these:
                    parts.setdefault(problem.X[i, schema.owner == f].tobytes(), []).append(i)
                after = sum(best(more, tuple(p)) for p in parts.values())
                options.append(lam * (cost(more) - spent) * len(these) + after)
        return min(options)

    start = frozenset() if problem.known is None else frozenset(np.flatnonzero(problem.known[0]).tolist())
    groups: dict[bytes, list[int]] = {}
    columns = np.isin(schema.owner, list(start))
    for i in rows:
        groups.setdefault(problem.X[i, columns].tobytes(), []).append(i)
    return sum(best(start, tuple(g)) for g in groups.values()) / len(rows)


def random_problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    F, K, n = int(rng.integers(2, 5)), int(rng.integers(2, 4)), 24
    X = rng.integers(0, 3, (n, F)).astype(float)
    y = rng.integers(0, K, n)
    y[:K] = range(K)
    names = [f"t{f}" for f in range(F)]
    extra: dict[str, object] = {}
    needs = names[:1] if seed % 5 == 0 else None
    if seed % 2:
        extra["setup"] = {"visit": (0.7, names[:2])}
    if seed % 3 == 0 and F > 2:
        extra["derived"] = {names[-1]: names[:2]}
    if seed % 3 == 1:
        extra["decisions"] = {"defer": 0.6, "treat": 0}
    costs = {t: rng.choice([0.1, 0.2, 0.7, 1.0]).item() for t in names if t not in extra.get("derived", {})}
    schema = Schema.build(names, list(range(K)), CostSpec(costs, **extra), needs)
    rows: dict[str, object] = {"external": rng.integers(0, K, n)} if seed % 5 == 0 else {}
    if seed % 4 == 0:
        rows["known"] = [names[0]]
    if seed % 7 == 0:
        loss = rng.integers(0, 5, (K, K)) / 2
        np.fill_diagonal(loss, 0)
        loss[0, 1] = 1
        rows["loss"] = loss
    if "decisions" in extra:
        plain = rows.get("loss", 1 - np.eye(K))
        rows["loss"] = np.hstack([plain, np.full((K, 1), 0.1), rng.integers(1, 9, (K, 1)) / 10])
    return Problem.build(schema, X, y, **rows)


@pytest.mark.parametrize("seed", range(24))
def test_equals_the_best_of_all_plans(seed: int) -> None:
    problem = random_problem(seed)
    for lam, hard in (
        (Fraction(1, 20), None),
        (Fraction(0), Fraction(1)),
        (Fraction(1, 10), Fraction(4, 5)),
        (Fraction(0), None),
    ):
        budget = Budget(lam=float(lam), hard=hard)
        found = exact.solve(problem, budget)
        assert found.loss + lam * found.cost == naive(problem, lam, hard)
        # and the policy, rolled out, comes to what is claimed
        done = measure(problem, found.policy, budget.cap(problem.schema.costs))
        assert done.cost == pytest.approx(float(found.cost), abs=1e-12)
        assert done.loss == pytest.approx(float(found.loss), abs=1e-12)


@pytest.mark.parametrize("seed", range(12))
def test_an_average_budget_is_the_lower_hull_of_all_prices(seed: int) -> None:
    problem = random_problem(seed)
    beliefs = exact.Exact(problem)
    most = beliefs.solve(Fraction(0), None)
    for share in (Fraction(1, 5), Fraction(1, 2), Fraction(9, 10), Fraction(2)):
        b = most.cost * share
        found = beliefs.average(b, None)
        assert found.cost <= b
        # weak duality holds for every price, and is tight for one
        prices = [Fraction(i, 200) for i in range(400)]
        bounds = [naive_value - lam * b for lam in prices if (naive_value := _value(beliefs, lam)) is not None]
        assert max(bounds) <= found.loss
        assert float(found.loss - max(bounds)) <= 0.02


def _value(beliefs: exact.Exact, lam: Fraction) -> Fraction:
    found = beliefs.solve(lam, None)
    return found.loss + lam * found.cost


def only_a_pair_tells() -> Problem:
    """y = a xor b, at price 1.5 each: one test alone says nothing."""
    X = np.array([[0, 0], [0, 1], [1, 0], [1, 1]] * 50, float)
    return Problem.build(Schema.build(["a", "b"], [0, 1], [1.5, 1.5]), X, X.sum(1).astype(int) % 2, ids=np.arange(200))


def test_a_mixture_where_no_single_policy_is_useful() -> None:
    # the cost-0 policy is right in 0.5 of the cases, the cost-3 policy in all: at 1.5 half of each
    found = exact.solve(only_a_pair_tells(), AverageBudget(1.5))
    assert isinstance(found.policy, Mixture)
    assert found.policy.share == 0.5
    assert found.cost == Fraction(3, 2)
    assert found.loss == Fraction(1, 4)
    assert exact.solve(only_a_pair_tells(), HardBudget(1.5)).loss == Fraction(1, 2)


def test_when_more_money_does_not_help_it_is_not_spent() -> None:
    found = exact.solve(only_a_pair_tells(), AverageBudget(10))
    assert (found.cost, found.loss) == (3, 0)


def test_both_arms_of_a_mixture_obey_the_hard_budget() -> None:
    problem = random_problem(5)
    budget = AverageBudget("0.4") & HardBudget("0.9")
    found = exact.solve(problem, budget)
    done = rollout(problem, found.policy, budget.cap(problem.schema.costs))
    assert (problem.schema.costs.money(done.cost) <= 0.9 + 1e-12).all()


def test_large_enough_problems_fit() -> None:
    rng = np.random.default_rng(0)
    for F, values in ((8, 3), (12, 2)):
        X = rng.integers(0, values, (500, F)).astype(float)
        problem = Problem.build(Schema.build([f"t{f}" for f in range(F)], [0, 1]), X, (X[:, 0] + X[:, 1] > 1).astype(int))
        assert exact.solve(problem, Tradeoff(0.01)).loss == 0


def test_what_cannot_be_solved_exactly_is_refused() -> None:
    y = np.arange(40) % 2
    X = np.arange(120, dtype=float).reshape(40, 3)
    schema = Schema.build(["a", "b", "c"], [0, 1])
    holes = X.copy()
    holes[3, 1] = np.nan
    with pytest.raises(InputError, match=r"'b' is missing in row 3 \(counted from 0\); the exact optimum needs complete rows"):
        exact.solve(Problem.build(schema, holes, y), Tradeoff(0))
    known = np.zeros((40, 3), bool)
    known[0, 0] = True
    with pytest.raises(InputError, match="differs from case to case"):
        exact.solve(Problem.build(schema, X, y, known=known), Tradeoff(0))
    many = np.arange(400, dtype=float)[:, None] + np.zeros((1, 3))
    with pytest.raises(InputError, match="belief states, more than"):
        exact.solve(Problem.build(schema, many, np.arange(400) % 2), Tradeoff(0))


def test_values_never_seen_do_not_stop_it() -> None:
    problem = only_a_pair_tells()
    policy = exact.fit(problem, None, Tradeoff(0.01))
    strange = Problem.build(problem.schema, [[7.0, 1.0], [0.0, 9.0]])
    assert set(rollout(strange, policy, None).decision.tolist()) <= {0, 1}


# ------------------------------------------------------------------ beliefs as answers


def naive_belief(problem: Problem, lam: float, cap: float | None) -> float:
    """The least loss + lam * cost over all plans whose answer is the shares of the classes among the rows that look the same."""
    costs, F = problem.schema.costs, problem.schema.n_tests

    def cost(held: frozenset[int]) -> float:
        mask = np.zeros((1, F), bool)
        mask[0, list(held)] = True
        return float(costs.money(costs.cost(mask, None))[0])

    @cache
    def best(held: frozenset[int], these: tuple[int, ...]) -> float:
        p = np.bincount(problem.y[list(these)], minlength=problem.schema.n_classes) / len(these)
        options = [expected_losses([p], problem.loss, problem.rule).min() * len(these)]
        for f in set(range(F)) - held:
            more = held | {f}
            if cap is None or cost(more) <= cap + 1e-9:
                parts: dict[float, list[int]] = {}
                for i in these:
                    parts.setdefault(float(problem.X[i, f]), []).append(i)
                options.append(
                    lam * (cost(more) - cost(held)) * len(these) + sum(best(more, tuple(part)) for part in parts.values())
                )
        return min(options)

    return best(frozenset(), tuple(range(len(problem)))) / len(problem)


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("seed", [2, 9, 11])
def test_the_best_of_all_plans_for_probabilities(seed: int, rule: str) -> None:
    given = random_problem(seed)
    weights = np.arange(1, given.schema.n_classes + 1.0)[:, None]
    for loss in (1 - np.eye(len(weights)), weights * (1 - np.eye(len(weights)))):
        problem = replace(given, loss=loss, rule=rule)
        for lam, hard in (("0.05", None), ("0.1", "0.8"), ("0", None)):
            budget = Budget(lam=float(lam), hard=None if hard is None else Fraction(hard))
            found = exact.solve(problem, budget)
            bound = naive_belief(problem, float(lam), None if hard is None else float(hard))
            assert float(found.loss) + float(lam) * float(found.cost) == pytest.approx(bound, abs=1e-5)
            done = measure(problem, found.policy, budget.cap(problem.schema.costs))
            assert (done.cost, done.loss) == (pytest.approx(float(found.cost)), pytest.approx(float(found.loss), abs=1e-5))


def test_probabilities_of_the_pair_by_hand() -> None:
    problem = replace(only_a_pair_tells(), rule="log")
    found = exact.solve(problem, AverageBudget(1.5))  # ln 2 without, 0 with both
    assert float(found.loss) == pytest.approx(np.log(2) / 2, abs=1e-6)
    state = Cases.start(problem, np.arange(4), None).observe()
    assert exact.solve(problem, HardBudget(1.5)).policy.belief(state).tolist() == [[0.5, 0.5]] * 4
