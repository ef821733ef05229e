"""What a family comes to: which of its policies are measured, on which rows, and which of them are kept.

At the end of a training all policies are measured on some rows, and those that a budget could follow on all others that the time
allows. Every point says on how many cases it was measured.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from askwise.components.prefixes import lengths_of
from askwise.core.arrays import Ints
from askwise.core.episode import measure, rollout, tally
from askwise.core.measures import Measure, Tally
from askwise.core.policy import Policy
from askwise.core.problem import Problem, Schema
from askwise.core.sampling import some_rows
from askwise.family.conditions import Scale
from askwise.family.inference import Family
from askwise.frontier.hull import hull, useful
from askwise.frontier.point import Point

if TYPE_CHECKING:
    from askwise.components.networks import Weights
    from askwise.family.train import FamilyTrainer

PRICES = 24  # points of the frontier, besides the prefixes of the order
CAPS, JUST = 24, 12  # hard budgets that are measured: evenly from the cheapest test to everything, and prices of single tests
UNDER = 4  # prices at which each is, besides for nothing
PAID_ROWS = 3_000  # mean costs are measured on so many more rows of each kind: budgets are to be met
HELD_OUT = 4  # times a row counts that was not learned from
PART, LEAST_PART = 2_000, 50  # rows that are measured at a time; so few that it is not worth while
SPARE = 1.5  # times the seconds that something is expected to take are kept for it


class Tried(NamedTuple):
    """A policy of a family: at a price or along a prefix of the order, under a hard budget or without."""

    lam: float
    prefix: int | None
    cap: int | None  # in units

    def point(self, found: Measure) -> Point:
        return Point(float(self.lam), found, prefix=self.prefix, cap=self.cap)


@dataclass
class Measuring:
    """Policies that are measured on the same rows, a part of these at a time."""

    problem: Problem
    policies: Sequence[tuple[Callable[[], Policy], int | None]]  # how to make each, and the hard budget that it is under
    rows: Ints  # in the order in which they are used
    used: int = 0
    tallies: dict[int, Tally] = field(default_factory=dict)
    paces: dict[int, float] = field(default_factory=dict)  # seconds for each row, of the last part

    def go_on(self, n: int, which: Iterable[int]) -> None:
        """The next n rows, for some of the policies."""
        part = np.sort(self.rows[self.used : self.used + n])
        self.used += len(part)
        for k in which:
            began, (make, cap) = time.monotonic(), self.policies[k]
            found = tally(self.problem, rollout(self.problem, make(), cap, part))
            self.tallies[k] = self.tallies[k] + found if k in self.tallies else found
            self.paces[k] = (time.monotonic() - began) / max(len(part), 1)

    def found(self, k: int) -> Measure:
        return self.tallies[k].measure(self.problem.schema.costs)


class Found(NamedTuple):
    """What the last measurements gave."""

    points: list[Point]  # all that were measured without a hard budget
    kept: list[Point]  # those that some budget could follow, by rising cost; the first decides at once


@dataclass(eq=False)
class Last:
    """The last measurements of a training. `cap`: a hard budget to measure besides the usual ones, in units."""

    trainer: FamilyTrainer
    family: Family
    problem: Problem  # rows that were learned from
    judging: Problem  # rows that taught what to expect
    validation: Problem  # rows that are measured
    seed: int
    cap: int | None
    costs: dict[float, list[Measure]] = field(default_factory=dict)  # at a price, on rows of the two other kinds

    def begin(self, first: int, most: int) -> None:
        """Measures everything on the first rows. `most`: how many are measured at all."""
        rows = np.random.default_rng(self.seed).permutation(len(self.validation))[:most]
        self.first = np.sort(rows[:first])
        self.tried = [
            *without_caps(self.trainer, self.family, self.validation, self.first, PRICES),
            *under_caps(self.trainer, self.family, self.validation, self.first, self.cap),
        ]
        costs = self.problem.schema.costs
        policies = [(partial(self.family.policy, t.lam, t.prefix), self.family.limit(costs, t.prefix, t.cap)) for t in self.tried]
        self.work = Measuring(self.validation, policies, rows)
        self.work.go_on(len(self.first), range(len(self.tried)))
        self.alive = np.arange(len(self.tried))

    def finish(self, left: Callable[[], float] | None) -> Found:
        """Measures what could be followed on the other rows, as long as there are seconds left, or on all of them."""
        work = self.work
        self._narrow()
        began = time.monotonic()
        well_priced(self._free(), self.spending)
        spare = (time.monotonic() - began) / 2  # the hull may change, and what is new on it needs this too
        while work.used < len(work.rows):
            rest = len(work.rows) - work.used
            fits = rest if left is None else int((left() - spare) / SPARE / sum(work.paces[k] for k in self.alive.tolist()))
            if fits < min(LEAST_PART, rest):
                break
            work.go_on(min(PART, fits), self.alive.tolist())
            self._narrow()
        priced = [*well_priced(self._free(), self.spending), *(p for p in self._points(self.alive) if p.cap is not None)]
        some = [priced[i] for i in self._useful(priced).tolist() if priced[i].prefix != 0]
        some.sort(key=lambda p: (p.cost, -self._most(p)))
        at_once = next(p for p in priced if p.prefix == 0 and p.cap is None)
        return Found([p for p in self._points(range(len(self.tried))) if p.cap is None], [at_once, *some])

    def _points(self, which: Iterable[int]) -> list[Point]:
        return [self.tried[k].point(self.work.found(k)) for k in which]

    def _free(self) -> list[Point]:
        """Those that are still measured, and under no hard budget."""
        return [p for p in self._points(self.alive) if p.cap is None]

    def spending(self, point: Point) -> Point:
        """The point with a mean cost of more rows: what is paid needs no labels. With rows it has learned from it is a little
        surer, and buys less, so that each of the others counts for several."""
        if point.lam not in self.costs:
            policy, more = self.family.policy(point.lam), (self.judging, self.problem)
            self.costs[point.lam] = [measure(p, policy, None, some_rows(len(p), PAID_ROWS, self.seed)) for p in more]
        judging, learned = self.costs[point.lam]
        counted = [(m, times * (m.n or 0)) for m, times in ((point.measure, HELD_OUT), (judging, HELD_OUT), (learned, 1))]
        rows = sum(n for _, n in counted)
        cost = sum(n * m.cost for m, n in counted) / rows
        error = math.hypot(*(n * (m.cost_error or 0.0) for m, n in counted)) / rows
        return replace(point, measure=replace(point.measure, cost=cost, cost_error=error))

    def _narrow(self) -> None:
        """Goes on with what is on the hull or a little below: policies are compared on the same rows, so that half of a standard
        error, which is that of different rows, is much."""
        points = self._points(self.alive)
        keep = set(self._useful(points, [(p.measure.loss_error or 0.0) / 2 for p in points]).tolist())
        keep |= {i for i, p in enumerate(points) if p.prefix == 0 and p.cap is None}
        self.alive = self.alive[sorted(keep)]

    def _useful(self, points: list[Point], slack: list[float] | float = 0.0) -> Ints:
        return useful([p.cost for p in points], [-p.loss for p in points], [self._most(p) for p in points], slack)

    def _most(self, point: Point) -> float:
        return self.family.most_paid(self.problem.schema.costs, point.prefix, point.cap)


def frontier(trainer: FamilyTrainer, weights: Weights, problem: Problem, rows: Ints, prices: int) -> list[Point]:
    """All points of a family without a hard budget, measured on these rows."""
    family = trainer.family(weights)
    tried = without_caps(trainer, family, problem, rows, prices)
    limits = [family.limit(problem.schema.costs, t.prefix, None) for t in tried]
    return [
        t.point(measure(problem, family.policy(t.lam, t.prefix), limit, rows)) for t, limit in zip(tried, limits, strict=True)
    ]


def without_caps(trainer: FamilyTrainer, family: Family, problem: Problem, rows: Ints, prices: int) -> list[Tried]:
    """Prefixes of the order, and a grid of prices from too dear to nearly free. Those who cannot have a prefix spend its money as
    well as they can, so that for them the price is 0."""
    high, low = trainer.scale.high, trainer.scale.low
    tried = [Tried(0.0, k, None) for k in sorted({0, *lengths_of(problem, trainer.order, 20)})]
    for lam in np.geomspace(high, low, prices).tolist() if trainer.adaptive else ():
        if goes_too_far(trainer, problem, family.policy(lam), None, rows):
            break
        tried.append(Tried(lam, None, None))
    return tried


def under_caps(trainer: FamilyTrainer, family: Family, problem: Problem, rows: Ints, more: int | None) -> list[Tried]:
    """Hard budgets from the cheapest test to everything, and one more: the order as far as the money goes and, unless that is
    too far, several prices. What buys nothing costs the same with or without a hard budget."""
    scale = trainer.scale
    tried: list[Tried] = []
    adaptive = trainer.adaptive
    for cap in sorted({*some_caps(problem.schema, scale), *([more] if more else [])}):
        tried.append(Tried(0.0, problem.schema.n_tests, cap))
        adaptive = adaptive and not goes_too_far(trainer, problem, family.policy(0.0), cap, rows)
        if adaptive:
            prices = (0.0, *np.geomspace(scale.low, scale.high, UNDER + 2)[1:-1].tolist())
            tried += [Tried(lam, None, cap) for lam in prices]
    return tried


def some_caps(schema: Schema, scale: Scale) -> list[int]:
    """Hard budgets, in units: evenly from the cheapest test to everything, and such that just buy some test."""
    costs = schema.costs
    evenly = np.geomspace(max(1, costs.total * scale.cheapest / scale.total), max(1, costs.total), CAPS)
    just = np.quantile(costs.alone, np.linspace(0, 1, JUST), method="nearest")
    return sorted({int(cap) for cap in (*evenly, *just) if cap >= 1})


def goes_too_far(trainer: FamilyTrainer, problem: Problem, policy: Policy, cap: int | None, rows: Ints) -> bool:
    """Whether it buys more than it has learned to choose; that is what the prefixes are for."""
    some = rows[:: -(-len(rows) // 50)]
    return bool(rollout(problem, policy, cap, some).length.mean() > trainer.config.max_tests)


def well_priced(points: list[Point], spending: Callable[[Point], Point]) -> list[Point]:
    """Prefixes, and adaptive points with mean costs of more rows: those on the hull, and on the hull that this makes, until it
    consists of such points."""
    done = {i: p for i, p in enumerate(points) if p.prefix is not None}
    while True:
        now = [done.get(i, p) for i, p in enumerate(points)]
        new = [i for i in hull([p.cost for p in now], [-p.loss for p in now]).tolist() if i not in done]
        if not new:
            return [now[i] for i in sorted(done)]
        done |= {i: spending(points[i]) for i in new}


def area_of(points: list[Point], scale: Scale) -> float:
    """Under the hull of the score, from nothing to everything."""
    cost, score = np.array([p.cost for p in points]), 1 - np.array([p.loss for p in points]) / scale.loss_scale
    on = hull(cost, score)
    x, y = np.r_[cost[on], scale.total], np.r_[score[on], score[on[-1]]]
    return float(np.trapezoid(y, x) / scale.total)
