"""The work behind `askwise fit`: read the cases, train with progress, measure, and write the model and its report."""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Ints
from askwise.core.budget import Budget
from askwise.core.cost_spec import CostSpec
from askwise.errors import Doubt, InputError, RowError, StateError, WriteError, did_you_mean
from askwise.evaluation import Report
from askwise.facade import Model
from askwise.files import check_out, remove_leftovers
from askwise.reports.model_report import (
    PAGE,
    PICTURES,
    Held,
    beside,
    card,
    describe,
    frontier_table,
    measured,
    results,
    write_pictures,
)
from askwise.tables.external import Recorded
from askwise.tables.frames import column, columns_of, read_table, rows_of
from askwise.tables.lists import lines, loss_of
from askwise.tables.reading import OPTIONS, RECOGNISED, Reading
from askwise.texts import split
from askwise.training.progress import Progress


@dataclass(frozen=True, eq=False)
class Table:
    """Cases with their classes, and what is said about prices."""

    X: Any
    y: Array
    settings: dict[str, Any]  # costs, setup, derived, reveals, scaling
    ids: Any = None  # names of the cases
    file: Path | None = None  # where the cases are from
    how: Reading = RECOGNISED  # how that is written

    def rows(self) -> AbstractContextManager[None]:
        """While this lasts, errors name the line of the file that a row is from."""
        return rows_of(self.file, self.how)


def cases_of(given: argparse.Namespace, part: str, text: Sequence[str] = ()) -> Table:
    """A file, or the rows of a named set: 'train' (with validation) for fitting, 'test' for measuring.

    text: columns that stay as a text file writes them.
    """
    if (given.cases is None) == (given.data is None):
        raise InputError("give either a file of cases or --data NAME")
    if given.data is not None:
        if getattr(given, "test", None) is None:
            reading_of(given).refuse(OPTIONS, given.data, "files")
        from askwise.datasets.named import raw

        named = raw(given.data)
        train, validation, test = named.splits(0)
        rows = test if part == "test" else np.sort(np.concatenate([train, validation]))
        said = {k: getattr(named, k) for k in ("costs", "setup", "derived", "reveals", "scaling")}
        settings = {k: v for k, v in said.items() if v is not None}
        return Table(_rows(named.table, rows), np.asarray(named.y)[rows], settings)
    how = reading_of(given)
    table = read_table(given.cases, [*text, given.ids], how)
    if given.target is None:
        raise InputError(f"name the column of {given.cases.name!r} that holds the class: --target COLUMN")
    names = columns_of(table)
    if given.target not in names:
        raise InputError(f"{given.cases.name!r} has no column {given.target!r}; {did_you_mean(given.target, names)}")
    y = table[given.target]
    with rows_of(given.cases, how):
        if y.isna().any():
            raise RowError(f"the target {given.target!r} is missing", np.flatnonzero(y.isna())[0], "; remove such rows")
        ids = ids_of(table, given.ids) if part == "test" else None
    return Table(table.drop(columns=given.target), y.to_numpy(), {}, ids, given.cases, how)


def reading_of(given: argparse.Namespace) -> Reading:
    """What the options say about how the file of cases is written."""
    return Reading(**{name: getattr(given, name) for name in OPTIONS})


def _rows(table: Any, rows: Ints) -> Any:
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def seconds_of(text: str) -> float:
    """A time as people write it: 90, 90s, 5m, 1h."""
    found = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([smh]?)", text.strip())
    if found is None:
        raise InputError(f"the time limit is {text!r}; it must be like 90 or 90s for seconds, 5m for minutes, or 1h for hours")
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


def left_out(given: argparse.Namespace, columns: list[str]) -> list[str]:
    """The columns that are no tests: those to ignore, and the names of the cases."""
    gone = [("--ignore", name) for name in _names(given.ignore, ",")] + [("--ids", name) for name in [given.ids] if name]
    for option, name in gone:
        if name not in columns:
            raise InputError(f"{option} names the column {name!r}, which does not exist; {did_you_mean(name, columns)}")
    return [name for _, name in gone]


