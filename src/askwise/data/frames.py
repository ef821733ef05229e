"""Tables as people have them: files, frames, arrays, lists; one column at a time.

pandas is imported only where a file is read. A frame is anything with `.columns` (or `.column_names`) and `frame[name]`; a dict
of columns is one too. The columns of an array are called x0, x1, ...
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askwise.core import checks
from askwise.errors import InputError, did_you_mean

_SEPARATORS = {".csv": ",", ".csv.gz": ",", ".tsv": "\t"}
_ENDINGS = (*_SEPARATORS, ".parquet")


class Table:
    """One way to look at all of them: the names of the columns, the number of rows, and the values of a column.

    With `rows`, only these are looked at; nothing is copied before a column is asked for.
    """

    def __init__(self, X: Any, rows: NDArray[Any] | None = None) -> None:
        if hasattr(type(X), "toarray"):  # of the type: a frame may have a column of this name
            raise InputError("the data is a sparse matrix; make it an array with its method toarray()")
        self.named = isinstance(X, Mapping) or hasattr(X, "columns")
        self._X = X if self.named else _matrix(X)
        keys = _keys(X) if self.named else range(self._X.shape[1])
        self.names = [str(k) if self.named else f"x{k}" for k in keys]
        checks.distinct(self.names, "column")
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
    return Table(X).names


def column(X: Any, name: str) -> Any:
    """The values of one column."""
    return Table(X)[name]


def _keys(X: Any) -> list[Any]:
    if isinstance(X, Mapping):
        return list(X)
    return list(X.column_names if hasattr(type(X), "column_names") else X.columns)


def _matrix(X: Any) -> NDArray[Any]:
    data = _array(X)
    if data.ndim != 2:
        raise InputError(f"the data has shape {data.shape}; it must be rows x columns")
    return data


def _array(X: Any) -> NDArray[Any]:
    """Rows x columns, or one column. Lists that mix words and numbers keep both, where NumPy would make all of them words."""
    try:
        data = np.asarray(X)
        if data.dtype.kind in "US" and not isinstance(X, np.ndarray):
            data = np.asarray(X, dtype=object)
    except ValueError:
        raise InputError("the rows of the data differ in length; each must have the same columns") from None
    return data


def read_table(path: str | os.PathLike[str], text: Sequence[str | None] = ()) -> Any:
    """A pandas DataFrame from a file: .csv, .csv.gz, .tsv or .parquet.

    Of text, empty fields, '?' and what pandas takes for nothing (NA, null, ...) are missing. The columns named in `text` stay as
    they are written: 007 is not 7 where it is a name.
    """
    with _reading(path) as (pandas, file, separator):
        frame = pandas.read_parquet(file) if separator is None else _read_text(pandas, file, separator, text)
    checks.distinct(list(frame.columns), "column")
    if not len(frame):
        raise InputError(f"the file {file.name!r} has no rows")
    return frame


def read_header(path: str | os.PathLike[str]) -> list[str]:
    """The names of the columns of such a file, without its rows."""
    with _reading(path) as (pandas, file, separator):
        if separator is None:
            parquet = importlib.import_module("pyarrow.parquet")
            names = [str(name) for name in parquet.read_schema(file).empty_table().to_pandas().columns]
        else:
            names = _header(pandas, file, separator)[1]
    checks.distinct(names, "column")
    return names


@contextmanager
def _reading(path: str | os.PathLike[str]) -> Iterator[tuple[Any, Path, str | None]]:
    """pandas, the file, and what separates its columns, None for Parquet; what goes wrong meanwhile is told in one sentence."""
    file = Path(path)
    ending = next((e for e in _ENDINGS if file.name.lower().endswith(e)), None)
    if file.is_dir():
        raise InputError(f"{str(path)!r} is a folder; name a file")
    if ending is None:
        raise InputError(f"the file {file.name!r} is of an unknown sort; its name must end in {', '.join(_ENDINGS)}")
    if not file.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    pandas = import_pandas()
    try:
        yield pandas, file, _SEPARATORS.get(ending)
    except InputError:
        raise
    except ImportError:
        raise InputError("reading Parquet needs pyarrow; install 'askwise[tables]'") from None
    except (ValueError, OSError, EOFError) as error:  # the errors of pandas and pyarrow for damaged files are ValueErrors
        reason = (str(error).strip().splitlines() or ["no reason given"])[0]
        raise InputError(f"the file {file.name!r} cannot be read as a table: {reason}") from None


def _how(separator: str) -> dict[str, Any]:
    """What pandas is told about every text file."""
    return {"sep": separator, "encoding": "utf-8-sig", "skipinitialspace": True}


def _header(pandas: Any, file: Path, separator: str) -> tuple[list[str], list[str]]:
    """The names of the columns of a text file, as they are written and without spaces around them."""
    # Without a word, pandas renames the second of two columns of one name, and takes a value that is too many for the name of a
    # row. So the header is read on its own first, and with it a row, which is refused here if it is longer.
    written = list(pandas.read_csv(file, header=None, nrows=2, dtype=str, keep_default_na=False, **_how(separator)).iloc[0])
    names = [name.strip() for name in written]
    if "" in names:
        raise InputError(f"column {names.index('') + 1} of {file.name!r} has no name; name it, or remove it (pandas writes such "
                         "a column for the row numbers unless told index=False)")  # fmt: skip
    checks.distinct(names, "column")
    if len(names) == 1 and ";" in names[0]:
        raise InputError(f"the file {file.name!r} has the one column {names[0]!r}; separate columns by {separator!r}, not by ';'")
    return written, names


def _read_text(pandas: Any, file: Path, separator: str, text: Sequence[str | None]) -> Any:
    header, names = _header(pandas, file, separator)
    written = {name: str for name, stripped in zip(header, names, strict=True) if stripped in text}
    how: dict[str, Any] = {**_how(separator), "low_memory": False, "na_values": ["?"], "dtype": written}
    # In pieces, because the parser keeps the text of all that it reads at once, twice as large as the numbers. A column that is
    # not of one kind in all pieces is read again as a whole: 007 must not become 7 where there happen to be no words.
    pieces = list(pandas.read_csv(file, chunksize=100_000, **how))
    kinds = [{"n" if piece.dtypes.iloc[i].kind in "iuf" else piece.dtypes.iloc[i] for piece in pieces} for i in range(len(names))]
    frame = pandas.concat(pieces, ignore_index=True) if len(pieces) > 1 else pieces[0]
    del pieces
    for i in (i for i, kind in enumerate(kinds) if len(kind) > 1):
        frame.isetitem(i, pandas.read_csv(file, usecols=[i], **how).iloc[:, 0])
    frame.columns = names
    return frame


def import_pandas() -> Any:
    """pandas, which only those need who read files or want frames."""
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise InputError("tables from files need pandas; install 'askwise[tables]'") from None
