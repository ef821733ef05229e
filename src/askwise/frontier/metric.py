"""The paper's metric: the area under the curve through the points that validation rows choose."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from askwise.core.arrays import Doubles, Ints
from askwise.errors import InputError
from askwise.frontier.hull import hull


@dataclass(frozen=True, eq=False)
class Curve:
    """The chosen points and the curve through them, on the set that is reported."""

    chosen: Ints  # indices into the points
    cost: Doubles  # with the two ends
    score: Doubles
    area: float  # normalised: the best possible is 1 for accuracy


def curve(
    validation: tuple[ArrayLike, ArrayLike], test: tuple[ArrayLike, ArrayLike], prior: tuple[float, float], total: float
) -> Curve:
    """The paper's metric. Points (costs, scores) on validation and on test rows, the score of deciding at once on both, and
    the cost of everything.

    Chosen are the points on validation's hull, taken together with (0, prior) and (total, score of the best point). The curve
    goes through the test points of the chosen and ends at their (0, prior) and (total, score of the best point).

    Paper: section 4.1, evaluation metric
    """
    if not total > 0:
        raise InputError("everything is free, so there is no cost to draw a curve over")
    cost, score = (np.asarray(v, float) for v in validation)
    test_cost, test_score = (np.asarray(v, float) for v in test)
    if not (len(cost) == len(score) == len(test_cost) == len(test_score)):
        raise InputError(f"there are {len(cost)} points on validation and {len(test_cost)} on test; they must be the same points")
    best = int(np.lexsort((cost, -score))[0]) if len(cost) else None
    ends = score[best] if best is not None else prior[0]
    on_hull = hull(np.r_[cost, 0.0, total], np.r_[score, prior[0], ends])
    chosen = on_hull[on_hull < len(cost)]
    last = test_score[best] if best is not None else prior[1]
    x = np.r_[0.0, test_cost[chosen], total]
    y = np.r_[prior[1], test_score[chosen], last]
    order = np.argsort(x, kind="stable")
    x, y = x[order], y[order]
    return Curve(chosen, x, y, float(np.trapezoid(y, x) / total))


def step_area(budget: ArrayLike, validation: ArrayLike, test: ArrayLike, prior: tuple[float, float], total: float) -> float:
    """For hard budgets, where nothing lies between two points: each test score holds from its budget up to the next.

    A dearer budget that is no better on validation rows is not used: the cheaper policy keeps to it too. `prior` is the score of
    deciding at once on both.
    """
    b, v, t = (np.asarray(of, float) for of in (budget, validation, test))
    inside = np.flatnonzero(b < total)
    order = inside[np.argsort(b[inside], kind="stable")]
    x, chosen_by, score = np.r_[0.0, b[order], total], np.r_[prior[0], v[order]], np.r_[prior[1], t[order]]
    best = [int(chosen_by[: i + 1].argmax()) for i in range(len(chosen_by))]
    return float((np.diff(x) * score[best]).sum() / total)


@dataclass(frozen=True)
class Spread:
    """One number for all seeds together, and how much single seeds differ."""

    pooled: float
    per_seed: tuple[float, ...]

    @property
    def mean(self) -> float:
        return float(np.mean(self.per_seed))

    @property
    def deviation(self) -> float:
        """Sample standard deviation over the seeds."""
        return float(np.std(self.per_seed, ddof=1)) if len(self.per_seed) > 1 else 0.0


def area_over_seeds(
    seed: Sequence[Any],
    validation: tuple[ArrayLike, ArrayLike],
    test: tuple[ArrayLike, ArrayLike],
    prior: tuple[float, float],
    total: float,
) -> Spread:
    """`curve`'s area with the points of all seeds pooled, as the paper does, and for each seed alone."""
    seeds = np.asarray(seed)
    (vc, vs), (tc, ts) = (tuple(np.asarray(v, float) for v in pair) for pair in (validation, test))
    each = [seeds == s for s in np.unique(seeds)]
    alone = [curve((vc[one], vs[one]), (tc[one], ts[one]), prior, total).area for one in each]
    return Spread(curve((vc, vs), (tc, ts), prior, total).area, tuple(alone))
