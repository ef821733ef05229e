"""LightGBM with its cost-efficient boosting: a split is charged for the cases that meet a column there for the first time.

What a user of LightGBM has today. A case costs what is asked on the paths it takes, so tests are bought as the trees need them.
LightGBM knows costs of columns only: each column has its share of what its test costs, and tests that need the same set-up or
source share the cost of that.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.components.boosting import boost, loss_scales, row_weights, unweighted
from askwise.components.cost_trees import LazyTrees, Trees, item_costs, items
from askwise.components.prefixes import at_once, columns_within
from askwise.core.arrays import Doubles, Ints
from askwise.core.budget import Budget, lam_range
from askwise.core.episode import measure
from askwise.core.missingness import filled
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.frontier.choice import best_for, next_lam


@dataclass(frozen=True)
class CegbSettings:
    """The settings of cegb."""

    trees: int = 300  # in all classes together, unless these are many
    fewest_rounds: int = 40  # however many classes there are
    lambdas: int = 14  # points of the frontier, besides deciding at once
    fewest_lambdas: int = 4  # however short the time
    validation_rows: int = 2_000  # that tell what a lambda costs
    leaves: int = 16  # of a tree
    leaf_rows: int = 10  # of a leaf, at least


SETTINGS = CegbSettings()


def column_costs(problem: Problem, columns: Ints) -> Doubles:
    """What each column costs a case, on average: equal shares of what its test costs, and that in equal shares of what it has in
    common with others. What all know already is free."""
    schema = problem.schema
    need = items(schema.costs, np.eye(schema.n_tests, dtype=bool))  # F, F + G
    used = np.isin(np.arange(schema.n_tests), schema.owner[columns])
    need &= used[:, None]
    share = need / np.maximum(need.sum(0), 1) @ item_costs(schema.costs)
    if problem.known is not None:
        share = share * (1 - problem.known.mean(0))
    shown: Doubles = (share / np.maximum(np.bincount(schema.owner, minlength=schema.n_tests), 1))[schema.owner[columns]]
    return shown


def trees_of(model: Any, columns: Ints, outputs: int) -> Trees:
    """The trees of a LightGBM model; tree i adds to output i mod `outputs`."""
    column: list[int] = []
    child: list[list[int]] = []
    threshold, value, roots = [], [], []
    for i, info in enumerate(model.dump_model()["tree_info"]):
        roots.append(len(column))
        stack = [(info["tree_structure"], -1, 0)]
        while stack:
            node, parent, side = stack.pop()
            h = len(column)
            if parent >= 0:
                child[parent][side] = h
            inner = "split_feature" in node
            column.append(int(columns[node["split_feature"]]) if inner else -1)
            threshold.append(float(node["threshold"]) if inner else np.inf)
            child.append([h, h])
            value.append(np.where(np.arange(outputs) == i % outputs, 0.0 if inner else node["leaf_value"], 0.0))
            if inner:
                stack += [(node["right_child"], h, 1), (node["left_child"], h, 0)]
    return Trees(np.array(column), np.array(threshold), np.array(child), np.array(value), np.array(roots))


@dataclass(frozen=True, eq=False)
class Links:
    """From scores to probabilities."""

    scales: Doubles

    def __call__(self, score: Doubles) -> Doubles:
        if score.shape[1] == 1:
            score = np.column_stack([np.zeros(len(score)), score])
        p = np.exp(score - score.max(1, keepdims=True))
        return unweighted(p / p.sum(1, keepdims=True), self.scales)


def boosted(
    problem: Problem, validation: Problem, columns: Ints, lam: float, *, seconds: float, seed: int, threads: int
) -> LazyTrees:
    """Trees for one lambda, the loss that a unit of cost is worth."""
    schema, scales = problem.schema, loss_scales(problem)
    K = schema.n_classes
    outputs = 1 if K == 2 else K
    sample = some_rows(len(validation), 20_000, seed)
    held_out = validation.X[np.ix_(sample, columns)], np.asarray(validation.y)[sample], scales[np.asarray(validation.y)[sample]]
    fitted = boost(
        (problem.X[:, columns], np.asarray(problem.y), row_weights(problem)),
        held_out,
        K,
        seconds=seconds,
        seed=seed,
        threads=threads,
        rounds=max(SETTINGS.fewest_rounds, SETTINGS.trees // outputs),
        cegb_tradeoff=2 * lam,  # LightGBM's gains are twice the loss that a split takes off
        cegb_penalty_feature_lazy=column_costs(problem, columns).tolist(),
        num_leaves=SETTINGS.leaves,
        min_data_in_leaf=SETTINGS.leaf_rows,
    )
    trees = trees_of(fitted.model, columns, outputs)
    return LazyTrees(trees, schema.owner, schema.first_test, Links(scales), problem.free_loss)


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, cap: int | None = None
) -> list[Policy]:
    """Deciding at once, and boosted trees for a range of lambdas, finer where the mean cost changes most.

    Under a hard budget of `cap` units the trees ask only for tests that it allows together.
    """
    began = time.monotonic()
    problem = filled(problem.trainable(), seed)
    columns = columns_within(problem, cap, seed, threads)
    if not len(columns):
        return [at_once(problem)]
    held_out = validation.take(some_rows(len(validation), SETTINGS.validation_rows, seed))
    validation = filled(validation, seed)
    ends = lam_range(problem)
    policies: dict[float, Policy] = {}
    costs: dict[float, float] = {}
    ahead = [0.0] if ends is None else [ends[0] / 10, ends[1]]  # nothing to pay: one is enough
    while ahead:
        lam = ahead.pop(0)
        policies[lam] = boosted(problem, validation, columns, lam, seconds=seconds / 4, seed=seed, threads=threads)
        costs[lam] = measure(held_out, policies[lam], None).cost
        in_time = time.monotonic() - began < seconds or len(policies) < SETTINGS.fewest_lambdas
        if not ahead and ends is not None and len(policies) < SETTINGS.lambdas and in_time:
            between = next_lam(costs)
            ahead = [] if between is None else [between]
    return [at_once(problem), *policies.values()]


def fit(problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0) -> Policy:
    """The trees that are best for the budget on validation rows, or a mixture of two."""
    cap = budget.cap(problem.schema.costs)
    return best_for(points(problem, validation, seconds=seconds, seed=seed, cap=cap), validation, budget, seed)
