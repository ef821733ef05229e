"""The paper's network without torch, for using a policy rather than training it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from askwise.components.numpy_layers import linear, linears, relu_layers
from askwise.core.arrays import Array, Floats
from askwise.core.cases import State
from askwise.core.policy import ValueFunction


class DenseValues(ValueFunction):
    """Q(s, a) of a `QNetwork` with the `dense` encoder, from its weights.

    Paper: section 3.1, dueling architecture
    """

    def __init__(self, weights: Mapping[str, Array], dtype: Any = np.float32) -> None:
        self.layers = linears(weights, "encoder", dtype)
        # V + A - mean A is linear, so it is folded into the last product
        matrix, bias = linear(weights, "head", dtype)
        self.head = _dueling(matrix), _dueling(bias[None])[0]

    def __call__(self, state: State) -> Floats:
        (first, bias), *others = self.layers
        C = state.values.shape[1]
        x = state.values.astype(first.dtype, copy=False) @ first[:C]
        x += state.mask.astype(first.dtype) @ first[C:]
        x += bias
        np.maximum(x, 0, out=x)
        q: Floats = relu_layers(x, others) @ self.head[0] + self.head[1]
        return q


def _dueling(columns: Floats) -> Floats:
    """The first column is the value, the others are advantages."""
    advantage = columns[:, 1:]
    folded: Floats = advantage + (columns[:, :1] - advantage.mean(1, keepdims=True, dtype=np.float64)).astype(columns.dtype)
    return folded
