"""One column of a table as numbers or as labels, or a sentence that names the column, the value and the row.

Nothing here imports pandas: its columns are known by their `dtype`, `cat`, `to_numpy` and `factorize`.
"""

from __future__ import annotations

import numbers
import re
from collections.abc import Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Array, Doubles, Ints
from askwise.errors import InputError, RowError, quoted
from askwise.tables import notation

NUMBER, BOOLEAN, TIME, CATEGORY, ORDINAL, GAP = KINDS = ("number", "boolean", "time", "category", "ordinal", "gap")
EPOCH = datetime(1970, 1, 1)
FIRST, LAST = ((end - EPOCH).total_seconds() for end in (datetime.min, datetime.max))  # of what can be shown as a date
_DIGITS = re.compile(r"[+-]?\d+(\.\d*)?", re.ASCII)
_WORDS = {"true": 1.0, "false": 0.0}
# in words that scikit-learn's checks of estimators look for
_RIGHT = "every argument must be a string, a number, true or false, or a date"


class WrongKind(RowError, TypeError):
    """A value of a sort that no table holds; a TypeError too, as scikit-learn expects."""


class Place(NamedTuple):
    """Where values come from, for messages: a column and, where only some rows are looked at, which."""

    column: str
    rows: Ints | None = None

    def holds(self, value: Any, row: int, then: str, kind: type[RowError] = RowError) -> RowError:
        """An error about one value; `then`: what its message says after the row."""
        return kind(f"column {self.column!r} holds {quoted(value)}", row if self.rows is None else int(self.rows[row]), then)


