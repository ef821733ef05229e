"""The named data sets, splitting and scaling."""

import os

import numpy as np
import pytest

from askwise.data.named import load
from askwise.data.prepare import Scaler, stratified
from askwise.data.small_problems import KINDS, small_problem
from askwise.errors import InputError

needs_folder = pytest.mark.skipif("ASKWISE_DATA" not in os.environ, reason="ASKWISE_DATA does not name the folder of large sets")


def test_thyroid_is_what_its_card_says() -> None:
    data = load("thyroid")
    parts = (data.train, data.validation, data.test)
    schema = data.train.schema
    assert sum(map(len, parts)) == 3163
    assert sum(int((p.y == 1).sum()) for p in parts) == 151
    assert schema.n_tests == 19
    assert not any("measured" in name for name in schema.columns)
    alone = dict(zip(schema.tests, schema.prices.money(schema.prices.alone).tolist(), strict=True))
    assert (alone["age"], alone["TSH"], alone["T3"], alone["TT4"], alone["T4U"]) == (1.0, 22.78, 11.41, 14.51, 11.41)
    assert alone["FTI"] == pytest.approx(2.10 + 12.41 + 9.31)
    missing = 1 - np.concatenate([p.available for p in parts]).mean(0)
    assert missing[schema.tests.index("TBG")] > 0.9
    assert missing[schema.tests.index("lithium")] == 0


def test_thyroid_has_no_missing_t4_in_any_positive_case() -> None:
    # the trap: that a test was not ordered nearly gives the label away, so nothing may see it
    data = load("thyroid").train
    at = data.schema.tests.index("TT4")
    assert data.available[data.y == 1, at].all()
    assert not data.available[data.y == 0, at].all()


def test_class_weights_of_the_training_rows_judge_all_parts() -> None:
    data = load("thyroid", class_weight="balanced")
    assert (data.validation.loss == data.train.loss).all()
    assert data.train.loss[1, 0] > 5 > data.train.loss[0, 1]


@needs_folder
def test_miniboone_tiny() -> None:
    data = load("miniboone_tiny")
    assert data.train.schema.n_tests == 50
    assert 4980 <= sum(map(len, (data.train, data.validation, data.test))) < 5000
    assert abs(data.train.X.mean()) < 1e-3


def test_a_missing_folder_or_name_says_what_to_do(monkeypatch, tmp_path) -> None:
    monkeypatch.delenv("ASKWISE_DATA", raising=False)
    with pytest.raises(InputError, match="set ASKWISE_DATA to the folder that holds it"):
        load("miniboone_tiny")
    monkeypatch.setenv("ASKWISE_DATA", str(tmp_path))
    with pytest.raises(InputError, match=r"there is no file 'miniboone_tiny.npz'"):
        load("miniboone_tiny")
    with pytest.raises(InputError, match="did you mean 'thyroid'"):
        load("thyriod")


def test_scaling_leaves_missing_values_out() -> None:
    X = np.array([[1.0, 5.0], [3.0, np.nan], [5.0, 5.0]])
    scale = Scaler.fit(X)
    assert scale.mean.tolist() == [3, 5]
    assert scale.deviation.tolist() == [pytest.approx((8 / 3) ** 0.5), 1]  # a constant column is only centred
    assert np.isnan(scale(X)[1, 1])


def test_a_stratified_split_is_seeded_and_complete() -> None:
    y = np.repeat([0, 1, 2], [100, 50, 10])
    parts = stratified(y, (0.6, 0.2, 0.2), 0)
    assert np.sort(np.concatenate(parts)).tolist() == list(range(160))
    assert [np.bincount(y[p]).tolist() for p in parts] == [[60, 30, 6], [20, 10, 2], [20, 10, 2]]
    assert [p.tolist() for p in stratified(y, (0.6, 0.2, 0.2), 0)] == [p.tolist() for p in parts]
    assert [p.tolist() for p in stratified(y, (0.6, 0.2, 0.2), 1)] != [p.tolist() for p in parts]
    with pytest.raises(InputError, match="add up to 1"):
        stratified(y, (0.6, 0.2), 0)


def test_small_problems_are_of_every_kind_and_always_the_same() -> None:
    made = [small_problem(seed, rows=200) for seed in range(5)]
    assert tuple(m.kind for m in made) == KINDS
    again = small_problem(2, rows=200)
    assert (again.problem.X == made[2].problem.X).all()
    assert again.budgets == made[2].budgets
    for m in made:
        assert 3 <= m.problem.schema.n_tests <= 8
        assert 2 <= m.problem.schema.n_classes <= 4
