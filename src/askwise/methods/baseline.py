"""The paper's own baseline: a ridge classifier's order of the tests, and a separate neural network for each prefix of it.

Networks are of the main method's size. Costs play no part in the order, except that what is free comes first.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from askwise.components.boosting import ClassShares, loss_scales, row_weights, unweighted
from askwise.components.networks import stack
from askwise.components.pace import BestNetworks, set_rate
from askwise.components.prefixes import Classifier, Stage, affordable, lengths_of, prefix_policies
from askwise.components.static_order import free_tests, ridge_order
from askwise.components.torch_state import own_torch
from askwise.core.arrays import Floats
from askwise.core.budget import Budget
from askwise.core.missingness import filled
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.frontier.choice import best_for
from askwise.paper.config import TrainConfig


@dataclass(frozen=True)
class BaselineSettings:
    """The settings of baseline."""

    batch: int = 256  # rows of a step
    rate: float = 1e-3  # the learning rate of Adam
    fewest_steps: int = 300  # however short the time


SETTINGS = BaselineSettings()


def width_of(problem: Problem) -> int:
    """The width of the main method's layers on data of this size, as in the paper where that has such data."""
    if problem.schema.n_tests > 200:
        return TrainConfig.paper("mnist").width
    if len(problem) > 100_000:
        return TrainConfig.paper("forest").width
    return TrainConfig.for_size(len(problem), problem.schema.n_tests).width


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, cap: int | None = None
) -> list[Policy]:
    """A policy for each prefix, from deciding at once to buying everything, or all that a hard budget of `cap` units allows."""
    began = time.monotonic()
    problem, validation = filled(problem.trainable(), seed), filled(validation, seed)
    with own_torch(seed, threads):
        order, free = ridge_order(problem), free_tests(problem)
        order = affordable(np.r_[order[free[order]], order[~free[order]]], problem.schema.costs, cap)
        most = seconds / (3 if len(problem) < 20_000 else 40)  # a network needs about so many seconds to be any good
        lengths, stages = lengths_of(problem, order, int(most)), []
        for i, length in enumerate(lengths):
            granted = max(seconds - (time.monotonic() - began), 0.0) / (len(lengths) - i)
            columns = np.flatnonzero(np.isin(problem.schema.owner, order[:length]))
            classify = _network(problem, validation, columns, granted, seed) if len(columns) else ClassShares.of(problem)
            stages.append(Stage(length, classify))
    return [*prefix_policies(problem, order, stages)]


def _network(problem: Problem, validation: Problem, columns: np.ndarray, seconds: float, seed: int) -> Classifier:
    """Three layers, cross-entropy weighted by stake; the weights that predict the validation rows best. The learning rate falls
    to nothing in the second half of the seconds; it ends early when the validation rows are predicted ever worse."""
    began, rng = time.monotonic(), np.random.default_rng(seed)
    width, scales = width_of(problem), loss_scales(problem)
    X, y = torch.from_numpy(problem.X[:, columns]), torch.from_numpy(np.asarray(problem.y))
    weight = torch.from_numpy(row_weights(problem).astype(np.float32))
    sample = np.sort(rng.permutation(len(validation))[:10_000])
    Xv, yv = torch.from_numpy(validation.X[np.ix_(sample, columns)]), torch.from_numpy(np.asarray(validation.y)[sample])
    wv = torch.from_numpy(scales[yv.numpy()].astype(np.float32))
    with own_torch(seed):
        network = nn.Sequential(stack(len(columns), width), nn.Linear(width, problem.schema.n_classes))
    adam = torch.optim.Adam(network.parameters(), SETTINGS.rate, fused=True)
    best, window, step = BestNetworks((network,)), max(50, min(len(y) // SETTINGS.batch, 500)), 0
    while best.bad < 15:
        done = min((time.monotonic() - began) / max(seconds, 1e-9), step / SETTINGS.fewest_steps)
        set_rate(adam, SETTINGS.rate * min(1.0, max(2 * (1 - done), 0.01)))
        rows = torch.from_numpy(rng.integers(len(y), size=SETTINGS.batch))
        adam.zero_grad()
        error = (functional.cross_entropy(network(X[rows]), y[rows], reduction="none") * weight[rows]).mean()
        error.backward()  # type: ignore[no-untyped-call]
        adam.step()
        step += 1
        if step % window == 0 or done >= 1:
            with torch.inference_mode():
                best.see(float((functional.cross_entropy(network(Xv), yv, reduction="none") * wv).mean()))
        if done >= 1:
            break
    best.restore()

    @torch.inference_mode()
    def classify(values: Floats) -> np.ndarray:
        p = network(torch.from_numpy(np.ascontiguousarray(values[:, columns]))).softmax(1).numpy()
        return unweighted(p.astype(np.float64), scales)

    return classify


def fit(problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0) -> Policy:
    """The prefix that is best for the budget on validation rows, or a mixture of two."""
    cap = budget.cap(problem.schema.costs)
    return best_for(points(problem, validation, seconds=seconds, seed=seed, cap=cap), validation, budget, seed)
