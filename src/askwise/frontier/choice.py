"""From the points of a method to the policy for a budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike

from askwise.core.arrays import Doubles
from askwise.core.budget import Budget
from askwise.core.episode import measure
from askwise.core.policy import Mixture, Policy
from askwise.core.problem import Problem
from askwise.errors import InputError
from askwise.frontier.hull import hull, staircase

# Whether an average budget between two points is met by drawing one of them for each case: wherever that promises more; only
# where it is better than every single policy within the budget by more than a standard error; or never.
MIXTURES = ("always", "if better", "never")
NEAR = 0.05  # of the budget: a point that costs so little less uses it


@dataclass(frozen=True)
class Blend:
    """Follow point `second` with probability `share`, point `first` otherwise. `single`: follow one policy between the two, as
    far from the first as the share says; nothing is drawn."""

    first: int
    second: int
    share: float
    single: bool = False

    @property
    def drawn(self) -> float:
        """Share of the cases that draw the second point."""
        return 0.0 if self.single else self.share

    def mean(self, values: ArrayLike) -> float:
        """The expected value of anything measured at the points."""
        v = np.asarray(values, float)
        return float((1 - self.share) * v[self.first] + self.share * v[self.second])


def within_average(cost: ArrayLike, score: ArrayLike, b: float) -> Blend:
    """The best that b buys on average: where more money helps, a blend of two neighbours on the hull that costs b exactly.

    Beyond the point where more money no longer helps it is that point, which costs less than b.
    """
    c, points = np.asarray(cost, float), hull(cost, score)
    right = int(np.searchsorted(c[points], b, "right"))  # how many of them cost at most b
    if right == 0:
        raise InputError(f"no policy is as cheap as {b:g}; the cheapest costs {c[points[0]]:g}")
    first = int(points[right - 1])
    if right == len(points) or c[first] == b:
        return Blend(first, first, 0.0)
    second = int(points[right])
    return Blend(first, second, float((b - c[first]) / (c[second] - c[first])))


def single_within_average(cost: ArrayLike, score: ArrayLike, error: ArrayLike, b: float) -> Blend:
    """The best single point that costs at most b. Points that use the budget come first, where they are no worse than that by
    more than a standard error: a cheaper one that seems as good may owe it to luck."""
    c, s = np.asarray(cost, float), np.asarray(score, float)
    within = np.flatnonzero(c <= b)
    if not len(within):
        raise InputError(f"no policy is as cheap as {b:g}; the cheapest costs {c.min():g}")
    best = int(within[staircase(c[within], s[within])[-1]])
    using = within[c[within] >= (1 - NEAR) * b]
    using = using[s[using] >= s[best] - np.asarray(error, float)[best]]
    chosen = int(using[staircase(c[using], s[using])[-1]]) if len(using) else best
    return Blend(chosen, chosen, 0.0)


def single_between(cost: ArrayLike, score: ArrayLike, b: float, joined: Iterable[tuple[int, int]]) -> Blend | None:
    """The best single policy that costs b and lies between two points that are joined: there are policies from one to the other,
    whose costs and scores lie between theirs. None where there is none."""
    c = np.asarray(cost, float)
    around = [(i, j) for i, j in joined if c[i] < b < c[j]]
    blends = [Blend(i, j, float((b - c[i]) / (c[j] - c[i])), single=True) for i, j in around]
    return max(blends, key=lambda blend: blend.mean(score), default=None)


def clearly_better(
    blend: Blend, cost: ArrayLike, score: ArrayLike, error: Doubles, b: float, joined: Iterable[tuple[int, int]]
) -> bool:
    """Whether two points on the hull, blended so that they cost b or less, are better than all single policies within the same
    money by more than a standard error. Where they are at less than b, they are followed at b too, so that what is promised
    never falls with more money."""
    c, s = np.asarray(cost, float), np.asarray(score, float)
    if not blend.share:
        return False
    steps = c[(c > c[blend.first]) & (c <= b)]  # a step is furthest below the blend just before the next one
    money = np.append(np.nextafter(steps, 0), b)
    single = np.where(c <= money[:, None], s, -np.inf).max(1)
    for i, j in joined:
        inside = (c[i] < money) & (money < c[j])
        single[inside] = np.maximum(single[inside], np.interp(money[inside], c[[i, j]], s[[i, j]]))
    mixed = np.interp(money, c[[blend.first, blend.second]], s[[blend.first, blend.second]])
    return bool((mixed - single > max(error[blend.first], error[blend.second])).any())


def choose(
    cost: ArrayLike,
    score: ArrayLike,
    error: ArrayLike,
    budget: Budget,
    mixture: str = "always",
    joined: Iterable[tuple[int, int]] = (),
) -> Blend:
    """What a budget would follow among measured points; `error` are the standard errors of the scores; `mixture`: whether two
    points are blended where an average budget lies between them, see `MIXTURES`, unless the budget says it; `joined`: points
    between which there is a policy for every cost.

    A hard budget is kept by every policy that was trained under it, so it takes the best. Without any budget it is the cheapest
    point whose score is within one standard error of the best.
    """
    if budget.average is not None:
        b, e = float(budget.average), np.asarray(error, float)
        mixture = mixture if budget.mixing is None else "always" if budget.mixing else "never"
        joined = list(joined)
        single, between = single_within_average(cost, score, error, b), single_between(cost, score, b, joined)
        if between is not None and between.mean(score) >= single.mean(score):
            single = between
        if mixture == "never":
            return single
        blend = within_average(cost, score, b)
        better = blend.mean(score) > single.mean(score)
        clearly = mixture == "always" or clearly_better(blend, cost, score, e, b, joined)
        return blend if better and clearly else single
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
