"""The scoreboard's runner: rows, table and pictures, and that nothing is run twice."""

from pathlib import Path

import pytest

from askwise.core.policy import Always
from benchmarks import rows
from benchmarks.scoreboard import run


@pytest.fixture
def calls(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A method that takes no time and leaves a mark whenever it is called, also from another process."""
    marks = tmp_path / "marks"
    marks.mkdir()

    def points_of(method: str):
        def points(problem, validation, *, seconds, seed, threads):
            (marks / f"{method} {seed} {len(list(marks.iterdir()))}").touch()
            return [Always(0), Always(1)]

        return points

    monkeypatch.setattr(run, "points_of", points_of)
    return marks


def test_it_goes_on_where_it_was(tmp_path: Path, calls: Path) -> None:
    out = tmp_path / "out" / "results.jsonl"
    words = ["--data", "digits", "--minutes", "0.1", "--out", str(out)]
    run.main([*words, "--methods", "one", "--seeds", "0", "1"])
    assert len(list(calls.iterdir())) == 2
    with out.open("a") as file:
        file.write('{"data": "digits", "cut sho')  # killed while writing
    run.main([*words, "--methods", "one", "two", "--seeds", "0", "1"])
    assert sorted(p.name[:5] for p in calls.iterdir()) == ["one 0", "one 1", "two 0", "two 1"]
    found = rows.read(out)
    assert [(r["method"], r["seed"]) for r in found] == [("one", 0), ("one", 1), ("two", 0), ("two", 1)]
    assert found[0]["area"] == pytest.approx(0.1, abs=0.03)
    assert found[0]["memory_mb"] > 10
    assert [len(point) for point in found[0]["test"]] == [4, 4]
    text = out.with_suffix(".md").read_text()
    assert text.count("| digits |") == 2
    assert out.with_name("frontier_digits.svg").read_text().startswith("<?xml")


def test_jobs() -> None:
    jobs = list(run.jobs_of(("mnist", "digits"), ("paper", "family"), 5, None))
    assert [(j["data"], j["method"], j["seed"]) for j in jobs] == [
        ("mnist", "family", 0),  # the paper's algorithm runs on small sets only
        *(("digits", method, seed) for method in ("paper", "family") for seed in (0, 1, 2)),
    ]
