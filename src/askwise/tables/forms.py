"""One answer of a person or a program: checked against what training saw, and encoded as a row of a table would be."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from datetime import timedelta
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Doubles, Ints
from askwise.core.cost_spec import listed
from askwise.core.schema import Schema
from askwise.errors import OUTSIDE, REFUSE, InputError, did_you_mean, quoted
from askwise.tables.cells import BOOLEAN, CATEGORY, EPOCH, NUMBER, ORDINAL, TIME, as_time, label, missing, right
from askwise.tables.encoding import ColumnEncoding, Encoding
from askwise.tables.gaps import columns_of

_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
LARGEST = 1e30  # deviations from the mean; the engine counts in float32


@dataclass(frozen=True)
class Field:
    """What may be answered for one column of the table."""

    column: str
    kind: str  # number, boolean, time, category or ordinal
    categories: tuple[str, ...] = ()  # of an ordinal column: lowest first
    others: bool = False  # rare categories were put together and are not listed here
    low: Any = None  # the range in training: numbers, or times as text
    high: Any = None
    whole: bool = False  # only whole numbers were seen

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "categories": list(self.categories)}


class Answer(NamedTuple):
    """A value as it is shown and stored, and as the engine sees it."""

    value: Any
    encoded: Any  # a number, or as many as it has columns


class Form:
    """The tests of a model as questions."""

    def __init__(self, schema: Schema, encoding: Encoding) -> None:
        self.tests = {name: i for i, name in enumerate(schema.offered)}
        self._parts: list[list[ColumnEncoding]] = [[] for _ in schema.tests]
        self.columns: list[slice | Ints] = []  # of each test: the columns of the engine it fills
        at = 0
        for part in encoding.parts:
            self._parts[schema.owner[at]].append(part)
            at += part.width
        for test in range(schema.n_tests):
            columns = np.flatnonzero(schema.owner == test)
            in_a_row = len(columns) == columns[-1] - columns[0] + 1
            self.columns.append(slice(int(columns[0]), int(columns[-1]) + 1) if in_a_row else columns)
        test_of = {name: test for test, names in enumerate(columns_of(encoding, schema)) for name in names}
        self._names = {name: schema.tests[test] for name, test in test_of.items()}
        self._gaps = [(part, frozenset(test_of[name] for name in part.of)) for part in encoding.gaps]
        self.gaps: int | None = schema.n_tests - 1 if schema.tells_gaps else None  # the test that tells what is missing

    @property
    def tells(self) -> list[str]:
        """The tests of which it is told whether a case lacks them."""
        return [names[0] for names in self.gap_tests]

    @property
    def gap_tests(self) -> list[list[str]]:
        """For each of these, the test and all that it is computed from: it cannot be had where one of them is missing."""
        return [list(dict.fromkeys(self._names[name] for name in part.of)) for part, _ in self._gaps]

    def missing(self, refused: Collection[int]) -> Doubles:
        """What the test that tells what is missing reveals of a case that lacks these tests, encoded."""
        return np.array([part.encoded(float(not tests.isdisjoint(refused))) for part, tests in self._gaps])

    def index(self, test: Any) -> int:
        """The number of a test, or a sentence."""
        number = self.tests.get(test) if isinstance(test, str) else None
        if number is None:
            raise InputError(f"there is no test {quoted(test)}; {did_you_mean(test, self.tests)}")
        return number

    def outside(self, allowed: Any) -> bool | list[str]:
        """Whether values may lie outside of what training saw, or the tests whose values may."""
        if isinstance(allowed, (bool, np.bool_)):
            return bool(allowed)
        if not isinstance(allowed, Collection):
            raise InputError(f"outside is {quoted(allowed)}; it must be True, False or the names of tests")
        names = listed(allowed)
        for name in names:
            self.index(name)
        return names or False

    def fields(self, test: str) -> tuple[Field, ...]:
        """What may be answered to a test: one field for each column that it reveals."""
        return tuple(_field(part) for part in self._parts[self.index(test)])

    def read(self, test: str, value: Any, outside: bool = False) -> Answer:
        """Checks and encodes the answer to a test: a value or, where the test reveals several columns, {column: value}.

        outside: whether a value may lie outside of what training saw.
        """
        parts = self._parts[self.index(test)]
        if len(parts) == 1 and not isinstance(value, Mapping):
            return _read(test, parts[0], value, outside)
        names = [part.name for part in parts]
        if not isinstance(value, Mapping):
            raise InputError(
                f"test {test!r} reveals {len(parts)} columns, and its value is {quoted(value)}; "
                f"there must be a value for each: {', '.join(map(repr, names))}"
            )
        for name in value:
            if name not in names:
                raise InputError(f"test {test!r} does not reveal the column {quoted(name)}; {did_you_mean(name, names)}")
        for name in names:
            if name not in value:
                raise InputError(f"test {test!r} has no value for its column {name!r}; {REFUSE}")
        each = [_read(test, part, value[part.name], outside) for part in parts]
        shown = {name: answer.value for name, answer in zip(names, each, strict=True)}
        return Answer(shown if len(parts) > 1 else each[0].value, np.hstack([answer.encoded for answer in each]))


def _field(part: ColumnEncoding) -> Field:
    limits: tuple[Any, Any] = part.low, part.high
    if part.kind == TIME and part.low is not None and part.high is not None:
        limits = _when(part.low), _when(part.high)
    return Field(part.name, part.kind, part.categories, part.others, *limits, part.whole)


def _read(test: str, part: ColumnEncoding, value: Any, outside: bool) -> Answer:
    if missing(value) or (isinstance(value, str) and not value.strip()):
        raise InputError(f"{_where(test, part)} has no value; {REFUSE}")
    if part.kind in (CATEGORY, ORDINAL):
        return _category(test, part, value, outside)
    number = _READ[part.kind](value)
    if number is None or not math.isfinite(number):
        raise InputError(f"the value of {_where(test, part)} is {quoted(value)}; it must be {right(part.kind)}")
    encoded = part.encoded(number)
    if abs(encoded) > LARGEST:
        raise InputError(f"the value of {_where(test, part)} is {quoted(value)}, which is too large")
    allowed = outside or part.kind == BOOLEAN or part.low is None or part.high is None or part.low <= number <= part.high
    if not allowed:
        low, high = (_shown(part.kind, end) for end in (part.low, part.high) if end is not None)
        raise InputError(
            f"the value of {_where(test, part)} is {_shown(part.kind, number)}, but training saw {low} to {high}; "
            f"correct it, or {OUTSIDE}"
        )
    return Answer(_shown(part.kind, number), encoded)


def _category(test: str, part: ColumnEncoding, value: Any, outside: bool) -> Answer:
    if not isinstance(value, (str, bytes, int, float, np.generic)):
        raise InputError(f"the value of {_where(test, part)} is {quoted(value)}; it must be a word, {_known(part)}")
    word = label(value)
    name = part.category(word) or word
    if name not in part.categories and (not outside or part.kind == ORDINAL):
        reason = "is not one of its common values" if part.others else "training did not see"
        way_out = "" if part.kind == ORDINAL else f"; correct it, or {OUTSIDE}"
        raise InputError(f"the value of {_where(test, part)} is {quoted(name)}, which {reason}; {_known(part)}{way_out}")
    return Answer(name, part.encoded(name))


def _known(part: ColumnEncoding) -> str:
    shown = ", ".join(repr(c) for c in part.categories[:12])
    return f"there are {shown or 'none'}{', ...' if len(part.categories) > 12 else ''}"


def _number(value: Any) -> float | None:
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (timedelta, np.timedelta64)):  # durations count in seconds
        return value / (timedelta(seconds=1) if isinstance(value, timedelta) else np.timedelta64(1, "s"))
    try:
        return float(value)
    except (ValueError, TypeError, OverflowError):
        return None


def _truth(value: Any) -> float | None:
    if isinstance(value, str):
        truth = _TRUTHS.get(value.strip().lower())
        return None if truth is None else float(truth)
    return float(value) if isinstance(value, (bool, np.bool_, int, float, np.number)) and value in (0, 1) else None


_READ = {NUMBER: _number, BOOLEAN: _truth, TIME: as_time}


def _shown(kind: str, number: float) -> Any:
    if kind == BOOLEAN:
        return bool(number)
    if kind == TIME:
        return _when(number)
    return int(number) if number.is_integer() and abs(number) < 2**53 else number


def _when(seconds: float) -> str:
    return (EPOCH + timedelta(microseconds=round(seconds * 1e6))).isoformat()


def _where(test: str, part: ColumnEncoding) -> str:
    return f"test {test!r}" if part.name == test else f"column {part.name!r} of test {test!r}"
