"""Planning by neighbours: each part against a naive twin, the rules, and a pair of tests that only plans can find."""

from functools import cache
from itertools import combinations

import numpy as np
import pytest
from tests.support.policies import with_settings

from askwise.core.budget import AverageBudget, HardBudget
from askwise.core.cases import Cases
from askwise.core.cost_spec import CostSpec
from askwise.core.episode import measure, rollout
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.methods import aaco
from askwise.methods.aaco import Aaco, Plans, ReferenceRows, best_first, candidates, cross_entropy, masked_classifier
from benchmarks.known_optima.small_problems import small_problem

PRICE = 0.05


@cache
def pair() -> list[Problem]:
    """t0 and t1 tell the class together and nothing alone; the other tests are noise."""
    small = small_problem(3, rows=1_500)
    assert small.kind == "pair"
    return [small.problem.take(part) for part in (slice(0, 800), slice(800, 1_100), slice(1_100, None))]


@cache
def classifier():
    return masked_classifier(*pair()[:2], seconds=60, seed=0, steps=400)


def reference_rows(**limits: int) -> ReferenceRows:
    return ReferenceRows(pair()[0], classifier(), **{"reference": 500, "supersets": 256, "neighbours": 20, "seed": 0, **limits})


def guess(values: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """A classifier of two classes that needs no training: surer the more is held, and moved by what the values add up to."""
    p = 1 / (1 + np.exp(-values.sum(1, dtype=float) - 0.1 * mask.sum(1)))
    return np.stack([1 - p, p], 1)


def mixed(rows: int = 30) -> Problem:
    """A test of two columns, a set-up and a derived test."""
    rng = np.random.default_rng(0)
    schema = Schema.build(
        list("abcde"),
        [0, 1],
        CostSpec(
            {"scan": 2, "c": 1, "d": 3}, setup={"draw": (2, ["c", "d"])}, derived={"e": ["c", "d"]}, reveals={"scan": ["a", "b"]}
        ),
    )
    return Problem.build(schema, rng.normal(size=(rows, 5)), rng.integers(2, size=rows))


def test_a_pair_that_tells_only_together_is_bought_and_decides() -> None:
    test = pair()[2]
    done = rollout(test, Aaco(reference_rows(), PRICE, test.loss), None)
    assert done.mask[:, :2].all(1).mean() > 0.95
    assert done.mask[:, 2:].mean() < 0.1
    assert (done.decision == test.y).mean() > 0.93
    one_step = reference_rows()
    one_step.candidates = one_step.candidates[: test.schema.n_tests + 1]  # a plan of one test: greedy
    assert not rollout(test, Aaco(one_step, PRICE, test.loss), None).mask.any()


def test_a_higher_tradeoff_buys_less() -> None:
    test, shared = pair()[2], reference_rows()
    cost = [measure(test, Aaco(shared, price, test.loss), None).cost for price in (0.01, PRICE, 0.5, np.inf)]
    assert (np.diff(cost) <= 0).all()
    assert cost[0] > cost[2] == cost[3] == 0


def test_candidates() -> None:
    few = candidates(4, 16, np.random.default_rng(0))
    assert few.sum(1)[:5].tolist() == [0, 1, 1, 1, 1]
    assert (few[1:5] == np.eye(4)).all()
    every = {frozenset(c) for n in range(5) for c in combinations(range(4), n)}
    assert {frozenset(np.flatnonzero(row).tolist()) for row in few} == every
    assert len(few) == 16
    many = candidates(40, 100, np.random.default_rng(0))
    assert many.shape == (141, 40)
    assert (many[1:41] == np.eye(40)).all()
    assert (candidates(400, 50, np.random.default_rng(0))[401:].sum(1) > 1).mean() > 0.8  # however many tests there are


@pytest.mark.parametrize("block", [1, aaco.SETTINGS.block])
def test_neighbours_plans_and_losses_are_those_of_a_naive_twin(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with_settings(monkeypatch, aaco, block=block)
    problem = mixed()
    costs, owner = problem.schema.costs, problem.schema.owner
    mine = ReferenceRows(problem, guess, reference=20, supersets=16, neighbours=3, seed=0)
    cases = Cases(problem, np.arange(6), np.tile([True, False, True, False], (6, 1)), None)
    near = mine.nearest(cases.values(), cases.mask)
    plans = mine.plans(cases.mask[0], np.array([False, True, False, True]), np.zeros(4))
    lost = mine.losses(plans, near)
    assert (lost == mine.losses(plans, near)).all()  # from what is kept
    held = cases.mask[0]
    for i in range(6):
        distance = [sum((problem.X[i, c] - r[c]) ** 2 for c in range(5) if held[owner[c]]) for r in mine.X]
        assert sorted(near[i]) == sorted(np.argsort(distance)[:3])
        for u, chosen in enumerate(plans.sets):
            each = []
            for n in near[i]:
                p = guess((mine.X[n] * chosen[owner])[None], chosen[None])[0, mine.y[n]]
                each.append(-np.log(p))
            assert lost[i, u] == pytest.approx(np.mean(each), rel=1e-5)
    assert {frozenset(np.flatnonzero(s).tolist()) for s in plans.sets} == {
        frozenset(s) for s in ((0, 2), (0, 1, 2), (0, 2, 3), (0, 1, 2, 3))
    }
    whole = costs.cost(plans.sets) - costs.cost(held[None])
    assert plans.cost == pytest.approx(whole * float(costs.smallest_unit))
    assert (plans.sets[plans.which] == held | (mine.candidates & np.array([False, True, False, True]))).all()


def test_losses_are_weighted_by_the_largest_loss_of_a_case() -> None:
    p, y = np.array([[0.75, 0.25], [0.75, 0.25], [1.0, 0.0]]), np.array([0, 1, 1])
    # at three times the stake the second class is as likely as the first
    assert cross_entropy(p, y, np.array([1.0, 3.0])) == pytest.approx([np.log(2), 3 * np.log(2), 3 * np.log(1e6)])


def test_the_first_test_of_the_best_plan() -> None:
    sets = np.array([[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 0, 0], [0, 1, 1]], bool)
    # which: nothing, t0, t1, t2, t1 and t2
    plans = Plans(sets, np.array([0, 3, 2, 1, 4]), np.array([0.0, 2, 1, 4, 3]), np.zeros((1, 5), np.float32))
    lost = np.array([[0.7, 0.7, 0.7, 0.6, 0.1]])
    assert best_first(plans, lost, 0.1, None) == 1  # t1 and t2: 0.1 + 0.3; t1 alone costs less than t2
    assert best_first(plans, lost, 0.25, None) == -1  # 0.1 + 0.75
    assert best_first(plans, lost, 0.01, np.array([2.0])) == -1  # the pair costs 3
    assert best_first(plans, lost, 0.01, np.array([3.0])) == 1
    assert best_first(plans, lost, 0.0, np.array([4.0])) == 1
    free = plans._replace(cost=np.zeros(5))
    assert best_first(free, lost, np.inf, None) in (1, 2)
    assert best_first(plans, lost, np.inf, None) == -1


def test_what_was_known_has_not_paid_for_what_it_is_computed_from() -> None:
    mine = ReferenceRows(mixed(), guess, reference=20, supersets=16, neighbours=3, seed=0)
    held, on_offer = np.arange(4) == 3, np.arange(4) == 1  # the derived test is held, one of its sources is on offer
    assert mine.plans(held, on_offer, np.zeros(4)).cost.tolist() == [0, 0]
    assert sorted(mine.plans(held, on_offer, np.array([0, 3.0, 0, 0])).cost.tolist()) == [0, 3]


def test_what_is_kept_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = ReferenceRows(mixed(), guess, reference=20, supersets=16, neighbours=3, seed=0)
    with_settings(monkeypatch, aaco, stored=3_000)
    nothing = np.zeros(4, bool)
    for offer in candidates(4, 16, np.random.default_rng(0)):
        mine.plans(nothing, offer, np.zeros(4))
        assert sum(p.losses.nbytes for p in mine.kept.values()) <= 3_000
    assert len(mine.kept) > 1


def test_the_same_seed_and_steps_give_the_same_policy() -> None:
    train, validation, test = pair()
    first, second, other = (aaco.points(train, validation, seconds=0, steps=10, seed=seed)[5] for seed in (1, 1, 2))
    state = Cases.start(test, np.arange(50), None).observe()
    p, q, r = (policy.reference_rows.classify(state.values, state.mask) for policy in (first, second, other))
    assert (p == q).all()
    assert (p != r).any()
    assert (first.reference_rows.X == second.reference_rows.X).all()


def test_a_missing_test_tells_nothing_about_the_class() -> None:
    """All values are noise, but one class always lacks the last test. Whoever does not hold it must not be suspected."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(480, 3)), np.arange(480) % 2
    X[y == 1, 2] = np.nan
    problem = Problem.build(Schema.build(list("abc"), [0, 1]), X, y)
    policy = aaco.points(problem, problem, seconds=0, steps=150)[0]
    p = policy.reference_rows.classify(np.zeros((1, 3), np.float32), np.array([[True, True, False]]))
    assert p[0, 1] == pytest.approx(0.5, abs=0.1)


def test_fit_keeps_to_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    train, validation, test = pair()
    monkeypatch.setattr(aaco, "masked_classifier", lambda *_: classifier())
    both = float(train.schema.costs.money(train.schema.costs.own[:2].sum()))
    average = aaco.fit(train, validation, AverageBudget(both / 2))
    assert measure(validation, average, None).cost == pytest.approx(both / 2, rel=0.2)
    hard = rollout(test, aaco.fit(train, validation, HardBudget(both)), HardBudget(both).cap(train.schema.costs))
    assert (hard.decision == test.y).mean() > 0.93
