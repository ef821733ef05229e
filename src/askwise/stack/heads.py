"""Value heads side by side in one batched network, as torch trains them."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn


class ValueHeads(nn.Module):
    """M networks of two hidden layers each. The last layer starts at zero, so that at first nothing is to be gained."""

    def __init__(self, members: int, inputs: int, width: int, outputs: int) -> None:
        super().__init__()
        sizes = ((inputs, width), (width, width), (width, outputs))
        starts = [torch.randn(members, a, b) * math.sqrt(2 / a) for a, b in sizes[:2]]
        self.weight = nn.ParameterList([*map(nn.Parameter, starts), nn.Parameter(torch.zeros(members, width, outputs))])
        self.bias = nn.ParameterList([nn.Parameter(torch.zeros(members, 1, b)) for _, b in sizes])

    def forward(self, inputs: Tensor) -> Tensor:
        """M, B, outputs from M, B, inputs."""
        hidden = inputs
        for i in range(2):
            hidden = torch.relu(torch.baddbmm(self.bias[i], hidden, self.weight[i]))
        out: Tensor = torch.baddbmm(self.bias[2], hidden, self.weight[2])
        return out
