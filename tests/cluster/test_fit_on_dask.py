"""Members of a stack fitted on a real Dask cluster of two worker processes, of which one is killed while it fits."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from contextlib import closing

import numpy as np
import pytest
from tests.support.commands import run as command
from tests.support.members import QUICK, all_members, problem_of, same_members, trainer_of
from tests.support.patients import patients
from tests.support.workers import two_workers

from askwise import CostlyClassifier, load
from askwise.components.packing import from_bytes
from askwise.errors import InputError
from askwise.stack import engines
from askwise.stack.engines import OnCluster, fitted_on_worker
from askwise.stack.members import MemberTask, MemberTime
from askwise.stack.run import run

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask's own about processes that die, which is what is tried here
SLOW = QUICK.but(states_per_row=200, tree_rounds=400, leaves=63, most_trees=10_000)  # some seconds for each member


@pytest.fixture(scope="module")
def cluster():
    with two_workers() as started:
        yield started


@pytest.fixture
def engine(cluster):
    return f"dask://{cluster.scheduler_address.removeprefix('tcp://')}"


@pytest.fixture
def nowhere_else(monkeypatch):
    """No member is fitted in this process."""

    def fit(*_):
        raise AssertionError("it was fitted here")

    monkeypatch.setattr(MemberTask, "fit", fit)


def test_a_worker_that_is_killed_in_mid_fit_changes_nothing(cluster, engine):
    problem = problem_of(240)
    killed: list[int] = []

    def kill() -> None:
        """A worker that has been at a member for a while."""
        with distributed.Client(cluster) as client:
            ends = time.monotonic() + 120
            while time.monotonic() < ends and not killed:
                busy = [address for address, jobs in client.processing().items() if any("_call" in str(job) for job in jobs)]
                pids = client.run(os.getpid)
                children = {address: client.run(children_of, workers=[address])[address] for address in busy}
                for address, others in children.items():
                    if others:  # the process that fits the member has begun
                        time.sleep(1)
                        killed.append(pids[address])
                        os.kill(pids[address], signal.SIGKILL)
                        break
                time.sleep(0.05)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with closing(OnCluster(engine, 1, MemberTime())) as fitting:
        members = all_members(trainer_of(problem, SLOW, fitting=fitting))
    killer.join(10)
    assert killed
    assert same_members(members, all_members(trainer_of(problem, SLOW)))


def children_of() -> list[int]:
    import psutil

    return [child.pid for child in psutil.Process().children()]


def test_a_training_on_a_cluster_is_the_same_training(engine, nowhere_else, monkeypatch):
    problem, validation, states, measurements = problem_of(120), problem_of(60, 1), [], []
    there = run(problem, validation, None, QUICK, 3, engine=engine, save=states.append, callback=measurements.append)
    monkeypatch.undo()
    here = run(problem, validation, None, QUICK, 3)
    again = run(problem, validation, None, QUICK, 3, engine="dask://127.0.0.1:1", resume=states[0])  # nothing is left for it
    assert measurements
    for other in (there, again):
        assert all(np.array_equal(other.shared.weights[name], value) for name, value in here.shared.weights.items())


def test_time_is_kept_on_a_cluster(engine, nowhere_else):
    result = run(problem_of(300), problem_of(100, 1), None, None, 0, time_limit=4.0, engine=engine)
    assert result.seconds < 60


def test_fit_on_the_command_line_uses_the_cluster(tmp_path, engine, nowhere_else):
    X, y = patients(120)
    X.assign(diagnosis=y).to_csv(tmp_path / "cases.csv", index=False)
    words = ["fit", tmp_path / "cases.csv", "--target", "diagnosis", "--algorithm", "stack", "--time-limit", "6s", "--quiet"]
    code, out, err = command(*words, "--out", tmp_path / "m.askwise", "--engine", engine)
    assert (code, err) == (0, "")
    assert "written" in out
    assert load(tmp_path / "m.askwise").facts["algorithm"] == "stack"


def test_what_goes_wrong_on_a_worker_is_told_in_a_sentence(engine, monkeypatch):
    monkeypatch.setattr(engines, "IMPORTS", ("askwise.there_is_no_such_module",))
    monkeypatch.setattr(MemberTask, "pack", lambda self: b"no task")
    with (
        pytest.raises(InputError, match=r"^member \d of 4 could not be fitted on the cluster: HelperError: .*"),
        closing(OnCluster(engine, 1, MemberTime())) as fitting,
    ):
        all_members(trainer_of(problem_of(), fitting=fitting))


def test_nothing_goes_on_for_a_fit_that_was_given_up(cluster, engine):
    fitting = OnCluster(engine, 1, MemberTime())
    fitting(trainer_of(problem_of(240), SLOW).task, [0, 1])
    fitting.close()
    assert fitting.futures == {}
    with distributed.Client(cluster) as client:  # Dask forgets what nobody waits for
        ends = time.monotonic() + 60
        while any(client.processing().values()):
            assert time.monotonic() < ends
            time.sleep(0.1)


def test_a_worker_keeps_its_helper_for_the_next_member(tmp_path, monkeypatch):
    monkeypatch.setattr(engines, "_idle", queue.SimpleQueue())
    task = trainer_of(problem_of()).task
    (tmp_path / "task").write_bytes(task.pack())
    for k in (0, 1):
        fitted = from_bytes(fitted_on_worker(tmp_path / "task", k, 60))
        assert same_members([fitted], [task.fit(k, 60)])
    helper = engines._idle.get_nowait()
    assert engines._idle.empty()
    helper.close()
    engines._idle.put(helper)  # it died while it waited
    assert engines._alive() is None


def test_a_cluster_that_is_not_there_is_told(monkeypatch):
    monkeypatch.setattr("askwise.cluster.PATIENCE", 0.3)
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    with pytest.raises(InputError, match=r"^no Dask scheduler answers at 127.0.0.1:1"):
        CostlyClassifier(algorithm="stack", config=QUICK, engine="dask://127.0.0.1:1").fit(X, y)
    monkeypatch.setattr("askwise.cluster.PATIENCE", 3)
    with distributed.LocalCluster(n_workers=0, processes=True, dashboard_address=None, silence_logs=50) as empty:
        engine = f"dask://{empty.scheduler_address.removeprefix('tcp://')}"
        with pytest.raises(InputError, match="has no workers; start some"):
            CostlyClassifier(algorithm="stack", config=QUICK, engine=engine).fit(X, y)


def test_that_a_script_needs_a_guard_for_a_cluster_of_its_own_is_told(tmp_path):
    words = "import numpy as np\nfrom askwise import CostlyClassifier\nX, y = np.random.rand(60, 2), np.arange(60) % 2\n"
    (tmp_path / "script.py").write_text(f"{words}CostlyClassifier(algorithm='stack', engine='dask', n_jobs=1).fit(X, y)\n")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "a script that starts one needs `if __name__ == '__main__':` around what it does" in done.stderr.splitlines()[-1]


def test_that_there_is_no_dask_is_told(monkeypatch):
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(InputError, match=r"^the engine 'dask' needs Dask; install 'askwise\[bench\]'$"):
        CostlyClassifier(algorithm="stack", config=QUICK, engine="dask").fit(X, y)
