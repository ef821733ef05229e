"""The family with an encoder of the caller's own, for square pictures; its steps are slow, and the classifier profits most."""

from __future__ import annotations

from typing import Any

from askwise.components.pictures import Convolutions
from askwise.core.budget import Budget
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.frontier.choice import best_for
from askwise.methods import family


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, **settings: Any
) -> list[Policy]:
    """As those of the family."""
    side = round(problem.schema.n_tests**0.5)
    encoder = Convolutions(side, side, mirror=True)
    usual = {"width": 256, "parallel_cases": 128, "prefix_share": 0.6, "prefix_power": 2}
    return family.points(problem, validation, seconds=seconds, seed=seed, threads=threads, encoder=encoder, **(usual | settings))


def fit(problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0) -> Policy:
    """The policy for a budget."""
    return best_for(points(problem, validation, seconds=seconds, seed=seed), validation, budget, seed)
