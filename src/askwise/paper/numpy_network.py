"""The paper's network without torch, for using a policy rather than training it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Floats
from askwise.core.cases import State


class DenseValues:
    """Q(s, a) of a `QNetwork` with the `dense` encoder, from its weights.

    Paper: section 3.1, dueling architecture
    """

    def __init__(self, weights: Mapping[str, Array], dtype: Any = np.float32) -> None:
        weights = {name: value.astype(dtype) for name, value in weights.items()}
        names = sorted(
            {name.rsplit(".", 1)[0] for name in weights if name.startswith("encoder.")}, key=lambda n: int(n.split(".")[1])
        )
        self.layers = [_layer(weights, name) for name in names]
        # V + A - mean A is linear, so it is folded into the last product
        matrix, bias = _layer(weights, "head")
        self.head = _dueling(matrix), _dueling(bias[None])[0]

    def __call__(self, state: State) -> Floats:
        first, bias = self.layers[0]
        C = state.values.shape[1]
        x = state.values.astype(first.dtype, copy=False) @ first[:C]
        x += state.mask.astype(first.dtype) @ first[C:]
        x += bias
        np.maximum(x, 0, out=x)
        for matrix, bias in self.layers[1:]:
            x = x @ matrix
            x += bias
            np.maximum(x, 0, out=x)
        q: Floats = x @ self.head[0] + self.head[1]
        return q


def _layer(weights: Mapping[str, Array], name: str) -> tuple[Floats, Floats]:
    return np.ascontiguousarray(weights[f"{name}.weight"].T), weights[f"{name}.bias"]


def _dueling(columns: Floats) -> Floats:
    """The first column is the value, the others are advantages."""
    advantage = columns[:, 1:]
    folded: Floats = advantage + (columns[:, :1] - advantage.mean(1, keepdims=True, dtype=np.float64)).astype(columns.dtype)
    return folded
