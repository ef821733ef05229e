"""The one loop that trains: it ends in time, calls back, saves, and puts off Ctrl-C until what it saves is whole."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol

from askwise.training.checkpoint import TrainingState
from askwise.training.result import InterimMeasurement


class Training(Protocol):
    """What is driven. It knows nothing of files, interruptions and callbacks."""

    @property
    def finished(self) -> bool:
        """Whether all steps of the schedule are taken."""

    def advance(self) -> InterimMeasurement | None:
        """One step, and an interim measurement if one is due."""

    def measure(self) -> InterimMeasurement | None:
        """The last measurement; None if this step has been measured before."""

    def why_stop(self) -> str | None:
        """The reason to end it now, after an interim measurement, if there is one."""

    def state(self) -> TrainingState:
        """All that is needed to go on from here."""


class Clock:
    """The time of a training, its earlier parts included. Without a limit no share of it is ever over."""

    def __init__(self, limit: float | None, earlier: float = 0.0) -> None:
        self.limit = limit
        self.began = time.monotonic() - earlier
        self.reserved = 0.0  # share of the limit that is kept for what comes after the training
        self.go_on(0.0)

    def go_on(self, done: float) -> None:
        """So much of the training is done; the rest shares the time that is left from now on."""
        self.done, self.since = done, time.monotonic()

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.began

    @property
    def left(self) -> float:
        """Seconds up to the limit, or below 0 after it; infinite without one."""
        return float("inf") if self.limit is None else self.limit - self.seconds

    @property
    def for_training(self) -> float:
        """Seconds that were left for the training when it last went on."""
        assert self.limit is not None
        return max(self.began + (1 - self.reserved) * self.limit - self.since, 1e-3)

    def share(self) -> float:
        """How much of the training is over, by time."""
        if self.limit is None:
            return 0.0
        return min(1.0, self.done + (1 - self.done) * (time.monotonic() - self.since) / self.for_training)


def drive(
    training: Training,
    clock: Clock,
    *,
    callback: Callable[[InterimMeasurement], None] | None = None,
    save: Callable[[TrainingState], None] | None = None,
    save_every: float = 0.0,
) -> str:
    """Trains to the end and says why it ended. `callback` gets every interim measurement. `save` gets the whole state after one,
    at least so many seconds apart, at the end and on Ctrl-C."""
    saved, unsaved = time.monotonic(), True

    def write() -> None:
        nonlocal saved, unsaved
        if save is not None and unsaved:
            arrays, facts = training.state()
            save((arrays, {**facts, "seconds": clock.seconds}))
            saved, unsaved = time.monotonic(), False

    def pass_on(measurement: InterimMeasurement | None) -> None:
        if callback is not None and measurement is not None:
            callback(measurement)

    with put_off_ctrl_c(save is not None) as interrupted:
        while not (ended := _ended(training, clock)):
            measurement, unsaved = training.advance(), True
            pass_on(measurement)
            if measurement is not None and (ended := training.why_stop()):
                break
            if interrupted:  # between two steps, so that what is saved is whole
                write()
                raise KeyboardInterrupt
            if measurement is not None and time.monotonic() - saved >= save_every:
                write()
        if (last := training.measure()) is not None:
            pass_on(last)
            unsaved = True
        write()
        if interrupted:
            raise KeyboardInterrupt
    return ended


def _ended(training: Training, clock: Clock) -> str | None:
    if clock.share() >= 1:
        return "time limit"
    return "end of the schedule" if training.finished else None


@contextmanager
def put_off_ctrl_c(wanted: bool) -> Iterator[list[int]]:
    """Ctrl-C is noted in the list, rather than raised in the middle of a step."""
    noted: list[int] = []
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
