"""`CostlyClassifier` as people who use scikit-learn and pandas expect it, with bills checked by a slow second opinion."""

import io
import time
from fractions import Fraction
from itertools import pairwise

import joblib
import numpy as np
import pytest
from tests.support.patients import PRICES, QUICK, QUICK_FAMILY, bills, classifier, numbers, patients

from askwise import AverageBudget, Budget, CostlyClassifier, HardBudget, Tradeoff
from askwise.errors import InputError
from askwise.model.model import probabilities
from askwise.paper import run as paper
from askwise.paper.select import expected_for

pd = pytest.importorskip("pandas", reason="pandas is not installed")

from sklearn.base import clone  # noqa: E402
from sklearn.model_selection import GridSearchCV, cross_val_score  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402
from sklearn.utils.estimator_checks import parametrize_with_checks  # noqa: E402

# ---------------------------------------------------------------------- scikit-learn


def in_expectation(estimator):
    words = "rows are kept apart and drawn by lot, so that a weight is as good as repeated rows in expectation, not exactly"
    return {"check_sample_weight_equivalence_on_dense_data": words}  # tests/test_sample_weight.py has what holds


@parametrize_with_checks([CostlyClassifier(), CostlyClassifier(algorithm="paper")], expected_failed_checks=in_expectation)
def test_scikit_learns_own_checks(estimator, check):
    quick = QUICK if estimator.algorithm == "paper" else QUICK_FAMILY
    check(estimator.set_params(config=quick, random_state=0))  # here, so that the tests have short names


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


def test_ids_go_through_pipelines_by_metadata_routing():
    import sklearn

    X, y = numbers()
    ids = [f"case {i}" for i in range(len(X))]
    with sklearn.config_context(enable_metadata_routing=True):
        mixed = classifier(budget=AverageBudget("0.5")).set_predict_request(ids=True).set_score_request(ids=True)
        pipeline = make_pipeline(StandardScaler(), mixed).fit(X, y)
        said, score = pipeline.predict(X, ids=ids), pipeline.score(X, y, ids=ids)
    inner, scaled = pipeline[-1], pipeline[0].transform(X)
    assert 0 < inner.model_.blend.share < 1, "nothing is drawn, so nothing is tested"
    assert said.tolist() == inner.predict(scaled, ids=ids).tolist() == inner.acquire(scaled, ids=ids).prediction.tolist()
    assert said.tolist() != inner.predict(scaled).tolist()
    assert score == (said == y).mean()


def test_seconds_count_all_parts_of_a_resumed_training():
    X, y = numbers()
    states = []
    classifier(budget=Tradeoff(0.01)).fit(X, y, save=states.append)
    arrays, facts = states[-1]
    assert facts["seconds"] > 0
    again = classifier(budget=Tradeoff(0.01)).fit(X, y, resume=(arrays, {**facts, "seconds": 1000.0}), save=states.append)
    assert 1000 <= again.model_.facts["seconds"] < 1500
    assert 1000 <= states[-1][1]["seconds"] < 1500


# ---------------------------------------------------------------------- budgets and the frontier


def test_the_frontier_rises_from_deciding_at_once(free, frame):
    cost, loss = ([p[name] for p in free.frontier_] for name in ("cost", "loss"))
    assert cost == sorted(cost)
    assert cost[0] == 0
    assert len(cost) > 1, "nothing was learned, so nothing is tested"
    assert all(a > b for a, b in pairwise(loss)), "who pays more must lose less"
    for p in free.frontier_:
        assert p["accuracy"] == pytest.approx(1 - p["loss"])  # 0/1 losses
        assert {type(value) for name, value in p.items() if name not in ("n", "kind")} == {float}, "no NumPy numbers"
        assert type(p["n"]) is int
    assert [p["kind"] for p in free.frontier_] == ["decides at once", *(p.kind for p in free.model_.frontier[1:])]
    commonest = (frame[1] == "ill").mean()
    assert free.frontier_[0]["accuracy"] == pytest.approx(max(commonest, 1 - commonest), abs=0.02)


def test_without_a_budget_it_works_at_the_cheapest_point_within_one_standard_error(free):
    points = free.model_.points
    best = min(points, key=lambda p: (p.loss, p.cost))
    enough = [p for p in points if p.loss <= best.loss + best.measure.loss_error]
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
    expected = [expected_for(run, budget) for run in runs]
    values = [e.loss + budget.lam * e.cost for e in expected]
    assert len(set(values)) > 1, "the runs are alike, so nothing is tested"
    best = fitted.model_.expected
    assert best["loss"] + budget.lam * best["cost"] == pytest.approx(min(values))


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


def test_a_larger_hard_budget_changes_nothing_and_says_so(hard, others):
    """What it would do with more was never measured, so `expected` would be of something else."""
    for budget in (HardBudget(5), Tradeoff(0) & HardBudget(5)):
        with pytest.warns(UserWarning, match=r"trained for a hard budget of 1\.3 and keeps to it; to spend up to 5 fit again"):
            more = hard.at(budget)
        assert more.model_.budget.hard == Fraction("1.3")
        assert max(bills(more.acquire(others[0]))) <= Fraction("1.3")
    assert more.model_.expected == hard.at(Tradeoff(0)).model_.expected


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
