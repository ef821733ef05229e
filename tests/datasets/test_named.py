"""The named data sets: what their cards say is so. Large ones are read once, and skipped where the folder does not have them."""

import functools
import hashlib
import json
import os
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from askwise.datasets.cards import CARDS
from askwise.datasets.makers import MAKERS
from askwise.datasets.named import cards, load, raw
from askwise.tables.encoding import Encoding

FOLDER = Path(os.environ.get("ASKWISE_DATA", "there is none"))
BUILT_IN = [name for name, card in CARDS.items() if card.built_in]
IN_FOLDER = [name for name, card in CARDS.items() if card.sha256 and not card.built_in]
SIZES = {
    "thyroid": (1898, 633, 632),
    "heart": (178, 60, 59),
    "hepatitis": (93, 31, 31),
    "pima": (461, 153, 154),
    "bupa": (207, 69, 69),
    "digits": (1078, 360, 359),
    "breast_cancer": (341, 115, 113),
    "wine": (107, 35, 36),
    "miniboone_tiny": (1995, 999, 1994),
    "forest": (200_000, 81_012, 300_000),
    "cifar": (40_000, 10_000, 10_000),
    "mnist": (50_000, 10_000, 10_000),
    "ann_thyroid": (3017, 755, 3428),
    "nhanes": (29_844, 9947, 9948),
    "bank": (36_169, 4521, 4521),
    "california": (16_512, 2064, 2064),
    "metabric": (1518, 190, 190),
}


def needs(name: str) -> None:
    if not (FOLDER / name).is_file():
        pytest.skip(f"the folder named by ASKWISE_DATA does not have {name}")


@functools.cache
def table(name: str):
    if not CARDS[name].built_in:
        needs(CARDS[name].file)
    return raw(name)


def test_every_set_has_a_card_that_says_everything() -> None:
    assert list(cards()) == list(CARDS)
    assert set(CARDS) == set(MAKERS)
    assert set(SIZES) == {*BUILT_IN, *IN_FOLDER}
    for card in CARDS.values():
        assert all((card.title, card.source, card.licence, card.costs, card.splits, card.traps)), card.name
        assert card.built_in or (card.file and card.get), card.name
    del cards()["wine"]  # a copy
    assert "wine" in cards()


@pytest.mark.parametrize("name", SIZES)
def test_rows_columns_classes_and_splits_are_as_the_card_says(name) -> None:
    data, card = table(name), CARDS[name]
    assert data.X.shape == (card.rows, card.columns)
    assert len(data.columns) == card.columns == len(set(data.columns))
    assert len(data.classes) == card.classes
    assert set(np.unique(data.y).tolist()) == set(data.classes)
    rows = data.splits(0)
    assert tuple(map(len, rows)) == SIZES[name]
    assert (np.sort(np.concatenate(rows)) == np.arange(card.rows)).all()
    assert [r.tolist() for r in data.splits(0)] == [r.tolist() for r in rows]
    fixed = name == "miniboone_tiny"
    assert ([r.tolist() for r in data.splits(1)] == [r.tolist() for r in rows]) == fixed


@pytest.mark.parametrize("name", [name for name in SIZES if name not in ("cifar", "forest", "mnist")])
def test_problems_are_made_of_them(name) -> None:
    table(name)
    data = load(name, seed=1)
    parts = (data.train, data.validation, data.test)
    assert tuple(map(len, parts)) == SIZES[name]
    assert data.train.schema.n_tests == CARDS[name].columns
    assert abs(data.train.X.mean()) < 1e-3
    assert (data.test.loss == data.train.loss).all()


