"""askwise evaluate: what a model does on cases whose classes are known; `fit` and `report` measure in the same way."""

from __future__ import annotations

import argparse
import json
import warnings

import numpy as np

from askwise.cli.options import LabelledCases, cases_of, model_of, test_file_of
from askwise.core.arrays import Ints
from askwise.core.sampling import some_rows
from askwise.errors import Doubt, InputError
from askwise.evaluation import Report
from askwise.facade import Model
from askwise.reports import by_class
from askwise.reports.model_report import MeasuredOn, lines_of, lottery, measured
from askwise.reports.promises import borne_out, for_machines
from askwise.tables import stored


def run(options: argparse.Namespace) -> None:
    model = model_of(options)
    _check_target(model, options)
    report = _report_of(model, cases_of(options, part="test", as_written=model.encoding.text))
    if options.json:
        print(json.dumps(for_machines(model, report, "test")))
    else:
        by_lot = lottery(model)
        print(lines_of(measured(model, report)), *([by_lot] if by_lot else []), *borne_out(model, report), sep="\n")
        print("", *by_class.tables(report), sep="\n")


def _check_target(model: Model, options: argparse.Namespace) -> None:
    """Before the cases are read that a model is measured on."""
    if options.target is not None and options.target in model.encoding.columns:
        classes = " or ".join(repr(c) for c in model.schema.classes[:3])
        raise InputError(
            f"column {options.target!r} is a test of this model, so it cannot be the target; name the column that "
            f"holds the class, with values such as {classes}: --target COLUMN"
        )


def _report_of(model: Model, cases: LabelledCases) -> Report:
    """What a model does on rows whose classes are known."""
    with cases.errors_name_lines():
        problem = model.problem(cases.X, cases.y, ids=cases.ids)
    return model.report(problem)


def on_test_cases(model: Model, options: argparse.Namespace) -> MeasuredOn | None:
    """What a model does on the cases of --test or, without it, on the test rows of named data."""
    _check_target(model, options)
    if options.test is not None:
        cases, words = test_file_of(options, model.encoding.text), f"cases of {options.test.name}"
    elif options.data is not None:
        cases, words = cases_of(options, part="test", as_written=model.encoding.text), "test cases"
    else:
        return None
    report = _report_of(model, cases)
    return MeasuredOn(report, f"{len(cases.y):,} {words}", "test")


def on_validation_cases(model: Model, cases: LabelledCases, rows: Ints) -> MeasuredOn:
    """What it does on those rows of one's own file that the fit kept apart to choose by."""
    few, large = not len(rows), isinstance(cases.X, stored.StoredTable)
    rows = np.arange(len(cases.y)) if few else rows
    shown = rows[some_rows(len(rows), stored.SETTINGS.shown_rows if large else 0, 0)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Doubt)  # the fit has said what is odd about its rows
        report = _report_of(model, cases if few and not large else cases.take(shown))
    of_all = f" of {len(rows):,}" if len(shown) < len(rows) else ""
    words = "validation cases, which the fit kept apart and chose by"
    if few:
        words = "cases that it was trained on, since there were too few to keep some apart"
    return MeasuredOn(report, f"{len(report.truth):,}{of_all} {words}", "validation")
