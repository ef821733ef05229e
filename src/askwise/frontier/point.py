"""A point of a frontier: one policy, and what was measured of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from askwise.core.arrays import Arrays
from askwise.core.measures import Measure

# the kinds of policies, from the plainest to the most flexible
SAME_TESTS, LEARNED_STOPPING, ADAPTIVE = "same tests for everybody", "fixed order, learned stopping", "adaptive"
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
    tests: tuple[int, ...] | None = None  # of a stack: the prefix is of these, which are best for a hard budget, not of the order

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
