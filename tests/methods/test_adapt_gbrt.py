"""A gate, a cheap model and an expensive one: the equations, and who is sent on."""

from functools import cache

import numpy as np
import pytest
from tests.support.odd_cases import check_points, odd
from tests.support.policies import with_settings

from askwise.components.boosting import loss_scales
from askwise.core.budget import AverageBudget
from askwise.core.episode import measure, rollout
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.frontier.choice import best_for
from askwise.methods import adapt_gbrt
from askwise.methods.adapt_gbrt import (
    Charge,
    Gated,
    GateLearner,
    cheap_probabilities,
    cheap_slope,
    gate_slope,
    sent_on,
    sigma,
    tilt,
)


@cache
def two_kinds():
    """Where a is positive, b tells the class and is cheap; elsewhere the dear c and d tell it together."""
    parts = []
    for seed, n in ((0, 900), (1, 400), (2, 900)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 4))
        y = np.where(X[:, 0] > 0, X[:, 1] > 0, X[:, 2] + X[:, 3] > 0).astype(int)
        parts.append(Problem.build(Schema.build(list("abcd"), [0, 1], [1, 1, 20, 20]), X, y))
    return parts


@pytest.fixture
def small(monkeypatch):
    fewer = {"shrinkages": (1.0,), "shares": (0.0, 0.5), "penalties": (0.01, 0.03)}
    with_settings(monkeypatch, adapt_gbrt, trees=25, alternations=6, rounds=60, **fewer)


@pytest.mark.parametrize("share", [0.001, 0.1, 0.5, 0.95])
def test_bisection_finds_the_share(share):
    rng = np.random.default_rng(0)
    for scale in (0.1, 3, 30):
        lean = scale * rng.normal(size=200) + 5
        assert sigma(tilt(lean, share) + lean).mean() == pytest.approx(share, abs=1e-6)


def test_who_is_sent_on_by_hand():
    h, p, g = np.array([0.9, 0.9, 0.6]), np.array([0.9, 0.3, 0.6]), np.array([0.0, 0.0, 1.0])
    q1 = sent_on(h, p, g, 0.4)
    assert q1.mean() == pytest.approx(0.4)
    w1, w0 = h * sigma(g), p * (1 - sigma(g))
    gamma = q1 / (1 - q1) * w0 / w1  # the same for all
    assert gamma == pytest.approx(gamma[0])
    assert q1.argmax() == 1  # three times as sure, against e times as willing
    assert (sent_on(h, p, g, 0.0) == 0).all()


def test_slopes_are_those_of_the_losses():
    rng = np.random.default_rng(1)
    q1, x, y = rng.random(50), 3 * rng.normal(size=50), rng.choice([-1.0, 1.0], 50)

    def gate(g):
        return -q1 * np.log(sigma(g)) - (1 - q1) * np.log(sigma(-g))

    def cheap(f):
        return -(1 - q1) * np.log(sigma(y * f))

    for loss, slope in ((gate, gate_slope(q1, x)), (cheap, cheap_slope(1 - q1, y, x))):
        assert -(loss(x + 1e-6) - loss(x - 1e-6)) / 2e-6 == pytest.approx(slope, abs=1e-6)


def test_probabilities_of_two_and_of_more_classes():
    assert cheap_probabilities(np.array([[0.0], [np.log(3)]])) == pytest.approx(np.array([[0.5, 0.5], [0.25, 0.75]]))
    # one against the rest, published nowhere: σ is 1/2, 3/4, 3/4
    assert cheap_probabilities(np.array([[0, np.log(3), np.log(3)]])) == pytest.approx(np.array([[0.25, 0.375, 0.375]]))


def test_a_test_is_charged_once():
    # columns 0 and 1 are of one test; that and column 2's test share a set-up of 4
    need = np.array([[1, 0, 0, 1], [1, 0, 0, 1], [0, 1, 0, 1], [0, 0, 1, 0]], bool)
    charge = Charge(need, np.array([1.0, 1.0, 2.0, 4.0]), 0.1, 10.0)
    gain = np.array([[5.5, 5.4, 4.9, 1.9]])  # of 10 rows: 0.55 - 0.5, 0.54 - 0.5, ...
    assert charge(gain, np.zeros((1, 4), bool)).tolist() == [0]
    assert charge(np.array([[0.1, 0.2, 0.9, 1.9]]), np.zeros((1, 4), bool)).tolist() == [1]  # paid; column 2 still costs 0.1
    assert charge(np.array([[0.1, 0.2, 1.9, 1.9]]), np.zeros((1, 4), bool)).tolist() == [2]
    assert charge(np.array([[0.0, 0.0, 0.0, 1.9]]), np.zeros((1, 4), bool)).tolist() == [-1]


def test_sent_on_are_those_for_whom_the_expensive_model_is_better(small):
    train, validation, test = two_kinds()
    model = adapt_gbrt.expensive(train, validation, np.arange(4), seconds=60, seed=0, threads=1)
    pair = GateLearner.of(train, np.arange(4), model.h, 0).alternate(0.03, 0.5, 1.0)
    on = pair.gate.total(pair.gate.leaves(test.X))[:, 0] > 0
    assert 0.3 < on.mean() < 0.7
    right = model.classify(test.X).argmax(1) == test.y
    cheap_right = cheap_probabilities(pair.cheap.total(pair.cheap.leaves(test.X))).argmax(1) == test.y
    lead = right.astype(float) - cheap_right
    assert lead[on].mean() > lead[~on].mean() + 0.2
    assert set(np.unique(pair.cheap.column)) <= {-1, 0, 1}  # c and d are left to the expensive model
    policy = Gated(pair.gate, pair.cheap, model.classify, model.tests, train.schema.owner, 2, train.loss, loss_scales(train))
    done = rollout(test, policy, None)
    assert (done.cost[on] == 42).all()
    assert (done.cost[~on] <= 2).all()
    everything = right.mean()
    assert 1 - done.loss.mean() > everything - 0.04  # hardly worse, at about half the cost


def test_everything_the_engine_supports(small):
    train, validation, test = odd()
    check_points(adapt_gbrt.points(train, validation, seconds=600), test)


def test_points_begin_at_nothing_and_fit_keeps_to_its_budget_and_repeats_itself(small):
    train, validation, test = two_kinds()
    policies, again = (adapt_gbrt.points(train, validation, seconds=600 if i else 500)[:4] for i in range(2))
    found = [measure(validation, policy, None) for policy in policies]
    assert found[0].cost == 0
    assert found[1].cost == 42
    for one, other in zip(policies, again, strict=True):
        assert (rollout(test, one, None).mask == rollout(test, other, None).mask).all()
    policy = best_for(policies, validation, AverageBudget(10))
    assert measure(validation, policy, None).cost == pytest.approx(10, abs=2)
