"""How each of the named data sets is made from its file: the fields of `named.Raw`, without the card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Floats, Ints
from askwise.datasets.sources import Source
from askwise.datasets.turney import turney
from askwise.errors import InputError
from askwise.tables.splits import shuffled, stratified

Fields = dict[str, Any]
Splits = Callable[[int], list[Ints]]


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


_HISTORY = _words(
    "age sex on_thyroxine query_on_thyroxine on_antithyroid_medication thyroid_surgery query_hypothyroid query_hyperthyroid "
    "pregnant sick tumor lithium goitre"
)
_BLOOD = _words("TSH T3 TT4 T4U FTI TBG")
_ANN_THYROID = _words(
    "age sex on_thyroxine query_on_thyroxine on_antithyroid_medication sick pregnant thyroid_surgery I131_treatment "
    "query_hypothyroid query_hyperthyroid lithium goitre tumor hypopituitary psych TSH T3 TT4 T4U FTI"
)
_FTI = {"FTI": ["TT4", "T4U"]}
_HEART = _words("age sex cp trestbps chol fbs restecg thalach exang oldpeak slope ca thal")
_HEPATITIS = _words(
    "AGE SEX STEROID ANTIVIRALS FATIGUE MALAISE ANOREXIA LIVER_BIG LIVER_FIRM SPLEEN_PALPABLE SPIDERS ASCITES VARICES "
    "BILIRUBIN ALK_PHOSPHATE SGOT ALBUMIN PROTIME HISTOLOGY"
)
_PIMA = _words("times_pregnant glucose_tol diastolic_bp triceps insulin mass_index pedigree age")
_BUPA = _words("mcv alkphos sgpt sgot gammagt")
_TERRAIN = _words(
    "Elevation Aspect Slope Horizontal_Distance_To_Hydrology Vertical_Distance_To_Hydrology Horizontal_Distance_To_Roadways "
    "Hillshade_9am Hillshade_Noon Hillshade_3pm Horizontal_Distance_To_Fire_Points"
)
_FOREST = (*_TERRAIN, *(f"Wilderness_Area{i}" for i in range(1, 5)), *(f"Soil_Type{i}" for i in range(1, 41)))
_TREES = ("Spruce/Fir", "Lodgepole Pine", "Ponderosa Pine", "Cottonwood/Willow", "Aspen", "Douglas-fir", "Krummholz")
_THINGS = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
_CODES = {"f": 0.0, "t": 1.0, "F": 0.0, "M": 1.0, "?": np.nan}


def _thyroid(source: Source) -> Fields:
    columns = (*_HISTORY, *_BLOOD)
    table, labels = [], []
    for line in source.built_in_rows():  # label, history, then for each blood test whether it was ordered, and its value
        history, blood = line[1 : 1 + len(_HISTORY)], line[1 + len(_HISTORY) :][1::2]
        table.append([_CODES[v] if v in _CODES else float(v) for v in history + blood])
        labels.append(line[0])
    return _fields(table, columns, labels, ("negative", "hypothyroid"), **turney("thyroid", columns, _FTI))


def _heart(source: Source) -> Fields:
    lines = source.built_in_rows()
    labels = ["healthy" if line[-1].strip() == "0" else "ill" for line in lines]
    table, more = [line[:-1] for line in lines], {"categorical": ("cp", "restecg", "thal"), **turney("heart", _HEART)}
    return _fields(table, _HEART, labels, ("healthy", "ill"), **more)


def _hepatitis(source: Source) -> Fields:
    lines = source.built_in_rows()
    table = [["nan" if v == "?" else v for v in line[1:]] for line in lines]
    labels = [{"1": "die", "2": "live"}[line[0]] for line in lines]
    return _fields(table, _HEPATITIS, labels, ("live", "die"), **turney("hepatitis", _HEPATITIS))


def _pima(source: Source) -> Fields:
    lines = source.built_in_rows()
    X = np.array([line[:-1] for line in lines], np.float64)
    for name in ("glucose_tol", "diastolic_bp", "triceps", "insulin", "mass_index"):  # a 0 was not measured
        at = _PIMA.index(name)
        X[X[:, at] == 0, at] = np.nan
    labels = [line[-1].strip() for line in lines]
    return _fields(X, _PIMA, labels, ("negative", "positive"), **turney("pima", _PIMA))


def _bupa(source: Source) -> Fields:
    lines = source.built_in_rows()
    labels = ["drinker" if float(line[5]) >= 3 else "moderate" for line in lines]  # the last column is an old mark of a split
    return _fields([line[:5] for line in lines], _BUPA, labels, ("moderate", "drinker"), **turney("bupa", _BUPA))


def _of_scikit_learn(source: Source) -> Fields:
    from sklearn import datasets

    stored = getattr(datasets, f"load_{source.card.name}")()
    classes = stored.target_names.tolist()
    columns = tuple(str(name) for name in stored.feature_names)
    scaling = "one" if source.card.name == "digits" else "columns"
    return _fields(stored.data, columns, [classes[k] for k in stored.target], tuple(classes), scaling=scaling)


def _miniboone(source: Source) -> Fields:
    X, y = read_miniboone(source.path())
    kept = X[:, 0] > -900
    X, y = X[kept], y[kept]
    return _particles(X, y, lambda seed: shuffled(np.arange(len(X)), (45_359, 19_439, 64_798), seed))


def _particles(X: Floats, y: Ints, splits: Splits) -> Fields:
    classes = ("background", "signal")
    return _fields(X, tuple(f"p{i}" for i in range(X.shape[1])), _named(y, classes), classes, splits)


def read_miniboone(path: Path) -> tuple[Floats, Ints]:
    """The text file of the UCI repository: how many rows are signal and how many background, then the rows in this order."""
    try:
        with path.open() as file:
            signal, background = (int(n) for n in file.readline().split())
            X = np.loadtxt(file, np.float32, ndmin=2)
    except ValueError as error:
        raise InputError(f"the file {path.name!r} is not as UCI has it: {error}") from None
    if len(X) != signal + background:
        raise InputError(f"the file {path.name!r} has {len(X)} rows; its first line says {signal} + {background}")
    return X, np.repeat([1, 0], [signal, background])


def _miniboone_tiny(source: Source) -> Fields:
    stored = source.arrays("X", "y", "split")
    kept = stored["X"][:, 0] > -900
    X, y, part = (stored[name][kept] for name in ("X", "y", "split"))
    return _particles(X, y, lambda seed: [np.flatnonzero(part == p) for p in ("train", "validation", "test")])


def _forest(source: Source) -> Fields:
    stored = source.arrays("X", "y")
    rows = np.arange(len(stored["X"]))
    y = _named(stored["y"], _TREES)
    return _fields(stored["X"], _FOREST, y, _TREES, lambda seed: shuffled(rows, (200_000, 81_012, 300_000), seed))


def _images(source: Source) -> Fields:
    stored = source.arrays("X", "y", "is_test")
    test = stored["is_test"].astype(bool)
    side = round(source.card.columns**0.5)
    classes: tuple[Any, ...] = _THINGS if source.card.name == "cifar" else tuple(range(10))
    y = _named(stored["y"], classes) if source.card.name == "cifar" else stored["y"].astype(np.int64)

    def splits(seed: int) -> list[Ints]:
        rest = np.flatnonzero(~test)
        return [*shuffled(rest, (len(rest) - 10_000, 10_000), seed), np.flatnonzero(test)]

    columns = tuple(f"px_{r}_{c}" for r in range(side) for c in range(side))
    return _fields(stored["X"], columns, y, classes, splits, scaling="one")


def _ann_thyroid(source: Source) -> Fields:
    classes = ("hyperthyroid", "subnormal/hypothyroid", "not hypothyroid")
    texts = source.find("ann-train.data", "ann-test.data")
    if texts and not source.find(str(source.card.file)):
        parts = [np.loadtxt(path, ndmin=2) for path in texts]
        both = np.concatenate(parts)
        X, y, test = both[:, :-1], both[:, -1].astype(np.int64) - 1, np.arange(len(both)) >= len(parts[0])
    else:
        stored = source.arrays("X", "y", "is_test")
        X, y, test = stored["X"], stored["y"].astype(np.int64), stored["is_test"]

    def splits(seed: int) -> list[Ints]:
        rest = np.flatnonzero(~test)
        return [*(rest[part] for part in stratified(y[rest], (0.8, 0.2), seed)), np.flatnonzero(test)]

    more = turney("ann_thyroid", _ANN_THYROID, _FTI)
    return _fields(X, _ANN_THYROID, _named(y, classes), classes, splits, **more)


def _nhanes(source: Source) -> Fields:
    stored = source.arrays("X", "y", "feature_names", "costs")  # the file holds more, of which the label is made
    columns = tuple(str(name) for name in stored["feature_names"])
    classes = ("normal", "prediabetes", "diabetes")
    costs = {name: f"{cost:g}" for name, cost in zip(columns, stored["costs"], strict=True)}
    return _fields(stored["X"], columns, _named(stored["y"], classes), classes, costs=costs)


def _diabetes(source: Source) -> Fields:
    stored = source.arrays("X", "y", "costs")
    columns = tuple(f"x{i}" for i in range(stored["X"].shape[1]))
    costs = dict(zip(columns, (str(cost) for cost in stored["costs"]), strict=True))
    classes = tuple(np.unique(stored["y"]).tolist())
    splits = partial(stratified, stored["y"], (0.7, 0.15, 0.15))
    return _fields(stored["X"], columns, stored["y"], classes, splits, costs=costs)


def _bank(source: Source) -> Fields:
    stored = source.arrays("X_sefa", "y", "names_sefa", "categorical")
    columns = tuple(str(name) for name in stored["names_sefa"])
    categorical = tuple(name for name in columns if name in stored["categorical"])
    classes = ("no", "yes")
    return _fields(
        stored["X_sefa"], columns, _named(stored["y"], classes), classes, _tenths(stored["y"]), categorical=categorical
    )


def _california(source: Source) -> Fields:
    stored = source.arrays("X", "y", "names")
    classes = ("lowest quarter", "second quarter", "third quarter", "highest quarter")
    columns = tuple(str(name) for name in stored["names"])
    return _fields(stored["X"], columns, _named(stored["y"], classes), classes, _tenths(stored["y"]))


def _metabric(source: Source) -> Fields:
    stored = source.arrays("X", "y", "names", "sefa12", "classes")
    chosen, classes = stored["sefa12"], tuple(str(name) for name in stored["classes"])
    columns = tuple(str(name) for name in stored["names"][chosen])
    return _fields(stored["X"][:, chosen], columns, _named(stored["y"], classes), classes, _tenths(stored["y"]))


def _tenths(y: Ints) -> Splits:
    """As many rows in each part as those have who published numbers."""
    return partial(stratified, y, (0.8, 0.1, 0.1))


def _fields(
    X: Any, columns: tuple[str, ...], y: Any, classes: tuple[Any, ...], splits: Splits | None = None, **more: Any
) -> Fields:
    """`splits`: None where there is no official split; then the rows are drawn by class."""
    data, labels = X if isinstance(X, np.ndarray) else np.array(X, np.float64), np.asarray(y)
    drawn = splits or (lambda seed: stratified(labels, (0.6, 0.2, 0.2), seed))
    return {"X": data, "columns": columns, "y": labels, "classes": classes, "splits": drawn, **more}


def _named(codes: Array, classes: Sequence[str]) -> Array:
    """Names instead of numbers, as Python's own strings: a million of them take no room and need no sorting."""
    names: Array = np.array(classes, dtype=object)[codes]
    return names


MAKERS: dict[str, Callable[[Source], Fields]] = {
    "thyroid": _thyroid,
    "heart": _heart,
    "hepatitis": _hepatitis,
    "pima": _pima,
    "bupa": _bupa,
    "digits": _of_scikit_learn,
    "breast_cancer": _of_scikit_learn,
    "wine": _of_scikit_learn,
    "miniboone": _miniboone,
    "miniboone_tiny": _miniboone_tiny,
    "forest": _forest,
    "cifar": _images,
    "mnist": _images,
    "ann_thyroid": _ann_thyroid,
    "nhanes": _nhanes,
    "diabetes": _diabetes,
    "bank": _bank,
    "california": _california,
    "metabric": _metabric,
}
