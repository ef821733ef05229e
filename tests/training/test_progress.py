"""The line that tells how a training goes."""

import io
from types import SimpleNamespace

import pytest
from tests.support.patients import QUICK, classifier, patients

from askwise import FamilyConfig, StackConfig
from askwise.core.measures import Measure
from askwise.training import progress as module
from askwise.training.progress import Progress, duration
from askwise.training.result import InterimMeasurement


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A clock that is set by hand, and what was written."""
    now = SimpleNamespace(time=100.0, err=io.StringIO())
    monkeypatch.setattr(module.time, "monotonic", lambda: now.time)
    monkeypatch.setattr(module, "sys", now)
    now.stderr = now.err
    return now


def record(step: int, accuracy: float = 0.931, cost: float = 14.2, steps: int = 1000) -> InterimMeasurement:
    return InterimMeasurement(step, step / steps, 0.1, None, Measure(cost, 1 - accuracy, accuracy, 100))


def test_with_a_limit_the_line_says_how_much_of_it_is_over(clock: SimpleNamespace) -> None:
    progress = Progress(60, "dollars")
    progress.begin(1, None)
    for seconds in (12, 15, 25):
        clock.time = 100.0 + seconds
        progress(record(10 * seconds))
    progress.end()
    assert clock.err.getvalue().splitlines() == [
        "12 s of about 1 min 00 s: right in 93.1 % of held-out cases at a mean cost of 14.20 dollars",
        "25 s of about 1 min 00 s: right in 93.1 % of held-out cases at a mean cost of 14.20 dollars",
    ]


def test_without_one_it_is_guessed_from_what_is_done(clock: SimpleNamespace) -> None:
    progress = Progress()
    progress.begin(1, None)
    clock.time += 30
    progress(record(250))
    assert clock.err.getvalue().startswith("30 s of about 2 min 00 s: right in")


def test_a_resumed_one_is_guessed_from_its_own_pace(clock: SimpleNamespace) -> None:
    progress = Progress()
    progress.begin(1, 50.0)
    for step in (500, 600):
        clock.time += 10
        progress(record(step))
    assert [line.split(":")[0] for line in clock.err.getvalue().splitlines()] == ["1 min 00 s", "1 min 10 s of about 1 min 50 s"]


def test_several_trainings_are_counted(clock: SimpleNamespace) -> None:
    progress = Progress(20)
    progress.begin(2, None)
    for step in (5, 10, 5):
        clock.time += 10
        progress(record(step))
    said = clock.err.getvalue().splitlines()
    assert [line.split(":")[0] for line in said] == [
        "training 1 of 2, 10 s of about 20 s", "training 1 of 2, 20 s of about 20 s", "training 2 of 2, 0 s of about 20 s",
    ]  # fmt: skip


def test_on_a_terminal_it_is_one_line_that_fits(clock: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> None:
    clock.err = clock.stderr = Terminal()
    monkeypatch.setenv("COLUMNS", "60")
    progress = Progress(60, "\x1b[31m")
    progress.begin(1, None)
    for step in (1, 2):
        clock.time += 1
        progress(record(step, 0.5))
    progress.end()
    shown = clock.err.getvalue()
    assert shown.count("\n") == 1
    assert [len(part) for part in shown.rstrip("\n").split("\r")] == [0, 59, 59]
    assert "\x1b" not in shown


@pytest.mark.parametrize("settings", [
    {"algorithm": "paper", "config": QUICK}, {"algorithm": "family", "config": FamilyConfig(max_steps=200, width=16)},
], ids=["paper", "family"])  # fmt: skip
def test_both_algorithms_tell_time_accuracy_and_cost(settings: dict, clock: SimpleNamespace) -> None:
    classifier(verbose=1, unit="€", **settings).fit(*patients(120, holes=False))
    said = [line for line in clock.err.getvalue().splitlines() if "learning the classes" not in line]
    assert len(said) > 1
    for line in said:
        assert line.startswith("0 s of about 0 s: right in ")
        assert "held-out cases at a mean cost of " in line
        assert line.endswith(" €")  # how many steps that were says nothing to a user


def test_a_stack_says_what_it_is_doing_before_it_can_be_measured(clock: SimpleNamespace) -> None:
    classifier(verbose=1, algorithm="stack", config=StackConfig.quick().but(value_steps=20, network_steps=20)).fit(
        *patients(120, holes=False)
    )
    said = clock.err.getvalue().splitlines()
    assert said[0] == "0 s: looking for an order of the tests"
    assert "0 s: learning the classes from any set of tests, 1 of 2 parts are done" in said
    assert any("held-out cases at a mean cost of " in line for line in said)
    assert said[-1] == "0 s: measuring policies on held-out cases"


@pytest.mark.parametrize(("seconds", "words"), [(0.4, "0 s"), (59, "59 s"), (200, "3 min 20 s"), (7500, "2 h 05 min")])
def test_durations(seconds: float, words: str) -> None:
    assert duration(seconds) == words
