"""Every row is held out for some member; rows of two problems are put together."""

import numpy as np
import pytest

from askwise import CostlyClassifier, StackConfig
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import Doubt
from askwise.stack.folds import ALWAYS, Folds, joined

SCHEMA = Schema.build(["a", "b"], [0, 1])


def test_few_rows_are_held_out_once_each_and_classes_are_even():
    labels = np.array([0] * 40 + [1] * 11)
    folds = Folds.across(labels, 5, 3)
    assert folds.members == folds.heads == 5
    assert sorted(folds.held_out.tolist()) == list(range(51))
    for k in range(5):
        assert (labels[folds.belief == k] == 0).sum() == 8
        assert (labels[folds.belief == k] == 1).sum() in (2, 3)
        assert set(folds.learned(k)) == set(range(51)) - set(np.flatnonzero(folds.belief == k))
    assert [(b, h) for b, h, _ in folds.parts] == [(k, k) for k in range(5)]
    assert sorted(np.concatenate([rows for *_, rows in folds.parts]).tolist()) == list(range(51))


def test_of_many_rows_the_validation_rows_are_held_out_and_shared_by_two_heads():
    folds = Folds.apart(10, np.array([0, 1, 0, 1, 0, 0]))
    assert (folds.members, folds.heads) == (1, 2)
    assert folds.learned(0).tolist() == list(range(10))
    assert folds.held_out.tolist() == list(range(10, 16))
    assert (folds.head[:10] == ALWAYS).all()
    assert [(b, h, len(rows)) for b, h, rows in folds.parts] == [(0, 0, 3), (0, 1, 3)]


def test_joined_rows_keep_what_is_missing_known_and_weighed():
    first = Problem.build(SCHEMA, [[1, np.nan], [2, 3]], [0, 1], weight=[2, 1])
    second = Problem.build(SCHEMA, [[4, 5]], [1], known=["a"])
    both = joined(first, second)
    assert both.X.tolist() == [[1, 0], [2, 3], [4, 5]]
    assert both.available.tolist() == [[True, False], [True, True], [True, True]]
    assert both.known.tolist() == [[False, False], [False, False], [True, False]]
    assert both.weight.tolist() == pytest.approx([2 / both.weight[1] * both.weight[1], 1, 1], rel=2)
    assert both.labels.tolist() == [0, 1, 1]


@pytest.mark.parametrize("seed", range(6))
def test_no_part_is_empty_however_few_rows_there_are(seed):
    folds = Folds.across(np.array([0, 1]), 2, seed)
    assert [len(folds.learned(k)) for k in range(folds.members)] == [1, 1]


def test_a_quick_fit_takes_few_steps():
    """A fit of 300 rows and 8 tests is at least four times faster than usual; what is measured at the end takes the same time."""

    def steps(config):
        return config.folds * config.networks * config.network_steps + config.value_steps

    assert 30 * steps(StackConfig.quick()) < steps(StackConfig.for_size(300, 8))


def test_two_rows_are_enough_for_a_fit():
    X, y = np.array([[1.0, 2.0], [3.0, 4.0]]), np.array(["no", "yes"])
    with pytest.warns(Doubt):
        fitted = CostlyClassifier(config=StackConfig.quick(), random_state=0).fit(X, y)
    assert set(fitted.predict(X)) <= {"no", "yes"}
