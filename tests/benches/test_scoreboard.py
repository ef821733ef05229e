"""The scoreboard: its plan, its rows as they are committed, and the table and pictures made of them."""

from pathlib import Path

from askwise.bench import plan
from askwise.bench.run import left
from benchmarks import rows
from benchmarks.scoreboard import table

HERE = Path(table.__file__).parent


def test_the_plan_and_what_of_it_is_done() -> None:
    read, there = plan.read(HERE / "plan.toml"), rows.read(HERE / "results.jsonl")
    tasks = {(t.data, t.label, t.seed): t for t in read.tasks}
    assert ("mnist", "paper", 0) not in tasks  # the paper's algorithm runs on small sets only
    assert [key for key in tasks if key[1] == "convolutions"] == [("cifar", "convolutions", 0)]
    assert {t.class_weight for t in read.tasks if t.data in ("nhanes", "ann_thyroid", "thyroid")} == {"balanced"}
    todo = {(t.data, t.label, t.seed) for t in left(read, there)}
    for done in (("digits", "family", 2), ("cifar", "convolutions", 0), ("mnist", "family", 0), ("thyroid", "static-gbm", 1)):
        assert done in tasks
        assert done not in todo  # nothing is run twice


def test_the_table_is_that_of_the_rows(tmp_path: Path) -> None:
    found = rows.read(HERE / "results.jsonl")
    some = [row for row in found if row["task"]["data"] in ("digits", "forest")]
    table.write([*some, {"task": some[0]["task"], "status": "failed", "why": "for no reason"}], tmp_path / "results.jsonl")
    text = (tmp_path / "results.md").read_text()
    of_digits = {(row["task"]["label"], row["task"]["minutes"]) for row in some if row["task"]["data"] == "digits"}
    beside = [1 for label, minutes in of_digits if label != "family" and ("family", minutes) in of_digits]
    assert text.count("| digits |") == len(of_digits) + len(beside) > 4
    committed = (HERE / "results.md").read_text()
    assert all(line in committed for line in text.splitlines())
    assert (tmp_path / "frontier_digits.svg").read_text().startswith("<?xml")