class Distinct(NamedTuple):
    """The different values of a column, and which of them each row holds."""

    codes: Ints  # N, -1 where missing
    values: list[Any]

    @property
    def counts(self) -> Ints:
        """How many rows hold each value."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.values))

    def first_row(self, code: int) -> int:
        return int(np.argmax(self.codes == code))


def guess(values: Any, place: Place, max_categories: int) -> str:
    """What kind of column this is."""
    sort = _sort(values)
    if sort == "C":
        return ORDINAL if values.dtype.ordered else CATEGORY
    if sort in "iufm":
        return NUMBER
    if sort in "bM":
        return BOOLEAN if sort == "b" else TIME
    if sort == "c":
        raise InputError(f"Complex data not supported: column {place.column!r} holds complex numbers; use real numbers")
    coded = distinct(values, place)
    if coded.values and all(isinstance(v, date) for v in coded.values):  # so Parquet gives days
        return TIME
    for code, value in enumerate(coded.values):
        # a Decimal counts as a number, though Python does not call it real
        if not isinstance(value, (str, bytes, numbers.Real, np.bool_)) and type(value).__name__ != "Decimal":
            raise place.holds(value, coded.first_row(code), f"; {_RIGHT}", WrongKind)
    if coded.values and all(isinstance(v, (bool, np.bool_)) for v in coded.values):
        return BOOLEAN
    if coded.values and not any(isinstance(v, (str, bytes)) for v in coded.values):
        return NUMBER
    _refuse_numbers_as_text(coded, place, max_categories)
    return CATEGORY


def _refuse_numbers_as_text(coded: Distinct, place: Place, max_categories: int) -> None:
    """A stray word makes a whole column of numbers text; as categories it would be worth nothing."""
    times = coded.counts
    words = [code for code, value in enumerate(coded.values) if label(value) and not is_number(value)]
    n_words, n = int(times[words].sum()), int(times.sum())
    way_out = "or make it a categorical column if these are codes"
    if words and n - n_words >= 3 and n_words <= max(1, n // 20):
        first = words[0]
        then = f", but numbers almost everywhere else; correct it, leave it empty if it is missing, {way_out}"
        raise place.holds(coded.values[first], coded.first_row(first), then)
    other = next((code for code, value in enumerate(coded.values) if label(value) and _number(value, NUMBER) is None), None)
    if not words and other is not None:
        raise place.holds(coded.values[other], coded.first_row(other), f"{_written(coded.values[other])}, {way_out}")
    if not words and len(coded.values) > max_categories:
        raise InputError(
            f"column {place.column!r} is text, but its values are {len(coded.values)} different numbers such as "
            f"{quoted(coded.values[0])}; make them numbers, {way_out}"
        )


def is_number(value: Any) -> bool:
    """Whether a value is a number, or a word that people write for one."""
    return _number(value, NUMBER) is not None or notation.is_number(label(value))


def _written(value: Any) -> str:
    """What to do about a number that is written as text, and not as Python writes numbers; nothing where it is no number."""
    word = label(value)
    if notation.ambiguous(word):
        point, comma = (notation.plain(word, mark) for mark in notation.MARKS)
        return f", which is {point} with a decimal point and {comma} with a decimal comma; make it a number"
    if notation.is_number(word):
        return ", a number as text; make it a number, in a file with one decimal mark everywhere"
    return ""


def as_numbers(values: Any, place: Place, kind: str) -> Doubles:
    """N: the numbers of a column, NaN where missing. Times are in seconds since 1970, durations in seconds."""
    sort = _sort(values)
    if sort == "M" and kind == TIME:
        moments = values.to_numpy(dtype="datetime64[us]") if hasattr(values, "to_numpy") else np.asarray(values)
        floats = _seconds(moments, "datetime64[us]")
        if (bad := (floats < FIRST) | (floats > LAST)).any():
            row = int(np.argmax(bad))
            raise place.holds(str(moments[row]), row, "; dates must be of the years 1 to 9999, or missing")
        return floats
    if sort == "m" and kind == NUMBER:
        return _seconds(np.asarray(values), "timedelta64[us]")
    if sort in "iufb" and kind != TIME:
        plain = isinstance(values.dtype, np.dtype)
        floats = np.asarray(values, np.float64) if plain else values.to_numpy(dtype=np.float64, na_value=np.nan)
    else:
        floats = _look_up(distinct(values, place), place, kind)
    if (bad := np.isinf(floats)).any():
        row = int(np.argmax(bad))
        raise place.holds(float(floats[row]), row, "; values must be finite, or missing")
    return floats


def _look_up(coded: Distinct, place: Place, kind: str) -> Doubles:
    """Numbers from values of all sorts, each different one looked at once."""
    numbers = {code: _number(value, kind) for code, value in enumerate(coded.values) if label(value)}
    wrong = [code for code, number in numbers.items() if number is None]
    if wrong:  # words first: one of them is why a file gives numbers as text
        code = next((code for code in wrong if not is_number(coded.values[code])), wrong[0])
        hint = _written(coded.values[code]) if kind == NUMBER else ""
        raise place.holds(coded.values[code], coded.first_row(code), hint or f"; it must be {right(kind)}, or missing")
    table = np.full(len(coded.values) + 1, np.nan)  # code -1, missing, reads the last
    table[list(numbers)] = list(numbers.values())
    return table[coded.codes]


def right(kind: str) -> str:
    """The end of a message about a value that is not of its column's kind."""
    return {TIME: "a date such as 2024-05-31", BOOLEAN: "true or false"}.get(kind, "a number")


def as_labels(values: Any, place: Place) -> Distinct:
    """The same as `distinct`, but every value is a word: 1, 1.0 and '1' are one label, and an empty word is missing."""
    coded = distinct(values, place)
    words = [label(v) for v in coded.values]
    index = {word: i for i, word in enumerate(dict.fromkeys(w for w in words if w))}
    table = np.array([index.get(word, -1) for word in words] + [-1], np.int64)
    return Distinct(table[coded.codes], list(index))


def label(value: Any) -> str:
    """The name of a category. Files tell 1 from 1.0, and a day from its midnight, by chance, so we do not."""
    if isinstance(value, datetime) and value.tzinfo is None and value.time() == time():
        return value.date().isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace").strip()
    if isinstance(value, (float, np.floating)) and value == np.floor(value) and np.isfinite(value):
        return str(int(value))
    return str(value).strip()


