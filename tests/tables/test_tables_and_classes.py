"""Tables, prices, classes and losses as people have them, given to `CostlyClassifier`."""

import numpy as np
import pytest
from tests.support.naive import NaiveCosts
from tests.support.patients import COSTS, bills, classifier, numbers

from askwise import Tradeoff
from askwise.errors import Doubt

pd = pytest.importorskip("pandas", reason="pandas is not installed")


# ---------------------------------------------------------------------- tables


def test_columns_are_taken_by_name(fitted, others):
    X = others[0]
    shuffled = X[X.columns[::-1]].assign(diary="nothing of interest", number=1.0)
    assert fitted.predict_proba(shuffled).tobytes() == fitted.predict_proba(X).tobytes()
    assert fitted.acquire(shuffled).tests == fitted.acquire(X).tests


def test_new_categories_work(fitted, others):
    X = others[0].astype({"colour": object}).assign(colour="purple", town="Oslo")
    with pytest.warns(Doubt, match="no value of column '(colour|town)' in these rows occurred in training") as said:
        report = fitted.acquire(X)
    assert len(said) == 2
    assert np.isfinite(report.probability).all()
    assert report.cost == pytest.approx([float(b) for b in bills(report)])
    fitted.acquire(pd.concat([X, others[0].astype({"colour": object})]))  # where some were seen nobody is warned


def test_values_may_be_missing_anywhere(fitted, others):
    X = others[0].astype(object)
    X.loc[:, :] = None
    assert fitted.acquire(X).tests == [()] * len(X)
    X["smoker"] = True
    assert {t for tests in fitted.acquire(X).tests for t in tests} <= {"smoker"}


def test_a_categorical_column_stays_one_test(free):
    schema = free.model_.schema
    assert schema.tests == tuple(COSTS)
    one_hot = [i for i, c in enumerate(schema.columns) if c.startswith("colour=")]
    assert sorted(schema.columns[i] for i in one_hot) == ["colour=blue", "colour=green", "colour=red"]
    assert {schema.tests[schema.owner[i]] for i in one_hot} == {"colour"}


def test_one_test_may_reveal_several_columns_of_the_users_frame(frame, others):
    reveals = {"form": ["smoker", "colour", "town"], "exam": ["pressure", "index"]}
    costs = {"age": "0.1", "form": "0.4", "exam": 1}
    fitted = classifier(costs=costs, reveals=reveals, budget=Tradeoff("0.001")).fit(*frame)
    assert set(fitted.model_.schema.tests) == {"age", "form", "exam"}
    report = fitted.acquire(others[0])
    assert any(report.tests)
    assert report.cost == pytest.approx([float(b) for b in bills(report, NaiveCosts(costs))])
    lacking = others[0][["smoker", "colour", "town"]].isna().any(axis=1)
    assert not [t for t, gone in zip(report.tests, lacking, strict=True) if gone and "form" in t]


def test_a_single_name_needs_no_brackets(frame):
    fitted = classifier(reveals={"exam": "age"}, setup={"lab": (2, "pressure")}, derived={"index": "exam"}, time_limit=0).fit(
        *frame
    )
    schema = fitted.model_.schema
    assert schema.tests == ("exam", "pressure", "smoker", "colour", "town", "index")
    alone = dict(zip(schema.tests, schema.costs.money(schema.costs.alone).tolist(), strict=True))
    assert alone == {"exam": 1, "pressure": 3, "smoker": 1, "colour": 1, "town": 1, "index": 1}
    assert schema.costs.sources[5].tolist() == [True, False, False, False, False, False]


@pytest.mark.parametrize("given", ["code", ["code"], ("code",)], ids=str)
def test_numbers_that_are_only_codes(given):
    X, y = numbers()
    frame = pd.DataFrame({"code": np.arange(len(X)) % 3, "x": X[:, 0]})
    parts = classifier(categorical=given, time_limit=0).fit(frame, y).model_.encoding.parts
    assert [part.kind for part in parts] == ["category", "number"]
    parts = classifier(categorical=["x1"], time_limit=0).fit(frame.to_numpy(), y).model_.encoding.parts
    assert [part.kind for part in parts] == ["number", "category"]


def test_one_scale_for_all_columns():
    X, y = numbers()
    X = X * [1, 10, 100]
    apart = classifier(time_limit=0).fit(X, y).model_.encoding.parts
    assert len({part.deviation for part in apart}) == 3
    together = classifier(scaling="one", time_limit=0).fit(X, y).model_.encoding.parts
    assert len({part.deviation for part in together}) == 1


def test_costs_by_series_array_and_default():
    X, y = numbers()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    price = {"a": 1.0, "b": 0.25, "c": 3.0}
    for costs in (pd.Series(price), np.array(list(price.values())), list(price.values()), pd.Series(price)[["c", "a", "b"]]):
        cost_function = classifier(costs=costs, time_limit=0).fit(frame, y).model_.schema.costs
        assert cost_function.money(cost_function.own).tolist() == list(price.values())
    cost_function = classifier(time_limit=0).fit(frame, y).model_.schema.costs
    assert cost_function.money(cost_function.own).tolist() == [1, 1, 1]


