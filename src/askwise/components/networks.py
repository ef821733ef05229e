"""Pieces of torch networks that several trainers share: layers, inputs, averaged weights, weights as arrays."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from askwise.core.arrays import Arrays, Floats

Weights = Arrays  # of a network, by name


def stack(inputs: int, width: int, depth: int = 3) -> nn.Sequential:
    """Layers of equal width, each with a ReLU."""
    sizes = [inputs, *[width] * depth]
    return nn.Sequential(*(part for a, b in pairwise(sizes) for part in (nn.Linear(a, b), nn.ReLU(inplace=True))))


def inputs(values: Floats, mask: Any) -> Tensor:
    """S, C + F: the network's input, values and mask side by side."""
    C = values.shape[1]
    both = np.empty((len(values), C + mask.shape[1]), np.float32)
    both[:, :C] = values
    both[:, C:] = mask
    return torch.from_numpy(both)


@torch.no_grad()
def soft_update(target: nn.Module, network: nn.Module, rho: float) -> None:
    """φ := (1 - ρ) φ + ρ θ.

    Paper: section 3.1, target network; algorithm 2, update φ
    """
    torch._foreach_lerp_(list(target.parameters()), list(network.parameters()), rho)
    for buffer, latest in zip(target.buffers(), network.buffers(), strict=True):
        buffer.copy_(latest)


def gumbel_perturbed(logits: Tensor, legal: Tensor, uniform: Floats, never: float = -1e9) -> Tensor:
    """u_i - log(-log U_i), and `never` for what is not legal: its largest entry is a draw from softmax(u) over what is legal.

    U: uniform, shaped like the logits, in NumPy, which takes logarithms of single precision several times as fast.

    Family: F17
    """
    noise = np.log(np.clip(uniform, np.float32(1e-9), np.float32(1 - 1e-6)))
    noise = np.log(np.negative(noise, out=noise), out=noise)
    return (logits - torch.from_numpy(noise).to(logits.device)).masked_fill(~legal, never)


def log_softmax(logits: Tensor) -> Tensor:
    """log softmax(z); B, K. Class by class over all cases: along a few classes torch computes one case at a time."""
    return logits.t().contiguous().log_softmax(0).t()


def array(tensor: Tensor) -> Any:
    """A tensor in NumPy, wherever it lives."""
    return tensor.detach().cpu().numpy()


def weights_of(network: nn.Module) -> Weights:
    """A copy of all parameters and buffers."""
    return {k: v.detach().cpu().numpy().copy() for k, v in network.state_dict().items()}


def load_weights(network: nn.Module, weights: Weights) -> None:
    """The inverse of `weights_of`."""
    network.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in weights.items()})
