"""Draws of rows and of sets of tests."""

import numpy as np

from askwise.core.sampling import random_sets, some_rows


def test_some_rows_are_the_same_for_a_seed_and_all_where_there_are_few():
    assert some_rows(5, 9, 0).tolist() == some_rows(5, 0, 0).tolist() == [0, 1, 2, 3, 4]
    rows = some_rows(100, 10, 3)
    assert len(set(rows.tolist())) == 10
    assert rows.tolist() == sorted(rows.tolist()) == some_rows(100, 10, 3).tolist() != some_rows(100, 10, 4).tolist()


def test_small_sets_are_drawn_more_often():
    """A set has the share u², u uniform, of the tests: a third on average, and below a quarter in half of the sets."""
    share = random_sets(4_000, 500, np.random.default_rng(0)).mean(1)
    assert abs(share.mean() - 1 / 3) < 0.02
    assert abs((share < 0.25).mean() - 0.5) < 0.03


def test_sets_are_those_of_a_naive_twin():
    """By one number for each test and then one for each set, from the same draws."""
    rng = np.random.default_rng(5)
    each, sizes = rng.random((6, 4)), rng.random((6, 1))
    naive = [[bool(each[i, j] < sizes[i, 0] ** 2) for j in range(4)] for i in range(6)]
    assert random_sets(6, 4, np.random.default_rng(5)).tolist() == naive
