"""The quick ones of the claims in benchmarks/comparators, and how its rows become a table."""

import json
from pathlib import Path
from typing import Any

import pytest

from askwise.bench.execution import failed
from benchmarks import rows
from benchmarks.comparators import run, table


def test_aaco_solves_the_pair_problem_where_greedy_methods_fail() -> None:
    found = run.xor(seed=0, seconds=60, threads=1, steps=300)
    assert found["aaco"] > 0.95
    assert found["greedy"] < 0.88
    assert found["measure"] == found["aaco"] - found["greedy"]


def test_a_claim_that_does_not_hold_is_said_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = iter([0.5, -0.1])
    claim = run.Claim("says something", lambda seed, seconds, threads: {"measure": next(values), "more": 1.5}, 0.2, (3, 4))
    monkeypatch.setattr(run, "CLAIMS", {"aaco": claim})
    monkeypatch.setattr(rows, "fill", lambda path, jobs, call, processes: _here(path, jobs, call))
    out = tmp_path / "new" / "results.jsonl"
    run.main(["--out", str(out), "--minutes", "1"])
    lines = out.with_suffix(".md").read_text().splitlines()
    assert [line.split(" | ")[-1] for line in lines[-2:]] == ["holds |", "DOES NOT HOLD |"]
    assert "| aaco | says something | 3 | 0.5000 | 0.2 | more 1.500 |" in lines[-2]


def _here(path, jobs, call):
    for job in jobs:
        row = {**job, **call(**job)}
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        yield row


def test_every_claim_of_a_method_that_there_is() -> None:
    from askwise import methods

    assert set(run.CLAIMS) <= set(methods.names())


def row(method: str, data: str, area: float, minutes: float = 1.0, status: str = "done", **more: Any) -> rows.Row:
    task = {"label": method, "data": data, "minutes": minutes, "seed": 0}
    return {"task": task, "status": status, "area": area, "minutes_taken": minutes, "n_train": 90, "n_test": 9, **more}


def test_the_table_of_all_methods() -> None:
    found = [
        row("family", "digits", 0.93), row("family", "digits", 0.95), row("cegb", "digits", 0.936, n_test=5),
        row("random", "digits", 0.7), row("random", "mnist", 0.6), row("family", "mnist", 0.9, minutes=44),
        {**row("gdfs", "digits", 0), **failed(ValueError("it broke"))}, row("cegb", "digits", 0, status="failed"),
    ]  # fmt: skip
    text = table.text(found)
    assert "| method | mnist | digits |" in text
    assert "| family |  | **0.940 ± 0.014** (1.0) |" in text  # 44 minutes are more than a cell may take
    assert "| random | **0.600** (1.0) | 0.700 (1.0) |" in text
    assert "- digits: family, cegb" in text
    assert "- digits, cegb: 90 rows to learn from, 5 to judge by" in text
    assert table.failures(found).endswith(":\n\n- gdfs on digits: ValueError: it broke")  # cegb was done after all
    assert table.failures(found[:-2]) == ""
    assert "| cegb | **0.936 ± 0.010** (1.0) |" in table.text([row("cegb", "digits", 0.936, resampled=[0.926, 0.936, 0.946])])
