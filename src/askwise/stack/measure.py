"""Policies of a stack, measured on rows that the members have not seen, and which of them are kept."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from askwise.components.prefixes import lengths_of
from askwise.core.arrays import Array, Doubles, Ints
from askwise.core.episode import Episodes, by_row, measure, rollout
from askwise.core.measures import Measure
from askwise.core.problem import Problem
from askwise.core.sampling import hash_cases, some_rows
from askwise.core.schema import Schema
from askwise.evaluation import Report
from askwise.family.calibration import Followed
from askwise.family.candidates import caps_of
from askwise.family.conditions import Scale
from askwise.family.config import MeasuringConfig
from askwise.family.frontier import GrowingMeasurement, area_of
from askwise.frontier.hull import hull, useful
from askwise.frontier.point import ADAPTIVE, JOINED, KINDS, Point
from askwise.stack.config import DESIGN
from askwise.stack.inference import Believe, Stack
from askwise.stack.steady import BelievedTally, believed_tally, steadied

MOST_REMEMBERED = 3_000_000  # beliefs
CLOSEST = 1.05  # two tradeoffs, of which one is so many times the other, have nothing between them
FEWEST_COST_ROWS = 100  # on which costs are measured however short the time
PROBED = 50  # rows by which the pace is known
FILLS_TIME = 0.15  # of what is left, for policies between neighbouring tradeoffs


class StackCandidate(NamedTuple):
    """A policy of a stack: at a tradeoff and a breadth or along a prefix of the order or of other tests, under a hard budget or
    without."""

    lam: float
    prefix: int | None
    cap: int | None  # in units
    breadth: int
    tests: tuple[int, ...] | None = None

    def point(self, measure: Measure) -> Point:
        breadth = self.breadth if self.prefix is None else None
        return Point(self.lam, measure, prefix=self.prefix, cap=self.cap, breadth=breadth, tests=self.tests)


class RememberedBeliefs:
    """Beliefs that are computed once for each state: policies at neighbouring tradeoffs visit the same ones.

    States are known by a hash of 64 bits.
    """

    def __init__(self, believe: Believe) -> None:
        self.believe = believe
        self.key, self.place = np.zeros(0, np.uint64), np.zeros(0, np.int64)  # sorted by key
        self.kept: Array | None = None

    def __call__(self, values: Array, mask: Array) -> Array:
        key = hash_cases(np.concatenate([values, np.packbits(mask, 1)], 1, dtype=np.float32))
        unique, first, back = np.unique(key, return_index=True, return_inverse=True)
        at = np.searchsorted(self.key, unique)
        there = np.zeros(len(unique), bool)
        inside = at < len(self.key)
        there[inside] = self.key[at[inside]] == unique[inside]
        if not there.all():
            which = first[~there]
            new = np.asarray(self.believe(values[which], mask[which]), np.float32)
            if self.kept is None:
                self.kept = new[:0]
            if len(self.kept) and len(self.kept) + len(new) > MOST_REMEMBERED:  # all is forgotten
                self.kept, self.key, self.place = new[:0], self.key[:0], self.place[:0]
                return self(values, mask)
            self.place = np.insert(self.place, at[~there], len(self.kept) + np.arange(len(new)))
            self.key = np.insert(self.key, at[~there], unique[~there])
            self.kept = np.concatenate([self.kept, new])
            at = np.searchsorted(self.key, unique)
        assert self.kept is not None
        remembered: Array = self.kept[self.place[at]][back]
        return remembered


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Rows as they are, and who judges which of them."""

    problem: Problem
    parts: Sequence[tuple[Stack, Ints]]  # a member, and the rows that it has not seen

    @property
    def rows(self) -> Ints:
        return np.concatenate([rows for _, rows in self.parts])

    def tally(self, candidate: StackCandidate, rows: Ints) -> BelievedTally:
        """What a policy comes to on some rows."""
        lam, prefix, cap, breadth, tests = candidate
        total = None
        for member, own in self.parts:
            own_rows = np.intersect1d(rows, own)
            if len(own_rows):
                limit = member.limit(self.problem.schema.costs, prefix, cap)
                policy = member.policy(lam, prefix, breadth=breadth, tests=tests)
                new = believed_tally(self.problem, rollout(self.problem, policy, limit, own_rows, beliefs=True))
                total = new if total is None else total + new
        assert total is not None
        return total

    def followed(self, scale: Scale, rows: int, seed: int, measuring: MeasuringConfig) -> Iterator[list[Followed]]:
        """What calibrates the forecasts: some rows at several tradeoffs and under several hard budgets, by members that have not
        seen them."""
        chosen, costs = self.rows[some_rows(len(self.rows), rows, seed)], self.problem.schema.costs
        breadths = DESIGN.breadths_for(self.problem.schema.n_tests)
        lams = np.geomspace(scale.high, scale.low, measuring.forecasts + 1)[1:].tolist()
        caps = caps_of(self.problem.schema, scale, measuring)
        caps = caps[:: -(-len(caps) // measuring.forecasts)]
        for i, (lam, cap) in enumerate([*((lam, None) for lam in lams), *((0.0, cap) for cap in caps if cap < costs.total)]):
            parts = [(member, np.intersect1d(chosen, own)) for member, own in self.parts]
            breadth = breadths[-1 - i % len(breadths)]
            yield [Followed(member.values(lam, breadth=breadth), cap, own) for member, own in parts if len(own)]

    def paying(self, n: int, seed: int) -> Ints:
        """Rows on which it is measured what the policy that is used pays, which needs no labels. A member is too sure of rows
        that it has learned from: along these the policy of a stack with one member would stop too early."""
        rows = np.sort(self.rows)
        return rows[some_rows(len(rows), n, seed)]

    def only(self, rows: Ints) -> HeldOut:
        """The same with these rows alone."""
        parts = [(member, np.intersect1d(own, rows)) for member, own in self.parts]
        return HeldOut(self.problem, [(member, own) for member, own in parts if len(own)])

    def report(self, point: Point, limit: int | None) -> Report:
        """What a point of the frontier comes to, case by case, on all of these rows."""
        whole, rows = self.episodes(point, limit), np.sort(self.rows)
        return Report(self.problem.take(rows), replace(whole, row=np.arange(len(rows))))

    def episodes(self, point: Point, limit: int | None) -> Episodes:
        """Of a point under a limit, on all of these rows. Along a prefix of its own order a member keeps to what that costs."""
        costs, alone = self.problem.schema.costs, point.prefix is not None and point.cap is None
        limits = [member.limit(costs, point.prefix, None) if alone else limit for member, _ in self.parts]
        done = [
            rollout(self.problem, member.follow(point), most, own, beliefs=True)
            for (member, own), most in zip(self.parts, limits, strict=True)
        ]
        return by_row(done)


def caps_for(schema: Schema, scale: Scale, extra: int | None, measuring: MeasuringConfig) -> list[int]:
    """Hard budgets that are measured, and an extra one."""
    return sorted({*caps_of(schema, scale, measuring), *([extra] if extra else [])})


def candidates_for(
    problem: Problem, stack: Stack, extra: int | None, sets: Mapping[int, tuple[int, ...]], measuring: MeasuringConfig
) -> list[StackCandidate]:
    """Prefixes of the order; tradeoffs at every breadth; hard budgets, with the order and with several tradeoffs; and `sets` of
    tests by what they cost."""
    scale, F, order = stack.scale, problem.schema.n_tests, np.argsort(stack.rank)
    breadths = DESIGN.breadths_for(F)
    grid: Doubles = np.geomspace(scale.high, scale.low, measuring.final_lams)
    tries = [StackCandidate(0.0, k, None, 1) for k in sorted({0, *lengths_of(problem, order, 20)})]
    tries += [StackCandidate(lam, None, None, breadth) for breadth in breadths for lam in grid.tolist()]
    tries += [StackCandidate(0.0, len(tests), cost, 1, tests) for cost, tests in sets.items()]
    for cap in caps_for(problem.schema, scale, extra, measuring):
        tries.append(StackCandidate(0.0, F, cap, 1))
        tries += [StackCandidate(0.0, None, cap, breadth) for breadth in breadths]
        middle = np.geomspace(scale.low, scale.high, measuring.cap_lams + 2)[1:-1].tolist()
        tries += [StackCandidate(lam, None, cap, breadths[min(1, len(breadths) - 1)]) for lam in middle]
    return tries


def best_of_each_kind(points: Sequence[Point]) -> list[int]:
    """What there is to compare with: without a hard budget, the hull of every kind of policy, and all tests for everybody."""
    best: set[int] = set()
    for kind in KINDS:
        own = [i for i, p in enumerate(points) if p.cap is None and p.kind == kind]
        best |= {own[i] for i in hull([points[i].cost for i in own], [-points[i].loss for i in own]).tolist()}
    everything = [i for i, p in enumerate(points) if p.cap is None and p.prefix is not None]
    return sorted(best | {max(everything, key=lambda i: points[i].prefix or 0)})


class MeasuredPoints(NamedTuple):
    """What the final measurement gave."""

    measured: list[Point]  # those without a hard budget
    kept: list[Point]  # those that some budget could follow, by rising cost
    rows: Ints  # on which they were measured


def fills(policies: Sequence[tuple[float, float]], most: float) -> list[tuple[float, float]]:
    """Where to look for policies that cost something between what two cost, whose tradeoffs are neighbours: how many times as
    much the dearer one costs, and a tradeoff halfway, by its logarithm. Those that are joined are near enough.

    policies: tradeoffs, and what is paid at each; most: more money than this helps nobody.
    """
    between = list[tuple[float, float]]()
    for (low, dearer), (high, cheaper) in pairwise(sorted(policies)):
        ratio = dearer / cheaper if cheaper else np.inf if dearer else 1.0
        if ratio > JOINED and high > CLOSEST * low and cheaper < most:
            between.append((ratio, (low * high) ** 0.5))
    return between


@dataclass(eq=False)
class StackFrontier:
    """The measurement at the end: everything on some rows, and what could be followed or compared with on all others."""

    held_out: HeldOut
    stack: Stack
    candidates: list[StackCandidate]
    seed: int
    measuring: MeasuringConfig

    def __post_init__(self) -> None:
        rows = np.random.default_rng(self.seed).permutation(self.held_out.rows)
        self.costs = self.held_out.problem.schema.costs
        self.work = GrowingMeasurement(self.costs, [partial(self.held_out.tally, c) for c in self.candidates], rows)
        self.paid: dict[int, Measure] = {}  # by the policies that are used, on rows of the fit

    def points(self, seconds_left: Callable[[], float]) -> MeasuredPoints:
        """On as many rows as the time allows."""
        work, every_one = self.work, range(len(self.candidates))
        work.go_on(self.measuring.fewest_rows, every_one)
        left, first = self._following(every_one), self.measuring.first_rows
        limited = seconds_left() < math.inf
        cost_pace, fills_time = (self._cost_pace(left), FILLS_TIME * seconds_left()) if limited else (0.0, 0.0)
        while work.used < len(work.rows):
            pace, few = self.measuring.safety * sum(work.paces[i] for i in left), work.used < first
            spare, each = fills_time + cost_pace * first, 2 * pace
            if self.one_member:
                spare, each = fills_time + cost_pace * min(work.used, first), pace + few * cost_pace
            else:  # whoever reports on the points follows them once more on the rows that were measured
                spare += pace * work.used
            n = min(first - work.used if few else self.measuring.part_rows, len(work.rows) - work.used)
            if seconds_left() - spare < n * each:
                n = int(max(seconds_left() - spare, 0.0) / each)
            if n < self.measuring.least_part_rows:
                break
            work.go_on(n, left)
            left = self._following(left)
        cost_rows = min(first, work.used) if self.one_member else first
        if cost_pace:
            cost_rows = int(np.clip((seconds_left() - fills_time) / 2 / cost_pace, FEWEST_COST_ROWS, cost_rows))
        self.paid = {i: self._paid(self.candidates[i], cost_rows) for i in left}
        pace = self.measuring.safety * (max(work.paces.values()) * work.used + cost_pace / len(left) * cost_rows)
        left += self._filled(left, cost_rows, lambda: seconds_left() > pace)
        costed = self._costed(left)
        every = list(costed.values())
        on = useful([p.cost for p in every], [-p.loss for p in every], [self._most(p) for p in every])
        kept = sorted((every[i] for i in on.tolist() if every[i].prefix != 0), key=lambda p: (p.cost, -self._most(p)))
        return MeasuredPoints([p for p in every if p.cap is None], [costed[self._at_once], *kept], work.rows[: work.used])

    @property
    def one_member(self) -> bool:
        """Then the beliefs of rows that were measured are remembered, and what is paid for these is soon known."""
        return self.stack.beliefs is self.held_out.parts[0][0].beliefs

    @property
    def _at_once(self) -> int:
        return next(i for i, c in enumerate(self.candidates) if c.prefix == 0)

    def _measured(self, which: Iterable[int]) -> dict[int, Point]:
        of = steadied({i: self.work.tallies[i] for i in which}, self.costs, self.stack.scale.loss_scale)
        return {i: self.candidates[i].point(measure) for i, measure in of.items()}

    def _following(self, which: Sequence[int]) -> list[int]:
        """Those that some budget could follow or that others are compared with."""
        if self.work.used >= min(self.measuring.first_rows, len(self.work.rows)):
            which = self._one_breadth(self._measured(which))
        points = list(self._measured(which).values())
        share = 1.0 if self.work.used < self.measuring.first_rows else 0.5  # of an error, by which a point may be below the hull
        slack = [share * p.measure.loss_error for p in points]
        on = useful([p.cost for p in points], [-p.loss for p in points], [self._most(p) for p in points], slack)
        return sorted({which[i] for i in (*on.tolist(), *best_of_each_kind(points))} | {self._at_once})

    def _one_breadth(self, points: Mapping[int, Point]) -> list[int]:
        """Of the adaptive policies without a hard budget those of one breadth, that with the largest area: the best of all
        breadths at each cost would be the luckiest one."""

        def chosen(point: Point, breadth: int | None) -> bool:
            return point.cap is None and (point.prefix is not None or point.breadth == breadth)

        adaptive = sorted({p.breadth for p in points.values() if p.cap is None and p.kind == ADAPTIVE and p.breadth})
        areas = {b: area_of([p for p in points.values() if chosen(p, b)], self.stack.scale) for b in adaptive}
        best = max(adaptive, key=lambda b: areas[b], default=None)
        return [i for i, p in points.items() if p.cap is not None or p.kind != ADAPTIVE or p.breadth == best]

    def _filled(self, left: Sequence[int], cost_rows: int, more: Callable[[], bool]) -> list[int]:
        """Further policies, where neighbouring tradeoffs cost far more or less: whatever the average budget, one policy should
        come near it."""
        rows, new = np.sort(self.work.rows[: self.work.used]), list[int]()
        points = [p for p in self._costed(left).values() if p.cap is None]
        most = min(points, key=lambda p: p.loss).cost
        breadths = sorted({p.breadth for p in points if p.prefix is None and p.breadth})
        paid = {
            breadth: {c.lam: self._paid_by(i) for i, c in enumerate(self.candidates) if (*c[1:4],) == (None, None, breadth)}
            for breadth in breadths
        }
        while len(new) < self.measuring.fills and more():
            between = [(*each, breadth) for breadth in breadths for each in fills(list(paid[breadth].items()), most)]
            if not between:
                break
            _, lam, breadth = max(between)
            new.append(len(self.candidates))
            self.candidates.append(candidate := StackCandidate(lam, None, None, breadth))
            self.work.tallies[new[-1]] = self.held_out.tally(candidate, rows)
            self.paid[new[-1]] = self._paid(candidate, cost_rows)
            paid[breadth][lam] = self.paid[new[-1]].cost
        return new

    def _paid_by(self, i: int) -> float:
        """What a policy costs: on rows of the fit or, where that was not measured, by its members."""
        return (self.paid[i] if i in self.paid else self.work.tallies[i].measure(self.costs)).cost

    def _cost_pace(self, which: Sequence[int]) -> float:
        """Seconds for a row in which `_paid` looks at all of these, at most: as if each took what the slowest takes."""
        if self.one_member:  # the beliefs are remembered, so that it takes no longer than measuring took
            return sum(self.work.paces[i] for i in which)
        everything = max((self.candidates[i] for i in which), key=lambda c: c.prefix or 0)
        began, rows = time.monotonic(), self.held_out.paying(PROBED, self.seed)
        measure(self.held_out.problem, self.stack.policy(everything.lam, everything.prefix), None, rows)
        return (time.monotonic() - began) / len(rows) * len(which)

    def _paid(self, candidate: StackCandidate, n: int) -> Measure:
        """What the policy that is used costs on rows of the fit, those that were measured first. That needs no labels."""
        lam, prefix, cap, breadth, tests = candidate
        problem = self.held_out.problem
        policy = self.stack.policy(lam, prefix, breadth=breadth, tests=tests)
        return measure(problem, policy, self.stack.limit(self.costs, prefix, cap), np.sort(self.work.rows[:n]))

    def _costed(self, which: Iterable[int]) -> dict[int, Point]:
        """Points with what the policies that are used pay on rows of the fit."""
        return as_paid(self._measured({*which, self._at_once}), self.paid, self._at_once)

    def _most(self, point: Point) -> float:
        return self.stack.most_paid(self.costs, point.prefix, point.cap)


def as_paid(points: Mapping[int, Point], paid: Mapping[int, Measure], at_once: int) -> dict[int, Point]:
    """Points with the costs of the policies that are used. All members together are surer than each of them, or less sure, and at
    the same tradeoff they buy less or more; and prefixes are of orders of their own. So what a policy loses is what members lost
    on average that paid as much, with more or less of the same: another tradeoff at the same breadth, or another prefix. Under a
    hard budget, where nearly all of it is spent, the cost is that of the members if it is higher; and who pays less than they did
    loses what lies between them and deciding at once."""
    costed = dict[int, Point]()
    for i, point in points.items():
        if point.cap is None:
            like = [p for j, p in points.items() if j == at_once or (p.cap is None and sort_of(p) == sort_of(point))]
            own = at_cost(sorted((p.measure for p in like), key=lambda m: m.cost), paid[i].cost)
            costed[i] = replace(point, measure=replace(own, cost=paid[i].cost, cost_error=paid[i].cost_error))
        else:
            dearer = max(paid[i], point.measure, key=lambda m: m.cost)
            own = point.measure if point.prefix is not None else at_cost([points[at_once].measure, point.measure], paid[i].cost)
            costed[i] = replace(point, measure=replace(own, cost=dearer.cost, cost_error=dearer.cost_error))
    return costed


def sort_of(point: Point) -> tuple[bool, int | None]:
    """Policies of one sort differ in how much of the same they buy."""
    return point.prefix is None, point.breadth


def at_cost(curve: Sequence[Measure], cost: float) -> Measure:
    """What is measured between the two of these, by rising cost, that cost less and more, in proportion."""
    second = int(np.searchsorted([m.cost for m in curve], cost))
    if second in (0, len(curve)):
        return curve[min(second, len(curve) - 1)]
    low, high = curve[second - 1], curve[second]
    return low.mixed(high, (cost - low.cost) / (high.cost - low.cost))
