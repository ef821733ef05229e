"""The quick ones of the claims in benchmarks/comparators, and how its rows become a table."""

import json
from pathlib import Path

import pytest

from benchmarks import rows
from benchmarks.comparators import run


def test_aaco_solves_the_pair_problem_where_greedy_methods_fail() -> None:
    found = run.xor(seed=0, seconds=60, threads=1, steps=300)
    assert found["aaco"] > 0.95
    assert max(found["gdfs"], found["dime"]) < 0.88


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
