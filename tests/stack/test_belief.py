"""The stack's belief, by hand and by loops."""

import math

import numpy as np
import pytest

from askwise.stack.belief import Linear, Networks, StackedBelief, held_share
from askwise.stack.weights import fit_weights

OWNER = np.arange(2)


def test_belief_by_hand():
    # two classes, log odds of the prior log 3; the linear model says 2 more for the second class than for the first
    prior = np.log([0.75, 0.25])
    weights = {
        "prior": prior,
        "shift": np.zeros(2),
        "weight.linear": np.array([math.log(math.expm1(0.5)), 0.0, 0.0]),  # softplus of it is 1/2
        "linear.main": np.zeros((4, 2)),
        "linear.bias": np.array([0.0, 2.0]),
    }
    p = StackedBelief(weights, OWNER, np.float64)(np.zeros((1, 2), np.float32), np.zeros((1, 2), bool))
    # z = log π + (z_linear - log π) / 2: the log odds are half of the prior's and half of the linear model's
    odds = 0.5 * (prior[1] - prior[0]) + 0.5 * 2.0
    np.testing.assert_allclose(p, [[1 / (1 + math.exp(odds)), 1 / (1 + math.exp(-odds))]], rtol=1e-9)


def test_what_the_learners_saw_too_often_is_undone():
    weights = {
        "prior": np.log([0.5, 0.5]),
        "shift": np.log([1.0, 4.0]),
        "weight.linear": np.array([math.log(math.expm1(1.0)), 0.0, 0.0]),
        "linear.main": np.zeros((4, 2)),
        "linear.bias": np.log([1.0, 4.0]),  # it has seen the second class four times as often
    }
    p = StackedBelief(weights, OWNER, np.float64)(np.zeros((1, 2), np.float32), np.zeros((1, 2), bool))
    np.testing.assert_allclose(p, [[0.5, 0.5]])


def test_the_linear_model_by_loops():
    rng = np.random.default_rng(0)
    C, F, K = 3, 2, 3
    owner = np.array([0, 1, 1])
    parts = {"main": rng.normal(size=(C + F, K)), "bias": rng.normal(size=K), "by_set": rng.normal(size=(F, C * K))}
    values, mask = rng.normal(size=(5, C)).astype(np.float32) * 3, rng.random((5, F)) < 0.5
    known = mask[:, owner]
    mine = Linear(parts, K, np.float64)(values, known, mask)
    for b in range(5):
        x = [min(max(float(values[b, c]), -4), 4) if known[b, c] else 0.0 for c in range(C)]
        for k in range(K):
            z = parts["bias"][k] + sum(x[c] * parts["main"][c, k] for c in range(C))
            z += sum(parts["main"][C + f, k] for f in range(F) if mask[b, f])
            z += sum(x[c] * parts["by_set"][f, c * K + k] for c in range(C) for f in range(F) if mask[b, f])
            assert mine[b, k] == pytest.approx(z, abs=1e-5)


@pytest.mark.parametrize("most", [2, 6])  # of six tests; few of them are looked at in another way
def test_the_networks_by_loops(most):
    rng = np.random.default_rng(0)
    owner, F, M, W, K = np.array([0, 1, 1, 2, 3, 4, 5]), 6, 2, 5, 3
    low, slope, rate, phase = (rng.normal(size=9).astype(np.float32) for _ in range(4))
    source = rng.integers(7, size=9)
    sizes = [7 + 9 + 9 + F, W, W, K]
    parts = {"bins.source": source, "bins.low": low, "bins.slope": slope}
    parts |= {"sines.source": source[::-1], "sines.rate": rate, "sines.phase": phase}
    for i in range(3):
        parts |= {f"{i}.weight": rng.normal(size=(M, *sizes[i : i + 2])), f"{i}.bias": rng.normal(size=(M, 1, sizes[i + 1]))}
    values, mask = rng.normal(size=(5, 7)).astype(np.float32) * 3, rng.random((5, F)) < 0.5
    mask[:, most:] = False
    mine = Networks(parts, owner, np.float64)(values, mask[:, owner], mask)
    for b in range(5):
        x = np.where(mask[b, owner], values[b], 0)
        bins = ((x[source] - low) * slope).clip(0, 1)
        sines = np.sin(x[source[::-1]] * rate + phase)
        held = mask[b, owner], mask[b, owner[source]], mask[b, owner[source[::-1]]]
        inputs = np.concatenate([x.clip(-4, 4) * held[0], bins * held[1], sines * held[2], mask[b]])
        outputs = []
        for m in range(M):
            hidden = inputs
            for i in range(3):
                hidden = (np.maximum(hidden, 0) if i else hidden) @ parts[f"{i}.weight"][m] + parts[f"{i}.bias"][m, 0]
            outputs.append(hidden)
        np.testing.assert_allclose(mine[b], np.mean(outputs, 0), atol=1e-5)


def test_held_share():
    np.testing.assert_allclose(held_share(np.array([[True, False, False, False]]), float), [[1, 0.25, 0.5]])


def logits_of(p, y, rng, noise):
    return np.log(np.where(y[:, None] == np.arange(2), p, 1 - p)) + noise * rng.normal(size=(len(y), 2))


def test_a_learner_that_earns_nothing_is_dropped_and_one_that_is_too_sure_counts_less():
    rng, n = np.random.default_rng(0), 4_000
    right = rng.random(n) < 0.8
    y = rng.integers(2, size=n)
    says = np.where(right, y, 1 - y)  # right in 80 % of the cases, and says 98 %
    sure = np.log(np.where(says[:, None] == np.arange(2), 0.98, 0.02))
    held, prior, ones = held_share(rng.random((n, 4)) < 0.5, float), np.log([0.5, 0.5]), np.ones(n)
    weights = fit_weights({"trees": sure, "linear": rng.normal(size=(n, 2))}, prior, held, y, ones, np.zeros(2))
    assert list(weights) == ["trees"]
    share = np.log1p(np.exp(held @ weights["trees"]))
    # log odds of 0.8 over those of 0.98
    assert share.mean() == pytest.approx(math.log(4) / math.log(49), abs=0.05)