def _check_target(given: argparse.Namespace) -> None:
    """No option may name the target as something else."""
    for option in ("known", "categorical", "ignore", "ids", "external", "external_needs"):
        text = getattr(given, option)
        if given.target is not None and given.target in ([text] if option in ("ids", "external") else _names(text, ",")):
            shown = f"--{option.replace('_', '-')}"
            raise InputError(f"{shown} names the column {given.target!r}, which is the target; leave it out there")


def settings_of(given: argparse.Namespace) -> dict[str, Any]:
    """Prices and the like, from the files and columns that were named."""
    _check_target(given)
    found: dict[str, Any] = {"known": _names(given.known, ","), "categorical": _names(given.categorical, ",")}
    if given.external is not None:
        found["external"] = Recorded(given.external, _names(given.external_needs, ",") or None)
    elif given.external_needs is not None:
        raise InputError("--external-needs is for an existing classifier; name the column of its answers: --external COLUMN")
    if given.costs is not None:
        found["costs"] = {row["test"]: row["cost"] for row in lines(given.costs, ("test", "cost"))}
        if given.target in found["costs"]:
            raise InputError(f"{given.costs.name!r} has a price for {given.target!r}, which is the target; remove that line")
    if given.setup is not None:
        shared = lines(given.setup, ("setup", "cost", "tests"))
        found["setup"] = {row["setup"]: (row["cost"], _names(row["tests"])) for row in shared}
    if given.derived is not None:
        found["derived"] = {row["test"]: _names(row["sources"]) for row in lines(given.derived, ("test", "sources"))}
    if given.reveals is not None:
        found["reveals"] = {row["test"]: _names(row["columns"]) for row in lines(given.reveals, ("test", "columns"))}
    return found


def _names(text: str | None, separator: str = ";") -> list[str]:
    return [name.strip() for name in split(text or "", separator)]


def _check_out(out: Path, given: argparse.Namespace) -> None:
    """Before anything is trained. What is there is replaced only if it is from an earlier fit: a model and what is beside it."""
    from askwise.model.archives import MODEL, STATE, is_kind

    reads = [given.cases, given.costs, given.setup, given.derived, given.reveals, given.loss, given.test]
    check_out(out, "the model", reads, through=False)
    if out.suffix in (*PICTURES, PAGE, ".state"):
        raise InputError(f"the model cannot be written to {str(out)!r}: that ending is for other files; end the name in .askwise")
    state, old = out.with_suffix(".state"), out.exists()
    for path in (out, state, *beside(out)):
        remove_leftovers(path)
    if old and not is_kind(out, MODEL):
        raise InputError(f"the model cannot be written to {str(out)!r}: that file exists and is not a model; name another file")
    strange = [path for path in beside(out) if path.exists() and not old]
    strange += [state] if state.exists() and not given.resume and not is_kind(state, STATE) else []
    if strange:
        raise InputError(
            f"fit would write over {str(strange[0])!r}, which is not from a fit with --out {str(out)!r}; "
            "move it, or name another file"
        )
    if given.restarts != 1 and given.resume:
        raise InputError("--resume continues one training, so it cannot be combined with --restarts")
    check_drawable()


def check_drawable() -> None:
    """Before any work is done for pictures."""
    from importlib.util import find_spec

    if sys.modules.get("matplotlib", sys) is None or find_spec("matplotlib") is None:
        raise InputError("pictures need matplotlib, which is not installed; pip install 'askwise[plot]'")


