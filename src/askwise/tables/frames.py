"""Tables as people have them: frames, dicts of columns, arrays, lists; one column at a time.

A frame is anything with `.columns` (or `.column_names`) and `frame[name]`; the columns of an array are called x0, x1, ...
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from askwise.core.arrays import Array
from askwise.core.parameters import check_distinct
from askwise.errors import InputError, did_you_mean


class TableView:
    """One way to look at all of them: the names of the columns, the number of rows, and the values of a column.

    With `rows`, only these are looked at; nothing is copied before a column is asked for.
    """

    def __init__(self, X: Any, rows: Array | None = None) -> None:
        if hasattr(type(X), "toarray"):  # of the type: a frame may have a column of this name
            raise InputError("the data is a sparse matrix; make it an array with its method toarray()")
        self.named = isinstance(X, Mapping) or hasattr(X, "columns")
        self._X = X if self.named else as_array(X)
        if not self.named and self._X.ndim != 2:
            raise InputError(f"the data has shape {self._X.shape}; it must be rows x columns")
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
            values = as_array(values)
        if self._rows is not None:
            values = values.iloc[self._rows] if hasattr(values, "iloc") else values[self._rows]
        if len(values) != len(self):
            raise InputError(f"column {name!r} has {len(values)} values for {len(self)} rows; give one for each")
        return values


def _keys(X: Any) -> list[Any]:
    if isinstance(X, Mapping):
        return list(X)
    return list(X.column_names if hasattr(type(X), "column_names") else X.columns)


def as_array(X: Any) -> Array:
    """Rows x columns, or one column. Lists that mix words and numbers keep both, where NumPy would make all of them words."""
    try:
        data = np.asarray(X)
        if data.dtype.kind in "US" and not isinstance(X, np.ndarray):
            data = np.asarray(X, dtype=object)
    except ValueError:
        raise InputError("the rows of the data differ in length; each must have the same columns") from None
    return data


def import_pandas() -> Any:
    """pandas, which only those need who read files or want frames."""
    try:
        return importlib.import_module("pandas")
    except ImportError:
        raise InputError("tables from files and dicts of columns need pandas; install 'askwise[tables]'") from None
