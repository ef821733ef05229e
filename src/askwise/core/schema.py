"""What is decided and what can be bought: classes and other decisions, columns, tests and their costs.

Variants are data here, not flags elsewhere: macro-features are `Schema.owner`, an existing classifier `Schema.external_needs`,
decisions that are not classes `Schema.other_decisions`, missing values that tell something `Schema.tells_gaps`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Bools, Floats, Ints
from askwise.core.cost_spec import CostSpec
from askwise.core.costs import CostFunction
from askwise.core.parameters import check_distinct
from askwise.errors import InputError, did_you_mean, quoted


@dataclass(frozen=True, eq=False)
class Schema:
    """Names, costs, and which columns a test reveals."""

    columns: tuple[str, ...]
    tests: tuple[str, ...]
    classes: tuple[Any, ...]
    owner: Ints  # C: the test that reveals each column
    costs: CostFunction
    external_needs: Bools | None = None  # F: the tests an existing classifier needs, if there is one
    other_decisions: tuple[str, ...] = ()  # that are not classes
    tells_gaps: bool = False  # the last test tells which of the others a case lacks; it is free, and everyone knows it

    @classmethod
    def build(
        cls,
        columns: Sequence[str],
        classes: Sequence[Any],
        costs: CostSpec | Mapping[str, Any] | Sequence[Any] | None = None,
        external_needs: Sequence[str] | None = None,
    ) -> Schema:
        """A schema from names and costs.

        Parameters
        ----------
        columns : sequence of str
            Columns of the data.
        classes : sequence
            Two or more, each once.
        costs : CostSpec, dict or sequence, default=None
            All that is said about tests, other decisions and their costs, or costs of tests alone. A test that reveals several
            columns is a macro-feature or a vector-valued feature.
        external_needs : sequence of str, default=None
            Tests that an existing classifier needs, if there is one.

        Returns
        -------
        Schema
        """
        check_distinct(columns, "column")
        check_distinct(classes, "class")
        if len(classes) < 2:
            only = f"there is only one class, {classes[0]!r}" if classes else "there are no classes"
            raise InputError(f"{only}; a decision needs two or more")
        spec = CostSpec.of(costs)
        revealed = _revealed(columns, spec.reveals)
        tests = list(dict.fromkeys(revealed.get(c, c) for c in columns))
        if not tests:
            raise InputError("there are no columns, so nothing can be bought")
        index = {t: i for i, t in enumerate(tests)}
        needs = None if external_needs is None else _needs(external_needs, index)
        owner = np.array([index[revealed.get(c, c)] for c in columns], np.int64)
        others = tuple(spec.decisions)
        for name in others:
            if not isinstance(name, str) or not name or name in classes:
                why = "is a class" if name in classes else "is no name"
                raise InputError(f"the decision {quoted(name)} {why}; a decision that is not a class needs a name of its own")
        return cls(tuple(columns), tuple(tests), tuple(classes), owner, CostFunction.build(tests, spec), needs, others)

    def __repr__(self) -> str:
        return f"Schema({len(self.columns)} columns, {self.n_tests} tests, {self.n_classes} classes)"

    @property
    def n_tests(self) -> int:
        return len(self.tests)

    @property
    def offered(self) -> tuple[str, ...]:
        """The tests that can be bought: all but the one that tells what is missing."""
        return self.tests[: self.n_tests - self.tells_gaps]

    @property
    def n_classes(self) -> int:
        return len(self.classes)

    @property
    def decisions(self) -> tuple[Any, ...]:
        """D: the classes, and what else may be decided."""
        return (*self.classes, *self.other_decisions)

    @property
    def n_decisions(self) -> int:
        return len(self.classes) + len(self.other_decisions)

    @cached_property
    def decision_cost(self) -> Ints:
        """D: what each decision costs, in units; a class costs nothing."""
        cost: Ints = np.r_[np.zeros(self.n_classes, np.int64), self.costs.decisions]
        return cost

    @property
    def first_test(self) -> int:
        """The action that buys test 0; the action before it, if it is not a decision, asks the existing classifier."""
        return self.n_decisions + (self.external_needs is not None)

    @property
    def n_actions(self) -> int:
        return self.first_test + self.n_tests

    @cached_property
    def one_column_each(self) -> bool:
        return bool(len(self.owner) == self.n_tests and (self.owner == np.arange(self.n_tests)).all())

    def present(self, X: Floats) -> Bools | None:
        """N, F: which tests have all their values (N, C), which are NaN where missing; None: all of them."""
        lacks = np.isnan(X)
        if not lacks.any():
            return None
        gone = np.zeros((len(X), self.n_tests), bool)
        for column, test in enumerate(self.owner):
            gone[:, test] |= lacks[:, column]
        return ~gone

    def by_column(self, mask: Array) -> Array:
        """B, C from B, F: each column takes what holds for the test that reveals it."""
        return mask if self.one_column_each else mask[:, self.owner]


def _revealed(columns: Sequence[str], reveals: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The test that reveals each column which is no test of its own."""
    there, revealed = set(columns), dict[str, str]()
    for test, names in reveals.items():
        for name in names:
            if name not in there:
                raise InputError(
                    f"test {test!r} reveals the column {name!r}, which does not exist; {did_you_mean(name, columns)}"
                )
            if name in revealed:
                raise InputError(f"column {name!r} is revealed by both {revealed[name]!r} and {test!r}; keep one")
            revealed[name] = test
    clash = [c for c in columns if c not in revealed and c in reveals]
    if clash:
        raise InputError(f"test {clash[0]!r} has the name of a column that it does not reveal; rename one of them")
    return revealed


def _needs(names: Sequence[str], tests: Mapping[str, int]) -> Bools:
    """F: the tests that an existing classifier needs."""
    needs = np.zeros(len(tests), bool)
    for name in names:
        if name not in tests:
            raise InputError(
                f"the existing classifier needs the test {name!r}, which does not exist; {did_you_mean(name, tests)}"
            )
        needs[tests[name]] = True
    return needs
