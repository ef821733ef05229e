"""Shares of cases and their intervals, against values worked by hand, means, and scikit-learn's."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import confusion_matrix, precision_score, recall_score

from askwise.core.measures import Mean
from askwise.core.shares import Z, confusion, shares, wilson

SHARES = st.floats(0, 1)
SIZES = st.floats(0.5, 1e6)


@pytest.mark.parametrize(
    ("share", "n", "z", "interval"),
    [
        (0.5, 4, 2, ((1 - 0.5**0.5) / 2, (1 + 0.5**0.5) / 2)),  # z²/n = 1, so (0.5 + 0.5 ± sqrt(0.25 + 0.25)) / 2
        (0, 12, 2, (0, 1 / 4)),  # z²/n = 1/3: (1/6 ± 1/6) / (4/3)
        (1, 12, 2, (3 / 4, 1)),
        (0.5, 1, 1, ((1 - 0.5**0.5) / 2, (1 + 0.5**0.5) / 2)),
        (0.8, 10, Z, (0.490162, 0.943318)),
        (0.25, 48, 4, ((5 - math.sqrt(13)) / 16, (5 + math.sqrt(13)) / 16)),  # z²/n = 1/3: (5/12 ± sqrt(13)/12) / (4/3)
    ],
)
def test_wilson_intervals_equal_those_worked_by_hand(share, n, z, interval) -> None:
    assert wilson(share, n, z) == pytest.approx(interval, abs=1e-6)


@given(SHARES, SIZES, st.floats(0.5, 4))
def test_the_share_is_as_many_standard_errors_from_each_end_as_was_asked_for(share, n, z) -> None:
    low, high = wilson(share, n, z)
    assert 0 <= low <= share + 1e-12
    assert share - 1e-12 <= high <= 1
    for end in (low, high):
        assert abs(share - end) == pytest.approx(z * math.sqrt(end * (1 - end) / n), abs=1e-6)


@given(SHARES, SIZES)
def test_the_interval_of_the_others_is_the_mirror_image(share, n) -> None:
    low, high = wilson(share, n)
    assert wilson(1 - share, n) == pytest.approx((1 - high, 1 - low), abs=1e-9)


def test_the_default_interval_holds_95_percent_of_a_normal_variable() -> None:
    assert math.erf(Z / 2**0.5) == pytest.approx(0.95)


def test_shares_of_weighted_cases_equal_those_worked_by_hand() -> None:
    right, group, weight = np.array([True, False, True, True]), np.array([0, 0, 2, 2]), np.array([3.0, 1, 2, 2])
    first, none, last = shares(right, group, 3, weight)
    assert first.value == 3 / 4
    assert first.error == pytest.approx(math.sqrt(9 / 16 + 9 / 16) / 4)
    assert first[2:] == pytest.approx(wilson(3 / 4, 16 / 10))
    assert np.isnan(none).all()
    assert last == pytest.approx((1, 0, *wilson(1, 2)))


def test_a_group_whose_cases_count_nothing_has_no_share() -> None:
    first, second = shares(np.array([True, True]), np.array([0, 1]), 2, np.array([0.0, 1.0]))
    assert np.isnan(first).all()
    assert second.value == 1
    assert np.isnan(shares(np.zeros(0, bool), np.zeros(0, int), 1, np.zeros(0))).all()


@pytest.mark.parametrize("scale", [1e-250, 1e-3, 1e250])
def test_how_large_all_weights_are_does_not_matter(scale) -> None:
    right, group, weight = np.array([True, False, True]), np.array([0, 0, 0]), np.array([3.0, 1, 2])
    assert shares(right, group, 1, scale * weight)[0] == pytest.approx(shares(right, group, 1, weight)[0])


@pytest.mark.parametrize("weighted", [False, True])
def test_shares_are_means_with_their_errors_and_scikit_learn_agrees(weighted) -> None:
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 4, 500)
    decision = np.where(rng.random(500) < 0.7, truth, rng.integers(0, 4, 500))
    weight = rng.uniform(0, 3, 500) if weighted else None
    right = truth == decision
    for group, score in ((truth, recall_score), (decision, precision_score)):
        by_class = shares(right, group, 4, weight)
        assert [share.value for share in by_class] == pytest.approx(score(truth, decision, average=None, sample_weight=weight))
        for k, share in enumerate(by_class):
            of = group == k
            mean = Mean.of(right[of], None if weight is None else weight[of])
            assert share[:2] == pytest.approx((mean.value, mean.error))
            assert share[2:] == pytest.approx(wilson(mean.value, mean.weight**2 / mean.squares))
    assert confusion(truth, decision, (4, 4), weight) == pytest.approx(confusion_matrix(truth, decision, sample_weight=weight))


def test_the_interval_of_weighted_cases_holds_the_true_share_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    held = 0
    for _ in range(1000):
        share = shares(rng.random(80) < 0.85, np.zeros(80, int), 1, rng.choice([1.0, 4.0], 80))[0]
        held += share.low <= 0.85 <= share.high
    assert 0.93 < held / 1000 < 0.98
