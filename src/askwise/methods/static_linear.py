"""One cost-aware order for all cases, and a logistic regression on each of its prefixes: hard to beat with a few hundred rows.

The order is that of static-gbm. The strength of the ridge is chosen on validation rows, once, with all tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression

from askwise.components.boosting import ClassShares, loss_scales, row_weights, unweighted
from askwise.components.prefixes import Stage, affordable, lengths_of, prefix_policies
from askwise.components.static_order import elimination_order
from askwise.core.arrays import Doubles, Floats, Ints
from askwise.core.budget import Budget
from askwise.core.missingness import filled
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.frontier.choice import best_for


@dataclass(frozen=True)
class StaticLinearSettings:
    """The settings of static-linear."""

    strengths: tuple[float, ...] = (1e-3, 1e-2, 1e-1, 1.0, 10.0)  # C of scikit-learn, of which one is chosen
    most_rows: int = 50_000  # from which it learns
    most_iterations: int = 300


SETTINGS = StaticLinearSettings()


@dataclass(frozen=True, eq=False)
class Logistic:
    """Class probabilities from some columns."""

    model: Any
    columns: Ints
    scales: Doubles

    def __call__(self, values: Floats) -> Doubles:
        p = np.zeros((len(values), len(self.scales)))
        p[:, self.model.classes_] = self.model.predict_proba(values[:, self.columns])
        return unweighted(np.maximum(p, 1e-12), self.scales)


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, cap: int | None = None
) -> list[Policy]:
    """A policy for each prefix, from deciding at once to buying everything, or all that a hard budget of `cap` units allows."""
    problem, validation = filled(problem.trainable(), seed), filled(validation, seed)
    order = affordable(elimination_order(problem, seed, threads=threads), problem.schema.costs, cap)
    rows = np.random.default_rng(seed).permutation(len(problem))[: SETTINGS.most_rows]
    held_out, owner = np.asarray(validation.y), problem.schema.owner

    def fitted(columns: Ints, strength: float) -> Logistic:
        model = LogisticRegression(C=strength, max_iter=SETTINGS.most_iterations)
        model.fit(problem.X[np.ix_(rows, columns)], np.asarray(problem.y)[rows], row_weights(problem)[rows])
        return Logistic(model, columns, loss_scales(problem))

    def nats(strength: float) -> float:
        p = fitted(np.flatnonzero(np.isin(owner, order)), strength)(validation.X)
        return float(-np.log(p[np.arange(len(p)), held_out]).mean())

    strength = min(SETTINGS.strengths, key=nats) if len(order) else 1.0
    stages = []
    for length in lengths_of(problem, order, 40):
        columns = np.flatnonzero(np.isin(owner, order[:length]))
        stages.append(Stage(length, fitted(columns, strength) if len(columns) else ClassShares.of(problem)))
    return [*prefix_policies(problem, order, stages)]


def fit(problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0) -> Policy:
    """The prefix that is best for the budget on validation rows, or a mixture of two."""
    cap = budget.cap(problem.schema.costs)
    return best_for(points(problem, validation, seconds=seconds, seed=seed, cap=cap), validation, budget, seed)
