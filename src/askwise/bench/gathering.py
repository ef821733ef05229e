"""The rows of several files together, checked, one for each task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askwise.bench import rows
from askwise.errors import InputError

Row = dict[str, Any]

# what a row may leave out, since there was no such setting when it was written
DEFAULTS: Row = {"budget": None, "remove": 0.0, "imputation": None, "options": {}}
NUMBER = (int, float)
TASK: dict[str, Any] = {  # of what kind each must be
    **dict.fromkeys(("data", "method", "label"), str),
    "seed": int,
    **dict.fromkeys(("minutes", "remove"), NUMBER),
    "budget": (dict, type(None)),
    "imputation": (str, type(None)),
    "options": dict,
}
BESIDE: dict[str, Any] = {
    **dict.fromkeys(("resampled", "columns", "validation", "test", "cost_interval", "score_interval"), list),
    **dict.fromkeys(("accuracy_at", "cost_at", "versions", "most_rows", "source"), dict),
}
STATUS = ("done", "refused", "failed")


@dataclass(frozen=True)
class Gathered:
    """The last word on each task, in the order in which tasks first came, and what was passed over on the way."""

    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()

    @property
    def done(self) -> list[Row]:
        return [row for row in self.rows if row["status"] == "done"]

    @property
    def frontiers(self) -> list[Row]:
        return [row for row in self.done if row["task"]["budget"] is None]

    @property
    def budgeted(self) -> list[Row]:
        return [row for row in self.done if row["task"]["budget"] is not None]


def gathered(paths: Sequence[Path]) -> Gathered:
    """The rows of some files. Of a task that was tried again the row that is done counts, or the last one."""
    by_task: dict[str, Row] = {}
    remarks, again = [], 0
    for path in paths:
        if not path.is_file():
            raise InputError(f"there is no file {str(path)!r}; name the rows that `askwise bench` has written")
        for number, row in rows.numbered(path):
            wrong = "is damaged" if row is None else what_is_wrong(row)
            if row is None or wrong:
                remarks.append(f"Line {number} of {path.name} {wrong}; it was passed over.")
                continue
            row = {**row, "task": completed(row["task"])}
            key = row["task"]["label"] + rows.identity(row)
            again += key in by_task
            if key not in by_task or row["status"] == "done" or by_task[key]["status"] != "done":
                by_task[key] = row  # a dict keeps the place of the first
    if again:
        remarks.append(f"{again} rows are of a task that has another row; the last that is done counts, or the last.")
    return Gathered(tuple(by_task.values()), tuple(remarks))


def completed(task: Row) -> Row:
    """A task with what it leaves out."""
    return {**DEFAULTS, "label": task.get("method"), **task}


def what_is_wrong(row: Row) -> str | None:
    """Why a row cannot be used, as the end of a sentence."""
    task = row.get("task")
    if not isinstance(task, dict):
        return "is not a row of a bench, or one of another version: it has no task"
    task = completed(task)
    for name, kind in TASK.items():
        if not isinstance(task.get(name), kind):
            return f"is of another version: the {name} of its task is {task.get(name)!r}"
    for name, kind in BESIDE.items():
        if not isinstance(row.get(name, kind()), (kind, type(None))):
            return f"is of another version: its {name} is {row[name]!r}"
    if row.get("status") not in STATUS:
        return f"has the status {row.get('status')!r}, which nobody knows"
    if row["status"] == "done":
        needed = ("area", "total", "curve") if task["budget"] is None else ("cost", "score")
        for name in needed:
            if not _usable(row.get(name)):
                return f"is of another version: it is done, but has no {name}"
    return None


def _usable(value: Any) -> bool:
    """A finite number, or the two lists of a curve."""
    if isinstance(value, list):
        two = len(value) == 2 and all(isinstance(part, list) for part in value) and len(value[0]) == len(value[1]) > 0
        return two and all(is_number(v) for part in value for v in part)
    return is_number(value)


def is_number(value: Any) -> bool:
    return isinstance(value, NUMBER) and not isinstance(value, bool) and math.isfinite(value)


def numbers(values: Iterable[Any]) -> list[float]:
    """Those that are."""
    return [v for v in values if is_number(v)]