def fit(given: argparse.Namespace, budget: Budget) -> None:
    """Trains and writes everything; Ctrl-C leaves a state to go on from."""
    from askwise.estimator import CostlyClassifier
    from askwise.model.file import read_state, write_state

    out = given.out or Path(f"{given.data or 'model'}.askwise")
    _check_out(out, given)
    limit = None if given.time_limit is None else seconds_of(given.time_limit)
    cases = cases_of(given, part="train", text=[*_names(given.categorical, ","), *_names(given.ignore, ",")])
    settings = {**cases.settings, **settings_of(given)}
    gone = left_out(given, columns_of(cases.X))
    if "costs" in settings:
        settings["costs"] = CostSpec(settings["costs"]).without(gone).costs
    if given.test is not None:
        _check_test(given, cases, gone)
    if given.loss is not None:
        settings["loss"] = loss_of(given.loss, np.unique(cases.y).tolist())
    state = out.with_suffix(".state")
    # hardly anybody in the thyroid data is ill; who says what mistakes cost knows better
    usual = "balanced" if given.data == "thyroid" and given.loss is None else "none"
    weight = given.class_weight or usual
    classifier = CostlyClassifier(
        budget=None if budget == Budget() else budget,
        class_weight=None if weight == "none" else weight,
        n_restarts=given.restarts,
        algorithm=given.algorithm,
        time_limit=limit,
        random_state=given.seed,
        unit=given.unit or ("dollars" if given.data == "thyroid" else ""),
        **settings,
    )
    resume = None
    X = cases.X.drop(columns=gone)
    if given.resume and out.exists() and not state.exists():  # it was killed after the training, before its report was whole
        with cases.rows():
            trained = _trained(out, state, classifier, X, cases.y)
        _finish(given, *trained, out, cases)
        return
    if given.resume:
        resume = read_state(state)
    elif given.restarts == 1:
        state.unlink(missing_ok=True)
    progress = Progress(limit, classifier.unit, quiet=given.quiet or given.json)
    more: dict[str, Any] = {"save": lambda s: write_state(state, *s), "resume": resume} if given.restarts == 1 else {}
    try:
        with cases.rows():
            classifier.fit(X, cases.y, callback=progress, **more)
        progress.end()
        classifier.save(out)
        state.unlink(missing_ok=True)
    except KeyboardInterrupt:
        progress.end()
        if state.exists():
            print(f"askwise: interrupted; continue with the same command and --resume ({state})", file=sys.stderr)
        else:
            print("askwise: interrupted before there was anything to save", file=sys.stderr)
        raise
    except WriteError as error:
        progress.end()
        way = f"; make room, and continue with the same command and --resume ({state})" if state.exists() else ""
        raise WriteError(f"{error}{way}") from None
    _finish(given, classifier.model_, classifier.validation_rows_, out, cases)


def _trained(out: Path, state: Path, classifier: Any, X: Any, y: Any) -> tuple[Model, Ints]:
    """The model that this very fit has written, and the rows that it kept apart."""
    from askwise.facade import load

    model, ready = load(out), classifier._prepared(X, y)
    mine = {
        "algorithm": classifier.algorithm,
        "seed": classifier.random_state,
        "budget": classifier.budget or Budget(),
        "data": ready.problem.fingerprint,
    }
    theirs = {**model.facts, "seed": model.seed, "budget": model.trained_for}
    for name, value in mine.items():
        if theirs.get(name) != value:
            raise StateError(
                f"there is no file {str(state)!r}, and {str(out)!r} comes from another fit: its {name} "
                f"is {theirs.get(name)}, here it is {value}; leave --resume out to train again"
            )
    return model, ready.validation_rows


def _finish(given: argparse.Namespace, model: Model, rows: Ints, out: Path, cases: Table) -> None:
    """The report on a model that is written."""
    held = tested(model, given) or kept_apart(model, cases, rows)
    files = write_pictures(model, out, held)
    if given.json:
        found = {"test": held.found if held.test else None, "validation": None if held.test else held.found}
        print(json.dumps({"model": str(out), "files": [str(f) for f in files], **card(model), **found}))
        return
    print(describe(model))
    print()
    print(frontier_table(model))
    print(f"\n{results(model, held)}")
    print("\nwritten: " + ", ".join(str(f) for f in [out, *files]))


