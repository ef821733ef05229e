"""How a time limit is shared out, and how much of its schedule a training reached in it.

A part of a training gets its share of the time that is left when it begins, among all parts that are still to come. So what an
earlier part took too long is spread over the later ones, and what it did not need is theirs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from askwise.core.arrays import Doubles
from askwise.training.driver import Clock
from askwise.training.progress import duration

# the static order, how networks see columns, the members, the weights of their learners, tests of the order that are moved, the
# beliefs of the first states of the pool, the value heads, and what is measured at the end
SHARES = {
    "order": 0.08,
    "trial": 0.04,
    "members": 0.3,
    "weights": 0.03,
    "moves": 0.04,
    "pool": 0.05,
    "values": 0.17,
    "measuring": 0.29,
}
FINAL_WORK = 30  # what it takes to measure everything at the end, in interim measurements
MOST_MEASURING = 0.6  # of the time limit, however slow it is
KNOWN_PACE = 0.05  # of the schedule of a part: from less of it nobody can tell how long the whole takes
WELL_SHORT = 0.7  # of the schedule: where less of it was reached, it is said


class TimePlan:
    """Seconds of the parts of a training. Without a limit all are infinite."""

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        self.interim: float | None = None  # seconds that the last interim measurement took

    def seconds(self, part: str) -> float:
        """Of a part that begins now."""
        if self.clock.limit is None:
            return math.inf
        names, left = list(SHARES), max(self.clock.left, 0.0)
        to_come = sum(SHARES[name] for name in names[names.index(part) : -1])
        measuring = max(left * SHARES["measuring"] / (to_come + SHARES["measuring"]), self.reserved * self.clock.limit)
        return max(left - measuring, 0.0) * SHARES[part] / to_come

    @property
    def reserved(self) -> float:
        """Share of the limit that is kept for what is measured at the end."""
        if not self.clock.limit:
            return 0.0
        return min(max(SHARES["measuring"], FINAL_WORK * (self.interim or 0.0) / self.clock.limit), MOST_MEASURING)


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
