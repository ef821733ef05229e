"""The paper's method: train, and keep the best of what was seen on the way, never simply the last network."""

from __future__ import annotations

from askwise.components.torch_state import own_torch
from askwise.core.budget import Budget
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.paper.config import TrainConfig
from askwise.paper.run import run
from askwise.paper.select import policy_for


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, steps: int | None = None
) -> list[Policy]:
    """One training that sweeps lambda: deciding at once, and those of its snapshots that some lambda would choose. With `steps`
    it learns for about so many steps, however long they take."""
    config = _config(problem, seconds, steps)
    with own_torch(seed, threads):
        result = run(problem, validation, Budget(), config, seed, time_limit=None if steps else seconds)
    return [result.policy(point) for point in result.points]


def fit(
    problem: Problem,
    validation: Problem,
    budget: Budget,
    *,
    seconds: float = 60,
    seed: int = 0,
    steps: int | None = None,
    mixture: str = "if better",
) -> Policy:
    """The policy of a training for this budget alone: a single network or, as `mixture` says, a mixture of two."""
    config = _config(problem, seconds, steps).scaled(mixture=mixture)
    with own_torch(seed):
        result = run(problem, validation, budget, config, seed, time_limit=None if steps else seconds)
    return policy_for(result, budget, seed, mixture)


def _config(problem: Problem, seconds: float, steps: int | None) -> TrainConfig:
    """`for_size` is for about a minute; with more time, or more steps, its epochs are longer."""
    config = TrainConfig.for_size(len(problem), problem.schema.n_tests)
    return config.scaled(time=steps / config.max_steps if steps else max(seconds / 60, 0.1))