@pytest.mark.parametrize("name", BUILT_IN)
def test_a_frame_gives_the_same_encoding(name) -> None:
    pytest.importorskip("pandas", reason="pandas is not installed")
    data = raw(name)
    train = data.splits(0)[0]
    frame = data.table
    assert list(frame.columns) == list(data.columns)
    encoding = Encoding.fit(frame, scaling=data.scaling, rows=train)
    problem = load(name).train
    made = encoding.transform(frame.iloc[train])
    assert np.isnan(made).any() == (problem.available is not None)
    if problem.available is not None:  # a derived value is gone too where what it is computed from is missing
        made = np.where(np.isnan(made) | ~problem.schema.by_column(problem.available), 0, made)
    np.testing.assert_array_equal(made, problem.X)


@pytest.mark.parametrize("name", [name for name in BUILT_IN if CARDS[name].file])
def test_files_of_the_package_are_those_of_the_cards(name) -> None:
    file = resources.files("askwise.datasets") / "files" / CARDS[name].file
    assert hashlib.sha256(file.read_bytes()).hexdigest() == CARDS[name].sha256


def alone(name: str) -> dict[str, float]:
    schema = load(name).train.schema
    return dict(zip(schema.tests, schema.costs.money(schema.costs.alone).tolist(), strict=True))


def test_thyroid() -> None:
    data = raw("thyroid")
    assert (data.y == "hypothyroid").sum() == 151
    assert not any("measured" in name for name in data.columns)
    prices = alone("thyroid")
    assert [prices[t] for t in ("age", "TSH", "T3", "TT4", "T4U", "TBG")] == [1.0, 22.78, 11.41, 14.51, 11.41, 22.78]
    assert prices["FTI"] == pytest.approx(2.10 + 12.41 + 9.31)
    missing = np.isnan(data.X).mean(0)
    assert missing[data.columns.index("TBG")] > 0.9
    assert missing[data.columns.index("lithium")] == 0


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


def test_heart() -> None:
    data = raw("heart")
    assert (data.y == "ill").sum() == 137
    assert data.setup == {
        "blood draw": ("2.10", ["chol", "fbs"]),
        "thallium scan": ("101.90", ["thalach", "thal"]),
        "exercise test": ("86.30", ["exang", "oldpeak", "slope"]),
    }
    schema = load("heart").train.schema
    assert "cp=4" in schema.columns
    assert schema.n_tests == 13
    assert float(schema.costs.money(schema.costs.total)) == pytest.approx(4 + 8.27 + 15.5 + 100.9 + 2 + 3 + 2.1 + 101.9 + 86.3)


def test_hepatitis_and_pima_have_missing_values() -> None:
    data = raw("hepatitis")
    assert (data.y == "die").sum() == 32
    assert np.isnan(data.X).sum(0).tolist() == [0, 0, 1, 0, 1, 1, 1, 10, 11, 5, 5, 5, 5, 6, 29, 4, 16, 67, 0]
    data = raw("pima")
    assert (data.y == "positive").sum() == 268
    assert np.isnan(data.X).sum(0).tolist() == [0, 5, 35, 227, 374, 11, 0, 0]
    assert alone("pima")["insulin"] == 22.78


def test_bupa_asks_for_drinks_and_leaves_the_old_mark_out() -> None:
    data = raw("bupa")
    assert data.columns == ("mcv", "alkphos", "sgpt", "sgot", "gammagt")
    assert (data.y == "drinker").sum() == 176
    assert data.X[0].tolist() == [85, 92, 45, 27, 31]


@pytest.mark.parametrize("name", ["heart", "hepatitis", "pima", "bupa", "ann_thyroid"])
def test_costs_are_those_that_turney_published(name) -> None:
    needs("turney_costs.json")
    published = json.loads((FOLDER / "turney_costs.json").read_text())["sets"]
    ours = alone(name)
    assert list(ours) == list(table(name).columns)
    for line in published[{"heart": "heart_cleveland", "bupa": "bupa_liver"}.get(name, name)]:
        if not line["group"].startswith("derived"):
            assert ours[line["test"]] == line["cost"]
            assert float(table(name).costs[line["test"]]) == line["discount"]


