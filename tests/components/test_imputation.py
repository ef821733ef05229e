"""Gaps guessed from the training rows, and values removed at random."""

import warnings

import numpy as np
import pytest

from askwise.components import imputation
from askwise.components.imputation import impute, remove
from askwise.core.cost_spec import CostSpec
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError

NAN = np.nan


def line(rows: list[list[float]], y: list[int] | None = None, **more) -> Problem:
    """b = 2 a + 1 wherever both are there."""
    schema = Schema.build(["a", "b"], [0, 1])
    return Problem.build(schema, rows, y if y is not None else [i % 2 for i in range(len(rows))], **more)


def test_means_are_those_of_the_training_rows_that_have_a_value():
    train, validation = impute("mean", line([[1, 10], [3, NAN], [NAN, 20]]), line([[NAN, 7], [100, NAN]]))
    assert train.X.tolist() == [[1, 10], [3, 15], [2, 20]]
    assert validation.X.tolist() == [[2, 7], [100, 15]]
    assert train.available is None
    assert validation.available is None


def test_chained_equations_find_the_line():
    a = np.arange(12.0)
    X = np.column_stack([a, 2 * a + 1])
    X[3, 1] = X[8, 0] = NAN
    train, validation = impute("mice", line(X.tolist()), line([[5, NAN], [NAN, 9], [50, NAN], [NAN, NAN]]))
    assert train.X[[3, 8]] == pytest.approx(np.array([[3, 7], [8, 17]]), abs=0.05)
    assert validation.X[:2] == pytest.approx(np.array([[5, 11], [4, 9]]), abs=0.05)
    assert validation.X[2].tolist() == [50, 23]  # never beyond what was seen in training
    assert train.available is None


def test_a_category_gets_shares_and_a_test_that_nobody_has_gets_nothing():
    schema = Schema.build(["red", "blue", "never", "x"], [0, 1], CostSpec(reveals={"colour": ["red", "blue"]}))
    rows = [[1, 0, NAN, 1], [1, 0, NAN, 2], [0, 1, NAN, 3], [NAN, NAN, NAN, 4], [1, 0, NAN, NAN], [0, 1, NAN, 4]]
    gaps = Problem.build(schema, rows, [0, 1] * 3)
    (mean,) = impute("mean", gaps)
    assert mean.X[3].tolist() == pytest.approx([0.6, 0.4, 0, 4])
    (mice,) = impute("mice", gaps)
    assert ((mice.X[:, :2] >= 0) & (mice.X[:, :2] <= 1)).all()
    assert mice.X[3, 1] > 0.6  # blue goes with a large x
    assert mice.X[3, :2].sum() == pytest.approx(1, abs=0.05)
    assert not mice.X[:, 2].any()
    assert (mice.X[0] == gaps.X[0]).all()


def test_complete_rows_stay_as_they_are():
    whole = line([[1, 3], [2, 5]])
    assert impute("mean", whole, whole) == [whole, whole]
    assert impute("mice", line([[1, 3], [2, NAN], [3, 7]]), whole)[1] is whole


def test_an_unknown_way_is_refused():
    with pytest.raises(InputError, match="there is no imputation 'mise'; did you mean 'mice'"):
        impute("mise", line([[1, 3], [2, 5]]))


def test_a_share_of_whole_tests_is_removed():
    schema = Schema.build(["a", "b", "c"], [0, 1], CostSpec(reveals={"scan": ["a", "b"]}))
    X = np.random.default_rng(0).normal(size=(4_000, 3)) + 5
    known = np.zeros((4_000, 2), bool)
    known[:100, 0] = True
    problem = Problem.build(schema, X, np.arange(4_000) % 2, known=known)
    sparse = remove(problem, 0.75, seed=1)
    assert sparse.available[100:].mean(0) == pytest.approx([0.25, 0.25], abs=0.03)
    assert sparse.available[:100, 0].all()
    there = sparse.available[:, schema.owner]
    assert (sparse.X[there] == problem.X[there]).all()
    assert not sparse.X[~there].any()
    assert (remove(problem, 0.75, seed=1).available == sparse.available).all()
    assert (remove(problem, 0.75, seed=2).available != sparse.available).any()
    assert remove(problem, 0).available is None
    assert remove(sparse, 0.5).available.mean() == pytest.approx(0.125, abs=0.03)
    assert not (remove(sparse, 0.5).available & ~sparse.available).any()
    with pytest.raises(InputError, match="the share to remove is 75; it must be between 0 and 1"):
        remove(problem, 75)


def test_where_each_test_is_a_column_it_is_what_scikit_learn_does():
    from sklearn.experimental import enable_iterative_imputer  # noqa: F401
    from sklearn.impute import IterativeImputer
    from sklearn.linear_model import LinearRegression

    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4)) @ rng.normal(size=(4, 4))
    X[rng.random(X.shape) < 0.2] = NAN
    problem = Problem.build(Schema.build(list("abcd"), [0, 1]), X, np.arange(80) % 2)
    seen = problem.X.astype(float)
    seen[~problem.available] = NAN
    theirs = IterativeImputer(LinearRegression(), max_iter=imputation.SETTINGS.rounds, tol=0, min_value=np.nanmin(seen, 0),
                              max_value=np.nanmax(seen, 0))  # fmt: skip
    with warnings.catch_warnings(action="ignore"):  # that it has not settled
        expected = theirs.fit_transform(seen)
    assert pytest.approx(expected, abs=1e-4) == impute("mice", problem)[0].X
