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
    """B, W: fully connected layers, each followed by a ReLU; or M, B, W: those of M networks."""
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
        self.members, self.between = len(first), between
        self.last = last.reshape(-1, last.shape[2]) / len(first), last_bias.mean((0, 1))

    def __call__(self, inputs: Any) -> Any:
        """B, outputs."""
        return self.after(self.begun(inputs))

    def begun(self, inputs: Any, used: Array | None = None) -> Any:
        """B, M W: the first layer, before its ReLU. used: the only inputs that count, if not all do."""
        matrix, bias = self.first
        return (inputs @ matrix if used is None else inputs.take(used, 1) @ matrix.take(used, 0)) + bias

    def after(self, begun: Any) -> Any:
        """B, outputs, from the first layer. Few operations, since with one case each takes the time of a call."""
        hidden, M = np.maximum(begun, 0), self.members
        width = len(self.first[1]) // M
        if hidden.shape[0] == 1:  # all networks in one call, which with many cases would have to move them first
            joined = relu_layers(hidden.reshape(M, 1, width), self.between).reshape(1, -1)
        else:
            own = [[(matrix[m], bias[m, 0]) for matrix, bias in self.between] for m in range(M)]
            joined = np.concatenate(
                [relu_layers(hidden[:, m * width : (m + 1) * width], layers) for m, layers in enumerate(own)], 1
            )
        matrix, bias = self.last
        return joined @ matrix + bias
