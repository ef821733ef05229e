"""Sheets of .xlsx files: values as a spreadsheet shows them, dates as dates. openpyxl is imported only where one is read.

A file is a small zip of large XML, so its sizes are checked before anything of it is unpacked.
"""

from __future__ import annotations

import importlib
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from askwise.core.parameters import check_distinct
from askwise.errors import InputError, did_you_mean
from askwise.tables import decimals
from askwise.tables.cells import label
from askwise.tables.read_options import RECOGNISED, ReadOptions

MOST_BYTES = 200_000_000  # of all parts, unpacked
MOST_BYTES_BESIDE = 5_000_000  # of a part that is neither a sheet nor the list of texts: these are held as a whole
MOST_PARTS = 10_000
MOST_ROWS = 1_048_576  # of a sheet, by the format
MOST_CELLS = 20_000_000
_NOTHING = {"", "?", "#N/A", "N/A", "NA", "NULL", "null", "NaN", "nan", "None", "n/a", "<NA>"}  # as pandas in text files


def read(pandas: Any, file: Path, as_written: Sequence[str | None], options: ReadOptions) -> Any:
    """A frame from the first sheet, or the one that `options` name."""
    with _sheet(file, options) as rows:
        names = _names(file, next(rows, (0, ()))[1])
        table = [[None if isinstance(v, str) and v.strip() in _NOTHING else v for v in row] for _, row in rows]
    wide = next((row for row in table if any(value is not None for value in row[len(names) :])), None)
    if wide is not None:
        raise InputError(
            f"the sheet of {file.name!r} has a row of {len(wide)} values for {len(names)} names of columns; name them all"
        )
    if any(len(row) < len(names) or None in row for row in table):
        _refuse_formulas(file, options)
    columns = {name: [row[i] if i < len(row) else None for row in table] for i, name in enumerate(names)}
    empty = [name for name, column in columns.items() if all(value is None for value in column)]
    frame = pandas.DataFrame(columns).astype(dict.fromkeys(empty, float))
    marks = decimals.marks_in(frame, as_written)
    decimals.settle(frame, as_written, options.decimal, marks, lambda row: f"row {line_of(file, row, options)}")
    return frame


def header(pandas: Any, file: Path, options: ReadOptions) -> list[str]:
    """The names of the columns."""
    with _sheet(file, options) as rows:
        return _names(file, next(rows, (0, ()))[1])


def cells(file: Path) -> list[list[str]]:
    """The values of the first sheet of a small file as text, all rows as wide as the first."""
    with _sheet(file, RECOGNISED) as rows:
        texts = [["" if value is None else label(value) for value in row] for _, row in rows]
    width = len(texts[0]) if texts else 0
    return [row + [""] * (width - len(row)) for row in texts]


def line_of(file: Path, row: int, options: ReadOptions) -> int:
    """The number of the row of the sheet that holds a row of the table."""
    with _sheet(file, options) as rows:
        return next((number for i, (number, _) in enumerate(rows) if i == row + 1), row + 2)


@contextmanager
def _sheet(file: Path, options: ReadOptions, values: bool = True) -> Iterator[Iterator[tuple[int, list[Any]]]]:
    """The rows of a sheet that are not empty, with their numbers. `values`: what formulas come to, otherwise the formulas."""
    openpyxl = importlib.import_module("openpyxl")
    _check_sizes(file)
    try:
        with file.open("rb") as stream:
            book = openpyxl.load_workbook(stream, read_only=True, data_only=values, keep_links=False)
            yield _rows(file, _chosen(file, book, options.sheet))
    except InputError:
        raise
    except Exception as error:  # of a damaged file openpyxl raises whatever comes: KeyError, TypeError, errors of XML
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise InputError(
            f"the file {file.name!r} cannot be read as a table: it is damaged, or not an .xlsx file ({reason})"
        ) from None


def _check_sizes(file: Path) -> None:
    try:
        with zipfile.ZipFile(file) as archive:
            parts = archive.infolist()
    except (zipfile.BadZipFile, ValueError, NotImplementedError, OSError):
        raise InputError(
            f"the file {file.name!r} cannot be read as a table: it is not an .xlsx file, or it is protected by a password; "
            "open it in a spreadsheet program and save it as .xlsx or .csv"
        ) from None
    large = [part for part in parts if part.file_size > MOST_BYTES_BESIDE and part.filename.endswith((".xml", ".rels"))]
    beside = [part for part in large if not part.filename.startswith(("xl/worksheets/", "xl/sharedStrings"))]
    if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_BYTES or beside:
        most = f"{MOST_BYTES // 1_000_000} MB"
        raise InputError(f"the file {file.name!r} is too large once it is unpacked (at most {most}); save the sheet as .csv")


def _chosen(file: Path, book: Any, name: str | None) -> Any:
    sheets = {sheet.title: sheet for sheet in book.worksheets}
    if not sheets:
        raise InputError(f"the file {file.name!r} has no sheet with cells")
    if name is not None and name not in sheets:
        raise InputError(f"the file {file.name!r} has no sheet {name!r}; {did_you_mean(name, sheets)}")
    return sheets[name] if name is not None else next(iter(sheets.values()))


def _rows(file: Path, sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    sheet.reset_dimensions()  # what a sheet says of its own size may be wrong
    n_cells = 0
    for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
        n_cells += len(row)
        if number > MOST_ROWS or n_cells > MOST_CELLS:
            most = f"{MOST_ROWS:,} rows or {MOST_CELLS:,} cells"
            raise InputError(f"the sheet {sheet.title!r} of {file.name!r} has more than {most}; save it as .csv")
        last = max((i for i, value in enumerate(row) if value is not None), default=-1)
        if last >= 0:
            yield number, list(row[: last + 1])


def _names(file: Path, row: Sequence[Any]) -> list[str]:
    names = ["" if value is None else label(value) for value in row]
    if not names:
        raise InputError(f"the file {file.name!r} cannot be read as a table: its sheet is empty")
    if "" in names:
        raise InputError(
            f"column {names.index('') + 1} of {file.name!r} has no name; the first row of the sheet must name all columns"
        )
    check_distinct(names, "column")
    return names


def _refuse_formulas(file: Path, options: ReadOptions) -> None:
    """A formula that was never computed looks like an empty cell."""
    with _sheet(file, options) as values, _sheet(file, options, values=False) as formulas:
        computed = dict(values)
        names = next(iter(computed.values()), [])
        for number, row in formulas:
            there = computed.get(number, [])
            for i, value in enumerate(row):
                if isinstance(value, str) and value.startswith("=") and (i >= len(there) or there[i] is None):
                    column = f" of column {label(names[i])!r}" if i < len(names) and names[i] is not None else ""
                    raise InputError(
                        f"the sheet of {file.name!r} holds the formula {value!r} without its value in row {number}{column}; "
                        "open the file in a spreadsheet program and save it there"
                    )
