"""Tables with published numbers, in the splits of those who published them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch

from askwise.core.arrays import Array, Ints
from askwise.datasets import named

# seeds of the splits, and the pixels that SEFA's authors chose
SEEDS = {"bank": 9675, "california": 2538, "metabric": 2534}
PIXELS = (153, 154, 210, 211, 243, 269, 271, 295, 327, 348, 350, 375, 405, 409, 427, 430, 461, 514, 543, 655)
NAMES = (*SEEDS, "mnist20")


class Published(NamedTuple):
    """A table, all of whose tests cost 1, the rows to learn from and the rows to test with."""

    columns: dict[str, Array]
    y: Array
    learn: Ints  # training and validation rows
    test: Ints
    categorical: list[str]


def table(name: str) -> Published:
    """From the folder that ASKWISE_DATA names."""
    raw = named.raw("mnist" if name == "mnist20" else name)
    if name == "mnist20":
        train, validation, test = raw.splits(0)
        columns = {f"pixel {i}": raw.X[:, i].astype(float) for i in PIXELS}
        return Published(columns, raw.y, np.sort(np.r_[train, validation]), test, [])
    order = torch.randperm(len(raw.y), generator=torch.Generator().manual_seed(SEEDS[name])).numpy()
    learn = int(0.9 * len(order))
    columns = dict(zip(raw.columns, raw.X.T.astype(float), strict=True))
    return Published(columns, raw.y, order[:learn], order[learn:], list(raw.categorical))
