"""The paper's method: train, and keep the best of what was seen on the way, never simply the last network."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np
import torch

from askwise.components.encoders import Encoder
from askwise.components.networks import Weights, weights_of
from askwise.components.subset_classifier import own_torch
from askwise.core import missingness
from askwise.core.arrays import Array, Doubles
from askwise.core.budget import Budget
from askwise.core.episode import measure
from askwise.core.measures import Measure
from askwise.core.policy import Mixture, Policy, decide_at_once
from askwise.core.problem import Problem
from askwise.frontier.choice import Blend, choose
from askwise.frontier.hull import hull
from askwise.paper.config import TrainConfig
from askwise.paper.lagrangian import lagrangian
from askwise.paper.network import dense
from askwise.paper.train import Snapshot, Trainer, policy_of
from askwise.training.checkpoint import figures, number, put_off_ctrl_c, same_shapes, taking_over

State = tuple[dict[str, Array], dict[str, Any]]


@dataclass(frozen=True)
class Record:
    """What a snapshot came to, without its weights."""

    step: int
    lam: float
    train: Measure
    validation: Measure

    @property
    def cost(self) -> float:
        """Over training and validation rows together: costs need no labels, and the more rows, the surer the mean. But rows
        that were learned by heart need fewer tests than new ones, so it is never below the validation rows' own."""
        n, m = self.train.n, self.validation.n
        assert n is not None
        assert m is not None
        return max((n * self.train.cost + m * self.validation.cost) / (n + m), self.validation.cost)


@dataclass
class History:
    """Everything that was measured, and the weights of those snapshots that some price or budget would choose.

    Point 0 is deciding at once, which every method has for nothing.
    """

    records: list[Record]
    weights: dict[int, Weights] = field(default_factory=dict)  # by index into records

    def add(self, snapshot: Snapshot) -> None:
        self.records.append(Record(snapshot.step, snapshot.lam, snapshot.train, snapshot.validation))
        self.weights[len(self.records) - 1] = snapshot.weights
        kept = set(hull(self.cost(), self.score()).tolist())
        self.weights = {i: w for i, w in self.weights.items() if i in kept}

    def cost(self, upto: int | None = None) -> Doubles:
        return np.array([r.cost for r in self.records[:upto]])

    def score(self, upto: int | None = None) -> Doubles:
        return np.array([-r.validation.loss for r in self.records[:upto]])

    def choose(self, budget: Budget, upto: int | None = None) -> Blend:
        """The best on validation that meets the budget; hard budgets are met by every point."""
        cost, score = self.cost(upto), self.score(upto)
        return choose(cost, score, np.array([r.validation.loss_error or 0.0 for r in self.records[:upto]]), budget)

    def value(self, budget: Budget, upto: int | None = None) -> float:
        """The objective of what `choose` gives: loss, with the price of its cost where there is a price."""
        blend = self.choose(budget, upto)
        return -blend.mean(self.score(upto)) + (budget.lam or 0.0) * blend.mean(self.cost(upto))

    def state(self) -> State:
        arrays = {f"kept/{i}/{name}": v for i, weights in self.weights.items() for name, v in weights.items()}
        return arrays, {"records": [asdict(r) for r in self.records]}

    @classmethod
    def restore(cls, arrays: dict[str, Array], facts: dict[str, Any]) -> History:
        records = [
            Record(number(r, "step", whole=True), number(r, "lam"), figures(r["train"]), figures(r["validation"]))
            for r in facts["records"]
        ]
        history = cls(records)
        for name, value in arrays.items():
            if name.startswith("kept/"):
                _, i, rest = name.split("/", 2)
                history.weights.setdefault(int(i), {})[rest] = value
        return history


def why_stop(history: History, budget: Budget, config: TrainConfig, loss_scale: float) -> str | None:
    """The reason to end training now, if there is one: for some epochs what would be returned got no better, and the run
    overfits (better on training rows, no better on validation rows), oscillates around an average budget, or has settled.

    Paper: section 2.4, oscillations; section 4.6, over-fitting
    """
    if budget == Budget():  # the price is still on its way
        return None
    n = round(config.stop_epochs / config.window_epochs) if config.window_epochs else 0
    explored = sum(r.step > config.explore_epochs * config.epoch for r in history.records)
    if n < 4 or explored < 2 * n:
        return None
    small = 1e-3 * loss_scale
    if history.value(budget, -n) - history.value(budget) > small:
        return None
    last = history.records[-n:]
    half = n // 2

    def objective(m: Measure, lam: float) -> float:
        return lagrangian(m.loss, m.cost, lam, float(budget.average or 0))

    train = np.array([objective(r.train, r.lam) for r in last])
    validation = np.array([objective(r.validation, r.lam) for r in last])

    def change(values: Doubles) -> float:
        """From the first half of these epochs to the second, in standard errors."""
        first, second = values[:half], values[half:]
        return float((second.mean() - first.mean()) / np.sqrt(first.var() / len(first) + second.var() / len(second) + 1e-12))

    if change(train) < -2 and change(validation) > 2:
        return "overfitting"
    if budget.average is not None:
        b = float(budget.average)
        cost = np.array([r.train.cost for r in last])
        crossings = int((np.diff(np.sign(cost - b)) != 0).sum())
        if crossings >= n // 4 and cost.std() > 0.1 * b:
            return "oscillation"
    if train.std() < 10 * small:
        return "settled"
    return None


