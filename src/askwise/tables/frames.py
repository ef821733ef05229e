"""Tables as people have them: files, frames, arrays, lists; one column at a time.

pandas is imported only where a file is read. A frame is anything with `.columns` (or `.column_names`) and `frame[name]`; a dict
of columns is one too. The columns of an array are called x0, x1, ...
"""

from __future__ import annotations

import csv
import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from askwise.core.arrays import Array
from askwise.core.parameters import check_distinct
from askwise.errors import InputError, RowError, did_you_mean
from askwise.tables import excel, textfiles
from askwise.tables.cells import label
from askwise.tables.reading import RECOGNISED, Reading

EXCEL, PARQUET = ".xlsx", ".parquet"
_ENDINGS = (".csv", ".csv.gz", ".tsv", EXCEL, PARQUET)


class TableView:
    """One way to look at all of them: the names of the columns, the number of rows, and the values of a column.

    With `rows`, only these are looked at; nothing is copied before a column is asked for.
    """

    def __init__(self, X: Any, rows: Array | None = None) -> None:
        if hasattr(type(X), "toarray"):  # of the type: a frame may have a column of this name
            raise InputError("the data is a sparse matrix; make it an array with its method toarray()")
        self.named = isinstance(X, Mapping) or hasattr(X, "columns")
        self._X = X if self.named else _matrix(X)
        keys = _keys(X) if self.named else range(self._X.shape[1])
        self.names = [str(k) if self.named else f"x{k}" for k in keys]
        check_distinct(self.names, "column")
        self._keys = dict(zip(self.names, keys, strict=True))
        self._rows = rows
        whole = next(iter(X.values()), ()) if isinstance(X, Mapping) else self._X
        self._length = len(whole) if rows is None else len(rows)

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, name: str) -> Any:
        """The values of a column: an array, or whatever a frame gives."""
        if name not in self._keys:
            raise InputError(f"there is no column {name!r}; {did_you_mean(name, self.names)}")
        key = self._keys[name]
        values = self._X[key] if self.named else self._X[:, key]
        if not isinstance(values, np.ndarray) and not hasattr(values, "factorize"):  # neither NumPy's nor pandas'
            values = _array(values)
        if self._rows is not None:
            values = values.iloc[self._rows] if hasattr(values, "iloc") else values[self._rows]
        if len(values) != len(self):
            raise InputError(f"column {name!r} has {len(values)} values for {len(self)} rows; give one for each")
        return values


def columns_of(X: Any) -> list[str]:
    """The names of the columns of a frame, a dict of columns, an array or a list of lists."""
    return TableView(X).names


def column(X: Any, name: str) -> Any:
    """The values of one column."""
    return TableView(X)[name]


def _keys(X: Any) -> list[Any]:
    if isinstance(X, Mapping):
        return list(X)
    return list(X.column_names if hasattr(type(X), "column_names") else X.columns)


def _matrix(X: Any) -> Array:
    data = _array(X)
    if data.ndim != 2:
        raise InputError(f"the data has shape {data.shape}; it must be rows x columns")
    return data


def _array(X: Any) -> Array:
    """Rows x columns, or one column. Lists that mix words and numbers keep both, where NumPy would make all of them words."""
    try:
        data = np.asarray(X)
        if data.dtype.kind in "US" and not isinstance(X, np.ndarray):
            data = np.asarray(X, dtype=object)
    except ValueError:
        raise InputError("the rows of the data differ in length; each must have the same columns") from None
    return data


def read_table(path: str | os.PathLike[str], text: Sequence[str | None] = (), how: Reading = RECOGNISED) -> Any:
    """A pandas DataFrame from a file: .csv, .csv.gz, .tsv, .xlsx or .parquet. `how` says what cannot be recognised.

    Of text, empty fields, '?' and what pandas takes for nothing (NA, null, ...) are missing. The columns named in `text` stay as
    they are written: 007 is not 7 where it is a name.
    """
    with _reading(path, how) as (pandas, file, ending):
        if ending == PARQUET:
            frame = pandas.read_parquet(file)
        else:
            frame = (excel if ending == EXCEL else textfiles).read(pandas, file, text, how)
    check_distinct(list(frame.columns), "column")
    if not len(frame):
        raise InputError(f"the file {file.name!r} has no rows")
    return frame


