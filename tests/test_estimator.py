"""`CostlyClassifier` as people who use scikit-learn and pandas expect it, with bills checked by a slow second opinion."""

import io
import time
from fractions import Fraction
from itertools import pairwise

import joblib
import numpy as np
import pytest
from tests.core.naive import NaivePrices

from askwise import AverageBudget, Budget, CostlyClassifier, HardBudget, Tradeoff
from askwise.errors import InputError
from askwise.methods import paper
from askwise.model import probabilities
from patients import COSTS, DERIVED, PRICES, QUICK, SETUP, classifier, numbers, patients

pd = pytest.importorskip("pandas", reason="pandas is not installed")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

NAIVE = NaivePrices(COSTS, SETUP, DERIVED)


def bills(report, prices=NAIVE, known=frozenset()):
    """What the tests of each case cost, read aloud."""
    return [prices.cost(set(tests), set(known)) for tests in report.tests]


@pytest.fixture(scope="module")
def frame():
    return patients(160, seed=0)


@pytest.fixture(scope="module")
def others():
    """Patients that no fit has seen."""
    return patients(90, seed=1)


@pytest.fixture(scope="module")
def free(frame):
    """Without a budget."""
    return classifier(**PRICES).fit(*frame)


@pytest.fixture(scope="module")
def average(frame, free):
    """An average budget that lies between two policies, so that it mixes them."""
    dearest = free.frontier_[-1]["cost"]
    fitted = classifier(**PRICES, budget=AverageBudget(round(dearest / 2, 2))).fit(*frame)
    assert 0 < fitted.model_.blend.share < 1
    return fitted


@pytest.fixture(scope="module")
def hard(frame):
    return classifier(**PRICES, budget=HardBudget("1.3")).fit(*frame)


@pytest.fixture(scope="module", params=["free", "average", "hard"])
def fitted(request):
    return request.getfixturevalue(request.param)


# ---------------------------------------------------------------------- scikit-learn


@parametrize_with_checks([CostlyClassifier()])
def test_scikit_learns_own_checks(estimator, check):
    check(estimator.set_params(config=QUICK, random_state=0))  # here, so that the tests have short names


def test_it_works_in_a_pipeline_and_in_cross_validation():
    X, y = numbers()
    pipeline = make_pipeline(StandardScaler(), classifier(budget=AverageBudget(2)))
    scores = cross_val_score(pipeline, X, y, cv=2)
    assert scores.mean() > 0.7  # the classes are balanced, so it has learned something


def test_a_grid_search_over_budgets_prefers_the_larger_one():
    X, y = numbers()
    grid = {"budget": [AverageBudget(0), AverageBudget(2)]}
    search = GridSearchCV(classifier(), grid, cv=2).fit(X, y)
    assert search.best_params_ == {"budget": AverageBudget(2)}
    assert search.best_estimator_.budget == AverageBudget(2)
    assert search.predict(X).shape == (len(X),)


def test_a_frame_goes_through_cross_validation(frame):
    assert np.isfinite(cross_val_score(classifier(**PRICES), *frame, cv=2)).all()


def test_a_clone_has_the_same_settings_and_is_not_fitted(average):
    copy = clone(average)
    mine, theirs = average.get_params(), copy.get_params()
    assert theirs["budget"] == mine["budget"]
    assert theirs["costs"] == mine["costs"]
    assert theirs["config"] == mine["config"]
    assert not hasattr(copy, "model_")


def test_joblib_round_trip(fitted, others):
    buffer = io.BytesIO()
    joblib.dump(fitted, buffer)
    buffer.seek(0)
    back = joblib.load(buffer)
    X, _ = others
    assert back.predict_proba(X).tobytes() == fitted.predict_proba(X).tobytes()
    assert back.acquire(X).tests == fitted.acquire(X).tests


def test_the_same_seed_gives_the_same_result(frame, average, others):
    again = clone(average).fit(*frame)
    assert again.frontier_ == average.frontier_
    assert again.predict_proba(others[0]).tobytes() == average.predict_proba(others[0]).tobytes()


