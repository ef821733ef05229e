"""The figures of a row, against values worked out by hand."""

import numpy as np
import pytest

from askwise.bench import metrics
from askwise.core.budget import Budget, HardBudget
from askwise.core.episode import rollout
from askwise.core.measures import Measure
from askwise.core.policy import Always, Choice, Constant, Greedy, Mixture, Policy
from askwise.core.problem import Problem
from askwise.core.schema import Schema

# Two tests of prices 1 and 3; the first tells the class, y = x0 > 0.
X = np.array([[-2, 0], [-1, 5], [1, 0], [2, 5]], np.float32)
PROBLEM = Problem.build(Schema.build(["cheap", "dear"], ["no", "yes"], {"cheap": 1, "dear": 3}), X, ["no", "no", "yes", "yes"])


class Threshold(Policy):
    """Buys the first test and says 'yes' above a value; believes in what the test shows."""

    def __init__(self, above: float) -> None:
        self.above = above

    def act(self, state):
        says = (state.values[:, 0] > self.above).astype(np.int64)
        return Choice(np.where(state.mask[:, 0], says, 2), np.ones(len(says), np.float32))

    def belief(self, state):
        p = 1 / (1 + np.exp(-state.values[:, 0].astype(float)))
        return np.column_stack([1 - p, p])


def test_metrics_of_one_policy_equal_those_worked_by_hand() -> None:
    found = metrics.figures(Threshold(-1.5), PROBLEM, Budget())
    assert found.cost.tolist() == [1, 1, 1, 1]
    assert found.loss.tolist() == [0, 1, 0, 0]  # -1 is above -1.5
    assert found.means == [1, 0.25, 0.75, 0.75, 1.0]  # the order is perfect, only the threshold is wrong
    row = metrics.single(found, loss_scale=2.0)
    assert (row["cost"], row["cost_interval"], row["most"]) == (1, [1, 1], 1)
    assert row["score"] == 1 - 0.25 / 2
    low, high = row["score_interval"]
    assert low < row["score"] < high <= 1
    assert len(row["resampled_scores"]) == metrics.SAMPLES


def test_balanced_accuracy_counts_classes_alike() -> None:
    some = PROBLEM.take(np.array([0, 1, 2]))
    assert metrics.figures(Always(0), some, Budget()).means == [0, pytest.approx(1 / 3), pytest.approx(2 / 3), 0.5, None]


def test_a_hard_budget_is_kept_and_mixtures_tell_what_they_believe() -> None:
    nothing = Greedy(Constant((0.0, -1.0)))
    found = metrics.figures(Mixture(nothing, Threshold(0), 0.5, seed=1), PROBLEM, HardBudget(2))
    assert set(found.cost.tolist()) == {0, 1}
    assert found.means[-1] is not None
    said = metrics.leaning(nothing, PROBLEM, rollout(PROBLEM, nothing, None), None)
    assert said.tolist() == [-1, -1, -1, -1]


def found_at(costs: list[float], losses: list[float]) -> metrics.PolicyFigures:
    cost, loss = np.array(costs, float), np.array(losses, float)
    return metrics.PolicyFigures(Measure(cost.mean(), loss.mean(), 1 - loss.mean(), len(cost)), 0.5, None, cost, loss)


def test_a_frontier() -> None:
    # deciding at once: score 0.5; point 0: cost 2, score 0.75 (on validation 0.8); point 1: cost 3, dominated on validation;
    # point 2: cost 4, score 1. Everything costs 10.
    validation = [found_at([0] * 10, [0.5] * 10), found_at([2] * 10, [0.2] * 10), found_at([3] * 10, [0.4] * 10),
                  found_at([4] * 10, [0.1] * 10)]  # fmt: skip
    test = [
        found_at([0] * 4, [1, 1, 0, 0]),
        found_at([2] * 4, [1, 0, 0, 0]),
        found_at([3] * 4, [0] * 4),
        found_at([4] * 4, [0] * 4),
    ]
    row = metrics.frontier([f.measure for f in validation], test, 1.0, 10.0, [1, 3, 20], [0.5, 0.6, 0.9, 1.1])
    assert row["chosen"] == [0, 2]
    assert row["curve"] == [[0, 2, 4, 10], [0.5, 0.75, 1, 1]]
    # trapezia: 2 * 0.625 + 2 * 0.875 + 6 * 1 = 9
    assert row["area"] == pytest.approx(0.9)
    assert row["accuracy_at"] == {"1": 0.625, "3": 0.875, "20": 1}
    assert row["cost_at"]["0.5"] == 0
    assert row["cost_at"]["0.6"] == pytest.approx(0.8)
    assert row["cost_at"]["0.9"] == pytest.approx(3.2)
    assert row["cost_at"]["1.1"] is None
    # a resampling draws cases, for all points the same: the first draw by hand
    drawn = np.random.default_rng(0).integers(4, size=4)
    at_once, first = np.mean(np.array([0, 0, 1, 1])[drawn]), np.mean(np.array([0, 1, 1, 1])[drawn])
    assert row["resampled"][0] == pytest.approx((at_once + first) / 10 + (first + 1) / 10 + 0.6, abs=1e-5)
    assert len(row["resampled"]) == 200


def test_without_points_there_is_the_prior() -> None:
    row = metrics.frontier([found_at([0, 0], [1, 0]).measure], [found_at([0, 0], [1, 0])], 1.0, 5.0, None, [])
    assert row["area"] == 0.5
    assert list(row["accuracy_at"]) == ["0.25", "0.5", "1.25", "2.5"]


def test_resamplings_are_the_same_for_all() -> None:
    values = np.arange(7.0)
    naive, rng = [], np.random.default_rng(0)
    for _ in range(metrics.SAMPLES):
        naive.append(values[rng.integers(7, size=7)].mean())
    assert metrics.resampled(values) == pytest.approx(naive)
    assert metrics.resampled(np.column_stack([values, values]))[:, 1] == pytest.approx(naive)
