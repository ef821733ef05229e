"""The static order of a stack: that of recursive elimination, with tests moved forward where held-out beliefs say so.

Elimination compares tests in the company of those that are left, and its last steps decide by little which test comes first. The
beliefs of a stack tell how much every prefix is worth, so that orders can be compared as a whole:

    A(order) = Σ_k (c_{k+1} - c_k) (L_k + L_{k+1}) / 2

L_k is the log loss with the first k tests, c_k what these cost. A test is moved where A falls by more than chance would explain.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from askwise.components.static_order import paid_ones_early
from askwise.core.arrays import Bools, Doubles, Ints
from askwise.core.costs import CostFunction

SWEEPS = 3  # over all moves, at most
ERRORS = 1.5  # standard errors by which a move must be better


def refined(order: Ints, costs: CostFunction, lost: Callable[[Bools], Doubles], first: int, seconds: float = np.inf) -> Ints:
    """The order with some of its first tests moved forward.

    lost: from the tests that are held (F) what is lost, of each of some rows. `first`: so many tests may be moved.
    """
    first, ends, remembered = min(first, len(order)), time.monotonic() + seconds, dict[bytes, Doubles]()

    def lost_with(held: Bools) -> Doubles:
        key = held.tobytes()
        if key not in remembered:
            remembered[key] = lost(held)
        return remembered[key]

    def area(order: Ints) -> Doubles:
        """Of each row."""
        held = np.tri(first + 1, len(order), -1, bool)[:, np.argsort(order)]
        cost = costs.cost(held)
        at = np.stack([lost_with(each) for each in held])
        each: Doubles = np.diff(cost) / max(int(cost[-1]), 1) @ (at[:-1] + at[1:]) / 2
        return each

    if seconds <= 0:
        return paid_ones_early(order, costs)
    now = area(order)
    for _ in range(SWEEPS):
        moved = False
        for j in range(1, first):
            tries = [np.insert(np.delete(order, j), i, order[j]) for i in range(j)]
            areas = []
            for each in tries:
                if time.monotonic() > ends:
                    return paid_ones_early(order, costs)
                areas.append(area(each))
            best = int(np.argmin([a.mean() for a in areas]))
            gain = now - areas[best]
            if gain.mean() > ERRORS * gain.std() / len(gain) ** 0.5:
                order, now, moved = tries[best], areas[best], True
        if not moved:
            break
    return paid_ones_early(order, costs)
