"""The loop that trains: why it ends, who is called when, what is saved, and how time is shared out."""

import signal
from collections.abc import Iterator
from types import SimpleNamespace

import pytest

from askwise.core.measures import Measure
from askwise.training import driver
from askwise.training.driver import Clock, drive
from askwise.training.result import InterimMeasurement


class Counting:
    """A training of so many steps that is measured after every third of them."""

    def __init__(self, steps: int = 7, stop_at: int | None = None, interrupt_at: int | None = None) -> None:
        self.steps, self.stop_at, self.interrupt_at = steps, stop_at, interrupt_at
        self.step, self.measured = 0, 0

    @property
    def finished(self) -> bool:
        return self.step >= self.steps

    def advance(self) -> InterimMeasurement | None:
        self.step += 1
        if self.step == self.interrupt_at:
            signal.raise_signal(signal.SIGINT)
        return self.measure() if self.step % 3 == 0 else None

    def measure(self) -> InterimMeasurement | None:
        if self.measured == self.step:
            return None
        self.measured = self.step
        return InterimMeasurement(self.step, self.step / self.steps, 0.1, None, Measure(1.0, 0.5, 0.5, 10))

    def why_stop(self) -> str | None:
        return "enough" if self.step == self.stop_at else None

    def state(self):
        return {}, {"step": self.step}


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that is set by hand."""
    hand = SimpleNamespace(time=100.0)
    monkeypatch.setattr(driver, "time", SimpleNamespace(monotonic=lambda: hand.time))
    return hand


def test_every_measurement_is_called_back_and_saved_and_so_is_the_end():
    steps, states = [], []
    ended = drive(Counting(), Clock(None), callback=lambda m: steps.append(m.step), save=lambda s: states.append(s[1]["step"]))
    assert ended == "end of the schedule"
    assert steps == states == [3, 6, 7]


def test_a_step_that_was_measured_is_not_measured_again_at_the_end():
    steps = []
    drive(Counting(6), Clock(None), callback=lambda m: steps.append(m.step))
    assert steps == [3, 6]


def test_a_reason_to_stop_counts_only_after_a_measurement():
    training = Counting(stop_at=6)
    assert drive(training, Clock(None)) == "enough"
    assert training.step == 6
    assert drive(Counting(stop_at=5), Clock(None)) == "end of the schedule"


@pytest.mark.parametrize("step", [2, 3, 7])
def test_ctrl_c_is_put_off_until_the_state_is_whole(step):
    training, states = Counting(interrupt_at=step), []
    with pytest.raises(KeyboardInterrupt):
        drive(training, Clock(None), save=lambda s: states.append(s[1]["step"]))
    assert states[-1] == training.step == step


@pytest.fixture
def python_hears_ctrl_c() -> Iterator[None]:
    """Processes in the background of a shell ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("python_hears_ctrl_c")
def test_ctrl_c_is_raised_at_once_where_nothing_is_saved():
    training = Counting(interrupt_at=2)
    with pytest.raises(KeyboardInterrupt):
        drive(training, Clock(None))
    assert training.measured == 0


def test_states_are_saved_so_many_seconds_apart_and_tell_the_time(now):
    class Slow(Counting):
        def advance(self):
            now.time += 10
            return super().advance()

    states = []
    drive(Slow(12), Clock(None, earlier=5.0), save=lambda s: states.append(s[1]), save_every=50)
    assert [(s["step"], s["seconds"]) for s in states] == [(6, 65.0), (12, 125.0)]


def test_time_ends_it(now):
    class Slow(Counting):
        def advance(self):
            now.time += 10
            return super().advance()

    training, clock = Slow(100), Clock(40.0)
    assert drive(training, clock) == "time limit"
    assert (training.step, training.measured) == (4, 4)
    assert (clock.seconds, clock.left) == (40.0, 0.0)


def test_the_share_of_the_time_by_hand(now):
    clock = Clock(100.0, earlier=20.0)
    assert clock.share() == 0
    now.time += 40  # half of the 80 seconds that are left
    assert clock.share() == pytest.approx(0.5)
    clock.reserved = 0.1  # of 100 seconds 10 are kept, so that 30 are left for the other half
    clock.go_on(0.5)
    now.time += 15
    assert clock.share() == pytest.approx(0.75)
    now.time += 99
    assert clock.share() == 1


def test_without_a_limit_no_share_of_the_time_is_ever_over(now):
    clock = Clock(None)
    now.time += 1e6
    assert (clock.share(), clock.left) == (0.0, float("inf"))
