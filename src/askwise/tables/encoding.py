"""From a table as people have it to the engine's matrix: float32, scaled, NaN where missing. Fitted on the training rows only.

A column of the table stays one test, however many columns of the engine it becomes: `Encoding.engine_columns_of` says which.

| kind | what it is | columns of the engine |
|---|---|---|
| number, boolean, time | integers, floats, durations; true and false; dates (in seconds) | one |
| ordinal | an ordered pandas Categorical | one: the position on the scale |
| category | text, pandas Categoricals | one for each category, and one for all others where there are too many |
| gap | no column of the table, but whether some columns of it lack a value, see `gaps` | one |
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Array, Doubles, Floats, Ints
from askwise.core.cost_spec import CostSpec
from askwise.core.parameters import OneOf, Whole, checked
from askwise.core.schema import Schema
from askwise.errors import InputError, StateError, did_you_mean
from askwise.tables import cells
from askwise.tables.cells import BOOLEAN, CATEGORY, GAP, ORDINAL, TIME, Distinct, Place, as_labels, as_numbers
from askwise.tables.frames import TableView

SCALING = OneOf("columns", "one", "none")
_OTHERS = "(other)"
# A category or a truth that is rare would be scaled to a huge number; at this deviation it becomes about 10.
_LEAST_DEVIATION = 0.1
_LARGEST = float(np.finfo(np.float32).max)


class Moments(NamedTuple):
    """How many values there are in a column, their mean and their variance."""

    n: int
    mean: float
    variance: float


@dataclass(frozen=True)
class ColumnEncoding:
    """How one column of the table is encoded. `mean` and `deviation` have a value for each column of the engine."""

    name: str
    kind: str
    categories: tuple[str, ...] = ()  # the most frequent first; of an ordinal column: the scale, lowest first
    others: bool = False  # one more column of the engine, for every category that is not among these
    mean: tuple[float, ...] = ()
    deviation: tuple[float, ...] = ()
    low: float | None = None  # of numbers: the smallest and the largest that were seen; None where nobody looked
    high: float | None = None
    whole: bool = False  # only whole numbers were seen
    of: tuple[str, ...] = ()  # of a gap: the columns of the table one of which lacks a value

    @property
    def width(self) -> int:
        return len(self.categories) + self.others if self.kind == CATEGORY else 1

    def write(self, values: Any, out: Floats, rows: Array | None = None) -> None:
        """Fills `out`, rows x width. `rows`: where the values are in the table, for messages."""
        place = Place(self.name, rows)
        if self.kind in (CATEGORY, ORDINAL):
            out[:] = self._table[self._rows_of_codebook(as_labels(values, place), place)]
        else:
            out[:, 0] = self.encoded(as_numbers(values, place, self.kind))

    def encoded(self, value: Any) -> Any:
        """What `write` makes of one value: of a number one number (an array of them likewise), of a category's label its line."""
        if self.kind in (CATEGORY, ORDINAL):
            return self._table[self._line(value)]
        return (value - self.mean[0]) / self.deviation[0]

    def category(self, word: str) -> str | None:
        """The category that a word names: as it is written or, since files tell 7 from 7.0 and 007 by chance, as a number."""
        return word if word in self._lines else self._by_number.get(cells.number_in(word))

    def _line(self, word: str) -> int:
        """The line of the codebook of a word."""
        return self._lines.get(self.category(word), len(self.categories))

    @cached_property
    def _by_number(self) -> dict[float | None, str]:
        """The categories that are written as numbers; where two are one number, neither."""
        numbers = [cells.number_in(name) for name in self.categories]
        return {n: name for n, name in zip(numbers, self.categories, strict=True) if n is not None and numbers.count(n) == 1}

    @cached_property
    def _lines(self) -> dict[str | None, int]:
        """The line of the codebook of each category."""
        return {name: i for i, name in enumerate(self.categories)}

    @cached_property
    def _table(self) -> Floats:
        """The codebook: what stands for each category, for one that was never seen (unlike any, or one of the others; an ordinal
        column has none) and, last, for what is missing."""
        n = len(self.categories)
        codes = np.arange(n)[:, None] if self.kind == ORDINAL else np.eye(n + 1, self.width)
        table: Floats = np.vstack([(codes - self.mean) / self.deviation, np.full(self.width, np.nan)]).astype(np.float32)
        return table

    def _rows_of_codebook(self, coded: Distinct, place: Place) -> Ints:
        """N: the line of the codebook for each row; -1, the line after it, where missing."""
        if self.kind == ORDINAL:
            for code, value in enumerate(coded.values):
                if self.category(value) is None and (coded.codes == code).any():
                    then = f", which is not on its scale; {did_you_mean(value, self.categories)}"
                    raise place.holds(value, coded.first_row(code), then)
        lines = np.array([self._line(value) for value in coded.values] + [-1], np.int64)
        return lines[coded.codes]


