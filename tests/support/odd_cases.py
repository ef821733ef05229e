"""A problem with everything that the engine supports, and what must hold for the points of any method on it."""

from functools import cache

import numpy as np

from askwise.core.cost_spec import CostSpec
from askwise.core.episode import measure, rollout
from askwise.core.problem import Problem
from askwise.core.schema import Schema


@cache
def odd():
    """Holes, known values, a set-up, a derived test, two columns of one test, three classes and a loss matrix."""
    schema = Schema.build(
        list("abcde"),
        list("xyz"),
        CostSpec(
            {"a": 1, "b": 2, "cd": 1, "e": 0},
            setup={"draw": (2, ["a", "b"])},
            derived={"e": ["b", "cd"]},
            reveals={"cd": ["c", "d"]},
        ),
    )
    parts = []
    for seed in (0, 1, 2):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(300, 5))
        X[:, 4] = X[:, 2] + X[:, 1]
        y = np.digitize(X[:, 0] + X[:, 4], [-1, 1])
        X[rng.random(X.shape) < 0.04] = np.nan  # the derived test lacks more: it needs all that it is computed from
        there = ~np.isnan(X)
        known = (rng.random((300, 4)) < 0.1) & np.column_stack([there[:, 0], there[:, 1], there[:, 2:4].all(1), there[:, 4]])
        parts.append(Problem.build(schema, X, np.array(list("xyz"))[y], known=known, loss=[[0, 1, 2], [1, 0, 1], [20, 10, 0]]))
    return parts


def check_points(policies, test):
    """Nothing is bought that is not there or too dear, one case alone is as one of many, deciding at once is among the points,
    and some point is much better."""
    for policy in policies:
        for cap in (None, 4, 0):
            done = rollout(test, policy, cap)
            assert not (done.mask & ~test.known & ~test.available).any()
            assert cap is None or (done.cost <= cap).all()
        alone = rollout(test, policy, None, np.array([7]))
        assert alone.cost[0] == rollout(test, policy, None).cost[7]
    found = [measure(test, policy, None) for policy in policies]
    free = min(found, key=lambda m: m.cost)
    assert free.cost == 0
    assert min(m.loss for m in found) < 0.9 * free.loss
