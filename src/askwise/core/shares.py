"""Shares of cases and how sure they are: recall and precision by class, and the confusion matrix they come from."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from askwise.core.arrays import Bools, Doubles, Ints

Z = 1.959963984540054  # standard errors to either side of a 95 % interval


class Share(NamedTuple):
    """A share of cases with its standard error and its 95 % interval; all are NaN where there are no cases."""

    value: float
    error: float
    low: float
    high: float


NO_SHARE = Share(math.nan, math.nan, math.nan, math.nan)


def wilson(share: float, n: float, z: float = Z) -> tuple[float, float]:
    """Wilson's interval: all shares from which this one, of n cases, is at most z standard errors away. It has a width at 0 and
    at 1 too."""
    spread = z * z / n
    middle, half = share + spread / 2, (spread * (share * (1 - share) + spread / 4)) ** 0.5
    return max((middle - half) / (1 + spread), 0.0), min((middle + half) / (1 + spread), 1.0)


def shares(right: Bools, group: Ints, n_groups: int, weight: Doubles | None = None) -> list[Share]:
    """The share of each group that is right.

    Weighted cases count as much as their weights say; the interval is that of (sum w)² / sum w² cases.

    right: N; group: N, from 0 to n_groups - 1; weight: N.
    """
    w = np.ones(len(group)) if weight is None else weight / weight.max(initial=np.finfo(float).tiny)  # so that w² is no overflow

    sums = [np.bincount(group, values, n_groups).tolist() for values in (w, w * right, w**2, w**2 * right)]
    return [_share(*each) for each in zip(*sums, strict=True)]


def _share(total: float, right: float, squares: float, right_squares: float) -> Share:
    """Of sums of weights, and of their squares, over all cases and over those that are right."""
    if not squares:
        return NO_SHARE
    p = right / total
    spread = right_squares * (1 - p) ** 2 + (squares - right_squares) * p**2
    return Share(p, spread**0.5 / total, *wilson(p, total**2 / squares))


def confusion(truth: Ints, decision: Ints, shape: tuple[int, int], weight: Doubles | None = None) -> Doubles:
    """K, D: for how many cases of each class (row) each decision (column) was made. Weighted cases count as much as their weights
    say."""
    K, D = shape
    counts: Doubles = np.bincount(truth * D + decision, weight, K * D).reshape(K, D).astype(float)
    return counts
