"""Members of a stack are the same wherever they are fitted: here, by helpers beside, or by others where a helper was killed."""

import math
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import numpy as np
import psutil
import pytest
import torch
from tests.support.commands import run as command
from tests.support.members import QUICK, all_members, problem_of, same_members, trainer_of

from askwise import CostlyClassifier
from askwise.core.cost_spec import CostSpec
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError
from askwise.methods import stack as method
from askwise.processes import Helper, HelperError
from askwise.stack import engines
from askwise.stack.engines import Helped, OnCluster, fitted_as_bytes, member_fitting
from askwise.stack.members import MemberTask, MemberTime, OneByOne
from askwise.stack.run import run


@pytest.fixture(scope="module")
def expected():
    return all_members(trainer_of(problem_of()))


@pytest.fixture
def meeting(monkeypatch):
    """Members are fitted here only once a helper has begun one, so that both take part however slowly a helper starts."""
    begun, helpers = threading.Event(), []
    asked, fit = Helper.run, MemberTask.fit

    def ask(self, *arguments):
        helpers.append(self)
        begun.set()
        return asked(self, *arguments)

    def fit_later(self, *arguments):
        assert begun.wait(120)
        return fit(self, *arguments)

    monkeypatch.setattr(Helper, "run", ask)
    monkeypatch.setattr(MemberTask, "fit", fit_later)
    return helpers


def odd_problem():
    """Set-ups, a derived test, a vector test, missing values, known tests, weights, an existing classifier and losses."""
    rng, n = np.random.default_rng(0), 120
    columns, classes = ["a", "b", "v1", "v2", "d"], ["no", "yes"]
    spec = CostSpec({"a": "0.5", "b": 2, "v": 3, "d": "0.1"}, {"visit": (1, ["a", "b"])}, {"d": ["a", "b"]}, {"v": ["v1", "v2"]})
    schema = Schema.build(columns, classes, spec, external_needs=["a"])
    X = rng.normal(size=(n, 5))
    y = np.where(X[:, 0] + X[:, 2] > 0, "yes", "no")
    X[rng.random(X.shape) < 0.1] = np.nan
    return Problem.build(
        schema,
        X,
        y,
        known=["b"],
        loss=[[0, 1], [5, 0]],
        weight=rng.random(n) + 0.5,
        external=y,
        ids=[f"case {i}" for i in range(n)],
    )


@pytest.mark.parametrize("problem", [problem_of(), odd_problem()], ids=["plain", "odd"])
def test_a_task_that_is_packed_and_unpacked_comes_to_the_same(problem, tmp_path):
    lacking = np.linspace(0, 0.3, problem.schema.n_tests)
    task = trainer_of(problem, lacking=lacking).task
    (tmp_path / "task").write_bytes(task.pack())
    again = MemberTask.unpack(tmp_path / "task")
    assert same_members([again.fit(1, 60)], [task.fit(1, 60)])
    from askwise.components.packing import from_bytes

    assert same_members([from_bytes(fitted_as_bytes(str(tmp_path / "task"), 1, 60))], [task.fit(1, 60)])


def test_a_member_does_not_depend_on_torchs_threads_and_random_numbers():
    before, expected = torch.get_num_threads(), trainer_of(problem_of()).task.fit(2, 60)
    try:
        torch.set_num_threads(before + 1)
        torch.manual_seed(5)
        assert same_members([trainer_of(problem_of()).task.fit(2, 60)], [expected])
        assert torch.get_num_threads() == before + 1
    finally:
        torch.set_num_threads(before)


def test_members_that_helpers_fit_are_the_same(expected, meeting):
    with closing(Helped(2, MemberTime())) as fitting:
        members = all_members(trainer_of(problem_of(), fitting=fitting))
    assert same_members(members, expected)
    assert meeting  # it took part
    assert all(helper.process.returncode is not None for helper in meeting)


def test_a_helper_that_is_killed_while_it_fits_loses_no_member(expected, meeting, monkeypatch):
    answer, killed = Helper._answer, []

    def killed_meanwhile(self):
        if self.ready:  # it has just got a member
            killed.append(self.process.pid)
            os.kill(self.process.pid, signal.SIGKILL)
        return answer(self)

    monkeypatch.setattr(Helper, "_answer", killed_meanwhile)
    with closing(Helped(3, MemberTime())) as fitting:
        members = all_members(trainer_of(problem_of(), fitting=fitting))
    assert killed
    assert same_members(members, expected)


@pytest.mark.parametrize("program", ["/nowhere/python", "/bin/false"])
def test_without_helpers_members_are_fitted_here(expected, monkeypatch, program):
    monkeypatch.setattr(sys, "executable", program)
    with closing(Helped(2, MemberTime())) as fitting:
        assert same_members(all_members(trainer_of(problem_of(), fitting=fitting)), expected)


