"""What a training calculates with is decided by a short trial when it begins: bfloat16 or float32, and how many threads."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial

import torch

from askwise.family.config import PRECISIONS
from askwise.family.train import FamilyTrainer
from askwise.processes import free_cores


def settle(trainer: FamilyTrainer, threads: int | None) -> None:
    """Chooses for a training that begins, as far as its settings and `threads` leave it open. Small networks learn in float32 and
    with one thread. What is chosen is part of the training's state."""
    config = trainer.config
    pays = config.width * config.prefix_batch >= config.trial_size and trainer.device.type == "cpu"
    if pays and config.precision == "auto":
        ways = {name: partial(trainer.tried, name, time.process_time) for name in PRECISIONS}
        trainer.precision = clearly_faster(in_turns(ways, config.trial_steps), "float32", config.clearly_faster)
    if threads is not None:
        trainer.threads = threads
    elif pays and (free := free_cores()) > 1:
        ways = {str(n): partial(_with_threads, trainer, n) for n in (1, free)}
        trainer.threads = int(clearly_faster(in_turns(ways, config.trial_steps), "1", config.clearly_faster))


def _with_threads(trainer: FamilyTrainer, threads: int) -> float:
    """Seconds of a step. By the clock: on a busy machine threads wait for each other, and that costs no processor."""
    torch.set_num_threads(threads)
    return trainer.tried(trainer.precision, time.perf_counter)


def in_turns(tries: Mapping[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """What each of them takes. They take turns, so that what else the machine does slows all; a first round is not counted."""
    taken: dict[str, list[float]] = {name: [] for name in tries}
    for _ in range(rounds + 1):
        for name, once in tries.items():
            taken[name].append(once())
    return {name: each[1:] for name, each in taken.items()}


def clearly_faster(taken: dict[str, list[float]], usual: str, part: float) -> str:
    """What needs at most this part of the time of the usual way, by the medians; else the usual way."""
    middle = {name: statistics.median(each) for name, each in taken.items()}
    best = min(middle, key=lambda name: middle[name])
    return best if middle[best] <= part * middle[usual] else usual