def test_training_leaves_the_callers_random_numbers_and_data_alone(frame):
    import torch

    X, y = frame
    before, bits, theirs = X.copy(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()  # noqa: NPY002
    classifier(random_state=3).fit(X, y)
    pd.testing.assert_frame_equal(X, before)
    assert np.random.get_state()[1].tolist() == bits  # noqa: NPY002
    assert torch.get_rng_state().tolist() == theirs


def test_a_fit_that_fails_leaves_the_earlier_one_whole():
    X, codes = numbers()
    fitted = classifier(time_limit=0).fit(X, np.array(["ill", "well"])[codes])
    before = fitted.predict(X).tolist()
    with pytest.raises(InputError, match="not a class"):
        fitted.set_params(class_weight={"else": 1}).fit(X, np.array(["no", "yes"])[codes])
    assert fitted.predict(X).tolist() == before


def test_verbose_fits_tell_on_stderr(capsys):
    X, y = numbers()
    classifier(verbose=1).fit(X, y)
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "cost" in shown.err
    classifier().fit(X, y)
    assert capsys.readouterr() == ("", "")


def test_the_time_limit_is_kept():
    X, y = numbers()
    endless = QUICK.scaled(max_epochs=1e6, stop_epochs=0)
    began = time.monotonic()
    fitted = classifier(config=endless, time_limit=0.5, budget=Tradeoff(0.01)).fit(X, y)
    assert time.monotonic() - began < 15  # a busy machine may take long for its last step
    assert fitted.model_.facts["stopped"] == "time limit"
    assert fitted.predict(X).shape == (len(X),)


# ---------------------------------------------------------------------- budgets and the frontier


def test_the_frontier_rises_from_deciding_at_once(free, frame):
    cost, loss = ([p[name] for p in free.frontier_] for name in ("cost", "loss"))
    assert cost == sorted(cost)
    assert cost[0] == 0
    assert len(cost) > 1, "nothing was learned, so nothing is tested"
    assert all(a > b for a, b in pairwise(loss)), "who pays more must lose less"
    for p in free.frontier_:
        assert p["accuracy"] == pytest.approx(1 - p["loss"])  # 0/1 losses
    commonest = (frame[1] == "ill").mean()
    assert free.frontier_[0]["accuracy"] == pytest.approx(max(commonest, 1 - commonest), abs=0.02)


def test_without_a_budget_it_works_at_the_cheapest_point_within_one_standard_error(free):
    points = free.model_.points
    best = min(points, key=lambda p: (p.loss, p.cost))
    enough = [p for p in points if p.loss <= best.loss + best.error]
    cheapest = min(enough, key=lambda p: p.cost)
    assert free.model_.blend.share == 0
    assert points[free.model_.blend.first] is cheapest
    assert free.model_.expected["cost"] == cheapest.cost


def test_restarts_keep_the_best_on_validation_rows(monkeypatch):
    X, y = numbers()
    runs, seeds = [], []
    real = paper.run

    def spy(*given, **more):
        seeds.append(given[4])
        runs.append(real(*given, **more))
        return runs[-1]

    monkeypatch.setattr(paper, "run", spy)
    budget = Tradeoff(0.05)
    fitted = classifier(n_restarts=3, budget=budget).fit(X, y)
    assert len(set(seeds)) == 3
    values = [run.expected.loss + budget.lam * run.expected.cost for run in runs]
    assert len(set(values)) > 1, "the runs are alike, so nothing is tested"
    expected = fitted.model_.expected
    assert expected["loss"] + budget.lam * expected["cost"] == pytest.approx(min(values))


def test_another_budget_needs_no_training(free, monkeypatch, others):
    def never(*_, **__):
        raise AssertionError("it was trained again")

    monkeypatch.setattr(paper, "run", never)
    X, y = others
    top = free.frontier_[-1]["cost"]
    costs = [free.at(AverageBudget(round(share * top, 3))).acquire(X).cost.mean() for share in (0, 0.5, 1)]
    assert costs[0] == 0
    assert costs == sorted(costs)
    assert costs[2] > costs[0]
    assert free.at(Tradeoff(1000)).acquire(X).cost.max() == 0
    assert free.at(Tradeoff(0)).model_.expected["loss"] == min(p["loss"] for p in free.frontier_)
    there = free.at(AverageBudget(1))
    assert there.budget == AverageBudget(1)
    assert there.get_params()["budget"] == AverageBudget(1)
    assert there.score(X, y) == pytest.approx((there.predict(X) == y).mean())
    assert free.budget is None, "the classifier itself must stay what it was"


def test_at_without_a_budget_is_the_usual_point(free, average):
    assert average.at(Budget()).model_.blend.share == 0
    assert free.at(AverageBudget(0)).at(None).model_.expected == free.model_.expected


def test_a_hard_budget_cannot_be_promised_afterwards(free, average, hard):
    for model in (free, average):
        with pytest.raises(InputError, match="trained without a hard budget, so it cannot keep to 2"):
            model.at(HardBudget(2))
        with pytest.raises(InputError, match="fit again with AverageBudget"):
            model.at(AverageBudget(1) & HardBudget(2))
    with pytest.raises(InputError, match=r"trained for a hard budget of 1\.3, so it cannot keep to 1"):
        hard.at(HardBudget(1))


def test_a_model_for_a_hard_budget_keeps_to_it_at_every_other_budget(hard, others):
    for budget in (AverageBudget(5), Tradeoff(0), HardBudget("1.3"), Budget()):
        assert max(bills(hard.at(budget).acquire(others[0]))) <= Fraction("1.3")


@pytest.mark.parametrize("word", ["cheap", 3, [AverageBudget(1)]])
def test_at_takes_budgets_only(free, word):
    with pytest.raises(InputError, match="it must be Tradeoff"):
        free.at(word)


# ---------------------------------------------------------------------- reports


def test_the_report_is_a_frame_with_the_rows_of_the_table(fitted, others):
    X = others[0].set_index(np.arange(len(others[0])) * 3 + 7)
    report = fitted.acquire(X)
    shown = report.to_frame()
    assert shown.columns.tolist() == ["cost", "prediction", "probability", "tests"]
    assert shown.index.tolist() == X.index.tolist()
    assert len(report) == len(X)
    assert set(shown["prediction"]) <= {"ill", "well"}
    proba = fitted.predict_proba(X)
    assert shown["probability"].to_numpy() == pytest.approx(proba.max(1))


def test_costs_are_those_of_the_tests_by_any_reckoning(fitted, others):
    report = fitted.acquire(others[0])
    assert report.cost == pytest.approx([float(b) for b in bills(report)], abs=1e-12)
    for tests, (_, row) in zip(report.tests, others[0].iterrows(), strict=True):
        assert len(set(tests)) == len(tests)
        assert not [t for t in tests if pd.isna(row[t])], "bought a value that is not there"


def test_reports_are_about_something(average, hard, others):
    """So that the checks above do not pass because nothing was ever bought."""
    assert {len(t) for t in average.acquire(others[0]).tests} >= {0, 1}
    assert max(len(t) for t in hard.acquire(others[0]).tests) > 1


def test_hard_budgets_are_never_exceeded(hard, others):
    paid = bills(hard.acquire(others[0]))
    assert Fraction(1) < max(paid) <= Fraction("1.3")
    assert max(bills(hard.acquire(patients(50, seed=9, holes=False)[0]))) <= Fraction("1.3")


@pytest.mark.parametrize("both", [AverageBudget("0.6") & HardBudget("1.3"), Tradeoff("0.01") & HardBudget("1.3")])
def test_a_hard_budget_joins_the_others(frame, others, both):
    fitted = classifier(**PRICES, budget=both).fit(*frame)
    paid = bills(fitted.acquire(others[0]))
    assert max(paid) <= Fraction("1.3")
    assert both.average is None or fitted.model_.expected["cost"] <= 0.6 + 1e-9


def test_predictions_agree_with_each_other(fitted, others):
    X, y = others
    said = fitted.predict(X)
    report = fitted.acquire(X)
    proba = fitted.predict_proba(X)
    assert report.prediction.tolist() == said.tolist()
    assert proba.sum(1) == pytest.approx(1)
    assert (proba >= 0).all()
    assert fitted.classes_[proba.argmax(1)].tolist() == said.tolist()
    assert fitted.score(X, y) == pytest.approx((said == y).mean())


def test_probabilities_agree_with_decisions_for_strange_rows_too():
    X, y = numbers(classes=4)
    fitted = classifier(budget=Tradeoff(0.001)).fit(X, y)
    for factor in (1, 3, 30, 1000):
        far = X * factor
        assert fitted.predict_proba(far).argmax(1).tolist() == fitted.predict(far).tolist()


def test_probabilities_explain_expected_losses():
    p = np.array([[0.2, 0.5, 0.3], [1.0, 0.0, 0.0]])
    for loss in (1 - np.eye(3), np.array([[0, 1, 5], [2, 0, 1], [1, 1, 0.0]])):
        scaled = loss / loss.max(1, keepdims=True)
        assert probabilities(p @ scaled, loss) == pytest.approx(p, abs=1e-5)
    hopeless = np.array([[1.2, 1.1, 1.3]])  # what a network says far from its data: everything is wrong
    assert probabilities(hopeless, 1 - np.eye(3)).argmax(1).tolist() == [1]


# ---------------------------------------------------------------------- batches


def test_a_case_is_decided_alike_alone_and_in_company(fitted, others):
    X = others[0]
    together, proba = fitted.acquire(X), fitted.predict_proba(X)
    for i in range(0, len(X), 7):
        alone = fitted.acquire(X.iloc[i : i + 1])
        assert alone.tests[0] == together.tests[i]
        assert alone.prediction[0] == together.prediction[i]
        assert alone.probability[0] == pytest.approx(together.probability[i], abs=1e-9)
        assert fitted.predict(X.iloc[i : i + 1])[0] == together.prediction[i]
    backwards = fitted.predict_proba(X.iloc[::-1])[::-1]
    assert backwards == pytest.approx(proba, abs=1e-9)


def test_ids_make_the_draw_and_nothing_else_does(average, others):
    X = others[0]
    ids = [f"case {i}" for i in range(len(X))]
    named = average.acquire(X, ids=ids)
    for i in range(0, len(X), 7):
        assert average.acquire(X.iloc[i : i + 1], ids=ids[i : i + 1]).tests[0] == named.tests[i]
    other = average.acquire(X, ids=[f"patient {i}" for i in range(len(X))])
    assert named.tests != other.tests, "other ids draw otherwise"


def test_ids_must_fit_the_rows(average, others):
    with pytest.raises(InputError, match="there must be one for each of 90 rows"):
        average.acquire(others[0], ids=["a"])


# ---------------------------------------------------------------------- tables


def test_columns_are_taken_by_name(fitted, others):
    X = others[0]
    shuffled = X[X.columns[::-1]].assign(diary="nothing of interest", number=1.0)
    assert fitted.predict_proba(shuffled).tobytes() == fitted.predict_proba(X).tobytes()
    assert fitted.acquire(shuffled).tests == fitted.acquire(X).tests


def test_new_categories_work(fitted, others):
    X = others[0].astype({"colour": object}).assign(colour="purple", town="Oslo")
    report = fitted.acquire(X)
    assert np.isfinite(report.probability).all()
    assert report.cost == pytest.approx([float(b) for b in bills(report)])


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
    assert report.cost == pytest.approx([float(b) for b in bills(report, NaivePrices(costs))])
    lacking = others[0][["smoker", "colour", "town"]].isna().any(axis=1)
    assert not [t for t, gone in zip(report.tests, lacking, strict=True) if gone and "form" in t]


def test_costs_by_series_array_and_default():
    X, y = numbers()
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    price = {"a": 1.0, "b": 0.25, "c": 3.0}
    for costs in (pd.Series(price), np.array(list(price.values())), list(price.values()), pd.Series(price)[["c", "a", "b"]]):
        prices = classifier(costs=costs, time_limit=0).fit(frame, y).model_.schema.prices
        assert prices.money(prices.own).tolist() == list(price.values())
    prices = classifier(time_limit=0).fit(frame, y).model_.schema.prices
    assert prices.money(prices.own).tolist() == [1, 1, 1]


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
