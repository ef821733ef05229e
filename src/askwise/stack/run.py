"""One training of a stack, under the driver, and what it comes to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial

import numpy as np

from askwise.cluster import LOCAL
from askwise.components.static_order import elimination_order
from askwise.core import missingness
from askwise.core.arrays import Ints
from askwise.core.budget import Budget
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.family import calibration
from askwise.family.config import MeasuringConfig
from askwise.family.frontier import area_of
from askwise.frontier.point import Point
from askwise.stack.belief import StackedBelief
from askwise.stack.config import DESIGN, StackConfig
from askwise.stack.engines import member_fitting
from askwise.stack.fixed_sets import fixed_sets
from askwise.stack.folds import Folds, joined
from askwise.stack.inference import Stack
from askwise.stack.measure import HeldOut, RememberedBeliefs, StackCandidate, StackFrontier, candidates_for, caps_for
from askwise.stack.members import MemberTime
from askwise.stack.order import refined
from askwise.stack.plan import MANY_ROWS, SHARES, TimePlan, cut_short, reached
from askwise.stack.train import StackTrainer
from askwise.stack.weighed import weighed_points
from askwise.training.checkpoint import TrainingState
from askwise.training.checkpoint_checks import order_of, same_run, seconds_before, taking_over
from askwise.training.driver import Clock, drive
from askwise.training.progress import telling
from askwise.training.result import VALIDATION, InterimMeasurement, TrainingResult

MEASURING = MeasuringConfig(caps=12, test_caps=6, cap_lams=2, final_lams=16)
HURRIED = MEASURING.but(caps=4, test_caps=2, cap_lams=1, final_lams=8, fewest_rows=200)  # where that would take too long
INTERIM_ROWS, INTERIM_TRIES = 300, 8  # rows and policies of an interim measurement
SETS_TIME = 0.1  # of what is left, for sets of tests
OWN_ORDERS_TIME = 0.15  # of what is left, for the orders along which members are measured
WEIGHING = 0.15  # of what is left, for policies under other class weights
HURRIED_ROWS = 100  # that calibrate forecasts where there is a time limit


class StackTraining:
    """A trainer as the driver wants it."""

    def __init__(self, trainer: StackTrainer, rows: Problem, clock: Clock, tell: Callable[[str], None]) -> None:
        self.trainer, self.rows, self.clock, self.tell = trainer, rows, clock, tell
        self.records: list[InterimMeasurement] = []
        self.plan = TimePlan(clock, SHARES if trainer.config.cross_fits(len(rows)) else MANY_ROWS)
        trainer.seconds = self.plan.seconds
        self.values_begin: tuple[float, float, float] | None = (
            None  # when, how much was done before, and the seconds for the rest
        )

    @property
    def finished(self) -> bool:
        return self.trainer.finished or self.trainer.done >= 1

    def advance(self) -> InterimMeasurement | None:
        trainer, before = self.trainer, (self.trainer.ready, self.trainer.grown)
        if self.clock.limit is not None and len(trainer.pool.row):
            trainer.done = self._done()
        if trainer.done >= 1:
            return None
        trainer.advance()
        if not trainer.ready:
            done = f"{len(trainer.members)} of {trainer.folds.members} parts are done"
            self.tell(f"learning the classes from any set of tests, {done}")
        return self.measure() if before != (trainer.ready, trainer.grown) else None

    def _done(self) -> float:
        """How much of the value steps is over, by time."""
        if self.values_begin is None:
            self.values_begin = self.clock.seconds, self.trainer.done, self.plan.seconds("values")
        began, before, seconds = self.values_begin
        return min(before + (1 - before) * (self.clock.seconds - began) / max(seconds, 1e-3), 1.0)

    def measure(self) -> InterimMeasurement | None:
        """Some tradeoffs, and everything, on some rows."""
        trainer, began = self.trainer, self.clock.seconds
        if not trainer.ready or (self.records and self.records[-1].step == trainer.step and trainer.step):
            return None
        held_out, scale, F = held_out_rows(trainer, self.rows), trainer.scale, trainer.schema.n_tests
        rows = held_out.rows[some_rows(len(held_out.rows), INTERIM_ROWS, trainer.seed)]
        tries = [StackCandidate(0.0, k, None, 1) for k in (0, F)]
        breadth = DESIGN.breadths_for(F)[-1]
        tries += [
            StackCandidate(lam, None, None, breadth) for lam in np.geomspace(scale.high, scale.low, INTERIM_TRIES - 2).tolist()
        ]
        costs = trainer.schema.costs
        points = [c.point(held_out.tally(c, rows).measure(costs)) for c in tries]
        least = min(points, key=lambda p: (p.loss, p.cost))
        record = InterimMeasurement(trainer.step, trainer.progress, least.lam, None, least.measure, area_of(points, scale))
        self.records.append(record)
        self.plan.interim = self.clock.seconds - began
        self.clock.reserved = self.plan.reserved
        return record

    @property
    def seconds_each(self) -> float:
        """That a policy takes on the rows of an interim measurement; infinite before the first."""
        return math.inf if self.plan.interim is None else self.plan.interim / INTERIM_TRIES

    def why_stop(self) -> str | None:
        return None

    def state(self) -> TrainingState:
        arrays, facts = self.trainer.state()
        return arrays, {**facts, "records": [record.to_dict() for record in self.records]}


def run(
    problem: Problem,
    validation: Problem,
    budget: Budget | None = None,
    config: StackConfig | None = None,
    seed: int = 0,
    *,
    time_limit: float | None = None,
    threads: int = 1,
    engine: str = LOCAL,
    n_jobs: int | None = 1,
    resume: TrainingState | None = None,
    save: Callable[[TrainingState], None] | None = None,
    save_every: float = 0.0,
    callback: Callable[[InterimMeasurement], None] | None = None,
) -> TrainingResult[Stack]:
    """Trains on the rows of both problems, and measures on all rows that some members have not seen; with many rows these are the
    validation rows. Members are fitted by so many processes of this machine (None: as many as pay) or, with another `engine`, on
    a cluster. `save`, `save_every`, `callback` and `resume` are as in the driver."""
    if resume is not None:
        same_run(resume[1].get("run"), {"algorithm": "stack"})
    clock = Clock(time_limit, 0.0 if resume is None else seconds_before(resume[1]))
    # where there are too few to keep some apart, validation rows are the same ones
    rows = problem if validation.fingerprint == problem.fingerprint else joined(problem, validation.with_loss(problem.loss))
    config = config or StackConfig.for_size(len(rows), problem.schema.n_tests)
    few = config.cross_fits(len(rows)) or rows is problem
    n = max(2, min(config.folds, len(rows) // 4))
    folds = Folds.across(rows.labels, n, seed) if few else Folds.apart(len(problem), validation.labels)
    filled = missingness.go_with_class(problem)
    learn = missingness.filled(rows, seed) if filled else rows
    lacking = missingness.lacking(rows) if filled else None
    tell = telling(callback)
    if resume is None:
        tell("looking for an order of the tests")
        seconds = TimePlan(clock).seconds("order")
        order = elimination_order(learn, seed, threads=threads, seconds=None if time_limit is None else seconds)
    else:
        order = order_of(resume[0], "order", problem.schema.n_tests)
    of_each = threads if n_jobs == 1 or folds.members == 1 else 1  # where members share the cores
    trainer = StackTrainer(learn, folds, order, config, seed, lacking, of_each)
    training = StackTraining(trainer, rows, clock, tell)
    if resume is not None:
        with taking_over():
            trainer.load(*resume)
            training.records = [InterimMeasurement.from_dict(record) for record in resume[1]["records"]]
    clock.reserved = training.plan.reserved
    with closing(member_fitting(engine, n_jobs, MemberTime(partial(training.plan.seconds, "members")))) as trainer.fitting:
        drive(training, clock, callback=callback, save=save, save_every=save_every)
        while not trainer.ready:  # however short the time
            trainer.advance()
    tell("measuring policies on held-out cases")
    held_out = held_out_rows(trainer, rows, own_orders(trainer, OWN_ORDERS_TIME * clock.left))
    followed_rows = config.calibration_rows if time_limit is None else min(config.calibration_rows, HURRIED_ROWS)
    runs = held_out.followed(trainer.scale, followed_rows, seed, MEASURING)
    trainer.common["calibration"] = calibration.fitted(rows, runs, config.calibration_ridge)
    stack = trainer.stack()
    cap = None if budget is None else budget.cap(problem.schema.costs)
    measuring = MEASURING
    if measuring.safety * training.seconds_each * len(candidates_for(rows, stack, cap, {}, measuring)) > clock.left:
        measuring = HURRIED
    lost = trainer.beliefs.comparison(config.refining_rows, trainer.rng)
    caps = caps_for(problem.schema, trainer.scale, cap, measuring)
    sets = fixed_sets(caps, trainer.order, problem.schema.costs, lost, SETS_TIME * clock.left)
    tries = candidates_for(rows, stack, cap, sets, measuring)
    used = replace(stack, beliefs=held_out.parts[0][0].beliefs) if folds.members == 1 else remembering(stack)
    final = StackFrontier(held_out, used, tries, seed, measuring).points(lambda: (1 - WEIGHING) * clock.left)
    targeted = weighed_points(held_out.only(final.rows), used, cap, seed, lambda: clock.left)
    learners = [member["reached"] for member in trainer.members]
    values = trainer.step / config.value_steps

    def policy(point: Point) -> Policy:
        return stack.follow(point if point.prefix is None else replace(point, lam=trainer.scale.high))

    return TrainingResult(
        points=tuple(final.kept),
        measured=tuple(final.measured),
        history=tuple(training.records),
        stopped="end of the schedule" if reached(learners, values) == 1 else "time limit",
        seconds=clock.seconds,
        score=area_of(final.measured, trainer.scale),
        policy=policy,
        shared=stack,
        doubt=cut_short(learners, values, time_limit),
        held_out=held_out.only(final.rows).report if few else None,
        measured_on="cases, each held out in turn" if few else VALIDATION,
        targeted=tuple(targeted),
    )


def own_orders(trainer: StackTrainer, seconds: float) -> list[Ints]:
    """Of each head the order whose prefixes it measures. The order is chosen with the labels, and the fewer rows there are, the
    better it looks on those that chose it: so where they are few, each part measures prefixes of one that was found without it.
    Policies that choose or stop case by case keep to the order for which their values were learned."""
    heads = trainer.folds.heads
    if len(trainer.problem) > trainer.config.own_order_rows:
        return [trainer.order] * heads
    return [_order_without(head, trainer, seconds / heads) for head in range(heads)]


def _order_without(head: int, trainer: StackTrainer, seconds: float) -> Ints:
    """The order that is found without the part of the rows that this head has not seen."""
    ends, problem, config = time.monotonic() + seconds, trainer.problem, trainer.config
    rows = np.flatnonzero(trainer.folds.head != head)
    if len(np.unique(problem.labels[rows])) < 2:  # nothing to choose by
        return trainer.order
    within = None if math.isinf(seconds) else seconds / 2
    order = elimination_order(problem.take(rows), trainer.seed, threads=trainer.task.threads, seconds=within)
    lost = trainer.beliefs.comparison(config.refining_rows, trainer.rng, head)
    return refined(order, trainer.schema.costs, lost, config.refined_tests, ends - time.monotonic())


def held_out_rows(trainer: StackTrainer, rows: Problem, orders: Sequence[Ints] | None = None) -> HeldOut:
    """Rows as they are, with the members that have not seen them; prefixes are of their own orders. Beliefs are remembered."""
    remembered: dict[int, Stack] = {}
    parts = []
    for b, h, own in trainer.folds.parts:
        member = trainer.member(b, h)
        first = remembered.setdefault(b, remembering(member))
        order = None if orders is None else tuple(orders[h].tolist())
        parts.append((replace(member, beliefs=first.beliefs, prefix_order=order), own))
    return HeldOut(rows, parts)


def remembering(stack: Stack) -> Stack:
    """The same, which remembers its beliefs."""
    belief = StackedBelief(stack.weights, stack.owner, np.float32)
    if belief.stages is not None:  # states that hold the same prefix, and other tests, have their scores in common
        belief.stages.score = RememberedBeliefs(belief.stages.scored)
    return replace(stack, beliefs=RememberedBeliefs(belief))