@dataclass(frozen=True)
class Encoding:
    """Everything that is needed to encode another table in the same way. It goes through JSON unchanged."""

    parts: tuple[ColumnEncoding, ...]

    @classmethod
    def fit(
        cls, X: Any, max_categories: int = 30, scaling: str = "columns", categorical: Iterable[str] = (), rows: Ints | None = None
    ) -> Encoding:
        """X: a frame, a dict of columns, an array or a list of lists; only the given `rows` of it are looked at.

        scaling: 'columns', each by its mean and deviation; 'one' mean and deviation for all, as for pixels; 'none'.
        categorical: columns that are categories although they hold numbers. Of more than `max_categories`, the rarest share
        a column.
        """
        checked(scaling, SCALING, "the scaling")
        checked(max_categories, Whole(at_least=1), "max_categories")
        table, chosen = TableView(X, rows), set(categorical)
        for name in chosen.difference(table.names):
            raise InputError(f"column {name!r} is listed as categorical, but does not exist; {did_you_mean(name, table.names)}")
        if not len(table):
            raise InputError("there are no rows")
        if not table.names:
            raise InputError("there are no columns, so nothing can be bought")
        fitted = [_fit(table[name], Place(name, rows), max_categories, name in chosen) for name in table.names]
        return cls(tuple(_scaled(fitted, scaling)))

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the table."""
        return tuple(part.name for part in self.parts if part.kind != GAP)

    @property
    def gaps(self) -> tuple[ColumnEncoding, ...]:
        """What tells which values are missing; it comes after all columns of the table."""
        return self.parts[len(self.columns) :]

    @cached_property
    def engine_columns_of(self) -> dict[str, list[str]]:
        """The columns of the engine that each column of the table becomes."""
        taken = set(self.columns)
        return {part.name: [part.name] if part.kind != CATEGORY else _category_names(part, taken) for part in self.parts}

    @property
    def engine_columns(self) -> list[str]:
        """The columns of the matrix that `transform` makes."""
        return [name for names in self.engine_columns_of.values() for name in names]

    def transform(self, X: Any, rows: Array | None = None) -> Floats:
        """N x C. Columns are taken by name, from an array by position; others are ignored.

        A column that is not there is refused. A category that was not seen in training is held, but like none of the others.
        """
        table = TableView(X, rows)
        if not table.named and len(table.names) != len(self.columns):
            raise InputError(f"the data has {len(table.names)} columns; it must have {len(self.columns)}, as in training")
        there = dict(zip(table.names if table.named else self.columns, table.names, strict=True))
        out = np.empty((len(table), sum(part.width for part in self.parts)), np.float32)
        at, lacks = 0, dict[str, Array]()
        for part in self.parts:
            if part.kind == GAP:
                out[:, at] = part.encoded(np.any([lacks[name] for name in part.of], axis=0))
                at += 1
                continue
            if part.name not in there:
                meant = did_you_mean(part.name, [name for name in table.names if name not in self.columns] or table.names)
                if not meant.startswith("did"):  # what there is beside would look like all there is
                    meant = f"none of its {len(table.names)} columns has a name like that"
                raise InputError(f"there is no column {part.name!r} in the data; {meant}")
            with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such by `Problem.build`
                part.write(table[there[part.name]], out[:, at : at + part.width], rows)
            lacks[part.name] = np.isnan(out[:, at])
            at += part.width
        return out

    @property
    def text(self) -> list[str]:
        """The columns of words and of dates, which a text file must give as they are written."""
        return [part.name for part in self.parts if part.kind in (CATEGORY, ORDINAL, TIME)]

    def strange(self, values: Floats) -> list[str]:
        """The columns of categories that hold something in these encoded rows, but nothing that training saw.

        Where rare ones were put together, nobody can tell.
        """
        names, at = [], 0
        for part in self.parts:
            if part.kind == CATEGORY and not part.others:
                block = values[:, at : at + part.width]
                there = block[~np.isnan(block[:, 0])]
                if len(there) and (there == part._table[len(part.categories)]).all():
                    names.append(part.name)
            at += part.width
        return names

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"columns": [_stored(part) for part in self.parts]}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Encoding:
        """The same encoding again. What does not hold together is refused, since the file may come from anywhere."""
        try:
            parts = tuple(_restored(part) for part in state["columns"])
            if not parts or len({part.name for part in parts}) < len(parts):
                raise ValueError("there are no columns, or two of one name")
            tells, columns = [part.kind == GAP for part in parts], {part.name for part in parts if part.kind != GAP}
            if tells != sorted(tells) or not all(bool(p.of) == (p.kind == GAP) and columns.issuperset(p.of) for p in parts):
                raise ValueError("what is missing is no column of the table")
        except (KeyError, TypeError, ValueError):
            raise StateError("the encoding of the columns is damaged; save the model again") from None
        return cls(parts)


def _fit(values: Any, place: Place, max_categories: int, categorical: bool) -> tuple[ColumnEncoding, list[Moments]]:
    """A column that is not scaled yet, and the moments of the columns of the engine that it becomes."""
    name = place.column
    kind = CATEGORY if categorical else cells.guess(values, place, max_categories)
    if kind not in (CATEGORY, ORDINAL):
        numbers = as_numbers(values, place, kind)
        return ColumnEncoding(name, kind, **_range(numbers)), [_moments(numbers)]
    coded = as_labels(values, place)
    if kind == ORDINAL:
        scale = [cells.label(step) for step in values.dtype.categories]
        places = np.array([scale.index(value) for value in coded.values] + [np.nan])
        return ColumnEncoding(name, kind, tuple(scale)), [_moments(places[coded.codes])]
    return _fit_categories(name, coded, max_categories)


def _fit_categories(name: str, coded: Distinct, most: int) -> tuple[ColumnEncoding, list[Moments]]:
    """The most frequent categories have a column of the engine each, the others share one."""
    times = coded.counts
    n = int(times.sum())
    order = sorted((code for code in range(len(times)) if times[code]), key=lambda code: (-times[code], coded.values[code]))
    kept = order[:most]
    others = len(order) != len(kept) or not kept  # a column with no value at all must still become something
    shares = [times[code] / n for code in kept] + ([1 - times[kept].sum() / max(n, 1)] if others else [])
    part = ColumnEncoding(name, CATEGORY, tuple(coded.values[code] for code in kept), others)
    return part, [Moments(n, float(p), float(p * (1 - p))) for p in shares]


def _category_names(part: ColumnEncoding, taken: set[str]) -> list[str]:
    """Names for the columns of the engine that a column of categories becomes, none of them taken; then they are."""
    names = []
    for category in (*part.categories, *([_OTHERS] if part.others else [])):
        name = f"{part.name}={category}"
        while name in taken:  # a column of the table may be called so
            name += "'"
        taken.add(name)
        names.append(name)
    return names


def _range(numbers: Doubles) -> dict[str, Any]:
    """Between what the numbers of a column lie, and whether they are whole."""
    there = numbers[~np.isnan(numbers)]
    if not len(there):
        return {}
    return {"low": float(there.min()), "high": float(there.max()), "whole": bool((there == np.floor(there)).all())}


def _moments(numbers: Doubles) -> Moments:
    there = numbers[~np.isnan(numbers)]
    if not len(there) or there.min() == there.max():  # the mean of a constant may differ from it by rounding
        return Moments(len(there), float(there[0]) if len(there) else 0.0, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):  # refused later, where the column is known
        return Moments(len(there), float(there.mean()), float(there.var()))


def _scaled(fitted: Sequence[tuple[ColumnEncoding, list[Moments]]], scaling: str) -> list[ColumnEncoding]:
    """The columns with their means and deviations; what is constant is only centred."""
    if scaling == "one":
        n, mean, variance = np.array([m for _, moments in fitted for m in moments]).T
        share = n / max(n.sum(), 1)
        with np.errstate(over="ignore", invalid="ignore"):
            one = float(share @ mean)
            common = (one, float(np.sqrt(share @ (variance + (mean - one) ** 2))) or 1.0)
    scaled = []
    for part, moments in fitted:
        if scaling == "columns":
            least = _LEAST_DEVIATION if part.kind in (CATEGORY, BOOLEAN) else 0.0
            pairs = [(m.mean, max(m.variance**0.5, least) if m.variance else 1.0) for m in moments]
        else:
            pairs = [common if scaling == "one" else (0.0, 1.0)] * len(moments)
        if not np.isfinite(pairs).all():
            raise InputError(f"column {part.name!r} holds numbers that are too large to be scaled; divide them")
        means, deviations = zip(*pairs, strict=True)
        scaled.append(replace(part, mean=means, deviation=deviations))
    return scaled


def _stored(part: ColumnEncoding) -> dict[str, Any]:
    """For JSON; a column of the table says nothing of gaps, as in files from before there were any."""
    return {name: value for name, value in asdict(part).items() if name != "of" or value}


def _restored(state: Mapping[str, Any]) -> ColumnEncoding:
    low, high = (None if state.get(name) is None else float(state[name]) for name in ("low", "high"))
    part = ColumnEncoding(
        str(state["name"]),
        str(state["kind"]),
        tuple(cells.label(c) for c in state["categories"]),
        bool(state["others"]),
        tuple(float(m) for m in state["mean"]),
        tuple(float(d) for d in state["deviation"]),
        low,
        high,
        bool(state.get("whole", False)),
        tuple(str(name) for name in state.get("of", ())),
    )
    numbers = np.array([*part.mean, *part.deviation])
    fits = len(part.mean) == len(part.deviation) == part.width > 0 and np.isfinite(numbers).all() and min(part.deviation) > 0
    ends = [end for end in (low, high) if end is not None]
    shown = all(cells.FIRST <= end <= cells.LAST for end in ends) if part.kind == TIME else all(map(math.isfinite, ends))
    if part.kind not in cells.KINDS or not fits or not shown or ends != sorted(ends):
        raise ValueError("the parts of a column do not fit each other")
    if part.kind != CATEGORY and not all(abs((end - part.mean[0]) / part.deviation[0]) < _LARGEST for end in ends):
        raise ValueError("the numbers of a column are too large to be scaled")
    return part


def schema_of(
    encoding: Encoding, classes: Sequence[Any], costs: Any = None, external_needs: Sequence[str] | None = None
) -> Schema:
    """A schema whose tests are columns of the user's table, or what reveals several of them. See `Schema.build`.

    `external_needs`: tests, or columns that tests reveal.
    """
    spec = CostSpec.of(costs)
    owner, becomes = {name: test for test, names in spec.reveals.items() for name in names}, encoding.engine_columns_of
    for name in owner:
        if name not in becomes:
            meant = did_you_mean(name, encoding.columns)
            raise InputError(f"a test reveals the column {name!r}, which does not exist; {meant}")
    tests = {test: [column for name in names for column in becomes[name]] for test, names in spec.reveals.items()}
    for name, columns in becomes.items():
        if name in owner:
            continue
        if name in tests:
            raise InputError(f"test {name!r} has the name of a column that it does not reveal; rename one of them")
        tests[name] = columns
    needs = None if external_needs is None else [owner.get(name, name) for name in external_needs]
    return Schema.build(encoding.engine_columns, classes, replace(spec, reveals=tests), needs)
