"""How much is not known."""

from __future__ import annotations

import numpy as np

from askwise.core.arrays import Array


def entropy(probabilities: Array) -> Array:
    """B, 1: H(p) = -Σ_k p_k log p_k, in nats, of B, K class probabilities."""
    terms = np.maximum(probabilities, 1e-12)  # 0 log 0 = 0
    np.log(terms, out=terms)
    terms *= probabilities
    return -np.add.reduce(terms, 1, keepdims=True)
