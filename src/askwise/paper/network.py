"""The Q-network: an encoder of [x ⊙ m, m], which can be replaced, and dueling heads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from askwise.core.arrays import Array, Floats
from askwise.core.episode import State
from askwise.core.problem import Schema
from askwise.errors import InputError

# Makes an encoder for a schema and a width: a module from S, C + F (values, then mask) to S, `out_features`.
Encoder = Callable[[Schema, int], nn.Module]
Weights = dict[str, Array]


def dense(schema: Schema, width: int) -> nn.Module:
    """Three fully connected layers of equal width, each with a ReLU.

    Paper: section 3.2, three hidden layers
    """
    return stack(len(schema.columns) + schema.n_tests, width)


def stack(inputs: int, width: int, depth: int = 3) -> nn.Sequential:
    """Layers of equal width, each with a ReLU."""
    sizes = [inputs, *[width] * depth]
    return nn.Sequential(*(part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU(inplace=True))))


def encoded_width(encoder: nn.Module, schema: Schema) -> int:
    """How many outputs an encoder has."""
    with torch.no_grad():
        out = encoder.eval()(torch.zeros(2, len(schema.columns) + schema.n_tests))
    if out.ndim != 2 or len(out) != 2:
        raise InputError(f"the encoder turns 2 states into shape {tuple(out.shape)}; it must be (2, some width)")
    return int(out.shape[1])


class Convolutional(nn.Module):
    """For images: values and mask are two channels of a height x width picture. Use as `Convolutional.of(28, 28)`.

    Each number of channels is a convolution after which the picture is halved. `mirror`: while it learns, half of the pictures,
    each with its mask, are seen in a mirror, where left and right mean nothing.
    """

    def __init__(
        self, schema: Schema, width: int, rows: int, columns: int, channels: Sequence[int] = (16, 32), mirror: bool = False
    ) -> None:
        super().__init__()
        if len(schema.columns) != rows * columns:
            raise InputError(f"pictures of {rows} x {columns} need {rows * columns} columns; there are {len(schema.columns)}")
        if not channels:
            raise InputError("channels is empty; it must hold the channels of at least one convolution, such as (16, 32)")
        self.shape, self.mirror = (rows, columns), mirror
        self.owner: Tensor
        self.register_buffer("owner", torch.from_numpy(schema.owner), persistent=False)
        self.body = nn.Sequential()
        for before, after in pairwise((2, *channels)):
            self.body.extend([nn.Conv2d(before, after, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2, ceil_mode=True)])
            rows, columns = -(-rows // 2), -(-columns // 2)
        self.body.extend([nn.Flatten(), nn.Linear(rows * columns * channels[-1], width), nn.ReLU(inplace=True)])

    @classmethod
    def of(cls, rows: int, columns: int, channels: Sequence[int] = (16, 32), mirror: bool = False) -> Encoder:
        return lambda schema, width: cls(schema, width, rows, columns, channels, mirror)

    def forward(self, inputs: Tensor) -> Tensor:
        C = len(self.owner)
        planes = torch.stack([inputs[:, :C], inputs[:, C:][:, self.owner]], 1)  # S, 2, C
        planes = planes.view(-1, 2, *self.shape)
        if self.mirror and self.training:
            planes = torch.where(torch.rand(len(planes), 1, 1, 1) < 0.5, planes.flip(3), planes)
        encoded: Tensor = self.body(planes)
        return encoded


class QNetwork(nn.Module):
    """Q(s, a) = V(s) + A(s, a) - mean over a' of A(s, a').

    Paper: section 3.1, dueling architecture
    """

    def __init__(self, schema: Schema, width: int, encoder: Encoder = dense) -> None:
        super().__init__()
        self.encoder = encoder(schema, width)
        # value and advantages are one product; the first output is the value
        self.head = nn.Linear(encoded_width(self.encoder, schema), 1 + schema.n_actions)

    def forward(self, inputs: Tensor) -> Tensor:
        out = self.head(self.encoder(inputs))
        return dueling(out[:, :1], out[:, 1:])


def dueling(value: Tensor, advantage: Tensor) -> Tensor:
    """Q = V + A - mean A.

    Paper: section 3.1, dueling architecture
    """
    return advantage + (value - advantage.mean(1, keepdim=True))


@torch.no_grad()
def soft_update(target: nn.Module, network: nn.Module, rho: float) -> None:
    """φ := (1 - ρ) φ + ρ θ.

    Paper: section 3.1, target network; algorithm 2, update φ
    """
    torch._foreach_lerp_(list(target.parameters()), list(network.parameters()), rho)
    for mine, theirs in zip(target.buffers(), network.buffers(), strict=True):
        mine.copy_(theirs)


def inputs(values: Floats, mask: Any) -> Tensor:
    """S, C + F: the network's input, values and mask side by side."""
    C = values.shape[1]
    both = np.empty((len(values), C + mask.shape[1]), np.float32)
    both[:, :C] = values
    both[:, C:] = mask
    return torch.from_numpy(both)


class NetworkValues:
    """A network as a function of states, for policies."""

    def __init__(self, network: nn.Module, device: torch.device) -> None:
        self.network = network
        self.device = device

    @torch.inference_mode()
    def __call__(self, state: State) -> Floats:
        q: Floats = self.network(inputs(state.values, state.mask).to(self.device)).cpu().numpy()
        return q


def weights_of(network: nn.Module) -> Weights:
    """A copy of all parameters and buffers."""
    return {k: v.detach().cpu().numpy().copy() for k, v in network.state_dict().items()}


def load_weights(network: nn.Module, weights: Weights) -> None:
    """The inverse of `weights_of`."""
    network.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in weights.items()})
