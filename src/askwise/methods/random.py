"""Random tests: what choosing well must be better than.

Each case buys tests in a random order of its own until it holds k, and is then decided by a classifier of any set of tests, a
masked network. What costs nothing is always bought first. Costs play no part in the order; under a hard budget it is an order
of what can still be paid. An existing classifier is never asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from askwise.components.subset_classifier import Picking, SubsetLearner, counts
from askwise.components.torch_state import own_torch
from askwise.core.arrays import Doubles
from askwise.core.budget import Budget
from askwise.core.cases import State
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.core.sampling import uniform
from askwise.frontier.choice import best_for


@dataclass(frozen=True)
class Lots:
    """B, F: a number for each test, drawn once per case from its key, so that the order does not depend on the batch."""

    seed: int

    def __call__(self, state: State) -> Doubles:
        tests = np.arange(state.mask.shape[1], dtype=np.uint64) * np.uint64(0xD1B54A32D192ED03)
        return uniform(state.key[:, None] + tests, self.seed)


def points(
    problem: Problem,
    validation: Problem,
    *,
    seconds: float,
    seed: int = 0,
    threads: int = 1,
    steps: int | None = None,
    most: int = 256,
) -> list[Policy]:
    """A policy for each of several numbers of tests, up to `most`. With `steps` it learns for so many, however long they take."""
    with own_torch(seed, threads):
        learner = SubsetLearner(problem, validation, seconds, steps, seed)
        learner.pretrain(1.0)
    picks = [Picking(learner.belief, Lots(seed), k, learner.free, problem.free_loss) for k in counts(learner.free, most)]
    return [*picks, *learner.everything(most)]


def fit(
    problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0, steps: int | None = None
) -> Policy:
    """The number of tests that is best for the budget on validation rows, or a mixture of two."""
    return best_for(points(problem, validation, seconds=seconds, seed=seed, steps=steps), validation, budget, seed)
