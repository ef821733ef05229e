"""Draws: some of many rows, sets of tests, and numbers for cases that do not depend on the batch."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from askwise.core.arrays import Array, Bools, Doubles, Ints


def some_rows(n: int, most: int, seed: int) -> Ints:
    """All of n rows, or `most` of them, the same ones throughout a run; 0 is no limit."""
    if not most or n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


def random_sets(n: int, tests: int, rng: np.random.Generator) -> Bools:
    """n, F: sets of tests of random size; small ones are more frequent, since tests are bought one by one."""
    return rng.random((n, tests)) < rng.random((n, 1)) ** 2


def hash_cases(what: Array, chunk: int = 4096) -> NDArray[np.uint64]:
    """One number per row of a matrix of values, or per id, whatever else is in the batch."""
    if what.ndim == 2 and len(what) > chunk:  # piece by piece: a copy of all rows would be as large as the data
        return np.concatenate([hash_cases(what[i : i + chunk]) for i in range(0, len(what), chunk)])
    if what.ndim == 1:
        what = np.ascontiguousarray(what.astype(str))
    else:
        what = np.ascontiguousarray(what.astype(np.float32)) + np.float32(0)  # -0.0 is 0.0
    words = what.view(np.uint32).reshape(len(what), -1)
    text = what.dtype.kind == "U"
    key = np.full(len(what), 0xCBF29CE484222325, np.uint64)
    for word in words.T:  # FNV-1a over 32-bit words; the zeros that pad short ids are passed over
        mixed = (key ^ word) * np.uint64(0x100000001B3)
        key = np.where(word == 0, key, mixed) if text else mixed
    return key


def uniform(key: NDArray[np.uint64], seed: int) -> Doubles:
    """A number in [0, 1) for each key: the finishing steps of SplitMix64 over key and seed."""
    z = key + np.uint64((seed * 2 + 1) * 0x9E3779B97F4A7C15 % 2**64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        z = (z ^ (z >> np.uint64(shift))) * np.uint64(factor)
    return ((z ^ (z >> np.uint64(31))) >> np.uint64(11)) / 2.0**53