def test_helpers_are_not_started_for_what_takes_a_moment(expected, monkeypatch):
    monkeypatch.setattr(engines, "Helper", None)  # starting one would fail
    with closing(Helped(2, MemberTime(), after=60)) as fitting:
        assert same_members(all_members(trainer_of(problem_of(), fitting=fitting)), expected)
    slow = Helped(2, MemberTime(), after=3)
    for seconds, done, left, pays in [(3, 0, 4, True), (3, 3, 2, False), (3, 1, 3, True), (9, 1, 0, False)]:
        slow.began, slow.done_here, slow.todo = time.monotonic() - seconds, done, list(range(left))
        assert slow._pays() == pays


def test_an_error_of_a_member_is_told_here_and_helpers_end(meeting, monkeypatch):
    def fail(self, *arguments):
        while not meeting:
            time.sleep(0.01)
        raise InputError("this member cannot be fitted")

    monkeypatch.setattr(MemberTask, "fit", fail)
    with pytest.raises(InputError, match="cannot be fitted"), closing(Helped(2, MemberTime())) as fitting:
        all_members(trainer_of(problem_of(), fitting=fitting))
    assert all(helper.process.returncode is not None for helper in meeting)


def test_errors_of_a_helper_are_told_with_their_reason(tmp_path):
    helper = Helper("askwise.stack.engines")
    try:
        with pytest.raises(HelperError, match="FileNotFoundError"):
            helper.run(fitted_as_bytes, str(tmp_path / "none"), 0, 1)
        with pytest.raises(HelperError, match="FileNotFoundError"):  # it goes on with the next
            helper.run(fitted_as_bytes, str(tmp_path / "none"), 0, 1)
        helper.kill()
        with pytest.raises(HelperError, match="has died"):
            helper.run(fitted_as_bytes, str(tmp_path / "none"), 0, 1)
    finally:
        helper.close()
    helper = Helper("askwise.there_is_no_such_module")
    with pytest.raises(HelperError, match="has died"):
        helper.wait()
    helper.close()


# ---------------------------------------------------------------------- time, checkpoints, numbers of processes


