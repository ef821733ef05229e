"""What can be learned from, but is probably not what was meant: each in one sentence that says what to do."""

from __future__ import annotations

import re
import warnings
from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from askwise.core.arrays import Array
from askwise.core.budget import Budget
from askwise.core.missingness import lacked_by_class
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.core.scoring import RULES
from askwise.errors import Doubt
from askwise.tables import notation
from askwise.tables.cells import Distinct, Place, as_time, distinct, is_number, label
from askwise.tables.frames import TableView
from askwise.tables.gaps import INFORMATIVE, worth

FEW_ROWS = 50
MANY_CLASSES = 20  # whole numbers that a target may have; more are rather a quantity
_MOST = 0.9  # of the rows, each with a value of its own: these are names
_LEAST = 10  # rows in which being different means anything
_ENOUGH = 10_000  # different values that are looked at
_DATE = re.compile(r"\d{1,4}([./-])\d{1,2}\1\d{1,4}([ T]\d{1,2}:\d{2}.*)?", re.ASCII)


def tell(sentences: Iterable[str]) -> None:
    """Each as a warning, on the line that called the function that calls this."""
    for sentence in sentences:
        warnings.warn(sentence, Doubt, stacklevel=3)


def about_fit(X: Any, classes: Array, categorical: Collection[str], apart: bool, seconds: float | None) -> Iterator[str]:
    """All that there is to say before a training. `apart`: some rows are kept apart to measure on; `seconds`: its time limit."""
    rows = len(TableView(X))
    yield from about_rows(rows, apart)
    yield from about_target(classes, rows)
    yield from about_columns(X, categorical)
    if seconds == 0:
        yield (
            "the time limit is 0, so training ends where it begins, and the model has learned next to nothing; leave the limit "
            "out to let the size of the data decide, or give at least a minute"
        )


def about_budget(budget: Budget | None, schema: Schema, known: Collection[str], unit: str) -> Iterator[str]:
    """A limit for which nothing can be bought; one of 0 is meant so. `known`: tests that everyone has."""
    costs, held = schema.costs, np.isin(np.array(schema.tests, object), np.array(list(known), object))[None]
    amounts = costs.marginal(costs.paid(held, held))[0]
    if budget is None or not budget.hard or not (amounts > 0).any():
        return
    least, cap = int(amounts[amounts > 0].min()), budget.cap(costs)
    if cap is not None and cap < least:
        cheapest = f"{costs.money(least):g}"
        yield (
            f"the hard budget is {float(budget.hard):g}, but the cheapest test costs {f'{cheapest} {unit}'.rstrip()}, so nothing "
            f"that costs can be bought, and cases are decided without it; give at least {cheapest}"
        )


def about_gaps(problem: Problem, missing: str) -> Iterator[str]:
    """That gaps go with the class and are not used, and what using them would gain; or that there are none to use."""
    if missing == INFORMATIVE:
        if not problem.schema.tells_gaps:
            yield f"missing is {INFORMATIVE!r}, but no test is missing in some rows and there in others; leave it out"
        return
    tests = [problem.schema.tests[i] for i in np.flatnonzero(lacked_by_class(problem)).tolist()]
    if not tests:
        return
    gain = worth(problem)
    weighted = problem.rule is None and not np.array_equal(problem.loss, 1 - np.eye(problem.schema.n_classes))
    name = RULES[problem.rule] if problem.rule is not None else "loss" if weighted else RULES["log"]
    before, after = gain.log_loss if problem.rule is None and not weighted else gain.loss
    right, with_gaps = (f"{100 * share:.1f} %" for share in gain.accuracy)
    often = f"in {with_gaps} of cases instead of {right}" if with_gaps != right else f"as often, in {right} of cases"
    shown = ", ".join(map(repr, tests[:4])) + (f" and {len(tests) - 4} more" if len(tests) > 4 else "")
    yield (
        f"that values of {shown} are missing goes with the class, and is not used: if it were, deciding at once would be right "
        f"{often}, with a {name} of {after:.3g} instead of {before:.3g} (measured on {gain.rows:,} rows, each held out in turn); "
        f"if a missing value will mean the same in use, fit with missing={INFORMATIVE!r} (on the command line: --missing "
        f"{INFORMATIVE})"
    )


