"""A time limit is kept however slow the machine is, and a fit says how far it came. The clock is mostly not a real one."""

import math
from dataclasses import replace

import numpy as np
import pytest
from tests.support import members as support
from tests.support.patients import patients

from askwise import CostlyClassifier
from askwise.cli import main
from askwise.components.boosting import boost
from askwise.errors import Doubt
from askwise.stack.belief import StackedBelief
from askwise.stack.engines import Helped
from askwise.stack.learners import fit_linear
from askwise.stack.members import NO_LIMIT, MemberTime
from askwise.stack.plan import SHARES, TimePlan, cut_short, reached
from askwise.stack.run import StackTraining, run
from askwise.training.driver import Clock

QUICK = support.QUICK.but(value_steps=40, folds=3, value_width=8)


class FakeTime:
    """Looking at it takes a little time; all else takes what it is told."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        self.now += 1e-4
        return self.now


@pytest.fixture
def clock(monkeypatch):
    fake = FakeTime()
    monkeypatch.setattr("time.monotonic", fake)
    return fake


def slowed(monkeypatch, fake, name, seconds):
    """Each call of this takes so long."""
    module, function = name.rsplit(".", 1)
    original = getattr(__import__("importlib").import_module(module), function)

    def slow(*args, **more):
        fake.now += seconds
        return original(*args, **more)

    monkeypatch.setattr(name, slow)


def slow_beliefs(monkeypatch, fake, seconds, per_row):
    original = StackedBelief.logits

    def slow(self, values, mask):
        fake.now += seconds + per_row * len(mask)
        return original(self, values, mask)

    monkeypatch.setattr(StackedBelief, "logits", slow)


# ---------------------------------------------------------------------- the plan


def test_parts_that_keep_to_their_time_leave_what_is_kept_for_measuring(clock):
    plan = TimePlan(Clock(100.0))
    for part in list(SHARES)[:-1]:
        seconds = plan.seconds(part)
        assert seconds == pytest.approx(100 * SHARES[part], rel=0.01)
        clock.now += seconds
    assert plan.clock.left == pytest.approx(100 * SHARES["measuring"], rel=0.01)


def test_what_takes_too_long_is_spread_over_what_follows(clock):
    plan = TimePlan(Clock(100.0))
    clock.now += 60
    assert plan.seconds("members") < 0.5 * 100 * SHARES["members"]
    clock.now += 60
    assert plan.seconds("members") == plan.seconds("values") == 0


def test_time_that_was_not_needed_is_for_what_follows(clock):
    plan = TimePlan(Clock(100.0))
    assert plan.seconds("values") > 2 * 100 * SHARES["values"]


def test_slow_measurements_are_given_more_time(clock):
    plan = TimePlan(Clock(100.0))
    before = plan.seconds("values")
    plan.interim = 1.5
    assert plan.seconds("values") < before
    assert plan.reserved == pytest.approx(0.45)
    plan.interim = 1000.0
    assert plan.seconds("values") > 0


def test_without_a_limit_all_parts_have_all_time():
    assert {TimePlan(Clock(None)).seconds(part) for part in SHARES} == {math.inf}


def test_values_of_a_resumed_training_go_on_where_they_were(clock):
    trainer = support.trainer_of(support.problem_of(), QUICK)
    trainer.done = 0.5
    training = StackTraining(trainer, trainer.problem, Clock(100.0, earlier=50.0), lambda doing: None)
    assert training._done() == pytest.approx(0.5, abs=0.01)
    clock.now += training.values_begin[2] / 2
    assert training._done() == pytest.approx(0.75, abs=0.01)


def test_members_are_given_time_for_as_many_processes_as_there_are(clock):
    """Helpers that have not started yet do not count."""
    fitting = Helped(2, MemberTime(lambda: 12.0))
    fitting.todo = [0, 1, 2, 3]
    assert fitting._next()[1] == pytest.approx(3, rel=0.01)
    fitting.working = 2
    assert fitting._next()[1] == pytest.approx(6, rel=0.01)


# ---------------------------------------------------------------------- its parts


def test_a_linear_model_ends_in_time(clock, monkeypatch):
    trainer = support.trainer_of(support.problem_of())
    rows = trainer.folds.learned(0)
    whole, share = fit_linear(trainer.maker, rows, QUICK, 0, NO_LIMIT)
    assert share == 1
    slowed(monkeypatch, clock, "torch.nn.functional.cross_entropy", 1.0)
    began = clock.now
    short, share = fit_linear(trainer.maker, rows, QUICK, 0, 8.0)
    assert 0 < share < 1
    assert clock.now - began < 10
    assert 0.1 < np.corrcoef(short["main"].reshape(-1), whole["main"].reshape(-1))[0, 1] < 1
    again, share = fit_linear(trainer.maker, rows, QUICK, 0, 1000.0)
    assert share == 1
    assert all(np.array_equal(again[name], whole[name]) for name in whole)  # time that is not needed changes nothing


def test_boosting_says_how_much_of_its_rounds_it_had_time_for(clock):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    part = X, (X[:, 0] > 0).astype(int), np.ones(300)
    short = boost(part, part, 2, seconds=1e-9, seed=0, threads=1, rounds=100)
    assert short.reached == pytest.approx(0.1)
    assert boost(part, part, 2, seconds=60, seed=0, threads=1, rounds=15).reached == 1


@pytest.mark.parametrize(("limit", "each"), [(40.0, 0.05), (40.0, 0.2), (10.0, 0.02)])
def test_a_slow_machine_ends_in_time_and_says_so(clock, monkeypatch, limit, each):
    """Whatever is slow: the losses that learners and weights compute, beliefs, and the steps of the value heads."""
    slowed(monkeypatch, clock, "torch.nn.functional.cross_entropy", each)
    slowed(monkeypatch, clock, "askwise.stack.train.soft_update", 40 * each)
    slow_beliefs(monkeypatch, clock, each / 20, each / 2000)
    result = run(support.problem_of(150), support.problem_of(50, 1), None, QUICK, 0, time_limit=limit)
    assert result.seconds < 1.1 * limit + 2
    assert result.stopped == "time limit"
    assert result.doubt.startswith("the training reached ")


def test_classes_are_counted_however_short_the_time(clock):
    result = run(support.problem_of(150), support.problem_of(50, 1), None, QUICK, 0, time_limit=0.01)
    assert result.targeted
    assert {point.class_weights for point in result.targeted} == {None}


def test_a_complete_training_says_so_whatever_its_limit(clock):
    result = run(support.problem_of(90), support.problem_of(30, 1), None, QUICK, 0, time_limit=6000.0)
    assert result.stopped == "end of the schedule"
    assert result.doubt == ""


def test_reports_are_about_the_rows_that_were_measured(clock, monkeypatch):
    """More would take time that there is not."""
    slow_beliefs(monkeypatch, clock, 0.01, 1e-3)
    result = run(support.problem_of(400), support.problem_of(200, 1), None, QUICK, 0, time_limit=30.0)
    n = result.points[-1].measure.n
    assert n < 600
    began = clock.now
    assert len(result.held_out(result.points[-1], None).truth) == n
    assert clock.now - began < 1


# ---------------------------------------------------------------------- what is said of it


def test_a_training_that_was_cut_short_says_how_much_time_it_needs():
    whole, half = np.ones(3, np.float32), np.array([1, 0.5, 0.5], np.float32)
    assert reached([whole, whole], 1.0) == 1
    assert cut_short([whole], 1.0, 40.0) == cut_short([half], 0.9, 40.0) == cut_short([half], 0.1, None) == ""
    assert cut_short([half, half], 0.25, 40.0) == (
        "the training reached 52 % of its schedule within 40 s; with about 2 min 40 s it would be complete"
    )
    for learners, values in ((half / 2, 0.0), (half / 100, 0.5)):  # too little to tell the pace by
        assert cut_short([learners], values, 40.0).endswith(
            " % of its schedule within 40 s; without a limit it would be complete"
        )


def test_whoever_fits_is_warned_once():
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) % 2
    slow = replace(QUICK, network_steps=10**6, value_steps=10**6)
    with pytest.warns(Doubt, match="the training reached .* of its schedule") as caught:
        fitted = CostlyClassifier([1, 1, 1], algorithm="stack", config=slow, time_limit=1, random_state=0).fit(X, y)
    assert len([w for w in caught if "schedule" in str(w.message)]) == 1
    assert fitted.model_.facts["stopped"] == "time limit"


def test_the_command_line_says_it_in_one_line(tmp_path, capsys):
    X, y = patients(60)
    X.assign(diagnosis=y).to_csv(tmp_path / "cases.csv", index=False)
    words = ["--target", "diagnosis", "--algorithm", "stack", "--time-limit", "0.01", "--quiet", "--out", str(tmp_path / "m")]
    assert main(["fit", str(tmp_path / "cases.csv"), *words]) == 0
    err = capsys.readouterr().err
    assert err.startswith("askwise: the training reached ")
    assert err.count("\n") == 1
