"""The cheapest policy that reaches a target, and bounds that hold with a probability although it was chosen among many.

A share of n cases, k of which are right, is with a probability of 1 - α at least the p for which k or more would have been right
with a probability of α (Clopper and Pearson):

    P(Bin(n, p) ≥ k) = α

The mean of n losses between 0 and M, which sum to s M, is 1 - p times M at most, with the p of k = n - s. Where losses have more
than two values, k is rounded down and α divided by e, which makes the same bound hold for any values between 0 and M (Bentkus).

Policies are looked at from the one that is believed to reach the target best to the one that is believed to reach it worst, up to
the first whose bound does not reach it (fixed sequence testing). Beliefs are of members that do not know the classes of these
cases, so the order does not depend on who was right. Let i be the first policy that does not really reach the target. Only if the
bound of i is beyond its true figure is i, or a later one, chosen, and the probability of that is at most α, however many there
are. Of all that are looked at and reach it, the cheapest is followed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Bools, Doubles, Ints
from askwise.core.measures import Measure
from askwise.core.scoring import largest
from askwise.core.target import Figure, Target
from askwise.errors import InputError
from askwise.frontier.point import Point

WRITTEN = 1e-4  # the smallest difference between shares that people write


class Unreachable(InputError):
    """A target is not reached by any policy within the budgets."""

    def __init__(self, words: str, target: Target, best: float) -> None:
        super().__init__(words)
        self.target = target
        self.best = best  # of its figure, that can be had


class Judge(NamedTuple):
    """What figures of points are about."""

    classes: Sequence[Any]
    loss: Doubles  # K, D
    rule: str | None = None  # the scoring rule by which beliefs are judged; None: decisions are

    def figure(self, target: Target, point: Point) -> Figure:
        """What was measured of a point. Where classes were not counted, accuracy and loss are known."""
        if point.counts is not None:
            return target.measured(point.counts, self.classes, self.loss, point.cases)
        m, cases = point.measure, _cases(point.measure)
        if target.figure == "loss":
            most = largest(self.loss, self.rule)
            two_valued = self.rule is None and bool(np.isin(self.loss, (0.0, most)).all())
            return Figure(min(m.loss, most), cases, most, two_valued)
        return Figure(m.accuracy, cases)

    def believed(self, target: Target, point: Point) -> float:
        """How good a point is believed to be, the larger the better; where nothing is believed, what costs more is."""
        if point.believed is None:
            return point.cost
        return target.sign * target.measured(point.believed, self.classes, self.loss).value

    def reach(self, target: Target, points: Sequence[Point]) -> Doubles:
        """Of each point, the most that could be asked for and it would still be reached."""
        bounds = np.array([target.sign * bound(self.figure(target, p), target.sign, target.confidence) for p in points])
        if target.confidence is None:
            return bounds
        path = np.argsort([-self.believed(target, p) for p in points], kind="stable")
        reach = np.empty(len(points))
        reach[path] = np.minimum.accumulate(bounds[path])
        return reach

    def cheapest(
        self, targets: Sequence[Target], points: Sequence[Point], within: Bools, limits: str = "", unit: str = ""
    ) -> int:
        """The number of the cheapest point among those within the budgets that reaches all targets. Recall or specificity by
        itself is reached by deciding always the same, so that then cases must lose no more than if all were decided at once.
        The first point decides at once. `limits`: the budgets, in words."""
        allowed, kept, one_sided = self._allowed(targets, points, within), [limits] if limits else [], self._one_sided(targets)
        for target in targets:
            reach = self.reach(target, points)
            reaches = allowed & _reaches(reach, target.sign * target.value)
            if not reaches.any():
                best = max(np.flatnonzero(allowed).tolist(), key=lambda i: (reach[i], -points[i].cost))
                value = target.sign * float(reach[best])
                raise Unreachable(_unreachable(target, value, points[best].cost, kept, one_sided, unit), target, value)
            allowed, kept = reaches, [*kept, str(target)]
        order = _from_the_cheapest(points)
        return int(order[allowed[order]][0])

    def menu(self, target: Target, values: Sequence[float], points: Sequence[Point], within: Bools) -> list[tuple[float, int]]:
        """What `cheapest` finds for each of some rising values of a share, as far as they can be had, and in the end for the most
        that can be, rounded down to what people write."""
        allowed, reach = self._allowed([target], points, within), self.reach(target, points)
        order, most = _from_the_cheapest(points), _written(float(reach[allowed].max()))
        asked = [value for value in values if value < most - 1e-9]
        return [(value, int(order[(allowed & _reaches(reach, value))[order]][0])) for value in (*asked, most)]

    def traded(
        self, name: Any, values: Sequence[float], points: Sequence[Point], within: Bools
    ) -> list[tuple[float, float, int]]:
        """For each of some rising recalls of a class, and in the end the most that can be had: the most specificity that goes
        with it, and the cheapest point that reaches both, however much cases lose. It ends before all are called the class."""
        recall, specificity = (self.reach(Target(figure, 1.0, name), points) for figure in ("recall", "specificity"))
        useful, steps = within & (specificity >= WRITTEN), list[tuple[float, float, int]]()
        most, order = _written(float(recall[useful].max(initial=0.0))), _from_the_cheapest(points)
        for value in (*(value for value in values if value < most - 1e-9), most):
            reaches = useful & _reaches(recall, value)
            beside = _written(float(specificity[reaches].max()))
            steps.append((value, beside, int(order[(reaches & _reaches(specificity, beside))[order]][0])))
        return steps if most > 0 else []

    def _allowed(self, targets: Sequence[Target], points: Sequence[Point], within: Bools) -> Bools:
        """Those within the budgets; where targets can be reached by deciding always the same, those that lose no more than if all
        were decided at once."""
        if not self._one_sided(targets):
            return within
        lost = [p.loss if p.counts is None else float((p.counts * self.loss).sum() / p.counts.sum()) for p in points]
        allowed: Bools = within & (np.array(lost) <= lost[0] + 1e-12)
        return allowed

    def _one_sided(self, targets: Sequence[Target]) -> bool:
        """Whether they can all be reached by deciding always the same."""
        K = len(self.classes)
        constant = [np.eye(K)[[y] * K] for y in range(K)]  # K, K: whatever the class, y is decided
        return any(all(t.measured(c, self.classes, 1 - np.eye(K)).value == 1 for t in targets) for c in constant)


def _cases(m: Measure) -> float:
    """How many cases a share is of. Weighted rows count as many as give it its standard error, p (1 - p) / n = error²."""
    variance = m.accuracy * (1 - m.accuracy)
    return min(float(m.n), variance / m.accuracy_error**2) if variance and m.accuracy_error else float(m.n)


def _written(share: float) -> float:
    """Rounded down to what people write."""
    return round(math.floor(share / WRITTEN + 1e-6) * WRITTEN, 4)


def _reaches(reach: Doubles, value: float) -> Bools:
    reaches: Bools = reach >= value - 1e-12
    return reaches


def _from_the_cheapest(points: Sequence[Point]) -> Ints:
    """Their numbers, by cost; of those that cost the same, what loses least comes first."""
    order: Ints = np.lexsort(([p.loss for p in points], [p.cost for p in points]))
    return order


def _unreachable(target: Target, value: float, cost: float, kept: Sequence[str], one_sided: bool, unit: str) -> str:
    """One sentence: the best that can be had, and what it costs."""
    together = f" together with {' & '.join(kept)}" if kept else ""
    sure = "" if target.confidence is None else f" with a probability of {target.confidence:g}"
    least = f"the {'least' if target.sign < 0 else 'best'} {target.words} that can be had is {value:.4g}{sure}"
    why = f"{target} cannot be reached{together}; {least}, for {cost:.4g}{unit} per case"
    if not one_sided:
        return why
    beside = "a specificity or an accuracy beside it says what they may lose"
    return f"{why}, where cases lose no more than if all were decided at once; {beside}"


def bound(figure: Figure, sign: int, confidence: float | None) -> float:
    """What a figure is at least (sign 1) or at most (sign -1), with this probability. None: what is expected."""
    if confidence is None:
        return figure.value
    share = figure.value / figure.most if figure.most else 0.0
    good = share if sign > 0 else 1 - share
    least = min(share_at_least(good * figure.cases, figure.cases, confidence, figure.two_valued), good)
    return figure.most * (least if sign > 0 else 1 - least)


def share_at_least(k: float, n: float, confidence: float, two_valued: bool = True) -> float:
    """What a mean of values between 0 and 1 is at least, of n values with the sum k. Weighted cases may be no whole number."""
    from scipy.special import betaincinv

    alpha = 1 - confidence
    if not two_valued:
        k, alpha = math.floor(k + 1e-9), alpha / math.e
    return float(betaincinv(k, max(n - k, 0.0) + 1, alpha)) if k > 0 else 0.0
