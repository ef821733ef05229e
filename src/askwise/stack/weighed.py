"""Policies of a stack under several weights of the classes, measured class by class on rows that the members have not seen.

Each keeps two tables: how often each class met each decision, and how often the beliefs of these cases expected it. From them any
recall, accuracy or loss can be read, now and for any target that is asked for later.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from askwise.core.arrays import Doubles
from askwise.core.episode import Episodes, rollout, tally
from askwise.core.measures import Measure
from askwise.core.problem import Problem
from askwise.core.shares import confusion
from askwise.family.config import MeasuringConfig
from askwise.frontier.point import Point
from askwise.stack.class_weights import measured_weights
from askwise.stack.config import DESIGN
from askwise.stack.inference import Stack
from askwise.stack.measure import HeldOut, caps_for

NOTHING = Measure(0.0, 0.0, 0.0, 0)  # of a policy that is still to be measured
LAMS, PREFIXES, CAPS = 8, 8, 4  # policies at each weight: tradeoffs, so many tests for everybody, and hard budgets
FEW = 4  # of each, where there are more than two classes
COST_ROWS = 2_000  # on which costs are measured, at most
SLACK = 1.5  # times as long as the last weight the next one may take


def weighed_points(held_out: HeldOut, stack: Stack, cap: int | None, seed: int, seconds_left: Callable[[], float]) -> list[Point]:
    """At each weight what deciding at once comes to, so many tests for everybody, tradeoffs, and hard budgets, among them `cap`.
    With too little time, fewer weights, however short it is those with all classes alike. The first decides at once, with all
    classes alike."""
    points, took = list[Point](), 0.0
    for weights in measured_weights(stack.weights["prior"]) if stack.weighs else ():
        began = seconds_left()
        if points and began <= SLACK * took:
            break
        of_class = tuple(weights.tolist()) if points else None
        points += [_measured(held_out, stack, replace(p, class_weights=of_class), seed) for p in _policies(held_out, stack, cap)]
        took = began - seconds_left() if math.isfinite(began) else 0.0
    return points


def _policies(held_out: HeldOut, stack: Stack, cap: int | None) -> list[Point]:
    """Without what they come to."""
    schema, two = held_out.problem.schema, len(stack.weights["prior"]) == 2
    lams = np.geomspace(stack.scale.high, stack.scale.low, (LAMS if two else FEW) + 1)[1:].tolist()
    breadth = DESIGN.breadths_for(schema.n_tests)[-1]
    lengths = np.unique(np.linspace(0, schema.n_tests, (PREFIXES if two else FEW) + 1).round().astype(int)).tolist()
    caps = caps_for(schema, stack.scale, cap, MeasuringConfig(caps=CAPS if two else FEW // 2, test_caps=1, few_amounts=0))
    return [
        *(Point(0.0, NOTHING, prefix=k) for k in lengths),
        *(Point(lam, NOTHING, breadth=breadth) for lam in lams),
        *(Point(0.0, NOTHING, cap=most, breadth=breadth) for most in caps if most < schema.costs.total),
    ]


def _measured(held_out: HeldOut, stack: Stack, point: Point, seed: int) -> Point:
    problem = held_out.problem
    costs, limit = problem.schema.costs, stack.limit(problem.schema.costs, point.prefix, point.cap)
    used = rollout(problem, stack.follow(point), limit, held_out.paying(COST_ROWS, seed))
    done = held_out.episodes(point, limit)
    if not used.mask.any() and not np.ptp(used.decision):
        done = _all_decided(problem, done, int(used.decision[0]))
    of = tally(problem, done).measure(costs)
    if point.prefix != 0:  # what the policy that is used pays on rows of the fit, which needs no labels
        paid = tally(problem, used).measure(costs)
        paid = paid if point.prefix is None and point.cap is None else max(paid, of, key=lambda m: m.cost)
        of = replace(of, cost=paid.cost, cost_error=paid.cost_error)
    counts, believed, cases = _counted(held_out, done)
    return replace(point, measure=of, counts=counts, believed=believed, cases=cases)


def _all_decided(problem: Problem, done: Episodes, decision: int) -> Episodes:
    """What comes of deciding this at once, whatever the case. A policy that buys nothing does so. Each of its members decides the
    same for all of its rows, but not all of them the same, and together they would seem to tell some cases from others."""
    K, fees = problem.schema.n_classes, problem.schema.costs.decisions
    fee = int(fees[decision - K]) if decision >= K else 0
    return replace(
        done,
        mask=np.zeros_like(done.mask),
        cost=np.full_like(done.cost, fee),
        decision=np.full_like(done.decision, decision),
        loss=problem.loss[problem.labels[done.row], decision],
    )


def _counted(held_out: HeldOut, done: Episodes) -> tuple[Doubles, Doubles, Doubles | None]:
    """K, D each: how often each class met each decision, and how often beliefs expected it. Weighted rows are as many as they are
    worth, (Σ w)² / Σ w²; and K: as many are those of each class worth, None where no row is weighted."""
    problem, schema = held_out.problem, held_out.problem.schema
    assert done.belief is not None
    labels, weight, cases = problem.labels[done.row], np.ones(len(done.row)), None
    if problem.weight is not None:
        weight = problem.weight[done.row]
        weight = weight * (weight.sum() / (weight**2).sum())
        sums, squares = (np.bincount(labels, w, schema.n_classes) for w in (weight, weight**2))
        cases = sums**2 / np.where(squares > 0, squares, 1.0)
    shape = schema.n_classes, schema.n_decisions
    believed: Doubles = np.stack([np.bincount(done.decision, weight * p, shape[1]) for p in done.belief.T]).astype(float)
    return confusion(labels, done.decision, shape, weight), believed, cases
