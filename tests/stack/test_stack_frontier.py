"""What a stack measures at the end: sets for hard budgets, and policies whose members do otherwise than they do together."""

import numpy as np
import pytest
from tests.support.members import QUICK

from askwise import CostlyClassifier, HardBudget, load
from askwise.core.measures import Measure
from askwise.frontier.point import Point
from askwise.stack.measure import HeldOut, StackCandidate, StackFrontier, as_paid, fills
from askwise.stack.run import MEASURING

COSTS = [20, 1, 1, 1, 1, 1, 1]  # x0 is the scan


@pytest.fixture(scope="module")
def fitted():
    """A scan that tells nearly all, and cheap tests that each tell more for their money."""
    rng = np.random.default_rng(0)
    ill = rng.normal(size=900)
    X = np.column_stack([ill + 0.1 * rng.normal(size=900), *(ill + 1.2 * rng.normal(size=900) for _ in range(6))])
    y = np.where(ill + 0.1 * rng.normal(size=900) > 0, "ill", "well")
    return CostlyClassifier(COSTS, algorithm="stack", config=QUICK, random_state=0).fit(X, y), X, y


def test_a_dear_test_is_bought_where_a_hard_budget_has_room_for_it(fitted, tmp_path):
    classifier, X, y = fitted
    model = classifier.model_
    orders = np.argsort(model.family.rank)
    assert orders[0] != 0  # so that the order alone would spend the money on cheap tests
    for amount in (20, 22, 24):
        capped = classifier.at(HardBudget(amount))
        done = capped.acquire(X)
        assert (done.cost <= amount).all()
        assert np.mean(["x0" in tests for tests in done.tests]) > 0.9
        assert (done.prediction == y).mean() > 0.9  # the cheap tests come to 0.84
    classifier.save(tmp_path / "m.askwise")
    again = load(tmp_path / "m.askwise")
    assert [p.tests for p in again.points] == [p.tests for p in model.points]
    np.testing.assert_array_equal(again.at(HardBudget(22)).acquire(X).cost, classifier.at(HardBudget(22)).acquire(X).cost)


def test_a_policy_that_does_not_buy_what_its_members_bought_loses_what_members_lose_that_buy_as_little(fitted):
    classifier, X, y = fitted
    model = classifier.model_
    problem = model.problem(X, y)
    high = model.family.scale.high
    tries = [StackCandidate(0.0, 0, None, 1), StackCandidate(high, None, None, 3), StackCandidate(0.0, 1, None, 1)]
    frontier = StackFrontier(HeldOut(problem, [(model.family, np.arange(len(y)))]), model.family, tries, 0, MEASURING)
    frontier.work.go_on(len(y), range(3))
    frontier.paid = {i: frontier._paid(candidate, 500) for i, candidate in enumerate(tries)}
    first = COSTS[int(np.argmin(model.family.rank))]
    assert [round(point.cost, 6) for point in frontier._costed(range(3)).values()] == [0, 0, first]
    frontier.work.tallies[1] = frontier.work.tallies[2]  # as if its members had bought a test, which it never does
    costed = frontier._costed([1, 2])
    assert costed[1].cost == 0
    assert costed[1].loss == costed[0].loss > costed[2].loss
    frontier.work.tallies[2] = frontier.work.tallies[0]  # and here as if they had bought none
    assert frontier._costed(range(3))[2].cost == first


def test_losses_are_those_of_members_that_paid_as_much():
    def point(cost, loss, **more):
        return Point(0.1, Measure(cost, loss, 1 - loss, 100, 0.5, 0.01), **more)

    points = {
        0: point(0, 0.4, prefix=0),
        1: point(2, 0.3, breadth=3),
        2: point(6, 0.1, breadth=3),
        3: point(8, 0.2, breadth=1),
        4: point(5, 0.2, prefix=2),
        5: point(5, 0.2, breadth=3, cap=7),
    }
    paid = {i: Measure(cost, 9, 9, 50, 0.25) for i, cost in {0: 0, 1: 3, 2: 7, 3: 4, 4: 5, 5: 4}.items()}
    costed = as_paid(points, paid, 0)
    figures = {i: (p.cost, round(p.loss, 6), p.measure.cost_error) for i, p in costed.items()}
    # 1: a quarter of the way from 0.3 to 0.1; 2: as 2; 3: halfway from deciding at once; 5: as dear as its members, and
    # a fifth of the way from them to deciding at once
    assert figures == {
        0: (0, 0.4, 0.25),
        1: (3, 0.25, 0.25),
        2: (7, 0.1, 0.25),
        3: (4, 0.3, 0.25),
        4: (5, 0.2, 0.25),
        5: (5, 0.24, 0.5),
    }
    assert [p.measure.n for p in costed.values()] == [100] * 6


def test_gaps_between_neighbouring_tradeoffs_are_filled():
    policies = [(0.1, 9.0), (0.2, 8.0), (0.4, 2.0), (0.41, 0.5), (1.6, 0.0)]
    # 9 and 8 are joined, 0.41 and 0.4 have nothing between them
    assert fills(policies, 10) == [(4.0, pytest.approx(0.08**0.5)), (np.inf, pytest.approx(0.656**0.5))]
    assert fills(policies, 2) == [(np.inf, pytest.approx(0.656**0.5))]  # more than 2 helps nobody
    assert fills([], 1) == fills([(0.1, 0.0), (0.5, 0.0)], 1) == []
