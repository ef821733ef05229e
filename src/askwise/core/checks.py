"""What people give, made into arrays, or refused in one sentence that names the column, the value and what would be right."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Bools, Doubles, Floats, Ints
from askwise.core.costs import LEAST, MOST, exact
from askwise.core.parameters import check_distinct
from askwise.errors import InputError, RowError, StateError, did_you_mean, quoted


def table(X: Any, columns: Sequence[str]) -> Floats:
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


LONGEST_LABEL = 1000  # characters


def labels(values: Any, what: str = "the target") -> Array:
    """N: classes of a sort that every file can keep and give back: texts, whole numbers, numbers, or true and false."""
    given = np.asarray(values)
    right = "a class must be a text, a number, or true or false; make it a text"
    if given.dtype.kind == "T":  # NumPy's texts of any length
        given = np.array(given.tolist())
    if given.dtype.kind == "O":
        given = _of_one_sort(given, what, right)
    if given.dtype.kind not in "biufUO" or (given.dtype.kind == "f" and given.dtype.itemsize > 8):
        raise InputError(f"{what} holds values of type {given.dtype}; {right}")
    if given.dtype.kind == "u" and (given > np.uint64(2**63 - 1)).any():
        raise InputError(f"{what} holds {given.max()}; a class that is a whole number must be below 2 ** 63, or be made a text")
    if given.dtype.kind in "UO":
        for text in set(given.ravel().tolist()):
            if len(text) > LONGEST_LABEL or "\0" in text:
                raise InputError(
                    f"{what} holds {quoted(text)}, which has {len(text)} characters; "
                    f"a class may have {LONGEST_LABEL}, none of them the character 0"
                )
    return given


def _of_one_sort(given: Array, what: str, right: str) -> Array:
    """Python's own values as an array of their sort; texts stay as they are."""
    sorts: dict[str, Any] = {
        "text": str,
        "true or false": (bool, np.bool_),
        "whole number": (int, np.integer),
        "number": (float, np.floating),
    }
    first: dict[str, int] = {}
    values = given.ravel().tolist()
    for row, value in enumerate(values):
        sort = next((name for name, types in sorts.items() if isinstance(value, types)), None)
        if sort is None:
            kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
            raise RowError(f"{what} holds {quoted(value)}", row, f", which is of type {kind}; {right}")
        first.setdefault(sort, row)
    if set(first) == {"text"}:
        return given
    made = np.array(values)
    mixed = len(first) > 1 and {*first} != {"whole number", "number"}
    if mixed or made.dtype.kind == "O" or made.tolist() != values:
        *others, last = (f"{quoted(values[row])} in row {row}" for row in first.values())
        said = " and ".join([", ".join(others), last] if others else [last])
        right = "classes must be all texts, all numbers of at most 64 bits, or all true or false"
        raise InputError(f"{what} holds {said} (counted from 0); {right}")
    return made.reshape(given.shape)


def codes(values: Any, classes: Sequence[Any], n: int, what: str) -> Ints:
    """N: the index of each value among the classes."""
    given = np.asarray(values)
    if given.shape != (n,):
        raise InputError(f"{what} has shape {given.shape}; there must be one value for each of {n} rows")
    index = {c: k for k, c in enumerate(classes)}
    if given.dtype == object:  # may mix words, numbers and None, which cannot be sorted
        found = np.array([index.get(v, -1) for v in given.tolist()], np.int64)
    else:
        some, inverse = np.unique(given, return_inverse=True)
        found = np.array([index.get(v, -1) for v in some.tolist()], np.int64)[inverse]
    if (found < 0).any():
        row = int(np.argmin(found))
        value = given[row : row + 1].tolist()[0]
        raise RowError(f"{what} is {quoted(value)}", row, f", which is not a class; {did_you_mean(value, classes)}")
    return found


def known(given: Any, tests: Sequence[str], available: Bools | None, n: int) -> Bools:
    """N, F: from names of tests that everyone knows, or from a mask."""
    array = np.asarray(given)
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


def loss(given: Any, classes: Sequence[Any], class_weight: Doubles | float) -> Doubles:
    """K, K: loss[truth, decision], each row times the weight of its class."""
    K = len(classes)
    if isinstance(given, Mapping) or hasattr(given, "columns"):
        given = by_class(given, classes, "the loss matrix")
    try:
        losses = 1.0 - np.eye(K) if given is None else np.array(given, np.float64)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"the loss matrix must be {K} rows of {K} numbers, loss[truth, decision]") from None
    if losses.shape != (K, K):
        raise InputError(f"the loss matrix has shape {losses.shape}; for {K} classes it must be {(K, K)}, loss[truth, decision]")
    _amounts(losses, classes, "the loss matrix")
    losses *= np.reshape(class_weight, (-1, 1))
    if not losses.any():
        raise InputError("the loss matrix, with the class weights, is all zeros, so no decision matters")
    _amounts(losses, classes, "the loss matrix, with the class weights,")
    return losses


