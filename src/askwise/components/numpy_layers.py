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


class AveragedNetworks:
    """The mean of M networks with ReLUs, side by side, from layers `0.weight` (M, in, out), `0.bias` (M, 1, out) and so on."""

    def __init__(self, weights: Mapping[str, Array], dtype: Any) -> None:
        depth = sum(name.endswith(".weight") for name in weights)
        layers = [(weights[f"{i}.weight"].astype(dtype), weights[f"{i}.bias"].astype(dtype)) for i in range(depth)]
        (first, bias), *others = layers
        self.first = np.ascontiguousarray(first.transpose(1, 0, 2).reshape(first.shape[1], -1)), bias.reshape(-1)
        *between, (last, last_bias) = others
        self.between = [[(matrix[m], bias[m, 0]) for matrix, bias in between] for m in range(len(first))]
        self.last = last.reshape(-1, last.shape[2]) / len(first), last_bias.mean((0, 1))

    def __call__(self, inputs: Any, used: Array | None = None) -> Any:
        """B, outputs. used: the only inputs that count, if not all do. Few operations, since with one case each takes the time of
        a call."""
        matrix, bias = self.first
        hidden = inputs @ matrix if used is None else inputs.take(used, 1) @ matrix.take(used, 0)
        hidden, width = np.maximum(hidden + bias, 0), len(bias) // len(self.between)
        own = [relu_layers(hidden[:, m * width : (m + 1) * width], layers) for m, layers in enumerate(self.between)]
        matrix, bias = self.last
        return np.concatenate(own, 1) @ matrix + bias
