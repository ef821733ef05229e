"""Forecasts, corrected by what happened.

The value head learns each step from the next one, so that its errors add up along the way. That hardly changes which action is
best, but its forecasts of the loss at the end and of the cost to come may be off. After training, held-out cases are followed to
their ends, and a linear map of what was forecast is fitted to what happened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from askwise.core.arrays import Doubles, Ints
from askwise.core.episode import replay, rollout
from askwise.core.policy import Greedy
from askwise.core.problem import Problem
from askwise.family.forward import FORECAST_INPUTS, uncalibrated
from askwise.family.inference import PredictedValues


class Followed(NamedTuple):
    """Rows that are followed to their ends by a policy, under a hard budget in units or without one."""

    values: PredictedValues
    cap: int | None
    rows: Ints


def fitted(problem: Problem, runs: Iterable[Sequence[Followed]], strength: float) -> Doubles:
    """M: 2, 15: the map from what was forecast to what happened.

    runs: for each of several tradeoffs and budgets, rows that are followed. All runs count the same: low tradeoffs, where cases
    are long, would drown the others.
    """
    parts = [joined for run in runs if len((joined := _joined([followed(problem, *each) for each in run]))[2])]
    if not parts:
        return uncalibrated()
    X, Y, _ = _joined(parts)
    weight = np.concatenate([each / max(each.sum(), 1e-300) for _, _, each in parts])
    return ridge(X, Y, weight / len(parts), strength)


def _joined(parts: Sequence[tuple[Doubles, Doubles, Doubles]]) -> tuple[Doubles, Doubles, Doubles]:
    X, Y, weight = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return X, Y, weight


def followed(problem: Problem, values: PredictedValues, cap: int | None, rows: Ints) -> tuple[Doubles, Doubles, Doubles]:
    """Features of the forecasts at every purchase of these rows (N, 15), what happened after it (N, 2): the scaled loss at
    the end and the cost in parts of everything; and the weights of the rows (N)."""
    costs, scale, first = problem.schema.costs, values.scale, problem.schema.first_test
    done = rollout(problem, Greedy(values), cap, rows)
    steps = replay(problem, done.row, done.padded, done.length, cap)
    buys = steps.action >= first
    # the value head has learned from cases that hold what is free for everybody, and says nothing useful of others
    buys &= ~(steps.cases.legal()[:, first:] & (costs.alone == 0)).any(1)
    cases, episode = steps.cases.keep(buys), steps.episode[buys]
    if not len(episode):
        return np.empty((0, FORECAST_INPUTS)), np.empty((0, 2)), np.empty(0)
    state = cases.observe()
    known = None if problem.known is None else problem.known[cases.row]
    paid = costs.money((done.cost[episode] - costs.cost(cases.mask, known)).astype(float))
    happened = np.stack([done.loss[episode] / scale.loss_scale, paid / scale.total], 1)
    each = np.ones(len(episode)) if problem.weight is None else problem.weight[done.row[episode]]
    return values.forecast_inputs(values.predict(state), state.left), happened, each


def ridge(X: Doubles, Y: Doubles, weight: Doubles, strength: float) -> Doubles:
    """M₀ + argmin_Δ Σ_n w_n |Y_n - (M₀ + Δ) X_n|² + strength Σ_j (s_j + mean s) |Δ_j|²,  s_j = Σ_n w_n X_nj²; 2, 15.

    Little evidence changes little: the ridge pulls towards M₀, the forecasts as they are.

    Family: F25
    """
    before, weighted = uncalibrated().T, X * weight[:, None]
    square = weighted.T @ X
    size = np.maximum(square.diagonal(), 1e-9)
    return (before + np.linalg.solve(square + strength * np.diag(size + size.mean()), weighted.T @ (Y - X @ before))).T
