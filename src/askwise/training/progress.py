"""How a training goes, in words: the time it has taken and will take, and how good and how costly its decisions are so far."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable

from askwise.texts import printable, unescaping
from askwise.training.result import InterimMeasurement

OFTEN, SELDOM = 0.2, 10.0  # seconds between two lines on a terminal, and elsewhere


def reached(record: InterimMeasurement, unit: str = "") -> str:
    """What one measurement came to."""
    money = f"{record.cost:.2f} {printable(unit)}".rstrip()
    return f"right in {100 * record.validation.accuracy:.1f} % of held-out cases at a mean cost of {money}"


def telling(callback: Callable[[InterimMeasurement], None] | None) -> Callable[[str], None]:
    """How a training says what it is doing: to those who show progress."""
    return callback.tell if isinstance(callback, Progress) else lambda doing: None


def duration(seconds: float) -> str:
    """12 s, 3 min 20 s, 2 h 05 min."""
    minutes, rest = divmod(round(max(seconds, 0)), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
    return f"{minutes // 60} h {minutes % 60:02} min"


class Progress:
    """Called with every interim measurement. One line that is written over on a terminal, a line now and then elsewhere.

    every: a line for each measurement, wherever it goes.
    """

    def __init__(self, limit: float | None = None, unit: str = "", *, quiet: bool = False, every: bool = False) -> None:
        self.limit, self.unit, self.quiet = limit, unit, quiet
        self.to = unescaping(sys.stderr)
        self.live = not every and self.to.isatty()
        self.pause = 0.0 if every else OFTEN if self.live else SELDOM
        self.trainings, self.training, self.step = 1, 1, 0
        self.spent = 0.0  # seconds of the limit, before this process
        self.began, self.first = time.monotonic(), (0.0, 0.0)
        self.shown = self.spoken = -SELDOM  # when the last measurement was shown, and when anything was

    def begin(self, trainings: int, spent: float | None) -> None:
        """Called before the first training, with the number of trainings and the seconds of the limit that earlier parts of a
        resumed one took, None for a new one."""
        self.trainings, self.spent, self.began = trainings, spent or 0.0, time.monotonic()
        self.first = (0.0, 0.0) if spent is None else (0.0, -1.0)  # of a resumed one, the share that is done is not known yet

    def __call__(self, record: InterimMeasurement) -> None:
        if record.step < self.step:  # the next training
            self.training, self.began, self.spent, self.first = self.training + 1, time.monotonic(), 0.0, (0.0, 0.0)
        self.step = record.step
        now = time.monotonic()
        line = f"{self._time(record, now - self.began)}: {reached(record, self.unit)}"
        if now - self.shown >= self.pause:
            self.shown = self.spoken = now
            self._show(line)

    def tell(self, doing: str) -> None:
        """What the training is doing while there is nothing to measure."""
        now = time.monotonic()
        if now - self.spoken >= self.pause:  # what is measured is shown all the same
            self.spoken = now
            self._show(f"{duration(self.spent + now - self.began)}: {doing}")

    def _show(self, line: str) -> None:
        if self.quiet:
            return
        if self.trainings > 1:
            line = f"training {self.training} of {self.trainings}, {line}"
        if self.live:
            width = max(shutil.get_terminal_size().columns - 1, 20)
            print(f"\r{line[:width]:<{width}}", end="", file=self.to, flush=True)
        else:
            print(line, file=self.to, flush=True)

    def _time(self, record: InterimMeasurement, spent: float) -> str:
        """The time so far, and of how much it is, as far as that can be told."""
        if self.limit is not None:
            return f"{duration(self.spent + spent)} of about {duration(self.limit)}"
        done = record.done
        (at, before), so_far = self.first, duration(self.spent + spent)
        if before < 0:
            self.first = (spent, done)
        if before < 0 or done <= before:
            return so_far
        return f"{so_far} of about {duration(self.spent + spent + (spent - at) * (1 - done) / (done - before))}"

    def end(self) -> None:
        """After the last one."""
        if self.live and not self.quiet and self.spoken > 0:
            print(file=self.to)
