"""`askwise bench` as a whole, with a method that takes no time: what is written, what is never run twice, what a crash leaves."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.support.commands import run

from askwise import methods
from askwise.bench import plan, rows, split_files
from askwise.bench.execution import carried_out, prepared
from askwise.datasets import named
from askwise.errors import InputError

METHOD = "tests.support.quick_method"


def write(folder: Path, **options) -> Path:
    """A plan with the quick method on digits, and where it leaves its marks."""
    (folder / "marks").mkdir(exist_ok=True)
    words = options.pop("plan", "")
    told = ", ".join(f"{name} = {json.dumps(value)}" for name, value in {"marks": str(folder / "marks"), **options}.items())
    path = folder / "p.toml"
    path.write_text(f'minutes = 0.01\ndata = ["digits"]\nmethods = [{{name = "{METHOD}", options = {{{told}}}}}]\n{words}\n')
    return path


def marks(folder: Path) -> list[str]:
    return sorted(p.name.split()[0] for p in (folder / "marks").iterdir())


def wait_for(what, seconds: float = 240) -> None:
    ends = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < ends, "it takes too long"
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        return (Path("/proc") / str(pid) / "stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_every_task_becomes_one_row_and_runs_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, plan='seeds = [0, 1]\nbudgets = ["frontier", {hard = 3}]')
    code, out, err = run("bench", path, "--processes", "1")
    assert (code, err) == (0, "")
    assert "p: 4 tasks, 0 of them finished before, 4 to do" in out
    assert "[4/4] digits quick_method seed 1 hard 3: cost 0, score " in out
    assert marks(tmp_path) == ["0", "0", "1", "1"]
    found = rows.read(path.with_suffix(".jsonl"))
    assert [(r["task"]["seed"], r["task"]["budget"]) for r in found] == [(0, None), (1, None), (0, {"hard": 3}), (1, {"hard": 3})]
    assert {r["status"] for r in found} == {"done"}
    one = found[0]
    assert one["task"] == {
        "data": "digits", "method": METHOD, "label": "quick_method", "seed": 0, "minutes": 0.01, "budget": None, "remove": 0.0,
        "imputation": None, "options": {"marks": str(tmp_path / "marks")},
    }  # fmt: skip
    assert one["area"] == pytest.approx(0.1, abs=0.03)
    assert one["columns"] == ["cost", "loss", "accuracy", "balanced accuracy", "auroc"]
    truth = named.load("digits", 0).test.y
    assert one["test"][1] == [0, *(pytest.approx(v) for v in (1 - np.mean(truth == 1), np.mean(truth == 1), 0.1)), None]
    assert (one["n_test"], one["total"], one["plan"], one["threads"]) == (len(truth), 64, "p", 1)
    assert one["memory_mb"] > 10
    assert {"askwise", "python", "numpy", "torch", "lightgbm"} == set(one["versions"])
    assert found[2]["score"] == pytest.approx(np.mean(truth == 1))
    with path.with_suffix(".jsonl").open("a") as file:
        file.write('{"task": {"data": "dig')  # killed while writing
    monkeypatch.delenv("ASKWISE_DATA", raising=False)  # a set whose file is not there does not stop the others
    path = write(tmp_path, plan='seeds = 3\nbudgets = ["frontier"]')
    path.write_text(path.read_text().replace('["digits"]', '[{name = "mnist", seeds = 1}, "digits"]'))
    code, out, _ = run("bench", path, "--processes", "1")
    assert code == 1
    assert "p: 4 tasks, 2 of them finished before, 2 to do" in out
    assert "mnist quick_method seed 0: failed: " in out
    assert "InputError" not in out  # a whole sentence needs no name
    assert "1 done, 1 failed" in out
    assert marks(tmp_path) == ["0", "0", "1", "1", "2"]
    assert len(rows.read(path.with_suffix(".jsonl"))) == 6


def test_refusals_failures_and_crashes_become_rows(tmp_path: Path) -> None:
    methods = [{"name": METHOD, "label": does, "options": {"does": does}} for does in ("refuse", "fail", "crash")]
    methods += [{"name": METHOD, "label": "long", "kill_after": 0.01, "options": {"nap": 60}},
                {"name": METHOD, "label": "unknown", "options": {"naps": 1}}, {"name": METHOD, "label": "well"}]  # fmt: skip
    tasks = plan.from_dict({"data": ["digits"], "methods": methods, "minutes": 0.01}, tmp_path).tasks
    from askwise.bench.run import fill, left

    out = tmp_path / "rows.jsonl"
    found = {r["task"]["label"]: r for r in fill(out, "p", list(tasks), "local", 1)}
    assert {label: r["status"] for label, r in found.items()} == {
        "refuse": "refused", "fail": "failed", "crash": "failed", "long": "failed", "unknown": "failed", "well": "done",
    }  # fmt: skip
    assert found["refuse"]["why"] == "not for such data"
    assert found["fail"]["why"] == "KeyError: 'nothing\\nmore lines'"
    assert found["crash"]["why"].startswith("its process was ended by SIGKILL")
    assert found["long"]["why"] == "it was not over after 0.01 minutes"
    assert found["unknown"]["why"] == f"method {METHOD!r} has no option 'naps'; it has marks, nap, does, holds"
    assert all({"began", "minutes_taken", "memory_mb", "commit", "versions", "plan"} <= set(r) for r in found.values())
    again = left(plan.Plan("p", tasks), rows.read(out))
    assert [t.label for t in again] == ["fail", "crash", "long", "unknown"]  # what failed is tried again, what was refused is not


@pytest.mark.parametrize(
    ("method", "says"),
    [
        (
            {"name": "nowhere.method"},
            "method 'nowhere.method' is not a module that can be imported here: No module named 'nowhere'",
        ),
        ({"name": "os.path"}, "method 'os.path' has no function 'points'; it must have one"),
        ({"name": "os.path", "budgets": [{"hard": 1}]}, "method 'os.path' has no function 'fit'; it must have one"),
        (
            {"name": "fitting.alone"},
            "method 'fitting.alone' has no function for a whole frontier, only for a budget; give it budgets",
        ),
        ({"name": "breaking.off"}, "SyntaxError: '(' was never closed"),
        ({"name": "random"}, "method 'random' comes from two packages, "),
    ],
)
def test_a_method_that_can_be_repaired_has_failed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, method, says) -> None:
    for name, text in (("fitting/alone.py", "def fit(problem, validation, budget): ..."), ("breaking/off.py", "(")):
        (tmp_path / name).parent.mkdir()
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    twice = [EntryPoint("random", f"{package}.random", methods.GROUP) for package in ("one", "two")]
    monkeypatch.setattr(methods, "entry_points", lambda group, name="": EntryPoints(twice))
    (task,) = plan.from_dict({"data": ["wine"], "methods": [method]}, tmp_path).tasks
    row = carried_out(task, split_files.load(task))
    assert row["status"] == "failed"
    assert row["why"].startswith(says)
    assert not rows.over([row])  # the next run tries again


def test_killed_in_the_middle_it_leaves_no_process_and_goes_on(tmp_path: Path) -> None:
    path, out = write(tmp_path, holds=str(tmp_path / "go on"), plan="seeds = 8"), tmp_path / "p.jsonl"
    command = [sys.executable, "-m", "askwise", "bench", str(path), "--processes", "1"]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    with subprocess.Popen(command, env=here, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as first:
        wait_for(lambda: len(rows.read(out)) == 2 and len(marks(tmp_path)) == 3)  # in the middle of the third task
        second = subprocess.run(command, env=here, capture_output=True, text=True, check=False)  # two at once on one file
        assert second.returncode == 2
        assert "another bench is writing to" in second.stderr
        os.kill(first.pid, signal.SIGKILL)
    pids = [int((tmp_path / "marks" / p).read_text() or 0) for p in os.listdir(tmp_path / "marks")]
    wait_for(lambda: not any(alive(pid) for pid in pids))  # no task outlives whoever started it
    before = [r["task"]["seed"] for r in rows.read(out)]
    assert len(before) == 2
    (tmp_path / "go on").touch()
    code, said, err = run("bench", path, "--processes", "2")
    assert (code, err) == (0, "")
    assert f"8 tasks, {len(before)} of them finished before, {8 - len(before)} to do" in said
    assert sorted(r["task"]["seed"] for r in rows.read(out)) == list(range(8))
    begun = marks(tmp_path)
    assert begun == ["0", "1", "2", "2", "3", "4", "5", "6", "7"]  # only what was running when it was killed is run again


def test_sigterm_leaves_neither_process_nor_file(tmp_path: Path) -> None:
    path, out = write(tmp_path, holds=str(tmp_path / "go on"), plan="seeds = 4"), tmp_path / "p.jsonl"
    (tmp_path / "temporary").mkdir()
    command = [sys.executable, "-m", "askwise", "bench", str(path), "--processes", "1"]
    here = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "TMPDIR": str(tmp_path / "temporary")}
    with subprocess.Popen(command, env=here, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as first:
        wait_for(lambda: len(rows.read(out)) == 2 and len(marks(tmp_path)) == 3)  # in the middle of the third task
        assert list((tmp_path / "temporary").glob("*/*.safetensors"))
        first.terminate()
        _, err = first.communicate(timeout=60)
    assert (first.returncode, err) == (143, "")
    assert list((tmp_path / "temporary").iterdir()) == []
    pids = [int((tmp_path / "marks" / p).read_text() or 0) for p in os.listdir(tmp_path / "marks")]
    wait_for(lambda: not any(alive(pid) for pid in pids))
    assert len(rows.read(out)) == 2


def test_a_split_file_holds_all_of_a_split(tmp_path: Path) -> None:
    for name, weight in (("thyroid", "balanced"), ("digits", None)):  # set-ups, derived tests and gaps; classes that are numbers
        (task,) = plan.from_dict({"data": [name], "methods": ["random"], "class_weight": weight or "none", "seeds": [1],
                             "most_rows": {"train": 300, "validation": 0, "test": 50}}, tmp_path).tasks  # fmt: skip
        parts, whole = split_files.load(task), named.load(name, 1, weight)
        assert [len(p) for p in (parts.train, parts.validation, parts.test)] == [300, len(whole.validation), 50]
        (tmp_path / "split").write_bytes(split_files.pack(parts))
        again = split_files.unpack(tmp_path / "split")
        for part in ("train", "validation", "test"):
            assert getattr(again, part).fingerprint == getattr(parts, part).fingerprint
            assert np.array_equal(getattr(again, part).y, getattr(parts, part).y)


def test_values_are_removed_from_what_is_learned_from_and_filled_in(tmp_path: Path) -> None:
    methods = ["random", *({"name": "random", "imputation": kind} for kind in ("mean", "mice"))]
    tasks = plan.from_dict({"data": ["wine"], "methods": methods, "remove": [0, 0.5]}, tmp_path).tasks
    parts = split_files.load(tasks[0])
    for task in tasks:
        train, validation = prepared(task, parts)
        if task.remove and task.imputation is None:
            assert 0.4 < np.mean(train.available) < 0.6
            assert 0.4 < np.mean(validation.available) < 0.6
            assert not np.array_equal(train.available[: len(validation)], validation.available)
        else:
            assert train.available is None
            assert validation.available is None
        assert (len(train), len(validation)) == (len(parts.train), len(parts.validation))
        assert np.array_equal(train.X, parts.train.X) == (task.remove == 0)
    assert parts.test.available is None


@pytest.mark.parametrize(
    ("target", "says"),
    [
        (np.arange(40) / 7, "the target 'y' has 40 different values in 40 rows; it must be a class that many rows share"),
        ([0, 1] * 19 + [None, 0], "the target 'y' is missing in line 40 of 'cases.csv'; remove such rows"),
        ([0] * 39 + [1], None),
    ],
)
def test_a_target_that_is_no_class(tmp_path: Path, target, says: str | None) -> None:
    pd.DataFrame({"a": np.arange(40) / 2, "y": target}).to_csv(tmp_path / "cases.csv", index=False)
    (task,) = plan.from_dict({"data": [{"file": "cases.csv", "target": "y"}], "methods": ["random"]}, tmp_path).tasks
    if says is None:
        assert len(split_files.load(task).test) > 0
    else:
        with pytest.raises(InputError, match=re.escape(says)):
            split_files.load(task)


def test_a_table_of_ones_own(tmp_path: Path, frame) -> None:
    X, y = frame
    X.assign(diagnosis=y, number=range(len(y))).to_parquet(tmp_path / "cases.parquet")
    entry = {
        "file": "cases.parquet", "target": "diagnosis", "ignore": ["number"], "categorical": ["age"],
        "costs": {"age": 0.1, "pressure": 1, "smoker": 0.2, "colour": 0.7, "town": 0.3, "number": 9},
        "setup": {"lab": {"cost": 0.5, "tests": ["pressure", "colour"]}}, "derived": {"index": ["age", "pressure"]},
        "shares": [0.5, 0.3, 0.2],
    }  # fmt: skip
    (task,) = plan.from_dict({"data": [entry], "methods": ["random"], "class_weight": "balanced"}, tmp_path).tasks
    parts = split_files.load(task)
    schema = parts.train.schema
    assert set(schema.tests) == set(X.columns)
    assert float(schema.costs.money(schema.costs.total)) == pytest.approx(0.1 + 1 + 0.2 + 0.7 + 0.3 + 0.5)
    assert [round(len(p) / len(y), 2) for p in (parts.train, parts.validation, parts.test)] == [0.5, 0.3, 0.2]
    assert parts.test.available is not None
    assert (parts.test.loss == parts.train.loss).all()
    assert parts.train.loss_scale == pytest.approx(1)
