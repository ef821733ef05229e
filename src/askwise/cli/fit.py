"""askwise fit: read the cases, train with progress, measure, write the model and its report. Ctrl-C leaves a state to resume."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from askwise.cli.evaluate import on_test_cases, on_validation_cases
from askwise.cli.options import LabelledCases, budget_of, cases_of, names, test_file_of
from askwise.cli.report import check_drawable
from askwise.core.arrays import Ints
from askwise.core.budget import Budget
from askwise.core.scoring import RULES
from askwise.errors import InputError, StateError, WriteError, did_you_mean
from askwise.estimator import CostlyClassifier
from askwise.facade import Model, load
from askwise.files import check_out, remove_leftovers
from askwise.model.archives import MODEL, STATE, is_kind
from askwise.model.file import read_state, write_state
from askwise.model.learn import chosen
from askwise.processes import check_processes
from askwise.reports.model_page import PAGES, PICTURES, beside, write_report
from askwise.reports.model_report import MeasuredOn, card, comparison_table, describe, frontier_table, results
from askwise.reports.promises import for_machines
from askwise.tables.external import Recorded
from askwise.tables.frames import TableView
from askwise.tables.small_files import read_list, read_loss
from askwise.training.progress import Progress
from askwise.training.result import VALIDATION


def run(options: argparse.Namespace) -> None:
    out = options.out or Path(f"{options.data or 'model'}.askwise")
    _check_out(out, options)
    _check_options(options)
    limit = None if options.time_limit is None else parsed_seconds(options.time_limit)
    check_target_is_free(options)
    cases = cases_of(options, part="train", as_written=text_columns(options))
    classifier = CostlyClassifier(time_limit=limit, **parameters(options, cases))
    if options.test is not None:
        _check_test(options, cases)
    state = out.with_suffix(".state")
    with cases.errors_name_lines():
        if options.resume and out.exists() and not state.exists():  # it was killed between the training and its report
            model, validation_rows = _trained(out, state, classifier, cases.X, cases.y)
            report = None
        else:
            _train(classifier, cases.X, cases.y, out, state, options)
            model, validation_rows, report = classifier.model_, classifier.validation_rows_, classifier.out_of_fold_
    on = []
    if report is not None:
        on.append(MeasuredOn(report, f"{len(report.truth):,} {model.measured_on}", "out_of_fold"))
    elif model.measured_on == VALIDATION:
        on.append(on_validation_cases(model, cases, validation_rows))
    test = on_test_cases(model, options)
    _report(options, model, out, on if test is None else [*on, test])


def _check_out(out: Path, options: argparse.Namespace) -> None:
    """Only what is from an earlier fit is replaced: a model and what is beside it. What a killed fit left is removed."""
    reads = [options.cases, options.costs, options.setup, options.derived, options.reveals, options.decisions]
    reads += [_loss_file(options), options.test]
    check_out(out, "the model", reads, through=False)
    if out.suffix in (*PICTURES, *PAGES, ".state"):
        raise InputError(f"the model cannot be written to {str(out)!r}: that ending is for other files; end the name in .askwise")
    state, old = out.with_suffix(".state"), out.exists()
    for path in (out, state, *beside(out)):
        remove_leftovers(path)
    if old and not is_kind(out, MODEL):
        raise InputError(f"the model cannot be written to {str(out)!r}: that file exists and is not a model; name another file")
    strange = [path for path in beside(out) if path.exists() and not old]
    strange += [state] if state.exists() and not options.resume and not is_kind(state, STATE) else []
    if strange:
        reason = f"fit would write over {str(strange[0])!r}, which is not from a fit with --out {str(out)!r}"
        raise InputError(f"{reason}; move it, or name another file")


def _check_options(options: argparse.Namespace) -> None:
    if options.restarts != 1 and options.resume:
        raise InputError("--resume continues one training, so it cannot be combined with --restarts")
    check_processes(options.processes)
    check_processes(options.threads, "--threads")
    check_drawable()


def _check_test(options: argparse.Namespace, cases: LabelledCases) -> None:
    """Before anything is trained: the cases of --test have the columns and the classes of those that are learned from."""
    test, file = test_file_of(options, text_columns(options)), f"--test {options.test.name!r}"
    columns = TableView(test.X).names
    for name in TableView(cases.X).names:
        if name not in columns:
            raise InputError(f"{file} has no column {name!r}, which the cases to learn from have; {did_you_mean(name, columns)}")
    classes = np.unique(cases.y).tolist()
    for name in np.unique(test.y).tolist():
        if name not in classes:
            reason = f"{file} has the class {name!r} in column {options.target!r}, which the cases to learn from do not have"
            raise InputError(f"{reason}; {did_you_mean(str(name), [str(c) for c in classes])}")


def _train(classifier: CostlyClassifier, X: Any, y: Any, out: Path, state: Path, options: argparse.Namespace) -> None:
    """Trains and writes the model. One training, not several, saves its state and can go on from there."""
    single: dict[str, Any] = {}
    if options.restarts == 1:
        single = {"save": lambda s: write_state(state, *s), "resume": read_state(state) if options.resume else None}
        if not options.resume:
            state.unlink(missing_ok=True)
    progress = Progress(classifier.time_limit, classifier.unit, quiet=options.quiet or options.json)
    try:
        classifier.fit(X, y, callback=progress, **single)
        progress.end()
        classifier.save(out)
        state.unlink(missing_ok=True)
    except KeyboardInterrupt:
        progress.end()
        way = (
            f"; continue with the same command and --resume ({state})" if state.exists() else " before there was anything to save"
        )
        print(f"askwise: interrupted{way}", file=sys.stderr)
        raise
    except WriteError as error:
        progress.end()
        way = f"; make room, and continue with the same command and --resume ({state})" if state.exists() else ""
        raise WriteError(f"{error}{way}") from None


def _trained(out: Path, state: Path, classifier: CostlyClassifier, X: Any, y: Any) -> tuple[Model, Ints]:
    """The model that this very fit has written, and the rows that it kept apart."""
    model, ready = load(out), classifier.prepare(X, y)
    size = len(ready.problem), len(ready.problem.schema.offered)
    here = {
        "algorithm": chosen(classifier.algorithm, *size, classifier.config, classifier.network),
        "seed": classifier.random_state,
        "budget": classifier.budget or Budget(),
        "data": ready.problem.fingerprint,
    }
    there = {**model.facts, "seed": model.seed, "budget": model.trained_for}
    for name, value in here.items():
        if there.get(name) != value:
            raise StateError(
                f"there is no file {str(state)!r}, and {str(out)!r} comes from another fit: its {name} "
                f"is {there.get(name)}, here it is {value}; leave --resume out to train again"
            )
    return model, ready.validation_rows


def _report(options: argparse.Namespace, model: Model, out: Path, on: list[MeasuredOn]) -> None:
    """The report on a model that is written."""
    files = write_report(model, out, on)
    if options.json:
        measures: dict[str, Any] = {"test": None, "validation": None, "out_of_fold": None}
        measures |= {each.kind: for_machines(model, each.report, each.kind) for each in on}
        print(json.dumps({"model": str(out), "files": [str(f) for f in files], **card(model), **measures}))
        return
    compared = comparison_table(model)
    written = f"written: {', '.join(str(f) for f in [out, *files])}"
    tables = [frontier_table(model), *([compared] if compared else [])]
    print(describe(model), *tables, "\n".join(results(model, each) for each in on), written, sep="\n\n")


# ---------------------------------------------------------------------- what the options mean for the classifier


def text_columns(options: argparse.Namespace) -> list[str]:
    """The columns that stay as a text file writes them."""
    return [*names(options.categorical), *names(options.ignore)]


def parsed_seconds(text: str) -> float:
    """A time as people write it: 90, 90s, 5m, 1h."""
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([smh]?)", text.strip())
    if match is None:
        raise InputError(f"the time limit is {text!r}; it must be like 90 or 90s for seconds, 5m for minutes, or 1h for hours")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def parameters(options: argparse.Namespace, cases: LabelledCases) -> dict[str, Any]:
    """All parameters of the classifier but its time limit."""
    budget, external, file = budget_of(options), _external(options), _loss_file(options)
    spec = replace(cases.spec, **_from_files(options)).without(cases.left_out)
    # hardly anybody in the thyroid data is ill; who says what mistakes cost knows better
    weight = options.class_weight or ("balanced" if options.data == "thyroid" and options.loss is None else "none")
    return {
        "budget": None if budget == Budget() else budget,
        "class_weight": None if weight == "none" else weight,
        "n_restarts": options.restarts,
        "algorithm": options.algorithm,
        "random_state": options.seed,
        "n_jobs": options.processes,
        "threads": options.threads,
        "engine": options.engine,
        "unit": options.unit or ("dollars" if options.data == "thyroid" else ""),
        "scaling": cases.scaling,
        "shape": _sizes(options.shape, "--shape", "28x28, or 32x32x3 with colours"),
        "patch": _sizes(options.patch, "--patch", "4 or 4x4"),
        "loss": options.loss if file is None else read_loss(file, np.unique(cases.y).tolist(), list(spec.decisions)),
        "known": names(options.known),
        "missing": options.missing,
        "categorical": names(options.categorical),
        "external": external,
        **vars(spec),
    }


def _sizes(text: str | None, option: str, example: str) -> tuple[int, ...] | int | None:
    """Whole numbers with an x between them; one alone as a number."""
    if text is None:
        return None
    parts = text.lower().split("x")
    if not all(part.isascii() and part.isdigit() for part in parts):
        raise InputError(f"{option} is {text!r}; it must be whole numbers such as {example}")
    sizes = tuple(map(int, parts))
    return sizes if len(sizes) > 1 else sizes[0]


def _loss_file(options: argparse.Namespace) -> Path | None:
    """The file of a loss matrix; None where there is none, or the loss is a word."""
    if options.loss is None or options.loss in RULES:
        return None
    if not Path(options.loss).exists():
        raise InputError(f"--loss is {options.loss!r}, and there is no such file; name a file, or say log or brier")
    return Path(options.loss)


def _external(options: argparse.Namespace) -> Recorded | None:
    """The existing classifier, whose answers are in a column."""
    if options.external is not None:
        return Recorded(options.external, names(options.external_needs) or None)
    if options.external_needs is not None:
        raise InputError("--external-needs is for an existing classifier; name the column of its answers: --external COLUMN")
    return None


def _from_files(options: argparse.Namespace) -> dict[str, Any]:
    """Parts of a `CostSpec`, from the files that were named."""
    parts: dict[str, Any] = {}
    for option, (columns, value) in FILES.items():
        file = getattr(options, option)
        if file is not None:
            parts[option] = {row[columns[0]]: value(row) for row in read_list(file, columns)}
    if options.costs is not None and options.target in parts["costs"]:
        raise InputError(f"{options.costs.name!r} has a cost for {options.target!r}, which is the target; remove that line")
    return parts


# the columns of each file, and what a line says of the name in the first of them
FILES: dict[str, tuple[tuple[str, ...], Callable[[dict[str, str]], Any]]] = {
    "costs": (("test", "cost"), lambda row: row["cost"]),
    "setup": (("setup", "cost", "tests"), lambda row: (row["cost"], names(row["tests"], ";"))),
    "derived": (("test", "sources"), lambda row: names(row["sources"], ";")),
    "reveals": (("test", "columns"), lambda row: names(row["columns"], ";")),
    "decisions": (("decision", "cost"), lambda row: row["cost"]),
}


def check_target_is_free(options: argparse.Namespace) -> None:
    """Before the cases are read: no option names the target as something else."""
    for option in ("known", "categorical", "ignore", "ids", "external", "external_needs"):
        text = getattr(options, option)
        if options.target is not None and options.target in ([text] if option in ("ids", "external") else names(text)):
            shown = f"--{option.replace('_', '-')}"
            raise InputError(f"{shown} names the column {options.target!r}, which is the target; leave it out there")