def test_lists_of_rows_keep_their_numbers():
    X, y = numbers()
    rows = [[float(a), "red" if b > 0 else "blue"] for a, b, _ in X]
    fitted = classifier(time_limit=0).fit(rows, y)
    assert [part.kind for part in fitted.model_.encoding.parts] == ["number", "category"]


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, 2, None] * 40, dtype="Int64"),
        pd.Series([True, False, None] * 40, dtype="boolean"),
        pd.Series(["u", "v", None] * 40, dtype="string"),
        pd.Series(pd.to_datetime(["2020-01-01", "2021-05-05", None] * 40)),
        pd.Series(pd.Categorical(["low", "high", None] * 40, ["low", "mid", "high"], ordered=True)),
        pd.Series([1.5, None, -2.0] * 40, dtype="Float32"),
        pd.Series([None] * 120, dtype=object),
    ],
    ids=lambda c: str(c.dtype),
)
def test_pandas_columns_of_every_sort(column):
    X, y = numbers()
    frame = pd.DataFrame({"a": X[:, 0], "odd": column})
    fitted = classifier(budget=Tradeoff(0)).fit(frame, y)
    report = fitted.acquire(frame)
    assert not [t for t, gone in zip(report.tests, column.isna(), strict=True) if gone and "odd" in t]
    assert np.isfinite(fitted.predict_proba(frame)).all()


# ---------------------------------------------------------------------- classes and losses


@pytest.mark.parametrize(
    "names",
    [
        np.array(["no", "yes"]), np.array(["no", "yes"], object), np.array([3, 17]), np.array([-5, 2], np.int8),
        np.array([False, True]), np.array([0.0, 1.0]), np.array(["a", "longer"]),
    ],
    ids=lambda names: str(names.dtype) + str(names[0]),
)  # fmt: skip
def test_classes_of_every_sort(names):
    X, codes = numbers()
    fitted = classifier(budget=Tradeoff(0.001)).fit(X, names[codes])
    assert fitted.classes_.tolist() == names.tolist()
    said = fitted.predict(X)
    assert (said == names[codes]).mean() > 0.7
    assert said.dtype.kind == names.dtype.kind
    assert fitted.acquire(X).prediction.tolist() == said.tolist()


@pytest.mark.parametrize(
    "make",
    [
        lambda y: pd.Series(y, index=range(1000, 1000 + len(y))),
        lambda y: pd.Series(y, dtype="category"),
        lambda y: pd.Series(y, dtype="string"),
        list,
    ],
    ids=["odd index", "category", "string", "list"],
)
def test_targets_as_pandas_has_them(make):
    X, codes = numbers()
    y = np.array(["no", "yes"])[codes]
    assert classifier(time_limit=0).fit(X, make(y)).classes_.tolist() == ["no", "yes"]


def test_three_classes_that_are_not_in_a_row():
    X, codes = numbers(classes=3, n=150)
    y = np.array([10, -3, 7])[codes]
    fitted = classifier(budget=Tradeoff(0.001)).fit(X, y)
    assert fitted.classes_.tolist() == [-3, 7, 10]
    assert fitted.predict_proba(X).shape == (150, 3)
    assert fitted.score(X, y) > 0.5


def test_a_dear_error_is_avoided():
    X, codes = numbers()
    y = np.array(["ill", "well"])[codes]
    usual = classifier(budget=Tradeoff(0.001)).fit(X, y).predict(X)
    # loss[truth, decision]: to overlook an illness is bad
    careful = classifier(budget=Tradeoff(0.001), loss=[[0, 20], [1, 0]]).fit(X, y).predict(X)
    overlooked = ((careful == "well") & (y == "ill")).sum()
    assert overlooked <= ((usual == "well") & (y == "ill")).sum()
    assert (careful == "ill").sum() > (usual == "ill").sum()


def test_class_weights_by_label():
    X, codes = numbers()
    y = np.array(["ill", "well"])[codes]
    weighted = classifier(budget=Tradeoff(0.001), class_weight={"ill": 20}).fit(X, y)
    assert weighted.model_.loss.tolist() == [[0, 20], [1, 0]]
    usual = classifier(budget=Tradeoff(0.001)).fit(X, y)
    assert (weighted.predict(X) == "ill").sum() > (usual.predict(X) == "ill").sum()
    assert weighted.classes_[weighted.predict_proba(X).argmax(1)].tolist() == weighted.predict(X).tolist()
    assert weighted.classes_[weighted.predict_proba(X).argmax(1)].tolist() == weighted.predict(X).tolist()


def test_balanced_class_weights():
    X, codes = numbers(n=200)
    keep = np.r_[np.flatnonzero(codes == 0), np.flatnonzero(codes == 1)[:20]]
    fitted = classifier(class_weight="balanced", time_limit=0).fit(X[keep], codes[keep])
    # 75 and 15 rows are left for training: n / (K n_k)
    assert fitted.model_.loss == pytest.approx(np.array([[0, 90 / 150], [90 / 30, 0]]))


def test_class_weights_by_labels_that_are_numbers():
    X, codes = numbers()
    y = np.array([3, 17])[codes]
    fitted = classifier(class_weight={np.int64(17): 4, 3: 1}, time_limit=0).fit(X, y)
    assert fitted.model_.loss.tolist() == [[0, 1], [4, 0]]
