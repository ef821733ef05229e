"""What comes to a fit, checked: the table, the target, weights of rows, what is known, a seed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from askwise.core.arrays import Array, Bools, Doubles
from askwise.core.labels import class_labels
from askwise.errors import InputError, RowError, quoted
from askwise.tables.cells import missing
from askwise.tables.frames import TableView, as_array, import_pandas
from askwise.tables.pictures import PictureShape
from askwise.tables.stored import StoredTable


def table_of(estimator: Any, X: Any, reset: bool = False) -> Any:
    """A frame or a dict of columns, which go by name and may hold anything, or an array, checked as scikit-learn does, or
    pictures where the estimator has their shape; `reset` for a fit."""
    X = flat(estimator, X)
    if isinstance(X, Mapping):
        table = TableView(X)
        X = import_pandas().DataFrame({name: table[name] for name in table.names})
    if hasattr(X, "columns"):
        TableView(X)  # which refuses what has no proper columns
        shown = X.header if isinstance(X, StoredTable) else X
        validate_data(estimator, shown, reset=reset, skip_check_array=True) if reset else None
        if len(X) == 0:
            raise InputError("there are no rows")
        return X
    if isinstance(X, list):
        X = as_array(X)  # where NumPy would make words of numbers
    numbers = hasattr(X, "tocsr") or np.asarray(X).dtype.kind in "fiub"
    array = check_array(X, dtype=None, ensure_all_finite="allow-nan" if numbers else False, estimator=estimator)
    validate_data(estimator, array, reset=reset, skip_check_array=True)
    return array


def picture_of(estimator: Any) -> PictureShape | None:
    """What the columns are pixels of."""
    return PictureShape.of(estimator.shape, estimator.patch)


def flat(estimator: Any, X: Any) -> Any:
    """Pictures as rows of a table; any other table as it is."""
    picture = picture_of(estimator)
    return X if picture is None else picture.flat(X)


def reveals_of(estimator: Any, table: Any) -> Any:
    """The columns that each test shows: those that were named or, of pictures, those of each patch."""
    picture = picture_of(estimator)
    if picture is None:
        return estimator.reveals
    for name, instead in (("reveals", "patch= says what a test shows"), ("network", "a trial chooses the network")):
        if getattr(estimator, name):  # the command line has an empty one
            raise InputError(f"shape and {name} are given, and {instead}; leave one of them out")
    return picture.reveals(TableView(table).names)


def target_of(y: Any, n: int) -> Array:
    """N: the classes, none of them missing."""
    values = np.asarray(y)
    if values.ndim and len(values) != n:
        raise InputError(f"there are {len(values)} targets for {n} rows")
    each = values.ravel().tolist() if values.dtype.kind in "Of" else []
    whole = set(map(type, each)) <= {str, int, bool}  # then none is missing, and millions are not looked at one by one
    row = None if whole else next((i for i, v in enumerate(each) if missing(v)), None)
    if row is not None:
        raise RowError("the target is missing", row, "; remove rows without a target")
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise RowError("the target is inf", int(np.argmax(np.isinf(values))), "; it must be a class")
    flat: Array = np.asarray(column_or_1d(class_labels(values), warn=True))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # many classes are no error
            check_classification_targets(flat)
    except ValueError as error:
        raise InputError(f"the target cannot be learned: {str(error).splitlines()[0]}") from None
    return flat


def weights_of(sample_weight: Any, n: int) -> Doubles | None:
    """N: how much each row counts; None where all count alike."""
    if sample_weight is None:
        return None
    try:
        values = np.asarray(sample_weight, np.float64)
    except (TypeError, ValueError):
        raise InputError(f"sample_weight is {quoted(sample_weight)}; it must be {n} numbers, one for each row") from None
    if values.shape != (n,):
        raise InputError(f"sample_weight has shape {values.shape}; there must be one number for each of {n} rows")
    wrong = np.flatnonzero(~np.isfinite(values) | (values < 0))
    if len(wrong):
        raise RowError(f"sample_weight is {values[wrong[0]]:g}", wrong[0], "; it must be a finite number, 0 or more")
    if not values.any():
        raise InputError("sample_weight is zero for all rows; some must be above 0")
    return None if np.ptp(values) == 0 else values / values.max()  # so that sums stay finite


def known_of(known: Any, shape: tuple[int, int]) -> tuple[tuple[str, ...], Bools | None]:
    """Names of tests that everyone knows, or a mask of what each row knows."""
    if known is None:
        return (), None
    if isinstance(known, str):
        return (known,), None
    array = np.asarray(known if hasattr(known, "__array__") else list(known))
    if array.ndim == 1 and all(isinstance(name, str) for name in array.tolist()):
        return tuple(array.tolist()), None
    if array.shape != shape or array.dtype != bool:
        raise InputError(
            f"what is known must be names of tests, or true and false of shape {shape}; "
            f"it is {array.dtype} of shape {array.shape}"
        )
    return (), array


def seed_of(random_state: Any) -> int:
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(check_random_state(random_state).randint(2**31 - 1))
