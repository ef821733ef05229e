"""States to learn values from: the belief in each, and in those that follow it, computed once and used at many tradeoffs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from askwise.core.arrays import Arrays, Bools, Floats, Ints
from askwise.core.cases import Cases
from askwise.core.problem import Problem

Believe = Callable[[Ints, Bools], Floats]  # rows and masks -> B, K: beliefs of members that have not seen the rows


@dataclass(eq=False)
class Pool:
    """N states, S tests of each, and what is believed before and after these."""

    problem: Problem
    rank: Ints
    successors: int
    believe: Believe
    row: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    parts: Arrays = field(default_factory=dict)  # mask (N, F), belief (N, K), test (N, S), possible (N, S), after (N, S, K)

    def add(self, row: Ints, mask: Bools, taken: Ints | None, rng: np.random.Generator) -> None:
        """States, each with the next tests of the order, any others, and the one that was taken there, if any."""
        schema = self.problem.schema
        legal = Cases(self.problem, row, mask, None).legal()[:, schema.first_test :]
        F, S = schema.n_tests, min(self.successors, schema.n_tests)
        key = np.where(legal, rng.random(legal.shape), -2.0)
        if S < F:
            place = np.cumsum(legal[:, np.argsort(self.rank)], 1)[:, self.rank]
            key += 2.0 * (legal & (place <= (S + 1) // 2))
            if taken is not None:
                key[np.arange(len(row)), taken] += 4.0
        test = np.argsort(-key, 1, kind="stable")[:, :S]
        n = np.arange(len(row))[:, None]
        after = np.repeat(mask[:, None], S, 1)
        after[n, np.arange(S), test] = True
        beliefs = self.believe(np.repeat(row, S), after.reshape(-1, F))
        new = {
            "mask": mask,
            "belief": self.believe(row, mask),
            "test": test,
            "possible": legal[n, test],
            "after": beliefs.reshape(len(row), S, -1),
        }
        self.parts = {name: np.concatenate([self.parts[name], part]) if self.parts else part for name, part in new.items()}
        self.row = np.concatenate([self.row, row])

    def state(self) -> Arrays:
        return {"row": self.row, **self.parts}

    def load(self, state: Arrays) -> None:
        self.row, self.parts = state["row"], {name: value for name, value in state.items() if name != "row"}
