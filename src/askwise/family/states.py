"""States to learn a family from: prefixes of its static order, and cases in progress."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from askwise.core.arrays import Bools, Doubles, Ints
from askwise.core.missingness import lost
from askwise.core.problem import Problem, Schema
from askwise.family.conditions import Scale
from askwise.family.config import DESIGN, FamilyConfig

FREE = 2  # times the cost of everything: a hard budget that never binds, as more than everything is always left
REFUSES, KNOWS, DEEP = 0.15, 0.15, 0.25  # shares of cases that refuse tests, know some already, or begin on a prefix of the order


@dataclass(eq=False)
class Live:
    """Cases in progress."""

    row: Ints
    mask: Bools
    lam: Doubles
    cap: Ints  # units
    refused: Bools
    life: Ints  # tests it buys at most
    age: Ints

    def replace(self, where: Bools, fresh: Live) -> None:
        for field in fields(self):
            getattr(self, field.name)[where] = getattr(fresh, field.name)


@dataclass(frozen=True, eq=False)
class Starts:
    """Where learning starts."""

    schema: Schema
    scale: Scale
    rank: Ints  # F: the place of each test in the static order
    config: FamilyConfig
    lacking: Doubles  # F: how often cases will lack a test that the rows here have, see `gaps.lacking`

    def prefixes(self, problem: Problem, row: Ints, rng: np.random.Generator) -> Bools:
        """B, F: prefixes with some tests flipped, and now and then any set at all, for cases that come another way."""
        n, F = len(row), self.schema.n_tests
        mask: Bools = self.rank < np.round(F * rng.random((n, 1)) ** self.config.prefix_power)
        mask = mask ^ (rng.random((n, F), dtype=np.float32) < 0.15 * rng.random((n, 1), dtype=np.float32) ** 2)
        any_set = np.flatnonzero(rng.random(n) < (0.1 if DESIGN.candidates < F else 0.4))  # of few tests there are few sets
        mask[any_set] = rng.random((len(any_set), F)) < rng.random((len(any_set), 1)) ** 2
        if problem.available is not None:
            mask &= problem.available[row]
            # a set without some test must not be known only from rows that lack it
            thin = np.flatnonzero(rng.random(n) < 0.3)
            mask[thin] &= rng.random((len(thin), F)) < rng.random((len(thin), 1))
        mask &= ~lost(self.lacking, n, rng)
        if problem.known is not None:
            mask |= problem.known[row]
        return mask

    def fresh(self, problem: Problem, n: int, rng: np.random.Generator) -> Live:
        """New cases, each with a price; half of them with a hard budget, half of these with nothing else to mind."""
        costs, F = self.schema.costs, self.schema.n_tests
        row = problem.draw(n, rng, by_loss_scale=False)
        lam = self.scale.least * (self.scale.high / self.scale.least) ** rng.random(n)
        mask = np.zeros((n, F), bool)
        knows, deep = (np.flatnonzero(rng.random(n) < share) for share in (KNOWS, DEEP))
        mask[knows] = rng.random((len(knows), F)) < 0.5 * rng.random((len(knows), 1))
        mask[deep] |= self.rank < np.round(F * rng.random((len(deep), 1)) ** 2)
        gone = lost(self.lacking, n, rng)
        mask &= ~gone
        if problem.available is not None:
            mask &= problem.available[row]
        if problem.known is not None:
            mask |= problem.known[row]
        refused = np.zeros((n, F), bool)
        refuses = np.flatnonzero(rng.random(n) < REFUSES)
        refused[refuses] = rng.random((len(refuses), F)) < 0.6 * rng.random((len(refuses), 1))
        refused |= gone
        free = costs.alone == 0  # is taken before anything else
        if free.any():
            can = ~refused if problem.available is None else ~refused & problem.available[row]
            mask |= free & costs.obtainable(can, mask)
        least = max(1.0, costs.total * self.scale.cheapest / self.scale.total)
        cap = np.exp(rng.uniform(math.log(least), math.log(max(costs.total, least)), n)).round().astype(np.int64)
        capped = rng.random(n) < 0.5
        spent = costs.cost(mask, None if problem.known is None else problem.known[row])
        cap = np.where(capped, cap + spent, FREE * costs.total)
        lam[capped & (rng.random(n) < 0.5)] = self.scale.least  # a hard budget and nothing else
        life = np.ceil(min(self.config.max_tests, F) * rng.random(n) ** 2).astype(np.int64)
        return Live(row, mask, lam, cap, refused, life, np.zeros(n, np.int64))
