"""How cases of each class were decided: the confusion matrix, recall and precision, as text and for machines."""

from __future__ import annotations

import math
from typing import Any

from askwise.core.shares import Share
from askwise.evaluation import Report
from askwise.reports.pages import Table, as_text
from askwise.texts import short

MOST_CLASSES = 12  # of more than these the matrix does not fit into a terminal
ROOM = 72  # letters for the names of its columns
MIN_NAME = 6  # letters of each of them
NOTHING = "–"


def as_json(report: Report) -> dict[str, Any]:
    """For machines, with null where there is nothing to tell."""
    return {
        "by_class": [
            {
                "class": name,
                "cases": _number(cases),
                "decisions": _number(decisions),
                "recall": _or_none(recall.value),
                "recall_interval": _interval(recall),
                "precision": _or_none(precision.value),
                "precision_interval": _interval(precision),
            }
            for name, cases, decisions, recall, precision in _each(report)
        ],
        "confusion": [list(map(_number, counts)) for counts in report.confusion.tolist()],
        "other_decisions": [
            {"decision": name, "share": _or_none(share.value), "interval": _interval(share)}
            for name, share in report.other_decisions.items()
        ],
        "classified_accuracy": _or_none(report.classified_accuracy.value),
        "classified_accuracy_interval": _interval(report.classified_accuracy),
    }


def tables(report: Report) -> list[str]:
    """For people: lines and tables, each to be printed on a line of its own."""
    schema = report.problem.schema
    classes = schema.classes
    order = "in the same order" + (", then the other decisions" if schema.other_decisions else "")
    if len(classes) > MOST_CLASSES:
        matrix = [f"the confusion matrix is not shown, since there are {len(classes)} classes; --json has it"]
    else:
        matrix = [f"confusion matrix: true classes by row, decisions by column, {order}", as_text(_matrix(report), MIN_NAME)]
    return [
        *matrix,
        "recall: share of the cases of a class that is decided rightly; precision: share of the decisions for a class that is "
        "right; with 95 % intervals",
        as_text(_shares(report)),
        *_others(report),
    ]


def _others(report: Report) -> list[str]:
    """What was decided that is not a class, and how good the rest is."""
    lines = [f"{short(name)}: {' of cases, '.join(_words(share))}" for name, share in report.other_decisions.items()]
    rest = report.classified_accuracy
    return [*lines, f"accuracy of the rest: {', '.join(_words(rest))}"] if lines else []


def _matrix(report: Report) -> Table:
    classes, decisions = report.problem.schema.classes, report.problem.schema.decisions
    head = ("class", *(short(name, max(ROOM // len(decisions), MIN_NAME)) for name in decisions))
    rows = tuple((short(name), *map(_count, counts)) for name, counts in zip(classes, report.confusion.tolist(), strict=True))
    return Table("Confusion matrix", head, rows)


def _shares(report: Report) -> Table:
    head = ("class", "cases", "recall", "interval", "decisions", "precision", "interval")
    rows = tuple(
        (short(name), _count(cases), *_words(recall), _count(decisions), *_words(precision))
        for name, cases, decisions, recall, precision in _each(report)
    )
    return Table("Recall and precision", head, rows)


def _each(report: Report) -> list[tuple[Any, float, float, Share, Share]]:
    """By class: its name, how many cases are of it, for how many it was decisions, recall and precision."""
    classes = report.problem.schema.classes
    cases, decisions = (report.confusion.sum(axis).tolist()[: len(classes)] for axis in (1, 0))
    return list(zip(classes, cases, decisions, report.recall.values(), report.precision.values(), strict=True))


def _number(cases: float) -> float:
    """Whole where it can be: only the weights of rows are not."""
    return int(cases) if cases.is_integer() else cases


def _count(cases: float) -> str:
    return f"{cases:,.0f}" if cases.is_integer() else f"{cases:,.1f}"


def _words(share: Share) -> tuple[str, str]:
    if math.isnan(share.value):
        return NOTHING, NOTHING
    return f"{100 * share.value:.1f} %", f"{100 * share.low:.1f} to {100 * share.high:.1f} %"


def _or_none(figure: float) -> float | None:
    return None if math.isnan(figure) else figure


def _interval(share: Share) -> list[float] | None:
    return None if math.isnan(share.value) else [share.low, share.high]
