"""From raw columns to problems: a seeded, stratified split and scaling that is fitted on the training rows only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askwise.core.problem import Problem, Schema
from askwise.errors import InputError


@dataclass(frozen=True, eq=False)
class Split:
    """Three sets of rows of one problem."""

    train: Problem
    validation: Problem
    test: Problem


@dataclass(frozen=True, eq=False)
class Scaler:
    """Takes away the mean of each column and divides by its deviation, missing values left out."""

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]

    @classmethod
    def fit(cls, X: NDArray[Any]) -> Scaler:
        there = ~np.isnan(X)
        n = np.maximum(there.sum(0), 1)
        mean = np.where(there, X, 0).sum(0, dtype=np.float64) / n
        variance = np.where(there, (X - mean) ** 2, 0).sum(0, dtype=np.float64) / n
        deviation = np.sqrt(variance)
        return cls(mean, np.where(deviation > 0, deviation, 1.0))

    def __call__(self, X: NDArray[Any]) -> NDArray[np.float32]:
        return ((X - self.mean) / self.deviation).astype(np.float32)


def stratified(y: NDArray[Any], shares: tuple[float, ...], seed: int) -> list[NDArray[np.int64]]:
    """Rows in parts of the given shares, each class spread over all parts alike."""
    if abs(sum(shares) - 1) > 1e-9:
        raise InputError(f"the shares of a split are {shares}; they must add up to 1")
    rng = np.random.default_rng(seed)
    parts: list[list[NDArray[np.int64]]] = [[] for _ in shares]
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        cuts = np.round(np.cumsum(shares)[:-1] * len(rows)).astype(int)
        for part, some in zip(parts, np.split(rows, cuts), strict=True):
            part.append(some)
    return [np.sort(np.concatenate(part)) for part in parts]


def split(
    schema: Schema,
    X: NDArray[Any],
    y: NDArray[Any],
    rows: list[NDArray[np.int64]],
    class_weight: Any = None,
    **how: Any,
) -> Split:
    """Problems of the three lists of rows; all three are judged by the losses of the training rows."""
    scale = Scaler.fit(X[rows[0]])
    train = Problem.build(schema, scale(X[rows[0]]), y[rows[0]], class_weight=class_weight, **how)
    others = [Problem.build(schema, scale(X[r]), y[r]).with_loss(train.loss) for r in rows[1:]]
    return Split(train, *others)
