"""States of rows to learn the classes from: which tests they hold.

Mostly they are prefixes of a loosened order, so that the sets of policies that choose among its next tests are well known:

    the tests by log(1 + rank_i) + τ g_i,   g_i ~ Gumbel,   τ = looseness · u for some states, 0 for the others
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from askwise.core.arrays import Bools, Doubles, Floats, Ints
from askwise.core.problem import Problem
from askwise.family.conditions import Scale
from askwise.family.states import StateSampler
from askwise.stack.config import StackConfig

STATES_OF_A_ROW = 30  # at most, except where that is decided by a setting


@dataclass(frozen=True, eq=False)
class StateMaker:
    """Draws states of rows: which tests they hold."""

    problem: Problem
    sampler: StateSampler
    config: StackConfig

    @classmethod
    def of(cls, problem: Problem, order: Ints, config: StackConfig, lacking: Doubles | None = None) -> StateMaker:
        """lacking: how often cases will lack a test that the rows here have; None: never."""
        lacking = np.zeros(len(order)) if lacking is None else lacking
        sampler = StateSampler(problem.schema, Scale.of(problem), np.argsort(order), config, lacking)
        return cls(problem.trainable(), sampler, config)

    def masks(self, row: Ints, rng: np.random.Generator) -> Bools:
        """B, F: a set of tests for each row; what is free is among them."""
        n, F, config = len(row), len(self.sampler.rank), self.config
        loose = config.looseness * rng.random((n, 1)) * (rng.random((n, 1)) < config.loose_share)
        place = np.argsort(np.argsort(np.log1p(self.sampler.rank) + loose * rng.gumbel(size=(n, F)), 1), 1)
        length = np.ceil(F * rng.random((n, 1)) ** config.prefix_power) * (rng.random((n, 1)) >= config.empty_share)
        mask = self.sampler.varied(self.problem, row, place < length, config.random_set_share, rng)
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
