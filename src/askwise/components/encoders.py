"""Encoders: what turns values and mask into what a network's heads see. One is for pictures; users may give their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from askwise.core.schema import Schema
from askwise.errors import InputError

# Makes an encoder for a schema and a width: a module from S, C + F (values, then mask) to S, `out_features`.
Encoder = Callable[[Schema, int], nn.Module]


def encoded_width(encoder: nn.Module, schema: Schema) -> int:
    """How many outputs an encoder has."""
    with torch.no_grad():
        out = encoder.eval()(torch.zeros(2, len(schema.columns) + schema.n_tests))
    if out.ndim != 2 or len(out) != 2:
        raise InputError(f"the encoder turns 2 states into shape {tuple(out.shape)}; it must be (2, some width)")
    return int(out.shape[1])


class Convolutional(nn.Module):
    """For pictures: values and mask are planes of a height x width picture, whose columns go row by row and pixel by pixel.
    `askwise.components.pictures.Convolutions(28, 28)` makes it.

    Each number of channels is a convolution after which the picture is halved. `mirror`: while it learns, half of the pictures,
    each with its mask, are seen in a mirror, where left and right mean nothing.
    """

    def __init__(
        self, schema: Schema, width: int, rows: int, columns: int, planes: int, channels: Sequence[int], mirror: bool
    ) -> None:
        super().__init__()
        if len(schema.columns) != rows * columns * planes:
            shape = f"{rows} x {columns}" + (f" x {planes}" if planes > 1 else "")
            raise InputError(f"pictures of {shape} need {rows * columns * planes} columns; there are {len(schema.columns)}")
        if not channels:
            raise InputError("channels is empty; it must hold the channels of at least one convolution, such as (16, 32)")
        self.shape, self.mirror = (rows, columns, planes), mirror
        self.flipped = False  # all pictures are, to see whether they then mean the same
        self.owner: Tensor
        self.register_buffer("owner", torch.from_numpy(schema.owner), persistent=False)
        self.body = nn.Sequential()
        for before, after in pairwise((2 * planes, *channels)):
            self.body.extend([nn.Conv2d(before, after, 3, padding=1), nn.ReLU(inplace=True), nn.MaxPool2d(2, ceil_mode=True)])
            rows, columns = -(-rows // 2), -(-columns // 2)
        self.body.extend([nn.Flatten(), nn.Linear(rows * columns * channels[-1], width), nn.ReLU(inplace=True)])

    def forward(self, inputs: Tensor) -> Tensor:
        C = len(self.owner)
        both = torch.stack([inputs[:, :C], inputs[:, C:][:, self.owner]], 1)  # S, 2, C
        planes = both.view(len(inputs), 2, *self.shape).permute(0, 1, 4, 2, 3).flatten(1, 2)  # S, 2 planes, rows, columns
        if self.flipped:
            planes = planes.flip(3)
        if self.mirror and self.training:
            planes = torch.where(torch.rand(len(planes), 1, 1, 1, device=planes.device) < 0.5, planes.flip(3), planes)
        encoded: Tensor = self.body(planes)
        return encoded
