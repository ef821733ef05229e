"""Rows of values, and what is known of them at the start, made into arrays or refused in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Bools, Floats
from askwise.errors import InputError, RowError, did_you_mean, quoted


def value_table(X: Any, columns: Sequence[str]) -> Floats:
    """N, C: finite numbers, or NaN where missing."""
    try:
        data = np.asarray(X)
    except ValueError:
        raise InputError(f"the rows of the data differ in length; each must have {len(columns)} columns") from None
    if data.ndim != 2 or data.shape[1] != len(columns):
        raise InputError(f"the data has shape {data.shape}; it must be rows x {len(columns)} columns")
    if not len(data):
        raise InputError("there are no rows")
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused as such
            numbers = data.astype(np.float32, copy=False)
    except (ValueError, TypeError):
        row, column = _first_text(data)
        holds = f"column {columns[column]!r} holds {quoted(data[row, column])}"
        raise RowError(holds, row, "; values must be numbers, or NaN where missing") from None
    if (bad := np.argwhere(np.isinf(numbers))).size:
        row, column = bad[0]
        holds = f"column {columns[column]!r} holds {data[row, column]}"
        raise RowError(holds, row, "; values must be finite, or missing")
    return numbers


def _first_text(data: Array) -> tuple[int, int]:
    for row, values in enumerate(data.tolist()):
        for column, value in enumerate(values):
            try:
                float(value)
            except (ValueError, TypeError):
                return row, column
    raise AssertionError("all values are numbers")


def known_mask(known: Any, tests: Sequence[str], available: Bools | None, n: int) -> Bools:
    """N, F: from names of tests that everyone knows, or from a mask."""
    array = np.asarray(known)
    if array.ndim == 1 and all(isinstance(name, str) for name in array.tolist()):
        mask = np.zeros((n, len(tests)), bool)
        for name in array.tolist():
            if name not in tests:
                raise InputError(f"the test {name!r} is listed as known, but does not exist; {did_you_mean(name, tests)}")
            mask[:, list(tests).index(name)] = True
        return mask if available is None else mask & available
    if array.shape != (n, len(tests)) or array.dtype != bool:
        raise InputError(
            f"what is known must be names of tests, or true and false of shape {(n, len(tests))}; "
            f"it is {array.dtype} of shape {array.shape}"
        )
    if available is not None and (bad := np.argwhere(array & ~available)).size:
        raise RowError(f"test {tests[bad[0, 1]]!r} is marked as known", bad[0, 0], ", but its value is missing")
    return array
