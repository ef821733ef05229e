"""One training by the paper's algorithm, under the driver, and what it comes to."""

from __future__ import annotations

from collections.abc import Callable

from askwise.components.encoders import Encoder
from askwise.core.budget import Budget
from askwise.core.episode import measure
from askwise.core.policy import Policy, decide_at_once
from askwise.core.problem import Problem
from askwise.frontier.point import Point
from askwise.paper.config import TrainConfig
from askwise.paper.network import dense
from askwise.paper.select import History, unsettled, why_stop
from askwise.paper.train import Trainer, policy_of
from askwise.training.checkpoint import TrainingState
from askwise.training.checkpoint_checks import same_shapes, seconds_before, taking_over
from askwise.training.driver import Clock, drive
from askwise.training.result import InterimMeasurement, TrainingResult


class PaperTraining:
    """A trainer and the history of its snapshots, as the driver wants them."""

    def __init__(self, trainer: Trainer, history: History, clock: Clock) -> None:
        self.trainer, self.history, self.clock = trainer, history, clock

    @property
    def finished(self) -> bool:
        return self.trainer.finished

    def advance(self) -> InterimMeasurement | None:
        self.trainer.time_share = self.clock.share()
        record = self.trainer.advance()
        if record is not None:
            self.history.add(record, self.trainer.weights())
        return record

    def measure(self) -> InterimMeasurement | None:
        """Where the training ended within a window."""
        if self.trainer.step <= self.history.records[-1].step:
            return None
        record = self.trainer.measure()
        self.history.add(record, self.trainer.weights())
        return record

    def why_stop(self) -> str | None:
        trainer = self.trainer
        return why_stop(self.history, trainer.budget, trainer.config, trainer.problem.loss_scale)

    def state(self) -> TrainingState:
        (arrays, facts), (kept, records) = self.trainer.state(), self.history.state()
        return {**arrays, **kept}, {**facts, **records}


def run(
    problem: Problem,
    validation: Problem,
    budget: Budget,
    config: TrainConfig | None = None,
    seed: int = 0,
    *,
    encoder: Encoder | None = None,
    time_limit: float | None = None,
    resume: TrainingState | None = None,
    save: Callable[[TrainingState], None] | None = None,
    save_every: float = 30.0,
    callback: Callable[[InterimMeasurement], None] | None = None,
) -> TrainingResult[None]:
    """Trains until the schedule, the time (seconds, of this call) or `why_stop` ends it.

    `save`, `save_every` and `callback` are those of the driver; `resume` takes a state that was saved.
    """
    config = config or TrainConfig()
    trainer = Trainer(problem, validation, budget, config, seed, encoder or dense)
    history = begun(trainer, problem, validation) if resume is None else resumed(trainer, resume)
    earlier = 0.0 if resume is None else seconds_before(resume[1])
    clock = Clock(None if time_limit is None else time_limit + earlier, earlier)
    stopped = drive(PaperTraining(trainer, history, clock), clock, callback=callback, save=save, save_every=save_every)
    points = [history.point(i) for i in range(len(history.records)) if i == 0 or i in history.weights]
    points.sort(key=lambda p: (p.cost, p.weights is not None))

    def policy(point: Point) -> Policy:
        weights = point.weights
        return decide_at_once(problem) if weights is None else policy_of(weights, problem.schema, config, encoder or dense)

    return TrainingResult(
        points=tuple(points),
        measured=tuple(points),
        history=tuple(history.records),
        stopped=stopped,
        seconds=clock.seconds,
        score=-history.value(budget),
        policy=policy,
        shared=None,
        doubt=unsettled(history),
        encoder=encoder,
    )


def begun(trainer: Trainer, problem: Problem, validation: Problem) -> History:
    """The history of a training that begins: deciding at once."""
    at_once = decide_at_once(problem)
    on_train, on_validation = (measure(rows, at_once, trainer.cap) for rows in (problem, validation))
    first = InterimMeasurement(0, 0.0, trainer.controller.lam, on_train, on_validation)
    return History([first], trainer.budget, trainer.config.mixture)


def resumed(trainer: Trainer, state: TrainingState) -> History:
    """The history up to the state, which the trainer takes over."""
    with taking_over():
        trainer.load(*state)
        history = History.restore(*state, trainer.budget, trainer.config.mixture)
        for weights in history.weights.values():
            same_shapes(weights, trainer.weights(), len(trainer.problem))
    return history
