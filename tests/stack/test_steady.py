"""Losses of policies with less noise, against what they are known to be."""

import numpy as np
import pytest

from askwise.stack.steady import APART, steady


def policies(seed, n, m=80):
    """m policies whose true losses fall from 0.4 to 0.2 as more is held; beliefs are too sure by 0.05 where all is held. n cases,
    the same for all, so that what comes is correlated."""
    rng = np.random.default_rng(seed)
    held = np.linspace(0, 1, m)
    true = 0.4 - 0.2 * held
    draws = rng.random((n, 1)) * 0.7 + 0.3 * rng.random((n, m))  # partly their own luck
    came = (draws < np.quantile(rng.random((9_999, 1)) * 0.7 + 0.3 * rng.random((9_999, 1)), true)).mean(0)
    believed = true - 0.05 * held + 0.001 * rng.normal(size=m)
    return true, believed, came, np.sqrt(came * (1 - came) / n), held


@pytest.mark.parametrize("n", [240, 1_000])
def test_the_best_of_many_policies_is_less_too_good_than_by_what_came(n):
    raw, better, level = [], [], []
    for seed in range(60):
        true, believed, came, error, held = policies(seed, n)
        value = steady(believed, came, error, held, APART)
        raw.append(true[came.argmin()] - came.min())
        better.append(true[value.argmin()] - value.min())
        level.append((value - true).mean())
    assert np.mean(raw) > 0.006
    assert abs(np.mean(better)) < 0.4 * np.mean(raw)
    assert abs(np.mean(level)) < 0.006


def test_with_many_cases_it_is_what_came():
    _, believed, came, _, held = policies(0, 1_000)
    np.testing.assert_allclose(steady(believed, came, np.full(len(came), 1e-5), held, APART), came, atol=1e-5)


def test_a_single_policy_is_what_came():
    one = [np.array([x]) for x in (0.2, 0.3, 0.05, 0.5)]
    assert steady(*one, APART)[0] == pytest.approx(0.3)


def test_what_most_policies_tell_is_not_believed_of_one_that_is_unlike_them():
    """Thirty policies that hold little and were lucky or not, and one that holds everything."""
    rng = np.random.default_rng(0)
    held, believed = np.r_[rng.uniform(0.1, 0.2, 30), 1.0], np.r_[np.full(30, 0.05), 0.03]
    came = believed + np.r_[0.3 * (held[:30] - 0.15), 0.01]
    value = steady(believed, came, np.full(31, 0.012), held, APART)
    assert abs(value[-1] - came[-1]) <= 0.012
    assert np.abs(value - came).max() <= 0.012 + 1e-12
