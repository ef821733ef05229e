"""Linear layers without torch, from the weights that a training has left."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from askwise.core.arrays import Array

Linear = tuple[Array, Array]  # matrix (in, out) and bias


def linear(weights: Mapping[str, Array], name: str, dtype: Any) -> Linear:
    """One linear layer of a torch network."""
    return np.ascontiguousarray(weights[f"{name}.weight"].T.astype(dtype)), weights[f"{name}.bias"].astype(dtype)


def linears(weights: Mapping[str, Array], name: str, dtype: Any) -> list[Linear]:
    """All linear layers of a sequence, in order."""
    numbers = sorted({int(key.split(".")[1]) for key in weights if key.startswith(f"{name}.")})
    return [linear(weights, f"{name}.{i}", dtype) for i in numbers]


def relu_layers(x: Array, layers: Iterable[Linear]) -> Array:
    """B, W: fully connected layers, each followed by a ReLU."""
    for matrix, bias in layers:
        x = x @ matrix
        x += bias
        np.maximum(x, 0, out=x)
    return x
