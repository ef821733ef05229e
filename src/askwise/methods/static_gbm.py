"""One cost-aware order for all cases, and boosted trees on each of its prefixes: what a practitioner would do today.

The order is by recursive elimination with LightGBM's gain per unit of cost, each prefix has a LightGBM classifier, and a budget
buys one prefix for everybody, or a mixture of two.
"""

from __future__ import annotations

import time

from askwise.components.prefixes import affordable, boosted_stages, prefix_policies
from askwise.components.static_order import elimination_order
from askwise.core.budget import Budget
from askwise.core.missingness import filled
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.frontier.choice import best_for


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, cap: int | None = None
) -> list[Policy]:
    """A policy for each prefix, from deciding at once to buying everything, or all that a hard budget of `cap` units allows."""
    began = time.monotonic()
    problem, validation = filled(problem.trainable(), seed), filled(validation, seed)
    order = affordable(elimination_order(problem, seed, threads=threads), problem.schema.costs, cap)
    left = max(seconds - (time.monotonic() - began), 0.2 * seconds)
    return [
        *prefix_policies(problem, order, boosted_stages(problem, validation, order, seconds=left, seed=seed, threads=threads))
    ]


def fit(problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0) -> Policy:
    """The prefix that is best for the budget on validation rows, or a mixture of two."""
    cap = budget.cap(problem.schema.costs)
    return best_for(points(problem, validation, seconds=seconds, seed=seed, cap=cap), validation, budget, seed)
