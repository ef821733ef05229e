"""Which policies of a family are measured: prefixes of its order, a range of tradeoffs, and a range of hard budgets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from askwise.components.prefixes import lengths_of
from askwise.core.arrays import Ints
from askwise.core.costs import CostFunction
from askwise.core.episode import rollout
from askwise.core.measures import Measure
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.family.conditions import Scale
from askwise.family.config import MeasuringConfig
from askwise.family.inference import Family
from askwise.frontier.point import Point

MOST_UNITS = 1_000_000  # of which all sums are looked for


class Candidate(NamedTuple):
    """A policy of a family: at a tradeoff or along a prefix of the order, under a hard budget or without."""

    lam: float
    prefix: int | None
    cap: int | None  # in units

    def point(self, measure: Measure) -> Point:
        return Point(float(self.lam), measure, prefix=self.prefix, cap=self.cap)


@dataclass(frozen=True, eq=False)
class Probe:
    """A family, the rows on which its policies are tried, and how many tests it has learned to choose: 0 where it knows only
    prefixes of the order."""

    family: Family
    problem: Problem
    rows: Ints
    choosable: int

    def goes_too_far(self, lam: float, cap: int | None) -> bool:
        """Whether a policy buys more than it has learned to choose; that is what the prefixes are for."""
        few = self.rows[:: -(-len(self.rows) // 50)]
        return bool(rollout(self.problem, self.family.policy(lam), cap, few).length.mean() > self.choosable)


def without_caps(probe: Probe, lams: int) -> list[Candidate]:
    """Prefixes of the order, and tradeoffs from where nothing is worth buying to where nearly everything is. Those who cannot
    have a prefix spend its money as well as they can, so that for them lambda is 0."""
    scale, order = probe.family.scale, np.argsort(probe.family.rank)
    candidates = [Candidate(0.0, k, None) for k in sorted({0, *lengths_of(probe.problem, order, 20)})]
    for lam in np.geomspace(scale.high, scale.low, lams).tolist() if probe.choosable else ():
        if probe.goes_too_far(lam, None):
            break
        candidates.append(Candidate(lam, None, None))
    return candidates


def under_caps(probe: Probe, extra: int | None, measuring: MeasuringConfig) -> list[Candidate]:
    """Hard budgets from the cheapest test to everything, and an extra one: the order as far as the money goes and, unless that is
    too far, several tradeoffs. What buys nothing costs the same with or without a hard budget."""
    schema, scale = probe.problem.schema, probe.family.scale
    candidates: list[Candidate] = []
    adaptive = probe.choosable > 0
    for cap in sorted({*caps_of(schema, scale, measuring), *([extra] if extra else [])}):
        candidates.append(Candidate(0.0, schema.n_tests, cap))
        adaptive = adaptive and not probe.goes_too_far(0.0, cap)
        if adaptive:
            lams = (0.0, *np.geomspace(scale.low, scale.high, measuring.cap_lams + 2)[1:-1].tolist())
            candidates += [Candidate(lam, None, cap) for lam in lams]
    return candidates


def possible_amounts(costs: CostFunction) -> list[int]:
    """What tests, set-ups and a decision can add up to, in units, without 0."""
    sums = np.zeros(costs.most + 1, bool)
    sums[0] = True
    for part in (*costs.own.tolist(), *costs.setup[costs.member.any(0)].tolist()):
        sums[part:] |= sums[: len(sums) - part].copy()
    of_tests = sums[: costs.total + 1].copy()
    for fee in costs.decisions.tolist():
        sums[fee : fee + len(of_tests)] |= of_tests
    amounts: list[int] = np.flatnonzero(sums)[1:].tolist()
    return amounts


def caps_of(schema: Schema, scale: Scale, measuring: MeasuringConfig) -> list[int]:
    """Hard budgets, in units: evenly from the cheapest test to everything, and such that just buy some test or pay for some
    decision. Where all these can add up to few amounts, all of the amounts."""
    costs = schema.costs
    if costs.most <= MOST_UNITS and len(amounts := possible_amounts(costs)) <= measuring.few_amounts:
        return amounts
    evenly = np.geomspace(max(1, costs.total * scale.cheapest / scale.total), max(1, costs.most), measuring.caps)
    just = np.quantile([*costs.alone, *costs.decisions], np.linspace(0, 1, measuring.test_caps), method="nearest")
    return sorted({int(cap) for cap in (*evenly, *just) if cap >= 1})


def followed(candidates: list[Candidate], most: int) -> list[tuple[float, int | None]]:
    """So many of the tradeoffs, and as many hard budgets, each at one of its tradeoffs in turn."""
    adaptive = [c for c in candidates if c.prefix is None]
    free, caps = [c.lam for c in adaptive if c.cap is None], sorted({c.cap for c in candidates if c.cap is not None})
    limits: list[tuple[float, int | None]] = [(lam, None) for lam in free[:: -(-len(free) // most) or 1]]
    for i, cap in enumerate(caps[:: -(-len(caps) // most) or 1]):
        lams = [c.lam for c in adaptive if c.cap == cap]
        limits += [(lams[i % len(lams)], cap)] if lams else []
    return limits