def test_set_ups_cost_the_difference_between_a_test_alone_and_within_its_session() -> None:
    published = {"chol": (7.27, 5.17), "fbs": (5.20, 3.10), "thalach": (102.90, 1.00), "thal": (102.90, 1.00)}
    published |= dict.fromkeys(("exang", "oldpeak", "slope"), (87.30, 1.00)) | {"restecg": (15.50,) * 2, "ca": (100.90,) * 2}
    costs, prices = raw("heart").costs, alone("heart")
    assert {test: (prices[test], float(costs[test])) for test in published} == published
    assert raw("heart").setup == {
        "blood draw": ("2.10", ["chol", "fbs"]),
        "thallium scan": ("101.90", ["thalach", "thal"]),
        "exercise test": ("86.30", ["exang", "oldpeak", "slope"]),
    }


def test_ann_thyroid_has_exact_costs_and_a_derived_test() -> None:
    data = table("ann_thyroid")
    assert data.derived == {"FTI": ["TT4", "T4U"]}
    assert data.setup == {"blood draw": ("2.10", ["TSH", "T3", "TT4", "T4U"])}
    assert data.splits(0)[2].tolist() == data.splits(1)[2].tolist()
    assert alone("ann_thyroid")["FTI"] == pytest.approx(2.10 + 12.41 + 9.31)


def test_the_text_files_of_ann_thyroid_will_do_as_well(monkeypatch, tmp_path) -> None:
    stored = table("ann_thyroid")
    with np.load(FOLDER / "ann_thyroid.npz") as file:
        y, test = file["y"], file["is_test"]
    for name, rows in (("ann-train.data", ~test), ("ann-test.data", test)):
        np.savetxt(tmp_path / name, np.column_stack([stored.X, y + 1])[rows], fmt="%.8g")
    monkeypatch.setenv("ASKWISE_DATA", str(tmp_path))
    again = raw("ann_thyroid")
    order = np.concatenate([np.flatnonzero(~test), np.flatnonzero(test)])
    np.testing.assert_allclose(again.X, stored.X[order], rtol=1e-6)
    assert (again.y == stored.y[order]).all()


def test_nhanes_has_costs_by_section_and_no_column_that_defines_the_label() -> None:
    data = table("nhanes")
    assert not [name for name in data.columns if "hba1c" in name.lower() or "glucose" in name.lower()]
    assert set(data.costs.values()) == {"2", "4", "5", "9"}
    prices = {name: data.costs[name] for name in ("age", "smoke_ever", "bmi", "insulin")}
    assert prices == {"age": "2", "smoke_ever": "4", "bmi": "5", "insulin": "9"}
    assert 0.08 < np.isnan(data.X).mean() < 0.1


def test_forest_keeps_the_columns_of_the_paper() -> None:
    data = table("forest")
    with np.load(FOLDER / "forest.npz") as file:
        assert data.columns == tuple(file["feature_names"].tolist())
        assert data.classes == tuple(file["class_names"].tolist())
    train = data.splits(0)[0]
    encoding = Encoding.fit(dict(zip(data.columns, data.X.T, strict=True)), rows=train)
    some = encoding.transform(data.X[train[:1000]])
    expected = (data.X[train[:1000], 0] - data.X[train, 0].mean()) / data.X[train, 0].std()
    np.testing.assert_allclose(some[:, 0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["cifar", "mnist"])
def test_images_have_one_scale_and_the_official_test_rows(name) -> None:
    data = table(name)
    with np.load(FOLDER / f"{name}.npz") as file:
        assert data.columns == tuple(file["feature_names"].tolist())
        assert [str(c) for c in data.classes] == file["class_names"].tolist()
        assert data.splits(3)[2].tolist() == np.flatnonzero(file["is_test"]).tolist()
    train = data.splits(0)[0][:5000]
    parts = Encoding.fit(data.X, scaling=data.scaling, rows=train).parts
    assert len({(p.mean, p.deviation) for p in parts}) == 1
    assert parts[0].mean[0] == pytest.approx(data.X[train].mean())
    assert parts[0].deviation[0] == pytest.approx(data.X[train].std())
