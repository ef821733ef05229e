"""How the classes weigh against each other, as an input of the value heads: one training serves every weight.

    ℓ_w(y, d) = w_y ℓ(y, d),   w_y > 0,   Σ_y π_y w_y = 1          π: the class frequencies

Weights are normalised, so that what is at stake in a case stays what it is on average, and one unit of cost stays worth as much.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import ArrayLike

from askwise.core.arrays import Array, Doubles

FURTHEST = 30.0  # times as much or as little as the others one class weighs in training and where policies are measured
RATIOS = 9  # that are measured where there are two classes
FEW_RATIOS = (3.0, 10.0, FURTHEST)  # of each class, where there are more


def normalised(weights: ArrayLike, log_prior: Array) -> Doubles:
    """..., K: with a mean of 1 over cases as they come."""
    w = np.asarray(weights, float)
    of_mean: Doubles = w / (w @ np.exp(log_prior))[..., None]
    return of_mean


def drawn(n: int, log_prior: Array, share: float, rng: np.random.Generator) -> Doubles:
    """n, K: for this share of states one class weighs more or less than the others, for the rest all weigh the same."""
    weights = np.ones((n, len(log_prior)))
    which = np.flatnonzero(rng.random(n) < share)
    weights[which, rng.integers(len(log_prior), size=len(which))] = FURTHEST ** rng.uniform(-1, 1, len(which))
    return normalised(weights, log_prior)


def measured_weights(log_prior: Array) -> Iterator[Doubles]:
    """K each: those at which policies are measured. The first are all alike."""
    K = len(log_prior)
    yield np.ones(K)
    pairs = [(y, factor) for factor in FEW_RATIOS for y in range(K)]
    if K == 2:
        pairs = [(1, factor) for factor in np.geomspace(1 / FURTHEST, FURTHEST, RATIOS).tolist() if abs(factor - 1) > 1e-9]
    for y, factor in pairs:
        yield normalised(np.where(np.arange(K) == y, factor, 1.0), log_prior)