def test_time_is_shared_out_to_the_members_that_are_left(monkeypatch):
    now = [100.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    seconds = MemberTime(lambda: 12)
    assert seconds(5, 2) == 4  # three rounds
    now[0] += 4
    assert seconds(3, 2) == 4
    now[0] += 6  # they took longer
    assert seconds(1, 2) == 2
    now[0] += 6
    assert seconds(1, 2) == 0
    assert 0 < MemberTime()(5, 2) < math.inf


def test_members_that_are_ready_before_their_turn_are_saved(expected):
    """As if helpers had finished 2 and 3, and 0 here."""
    trainer = trainer_of(problem_of(), fitting=lambda task, missing: {k: task.fit(k, 60) for k in (0, 2, 3)})
    trainer.advance()
    assert (len(trainer.members), sorted(trainer.early), trainer.missing) == (1, [2, 3], [1])
    again = trainer_of(problem_of())
    again.load(*trainer.state())
    assert (len(again.members), sorted(again.early), again.missing) == (1, [2, 3], [1])
    assert same_members(all_members(again), expected)


def test_a_training_with_helpers_is_the_same_training_and_goes_on_from_its_states(meeting):
    problem, validation, states, told = problem_of(120), problem_of(60, 1), [], []
    helped = run(problem, validation, None, QUICK, 3, n_jobs=2, save=states.append, callback=told.append)
    again = run(problem, validation, None, QUICK, 3, n_jobs=2, resume=states[0])
    whole = run(problem, validation, None, QUICK, 3)
    assert meeting
    assert told
    for other in (helped, again):
        assert all(np.array_equal(other.shared.weights[name], value) for name, value in whole.shared.weights.items())
        assert [p.shown for p in other.points] == [p.shown for p in whole.points]


def test_ctrl_c_while_helpers_work_leaves_a_state_to_go_on_from(meeting, monkeypatch):
    problem, validation, states = problem_of(120), problem_of(60, 1), []
    fit = MemberTask.fit

    def interrupted(self, *arguments):
        fitted = fit(self, *arguments)
        signal.raise_signal(signal.SIGINT)
        return fitted

    monkeypatch.setattr(MemberTask, "fit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(problem, validation, None, QUICK, 3, n_jobs=2, save=states.append)
    assert all(helper.process.returncode is not None for helper in meeting)
    monkeypatch.setattr(MemberTask, "fit", fit)
    assert states[-1][1]["members"] >= 1
    assert states[-1][1]["step"] == 0
    again, whole = (run(problem, validation, None, QUICK, 3, resume=state) for state in (states[-1], None))
    assert all(np.array_equal(again.shared.weights[name], value) for name, value in whole.shared.weights.items())


def test_which_way_to_fit_an_engine_and_a_number_stand_for(monkeypatch):
    monkeypatch.setattr("askwise.processes.cores", lambda: 8)
    monkeypatch.setattr("askwise.stack.engines.jobs_of", lambda n: {None: 3, -1: 8}.get(n, n))
    assert isinstance(member_fitting("local", 1, MemberTime()), OneByOne)
    for n_jobs, jobs, after in ((None, 3, 3.0), (2, 2, 0.0), (-1, 8, 0.0)):
        fitting = member_fitting("local", n_jobs, MemberTime())
        assert (fitting.jobs, fitting.after) == (jobs, after)
    assert isinstance(member_fitting("dask", 1, MemberTime()), OnCluster)


# ---------------------------------------------------------------------- as users meet it

SCRIPT = """
import sys, numpy as np
from askwise import CostlyClassifier, StackConfig
config = StackConfig(value_steps=20, tree_rounds={rounds}, states_per_row={states}, pool_states=400, growths=1, folds=4)
rng = np.random.default_rng(0)
X = rng.normal(size=(300, 6))
y = (X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=300) > 0).astype(int)
print("begins", flush=True)
fitted = CostlyClassifier(algorithm="stack", config=config, random_state=0, n_jobs=2).fit(X, y)
print(fitted.model_.fingerprint)
"""


def test_a_script_without_a_guard_can_use_helpers(tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT.format(rounds=20, states=4))
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.count("begins") == 1  # nobody else has run it
    assert len(done.stdout.split()) == 2
    assert done.stderr == ""


def test_helpers_end_when_the_program_is_killed():
    long = SCRIPT.format(rounds=200, states=400)
    with subprocess.Popen([sys.executable, "-c", long], stdout=subprocess.DEVNULL) as program:
        helpers, ends = [], time.monotonic() + 120
        while not helpers and time.monotonic() < ends:
            assert program.poll() is None
            helpers = psutil.Process(program.pid).children(recursive=True)
            time.sleep(0.05)
        assert helpers
        program.kill()
    gone, alive = psutil.wait_procs(helpers, timeout=60)
    assert (len(gone), alive) == (len(helpers), [])


@pytest.mark.parametrize(
    ("parameters", "words"),
    [
        ({"n_jobs": 0}, "n_jobs is 0; it must be 1 or more, -1 for one on each core, or None for as many as pay"),
        ({"n_jobs": "two"}, "n_jobs is 'two'; it must be 1 or more"),
        ({"n_jobs": -2}, "n_jobs is -2; it must be 1 or more"),
        ({"engine": "spark"}, "the engine is 'spark'; it must be 'local', 'dask' for a cluster on this machine"),
        ({"engine": 3}, "the engine is 3; it must be 'local'"),
        ({"engine": "dask", "algorithm": "paper"}, "algorithm 'paper' learns in one process; leave the engine out"),
    ],
)
def test_wrong_words_are_told_before_anything_is_learned(parameters, words):
    X, y = np.zeros((10, 2)), np.arange(10) % 2
    with pytest.raises(InputError, match=words):
        CostlyClassifier(**{"algorithm": "stack", **parameters}).fit(X, y)


def test_other_algorithms_take_n_jobs_and_do_without(frame):
    from tests.support.patients import PRICES, classifier

    X, y = frame
    one, two = (classifier(**PRICES, n_jobs=n).fit(X[:60], y[:60]) for n in (1, 2))
    assert one.model_.fingerprint == two.model_.fingerprint


def test_a_bench_with_two_threads_has_one_helper(meeting):
    problem, validation = problem_of(120), problem_of(60, 1)
    settings = {name: getattr(QUICK, name) for name in ("tree_rounds", "leaves", "states_per_row", "pool_states", "folds")}
    two, one = (method.points(problem, validation, seconds=60, steps=20, threads=n, **settings) for n in (2, 1))
    assert len({helper.process.pid for helper in meeting}) == 1
    assert [policy.measured for policy in two] == [policy.measured for policy in one]


def test_processes_on_the_command_line(tmp_path, frame):
    X, y = frame
    X.assign(diagnosis=y).to_csv(tmp_path / "cases.csv", index=False)
    words = ["fit", tmp_path / "cases.csv", "--target", "diagnosis", "--out", tmp_path / "m.askwise"]
    assert command(*words, "--processes", "0") == (2, "", "askwise: --processes is 0; it must be 1 or more\n")
    code, _, err = command(*words, "--algorithm", "stack", "--engine", "dusk")
    assert (code, err.count("\n")) == (2, 1)
    assert err.startswith("askwise: the engine is 'dusk'; it must be 'local'")
    code, _, err = command(*words, "--algorithm", "paper", "--engine", "dask")
    assert (code, err) == (
        2,
        "askwise: the engine is 'dask', but algorithm 'paper' learns in one process; leave the engine out\n",
    )
    code, out, err = command(*words, "--algorithm", "stack", "--processes", "2", "--time-limit", "3s", "--quiet")
    assert (code, err) == (0, "")
    assert "written" in out
