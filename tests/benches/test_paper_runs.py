"""The trainings behind the paper's figures: which there are, and that they can be killed and go on."""

import os
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from askwise.bench.rows import gathered, read
from askwise.model.file import read_state
from benchmarks.paper import runs
from benchmarks.paper.experiments import TABLE, Training, config_of, differences, key, trainings

TINY = {
    "settings": "paper", "width": 8, "epoch": 20, "max_epochs": 4, "parallel_cases": 20, "batch_steps": 200,
    "memory_episodes": 50, "pretrain_steps": 5, "pretrain_batch": 50, "window_epochs": 0.5, "measure_rows": 100,
    "explore_epochs": 1,
}  # fmt: skip

FILE = Path(os.environ.get("ASKWISE_DATA", "there is none")) / "miniboone_tiny.npz"
needs_data = pytest.mark.skipif(not FILE.exists(), reason="the folder named by ASKWISE_DATA does not have miniboone_tiny")


def some(**changes) -> Training:
    task = next(t.task for t in trainings() if t.task.data == "miniboone_tiny" and t.task.budget == {"average": 10})
    small = {"options": TINY, "most_rows": {"train": 200, "validation": 100, "test": 100}}
    return Training("tiny", replace(task, **{**small, **changes}))


def test_the_trainings_are_those_of_the_figures() -> None:
    tasks = [t.task for t in trainings()]
    names = [(t.name, key(t.task.row, differences(t.task))) for t in trainings()]
    assert len(set(names)) == len(names), "a group lists a training twice"
    assert len(runs.todo(trainings(), [])) == len({where for _, where in names}), "one that several groups list is run once"
    small = [t for t in tasks if not t.remove and set(t.options) == {"settings"}]
    of = Counter((t.data, kind) for t in small for kind in t.budget)
    assert of["miniboone_tiny", "tradeoff"] >= 30
    assert of["nhanes", "tradeoff"] >= 24
    assert of["forest", "tradeoff"] >= 8
    targets = {data: {t.budget["average"] for t in small if t.data == data and "average" in t.budget} for data in TABLE["data"]}
    assert targets["miniboone_tiny"] == set(range(0, 51, 5))
    assert targets["nhanes"] == {9 * b for b in (1, 3, 5, 10)}
    assert {t.remove for t in tasks if t.remove} == {0.25, 0.5, 0.75, 0.9}
    # the same tradeoffs for all ways to fill, and for all values
    for data, shares, seeds in (("miniboone_tiny", 4, 3), ("forest", 1, 2)):
        of_data = [t for t in tasks if t.data == data and "tradeoff" in t.budget and (t.remove or data == "forest")]
        lists = {(t.remove, t.imputation, t.seed): [] for t in of_data if t.remove}
        for t in of_data:
            if t.remove:
                lists[t.remove, t.imputation, t.seed].append(t.budget["tradeoff"])
        assert len(lists) == shares * 3 * seeds
        assert len({tuple(sorted(values)) for values in lists.values()}) == 1
    first = [t.name for t in trainings()].index
    assert first("tradeoffs") < first("hard") < first("targets") < first("course") < first("missing")


@pytest.mark.parametrize("settings", ["cpu", "paper"])
def test_settings_are_the_presets_and_what_differs(settings) -> None:
    for training in trainings(settings):
        config = config_of(training.task)
        assert {name: getattr(config, name) for name in differences(training.task)} == differences(training.task)
        if training.task.data == "nhanes":
            assert config.cost_unit == 9
        if settings == "paper":
            assert set(differences(training.task)) <= {"cost_unit", "stop_epochs"}


def test_one_can_pick_groups_and_data_sets() -> None:
    listed = trainings()
    assert {t.task.data for t in runs.picked(listed, {"hard"})} == {"miniboone_tiny", "nhanes"}
    assert {(t.name, t.task.data) for t in runs.picked(listed, {"hard", "nhanes"})} == {("hard", "nhanes")}
    assert runs.picked(listed, set()) == listed


