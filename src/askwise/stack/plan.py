"""How a time limit is shared out, and how much of its schedule a training reached in it.

A part of a training gets its share of the time that is left when it begins, among all parts that are still to come. So what an
earlier part took too long is spread over the later ones, and what it did not need is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from askwise.core.arrays import Doubles
from askwise.training.driver import Clock
from askwise.training.progress import duration

# the static order, how networks see columns and how large trees are, the members, the weights of their learners, tests of the
# order that are moved, the beliefs of the first states of the pool, the value heads, and what is measured at the end
SHARES = {
    "order": 0.07,
    "trial": 0.05,
    "members": 0.33,
    "weights": 0.03,
    "moves": 0.03,
    "pool": 0.03,
    "values": 0.17,
    "measuring": 0.29,
}
# with many rows a better belief is what more time brings, also by trees of their own for some prefixes
MANY_ROWS = {
    "order": 0.06,
    "trial": 0.05,
    "members": 0.28,
    "weights": 0.03,
    "moves": 0.03,
    "stages": 0.17,
    "pool": 0.03,
    "values": 0.12,
    "measuring": 0.23,
}
FINAL_WORK = 30  # what it takes to measure everything at the end, in interim measurements
MOST_MEASURING = 0.6  # of the time limit, however slow it is
KNOWN_PACE = 0.05  # of the schedule of a part: from less of it nobody can tell how long the whole takes
WELL_SHORT = 0.7  # of the schedule: where less of it was reached, it is said


class TimePlan:
    """Seconds of the parts of a training. Without a limit all are infinite."""

    def __init__(self, clock: Clock, shares: Mapping[str, float] = SHARES) -> None:
        self.clock, self.shares = clock, shares
        self.interim: float | None = None  # seconds that the last interim measurement took

    def seconds(self, part: str) -> float:
        """Of a part that begins now."""
        if self.clock.limit is None:
            return math.inf
        shares, names, left = self.shares, list(self.shares), max(self.clock.left, 0.0)
        to_come = sum(shares[name] for name in names[names.index(part) : -1])
        measuring = max(left * shares["measuring"] / (to_come + shares["measuring"]), self.reserved * self.clock.limit)
        return max(left - measuring, 0.0) * shares[part] / to_come

    @property
    def reserved(self) -> float:
        """Share of the limit that is kept for what is measured at the end."""
        if not self.clock.limit:
            return 0.0
        return min(max(self.shares["measuring"], FINAL_WORK * (self.interim or 0.0) / self.clock.limit), MOST_MEASURING)


def reached(learners: Sequence[Doubles], values: float) -> float:
    """How much of its schedule a training reached. learners: of each member, the parts that its learners reached of theirs;
    values: that of the value heads."""
    members, heads = SHARES["members"], SHARES["values"]
    return float((members * np.mean(learners, dtype=float) + heads * values) / (members + heads))


def cut_short(learners: Sequence[Doubles], values: float, limit: float | None) -> str:
    """One sentence for a training that a time limit ended well before its schedule, else nothing."""
    share = reached(learners, values)
    if not limit or share >= WELL_SHORT:
        return ""
    sentence = f"the training reached {100 * share:.0f} % of its schedule within {duration(limit)}"
    least = min(*np.mean(learners, 0, dtype=float).tolist(), values)  # of what needs the most time
    if least < KNOWN_PACE:
        return f"{sentence}; without a limit it would be complete"
    return f"{sentence}; with about {duration(_rounded_up(limit / least))} it would be complete"


def _rounded_up(seconds: float) -> float:
    """To two digits."""
    unit = 10.0 ** max(math.floor(math.log10(seconds)) - 1, 0)
    return math.ceil(seconds / unit) * unit
