"""Benches by a scoring rule: methods are measured by their class probabilities, and those without any refuse."""

from pathlib import Path

import numpy as np
import pytest

from askwise.bench import plan
from askwise.bench.entries import facts_of_data
from askwise.bench.execution import carried_out, ready
from askwise.bench.rows import identity
from askwise.bench.split_files import load, pack, unpack
from askwise.errors import InputError


def tasks(method: str, **more) -> tuple:
    table = {"data": ["wine"], "methods": [method], "minutes": 0.002, "loss": "log"} | more
    return plan.from_dict(table, Path()).tasks


def test_probabilities_are_measured_and_told(tmp_path: Path) -> None:
    (task,) = tasks("static-gbm")
    (tmp_path / "data").write_bytes(pack(load(task)))
    parts = unpack(tmp_path / "data")
    assert parts.train.rule == parts.test.rule == "log"
    row = carried_out(task, parts)
    assert row["status"] == "done"
    assert row["rule"] == "log"
    assert row["loss_scale"] == pytest.approx(1.09, abs=0.02)  # three classes, nearly alike
    assert min(figures[1] for figures in row["test"]) < 0.5 * row["loss_scale"]
    assert facts_of_data(row)["loss"] == "log"


def test_who_has_no_probabilities_refuses() -> None:
    (task,) = tasks("paper")
    row = carried_out(task, load(task))
    assert row["status"] == "refused"
    assert "not how probable they are; use another algorithm, or a loss matrix" in row["why"]


def test_what_was_measured_of_a_policy_chooses_it() -> None:
    """A stack has learned from validation rows, on which its policies look better than they are."""
    (task,) = tasks("stack", methods=[{"name": "stack", "options": {"steps": 20, "networks": 1, "tree_rounds": 5}}], loss="0/1")
    parts = load(task)
    row = carried_out(task, parts)
    assert row["status"] == "done", row.get("why")
    policies = ready(task)(parts.train, parts.validation)
    told = [[p.measured.cost, p.measured.loss, p.measured.accuracy] for p in policies]
    assert np.allclose(row["validation"], told)
    assert len(row["test"]) == len(told)


def test_another_loss_is_another_task_and_the_usual_one_needs_no_word() -> None:
    (log,), (usual,) = tasks("random"), tasks("random", loss="0/1")
    assert usual.rule is None
    assert identity(log.row) != identity(usual.row)
    assert identity({name: value for name, value in usual.row.items() if name != "rule"}) == identity(usual.row)  # older rows
    with pytest.raises(InputError, match="`loss` is 'lgo'; did you mean 'log'"):
        tasks("random", loss="lgo")
