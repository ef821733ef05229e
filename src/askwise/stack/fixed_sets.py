"""For a hard budget a set of tests for everybody: the static order as far as the money goes, improved step by step.

An order serves all budgets, and so none of them exactly: with 30 to spend it may buy ten cheap tests where one for 20 and two
others are worth more. Held-out beliefs tell what a set is worth, so that sets can be compared as a whole. A test is forced in,
before all others, or left out, what is left of the money goes along the order, and the change is kept where less is lost by more
than chance would explain.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

import numpy as np

from askwise.core.arrays import Bools, Doubles, Ints
from askwise.core.costs import CostFunction

CHANGES = 3  # of a set, at most
ERRORS = 1.5  # standard errors by which a change must be better

Lost = Callable[[Bools], Doubles]  # from the tests that are held (F), what is lost in each of some rows


def fixed_sets(
    caps: Iterable[int], order: Ints, costs: CostFunction, lost: Lost, seconds: float = np.inf
) -> dict[int, tuple[int, ...]]:
    """By its cost each set that is better than the order as far as its money goes; tests in the order in which to buy them."""
    ends, remembered, sets = time.monotonic() + seconds, dict[bytes, Doubles](), dict[int, tuple[int, ...]]()

    def lost_with(tests: list[int]) -> Doubles:
        held = np.isin(np.arange(len(order)), tests)
        if (key := held.tobytes()) not in remembered:
            remembered[key] = lost(held)
        return remembered[key]

    for cap in caps:
        forced, left_out = list[int](), set[int]()
        best = filled(forced, left_out, cap, order, costs)
        now = lost_with(best)
        for _ in range(CHANGES):
            others = [t for t in order.tolist() if t not in best and t not in left_out and costs.alone[t] <= cap]
            changes = [([*forced, t], left_out) for t in others]
            changes += [(forced, left_out | {t}) for t in best if t not in forced and costs.alone[t] > 0]
            tries = [filled(*change, cap, order, costs) for change in changes]
            if not tries or time.monotonic() > ends:
                break
            losses = [lost_with(tests) for tests in tries]
            i = int(np.argmin([each.mean() for each in losses]))
            gain = now - losses[i]
            if not gain.mean() > ERRORS * gain.std() / len(gain) ** 0.5:
                break
            (forced, left_out), best, now = changes[i], tries[i], losses[i]
        if forced or left_out:
            sets[int(costs.cost(np.isin(np.arange(len(order)), best)[None])[0])] = tuple(best)
    return sets


def filled(forced: list[int], left_out: set[int], cap: int, order: Ints, costs: CostFunction) -> list[int]:
    """The forced tests and then those of the order, but for some, each if there is money for it."""
    held, tests = np.zeros((1, len(order)), bool), list[int]()
    for t in [*forced, *(t for t in order.tolist() if t not in forced and t not in left_out)]:
        held[0, t] = True
        if costs.cost(held)[0] <= cap:
            tests.append(t)
        else:
            held[0, t] = False
    return tests
