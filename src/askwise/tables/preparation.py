"""From a table and what is said about it to the two problems that a fit needs: rows to learn from, and rows to choose by."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Array, Ints
from askwise.core.cost_spec import CostSpec, listed
from askwise.core.losses import scoring_rule
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError, RowError
from askwise.tables.encoding import Encoding, schema_of
from askwise.tables.external import answers, features, needed
from askwise.tables.fit_inputs import known_of, target_of, weights_of
from askwise.tables.gaps import BLIND, INFORMATIVE, known_at_start, telling
from askwise.tables.splits import stratified
from askwise.tables.stored import Piece, pieces, problem_of


class Prepared(NamedTuple):
    """What training begins with."""

    problem: Problem  # rows to learn from
    validation: Problem  # rows to choose by
    encoding: Encoding
    known: tuple[str, ...]  # what everyone knows
    seed: int
    classes: Array
    validation_rows: Ints  # which rows were kept apart; none where there are too few


@dataclass(frozen=True)
class Preparation:
    """How a table becomes problems. `spec` joins four parameters of `CostlyClassifier`; every other field is one of them."""

    spec: CostSpec
    known: Any
    external: Any
    loss: Any
    class_weight: Any
    scaling: str
    categorical: Any
    validation_fraction: float
    missing: str = BLIND
    # from the numbers of rows to learn from, of rows that are kept apart, and of tests: whether those are learned from, too
    learns_from_all: Callable[[int, int, int], bool] = lambda rows, apart, tests: False

    def __call__(self, X: Any, y: Any, sample_weight: Any, seed: int) -> Prepared:
        """X: a frame, or an array that is checked. Rows without a weight are left out; the others are split by the seed."""
        target = target_of(y, len(X))
        weight = weights_of(sample_weight, len(target))
        counted = np.arange(len(target)) if weight is None else np.flatnonzero(weight)
        if weight is not None and np.ptp(weight[counted]) == 0:  # rows that count all count alike
            weight = None
        classes, codes = _classes(target, counted)
        train, validation = (counted[rows] for rows in _apart(codes, self.validation_fraction, seed))
        columns, categorical = features(self.external, X), listed(self.categorical)

        def encoded(rows: Ints) -> tuple[Encoding, Schema]:
            """What there is to know of these rows, and the schema of it."""
            encoding = Encoding.fit(columns, scaling=self.scaling, categorical=categorical, rows=rows)
            schema = schema_of(encoding, classes.tolist(), self.spec, needed(self.external, encoding.columns))
            if self.missing == INFORMATIVE:
                blocks = (encoding.transform(piece.table, rows=piece.rows) for piece in pieces(columns, rows))
                return telling(encoding, schema, blocks, self.scaling != "none")
            return encoding, schema

        encoding, schema = encoded(train)
        if len(validation) and self.learns_from_all(len(train), len(validation), len(schema.offered)):
            encoding, schema = encoded(counted)  # so that all values that are learned from can be told in a session
        rule = scoring_rule(self.loss)
        everyone, masks = known_of(self.known, (len(X), len(schema.offered)))

        def part_of(piece: Piece) -> Problem:
            """Rows that are in memory together. Errors name them as rows of the whole table."""
            try:
                values, rows = encoding.transform(piece.table, rows=piece.rows), piece.first + piece.rows
                external = answers(self.external, piece.table, schema, values, encoding.columns, piece.rows, rule)
            except RowError as error:
                raise piece.of_table(error) from None
            try:
                known = known_at_start(schema, values, [(everyone or None) if masks is None else masks[rows]])
                return Problem.build(schema, values, target[rows], known=known, loss=self.loss, external=external)
            except RowError as error:
                raise error.among(rows) from None

        def judged(rows: Ints) -> Problem:
            """The problem of some rows of the table."""
            problem = problem_of(X, rows, part_of)
            return problem.judged(self.loss, self.class_weight, None if weight is None else weight[rows])

        problem = judged(train).trainable()
        chosen_by = judged(validation).with_loss(problem.loss) if len(validation) else problem
        return Prepared(problem, chosen_by, encoding, everyone, seed, classes, validation)


def _classes(target: Array, counted: Ints) -> tuple[Array, Ints]:
    """The classes of the rows that count, sorted, and which of them each of these rows is of."""
    classes, codes = np.unique(target[counted], return_inverse=True)
    if len(classes) < 2:
        those = "rows" if len(counted) == len(target) else "rows with a weight above 0"
        raise InputError(f"all {those} are of one class, {classes.tolist()[0]!r}; learning needs rows of two classes or more")
    return classes, codes


def _apart(codes: Ints, share: float, seed: int) -> tuple[Ints, Ints]:
    """Rows to learn from, and a share to choose by: none where there are too few to keep some of every class apart."""
    train, validation = stratified(codes, (1 - share, share), seed)
    if len(np.unique(codes[validation])) < 2 or len(np.unique(codes[train])) < len(np.unique(codes)):
        return np.arange(len(codes)), np.arange(0)
    return train, validation
