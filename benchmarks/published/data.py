"""Tables with published numbers, in the splits of those who published them; see README.md."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

from askwise.core.arrays import Array, Ints
from askwise.errors import InputError

# seeds of the splits, and the pixels that SEFA's authors chose
SEEDS = {"bank": 9675, "california": 2538, "metabric": 2534}
PIXELS = (153, 154, 210, 211, 243, 269, 271, 295, 327, 348, 350, 375, 405, 409, 427, 430, 461, 514, 543, 655)
NAMES = (*SEEDS, "mnist20")


class Published(NamedTuple):
    """A table, the rows to learn from and the rows to test with."""

    columns: dict[str, Array]
    y: Array
    learn: Ints  # training and validation rows
    test: Ints
    categorical: list[str]


def table(name: str) -> Published:
    """All costs are 1."""
    folder = os.environ.get("ASKWISE_DATA")
    if not folder:
        raise InputError("the tables with published numbers are read from the folder that ASKWISE_DATA names; set it")
    path = Path(folder) / ("mnist.npz" if name == "mnist20" else f"published/{name}.npz")
    with np.load(path, allow_pickle=False) as file:
        y = file["y"].astype(int)
        if name == "mnist20":
            X, names = file["X"].reshape(len(y), -1)[:, PIXELS], [f"pixel {i}" for i in PIXELS]
            is_test = file["is_test"].astype(bool)
            return Published(_columns(X, names), y, np.flatnonzero(~is_test), np.flatnonzero(is_test), [])
        chosen = file["sefa12"] if name == "metabric" else slice(None)
        X = file["X_sefa"] if name == "bank" else file["X"][:, chosen]
        names = [str(n) for n in (file["names_sefa"] if name == "bank" else file["names"][chosen])]
        categorical = [n for n in names if n in file["categorical"]] if name == "bank" else []
    order = torch.randperm(len(y), generator=torch.Generator().manual_seed(SEEDS[name])).numpy()
    learn = int(0.9 * len(y))
    return Published(_columns(X, names), y, order[:learn], order[learn:], categorical)


def _columns(X: Array, names: list[str]) -> dict[str, Array]:
    return dict(zip(names, X.T.astype(float), strict=True))
