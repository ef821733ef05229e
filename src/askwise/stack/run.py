"""One training of a stack, under the driver, and what it comes to."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import numpy as np

from askwise.cluster import LOCAL
from askwise.components.static_order import elimination_order
from askwise.core import missingness
from askwise.core.budget import Budget
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.family import calibration
from askwise.family.config import MeasuringConfig
from askwise.family.frontier import area_of
from askwise.frontier.point import Point
from askwise.stack.belief import StackedBelief
from askwise.stack.config import StackConfig
from askwise.stack.engines import member_fitting
from askwise.stack.folds import Folds, joined
from askwise.stack.inference import Stack
from askwise.stack.measure import HeldOut, RememberedBeliefs, StackCandidate, StackFrontier, breadths_for, candidates_for
from askwise.stack.members import MemberTime
from askwise.stack.train import StackTrainer
from askwise.training.checkpoint import TrainingState
from askwise.training.checkpoint_checks import order_of, same_run, seconds_before, taking_over
from askwise.training.driver import Clock, drive
from askwise.training.progress import telling
from askwise.training.result import VALIDATION, InterimMeasurement, TrainingResult

ORDER_TIME, REFINING_TIME = 0.08, 0.04  # shares of a time limit: the static order, and moving its tests forward
MEMBER_TIME, TRIAL_TIME = 0.3, 0.04  # all members, and the trial of how their networks see columns
POOL_TIME, VALUE_TIME = 0.06, 0.17  # the beliefs of the first states of the pool, and the value heads
MEASURING = MeasuringConfig(caps=12, test_caps=6, cap_lams=2, final_lams=16)
INTERIM_ROWS = 300
HURRIED_ROWS = 100  # that calibrate forecasts where there is a time limit


class StackTraining:
    """A trainer as the driver wants it."""

    def __init__(self, trainer: StackTrainer, rows: Problem, clock: Clock, tell: Callable[[str], None]) -> None:
        self.trainer, self.rows, self.clock, self.tell = trainer, rows, clock, tell
        self.records: list[InterimMeasurement] = []
        self.values_since: float | None = None

    @property
    def finished(self) -> bool:
        return self.trainer.finished or self.trainer.done >= 1

    def advance(self) -> InterimMeasurement | None:
        trainer, before = self.trainer, (self.trainer.ready, self.trainer.grown)
        if self.clock.limit is not None and len(trainer.pool.row):
            self.values_since = self.clock.seconds if self.values_since is None else self.values_since
            trainer.done = min((self.clock.seconds - self.values_since) / (VALUE_TIME * self.clock.limit), 1.0)
        if trainer.done >= 1:
            return None
        trainer.advance()
        if not trainer.ready:
            done = f"{len(trainer.members)} of {trainer.folds.members} parts are done"
            self.tell(f"learning the classes from any set of tests, {done}")
        return self.measure() if before != (trainer.ready, trainer.grown) else None

    def measure(self) -> InterimMeasurement | None:
        """Some tradeoffs, and everything, on some rows."""
        trainer = self.trainer
        if not trainer.ready or (self.records and self.records[-1].step == trainer.step and trainer.step):
            return None
        held_out, scale, F = held_out_rows(trainer, self.rows), trainer.scale, trainer.schema.n_tests
        rows = held_out.rows[some_rows(len(held_out.rows), INTERIM_ROWS, trainer.seed)]
        tries = [StackCandidate(0.0, k, None, 1) for k in (0, F)]
        breadth = breadths_for(F)[-1]
        tries += [StackCandidate(lam, None, None, breadth) for lam in np.geomspace(scale.high, scale.low, 6).tolist()]
        costs = trainer.schema.costs
        points = [c.point(held_out.tally(c, rows).measure(costs)) for c in tries]
        least = min(points, key=lambda p: (p.loss, p.cost))
        record = InterimMeasurement(trainer.step, trainer.progress, least.lam, None, least.measure, area_of(points, scale))
        self.records.append(record)
        return record

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
    few = len(rows) < config.few_rows or rows is problem
    n = max(2, min(config.folds, len(rows) // 4))
    folds = Folds.across(rows.labels, n, seed) if few else Folds.apart(len(problem), validation.labels)
    filled = missingness.go_with_class(problem)
    learn = missingness.filled(rows, seed) if filled else rows
    lacking = missingness.lacking(rows) if filled else None
    tell = telling(callback)
    if resume is None:
        tell("looking for an order of the tests")
        order = elimination_order(learn, seed, threads=threads, seconds=None if time_limit is None else ORDER_TIME * time_limit)
    else:
        order = order_of(resume[0], "order", problem.schema.n_tests)
    of_each = threads if n_jobs == 1 or folds.members == 1 else 1  # where members share the cores
    trainer = StackTrainer(learn, folds, order, config, seed, lacking, of_each)
    training = StackTraining(trainer, rows, clock, tell)
    if resume is not None:
        with taking_over():
            trainer.load(*resume)
            training.records = [InterimMeasurement.from_dict(record) for record in resume[1]["records"]]
    clock.reserved = 0.0
    seconds = math.inf if time_limit is None else MEMBER_TIME * time_limit * len(trainer.missing) / folds.members
    if time_limit is not None:
        trainer.trial_seconds, trainer.pool_seconds = TRIAL_TIME * time_limit, POOL_TIME * time_limit
        trainer.order_seconds = REFINING_TIME * time_limit
    with closing(member_fitting(engine, n_jobs, MemberTime(seconds))) as trainer.fitting:
        stopped = drive(training, clock, callback=callback, save=save, save_every=save_every)
        while not trainer.ready:  # however short the time
            trainer.advance()
    tell("measuring policies on held-out cases")
    held_out = held_out_rows(trainer, rows)
    followed_rows = config.calibration_rows if time_limit is None else min(config.calibration_rows, HURRIED_ROWS)
    runs = held_out.followed(trainer.scale, followed_rows, seed, MEASURING)
    trainer.common["calibration"] = calibration.fitted(rows, runs, config.calibration_ridge)
    stack = trainer.stack()
    cap = None if budget is None else budget.cap(problem.schema.costs)
    tries = candidates_for(rows, stack, cap, MEASURING.final_lams, MEASURING)
    measured, kept = StackFrontier(held_out, remembering(stack), tries, seed, MEASURING).points(lambda: clock.left)

    def policy(point: Point) -> Policy:
        lam = trainer.scale.high if point.prefix is not None else point.lam
        return stack.policy(lam, point.prefix, breadth=point.breadth or 1)

    return TrainingResult(
        points=tuple(kept),
        measured=tuple(measured),
        history=tuple(training.records),
        stopped=stopped,
        seconds=clock.seconds,
        score=area_of(measured, trainer.scale),
        policy=policy,
        shared=stack,
        held_out=held_out.report if few else None,
        measured_on="cases, each held out in turn" if few else VALIDATION,
    )


def held_out_rows(trainer: StackTrainer, rows: Problem) -> HeldOut:
    """Rows as they are, with the members that have not seen them. Their beliefs are remembered."""
    remembered: dict[int, Stack] = {}
    parts = []
    for b, h, own in trainer.folds.parts:
        member = trainer.member(b, h)
        first = remembered.setdefault(b, remembering(member))
        parts.append((replace(member, beliefs=first.beliefs), own))
    return HeldOut(rows, parts)


def remembering(stack: Stack) -> Stack:
    """The same, which remembers its beliefs."""
    return replace(stack, beliefs=RememberedBeliefs(StackedBelief(stack.weights, stack.owner, np.float32)))
