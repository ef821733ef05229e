"""The plane of cost and score: which points are worth having, the area under them, and what a budget buys.

A score is anything where more is better: accuracy, or minus the expected loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from askwise.core.arrays import Array, Doubles, Ints
from askwise.core.budget import Budget
from askwise.core.measures import Measure
from askwise.errors import InputError


@dataclass(frozen=True, eq=False)
class Point:
    """One policy of a frontier, and what it came to: cost on the rows of the fit, loss and accuracy on those kept apart."""

    lam: float
    found: Measure
    # None: decides at once, or is of a family, whose points share their weights
    weights: dict[str, Array] | None = field(default=None, repr=False)
    prefix: int | None = None  # of a family: so many tests of a fixed order for everybody who can have them; None: adaptive
    cap: int | None = None  # of a family: the hard budget, in units of the prices, it was measured under and is run under

    @property
    def cost(self) -> float:
        return self.found.cost

    @property
    def loss(self) -> float:
        return self.found.loss

    @property
    def accuracy(self) -> float:
        return self.found.accuracy

    @property
    def shown(self) -> dict[str, Any]:
        """What there is to know about it from outside."""
        return {"lam": self.lam, **self.found.to_dict()}


def hull(cost: ArrayLike, score: ArrayLike) -> Ints:
    """Indices of the points on the upper convex hull, by rising cost, up to the cheapest point of the best score.

    Between two of them, mixing gives every point of the line; no point lies above.
    """
    c, s = np.asarray(cost, float), np.asarray(score, float)
    kept: list[int] = []
    for i in np.lexsort((-s, c)).tolist():
        if kept and s[i] <= s[kept[-1]]:
            continue  # costs as much or more and is no better
        # turn back while the last kept point lies on or below the line from the one before it to this one
        while len(kept) > 1 and (s[kept[-1]] - s[kept[-2]]) * (c[i] - c[kept[-2]]) <= (s[i] - s[kept[-2]]) * (
            c[kept[-1]] - c[kept[-2]]
        ):
            kept.pop()
        kept.append(i)
    return np.array(kept, np.int64)


def useful(cost: ArrayLike, score: ArrayLike, most: ArrayLike, slack: ArrayLike = 0.0) -> Ints:
    """Indices of the points that some budget could follow, in the order given. `most`: what no case pays more than at each of
    them, infinity where nothing is known. A hard budget allows the points up to some `most`, and follows those on the hull of
    these. `slack`: by how much each score may lie below the hull, since it may yet turn out better; of points that are alike one
    is enough."""
    c, s, m, room = (np.asarray(v, float) for v in (cost, score, most, np.broadcast_to(slack, np.shape(cost))))
    keep, seen = np.zeros(len(c), bool), set[tuple[float, float]]()
    for limit in np.unique(m):
        among = np.flatnonzero(m <= limit)
        on = among[hull(c[among], s[among])]
        keep[on] |= m[on] == limit
        near = (m == limit) & (room > 0) & (s >= np.interp(c, c[on], s[on]) - room)
        for i in np.flatnonzero(near).tolist():
            keep[i] |= (c[i], s[i]) not in seen
            seen.add((c[i], s[i]))
    return np.flatnonzero(keep)


@dataclass(frozen=True)
class Blend:
    """Follow point `second` with probability `share`, point `first` otherwise."""

    first: int
    second: int
    share: float

    def mean(self, values: ArrayLike) -> float:
        """The expected value of anything measured at the points."""
        v = np.asarray(values, float)
        return float((1 - self.share) * v[self.first] + self.share * v[self.second])


def within_average(cost: ArrayLike, score: ArrayLike, b: float) -> Blend:
    """The best that b buys on average: where more money helps, a blend of two neighbours on the hull that costs b exactly.

    Beyond the point where more money no longer helps it is that point, which costs less than b.
    """
    c = np.asarray(cost, float)
    points = hull(cost, score)
    right = int(np.searchsorted(c[points], b, "right"))  # how many of the hull's points cost at most b
    if right == 0:
        raise InputError(f"no policy is as cheap as {b:g}; the cheapest costs {c[points[0]]:g}")
    first = int(points[right - 1])
    if right == len(points) or c[first] == b:
        return Blend(first, first, 0.0)
    second = int(points[right])
    return Blend(first, second, float((b - c[first]) / (c[second] - c[first])))


def choose(cost: ArrayLike, score: ArrayLike, error: ArrayLike, budget: Budget) -> Blend:
    """What a budget would follow among measured points; `error` are the standard errors of the scores.

    A hard budget is kept by every policy that was trained under it, so it takes the best. Without any budget it is the cheapest
    point whose score is within one standard error of the best.
    """
    if budget.average is not None:
        return within_average(cost, score, float(budget.average))
    points = hull(cost, score)
    c, s = np.asarray(cost, float)[points], np.asarray(score, float)[points]
    if budget == Budget():
        i = int(np.flatnonzero(s >= s[-1] - np.asarray(error, float)[points[-1]])[0])
    else:
        i = best_tradeoff(c, s, budget.lam or 0.0).first
    return Blend(int(points[i]), int(points[i]), 0.0)


def best_tradeoff(cost: ArrayLike, score: ArrayLike, lam: float) -> Blend:
    """The point with the largest score - lam * cost, the cheapest of equals."""
    c, s = np.asarray(cost, float), np.asarray(score, float)
    best = int(np.lexsort((c, -(s - lam * c)))[0])
    return Blend(best, best, 0.0)


@dataclass(frozen=True, eq=False)
class Curve:
    """The chosen points and the curve through them, on the set that is reported."""

    chosen: Ints  # indices into the points
    cost: Doubles  # with the two ends
    score: Doubles
    area: float  # normalised: the best possible is 1 for accuracy


def curve(
    validation: tuple[ArrayLike, ArrayLike],
    test: tuple[ArrayLike, ArrayLike],
    prior: tuple[float, float],
    total: float,
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
    alone = [
        curve((vc[mine], vs[mine]), (tc[mine], ts[mine]), prior, total).area
        for s in np.unique(seeds)
        if (mine := seeds == s).any()
    ]
    return Spread(curve((vc, vs), (tc, ts), prior, total).area, tuple(alone))