def read_header(path: str | os.PathLike[str], how: Reading = RECOGNISED) -> list[str]:
    """The names of the columns of such a file, without its rows."""
    with _reading(path, how) as (pandas, file, ending):
        if ending == PARQUET:
            parquet = importlib.import_module("pyarrow.parquet")
            names = [str(name) for name in parquet.read_schema(file).empty_table().to_pandas().columns]
        else:
            names = (excel if ending == EXCEL else textfiles).header(pandas, file, how)
    check_distinct(names, "column")
    return names


def read_cells(path: str | os.PathLike[str]) -> list[list[str]]:
    """The fields of a small file, such as a list of prices, as they are written; all rows as long as the first."""
    with _reading(path, RECOGNISED) as (pandas, file, ending):
        if ending == PARQUET:
            frame = pandas.read_parquet(file)
            return [[str(name) for name in frame.columns], *([label(v) for v in row] for row in frame.itertuples(index=False))]
        rows = excel.cells(file) if ending == EXCEL else textfiles.cells(file)
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            place = place_of(file, i - 1)
            raise InputError(f"{place} has {len(row)} fields ({', '.join(row)}); it must have {len(rows[0])}, as the first has")
    return rows


def line_of(path: str | os.PathLike[str], row: int, how: Reading = RECOGNISED) -> int | None:
    """The line of a text file, or the row of a sheet, where a row of its table is, counted from 1; None for Parquet."""
    with _reading(path, how) as (_, file, ending):
        return None if ending == PARQUET else (excel if ending == EXCEL else textfiles).line_of(file, row, how)


def place_of(path: str | os.PathLike[str], row: int, how: Reading = RECOGNISED) -> str:
    """Where in a file a row of its table is, in words; -1 is the row of names."""
    file, line = Path(path), line_of(path, row, how)
    if line is None:
        return f"row {row + 1} of {file.name!r}"
    return f"{'row' if file.name.lower().endswith(EXCEL) else 'line'} {line} of {file.name!r}"


@contextmanager
def rows_of(path: str | os.PathLike[str] | None, how: Reading = RECOGNISED) -> Iterator[None]:
    """What is said meanwhile about a row of the table is said about the place in the file that it comes from, if there is one."""
    try:
        yield
    except RowError as error:
        if path is None:
            raise
        raise error.at(place_of(path, error.row, how)) from None


@contextmanager
def _reading(path: str | os.PathLike[str], how: Reading) -> Iterator[tuple[Any, Path, str]]:
    """pandas, the file, and how its name ends; what goes wrong meanwhile is told in one sentence."""
    file = Path(path)
    if file.is_dir():
        raise InputError(f"{str(path)!r} is a folder; name a file")
    ending = checked_ending(file, how)
    if not file.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    pandas = import_pandas()
    try:
        yield pandas, file, ending
    except InputError:
        raise
    except ImportError:
        needs = "openpyxl; install 'askwise[excel]'" if ending == EXCEL else "pyarrow; install 'askwise[tables]'"
        raise InputError(f"reading {ending} files needs {needs}") from None
    except Exception as error:
        if ending != PARQUET and not isinstance(error, _USUAL):
            raise
        raise unreadable(file, error) from None


_USUAL = (ValueError, OSError, EOFError, csv.Error)  # of pandas and pyarrow for damaged files


def unreadable(file: Path, error: Exception) -> InputError:
    """What a reader of tables raises, in one sentence. For damaged Parquet files pandas and pyarrow raise whatever comes."""
    reason = (str(error).strip().splitlines() or ["no reason given"])[0]
    if not isinstance(error, _USUAL):
        reason = f"it is damaged, or of a kind that is not read here ({type(error).__name__}: {reason})"
    return InputError(f"the file {file.name!r} cannot be read as a table: {reason}")


def checked_ending(file: Path, how: Reading) -> str:
    """How the name of a file ends, which says what it is. Options that mean nothing for it are refused."""
    ending = next((e for e in _ENDINGS if file.name.lower().endswith(e)), None)
    if ending is None:
        raise InputError(f"the file {file.name!r} has an unknown format; its name must end in {', '.join(_ENDINGS)}")
    if ending in (PARQUET, EXCEL):
        how.refuse(("sep", "encoding"), file.name, "text files")
    if ending == PARQUET:
        how.refuse(("decimal",), file.name, "text files and .xlsx files")
    if ending != EXCEL:
        how.refuse(("sheet",), file.name, ".xlsx files")
    return ending


def import_pandas() -> Any:
    """pandas, which only those need who read files or want frames."""
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise InputError("tables from files need pandas; install 'askwise[tables]'") from None
