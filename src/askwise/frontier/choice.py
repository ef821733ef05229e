"""From the points of a method to the policy for a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from askwise.core.budget import Budget
from askwise.core.episode import measure
from askwise.core.policy import Mixture, Policy
from askwise.core.problem import Problem
from askwise.errors import InputError
from askwise.frontier.hull import hull, staircase

# Whether an average budget between two points blends them: only where that is better by more than a standard error than the best
# single point that meets the budget, or never.
MIXTURES = ("always", "if better", "never")


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


def single_within_average(cost: ArrayLike, score: ArrayLike, error: ArrayLike, b: float, near: float = 0.05) -> Blend:
    """The best single point that costs at most b. Points that use the budget come first, where they are no worse than that by
    more than a standard error: a cheaper one that seems as good may owe it to luck."""
    c, s = np.asarray(cost, float), np.asarray(score, float)
    within = np.flatnonzero(c <= b)
    if not len(within):
        raise InputError(f"no policy is as cheap as {b:g}; the cheapest costs {c.min():g}")
    best = int(within[staircase(c[within], s[within])[-1]])
    using = within[c[within] >= (1 - near) * b]
    using = using[s[using] >= s[best] - np.asarray(error, float)[best]]
    chosen = int(using[staircase(c[using], s[using])[-1]]) if len(using) else best
    return Blend(chosen, chosen, 0.0)


def choose(cost: ArrayLike, score: ArrayLike, error: ArrayLike, budget: Budget, mixture: str = "always") -> Blend:
    """What a budget would follow among measured points; `error` are the standard errors of the scores; `mixture`: whether two
    points are blended where an average budget lies between them, see `MIXTURES`.

    A hard budget is kept by every policy that was trained under it, so it takes the best. Without any budget it is the cheapest
    point whose score is within one standard error of the best.
    """
    if budget.average is not None:
        b = float(budget.average)
        blend, single = within_average(cost, score, b), single_within_average(cost, score, error, b)
        better = blend.mean(score) - single.mean(score) > np.asarray(error, float)[blend.second]
        return blend if mixture == "always" or (mixture == "if better" and better) else single
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


def best_for(policies: Sequence[Policy], validation: Problem, budget: Budget, seed: int = 0) -> Policy:
    """The best of the policies on validation rows, under the budget's hard part; for an average budget a mixture of two where
    that is better. Among the policies must be one as cheap as the budget."""
    cap = budget.cap(validation.schema.costs)
    measures = [measure(validation, policy, cap) for policy in policies]
    blend = choose([m.cost for m in measures], [-m.loss for m in measures], [m.loss_error or 0.0 for m in measures], budget)
    first, second = policies[blend.first], policies[blend.second]
    return Mixture(first, second, blend.share, seed) if blend.share else first


def next_lam(costs: Mapping[float, float]) -> float | None:
    """Where to look next for another point of a frontier: between the two neighbouring lambdas whose mean costs differ most. None
    where nothing differs, or the lambdas are as good as the same. `costs`: the mean cost at each positive lambda tried."""
    gaps = [(abs(costs[a] - costs[b]), a, b) for a, b in pairwise(sorted(costs)) if b > 1.03 * a]
    gap, a, b = max(gaps, default=(0.0, 1.0, 1.0))
    return (a * b) ** 0.5 if gap > 0 else None
