"""Columns of text that are numbers, however these are written, made numbers where nobody can doubt what they are.

What can be doubted is refused. A column with both decimal marks stays text, and `values` refuses it where somebody needs it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Any

import numpy as np

from askwise.errors import InputError, quoted
from askwise.tables import notation


def marks_in(frame: Any, text: Collection[str | None]) -> set[str]:
    """The decimal marks that the columns of numbers of a frame show beyond doubt."""
    return {mark for _, found in _texts(frame, text) if _mostly_numbers(found) for mark in notation.evidence(found)}


def doubtful(frame: Any, text: Collection[str | None]) -> list[str]:
    """The columns of numbers of which nobody can tell whether they have decimals or marks between thousands, such as 1.234."""
    found = [(name, values) for name, values in _texts(frame, text) if _mostly_numbers(values)]
    return [name for name, values in found if not notation.evidence(values) and any(map(notation.ambiguous, values))]


def settle(
    frame: Any, text: Collection[str | None], given: str | None, marks: Collection[str], place: Callable[[int], str]
) -> None:
    """Makes numbers of columns of text, in place. A column's own values tell its decimal mark, or those of the whole file do.

    place: says where in the file a row of the frame is.
    """
    for name, values in _texts(frame, text):
        if not all(map(notation.is_number, values)):
            continue
        own = notation.evidence(values)
        if given is None and len(own) > 1:
            continue
        codes, some = frame[name].factorize()
        mark = given or _only(own) or _only(marks)
        strange = [v for v in values if (notation.ambiguous(v) if mark is None else notation.plain(v, mark) is None)]
        if strange:
            value = strange[0]
            where = f"column {name!r} holds {quoted(value)} in {place(int((codes == list(some).index(value)).argmax()))}"
            if mark is not None:
                raise InputError(
                    f"{where}, which is not a number with the decimal mark {mark!r}; correct it, or leave --decimal out"
                )
            point, comma = (notation.plain(value, m) for m in notation.MARKS)
            raise InputError(f"{where}, which is {point} or {comma}; say which is the decimal mark: --decimal . or --decimal ,")
        numbers: list[Any] = [notation.plain(value, mark or ".") if isinstance(value, str) else value for value in some]
        if all(isinstance(number, (str, int, float)) and not isinstance(number, bool) for number in numbers):
            frame[name] = np.array([*map(float, numbers), np.nan])[codes]


def _only(marks: Collection[str]) -> str | None:
    return next(iter(marks)) if len(marks) == 1 else None


def _texts(frame: Any, text: Collection[str | None]) -> Iterator[tuple[str, list[str]]]:
    """The different texts in each column that has some."""
    for name in frame.columns:
        column = frame[name]
        if name not in text and column.dtype.kind == "O":
            found = [value for value in column.dropna().unique().tolist() if isinstance(value, str)]
            if found:
                yield name, found


def _mostly_numbers(values: list[str]) -> bool:
    return 2 * sum(map(notation.is_number, values)) > len(values)
