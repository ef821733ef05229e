"""Classes: labels of a type that every file can keep, and their numbers. What is none is refused in one sentence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Ints
from askwise.errors import InputError, RowError, did_you_mean, quoted

LONGEST_LABEL = 1000  # characters


def class_labels(values: Any, what: str = "the target") -> Array:
    """N: classes of a type that every file can keep and give back: texts, whole numbers, numbers, or true and false."""
    labels = np.asarray(values)
    right = "a class must be a text, a number, or true or false; make it a text"
    if labels.dtype.kind == "T":  # NumPy's texts of any length
        labels = np.array(labels.tolist())
    if labels.dtype.kind == "O":
        labels = _of_one_type(labels, what, right)
    if labels.dtype.kind not in "biufUO" or (labels.dtype.kind == "f" and labels.dtype.itemsize > 8):
        raise InputError(f"{what} holds values of type {labels.dtype}; {right}")
    if labels.dtype.kind == "u" and (labels > np.uint64(2**63 - 1)).any():
        raise InputError(f"{what} holds {labels.max()}; a class that is a whole number must be below 2 ** 63, or be made a text")
    if labels.dtype.kind in "UO":
        for text in set(labels.ravel().tolist()):
            if len(text) > LONGEST_LABEL or "\0" in text:
                raise InputError(
                    f"{what} holds {quoted(text)}, which has {len(text)} characters; "
                    f"a class may have {LONGEST_LABEL}, none of them the character 0"
                )
    return labels


def _of_one_type(labels: Array, what: str, right: str) -> Array:
    """Python's own values as an array of their type; texts stay as they are."""
    label_types: dict[str, Any] = {
        "text": str,
        "true or false": (bool, np.bool_),
        "whole number": (int, np.integer),
        "number": (float, np.floating),
    }
    first: dict[str, int] = {}
    values = labels.ravel().tolist()
    if set(map(type, values)) == {str}:  # millions of them are not looked at one by one
        return labels
    for row, value in enumerate(values):
        type_name = next((name for name, types in label_types.items() if isinstance(value, types)), None)
        if type_name is None:
            kind = f"{type(value).__module__}.{type(value).__qualname__}".removeprefix("builtins.")
            raise RowError(f"{what} holds {quoted(value)}", row, f", which is of type {kind}; {right}")
        first.setdefault(type_name, row)
    if set(first) == {"text"}:
        return labels
    typed = np.array(values)
    mixed = len(first) > 1 and {*first} != {"whole number", "number"}
    if mixed or typed.dtype.kind == "O" or typed.tolist() != values:
        *others, last = (f"{quoted(values[row])} in row {row}" for row in first.values())
        examples = " and ".join([", ".join(others), last] if others else [last])
        right = "classes must be all texts, all numbers of at most 64 bits, or all true or false"
        raise InputError(f"{what} holds {examples} (counted from 0); {right}")
    return typed.reshape(labels.shape)


def class_codes(values: Any, classes: Sequence[Any], n: int, what: str) -> Ints:
    """N: the index of each value among the classes."""
    labels = np.asarray(values)
    if labels.shape != (n,):
        raise InputError(f"{what} has shape {labels.shape}; there must be one value for each of {n} rows")
    index = {c: k for k, c in enumerate(classes)}
    if labels.dtype == object:  # may mix words, numbers and None, which cannot be sorted
        codes = np.array([index.get(v, -1) for v in labels.tolist()], np.int64)
    else:
        distinct, inverse = np.unique(labels, return_inverse=True)
        codes = np.array([index.get(v, -1) for v in distinct.tolist()], np.int64)[inverse]
    if (codes < 0).any():
        row = int(np.argmin(codes))
        value = labels[row : row + 1].tolist()[0]
        raise RowError(f"{what} is {quoted(value)}", row, f", which is not a class; {did_you_mean(value, classes)}")
    return codes