def about_columns(X: Any, categorical: Collection[str] = ()) -> Iterator[str]:
    """At most one sentence for each column; none for those that are said to be categories."""
    table = TableView(X)
    for name in table.names:
        values = table[name]
        if name in categorical or hasattr(values.dtype, "categories") or len(table) < _LEAST:
            continue
        kind = getattr(values.dtype, "kind", "O")
        if kind in "iuf" and isinstance(values.dtype, np.dtype):
            if _numbers_the_rows(np.asarray(values)):
                yield f"column {name!r} counts the rows, so it says nothing about new cases; {_out(name)}"
        elif kind in "OUST":
            yield from _about_text(name, distinct(values, Place(name)))


def _out(name: str) -> str:
    return f"leave it out (on the command line: --ignore {name})"


def _about_text(name: str, column: Distinct) -> Iterator[str]:
    times, values = column.counts[:_ENOUGH], column.values[:_ENOUGH]
    n = int(times.sum())
    if n < _LEAST or not all(isinstance(value, (str, bytes, int, float)) for value in values):
        return
    words = [value for value in values if not _digits(value)]
    if not words:
        return

    def share(test: Any) -> float:
        return float(times[[bool(test(value)) for value in values]].sum()) / n

    numbers = share(_like_number)
    if share(_date) > 0.5:
        yield (
            f"column {name!r} holds dates as text, such as {words[0]!r}: each counts as a category of its own, and new cases "
            f"have others; {_out(name)}, or give a number instead, such as the days since something"
        )
    elif numbers > 0.5 and 2 * share(_code) <= 1 - numbers + 1e-9:
        example = next((value for value in words if notation.like_missing(label(value))), words[0])
        yield (
            f"column {name!r} is text, although most of its values are numbers, because of values such as {example!r}: each "
            "counts as a category of its own; write plain numbers and leave what is missing empty, or say that it is categorical "
            f"if these are codes (on the command line: --categorical {name})"
        )
    elif len(values) > _MOST * n:
        yield (
            f"column {name!r} is text with another value in nearly every row, such as {words[0]!r}: it probably names the cases "
            f"or holds notes, and says nothing about new ones; {_out(name)}"
        )


def _digits(value: Any) -> bool:
    """Whether it is a number, or a code of digits."""
    return isinstance(value, (int, float)) or re.fullmatch(r"[+-]?\d+", label(value)) is not None


def _date(value: Any) -> bool:
    word = label(value)
    return _DATE.fullmatch(word) is not None or (len(word) >= 8 and "-" in word and as_time(word) is not None)


def _like_number(value: Any) -> bool:
    return is_number(value) or notation.like_number(label(value))


def _code(value: Any) -> bool:
    """Whether letters and digits are mixed, as in V57."""
    return not _like_number(value) and any(character.isdigit() for character in label(value))


def _numbers_the_rows(values: Array) -> bool:
    """Whether these are whole numbers one after the other, in any order."""
    low, high = float(values.min()), float(values.max())  # NaN where something is missing
    if high - low + 1 != len(values) or not (values[:1000] == np.floor(values[:1000])).all():
        return False
    return bool((values == np.floor(values)).all()) and len(np.unique(values)) == len(values)


def about_target(classes: Array, rows: int) -> Iterator[str]:
    """Whether the target looks like something else than a class. `classes` are sorted."""
    n = len(classes)
    whole = classes.dtype.kind in "iu" or (classes.dtype.kind == "f" and bool((classes == np.floor(classes)).all()))
    if whole and n > MANY_CLASSES:
        yield (
            f"the target has {n} different whole numbers, from {classes[0]:g} to {classes[-1]:g}: it is probably a quantity, and "
            "each number counts as a class of its own; put the numbers into groups first, such as low and high"
        )
    elif 2 * n > rows >= _LEAST:
        yield (
            f"the target has {n} different values in {rows} rows, so hardly any two rows are of one class; is another column the "
            "class?"
        )


def about_rows(n: int, apart: bool) -> Iterator[str]:
    """Whether there are enough rows."""
    where = "" if apart else ", which is measured on the very rows that were learned from"
    if n < FEW_ROWS:
        yield (
            f"there are only {n} rows, and what is learned from so few hardly holds for new cases; collect some hundred, and do "
            f"not rely on the accuracy that is shown{where}"
        )
    elif not apart:
        yield (
            "there are too few rows of some class to keep some of each apart; collect more of it, or leave the class out, and do "
            f"not rely on the accuracy that is shown{where}"
        )
