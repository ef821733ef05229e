"""What options of several commands mean: the model at a budget, and cases with their classes."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Ints
from askwise.core.budget import AverageBudget, Budget, ClassWeights, HardBudget, Tradeoff
from askwise.core.cost_spec import CostSpec
from askwise.core.target import OF_A_CLASS, SHARES, target
from askwise.datasets.named import raw
from askwise.errors import InputError, RowError, did_you_mean
from askwise.facade import Model, load
from askwise.tables.frames import TableView
from askwise.tables.read_options import OPTIONS, RECOGNISED, ReadOptions
from askwise.tables.reading import errors_name_lines, read_table
from askwise.tables.stored import StoredTable, table_at
from askwise.texts import split


def budget_of(options: argparse.Namespace) -> Budget:
    """All constraints that are given, together."""
    budget = Budget()
    more = {name: value for name in ("mixing", "confidence") if (value := getattr(options, name)) is not None}
    figures = [*_figures(options.at_least, "--at-least", SHARES), *_figures(options.at_most, "--at-most", ("loss",))]
    if "mixing" in more and options.average_budget is None:
        option = "--mixing" if options.mixing else "--no-mixing"
        raise InputError(f"{option} is about an average budget; give --average-budget too")
    if "confidence" in more and options.average_budget is None and not figures:
        raise InputError("--confidence is about an average budget or a target; give --average-budget or --at-least too")
    if options.average_budget is not None:
        budget = AverageBudget(options.average_budget, **more)
    for kind, amount in ((HardBudget, options.hard_budget), (Tradeoff, options.tradeoff)):
        budget = budget if amount is None else budget & kind(amount)
    for figure, of, value in figures:
        budget &= Budget(targets=(target(figure, value, of, options.confidence),))
    weights = dict[str, float]()
    for name, weight in _pairs(options.weigh, "--weigh", "CLASS=5"):
        if name in weights:
            raise InputError(f"--weigh {name}={weight} sets the weight of {name!r} twice; set it once")
        weights[name] = _number(weight, "--weigh", f"{name}={weight}")
    return budget & ClassWeights(weights) if weights else budget


def _figures(texts: Sequence[str] | None, option: str, known: Sequence[str]) -> list[tuple[str, str | None, float]]:
    """Figures, their classes and values: accuracy=0.9 or recall:ill=0.97."""
    shares = []
    for name, value in _pairs(texts, option, f"{known[0]}=0.9"):
        figure, colon, of = name.partition(":")
        if figure not in known:
            raise InputError(f"{option} {name}={value} is about {figure!r}; {did_you_mean(figure, known)}")
        if (figure in OF_A_CLASS) != bool(colon and of):
            right = f"{figure}:CLASS={value}" if figure in OF_A_CLASS else f"{figure}={value}"
            raise InputError(f"{option} {name}={value} cannot be read; write {option} {right}")
        shares.append((figure, of or None, _number(value, option, f"{name}={value}")))
    return shares


def _pairs(texts: Sequence[str] | None, option: str, right: str) -> list[tuple[str, str]]:
    """Names and values; a name may have a = of its own."""
    for text in texts or ():
        if "=" not in text:
            raise InputError(f"{option} {text} has no value; write it like {option} {right}")
    return [(name, value) for name, _, value in (text.rpartition("=") for text in texts or ())]


def _number(text: str, option: str, whole: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{option} {whole} ends in {text!r}, which is not a number") from None


def model_of(options: argparse.Namespace) -> Model:
    """The model of the file, at the budget that is given."""
    model, budget = load(options.model), budget_of(options)
    return model if budget == Budget() else model.at(budget)


def names(text: str | None, separator: str = ",") -> list[str]:
    """A list in an option or a cell."""
    return [name.strip() for name in split(text or "", separator)]


def reading_of(options: argparse.Namespace) -> ReadOptions:
    """How the file of cases is written, as far as it is said."""
    return ReadOptions(**{name: getattr(options, name) for name in OPTIONS})


@dataclass(frozen=True, eq=False)
class LabelledCases:
    """A table with nothing but tests (to learn from; others may hold more), the classes, and what is known of the tests."""

    X: Any
    y: Array
    spec: CostSpec = field(default_factory=CostSpec)
    scaling: str = "columns"
    left_out: Sequence[str] = ()  # columns that are no tests
    ids: Any = None  # names of the cases
    file: Path | None = None  # where the cases are from
    read_options: ReadOptions = RECOGNISED  # how that is written

    def errors_name_lines(self) -> AbstractContextManager[None]:
        """While this lasts, errors name the line of the file that a row is from."""
        return errors_name_lines(self.file, self.read_options)

    def take(self, rows: Ints) -> LabelledCases:
        """Some of them, without their names and lines."""
        table = self.X.take(rows) if isinstance(self.X, StoredTable) else self.X.iloc[rows]
        return LabelledCases(table, self.y[rows])


def cases_of(options: argparse.Namespace, part: str, as_written: Sequence[str] = ()) -> LabelledCases:
    """A file, where the columns `as_written` stay so, or rows of a named set: 'train' (with validation) or 'test'."""
    if (getattr(options, "cases", None) is None) == (options.data is None):
        raise InputError("give either a file of cases or --data NAME")
    if options.data is None:
        return _from_file(options, options.cases, part, as_written)
    if getattr(options, "test", None) is None:
        reading_of(options).refuse(OPTIONS, options.data, "files")
    return _from_named_set(options, part)


def test_file_of(options: argparse.Namespace, as_written: Sequence[str]) -> LabelledCases:
    """The cases of --test."""
    return _from_file(options, options.test, "test", as_written)


def _from_named_set(options: argparse.Namespace, part: str) -> LabelledCases:
    named = raw(options.data)
    train, validation, test = named.splits(0)
    rows = test if part == "test" else np.sort(np.concatenate([train, validation]))
    gone = _left_out(options, named.columns) if part == "train" else []
    return LabelledCases(named.table.drop(columns=gone).iloc[rows], np.asarray(named.y)[rows], named.spec, named.scaling, gone)


def _from_file(options: argparse.Namespace, file: Path, part: str, as_written: Sequence[str]) -> LabelledCases:
    read_options, target = reading_of(options), options.target
    read = table_at if part == "train" else read_table
    table = read(file, [*as_written, options.ids], read_options)
    if target is None:
        raise InputError(f"name the column of {file.name!r} that holds the class: --target COLUMN")
    columns = TableView(table).names
    if target not in columns:
        raise InputError(f"{file.name!r} has no column {target!r}; {did_you_mean(target, columns)}")
    y = table[target]
    with errors_name_lines(file, read_options):
        if y.isna().any():
            raise RowError(f"the target {target!r} is missing", np.flatnonzero(y.isna())[0], "; remove such rows")
        ids = ids_of(table, options.ids) if part == "test" else None
    gone = _left_out(options, [name for name in columns if name != target]) if part == "train" else []
    X = table.drop(columns=[target, *gone])
    return LabelledCases(X, y.to_numpy(), left_out=gone, ids=ids, file=file, read_options=read_options)


def _left_out(options: argparse.Namespace, columns: Sequence[str]) -> list[str]:
    """The columns that are no tests: those to ignore, and the names of the cases."""
    gone = [("--ignore", name) for name in names(options.ignore)] + [("--ids", name) for name in [options.ids] if name]
    for option, name in gone:
        if name not in columns:
            raise InputError(f"{option} names the column {name!r}, which does not exist; {did_you_mean(name, columns)}")
    return [name for _, name in gone]


def ids_of(table: Any, name: str | None) -> Any:
    """The column that names the cases, if one was named."""
    if name is None:
        return None
    ids = TableView(table)[name]
    if ids.isna().any():
        row = int(ids.isna().to_numpy().argmax())
        raise RowError(f"column {name!r} names the cases, but is empty", row, "; fill it in")
    return ids