def number_in(word: str) -> float | None:
    """The number that a word such as 007, 7 or 7.0 is written for, if it is one."""
    return float(word) if _DIGITS.fullmatch(word) else None


def distinct(values: Any, place: Place) -> Distinct:
    """The different values of a column, in the order in which they come (words of an array: sorted)."""
    if _sort(values) == "C":
        return Distinct(np.asarray(getattr(values, "cat", values).codes, np.int64), list(values.dtype.categories))
    try:
        if hasattr(values, "factorize"):
            codes, different = values.factorize()
            return Distinct(np.asarray(codes, np.int64), list(different))
        array = np.asarray(values)
        return _distinct_sorted(array) if array.dtype.kind in "biufUS" else _distinct_objects(array)
    except TypeError:  # what cannot be hashed
        value, row = _first_unhashable(np.asarray(values, dtype=object))
        raise place.holds(value, row, f"; {_RIGHT}", WrongKind) from None


def _distinct_sorted(array: Array) -> Distinct:
    different, inverse = np.unique(array, return_inverse=True)
    gone = np.isnan(different) if array.dtype.kind == "f" else np.zeros(len(different), bool)  # NaN comes last
    return Distinct(np.where(gone, -1, np.arange(len(different)))[inverse], different[~gone].tolist())


def _distinct_objects(array: Array) -> Distinct:
    if array.dtype.kind == "M":
        array = array.astype("datetime64[us]")  # finer ones would become plain numbers
    index: dict[Any, int] = {}
    codes = np.fromiter((index.setdefault(v, len(index)) for v in array.astype(object, copy=False)), np.int64, len(array))
    there = np.array([not missing(v) for v in index], bool)  # asked only once for each different value
    return Distinct(np.where(there, np.cumsum(there) - 1, -1)[codes], [v for v in index if not missing(v)])


def _sort(values: Any) -> str:
    """The letter of NumPy for the type of a column, for pandas' own types too; C for categorical ones."""
    dtype = values.dtype
    if str(dtype).startswith(("date32", "date64")):  # pyarrow's days are given as objects
        return "O"
    return "C" if hasattr(dtype, "categories") else str(getattr(dtype, "kind", "O"))


def missing(value: Any) -> bool:
    if value is None or (isinstance(value, (float, np.floating)) and value != value):
        return True
    return type(value).__name__ in ("NAType", "NaTType")  # pandas' own words for nothing


def _number(value: Any, kind: str) -> float | None:
    if kind == TIME:
        return as_time(value)
    if kind == BOOLEAN and isinstance(value, str) and value.strip().lower() in _WORDS:
        return _WORDS[value.strip().lower()]
    try:
        return float(value)
    except (ValueError, TypeError):
        return None


def as_time(value: Any) -> float | None:
    """The seconds since 1970 of a date, or of one written as 2024-05-31; of UTC where a zone is given. None for anything else."""
    try:
        if isinstance(value, np.datetime64):
            value = value.astype("datetime64[us]").item()
        elif isinstance(value, str):
            value = datetime.fromisoformat(value.strip())
        if not isinstance(value, date):
            return None
        if not isinstance(value, datetime):
            value = datetime(value.year, value.month, value.day)
        if value.tzinfo is not None:
            value = value.astimezone(UTC).replace(tzinfo=None)
        return float((value - EPOCH) / timedelta(microseconds=1)) / 1e6
    except (ValueError, OverflowError, TypeError):
        return None


def _seconds(values: Any, unit: str) -> Doubles:
    array = np.asarray(values).astype(unit)
    return np.where(np.isnat(array), np.nan, array.astype(np.int64) / 1e6)


def _first_unhashable(values: Sequence[Any] | Array) -> tuple[Any, int]:
    for row, value in enumerate(values):
        try:
            hash(value)
        except TypeError:
            return value, row
    raise AssertionError("all values can be hashed")