@dataclass(frozen=True, eq=False)
class Run:
    """A finished training run."""

    policy: Policy
    blend: Blend  # which points of the history the policy follows
    history: History
    stopped: str  # why training ended
    seconds: float

    @property
    def expected(self) -> Measure:
        """What is expected of the policy: loss and accuracy by the validation rows, cost by these and the training rows."""
        on, blend = [r.validation for r in self.history.records], self.blend
        mixed = on[blend.first].mixed(on[blend.second], blend.share)
        return replace(mixed, cost=blend.mean(self.history.cost()))


def run(
    problem: Problem,
    validation: Problem,
    budget: Budget,
    config: TrainConfig | None = None,
    seed: int = 0,
    *,
    encoder: Encoder = dense,
    time_limit: float | None = None,
    resume: State | None = None,
    save: Callable[[State], None] | None = None,
    save_every: float = 30.0,
    callback: Callable[[Record], None] | None = None,
) -> Run:
    """Trains until the schedule, the time (seconds) or `why_stop` ends it, and chooses among all snapshots.

    `save` is given the whole state now and then, at least `save_every` seconds apart, and at the end; `resume` takes such a
    state. `callback` gets every record.
    """
    config = config or TrainConfig()
    if missingness.go_with_class(problem):
        problem = missingness.filled(problem, seed)
    trainer = Trainer(problem, validation, budget, config, seed, encoder)
    at_once = decide_at_once(problem)
    if resume is not None:
        with taking_over():
            trainer.load(*resume)
            history = History.restore(*resume)
            for weights in history.weights.values():
                same_shapes(weights, weights_of(trainer.network), len(problem))
    else:
        alone = [measure(p, at_once, trainer.cap) for p in (problem, validation)]
        history = History([Record(0, trainer.controller.lam, *alone)])
    began = saved = time.monotonic()
    stopped = "end of the schedule"
    with put_off_ctrl_c(save is not None) as interrupted:
        while not trainer.finished:
            if interrupted and save is not None:  # between two steps, so that what is saved is whole
                save(_state(trainer, history))
                raise KeyboardInterrupt
            if time_limit is not None:
                trainer.time_share = min(1.0, (time.monotonic() - began) / max(time_limit, 1e-9))
            snapshot = trainer.advance()
            out_of_time = time_limit is not None and time.monotonic() - began > time_limit
            if snapshot is not None:
                history.add(snapshot)
                if callback is not None:
                    callback(history.records[-1])
                if save is not None and time.monotonic() - saved > save_every:
                    save(_state(trainer, history))
                    saved = time.monotonic()
                reason = why_stop(history, budget, config, problem.loss_scale)
                if reason is not None:
                    stopped = reason
                    break
            if out_of_time:
                stopped = "time limit"
                break
    if trainer.step > history.records[-1].step:  # the schedule ended within a window
        history.add(trainer.snapshot())
    if save is not None:
        save(_state(trainer, history))
    blend = history.choose(budget)

    def arm(i: int) -> Policy:
        return policy_of(history.weights[i], problem.schema, config, encoder) if i else at_once

    policy = arm(blend.first) if not blend.share else Mixture(arm(blend.first), arm(blend.second), blend.share, seed)
    return Run(policy, blend, history, stopped, time.monotonic() - began)


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, steps: int | None = None
) -> list[Policy]:
    """One run that sweeps the price: deciding at once, and those of its snapshots that some price would choose. With `steps` it
    learns for about so many steps, however long they take."""
    config = _config(problem, seconds, steps)
    with own_torch(seed, threads):
        done = run(problem, validation, Budget(), config, seed, time_limit=None if steps else seconds)
    return [decide_at_once(problem), *(policy_of(w, problem.schema, config) for w in done.history.weights.values())]


def fit(
    problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0, steps: int | None = None
) -> Policy:
    """The policy that `run` chooses, trained for this budget alone."""
    with own_torch(seed, torch.get_num_threads()):
        done = run(problem, validation, budget, _config(problem, seconds, steps), seed, time_limit=None if steps else seconds)
    return done.policy


def _config(problem: Problem, seconds: float, steps: int | None) -> TrainConfig:
    """`for_size` is for about a minute; with more time, or more steps, its epochs are longer."""
    config = TrainConfig.for_size(len(problem), problem.schema.n_tests)
    return config.scaled(time=steps / config.max_steps if steps else max(seconds / 60, 0.1))


def _state(trainer: Trainer, history: History) -> State:
    (arrays, facts), (kept, records) = trainer.state(), history.state()
    return {**arrays, **kept}, {**facts, **records}
