"""States of rows to learn the classes from: which tests they hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from askwise.core.arrays import Bools, Floats, Ints
from askwise.core.problem import Problem
from askwise.family.states import StateSampler

STATES_OF_A_ROW = 30  # at most, except where that is decided by a setting


@dataclass(frozen=True, eq=False)
class StateMaker:
    """Draws states of rows: which tests they hold."""

    problem: Problem
    sampler: StateSampler

    def masks(self, row: Ints, rng: np.random.Generator) -> Bools:
        """B, F: a set of tests for each row; what is free is among them."""
        mask = self.sampler.prefixes(self.problem, row, rng)
        self.sampler.take_free(self.problem, row, mask, np.zeros_like(mask))
        return mask

    def with_nan(self, row: Ints, mask: Bools) -> Floats:
        """B, C: values, NaN where they are not known."""
        known = self.problem.schema.by_column(mask)
        return np.where(known, self.problem.X[row], np.float32(np.nan))


def some_of(rows: Ints, states: int, rng: np.random.Generator) -> Ints:
    """About so many rows: each as often as the others, but not ever so often, or some of them."""
    if len(rows) >= states:
        return rng.permutation(rows)[:states]
    return np.tile(rows, max(1, min(round(states / len(rows)), STATES_OF_A_ROW)))
