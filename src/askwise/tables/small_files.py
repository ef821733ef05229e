"""The small files beside a table: costs, set-ups, losses. They are recognised and read as tables are."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from askwise.core.arrays import Doubles
from askwise.core.losses import by_class
from askwise.core.parameters import check_distinct
from askwise.errors import InputError, quoted
from askwise.tables.notation import ambiguous, plain
from askwise.tables.reading import read_cells


def read_list(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    """The rows of a small CSV file that must have these columns, the first of them without repetition."""
    rows = read_cells(path)
    for name in columns:
        if not rows or name not in rows[0]:
            raise InputError(f"{path.name!r} has no column {name!r}; it must have the columns {', '.join(columns)}")
    check_distinct(rows[0], f"column of {path.name!r}")
    entries = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    for row in entries:
        if "cost" in row:
            row["cost"] = amount(row["cost"], f"the cost of {row[columns[0]]!r} in {path.name!r}")
    check_distinct([row[columns[0]] for row in entries], f"{columns[0]} in {path.name!r}")
    return entries


def amount(text: str, what: str) -> str:
    """An amount of a small file as Python writes it, so that it can have a decimal comma."""
    if "," in text and ambiguous(text):
        ways = f"{plain(text, '.')} or {plain(text, ',')}"
        raise InputError(f"{what} is {quoted(text)}, which is {ways}; write it in one of these ways")
    return plain(text, ",") or plain(text, ".") or text if "," in text else text


def read_loss(path: Path, classes: list[Any], others: Sequence[str] = ()) -> Doubles:
    """A loss matrix with named rows and columns, in the order of the classes and of the other decisions."""
    rows = read_cells(path)
    if not rows:
        raise InputError(f"{path.name!r} is empty; it needs a row and a column for every class")
    for kind, names in (("column", rows[0][1:]), ("row", [row[0] for row in rows[1:]])):
        check_distinct(names, f"{kind} of {path.name!r}")  # here, since a dict has each name once
    table = {row[0]: dict(zip(rows[0][1:], row[1:], strict=True)) for row in rows[1:]}
    try:
        losses = [
            [float(amount(x, f"a loss in {path.name!r}")) for x in row]
            for row in by_class(table, [str(c) for c in classes], repr(path.name), others)
        ]
    except ValueError as error:
        raise error if isinstance(error, InputError) else InputError(f"{path.name!r}: {error}; losses must be numbers") from None
    return np.array(losses)
