"""What a family expects, set right by what came.

The judge learns each step from the next one, so that its errors add up along the way. That hardly changes which action is best,
but its forecasts of the loss at the end and of payments to come may be off. After training, held-out cases are followed to their
ends, and a linear map of what was expected is fitted to what came.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from askwise.core.arrays import Bools, Doubles
from askwise.core.costs import CostFunction
from askwise.core.episode import replay, rollout
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.family.forward import FORECAST_INPUTS, uncalibrated
from askwise.family.inference import Family

ROWS = 500  # cases that are followed, at each price
RIDGE = 1e-3


def free_to_come(legal: Bools, costs: CostFunction) -> Bools:
    """B, F: which of these tests cost nothing whatever is held, so that everybody takes them before anything else."""
    to_come: Bools = legal & (costs.alone == 0)
    return to_come


def fitted(family: Family, problem: Problem, limits: Iterable[tuple[float, int | None]]) -> Doubles:
    """2, 15: the map from what was expected to the loss at the end, in stakes, and to the payments that came, in parts of
    everything. `limits`: prices, and hard budgets in units, under which some rows are followed."""
    seen, came, count = [np.empty((0, FORECAST_INPUTS))], [np.empty((0, 2))], [np.empty(0)]
    rows, costs, scale = some_rows(len(problem), ROWS, 0), problem.schema.costs, family.scale
    for lam, cap in limits:
        values = family.values(lam)
        done = rollout(problem, family.policy(lam), cap, rows)
        steps = replay(problem, done.row, done.padded, done.length, cap)
        asks = steps.action >= problem.schema.first_test
        # the judge has learned from cases that hold what is free for everybody, and says nothing useful of others
        asks &= ~free_to_come(steps.cases.legal()[:, problem.schema.first_test :], costs).any(1)
        cases, episode = steps.cases.keep(asks), steps.episode[asks]
        if not len(episode):
            continue
        state = cases.observe()
        known = None if problem.known is None else problem.known[cases.row]
        paid = costs.money((done.cost[episode] - costs.cost(cases.mask, known)).astype(float))
        seen.append(values.forecast_inputs(values.predict(state), state.left))
        came.append(np.stack([done.loss[episode] / scale.loss_scale, paid / scale.total], 1))
        # or else low prices, where cases are long, would drown the others
        each = np.ones(len(episode)) if problem.weight is None else problem.weight[done.row[episode]]
        count.append(each / max(each.sum(), 1e-300))
    X, Y = np.concatenate(seen), np.concatenate(came)
    if not len(X):
        return uncalibrated()
    weighed = X * (np.concatenate(count) / (len(count) - 1))[:, None]
    # little evidence changes little: the ridge pulls towards what was judged
    before = uncalibrated().T
    square = weighed.T @ X
    size = np.maximum(square.diagonal(), 1e-9)
    return (before + np.linalg.solve(square + RIDGE * np.diag(size + size.mean()), weighed.T @ (Y - X @ before))).T
