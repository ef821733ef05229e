"""How a training of a family begins: which rows teach what, the static order, and how columns are encoded."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from askwise.components.encoders import Convolutional, Encoder
from askwise.components.pictures import Convolutions
from askwise.components.static_order import elimination_order
from askwise.core import missingness
from askwise.core.arrays import Doubles, Ints
from askwise.core.problem import Problem
from askwise.errors import StateError
from askwise.family.config import FamilyConfig, MeasuringConfig
from askwise.family.train import FamilyTrainer
from askwise.files import copied
from askwise.training.checkpoint import TrainingState


@dataclass(frozen=True, eq=False)
class Rows:
    """What is learned from. Where gaps go with the class they are filled by lot, or else to hold a test would be to be one of
    those who have it; cases then lack tests as often as before, but whatever their class. Other gaps stay: what two tests say
    together is best learned from the rows that have both."""

    learn: Problem  # for the classifier and the selector
    held_out: Problem  # for the temperature and the value head
    lacking: Doubles | None

    @classmethod
    def of(cls, problem: Problem, held_out: Problem, seed: int) -> Rows:
        if not missingness.go_with_class(problem):
            return cls(problem, held_out, None)
        return cls(missingness.filled(problem, seed, copied), missingness.filled(held_out, seed), missingness.lacking(problem))

    def trainer(self, order: Ints, config: FamilyConfig, seed: int, encoder: Encoder | None = None) -> FamilyTrainer:
        return FamilyTrainer(self.learn, self.held_out, order, config, seed, encoder, self.lacking)


def halves(validation: Problem) -> tuple[Problem, Problem]:
    """Rows to learn from what to expect, and rows to measure; each class is shared out evenly."""
    if len(validation) < 2:
        return validation, validation
    by_class = np.argsort(validation.labels, kind="stable")
    return validation.take(np.sort(by_class[::2])), validation.take(np.sort(by_class[1::2]))


def begun(
    rows: Rows,
    config: FamilyConfig,
    seed: int,
    encoder: Encoder | None,
    picture: Convolutions | None,
    measuring: MeasuringConfig,
    time_limit: float | None,
    threads: int,
) -> FamilyTrainer:
    """A training that begins."""
    within = None if time_limit is None else measuring.order_time * time_limit
    order = elimination_order(rows.learn, seed, threads=threads, seconds=within)
    if encoder is not None:
        return rows.trainer(order, config.but(encoding_trial_steps=0), seed, encoder)
    if picture is not None:
        return with_best_network(rows, order, config, seed, picture, measuring, time_limit)
    return with_best_encoding(rows, order, config, seed, measuring, time_limit)


def with_best_encoding(
    rows: Rows, order: Ints, config: FamilyConfig, seed: int, measuring: MeasuringConfig, time_limit: float | None
) -> FamilyTrainer:
    """Columns in bins or as they are, with sines and cosines if there are any, whichever is better in the first steps. Bins must
    be clearly better than plain values: they also learn faster where they are not better in the end."""
    steps, settled = min(config.encoding_trial_steps, config.max_steps // 20), config.but(encoding_trial_steps=0)
    if not (steps and config.bins):
        return rows.trainer(order, settled, seed)
    in_bins, without = (rows.trainer(order, settled.but(**other), seed) for other in ({"frequencies": 0}, {"bins": 0}))
    for rival in (in_bins, without):
        _try(rival, steps, measuring.trial_time, time_limit)
    clearly = 1.0 if config.frequencies else measuring.clearly_better
    surprise = [rival.monitor.surprise(rival.mean) for rival in (in_bins, without)]
    return in_bins if surprise[0] < clearly * surprise[1] else without


def with_best_network(
    rows: Rows,
    order: Ints,
    config: FamilyConfig,
    seed: int,
    picture: Convolutions,
    measuring: MeasuringConfig,
    time_limit: float | None,
) -> FamilyTrainer:
    """Of pictures: the plain network or convolutions, whichever is better in the first steps. Convolutions also learn from
    pictures in a mirror, where these tell the classes as well."""
    plain = rows.trainer(order, config.as_they_are, seed)
    convolved = rows.trainer(order, config.for_convolutions, seed, picture)
    for rival in (plain, convolved):
        _try(rival, min(config.picture_trial_steps, config.max_steps // 20), measuring.trial_time, time_limit)
    if plain.monitor.surprise(plain.mean) <= convolved.monitor.surprise(convolved.mean):
        return plain
    if _mean_the_same_mirrored(convolved, measuring.same_mirrored):
        convolved.encoder = replace(picture, mirror=True)
        for module in _convolutional(convolved):
            module.mirror = True
    return convolved


def _mean_the_same_mirrored(trainer: FamilyTrainer, share: float) -> bool:
    """Whether held-out pictures in a mirror tell at least this share of what they tell as they are."""
    monitor, nothing = trainer.monitor, trainer.monitor.prior_surprise(trainer.mean)
    as_they_are = nothing - monitor.surprise(trainer.mean)
    with _flipped(trainer):
        return bool(nothing - monitor.surprise(trainer.mean) >= share * as_they_are)


@contextmanager
def _flipped(trainer: FamilyTrainer) -> Iterator[None]:
    for module in _convolutional(trainer):
        module.flipped = True
    try:
        yield
    finally:
        for module in _convolutional(trainer):
            module.flipped = False


def _convolutional(trainer: FamilyTrainer) -> list[Convolutional]:
    return [m for network in trainer.networks.values() for m in network.modules() if isinstance(m, Convolutional)]


def _try(rival: FamilyTrainer, steps: int, share: float, time_limit: float | None) -> None:
    """So many steps, or as many as this share of the time allows."""
    end = math.inf if time_limit is None else time.monotonic() + share * time_limit
    while rival.step < steps and time.monotonic() < end:
        if time_limit is not None:
            rival.done = 2 * share  # rates have risen
        rival.advance()


def resumed(
    rows: Rows,
    config: FamilyConfig,
    seed: int,
    encoder: Encoder | None,
    state: TrainingState,
    picture: Convolutions | None = None,
) -> FamilyTrainer:
    """A training that goes on from a state, with the order and the encoding that it has."""
    arrays, facts = state
    order = arrays["order"]
    if sorted(order.tolist()) != list(range(rows.learn.schema.n_tests)):
        raise StateError("the checkpoint is damaged: its order does not have every test once")
    if picture is not None:
        kept = facts["run"]["convolutions"]
        encoder = None if kept is None else Convolutions.from_dict(kept)
        if encoder not in (None, picture, replace(picture, mirror=True)):
            raise StateError("the checkpoint is damaged: its convolutions are not those of these pictures")
        config = config.as_they_are if encoder is None else config.for_convolutions
    elif config.encoding_trial_steps:
        chosen = {name: facts["run"].get(f"setting {name!r}", 0) for name in ("bins", "frequencies")}
        config = config.but(**chosen, encoding_trial_steps=0)
    trainer = rows.trainer(order, config, seed, encoder)
    trainer.load(arrays, facts)
    return trainer
