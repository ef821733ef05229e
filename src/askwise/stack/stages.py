"""Boosted trees of their own for some prefixes of the order, where there are so many rows that one member learns from them.

Trees of any set of tests use up many splits on what is held and what is not. Those that always hold the same tests do not, and
with many rows they say more. Policies that keep to the order meet exactly their sets, and others soon hold one of them.
"""

from __future__ import annotations

import time

import numpy as np

from askwise.components.boosting import MOST_RATE, boost, row_weights
from askwise.core.arrays import Array, Arrays, Ints
from askwise.stack.learners import HELD_OUT_STATES
from askwise.stack.members import MemberTask
from askwise.stack.trees import TreeArrays, concatenated, from_lightgbm

SHORTEST = 3  # tests: what is known of fewer, trees of any set say as well
FEWEST_ROWS = 1_000  # that have all tests of a prefix
USUAL_ROUNDS, FEWEST_ROUNDS = 100, 10  # with fewer than the usual ones the learning rate is larger


def lengths(tests: int, stages: int) -> list[int]:
    """Of the prefixes, the last of which is everything."""
    spread = np.geomspace(min(SHORTEST, tests), tests, stages).round().astype(int)
    return np.unique(spread).tolist() if stages else []


def fit_stages(task: MemberTask, order: Ints, nodes: int, seconds: float) -> Arrays:
    """Trees of at most so many nodes together, as arrays; nothing where there is nothing to learn. order: of all tests."""
    maker, config, seed = task.maker, task.config, task.seed
    ends, problem, rng = time.monotonic() + seconds, maker.problem, np.random.default_rng(seed)
    K, weight = problem.schema.n_classes, row_weights(problem)
    most = lengths(len(order), config.stages)
    each = (1 if K == 2 else K) * 2 * config.leaves  # nodes of a round
    rounds = int(np.clip(nodes / (max(len(most), 1) * each), FEWEST_ROUNDS, config.tree_rounds))
    rate = min(config.tree_rate * max(USUAL_ROUNDS / rounds, 1.0), MOST_RATE)
    both, lacks = (task.folds.learned(0), task.folds.held_out), None if problem.available is None else ~problem.available
    sets, fitted = [], []
    for i, length in enumerate(most):
        held = np.isin(np.arange(len(order)), order[:length])
        learned, held_out = (rows if lacks is None else rows[~lacks[rows][:, held].any(1)] for rows in both)
        held_out = rng.permutation(held_out)[:HELD_OUT_STATES]
        if len(learned) < FEWEST_ROWS or not len(held_out) or len(np.unique(problem.labels[learned])) < 2:
            continue
        parts = [
            (maker.with_nan(rows, np.tile(held, (len(rows), 1))), problem.labels[rows], weight[rows])
            for rows in (learned, held_out)
        ]
        left = max(ends - time.monotonic(), 0.0) / (len(most) - i)
        model = boost(
            parts[0],
            parts[1],
            K,
            seconds=left,
            seed=seed,
            threads=task.threads,
            rounds=rounds,
            rate=rate,
            num_leaves=config.leaves,
            feature_fraction=0.8,
            max_bin=127,
        ).model
        sets.append(held)
        fitted.append(from_lightgbm(model, len(problem.schema.columns), K))
    return _arrays(np.array(sets, np.uint8), fitted) if fitted else {}


def _arrays(sets: Array, fitted: list[TreeArrays]) -> Arrays:
    """G, F: the tests of each prefix; of how many trees it has; and the trees of all."""
    trees = np.array([len(each.root) for each in fitted], np.int32)
    return {"sets": sets, "trees": trees, **concatenated(fitted).arrays()}
