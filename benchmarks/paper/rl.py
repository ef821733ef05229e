"""The paper's algorithm at the paper's own settings (its appendix), as a method of plans: `name = "benchmarks.paper.rl"`.

The installed method `paper` takes settings that follow from the size of the data and the time; here they are those of the data
set of the paper that has so many classes and tests. On two cores a run takes hours; `minutes` of the plan ends it earlier.
"""

from __future__ import annotations

from askwise.core.budget import Budget
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.paper import run as paper
from askwise.paper.config import TrainConfig
from askwise.paper.select import policy_for

LIKE = {(2, 50): "miniboone", (7, 54): "forest", (10, 400): "cifar", (10, 784): "mnist"}


def settings(problem: Problem) -> TrainConfig:
    """Those of the paper's data set with this shape; those of diabetes for others."""
    return TrainConfig.paper(LIKE.get((problem.schema.n_classes, problem.schema.n_tests), "diabetes"))


def fit(problem: Problem, validation: Problem, budget: Budget, *, seconds: float, seed: int = 0) -> Policy:
    """One training for one budget."""
    return policy_for(paper.run(problem, validation, budget, settings(problem), seed, time_limit=seconds), budget, seed)
