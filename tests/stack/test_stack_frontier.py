"""What a stack measures at the end: sets for hard budgets, and policies whose members do otherwise than they do together."""

import numpy as np
import pytest
from tests.support.members import QUICK

from askwise import CostlyClassifier, HardBudget, load
from askwise.stack.measure import HeldOut, StackCandidate, StackFrontier
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


def test_a_policy_that_does_not_buy_what_its_members_bought_is_not_kept(fitted):
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
    members = frontier.work.tallies[2]
    frontier.work.tallies[1] = members  # as if its members had bought a test, which it never does
    assert list(frontier._costed(range(3))) == [0, 2]
    frontier.work.tallies[2] = frontier.work.tallies[0]  # and here as if they had bought none
    assert frontier._costed(range(3))[2].cost == first
