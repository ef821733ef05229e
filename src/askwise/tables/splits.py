"""Rows in parts by a seed, and the problems of three such parts: training, validation and test."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Ints
from askwise.core.problem import Problem
from askwise.errors import InputError
from askwise.tables.encoding import Encoding, schema_of


@dataclass(frozen=True, eq=False)
class Split:
    """Three sets of rows of one problem."""

    train: Problem
    validation: Problem
    test: Problem


def stratified(y: Array, shares: tuple[float, ...], seed: int) -> list[Ints]:
    """Rows in parts of the given shares, each class spread over all parts alike."""
    if abs(sum(shares) - 1) > 1e-9:
        raise InputError(f"the shares of a split are {shares}; they must add up to 1")
    rng = np.random.default_rng(seed)
    parts: list[list[Ints]] = [[] for _ in shares]
    for label in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == label))
        cuts = np.round(np.cumsum(shares)[:-1] * len(rows)).astype(int)
        for part, share in zip(parts, np.split(rows, cuts), strict=True):
            part.append(share)
    return [np.sort(np.concatenate(part)) for part in parts]


def shuffled(rows: Ints, sizes: Sequence[int], seed: int) -> list[Ints]:
    """The rows in random parts of the given sizes."""
    if sum(sizes) != len(rows):
        raise InputError(f"the parts of a split have {' + '.join(map(str, sizes))} rows; they must add up to {len(rows)}")
    order = np.random.default_rng(seed).permutation(rows)
    return [np.sort(part) for part in np.split(order, np.cumsum(sizes)[:-1])]


def split(
    X: Mapping[str, Array], y: Array, classes: Sequence[Any], rows: Sequence[Ints], costs: Any, class_weight: Any, **fit: Any
) -> Split:
    """Problems of three lists of rows of a dict of columns; all three are judged by the losses of the training rows.

    fit: as for `Encoding.fit`.
    """
    encoding = Encoding.fit(X, rows=rows[0], **fit)
    schema = schema_of(encoding, classes, costs)
    parts = [encoding.transform(X, rows=r) for r in rows]
    train = Problem.build(schema, parts[0], y[rows[0]], class_weight=class_weight)
    validation, test = (Problem.build(schema, x, y[r]).with_loss(train.loss) for x, r in zip(parts[1:], rows[1:], strict=True))
    return Split(train, validation, test)
