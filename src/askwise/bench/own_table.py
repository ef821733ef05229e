"""A table of one's own in a plan: what is said about its columns, checked against its header, and its split."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from askwise.bench.plan_settings import NAMES, TEXT
from askwise.bench.task import PARTS
from askwise.core.cost_spec import CostSpec
from askwise.core.labels import class_labels
from askwise.core.parameters import Constraint, Instance, Real, checked
from askwise.errors import InputError, RowError, did_you_mean
from askwise.tables import doubts
from askwise.tables.encoding import Encoding, schema_of
from askwise.tables.frames import TableView
from askwise.tables.read_options import OPTIONS, ReadOptions
from askwise.tables.reading import errors_name_lines, read_header, read_table
from askwise.tables.small_files import read_list
from askwise.tables.splits import Split, split, stratified

# what a plan may say of a file
OF_FILE = ("file", "target", "costs", "setup", "derived", "reveals", "ignore", "categorical", "scaling", "shares", *OPTIONS)
SHARES = (0.6, 0.2, 0.2)  # of the rows, for training, validation and test


class Shares(Constraint):
    """Of the rows, for each part."""

    words = f"three shares above 0, for {', '.join(PARTS)}, that add up to 1"

    def allows(self, value: Any) -> bool:
        shares = isinstance(value, list) and all(map(Real(above=0).allows, value))
        return shares and len(value) == len(PARTS) and abs(sum(value) - 1) <= 1e-9


SHAPES: dict[str, Constraint] = {
    "costs": Instance(dict, "a table like {age = 2}"),
    "setup": Instance(dict, 'a table like {draw = {cost = 2, tests = ["sugar"]}}'),
    "derived": Instance(dict, 'a table like {index = ["weight", "height"]}'),
    "reveals": Instance(dict, 'a table like {form = ["age", "smoker"]}'),
    "shares": Shares(),
    "ignore": NAMES,
    "categorical": NAMES,
}


def described(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    """What a plan says about a file, each in its shape; whether the columns are there, the header tells."""
    file = entry["file"]
    source = {name: entry[name] for name in OF_FILE if name in entry}
    if isinstance(source.get("costs"), str):
        source["costs"] = {row["test"]: row["cost"] for row in read_list(folder / source["costs"], ("test", "cost"))}
    source |= {name: checked(source[name], shape, f"`{name}` of {file!r}") for name, shape in SHAPES.items() if name in source}
    for key in ("derived", "reveals"):
        for test, names in source.get(key, {}).items():
            checked(names, NAMES, f"{test!r} in `{key}` of {file!r}")
    for name, pair in source.get("setup", {}).items():
        if not isinstance(pair, dict) or set(pair) != {"cost", "tests"}:
            raise InputError(f'the set-up {name!r} of {file!r} is {pair!r}; it must be like {{cost = 2, tests = ["sugar"]}}')
        checked(pair["tests"], NAMES, f"`tests` of the set-up {name!r} of {file!r}")
    return {**source, "target": checked(entry.get("target"), TEXT, f"the target of {file!r}")}


def check(folder: Path, source: dict[str, Any]) -> None:
    """Refuses what does not fit the header of the file: a row of zeros is prepared as its rows will be."""
    try:
        options = _reading(source)
    except InputError as error:
        raise InputError(f"{source['file']!r}: {error}") from None
    names = _tests(source, read_header(folder / source["file"], options))
    try:
        encoding = Encoding.fit({name: np.zeros(1) for name in names}, **_encoded(source))
        schema_of(encoding, (False, True), _spec(source))
    except InputError as error:
        raise InputError(f"{source['file']!r}: {error}") from None


def load(folder: Path, source: dict[str, Any], seed: int, class_weight: str | None) -> Split:
    """Its rows are split by class, and each column that is not left out is a test."""
    text = [*source.get("categorical", ()), *source.get("ignore", ())]
    file, options = folder / source["file"], _reading(source)
    with errors_name_lines(file, options):
        return _split(read_table(file, text, options), source, seed, class_weight)


def _split(table: Any, source: dict[str, Any], seed: int, class_weight: str | None) -> Split:
    target, tests = source["target"], _tests(source, TableView(table).names)
    columns = {name: table[name].to_numpy() if table[name].dtype.kind in "biuf" else table[name] for name in tests}
    y = table[target]
    if y.isna().any():
        raise RowError(f"the target {target!r} is missing", np.flatnonzero(y.isna())[0], "; remove such rows")
    labels = class_labels(y.to_numpy(), f"the target {target!r}")
    classes = np.unique(labels).tolist()
    if 2 * len(classes) > len(labels):
        raise InputError(
            f"the target {target!r} has {len(classes)} different values in {len(labels)} rows; it must be a class "
            "that many rows share, so put the values of a number into groups first"
        )
    rows = stratified(labels, tuple(source.get("shares", SHARES)), seed)
    if not all(map(len, rows)):
        raise InputError(
            f"`shares` of {source['file']!r} is {source.get('shares', SHARES)}; training, validation and test must "
            f"each get some of its {len(labels)} rows"
        )
    odd_columns = doubts.about_columns(columns, source.get("categorical", ()))
    doubts.tell([*doubts.about_target(np.array(classes), len(labels)), *odd_columns])
    return split(columns, labels, classes, rows, _spec(source), class_weight=class_weight, **_encoded(source))


def _gone(source: dict[str, Any]) -> list[str]:
    """The columns that are no tests."""
    return [source["target"], *source.get("ignore", ())]


def _tests(source: dict[str, Any], names: Sequence[str]) -> list[str]:
    """The columns that are."""
    for name in _gone(source):
        if name not in names:
            raise InputError(f"{source['file']!r} has no column {name!r}; {did_you_mean(name, names)}")
    tests = [name for name in names if name not in _gone(source)]
    if not tests:
        raise InputError(f"{source['file']!r} has no column besides its target and those in `ignore`; leave one as a test")
    return tests


def _reading(source: dict[str, Any]) -> ReadOptions:
    return ReadOptions(**{name: source.get(name) for name in OPTIONS})


def _encoded(source: dict[str, Any]) -> dict[str, Any]:
    return {"scaling": source.get("scaling", "columns"), "categorical": source.get("categorical", ())}


def _spec(source: dict[str, Any]) -> CostSpec:
    """What is said about the tests that are not left out, and their costs."""
    setup = {name: (pair["cost"], pair["tests"]) for name, pair in source.get("setup", {}).items()}
    return CostSpec(source.get("costs"), setup, source.get("derived", {}), source.get("reveals", {})).without(_gone(source))
