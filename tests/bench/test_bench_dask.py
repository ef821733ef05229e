"""The same plan on a real Dask cluster of several worker processes, of which one is killed while it works."""

import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest
from tests.support.commands import run
from tests.support.workers import two_workers

from askwise.bench import rows

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.filterwarnings("ignore")  # of Dask's own about processes that die, which is what is tried here
METHOD, SEEDS = "tests.support.quick_method", 9


@pytest.fixture(scope="module")
def cluster():
    with two_workers() as started:
        yield started


def test_a_killed_worker_loses_no_row(tmp_path: Path, cluster) -> None:
    (tmp_path / "marks").mkdir()
    options = f"{{marks = {json.dumps(str(tmp_path / 'marks'))}, nap = 0.5}}"
    (tmp_path / "p.toml").write_text(
        f'minutes = 0.01\nseeds = {SEEDS}\ndata = ["digits"]\nmethods = [{{name = "{METHOD}", options = {options}}}]\n'
    )
    with distributed.Client(cluster) as client:
        pids = client.run(os.getpid)
    killed = []

    def kill() -> None:
        """One worker, as soon as each of them has had the time to begin."""
        while len(list((tmp_path / "marks").iterdir())) < 3:
            time.sleep(0.02)
        killed.append(next(iter(pids.values())))
        os.kill(killed[0], signal.SIGKILL)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    address = cluster.scheduler_address.removeprefix("tcp://")
    code, out, err = run("bench", tmp_path / "p.toml", "--engine", f"dask://{address}")
    killer.join(10)
    assert killed
    assert (code, err) == (0, "")
    found = rows.read(tmp_path / "p.jsonl")
    assert sorted(r["task"]["seed"] for r in found) == list(range(SEEDS))  # each once
    assert {r["status"] for r in found} == {"done"}
    assert len({tuple(r["resampled"]) for r in found}) == SEEDS  # each seed had its own data
    assert f"[{SEEDS}/{SEEDS}]" in out


def test_a_scheduler_that_is_not_there_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr("askwise.cluster.PATIENCE", 0.3)
    (tmp_path / "p.toml").write_text('minutes = 0.01\ndata = ["wine"]\nmethods = ["random"]\n')
    code, _, err = run("bench", tmp_path / "p.toml", "--engine", "dask://127.0.0.1:1")
    assert code == 2
    assert err.startswith("askwise: no Dask scheduler answers at 127.0.0.1:1")
    assert err.count("\n") == 1
    monkeypatch.setitem(sys.modules, "distributed", None)
    code, _, err = run("bench", tmp_path / "p.toml", "--engine", "dask")
    assert (code, err) == (2, "askwise: the engine 'dask' needs Dask; install 'askwise[bench]'\n")