@needs_data
def test_a_row_has_all_that_the_page_needs(tmp_path) -> None:
    out = tmp_path / "rl.jsonl"
    listed = [some(), some(budget={"hard": 3}, seed=1), some(budget={"tradeoff": 0.01}, remove=0.5, imputation="mean")]
    runs.fill(listed, out)
    average, hard, missing = gathered([out]).done
    assert average["steps"] == 80
    assert average["share_of_steps"] == pytest.approx(80 / 100_000)
    assert average["share_of_states"] == pytest.approx(80 * 200 / (100_000 * 50_000))
    assert average["settings"]["width"] == 8
    assert average["cpu_seconds"] > 0
    assert [point[0] for point in average["course"]] == list(range(10, 81, 10))
    assert len(average["quarters"]) == 4
    for row in (average, hard, missing):
        assert row["at_once"]["test"][0] == row["at_once"]["most"] == 0
        assert row["most"] >= row["cost"] == row["test"][0][0]
        assert len(row["last"]["validation"]) == len(row["columns"])
        assert (row["n_train"], row["n_test"]) == (200, 100)
        assert row["total"] == 50
        assert row["obtainable"] == row["task"]["budget"].get("hard", 50)
    assert "mixture" in average
    assert len(average["resampled_costs"]) == len(average["resampled_scores"]) == 200
    assert "resampled_costs" not in hard
    assert hard["most"] <= 3
    assert hard["last"]["most"] <= 3
    assert not list((tmp_path / "checkpoints").iterdir())
    before = out.read_text()
    runs.fill(listed, out)
    assert out.read_text() == before
    assert runs.todo([some(options=TINY | {"width": 16})], read(out))  # other settings, another training


@needs_data
def test_a_killed_training_goes_on_where_it_was(tmp_path) -> None:
    options = TINY | {"max_epochs": 40, "stop_epochs": 0}
    training, whole, out = some(options=options), tmp_path / "whole" / "rl.jsonl", tmp_path / "rl.jsonl"
    runs.fill([training], whole)
    path = runs.checkpoint_of(training.task, out)
    code = (
        "from pathlib import Path; from benchmarks.paper import runs; from tests.benches.test_paper_runs import some;"
        f"runs.fill([some(options={options!r})], Path({str(out)!r}), save_every=0)"
    )
    process = subprocess.Popen([sys.executable, "-c", code], cwd=Path(__file__).parents[2])
    end = time.monotonic() + 60
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    process.kill()  # not what it had started: that must end by itself
    process.wait()
    assert read(out) == []
    while True:
        before = path.stat().st_mtime_ns
        time.sleep(0.5)
        if path.stat().st_mtime_ns == before:
            break
    assert 0 < read_state(path)[1]["step"] < 800
    runs.fill([training], out)
    (here,), (there,) = read(out), read(whole)
    assert not path.exists()
    for name in ("steps", "course", "quarters", "test", "last", "mixture", "stopped"):
        assert here[name] == there[name]


@needs_data
def test_a_failure_is_a_row_and_the_rest_goes_on(tmp_path) -> None:
    out = tmp_path / "rl.jsonl"
    wrong = some(imputation="guess")
    runs.fill([wrong, some()], out)
    failed, done = read(out)
    assert (failed["status"], done["status"]) == ("failed", "done")
    assert "guess" in failed["why"]
    assert runs.todo([wrong, some()], read(out)) == [wrong]  # it is tried again


@pytest.mark.parametrize(("code", "status"), [(1, "failed"), (-9, "failed"), (130, None), (-15, None)])
def test_a_process_that_ends_otherwise(tmp_path, monkeypatch, code, status) -> None:
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, code, "", "a long story\nof a reason"))
    row = runs.trained(some().task, tmp_path / "rl.jsonl")
    assert (row and row["status"]) == status
    if row:
        assert row["why"] == f"it ended with {code}: of a reason"


@needs_data
def test_time_can_be_over(tmp_path) -> None:
    out = tmp_path / "rl.jsonl"
    began = time.monotonic()
    runs.fill([some(options=TINY | {"max_epochs": 100_000, "stop_epochs": 0}), some()], out, hours=4 / 3600)
    assert time.monotonic() - began < 30
    assert read(out) == []
