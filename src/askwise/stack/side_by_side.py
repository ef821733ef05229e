"""Networks of equal size side by side, as torch trains them: one batch of matrix products a layer."""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from askwise.core.arrays import Arrays


class SideBySide(nn.Module):
    """M networks with ReLUs. The last layer starts at zero."""

    def __init__(self, members: int, inputs: int, width: int, depth: int, outputs: int, dropout: float = 0.0) -> None:
        super().__init__()
        sizes = [inputs, *[width] * depth]
        starts = [torch.randn(members, a, b) * (2 / a) ** 0.5 for a, b in pairwise(sizes)]
        self.weight = nn.ParameterList([*map(nn.Parameter, starts), nn.Parameter(torch.zeros(members, width, outputs))])
        self.bias = nn.ParameterList([nn.Parameter(torch.zeros(members, 1, b)) for b in (*sizes[1:], outputs)])
        self.dropout = dropout

    def forward(self, inputs: Tensor) -> Tensor:
        """M, B, outputs from M, B, inputs."""
        hidden, last = inputs, len(self.weight) - 1
        for i in range(last):
            hidden = torch.relu(torch.baddbmm(self.bias[i], hidden, self.weight[i]))
            if self.dropout and self.training:
                hidden = hidden * some_left_out(hidden, self.dropout)
        out: Tensor = torch.baddbmm(self.bias[last], hidden, self.weight[last])
        return out

    def arrays(self) -> Arrays:
        """As they are stored: `0.weight` (M, in, out), `0.bias` (M, 1, out) and so on."""
        parts = {"weight": self.weight, "bias": self.bias}
        return {f"{i}.{name}": p.detach().numpy().copy() for name, layers in parts.items() for i, p in enumerate(layers)}


def some_left_out(hidden: Tensor, share: float) -> Tensor:
    """By what each unit is multiplied: 0 for about this share of them. A byte of chance for each decides, since
    numbers would take longer to draw."""
    n, out = hidden.numel(), min(round(256 * share), 255)
    chance = torch.empty(-(-n // 8), dtype=torch.int64).random_(-(2**63), None).view(torch.uint8)[:n].view(hidden.shape)
    return (chance >= out) * (256 / (256 - out))
