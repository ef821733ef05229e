"""Tables from files: text, .xlsx and Parquet. pandas is imported only where a file is read."""

from __future__ import annotations

import csv
import importlib
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from askwise.core.parameters import check_distinct
from askwise.errors import InputError, RowError
from askwise.tables import excel, text_files
from askwise.tables.cells import label
from askwise.tables.frames import import_pandas
from askwise.tables.read_options import RECOGNISED, ReadOptions

EXCEL, PARQUET = ".xlsx", ".parquet"
_ENDINGS = (".csv", ".csv.gz", ".tsv", EXCEL, PARQUET)


def read_table(path: str | os.PathLike[str], as_written: Sequence[str | None] = (), options: ReadOptions = RECOGNISED) -> Any:
    """A pandas DataFrame from a file: .csv, .csv.gz, .tsv, .xlsx or .parquet. `options` say what cannot be recognised.

    Of text, empty fields, '?' and what pandas takes for nothing (NA, null, ...) are missing. The columns `as_written`
    stay as they are: 007 is not 7 where it is a name.
    """
    with _reading(path, options) as (pandas, file, ending):
        if ending == PARQUET:
            frame = pandas.read_parquet(file)
        else:
            frame = (excel if ending == EXCEL else text_files).read(pandas, file, as_written, options)
    check_distinct(list(frame.columns), "column")
    if not len(frame):
        raise InputError(f"the file {file.name!r} has no rows")
    return frame


def read_header(path: str | os.PathLike[str], options: ReadOptions = RECOGNISED) -> list[str]:
    """The names of the columns of such a file, without its rows."""
    with _reading(path, options) as (pandas, file, ending):
        if ending == PARQUET:
            parquet = importlib.import_module("pyarrow.parquet")
            names = [str(name) for name in parquet.read_schema(file).empty_table().to_pandas().columns]
        else:
            names = (excel if ending == EXCEL else text_files).header(pandas, file, options)
    check_distinct(names, "column")
    return names


def read_cells(path: str | os.PathLike[str]) -> list[list[str]]:
    """The fields of a small file, such as a list of costs, as they are written; all rows as long as the first."""
    with _reading(path, RECOGNISED) as (pandas, file, ending):
        if ending == PARQUET:
            frame = pandas.read_parquet(file)
            return [[str(name) for name in frame.columns], *([label(v) for v in row] for row in frame.itertuples(index=False))]
        rows = excel.cells(file) if ending == EXCEL else text_files.cells(file)
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            place = place_of(file, i - 1)
            raise InputError(f"{place} has {len(row)} fields ({', '.join(row)}); it must have {len(rows[0])}, as the first has")
    return rows


def line_of(path: str | os.PathLike[str], row: int, options: ReadOptions = RECOGNISED) -> int | None:
    """The line of a text file, or the row of a sheet, where a row of its table is, counted from 1; None for Parquet."""
    with _reading(path, options) as (_, file, ending):
        return None if ending == PARQUET else (excel if ending == EXCEL else text_files).line_of(file, row, options)


def place_of(path: str | os.PathLike[str], row: int, options: ReadOptions = RECOGNISED) -> str:
    """Where in a file a row of its table is, in words; -1 is the row of names."""
    file, line = Path(path), line_of(path, row, options)
    if line is None:
        return f"row {row + 1} of {file.name!r}"
    return f"{'row' if file.name.lower().endswith(EXCEL) else 'line'} {line} of {file.name!r}"


@contextmanager
def errors_name_lines(path: str | os.PathLike[str] | None, options: ReadOptions = RECOGNISED) -> Iterator[None]:
    """While this lasts, errors name the line of the file that a row is from, if there is a file."""
    try:
        yield
    except RowError as error:
        if path is None:
            raise
        raise error.at(place_of(path, error.row, options)) from None


@contextmanager
def _reading(path: str | os.PathLike[str], options: ReadOptions) -> Iterator[tuple[Any, Path, str]]:
    """pandas, the file, and how its name ends; what goes wrong meanwhile is told in one sentence."""
    file = Path(path)
    if file.is_dir():
        raise InputError(f"{str(path)!r} is a folder; name a file")
    ending = checked_ending(file, options)
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


def checked_ending(file: Path, options: ReadOptions) -> str:
    """How the name of a file ends, which says what it is. Options that mean nothing for it are refused."""
    ending = next((e for e in _ENDINGS if file.name.lower().endswith(e)), None)
    if ending is None:
        raise InputError(f"the file {file.name!r} has an unknown format; its name must end in {', '.join(_ENDINGS)}")
    if ending in (PARQUET, EXCEL):
        options.refuse(("sep", "encoding"), file.name, "text files")
    if ending == PARQUET:
        options.refuse(("decimal",), file.name, "text files and .xlsx files")
    if ending != EXCEL:
        options.refuse(("sheet",), file.name, ".xlsx files")
    return ending
