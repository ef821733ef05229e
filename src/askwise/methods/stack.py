"""Ours, for tables: a cross-fitted stack of trees and a linear model, and values learned on its beliefs for every budget."""

from __future__ import annotations

from functools import partial
from typing import Any

from askwise.core.budget import Budget
from askwise.core.policy import Greedy, MeasuredGreedy, Mixture, Policy
from askwise.core.problem import Problem
from askwise.frontier.choice import choose
from askwise.frontier.point import Point
from askwise.stack.config import StackConfig
from askwise.stack.run import run


def points(
    problem: Problem,
    validation: Problem,
    *,
    seconds: float,
    seed: int = 0,
    threads: int = 1,
    steps: int | None = None,
    **settings: Any,
) -> list[Policy]:
    """The policies whose costs and scores make the frontier. With `steps` networks and value heads learn for so many steps,
    however long they take."""
    config = _config(problem, validation, steps).but(**settings)
    limit = seconds if steps is None else None
    result = run(problem, validation, Budget(), config, seed, time_limit=limit, threads=threads, n_jobs=threads)
    return [measured(result.policy(point), point) for point in result.measured]


def _config(problem: Problem, validation: Problem, steps: int | None) -> StackConfig:
    config = StackConfig.for_size(len(problem) + len(validation), problem.schema.n_tests)
    return config if steps is None else config.but(network_steps=steps, value_steps=steps)


def measured(policy: Policy, point: Point) -> Policy:
    """A policy that says what it came to on rows it had not seen."""
    assert isinstance(policy, Greedy)
    return MeasuredGreedy(policy.value_function, point.measure)


def fit(
    problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0, steps: int | None = None
) -> Policy:
    """The policy for a budget."""
    config = _config(problem, validation, steps)
    result = run(problem, validation, budget, config, seed, time_limit=seconds if steps is None else None)
    costs, most = problem.schema.costs, budget.cap(problem.schema.costs)
    # nothing keeps a policy to another limit than the budget's, so that it must have been measured under that one
    most_paid = partial(result.shared.most_paid, costs, cap=None)
    keeps = [p.cap == most or (p.cap is None and most is not None and most_paid(p.prefix) <= most) for p in result.points]
    within = [p for p, fits in zip(result.points, keeps, strict=True) if fits]
    blend = choose([p.cost for p in within], [-p.loss for p in within], [p.measure.loss_error for p in within], budget)
    first, second = (result.policy(within[i]) for i in (blend.first, blend.second))
    return Mixture(first, second, blend.share, seed) if blend.share else first
