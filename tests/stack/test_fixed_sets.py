"""Sets of tests for a hard budget, against all sets."""

from itertools import combinations

import numpy as np
import pytest

from askwise.core.cost_spec import CostSpec
from askwise.core.costs import CostFunction
from askwise.stack.fixed_sets import filled, fixed_sets

TESTS = ["scan", "a", "b", "c", "d"]
COSTS = CostFunction.build(TESTS, [20, 4, 5, 6, 3])
ORDER = np.array([1, 2, 3, 4, 0])  # the dear test comes last


def lost(held: np.ndarray) -> np.ndarray:
    """The scan tells more than all cheap tests; each row a little differently, so that there is noise."""
    worth = np.array([0.5, 0.1, 0.08, 0.08, 0.05])
    return 1 - held @ worth + 0.01 * np.sin(np.arange(200))


def test_money_goes_along_the_order_after_what_is_forced():
    assert filled([], set(), 14, ORDER, COSTS) == [1, 2, 4]  # 4 + 5, no money for 6, + 3
    assert filled([0], set(), 30, ORDER, COSTS) == [0, 1, 2]
    assert filled([], {1}, 14, ORDER, COSTS) == [2, 3, 4]


@pytest.mark.parametrize("cap", [20, 24, 26, 30, 35])
def test_the_set_is_the_best_of_all(cap):
    sets = fixed_sets([cap], ORDER, COSTS, lost)
    every = [np.isin(np.arange(5), each) for n in range(6) for each in combinations(range(5), n)]
    best = min((h for h in every if COSTS.cost(h[None])[0] <= cap), key=lambda h: lost(h).mean())
    (cost, tests), *rest = sets.items()
    assert not rest
    assert sorted(tests) == np.flatnonzero(best).tolist()
    assert cost == COSTS.cost(best[None])[0] <= cap


def test_where_the_order_is_best_there_is_no_other_set():
    assert fixed_sets([9, 18, 38], ORDER, COSTS, lost) == {}


def test_a_change_that_may_be_chance_is_not_made():
    noise = np.random.default_rng(0).normal(size=(5, 400))
    assert fixed_sets([9, 18, 30], ORDER, COSTS, lambda held: 1 + held @ noise * 0.01) == {}


def test_no_time_no_sets():
    assert fixed_sets([30], ORDER, COSTS, lost, seconds=-1.0) == {}


def test_set_ups_are_paid_once():
    spec = CostSpec({"a": 1, "b": 1, "c": 4}, setup={"draw": (3, ["a", "b"])})
    costs = CostFunction.build(["a", "b", "c"], spec)
    assert filled([], set(), 5, np.array([0, 1, 2]), costs) == [0, 1]
    assert filled([2], set(), 7, np.array([0, 1, 2]), costs) == [2]
    assert filled([2], set(), 9, np.array([0, 1, 2]), costs) == [2, 0, 1]
