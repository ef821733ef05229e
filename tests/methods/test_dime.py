"""Picks by information per price: the numbers, and problems whose answer is known."""

import numpy as np
import pytest
import torch

from askwise.components.subset_classifier import Belief, Masked, PickedCases, SubsetLearner
from askwise.components.torch_state import own_torch
from askwise.core.cases import Cases, State
from askwise.core.episode import measure, rollout
from askwise.core.information import entropy
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.methods import dime


def twice(rows: int, seed: int = 0) -> Problem:
    """dear and cheap say the same, which is the class for half of the cases; which half is seen in it. The others need b."""
    rng = np.random.default_rng(seed)
    x, b = rng.choice([-2.0, -1.0, 1.0, 2.0], size=rows), rng.choice([-1.0, 1.0], size=rows)
    y = np.where(np.abs(x) > 1.5, x > 0, b > 0).astype(int)
    schema = Schema.build(["dear", "cheap", "b", "noise"], [0, 1], [4, 1, 1, 1])
    return Problem.build(schema, np.stack([x, x, b, rng.normal(size=rows)], 1), y, ids=np.arange(rows))


def test_entropy_and_rates_by_hand():
    h = entropy(np.array([[0.5, 0.5], [1, 0], [0.25, 0.75]]))
    assert h[:, 0] == pytest.approx([np.log(2), 0, 0.562335], abs=1e-6)
    assert dime.per_cost(np.array([[0.3, 0.3]]), np.array([[2.0, 0.5]])).tolist() == [[0.15, 0.6]]


def test_picks_are_legal_and_at_random_with_epsilon():
    rng, rate = np.random.default_rng(0), np.tile([3.0, 2.0, 1.0], (6000, 1))
    legal = np.tile([False, True, True], (6000, 1))
    assert (dime.pick(rate, legal, 0.0, rng) == 1).all()
    assert (dime.pick(rate, legal, 0.4, rng) == 2).mean() == pytest.approx(0.2, abs=0.02)


def test_what_a_test_brought_is_the_drop_of_the_log_loss():
    data = twice(50)
    with own_torch(0, 1):
        learner = SubsetLearner(data, data, 0, 20, 0)
        live = PickedCases(learner, 20)
        picked = np.where(live.legal(), learner.rng.random((20, 4)), -1).argmax(1)
        bound, drop = dime.brought(learner, live, picked)
    for i in range(20):
        after = live.mask[i : i + 1].copy()
        after[0, picked[i]] = True
        p, q = (
            learner.belief.drawn(Cases(data, live.row[i : i + 1], m, None).observe())[0] for m in (live.mask[i : i + 1], after)
        )
        y = data.y[live.row[i]]
        assert float(drop[i]) == pytest.approx(np.log(q[y]) - np.log(p[y]), abs=1e-5)
        assert float(bound[i]) == pytest.approx(-(p * np.log(p)).sum(), abs=1e-5)


def test_it_stops_by_rate_and_by_sureness():
    data = twice(1)
    with own_torch(0, 1):
        value, network = (Masked(data.schema, n).eval() for n in (4, 2))
    for parameter in (*value.parameters(), *network.parameters()):
        torch.nn.init.zeros_(parameter)
    network.layers[-1].bias.data = torch.tensor([0.2, 0.8]).log()
    state = Cases.start(data, np.arange(1), None).observe()
    bound = -(0.2 * np.log(0.2) + 0.8 * np.log(0.8))
    expected = bound / 2 / np.array([4, 1, 1, 1])  # sigmoid(0) = 1 / 2

    def score(lam: float, sure: float) -> list[float]:
        telling = dime.InformationPerCost(value, Belief(network, np.ones(2)), lam, sure, np.ones(4))
        return telling(state)[0].tolist()

    assert score(0, np.inf) == pytest.approx(expected)
    assert score(expected[0] * 1.01, np.inf) == pytest.approx([-np.inf, *expected[1:]])
    assert score(0, 0.79) == [-np.inf] * 4
    assert score(0, 0.81) == pytest.approx(expected)


def test_a_state_without_prices_takes_the_price_list():
    data = twice(3)
    policies = dime.points(data, data, seconds=0, steps=10)
    state = Cases.start(data, np.arange(3), None).observe()
    without = State(*state[:5], None)
    assert policies[-1].act(without).action.tolist() == policies[-1].act(state).action.tolist()


def test_it_buys_the_cheaper_copy_and_the_second_test_only_where_it_tells():
    policies = dime.points(twice(800), twice(300, 1), seconds=0, steps=600)
    test = twice(600, 2)
    found = [measure(test, p, None) for p in policies]
    good = [p for p, m in zip(policies, found, strict=True) if m.accuracy > 0.98 and m.cost < 1.7]
    assert good  # one test for all, a second for half
    done = rollout(test, good[0], None)
    assert done.mask[:, 0].mean() < 0.02
    assert done.mask[np.abs(test.X[:, 0]) < 1.5, 2].mean() > 0.97
    lambdas = [m.cost for m in found[: dime.SETTINGS.lambdas + 1]]
    assert lambdas[0] == 0
    assert (np.diff(lambdas) >= -0.02).all()
    assert found[-1].cost == pytest.approx(7, abs=0.1)
