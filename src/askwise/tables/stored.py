"""Tables that stay in their files, because they are large: what is needed of them is read when it is needed.

What there is to know of a column, such as its mean or its categories, takes this column alone. Encoded rows are written one after
the other into a file without a name, of which only what is looked at comes to memory. So a fit has the same numbers, to the last
bit, as if the table had been read as a whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Floats, Ints
from askwise.core.parameters import Settings, Size
from askwise.core.problem import Problem
from askwise.errors import InputError, RowError, did_you_mean
from askwise.files import beyond_memory
from askwise.tables import parquet
from askwise.tables.frames import import_pandas
from askwise.tables.read_options import RECOGNISED, ReadOptions
from askwise.tables.reading import PARQUET, checked_ending, read_header, read_table


@dataclass(frozen=True)
class StoredSettings(Settings):
    """When a table stays in its file."""

    cells: Size = 50_000_000
    """A Parquet file of more rows x columns than this stays where it is; others are read as a whole."""
    shown_rows: Size = 100_000
    """Of the rows of such a file that a fit kept apart, `askwise fit` shows in the end what becomes of so many."""


SETTINGS = StoredSettings()


class StoredTable:
    """A table that stays in its Parquet file. It takes the place of a DataFrame in `CostlyClassifier.fit`.

    Parameters
    ----------
    path : str or Path
        The file.

    Examples
    --------
    >>> from askwise.tables.stored import StoredTable
    >>> table = StoredTable("cases.parquet")  # doctest: +SKIP
    >>> classifier.fit(table.drop(columns=["diagnosis"]), table["diagnosis"])  # doctest: +SKIP
    """

    def __init__(self, path: str | Path) -> None:
        self.file, self.columns = Path(path), read_header(path)
        self._rows = parquet.shape_of(self.file)[0]
        if not self._rows:
            raise InputError(f"the file {self.file.name!r} has no rows")

    def __len__(self) -> int:
        return self._rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._rows, len(self.columns)

    @property
    def header(self) -> Any:
        """A frame with these columns and no rows."""
        return import_pandas().DataFrame(columns=self.columns)

    def __getitem__(self, name: str) -> Any:
        """One column, as a pandas Series."""
        if name not in self.columns:
            raise InputError(f"there is no column {name!r}; {did_you_mean(name, self.columns)}")
        return parquet.column(self.file, name)

    def drop(self, columns: Sequence[str]) -> StoredTable:
        """The same table without some columns."""
        rest = StoredTable.__new__(StoredTable)
        rest.file, rest._rows, rest.columns = self.file, self._rows, [name for name in self.columns if name not in columns]
        return rest

    def take(self, rows: Ints) -> Any:
        """Some rows, which must rise, as a frame."""
        return import_pandas().concat([piece.table.iloc[piece.rows] for piece in pieces(self, rows)], ignore_index=True)


class Piece(NamedTuple):
    """Rows of a table that are in memory together."""

    table: Any
    rows: Ints  # those of them that are wanted
    first: int = 0  # the row of the whole table with which it begins

    def of_table(self, error: RowError) -> RowError:
        """An error about a row of these, about the same row of the whole table."""
        return error.among(range(self.first, self.first + error.row + 1))


def pieces(table: Any, rows: Ints) -> Iterator[Piece]:
    """The given rows, which must rise, of any table: of a stored one some at a time, of another all at once."""
    if not isinstance(table, StoredTable):
        yield Piece(table, rows)
        return
    first = 0
    for frame in parquet.frames(table.file, table.columns):
        begin, end = np.searchsorted(rows, [first, first + len(frame)]).tolist()
        if begin < end:
            yield Piece(frame, rows[begin:end] - first, first)
        first += len(frame)


def problem_of(table: Any, rows: Ints, part_of: Callable[[Piece], Problem]) -> Problem:
    """The problem of the given rows, which must rise. `part_of` makes it of rows that are in memory."""
    parts = map(part_of, pieces(table, rows))
    return _joined(parts) if isinstance(table, StoredTable) else next(parts)


def _joined(parts: Iterable[Problem]) -> Problem:
    """The rows of all parts. Their values need not be in memory."""
    rest: list[Problem] = []

    def values() -> Iterator[Floats]:
        for part in parts:
            rest.append(replace(part, X=part.X[:0].copy()))
            yield part.X

    X = beyond_memory(values())
    return Problem.joined(rest, X)


def table_at(path: Path, as_written: Sequence[str | None] = (), options: ReadOptions = RECOGNISED) -> Any:
    """A frame or, of a large Parquet file, a table that stays there."""
    if path.is_file() and checked_ending(path, options) == PARQUET:
        rows, columns = parquet.shape_of(path)
        if rows * columns > SETTINGS.cells:
            return StoredTable(path)
    return read_table(path, as_written, options)
