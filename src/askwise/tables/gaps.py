"""What is missing, as something that is known of a case from the start: one more test, free for everyone, which reveals for each
test that past cases lacked whether this case lacks it. And what that would be worth to a model that is not told.

A test that is computed from others is missing with them, whatever stands in its own column: it cannot be had either.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Bools, Doubles, Floats, Ints
from askwise.core.parameters import OneOf
from askwise.core.problem import Problem
from askwise.core.rows import known_mask
from askwise.core.sampling import some_rows
from askwise.core.schema import Schema
from askwise.core.scoring import case_losses
from askwise.tables.cells import GAP
from askwise.tables.encoding import ColumnEncoding, Encoding

BLIND, INFORMATIVE = "blind", "informative"
MISSING = OneOf(BLIND, INFORMATIVE)
TEST = "what is missing"
_FOLDS, _ROWS = 5, 20_000  # enough rows for a figure of three digits
_LEAST = 1e-6  # no class is believed to be less probable: one that is not among the rows learned from would cost everything


def telling(encoding: Encoding, schema: Schema, blocks: Iterable[Floats], scaled: bool) -> tuple[Encoding, Schema]:
    """The same with the test that tells what is missing, for tests that some of the encoded rows, which come in blocks, lack and
    some have; without it where there are none. `scaled`: as other columns are."""
    lacks, n = np.zeros(schema.n_tests, np.int64), 0
    for values in blocks:
        lacks, n = lacks + _lacking(schema, values).sum(0), n + len(values)
    taken = {*encoding.engine_columns, *encoding.columns, *schema.tests}
    columns, parts = columns_of(encoding, schema), []
    for test in np.flatnonzero((lacks > 0) & (lacks < n)).tolist():
        name, share = _free(f"{schema.tests[test]} is missing", taken), float(lacks[test] / n)
        mean, deviation = (share, (share * (1 - share)) ** 0.5) if scaled else (0.0, 1.0)
        of = [name for t in (test, *_sources(schema, test)) for name in columns[t]]
        parts.append(ColumnEncoding(name, GAP, mean=(mean,), deviation=(deviation,), of=tuple(of)))
    if not parts:
        return encoding, schema
    extended = _extended(schema, [part.name for part in parts], _free(TEST, taken))
    return replace(encoding, parts=(*encoding.parts, *parts)), extended


def columns_of(encoding: Encoding, schema: Schema) -> list[list[str]]:
    """F: the columns of the table that each test reveals; none where it tells what is missing."""
    columns: list[list[str]] = [[] for _ in schema.tests]
    at = 0
    for part in encoding.parts:
        if part.kind != GAP:
            columns[schema.owner[at]].append(part.name)
        at += part.width
    return columns


def known_at_start(schema: Schema, values: Floats, known: Iterable[Any]) -> Bools | None:
    """N, F: what cases with these encoded values know at their start: the tests that are listed or marked, each without the one
    that tells what is missing, and that one. None: nothing."""
    there, n = schema.present(values), len(schema.offered)
    can = None if there is None else there[:, :n]
    masks = [known_mask(each, schema.offered, can, len(values)) for each in known if each is not None]
    if not masks and not schema.tells_gaps:
        return None
    mask = np.any([np.zeros((len(values), n), bool), *masks], axis=0)
    return np.pad(mask, ((0, 0), (0, schema.n_tests - n)), constant_values=True)


def _lacking(schema: Schema, values: Floats) -> Bools:
    """N, F: which tests rows cannot have."""
    there = schema.present(values)
    if there is None:
        return np.zeros((len(values), schema.n_tests), bool)
    return ~schema.costs.obtainable(there, np.zeros_like(there))


def _sources(schema: Schema, test: int) -> list[int]:
    """All that a test is computed from, and what that is computed from."""
    every: list[int] = []
    for source in np.flatnonzero(schema.costs.sources[test]).tolist():
        every += [each for each in (source, *_sources(schema, source)) if each not in every]
    return every


def _free(name: str, taken: set[str]) -> str:
    """The name or, where a column of the table has it, one like it; then it is taken."""
    while name in taken:
        name += "'"
    taken.add(name)
    return name


def _extended(schema: Schema, columns: list[str], test: str) -> Schema:
    """The same with one more test, which is free and reveals these columns."""
    F, costs, needs = schema.n_tests, schema.costs, schema.external_needs
    more = replace(
        costs,
        own=np.append(costs.own, 0),
        member=np.pad(costs.member, ((0, 1), (0, 0))),
        sources=np.pad(costs.sources, ((0, 1), (0, 1))),
    )
    return replace(
        schema,
        columns=(*schema.columns, *columns),
        tests=(*schema.tests, test),
        owner=np.append(schema.owner, np.full(len(columns), F)),
        costs=more,
        external_needs=None if needs is None else np.append(needs, False),
        tells_gaps=True,
    )


# ---------------------------------------------------------------------- what it would be worth


@dataclass(frozen=True)
class Worth:
    """What deciding at once comes to without and with what is missing, on rows that were not learned from."""

    rows: int
    loss: tuple[float, float]  # by the loss of the problem, class weights included, or by its scoring rule
    accuracy: tuple[float, float]
    log_loss: tuple[float, float]


def worth(problem: Problem, seed: int = 0) -> Worth:
    """By logistic regressions on what cases know at their start, with and without what is missing."""
    part = problem.take(some_rows(len(problem), _ROWS, seed))
    start = np.zeros((len(part), 1))  # nothing: a regression on it tells the shares of the classes
    if part.known is not None:
        held = part.schema.by_column(part.known)
        start = np.hstack([start, np.where(held, part.X, 0), part.known])
    lacks = np.zeros((len(part), 0)) if part.available is None else ~part.available
    each = [_measured(part, _believed(part, X, seed)) for X in (start, np.hstack([start, lacks]))]
    loss, accuracy, log_loss = zip(*each, strict=True)
    return Worth(len(part), loss, accuracy, log_loss)


def _believed(problem: Problem, X: Array, seed: int) -> Doubles:
    """N, K: class probabilities of each row, by a regression on rows of the other folds."""
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    y, fold = problem.labels, _folds(problem.labels, seed)
    belief = np.full((len(y), problem.schema.n_classes), _LEAST)
    for k in range(_FOLDS):
        learn, apart = fold != k, fold == k
        if not apart.any():
            continue
        weight = None if problem.weight is None else problem.weight[learn]
        present = np.unique(y[learn])
        if len(present) < 2:
            belief[np.ix_(apart, present)] = 1
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the figure is shown with three digits
            fitted = LogisticRegression(max_iter=200).fit(X[learn], y[learn], weight)
        belief[np.ix_(apart, present)] = np.maximum(fitted.predict_proba(X[apart]), _LEAST)
    normalised: Doubles = belief / belief.sum(1, keepdims=True)
    return normalised


def _folds(y: Ints, seed: int) -> Ints:
    """N: a number for each row; each class is dealt out evenly, in an order by lot."""
    fold, order = np.empty(len(y), np.int64), np.random.default_rng(seed).permutation(len(y))
    fold[order[np.argsort(y[order], kind="stable")]] = np.arange(len(y)) % _FOLDS
    return fold


def _measured(problem: Problem, belief: Doubles) -> tuple[float, float, float]:
    """Mean loss, accuracy and log loss of rows that are decided with these probabilities."""
    y, rows = problem.labels, np.arange(len(problem))
    decision = (belief @ problem.loss).argmin(1)
    lost = problem.loss[y, decision] if problem.rule is None else problem.belief_losses(belief, rows)
    each = lost, decision == y, case_losses(belief, y, "log")
    loss, accuracy, log_loss = (float(problem.mean(np.asarray(figure, float))) for figure in each)
    return loss, accuracy, log_loss
