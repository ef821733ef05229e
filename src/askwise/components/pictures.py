"""Convolutions that see pictures, as data. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from askwise.core.arrays import Array

if TYPE_CHECKING:
    from askwise.components.encoders import Convolutional
    from askwise.core.schema import Schema

LARGEST, MOST_CONVOLUTIONS = 4_096, 8  # sizes that are believed of a file, and how many convolutions
CHANNELS = (32, 64, 128)  # of the convolutions that are tried


@dataclass(frozen=True)
class Convolutions:
    """Makes a `Convolutional` encoder. It is data, so that a model file can hold it."""

    rows: int
    columns: int
    planes: int = 1
    channels: tuple[int, ...] = CHANNELS
    mirror: bool = False

    def __call__(self, schema: Schema, width: int) -> Convolutional:
        from askwise.components.encoders import Convolutional

        return Convolutional(schema, width, **asdict(self))

    def to_dict(self) -> dict[str, Any]:
        return {**asdict(self), "channels": list(self.channels)}

    @classmethod
    def from_dict(cls, facts: Mapping[str, Any]) -> Convolutions:
        """The inverse of `to_dict`; what cannot be is refused."""
        sizes = [facts["rows"], facts["columns"], facts["planes"], *facts["channels"]]
        whole = all(type(n) is int and 0 < n <= LARGEST for n in sizes)
        known = set(facts) == {field.name for field in fields(cls)} and type(facts["mirror"]) is bool
        if not (whole and known and 0 < len(facts["channels"]) <= MOST_CONVOLUTIONS):
            raise ValueError("sizes of convolutions are whole numbers")
        return cls(**{**facts, "channels": tuple(facts["channels"])})

    def fit(self, weights: Mapping[str, Array], part: str, width: int) -> bool:
        """Whether the weights of a part of a network are of this size, so that nothing larger is made for them."""
        shapes = [(after, before, 3, 3) for before, after in pairwise((2 * self.planes, *self.channels))]
        n, rows, columns = len(shapes), self.rows, self.columns
        for _ in shapes:
            rows, columns = -(-rows // 2), -(-columns // 2)
        sizes = {3 * i: shape for i, shape in enumerate(shapes)} | {3 * n + 1: (width, rows * columns * self.channels[-1])}
        return all(weights[f"{part}.body.{layer}.weight"].shape == shape for layer, shape in sizes.items())
