"""Splitting, and what is fitted on the training rows only."""

import numpy as np
import pytest

from askwise.errors import InputError
from askwise.tables.splits import shuffled, split, stratified


def test_a_stratified_split_is_seeded_and_complete() -> None:
    y = np.repeat([0, 1, 2], [100, 50, 10])
    parts = stratified(y, (0.6, 0.2, 0.2), 0)
    assert np.sort(np.concatenate(parts)).tolist() == list(range(160))
    assert [np.bincount(y[p]).tolist() for p in parts] == [[60, 30, 6], [20, 10, 2], [20, 10, 2]]
    assert [p.tolist() for p in stratified(y, (0.6, 0.2, 0.2), 0)] == [p.tolist() for p in parts]
    assert [p.tolist() for p in stratified(y, (0.6, 0.2, 0.2), 1)] != [p.tolist() for p in parts]
    with pytest.raises(InputError, match="add up to 1"):
        stratified(y, (0.6, 0.2), 0)


def test_a_shuffled_split_has_the_sizes_asked_for() -> None:
    rows = np.arange(100, 110)
    parts = shuffled(rows, (5, 3, 2), 0)
    assert [len(p) for p in parts] == [5, 3, 2]
    assert np.sort(np.concatenate(parts)).tolist() == rows.tolist()
    assert [p.tolist() for p in shuffled(rows, (5, 3, 2), 1)] != [p.tolist() for p in parts]
    with pytest.raises(InputError, match=r"have 5 \+ 3 rows; they must add up to 10"):
        shuffled(rows, (5, 3), 0)


def test_only_training_rows_are_looked_at_before_the_end() -> None:
    X = {"a": np.array([1.0, 3.0, 1e6, -1e6]), "code": np.array([1.0, 2.0, 3.0, np.nan])}
    y = np.array(["n", "y", "n", "y"])
    rows = [np.array([0, 1]), np.array([2]), np.array([3])]
    data = split(X, y, ("n", "y"), rows, categorical=["code"], class_weight={"y": 3}, costs={"a": 1, "code": 2})
    assert data.train.schema.tests == ("a", "code")
    assert data.train.schema.columns == ("a", "code=1", "code=2")
    assert data.train.X.tolist() == [[-1, 1, -1], [1, -1, 1]]
    assert data.validation.X[0, 0] == 1e6 - 2
    assert data.validation.X[0, 1:].tolist() == [-1, -1]  # a code that training has not seen
    assert data.test.available is not None
    assert data.test.available.tolist() == [[True, False]]
    assert (data.test.loss == data.train.loss).all()
    assert data.train.loss.tolist() == [[0, 1], [3, 0]]
