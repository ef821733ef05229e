"""Learners of the classes from any set of tests: boosted trees and a linear model. Rows are seen several times, with other tests.

Rows count by what is at stake in them, as everywhere with boosted trees. `shift` undoes it in the logits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from askwise.components.boosting import boost, loss_scales, row_weights
from askwise.core.arrays import Array, Arrays, Bools, Floats, Ints
from askwise.core.problem import Problem
from askwise.family.states import StateSampler
from askwise.stack.config import DESIGN, StackConfig
from askwise.stack.trees import from_lightgbm

HELD_OUT_STATES = 6_000  # on which it is seen when trees are enough
LINEAR_STATES = 20_000  # from which the linear model is learned, at most
STATES_OF_A_ROW = 30  # at most, except where that is decided by a setting


@dataclass(frozen=True, eq=False)
class StateMaker:
    """Draws states of rows: which tests they hold."""

    problem: Problem
    sampler: StateSampler

    def masks(self, row: Ints, rng: np.random.Generator) -> Bools:
        """B, F: a set of tests for each row; what is free is among them."""
        mask = self.sampler.prefixes(self.problem, row, rng)
        self.sampler.take_free(self.problem, row, mask, np.zeros_like(mask))
        return mask

    def with_nan(self, row: Ints, mask: Bools) -> Floats:
        """B, C: values, NaN where they are not known."""
        known = self.problem.schema.by_column(mask)
        return np.where(known, self.problem.X[row], np.float32(np.nan))


def some_of(rows: Ints, states: int, rng: np.random.Generator) -> Ints:
    """About so many rows: each as often as the others, but not ever so often, or some of them."""
    if len(rows) >= states:
        return rng.permutation(rows)[:states]
    return np.tile(rows, max(1, min(round(states / len(rows)), STATES_OF_A_ROW)))


def fit_trees(
    maker: StateMaker, learned: Ints, held_out: Ints, config: StackConfig, members: int, seed: int, threads: int, seconds: float
) -> Arrays:
    """Boosted trees of any set of tests, as arrays."""
    problem, rng, K = maker.problem, np.random.default_rng(seed), maker.problem.schema.n_classes
    weight, y, outputs = row_weights(problem), problem.labels, 1 if K == 2 else K
    parts = []
    for rows, states in ((learned, min(config.most_states, config.states_per_row * len(learned))), (held_out, HELD_OUT_STATES)):
        row = some_of(rows, states, rng)
        parts.append((maker.with_nan(row, maker.masks(row, rng)), y[row], weight[row]))
    rounds = max(10, min(config.tree_rounds, config.most_trees // (members * outputs)))
    tree = {"num_leaves": config.leaves, "max_depth": config.tree_depth, "feature_fraction": 0.9, "max_bin": 127}
    least = max(5, min(20 * config.states_per_row // 4, len(parts[0][0]) // 200))
    rate = float(np.clip(config.tree_rate * config.tree_rounds / rounds, config.tree_rate, 0.3))
    fitted = boost(
        parts[0],
        parts[1],
        K,
        seconds=seconds,
        seed=seed,
        threads=threads,
        rounds=rounds,
        rate=rate,
        min_data_in_leaf=least,
        **tree,
    )
    return from_lightgbm(fitted.model, len(problem.schema.columns), K).arrays()


def fit_linear(maker: StateMaker, learned: Ints, config: StackConfig, seed: int) -> Arrays:
    """A softmax regression on states of any set of tests, by L-BFGS with a ridge."""
    problem, rng, schema = maker.problem, np.random.default_rng(seed), maker.problem.schema
    F, C, K = schema.n_tests, len(schema.columns), schema.n_classes
    row = some_of(learned, LINEAR_STATES, rng)
    mask = maker.masks(row, rng)
    known = schema.by_column(mask)
    x = (problem.X[row] * known).clip(-DESIGN.value_limit, DESIGN.value_limit)
    main = torch.from_numpy(np.concatenate([x, mask], 1, dtype=np.float32))
    by_set = DESIGN.by_set_tests >= F
    pairs = torch.from_numpy((mask[:, :, None] * x[:, None, :]).reshape(len(row), -1).astype(np.float32)) if by_set else None
    labels = torch.from_numpy(problem.labels[row])
    weight = torch.from_numpy(row_weights(problem)[row]).float()
    weight = weight / weight.sum()
    coefficients = [torch.zeros(C + F, K), torch.zeros(K), torch.zeros(F * C if by_set else 0, K)]
    for part in coefficients:
        part.requires_grad_()
    optimiser = torch.optim.LBFGS(coefficients, max_iter=80, history_size=10, line_search_fn="strong_wolfe")
    ridge = config.ridge / len(np.unique(row))

    def loss() -> torch.Tensor:
        optimiser.zero_grad()
        logits = main @ coefficients[0] + coefficients[1]
        if pairs is not None:
            logits = logits + pairs @ coefficients[2]
        nats = (weight * functional.cross_entropy(logits, labels, reduction="none")).sum()
        total = nats + ridge * (coefficients[0].square().sum() + 2 * coefficients[2].square().sum())
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    main_weights, bias, pair_weights = (part.detach().numpy() for part in coefficients)
    arrays: dict[str, Array] = {"main": main_weights, "bias": bias}
    if by_set:
        arrays["by_set"] = pair_weights.reshape(F, C * K)
    return arrays


def shift(problem: Problem) -> Array:
    """K: how much larger the logits of a class are for being seen more often."""
    return np.log(loss_scales(problem))
