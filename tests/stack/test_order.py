"""Tests of the static order are moved forward where that pays."""

import numpy as np
import pytest

from askwise.core.cost_spec import CostSpec
from askwise.core.schema import Schema
from askwise.stack.order import refined

SAVES = np.array([0.1, 0.5, 0.2, 0.0])  # what each test saves of a loss of 1, whatever else is held


def lost(held, rows=200, noise=0.01, seed=0):
    rng = np.random.default_rng(seed + int(held @ 2 ** np.arange(len(held))))
    return 1 - SAVES @ held + noise * rng.normal(size=rows)


def costs(*prices):
    return Schema.build([f"x{i}" for i in range(len(prices))], [0, 1], costs=list(prices)).costs


def test_what_saves_most_for_its_money_comes_first():
    assert refined(np.arange(4), costs(1, 1, 1, 1), lost, 4).tolist() == [1, 2, 0, 3]
    assert refined(np.arange(4), costs(1, 10, 1, 1), lost, 4).tolist() == [2, 0, 1, 3]


def test_the_area_is_the_one_by_hand():
    """Of all orders the one with the least area under the line through its prefixes."""
    from itertools import permutations

    price, exact = np.array([3, 4, 1, 2]), {}
    for order in permutations(range(4)):
        loss = 1 - np.r_[0, np.cumsum(SAVES[list(order)])]
        exact[order] = float(np.sum(price[list(order)] * (loss[:-1] + loss[1:]) / 2))
    best = refined(np.array([3, 0, 1, 2]), costs(*price.tolist()), lambda held: lost(held, noise=0.0), 4)
    assert exact[tuple(best.tolist())] == pytest.approx(min(exact.values()))


def test_chance_moves_nothing_and_neither_does_what_may_not_be_moved():
    kept = [refined(np.arange(4), costs(1, 1, 1, 1), lambda held, s=s: lost(0 * held, seed=s), 4).tolist() for s in range(5)]
    assert kept == [[0, 1, 2, 3]] * 5
    assert refined(np.arange(4), costs(1, 1, 1, 1), lost, 2).tolist() == [1, 0, 2, 3]


def test_what_a_derived_test_is_computed_from_comes_before_it():
    spec = CostSpec(costs={"x0": 1, "x2": 2, "x3": 2}, derived={"x1": ["x2", "x3"]})
    of = Schema.build(["x0", "x1", "x2", "x3"], [0, 1], spec).costs
    order = refined(np.arange(4), of, lost, 4).tolist()
    assert max(order.index(2), order.index(3)) < order.index(1)


def test_without_time_the_order_stays():
    assert refined(np.arange(4), costs(1, 1, 1, 1), lost, 4, seconds=-1.0).tolist() == [0, 1, 2, 3]
