"""The named data sets. `thyroid` comes with the package; others are read from the folder named by ASKWISE_DATA."""

from __future__ import annotations

import csv
import os
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askwise.core.problem import Schema
from askwise.data.prepare import Split, split, stratified
from askwise.errors import InputError, did_you_mean

_HISTORY = (
    "age", "sex", "on_thyroxine", "query_on_thyroxine", "on_antithyroid_medication", "thyroid_surgery", "query_hypothyroid",
    "query_hyperthyroid", "pregnant", "sick", "tumor", "lithium", "goitre",
)  # fmt: skip
_BLOOD = ("TSH", "T3", "TT4", "T4U", "FTI", "TBG")
_CODES = {"f": 0.0, "t": 1.0, "F": 0.0, "M": 1.0, "?": np.nan}


def thyroid(seed: int = 0, class_weight: Any = None) -> Split:
    """Hypothyroid or not: 3,163 real patients with really missing blood tests (UCI, CC BY 4.0), Turney's prices in dollars.

    The flags that say whether a test was ordered are left out: they nearly give the label away.
    """
    table: list[list[float]] = []
    labels: list[str] = []
    file = resources.files("askwise.data") / "files" / "hypothyroid.csv"
    for line in csv.reader(file.read_text().splitlines()):
        label, history, blood = line[0], line[1 : 1 + len(_HISTORY)], line[1 + len(_HISTORY) :][1::2]
        table.append([_CODES[v] if v in _CODES else float(v) for v in history + blood])
        labels.append(label)
    prices: dict[str, Any] = dict.fromkeys(_HISTORY, "1.00")
    # TBG has no published price: it is given the dearest blood test's
    prices |= {"TSH": "20.68", "T3": "9.31", "TT4": "12.41", "T4U": "9.31", "TBG": "20.68"}
    schema = Schema.build(
        (*_HISTORY, *_BLOOD),
        ("negative", "hypothyroid"),
        prices,
        setup={"blood draw": ("2.10", [t for t in _BLOOD if t != "FTI"])},
        derived={"FTI": ["TT4", "T4U"]},
    )
    y = np.array(labels)
    return split(schema, np.array(table), y, stratified(y, (0.6, 0.2, 0.2), seed), class_weight)


def miniboone_tiny(seed: int = 0, class_weight: Any = None) -> Split:
    """2,000 / 1,000 / 2,000 rows of MiniBooNE, 50 tests at price 1; rows with the sentinel -999 are dropped."""
    stored = _folder_file("miniboone_tiny.npz")
    X, y, part = stored["X"].astype(np.float64), stored["y"], stored["split"]
    names = [str(n) for n in stored["feature_names"]]
    schema = Schema.build(names, (0, 1))
    kept = X[:, 0] > -900
    rows = [np.flatnonzero(kept & (part == p)) for p in ("train", "validation", "test")]
    return split(schema, X, y, rows, class_weight)


NAMED = {"thyroid": thyroid, "miniboone_tiny": miniboone_tiny}


def load(name: str, seed: int = 0, class_weight: Any = None) -> Split:
    """A named data set, split and scaled."""
    if name not in NAMED:
        raise InputError(f"there is no data set {name!r}; {did_you_mean(name, NAMED)}")
    return NAMED[name](seed, class_weight)


def _folder_file(name: str) -> dict[str, NDArray[Any]]:
    folder = os.environ.get("ASKWISE_DATA")
    if not folder:
        raise InputError(f"{name!r} is not part of the package; set ASKWISE_DATA to the folder that holds it")
    path = Path(folder) / name
    if not path.is_file():
        raise InputError(f"there is no file {name!r} in {folder!r}, the folder that ASKWISE_DATA names")
    with np.load(path, allow_pickle=False) as stored:
        return {key: stored[key] for key in stored.files}
