"""The named data sets, all along one path: `raw` gives the table as it came, `load` the encoded problems of its split.

Some come with the package, others are read from the folder named by ASKWISE_DATA; `cards()` says which, and what each of them is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Ints
from askwise.core.cost_spec import CostSpec
from askwise.datasets.cards import CARDS, Card, cards
from askwise.datasets.makers import MAKERS
from askwise.datasets.sources import Source
from askwise.errors import InputError, did_you_mean
from askwise.tables.cells import label
from askwise.tables.frames import import_pandas
from askwise.tables.splits import Split, split

__all__ = ["Card", "Raw", "cards", "load", "raw"]


@dataclass(frozen=True, eq=False)
class Raw:
    """A data set before splitting and encoding. Costs, set-ups and so on are as in `CostSpec`, by name of a column."""

    card: Card
    X: Array  # N, C: numbers, NaN where missing
    columns: tuple[str, ...]
    y: Array  # N: values from `classes`
    classes: tuple[Any, ...]
    splits: Callable[[int], list[Ints]]  # from a seed, the rows for training, validation and test
    costs: dict[str, Any] | None = None  # None: 1 for each
    setup: dict[str, tuple[Any, list[str]]] | None = None
    derived: dict[str, list[str]] | None = None
    reveals: dict[str, list[str]] | None = None  # None: each column is a test
    categorical: tuple[str, ...] = ()  # columns whose numbers are only names
    scaling: str = "columns"

    @property
    def spec(self) -> CostSpec:
        """All that is said about its tests and their costs."""
        return CostSpec(self.costs, self.setup or {}, self.derived or {}, self.reveals or {})

    @cached_property
    def table(self) -> Any:
        """X as a pandas DataFrame, in which columns of categories are categorical."""
        pandas = import_pandas()
        frame = pandas.DataFrame(self.X, columns=list(self.columns), copy=False)
        for name in self.categorical:
            frame[name] = pandas.Categorical([None if np.isnan(v) else label(v) for v in frame[name]])
        return frame


def raw(name: str, download: bool = False, verify: bool = True) -> Raw:
    """A named data set as it came. Only with `download` is anything fetched; `verify` compares the file's checksum."""
    if name not in MAKERS:
        raise InputError(f"there is no data set {name!r}; {did_you_mean(name, MAKERS)}")
    card = CARDS[name]
    data = Raw(card, **MAKERS[name](Source(card, download, verify)))
    expected = (len(data.X) if card.rows is None else card.rows, card.columns)
    if data.X.shape != expected or len(data.y) != len(data.X):
        sizes = f"{data.X.shape[0]} rows x {data.X.shape[1]} columns and {len(data.y)} labels"
        raise InputError(f"the file {card.file!r} gives {sizes}; for {name!r} it must be {expected[0]} x {expected[1]}")
    return data


def load(name: str, seed: int = 0, class_weight: Any = None, download: bool = False, verify: bool = True) -> Split:
    """A named data set, split and scaled. Where there is no official split, another seed is another split."""
    data = raw(name, download, verify)
    columns = dict(zip(data.columns, data.X.T, strict=True))
    fit = {"scaling": data.scaling, "categorical": data.categorical}
    return split(columns, data.y, data.classes, data.splits(seed), data.spec, class_weight, **fit)
