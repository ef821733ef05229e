"""Rows in a file that only grows, so that a run can be killed and goes on; and the rows of several files together, checked."""

from __future__ import annotations

import fcntl
import json
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askwise.errors import InputError
from askwise.files import is_special, named

Row = dict[str, Any]
BEGINNING = b'{"began"'  # of a line that a crash has cut short


def read(path: Path) -> list[Row]:
    """The rows so far; a line cut short by a crash is passed over."""
    return [row for _, row in numbered(path) if row is not None]


def numbered(path: Path) -> Iterator[tuple[int, Row | None]]:
    """The lines of a file that say something, each with its number; None for one that holds no row."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            try:
                row = json.loads(line)
            except (ValueError, RecursionError):
                row = None
            yield number, row if isinstance(row, dict) else None


def check(path: Path) -> None:
    """Refuses a file that is there and begins with something else than a row; of the first row a crash may have left little."""
    if is_special(path) and str(path) != os.devnull:
        raise InputError(
            f"the rows cannot be written to {str(path)!r}: that is a device or a pipe, and they are read again when "
            "the bench continues; name a file"
        )
    if not path.exists():
        return
    with path.open("rb") as file:
        first = file.readline().strip()
    try:
        row = json.loads(first)
        ours = isinstance(row, dict) and "task" in row
    except (ValueError, RecursionError):
        ours = BEGINNING.startswith(first[: len(BEGINNING)])
    if not ours:
        raise InputError(f"{str(path)!r} exists, and its first line is not a row of a bench; name another file with --out")


def append(path: Path, row: Row) -> None:
    """One line at the end, on disk when this returns. What a crash has cut short before it becomes a line of its own."""
    with named(path), path.open("ab+") as file:
        file.seek(0, os.SEEK_END)
        if file.tell():
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                file.write(b"\n")
        file.write(json.dumps(row).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """While this lasts nobody else fills the file; the lock goes with the process, however that ends."""
    with named(path), path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise InputError(f"another bench is writing to {str(path)!r}; wait for it, or name another file with --out") from None
        yield


def identity(row: Row) -> str:
    """What makes a task the same task: its settings. The label is only a name."""
    task = {name: value for name, value in row["task"].items() if name != "label"}
    beside = {name: row.get(name) for name in ("class_weight", "rule", "most_rows", "threads", "source")}
    return json.dumps([task, beside], sort_keys=True)


def over(rows: Iterable[Row]) -> dict[str, Row]:
    """By identity, the rows of tasks that need not be run again: those that are done, and those that their method refused."""
    ended = (row for row in rows if row.get("status") in ("done", "refused") and isinstance(row.get("task"), dict))
    return {identity(row): row for row in ended}


# ---------------------------------------------------------------------- several files together

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


def gathered(paths: Sequence[Path]) -> Gathered:
    """The rows of some files. Of a task that was tried again the row that is done counts, or the last one."""
    by_task: dict[str, Row] = {}
    remarks, again = [], 0
    for path in paths:
        if not path.is_file():
            raise InputError(f"there is no file {str(path)!r}; name the rows that `askwise bench` has written")
        for number, row in numbered(path):
            wrong = "is damaged" if row is None else what_is_wrong(row)
            if row is None or wrong:
                remarks.append(f"Line {number} of {path.name} {wrong}; it was passed over.")
                continue
            row = {**row, "task": completed(row["task"])}
            key = row["task"]["label"] + identity(row)
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
