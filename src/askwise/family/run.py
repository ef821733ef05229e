"""One training of a family, under the driver, and what it comes to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from askwise.cluster import cores
from askwise.components.encoders import Encoder
from askwise.components.networks import Weights
from askwise.components.pictures import Convolutions
from askwise.components.torch_state import own_threads
from askwise.core.arrays import Arrays
from askwise.core.budget import Budget
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.family import calibration
from askwise.family.calibration import Followed
from askwise.family.candidates import Probe, followed
from askwise.family.config import FamilyConfig, MeasuringConfig
from askwise.family.frontier import FinalMeasurement, area_of, interim_points
from askwise.family.inference import Family
from askwise.family.start import Rows, begun, halves, resumed
from askwise.family.train import FamilyTrainer
from askwise.family.trial import settle
from askwise.frontier.point import Point
from askwise.training.checkpoint import TrainingState, part
from askwise.training.checkpoint_checks import same_run, same_shapes, seconds_before, taking_over
from askwise.training.driver import Clock, drive
from askwise.training.progress import duration, telling
from askwise.training.result import InterimMeasurement, TrainingResult


@dataclass
class BestSoFar:
    """The interim measurements, and the weights of the best of them."""

    records: list[InterimMeasurement] = field(default_factory=list)
    area: float = -np.inf
    weights: Weights = field(default_factory=dict)
    due: float = math.inf  # how much of the training is done when it is measured next

    def add(self, record: InterimMeasurement, area: float, weights: Weights, margin: float) -> None:
        """Where areas, which are measured on few rows and at few tradeoffs, hardly differ, the later one is better trained."""
        self.records.append(record)
        if area >= self.area - margin:
            self.area, self.weights = max(self.area, area), weights

    def state(self) -> TrainingState:
        arrays = {f"best/{name}": value for name, value in self.weights.items()}
        return arrays, {
            "records": [r.to_dict() for r in self.records],
            "area": self.area if self.records else None,
            "due": None if self.due == math.inf else self.due,
        }

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any]) -> BestSoFar:
        records = [InterimMeasurement.from_dict(record) for record in facts["records"]]
        due = math.inf if facts["due"] is None else float(facts["due"])
        return cls(records, float(facts["area"]) if records else -np.inf, part(arrays, "best/"), due)


class FamilyTraining:
    """A trainer, measured now and then on the same validation rows, as the driver wants it. With a time limit the clock says how
    much is done, and how long a measurement takes says how often there is one and how much time is kept for the end."""

    def __init__(
        self,
        trainer: FamilyTrainer,
        best: BestSoFar,
        measured_rows: Problem,
        measuring: MeasuringConfig,
        clock: Clock,
        tell: Callable[[str], None] = lambda doing: None,
    ) -> None:
        self.tell, self.began = tell, time.monotonic()
        self.trainer, self.best, self.measured_rows, self.measuring, self.clock = trainer, best, measured_rows, measuring, clock
        config = trainer.config
        self.rows = some_rows(len(measured_rows), config.measure_rows, trainer.seed)
        self.most = min(config.frontier_rows or len(measured_rows), len(measured_rows))  # rows that are measured at the end
        self.pause = (1 - config.prefix_share) / config.interim_measurements
        self.first_step, self.measured_step = trainer.step, -1
        self.seconds = 0.0  # that the last measurement took
        clock.reserved = measuring.final_time / 2  # until it is known how long a measurement takes
        clock.go_on(trainer.done)

    @property
    def finished(self) -> bool:
        return self.trainer.finished

    def advance(self) -> InterimMeasurement | None:
        trainer = self.trainer
        if self.measured_step == trainer.step:  # the time to measure and to call back was none to learn
            self.clock.go_on(trainer.done)
        self._tell_time()
        self._set_prefix_share()
        trainer.advance()
        self._tell_time()
        self._tell_phase()
        if trainer.adaptive and self.best.due == math.inf:
            self.best.due = trainer.done
        return self.measure() if trainer.done >= self.best.due else None

    def measure(self) -> InterimMeasurement | None:
        trainer, best, began = self.trainer, self.best, time.monotonic()
        if self.measured_step == trainer.step:
            return None
        self._tell_time()
        weights = trainer.weights()
        probe = Probe(trainer.family(weights), self.measured_rows, self.rows, self.choosable)
        points = interim_points(probe, self.measuring.interim_lams)
        least = min(points, key=lambda p: (p.loss, p.cost))
        area = area_of(points, trainer.scale)
        self.measured_step, self.seconds = trainer.step, time.monotonic() - began
        self._plan()
        self.clock.go_on(trainer.done)  # what is kept for the end may have changed: what is done stays done
        if best.records and best.records[-1].step >= trainer.step:  # it was resumed here
            return None
        best.add(
            InterimMeasurement(trainer.step, trainer.done, least.lam, None, least.measure, area),
            area,
            weights,
            self.measuring.equal_areas,
        )
        return best.records[-1]

    @property
    def choosable(self) -> int:
        """How many tests it has learned to choose."""
        return self.trainer.config.max_tests if self.trainer.adaptive else 0

    def why_stop(self) -> str | None:
        return None

    def state(self) -> TrainingState:
        (arrays, facts), (kept, records) = self.trainer.state(), self.best.state()
        return {**arrays, **kept}, {**facts, **records}

    def final_rows(self) -> int:
        """Rows on which everything is measured at the end: as many as the time that is left allows."""
        most, fewest = self.measuring.first_rows, self.measuring.fewest_rows
        if self.clock.limit is None:
            return most
        work = self.measuring.final_work * self.seconds / len(self.rows)  # seconds for each row
        return min(most, max(fewest, int(max(self.clock.left, 0.0) / work)))

    def _tell_phase(self) -> None:
        """While there is nothing to measure, what it does and, without a time limit, about how long everything takes."""
        trainer, steps = self.trainer, self.trainer.step - self.first_step
        if trainer.adaptive or steps % self.measuring.pace_steps:
            return
        doing = "learning the classes from prefixes of the order"
        if self.clock.limit is None:
            seconds = (time.monotonic() - self.began) / steps * self._steps_to_come
            doing += f"; everything takes about {duration(self.clock.seconds + seconds)}, or less with a time limit"
        self.tell(doing)

    @property
    def _steps_to_come(self) -> float:
        """Without a time limit, in steps on prefixes."""
        trainer, config, measuring = self.trainer, self.trainer.config, self.measuring
        later = config.selector_share * measuring.selection_steps + (1 - config.selector_share) * measuring.final_steps
        share = trainer.prefix_share
        return config.max_steps * (share + (1 - share) * later) - trainer.step

    def _tell_time(self) -> None:
        if self.clock.limit is not None:
            self.trainer.done = self.clock.share()

    def _plan(self) -> None:
        """When to measure next, and how much time to keep for the end."""
        measuring, limit, done = self.measuring, self.clock.limit, self.trainer.done
        if limit:
            once = self.seconds / limit
            self.pause = max(self.pause, once / measuring.interim_time)
            first, others = measuring.final_work, measuring.rest_work * max(self.most / len(self.rows) - 1, 0)
            self.clock.reserved = max(
                min(measuring.final_time / 2, (first + others) * once), min(measuring.final_time, first * once)
            )
        self.best.due = done + self.pause if done + 1.5 * self.pause < 1 else 1.0

    def _set_prefix_share(self) -> None:
        """As soon as the pace is known: with a time limit, the classifier alone gets what its steps need."""
        trainer, measuring = self.trainer, self.measuring
        steps = trainer.step - self.first_step
        if self.clock.limit is None or trainer.adaptive or steps != measuring.pace_steps:
            return
        per_step = (time.monotonic() - self.clock.since) / steps
        wanted = trainer.config.prefix_steps * per_step / self.clock.for_training
        trainer.prefix_share = max(trainer.config.prefix_share, min(wanted, measuring.most_prefix_time))


@own_threads()
def run(
    problem: Problem,
    validation: Problem,
    budget: Budget | None = None,
    config: FamilyConfig | None = None,
    seed: int = 0,
    *,
    encoder: Encoder | None = None,
    picture: Convolutions | None = None,
    time_limit: float | None = None,
    threads: int | None = None,
    measuring: MeasuringConfig | None = None,
    resume: TrainingState | None = None,
    save: Callable[[TrainingState], None] | None = None,
    save_every: float = 0.0,
    callback: Callable[[InterimMeasurement], None] | None = None,
) -> TrainingResult[Family]:
    """Trains for so many seconds, the order included, or without a limit for `config.max_steps` steps. Half of the validation
    rows teach it what to expect. Now and then it is measured on some of the others, and the best is kept; at the end on all of
    them that the time allows, also under several hard budgets and that of `budget`, which matters for nothing else.

    `picture`: convolutions that are tried beside the plain network. `save`, `save_every` and `callback` are those of the driver;
    `resume` takes a state that was saved, whose seconds count.
    `threads`: that torch and the order use; None: where networks are large, as many as there are free cores, if a trial finds
    that faster than one.
    """
    if resume is not None:
        same_run(resume[1].get("run"), {"algorithm": "family"})
    clock = Clock(time_limit, 0.0 if resume is None else seconds_before(resume[1]))
    measuring = measuring or MeasuringConfig()
    config = config or FamilyConfig.for_size(len(problem), problem.schema.n_tests)
    if time_limit is not None:
        config = config.but(max_steps=2**31)
    held_out, measured_rows = halves(validation)
    rows = Rows.of(problem, held_out, seed)
    if resume is None:
        torch.set_num_threads(threads or 1)
        trainer, best = begun(rows, config, seed, encoder, picture, measuring, time_limit, threads or 1), BestSoFar()
        settle(trainer, threads)
    else:
        with taking_over():
            best = BestSoFar.restore(*resume)
            trainer = resumed(rows, config, seed, encoder, resume, picture)
            if best.records:
                same_shapes(best.weights, trainer.weights(), len(problem))
        trainer.threads = threads or min(trainer.threads, cores())
    torch.set_num_threads(trainer.threads)
    training = FamilyTraining(trainer, best, measured_rows, measuring, clock, telling(callback))
    stopped = drive(training, clock, callback=callback, save=save, save_every=save_every)
    cap = None if budget is None else budget.cap(problem.schema.costs)
    family, choosable = trainer.family(best.weights), training.choosable
    final = FinalMeasurement(family, choosable, problem, held_out, measured_rows, seed, cap, measuring)
    final.begin(training.final_rows(), training.most)
    limits, chosen = followed(final.candidates, measuring.forecasts), some_rows(len(validation), config.calibration_rows, 0)
    runs = [[Followed(final.family.values(lam), cap, chosen)] for lam, cap in limits]
    calibrated = calibration.fitted(validation, runs, config.calibration_ridge)
    frontier = final.finish(lambda: clock.left)
    family = trainer.family({**best.weights, "calibration": calibrated.astype(np.float32)})

    def policy(point: Point) -> Policy:
        # who cannot follow a prefix decides: here nothing keeps to the cost of its tests
        return family.policy(trainer.scale.high if point.prefix is not None else point.lam, point.prefix)

    return TrainingResult(
        points=tuple(frontier.kept),
        measured=tuple(frontier.measured),
        history=tuple(best.records),
        stopped=stopped,
        seconds=clock.seconds,
        score=area_of(frontier.measured, trainer.scale),
        policy=policy,
        shared=family,
        drawn=trainer.drawn,
        encoder=trainer.encoder,
    )
