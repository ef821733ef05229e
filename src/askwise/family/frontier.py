"""What a family comes to: on which rows its policies are measured, and which of them are kept.

At the end of a training all policies are measured on some rows, and those that a budget could follow on all others that the time
allows. Every point says on how many cases it was measured.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

import numpy as np

from askwise.core.arrays import Ints
from askwise.core.costs import CostFunction
from askwise.core.episode import measure, rollout, tally
from askwise.core.measures import Measure, Tally
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.family.candidates import Candidate, Probe, under_caps, without_caps
from askwise.family.conditions import Scale
from askwise.family.config import MeasuringConfig
from askwise.family.inference import Family
from askwise.frontier.hull import hull, staircase, useful
from askwise.frontier.point import Point


class Addable(Protocol):
    """What came of some rows, to which that of others can be added."""

    def __add__(self, other: Any, /) -> Any: ...
    def measure(self, costs: CostFunction) -> Measure: ...


T = TypeVar("T", bound=Addable)


@dataclass
class GrowingMeasurement(Generic[T]):
    """Policies that are measured on the same rows, a part of these at a time."""

    costs: CostFunction
    tries: Sequence[Callable[[Ints], T]]  # what each policy comes to on some rows
    rows: Ints  # in the order in which they are used
    used: int = 0
    tallies: dict[int, T] = field(default_factory=dict)
    paces: dict[int, float] = field(default_factory=dict)  # seconds for each row, of the last part

    def go_on(self, n: int, which: Iterable[int]) -> None:
        """The next n rows, or as many as there are left, for these policies."""
        part = np.sort(self.rows[self.used : self.used + n])
        if not len(part):
            return
        self.used += len(part)
        for k in which:
            began = time.monotonic()
            new = self.tries[k](part)
            self.tallies[k] = self.tallies[k] + new if k in self.tallies else new
            self.paces[k] = (time.monotonic() - began) / len(part)

    def measure(self, k: int) -> Measure:
        return self.tallies[k].measure(self.costs)


class MeasuredFrontier(NamedTuple):
    """What the final measurement gave."""

    measured: list[Point]  # all that were measured without a hard budget
    kept: list[Point]  # those that some budget could follow, by rising cost; the first decides at once


@dataclass(eq=False)
class FinalMeasurement:
    """The measurement at the end of a training. `cap`: a hard budget to measure besides the usual ones, in units."""

    family: Family
    choosable: int  # how many tests it has learned to choose
    problem: Problem  # rows that were learned from
    held_out: Problem  # rows that taught what to expect
    measured_rows: Problem  # rows that are measured
    seed: int
    cap: int | None
    config: MeasuringConfig
    costs: dict[float, list[Measure]] = field(default_factory=dict)  # by lambda, on rows of the two other kinds

    def begin(self, first: int, most: int) -> None:
        """Measures everything on the first rows. `most`: how many are measured at all."""
        rows = np.random.default_rng(self.seed).permutation(len(self.measured_rows))[:most]
        self.first = np.sort(rows[:first])
        probe = Probe(self.family, self.measured_rows, self.first, self.choosable)
        self.candidates = [*without_caps(probe, self.config.final_lams), *under_caps(probe, self.cap, self.config)]
        costs = self.problem.schema.costs
        self.work = GrowingMeasurement(costs, [partial(self._try, c) for c in self.candidates], rows)
        self.work.go_on(len(self.first), range(len(self.candidates)))
        self.remaining = np.arange(len(self.candidates))

    def _try(self, candidate: Candidate, rows: Ints) -> Tally:
        """What a policy comes to on some rows."""
        lam, prefix, cap = candidate
        limit = self.family.limit(self.problem.schema.costs, prefix, cap)
        return tally(self.measured_rows, rollout(self.measured_rows, self.family.policy(lam, prefix), limit, rows))

    def finish(self, left: Callable[[], float]) -> MeasuredFrontier:
        """Measures what could be followed on the other rows, as long as there are seconds left."""
        work = self.work
        self._narrow()
        began = time.monotonic()
        well_costed(self._free(), self.spending)
        spare = (time.monotonic() - began) / 2  # the hull may change, and what is new on it needs this too
        while work.used < len(work.rows):
            rest = len(work.rows) - work.used
            fits = self._fitting(left() - spare, rest)
            if fits < min(self.config.least_part_rows, rest):
                break
            work.go_on(min(self.config.part_rows, fits), self.remaining.tolist())
            self._narrow()
        return self._frontier()

    def _fitting(self, seconds: float, rest: int) -> int:
        """How many of the remaining rows can be measured in these seconds."""
        if seconds == math.inf:
            return rest
        return int(seconds / self.config.safety / sum(self.work.paces[k] for k in self.remaining.tolist()))

    def _frontier(self) -> MeasuredFrontier:
        costed = [*well_costed(self._free(), self.spending), *(p for p in self._points(self.remaining) if p.cap is not None)]
        kept = [costed[i] for i in self._useful(costed).tolist() if costed[i].prefix != 0]
        kept.sort(key=lambda p: (p.cost, -self._most(p)))
        at_once = next(p for p in costed if p.prefix == 0 and p.cap is None)
        measured = [p for p in self._points(range(len(self.candidates))) if p.cap is None]
        return MeasuredFrontier(measured, [at_once, *kept])

    def _points(self, which: Iterable[int]) -> list[Point]:
        return [self.candidates[k].point(self.work.measure(k)) for k in which]

    def _free(self) -> list[Point]:
        """Those that are still measured, and under no hard budget."""
        return [p for p in self._points(self.remaining) if p.cap is None]

    def spending(self, point: Point) -> Point:
        """The point with a mean cost of more rows: what is paid needs no labels. With rows it has learned from it is a little
        surer, and buys less, so that each of the others counts for several."""
        if point.lam not in self.costs:
            policy, others = self.family.policy(point.lam), (self.held_out, self.problem)
            rows = [some_rows(len(p), self.config.cost_rows, self.seed) for p in others]
            self.costs[point.lam] = [measure(p, policy, None, which) for p, which in zip(others, rows, strict=True)]
        held_out, learned = self.costs[point.lam]
        times = self.config.held_out_weight
        counted = [(m, k * m.n) for m, k in ((point.measure, times), (held_out, times), (learned, 1))]
        total = sum(n for _, n in counted)
        cost = sum(n * m.cost for m, n in counted) / total
        error = math.hypot(*(n * m.cost_error for m, n in counted)) / total
        return replace(point, measure=replace(point.measure, cost=cost, cost_error=error))

    def _narrow(self) -> None:
        """Goes on with what is on the hull or a little below: policies are compared on the same rows, so that half of a standard
        error, which is that of different rows, is much."""
        points = self._points(self.remaining)
        keep = set(self._useful(points, [p.measure.loss_error / 2 for p in points]).tolist())
        keep |= {i for i, p in enumerate(points) if p.prefix == 0 and p.cap is None}
        self.remaining = self.remaining[sorted(keep)]

    def _useful(self, points: list[Point], slack: list[float] | float = 0.0) -> Ints:
        return useful([p.cost for p in points], [-p.loss for p in points], [self._most(p) for p in points], slack)

    def _most(self, point: Point) -> float:
        return self.family.most_paid(self.problem.schema.costs, point.prefix, point.cap)


def interim_points(probe: Probe, lams: int) -> list[Point]:
    """All points of a family without a hard budget, measured on the rows of the probe."""
    family, problem = probe.family, probe.problem
    return [
        c.point(measure(problem, family.policy(c.lam, c.prefix), family.limit(problem.schema.costs, c.prefix, None), probe.rows))
        for c in without_caps(probe, lams)
    ]


def well_costed(points: list[Point], spending: Callable[[Point], Point]) -> list[Point]:
    """Prefixes, and adaptive points with mean costs of more rows: those on the staircase, and on the staircase that this makes,
    until it consists of such points."""
    done = {i: p for i, p in enumerate(points) if p.prefix is not None}
    while True:
        now = [done.get(i, p) for i, p in enumerate(points)]
        new = [i for i in staircase([p.cost for p in now], [-p.loss for p in now]).tolist() if i not in done]
        if not new:
            return [now[i] for i in sorted(done)]
        done |= {i: spending(points[i]) for i in new}


def area_of(points: Sequence[Point], scale: Scale) -> float:
    """Under the hull of the score, from nothing to everything."""
    cost, score = np.array([p.cost for p in points]), 1 - np.array([p.loss for p in points]) / scale.loss_scale
    on = hull(cost, score)
    x, y = np.r_[cost[on], scale.total], np.r_[score[on], score[on[-1]]]
    return float(np.trapezoid(y, x) / scale.total)
