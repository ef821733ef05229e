"""Columns of text that are numbers, however these are written, made numbers where nobody can doubt what they are.

What can be doubted is refused. A column with both decimal marks stays text, and `cells.guess` refuses it where somebody needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from askwise.errors import InputError, quoted
from askwise.tables import notation


def marks_in(frame: Any, as_written: Collection[str | None]) -> set[str]:
    """The decimal marks that the columns of numbers of a frame show beyond doubt."""
    return {mark for _, values in _texts(frame, as_written) if _mostly_numbers(values) for mark in notation.evidence(values)}


def doubtful(frame: Any, as_written: Collection[str | None]) -> list[str]:
    """The columns of numbers of which nobody can tell whether they have decimals or marks between thousands, such as 1.234."""
    columns = [(name, values) for name, values in _texts(frame, as_written) if _mostly_numbers(values)]
    return [name for name, values in columns if not notation.evidence(values) and any(map(notation.ambiguous, values))]


def settle(
    frame: Any, as_written: Collection[str | None], mark: str | None, marks: Collection[str], place: Callable[[int], str]
) -> None:
    """Makes numbers of columns of text, in place. A column's own values tell its decimal mark, or those of the whole file do.

    mark: that of all columns, where somebody has said so. place: says where in the file a row of the frame is.
    """
    for name, texts in _texts(frame, as_written):
        own = notation.evidence(texts)
        if all(map(notation.is_number, texts)) and (mark is not None or len(own) < 2):
            codes, values = frame[name].factorize()
            column_mark = mark or _only(own) or _only(marks)
            for value in texts:
                reason = _wrong(value, column_mark)
                if reason:
                    row = int((codes == list(values).index(value)).argmax())
                    raise InputError(f"column {name!r} holds {quoted(value)} in {place(row)}, which is {reason}")
            numbers: list[Any] = [notation.plain(v, column_mark or ".") if isinstance(v, str) else v for v in values]
            if all(isinstance(number, (str, int, float)) and not isinstance(number, bool) for number in numbers):
                frame[name] = np.array([*map(float, numbers), np.nan])[codes]


def _wrong(text: str, mark: str | None) -> str | None:
    """Why a text cannot be read as a number with this decimal mark, or without a known one."""
    if mark is not None:
        otherwise = f"not a number with the decimal mark {mark!r}; correct it, or leave --decimal out"
        return otherwise if notation.plain(text, mark) is None else None
    point, comma = (notation.plain(text, m) for m in notation.MARKS)
    ways = f"{point} or {comma}; say which is the decimal mark: --decimal . or --decimal ,"
    return ways if notation.ambiguous(text) else None


def _only(marks: Collection[str]) -> str | None:
    return next(iter(marks)) if len(marks) == 1 else None


def _texts(frame: Any, as_written: Collection[str | None]) -> Iterator[tuple[str, list[str]]]:
    """The different texts in each column that has some and need not stay as it is written."""
    for name in frame.columns:
        column = frame[name]
        if name not in as_written and column.dtype.kind == "O":
            texts = [value for value in column.dropna().unique().tolist() if isinstance(value, str)]
            if texts:
                yield name, texts


def _mostly_numbers(values: list[str]) -> bool:
    return 2 * sum(map(notation.is_number, values)) > len(values)