def _amounts(losses: Doubles, classes: Sequence[Any], what: str) -> None:
    """Refuses a loss that cannot be computed with, and says which one it is."""
    usual = (losses >= float(LEAST)) & (losses <= float(MOST))
    for truth, decision in np.argwhere(~usual & (losses != 0)).tolist():
        value = losses[truth, decision]
        fault = "too small or too large" if value > 0 and np.isfinite(value) else "negative or not finite"
        raise InputError(
            f"{what} holds {value:g} for deciding {classes[decision]!r} where {classes[truth]!r} is true, which is "
            f"{fault}; losses must be finite numbers, 0 or from 1e-12 to 1e15"
        )


def by_class(given: Any, classes: Sequence[Any], what: str) -> Any:
    """A frame, or {truth: {decision: value}}, as rows in the order of the classes. It has each class once, and nothing else."""
    if isinstance(given, Mapping):
        rows = {truth: dict(row) if isinstance(row, Mapping) else {} for truth, row in given.items()}
        names = {"row": list(rows), "column": list(dict.fromkeys(name for row in rows.values() for name in row))}
    else:
        names = {"row": list(getattr(given, "index", range(len(given)))), "column": list(given.columns)}
        if [*names.values()] == [[*range(len(classes))]] * 2:  # not named, so in order
            return np.asarray(given)
        cells = zip(names["row"], np.asarray(given).tolist(), strict=True)
        rows = {truth: dict(zip(names["column"], row, strict=True)) for truth, row in cells}
    for kind, there in names.items():
        for name in there:
            if name not in classes:
                raise InputError(f"{what} has a {kind} {name!r}, which is not a class; {did_you_mean(name, classes)}")
        check_distinct(there, f"{kind} of {what}")
        for name in classes:
            if name not in there:
                raise InputError(f"{what} has no row or no column for the class {name!r}; it needs both for every class")
    for truth in classes:
        for decision in classes:
            if decision not in rows[truth]:
                raise InputError(f"{what} has no loss for deciding {decision!r} where {truth!r} is true; add it")
    return [[rows[truth][decision] for decision in classes] for truth in classes]


def row_weights(given: Any, labels: Ints | None, K: int, n: int) -> Doubles:
    """N: how often rows are drawn, as given or balanced over the classes."""
    if isinstance(given, str):
        balanced: Doubles = _balanced(given, labels, K)[labels]
        return balanced
    right = f"the row weights must be {n} finite numbers, 0 or more, not all 0"
    try:
        weights = np.asarray(given, np.float64)
    except (ValueError, TypeError):
        raise InputError(right) from None
    if weights.shape != (n,) or not np.isfinite(weights.sum()) or (weights < 0).any() or not weights.any():
        raise InputError(right)
    return weights


def class_weights(
    given: Mapping[Any, Any] | str, labels: Ints | None, classes: Sequence[Any], weight: Doubles | None = None
) -> Doubles:
    """K: by class, 1 for those not named, or balanced, over rows that count as much as their weights say."""
    if isinstance(given, str):
        return _balanced(given, labels, len(classes), weight)
    if not hasattr(given, "items"):
        raise InputError(f"the class weights are {quoted(given)}; they must be 'balanced' or like {{{classes[0]!r}: 2}}")
    for name, value in given.items():
        if name not in classes:
            raise InputError(f"a weight is given for {name!r}, which is not a class; {did_you_mean(name, classes)}")
        if not isinstance(value, (int, float, np.number)):
            raise InputError(f"the weight of class {name!r} is {quoted(value)}; it must be a finite number, 0 or more")
        exact(value, f"the weight of class {name!r}")
    return np.array([given.get(c, 1.0) for c in classes], np.float64)


def _balanced(word: str, labels: Ints | None, K: int, weight: Doubles | None = None) -> Doubles:
    if word != "balanced":
        raise InputError(f"weights are {word!r}; they must be numbers or 'balanced'")
    if labels is None:
        raise InputError("'balanced' weights need a target")
    counts = np.bincount(labels, weight, minlength=K)
    # a class without rows is as one with a single row
    weights: Doubles = counts.sum() / (K * np.where(counts > 0, counts, counts.sum() / len(labels)))
    return weights


def seconds(facts: Mapping[str, Any], name: str) -> float:
    """A time that a checkpoint tells."""
    value = facts.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        raise StateError(f"the checkpoint is damaged: its {name} is {quoted(value)}; it must be a number of seconds")
    return float(value)
