"""A point of a frontier: one policy, and what was measured of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from askwise.core.arrays import Arrays, Doubles
from askwise.core.measures import Measure

# the kinds of policies, from the plainest to the most flexible
SAME_TESTS, LEARNED_STOPPING, ADAPTIVE = "same tests for everybody", "fixed order, learned stopping", "adaptive"
JOINED = 1.25  # times as much as a point its neighbour may cost, to be taken for joined
TRIFLE = 0.01  # of what the dearest point costs: a difference between two that no reader looks for
KINDS = (SAME_TESTS, LEARNED_STOPPING, ADAPTIVE)
AT_ONCE = "decides at once"  # the first point of a frontier, which is of no kind: it buys nothing


@dataclass(frozen=True, eq=False)
class Point:
    """One policy of a frontier, and what it came to: cost on the rows of the fit, loss and accuracy on those kept apart."""

    lam: float
    measure: Measure
    # None: decides at once, or is of a family, whose points share their weights
    weights: Arrays | None = field(default=None, repr=False)
    prefix: int | None = None  # of a family: so many tests of a fixed order for everybody who can have them; None: adaptive
    cap: int | None = None  # of a family: the hard budget, in units of the costs, it was measured under and is run under
    breadth: int | None = None  # of a stack: so many of the next tests of the fixed order compete
    tests: tuple[int, ...] | None = None  # of a stack: the prefix is of these, which serve a hard budget better, not of the order
    # of a stack: how the classes weigh against each other; None: all alike
    class_weights: tuple[float, ...] | None = field(default=None, repr=False)
    counts: Doubles | None = field(default=None, repr=False)  # K, D: how often each class met each decision, where it was counted
    believed: Doubles | None = field(default=None, repr=False)  # K, D: the same as the beliefs of these cases expected it
    cases: Doubles | None = field(default=None, repr=False)  # K: how many cases those of each class are worth; None: as counted

    def joined(self, other: Point) -> bool:
        """Whether the policies at the tradeoffs between two points of a family lie between these, in what they buy too."""
        same = (
            self.cap == other.cap
            and self.class_weights == other.class_weights
            and self.breadth == other.breadth
            and self.prefix is None
            and other.prefix is None
        )
        return same and self.weights is None and other.cost <= JOINED * self.cost

    def between(self, other: Point, share: float, least_lam: float) -> Point:
        """The policy so far on the way from one point to another to which it is joined. Costs go by the logarithm of lambda."""
        lams = [max(point.lam, least_lam) for point in (self, other)]
        lam = lams[0] ** (1 - share) * lams[1] ** share
        return replace(self, lam=lam, measure=self.measure.mixed(other.measure, share))

    @property
    def cost(self) -> float:
        return self.measure.cost

    @property
    def loss(self) -> float:
        return self.measure.loss

    @property
    def accuracy(self) -> float:
        return self.measure.accuracy

    @property
    def kind(self) -> str:
        """Which kind of policy it is, in a few words."""
        return SAME_TESTS if self.prefix is not None else LEARNED_STOPPING if self.breadth == 1 else ADAPTIVE

    @property
    def shown(self) -> dict[str, Any]:
        """What there is to know about it from outside."""
        return {"lam": self.lam, **self.measure.to_dict()}


def neighbours(points: Sequence[Point]) -> list[tuple[int, int]]:
    """Those that are joined to the next of their sort, by number. Points are by rising cost."""
    last, pairs = dict[tuple[Any, ...], int](), []
    for j, point in enumerate(points):
        sort = point.cap, point.breadth, point.class_weights
        if point.prefix is None:
            if sort in last and points[last[sort]].joined(point):
                pairs.append((last[sort], j))
            last[sort] = j
    return pairs


def told_apart(points: Sequence[Point], always: Collection[Point]) -> list[int]:
    """Numbers of the points that a reader can tell from the last one listed before them: by more than the standard error of
    the loss, or by a cost that is no trifle. Points are by rising cost. `always`: those that are listed in any case."""
    listed, trifle = [0], TRIFLE * points[-1].cost
    for i, point in enumerate(points[1:], 1):
        last = points[listed[-1]]
        differs = last.loss - point.loss > point.measure.loss_error or point.cost - last.cost > trifle
        if differs or any(point is each for each in always):
            listed.append(i)
    return listed
