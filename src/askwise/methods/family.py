"""One training for every tradeoff and every budget: a static order, made adaptive by gradients through its classifier."""

from __future__ import annotations

from typing import Any

from askwise.components.encoders import Encoder
from askwise.core.budget import Budget
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.family.config import FamilyConfig
from askwise.family.run import run
from askwise.frontier.choice import best_for


def points(
    problem: Problem,
    validation: Problem,
    *,
    seconds: float,
    seed: int = 0,
    threads: int = 1,
    steps: int | None = None,
    encoder: Encoder | None = None,
    **settings: Any,
) -> list[Policy]:
    """The policies whose costs and scores make the frontier. With `steps` it learns for so many steps, however long they take."""
    config = FamilyConfig.for_size(len(problem), problem.schema.n_tests).but(**settings)
    if steps is not None:
        config = config.but(max_steps=steps)
    limit = seconds if steps is None else None
    result = run(problem, validation, Budget(), config, seed, encoder=encoder, time_limit=limit, threads=threads)
    return [result.policy(point) for point in result.measured]


def fit(
    problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0, steps: int | None = None
) -> Policy:
    """The policy for a budget."""
    return best_for(points(problem, validation, seconds=seconds, seed=seed, steps=steps), validation, budget, seed)
