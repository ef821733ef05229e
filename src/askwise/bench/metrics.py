"""What policies come to on test cases: the area under a frontier and what is read off it, or the figures of one policy.

Intervals come from resamplings of the test cases, the same draws for all methods, so that two methods can be compared case by
case. The score is 1 - loss / loss_scale, which is the accuracy where mistakes are alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from askwise.core.arrays import Doubles
from askwise.core.budget import Budget
from askwise.core.cases import Cases, State
from askwise.core.episode import Episodes
from askwise.core.measures import Measure
from askwise.core.policy import Mixture, Policy
from askwise.core.problem import Problem
from askwise.core.ranking import two_class_auroc
from askwise.evaluation import evaluate
from askwise.frontier.metric import Curve, curve

COLUMNS = ("cost", "loss", "accuracy", "balanced accuracy", "auroc")
SAMPLES = 200  # of the test cases, with repetition
SHARES = (0.05, 0.1, 0.25, 0.5)  # of the cost of everything: where the score is read off, unless the plan says where


@dataclass(frozen=True, eq=False)
class PolicyFigures:
    """A policy on some cases: the means, and cost and loss of each case. What was bought would be too much to keep."""

    measure: Measure
    balanced_accuracy: float
    auroc: float | None
    cost: Doubles  # N, money
    loss: Doubles  # N

    @property
    def means(self) -> list[float | None]:
        """By COLUMNS."""
        return [self.measure.cost, self.measure.loss, self.measure.accuracy, self.balanced_accuracy, self.auroc]


def figures(policy: Policy, problem: Problem, budget: Budget) -> PolicyFigures:
    """Rolls the policy out over all cases."""
    report = evaluate(policy, problem, budget)
    leanings = leaning(policy, problem, report.episodes, budget.cap(problem.schema.costs))
    area = None if leanings is None else two_class_auroc(leanings, report.truth == 1)
    value = None if area is None else area.value
    return PolicyFigures(report.measure, report.balanced_accuracy, value, report.cost_per_case, report.episodes.loss)


def leaning(policy: Policy, problem: Problem, done: Episodes, cap: int | None, chunk: int = 4096) -> Doubles | None:
    """N: how much each case looked like the second of two classes when it was decided; None with more classes, where the policy
    does not tell, or where an existing classifier was asked, which tells only its answer."""
    if problem.schema.n_classes != 2 or problem.external is not None:
        return None
    if done.belief is not None:
        second: Doubles = done.belief[:, 1]
        return second
    parts = []
    for i in range(0, len(done.row), chunk):
        state = Cases(problem, done.row[i : i + chunk], done.mask[i : i + chunk], cap).observe()
        part = _leaning(policy, state)
        if part is None:
            return None
        parts.append(part)
    return np.concatenate(parts)


def _leaning(policy: Policy, state: State) -> Doubles | None:
    """The probability of the second class, or by how much it is valued above the first, which has the same order."""
    if isinstance(policy, Mixture):
        both = np.empty(len(state.mask))
        for arm, who in policy.arms(state):
            part = _leaning(arm, state.keep(who))
            if part is None:
                return None
            both[who] = part
        return both
    if (belief := policy.belief(state)) is not None:
        p: Doubles = np.asarray(belief, float)
        return p[:, 1]
    if (values := policy.values(state)) is not None:
        q: Doubles = np.asarray(values, float)
        return np.subtract(q[:, 1], q[:, 0])
    return None


def frontier(
    chosen_by: Sequence[Measure],
    test: Sequence[PolicyFigures],
    loss_scale: float,
    total: float,
    accuracy_at: Sequence[float] | None,
    cost_at: Sequence[float],
) -> dict[str, Any]:
    """The paper's metric and what is read off the curve. The first of each is deciding at once. chosen_by: what was measured on
    validation rows, or on others that were not learned from."""
    chosen_on = [(m.cost, score(m.loss, loss_scale)) for m in chosen_by]
    cost, loss = (np.stack([getattr(f, name) for f in test], 1) for name in ("cost", "loss"))  # N, P

    def drawn(costs: Doubles, losses: Doubles) -> Curve:
        """From the means of each point on test cases."""
        scores = score(losses, loss_scale)
        prior = chosen_on[0][1], float(scores[0])
        return curve(tuple(zip(*chosen_on[1:], strict=True)) or ((), ()), (costs[1:], scores[1:]), prior, total)  # type: ignore[arg-type]

    whole = drawn(cost.mean(0), loss.mean(0))
    again = [drawn(*means).area for means in zip(resampled(cost), resampled(loss), strict=True)]
    at = [share * total for share in SHARES] if accuracy_at is None else accuracy_at
    return {
        "chosen": whole.chosen.tolist(),
        "curve": [whole.cost.tolist(), whole.score.tolist()],
        "area": whole.area,
        "resampled": [round(area, 5) for area in again],
        "accuracy_at": {f"{c:g}": float(np.interp(c, whole.cost, whole.score)) for c in at},
        "cost_at": {f"{s:g}": least_cost(whole.cost, whole.score, s) for s in cost_at},
    }


def score(loss: Any, loss_scale: float) -> Any:
    return 1 - loss / loss_scale


def least_cost(cost: ArrayLike, scores: ArrayLike, wanted: float) -> float | None:
    """The least mean cost at which the curve reaches a score, on its lines too, since mixing two policies gives every point of
    the line between them; None where it never does."""
    x, y = np.asarray(cost, float), np.asarray(scores, float)
    there = np.flatnonzero(y >= wanted)
    if not len(there):
        return None
    i = int(there[0])
    if i == 0 or y[i] == y[i - 1]:
        return float(x[i])
    return float(x[i - 1] + (x[i] - x[i - 1]) * (wanted - y[i - 1]) / (y[i] - y[i - 1]))


def resampled(values: Doubles, block: int = 20) -> Doubles:
    """SAMPLES, ...: the means over cases (the first axis) when these are drawn with repetition, by the same draws always."""
    n, draws = len(values), np.random.default_rng(0)
    means = []
    for i in range(0, SAMPLES, block):  # some draws at a time, since each is as long as the data
        times = np.stack([np.bincount(draws.integers(n, size=n), minlength=n) for _ in range(min(block, SAMPLES - i))])
        means.append(times @ values / n)
    return np.concatenate(means)


def single(test: PolicyFigures, loss_scale: float) -> dict[str, Any]:
    """The figures of one policy on test cases, with intervals that hold 95 of 100 resamplings."""
    means = test.measure
    costs, scores = resampled(test.cost), score(resampled(test.loss), loss_scale)
    return {
        "cost": means.cost,
        "cost_interval": interval(costs),
        "loss": means.loss,
        "accuracy": means.accuracy,
        "balanced_accuracy": test.balanced_accuracy,
        "auroc": test.auroc,
        "score": score(means.loss, loss_scale),
        "score_interval": interval(scores),
        "most": float(test.cost.max()),
        "resampled_scores": [round(float(s), 5) for s in scores],
    }


def interval(samples: Doubles) -> list[float]:
    return [float(q) for q in np.quantile(samples, [0.025, 0.975])]
