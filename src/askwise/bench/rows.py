"""Rows of results in a file that only grows: a run can be killed at any moment and goes on where it was."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
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
    beside = {name: row.get(name) for name in ("class_weight", "most_rows", "threads", "source")}
    return json.dumps([task, beside], sort_keys=True)


def over(rows: Iterable[Row]) -> dict[str, Row]:
    """By identity, the rows of tasks that need not be run again: those that are done, and those that their method refused."""
    ended = (row for row in rows if row.get("status") in ("done", "refused") and isinstance(row.get("task"), dict))
    return {identity(row): row for row in ended}