def _test_file(given: argparse.Namespace, text: Sequence[str]) -> Table:
    """The cases of --test."""
    return cases_of(argparse.Namespace(**{**vars(given), "cases": given.test, "data": None}), part="test", text=text)


def _check_test(given: argparse.Namespace, cases: Table, gone: Sequence[str]) -> None:
    """Before anything is trained: the cases of --test have the columns and the classes of those that are learned from."""
    other = _test_file(given, [*_names(given.categorical, ","), *_names(given.ignore, ",")])
    names = columns_of(other.X)
    for name in columns_of(cases.X):
        if name not in names and name not in gone:
            raise InputError(
                f"--test {given.test.name!r} has no column {name!r}, which the cases to learn from have; "
                f"{did_you_mean(name, names)}"
            )
    classes, found = np.unique(cases.y).tolist(), np.unique(other.y).tolist()
    for name in found:
        if name not in classes:
            raise InputError(
                f"--test {given.test.name!r} has the class {name!r} in column {given.target!r}, which the cases to "
                f"learn from do not have; {did_you_mean(str(name), [str(c) for c in classes])}"
            )


def tested(model: Model, given: argparse.Namespace) -> Held | None:
    """What a model does on the cases of --test or, without it, on the test rows of named data."""
    check_target(model, given)
    if given.test is not None:
        cases, words = _test_file(given, model.encoding.text), f"cases of {given.test.name}"
    elif given.data is not None:
        cases, words = cases_of(given, part="test", text=model.encoding.text), "test cases"
    else:
        return None
    report = report_of(model, cases)
    return Held(report, measured(model, report), f"{len(cases.y)} {words}", test=True)


def kept_apart(model: Model, cases: Table, rows: Ints) -> Held:
    """What it does on those rows of one's own file that the fit kept apart to choose by."""
    few = not len(rows)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Doubt)  # the fit has said what is odd about its rows
        report = report_of(model, cases if few else Table(_rows(cases.X, rows), cases.y[rows], {}))
    words = (
        "cases that it was trained on, since there were too few to keep some apart"
        if few
        else ("validation cases, which the fit kept apart and chose by")
    )
    return Held(report, measured(model, report), f"{len(report.truth)} {words}", test=False)


def report(given: argparse.Namespace, model: Model) -> list[Path]:
    """The work behind `askwise report`: the report of a model, as a fit writes it, into a folder."""
    check_drawable()
    out = given.out / given.model.name
    if given.out.exists() and not given.out.is_dir():
        raise InputError(f"the report cannot be written to {str(given.out)!r}: that is a file; name a folder")
    there = [path for path in beside(out) if path.exists()]
    if there and len(there) < len(beside(out)):
        raise InputError(
            f"the report would write over {str(there[0])!r}, which does not come from a report; move it, or name another folder"
        )
    if given.test is None and given.data is None and given.target is not None:
        raise InputError("--target is for cases to measure on; name their file: --test FILE")
    held = tested(model, given)
    given.out.mkdir(parents=True, exist_ok=True)
    return write_pictures(model, out, held)


def ids_of(table: Any, name: str | None) -> Any:
    """The column that names the cases, if one was named."""
    if name is None:
        return None
    ids = column(table, name)
    if ids.isna().any():
        row = int(ids.isna().to_numpy().argmax())
        raise RowError(f"column {name!r} names the cases, but is empty", row, "; fill it in")
    return ids


def check_target(model: Model, given: argparse.Namespace) -> None:
    """Before the cases are read that a model is measured on."""
    if given.target is not None and given.target in model.encoding.columns:
        classes = " or ".join(repr(c) for c in model.schema.classes[:3])
        raise InputError(
            f"column {given.target!r} is a test of this model, so it cannot be the target; name the column that "
            f"holds the class, with values such as {classes}: --target COLUMN"
        )


def report_of(model: Model, cases: Table) -> Report:
    """What a model does on rows whose classes are known."""
    with cases.rows():
        problem = model.problem(cases.X, cases.y, ids=cases.ids)
    return Report(problem, model.rollout(problem))
