"""Rows that count differently: in learning, choosing and measuring a weight is as good as so many rows."""

from dataclasses import fields, replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from tests.support.patients import PRICES, QUICK, QUICK_FAMILY, classifier, numbers, patients

from askwise import CostlyClassifier, Tradeoff
from askwise.core.budget import Budget
from askwise.core.episode import measure, rollout
from askwise.core.missingness import lacking
from askwise.core.policy import Greedy, ValueFunction, decide_at_once
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError
from askwise.evaluation import Report
from askwise.family.conditions import Scale

QUICKLY = {"family": QUICK_FAMILY.but(max_steps=150), "paper": QUICK}
WEIGHTS = np.random.default_rng(5).integers(0, 4, 160)


def learner(algorithm, **settings):
    return CostlyClassifier(**{"algorithm": algorithm, "config": QUICKLY[algorithm], "random_state": 0, **settings})


# ------------------------------------------------------------------ what is measured


def twins(**more):
    """A problem with whole weights, and one with so many rows instead."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(3, size=40)
    X[rng.random(X.shape) < 0.2] = np.nan
    weight = rng.integers(1, 5, 40)
    schema = Schema.build(["a", "b", "c"], [0, 1, 2], {"a": 1, "b": 2, "c": 4})
    return [
        Problem.build(schema, X, y, weight=weight, **more),
        Problem.build(schema, X.repeat(weight, 0), y.repeat(weight), **more),
    ]


class Buys(ValueFunction):
    """Buys `a` for everyone, `b` where `a` is above 0, and says the class of the sign of both."""

    def __call__(self, state):
        first = state.legal.shape[1] - 3
        q = np.full(state.legal.shape, -9.0)
        q[:, 0] = 0
        q[:, 1] = state.values[:, 0]
        q[:, 2] = state.values[:, 1]
        q[:, first] = 5
        q[:, first + 1] = np.where(state.values[:, 0] > 0, 4, -9)
        return q


@pytest.mark.parametrize("more", [{}, {"class_weight": "balanced"}, {"loss": [[0, 1, 2], [5, 0, 1], [1, 1, 0]]}])
def test_means_are_those_of_repeated_rows(more):
    weighted, repeated = twins(**more)
    assert weighted.loss == pytest.approx(repeated.loss)
    assert weighted.loss_scale == pytest.approx(repeated.loss_scale)
    assert decide_at_once(weighted).value_function.decisions == pytest.approx(decide_at_once(repeated).value_function.decisions)
    for field in fields(Scale):
        assert getattr(Scale.of(weighted), field.name) == pytest.approx(getattr(Scale.of(repeated), field.name))
    assert lacking(weighted) == pytest.approx(lacking(repeated))
    mine, theirs = (measure(p, Greedy(Buys()), None) for p in (weighted, repeated))
    assert (mine.cost, mine.loss, mine.accuracy) == pytest.approx((theirs.cost, theirs.loss, theirs.accuracy))
    assert 0 < theirs.loss_error < mine.loss_error  # fewer different rows tell less
    mine, theirs = (Report(p, rollout(p, Greedy(Buys()), None)) for p in (weighted, repeated))
    for name in ("cost", "loss", "accuracy", "balanced_accuracy"):
        assert getattr(mine, name) == pytest.approx(getattr(theirs, name)), name
    assert mine.bought == pytest.approx(theirs.bought)


def test_equal_weights_of_any_size_change_no_error():
    weighted, _ = twins()
    alike = Problem.build(weighted.schema, np.where(weighted.available, weighted.X, np.nan), weighted.y, weight=np.full(40, 7.0))
    plain = Problem.build(weighted.schema, np.where(weighted.available, weighted.X, np.nan), weighted.y)
    mine, theirs = (measure(p, Greedy(Buys()), Budget().cap(p.schema.costs)) for p in (alike, plain))
    for field in fields(mine):
        assert getattr(mine, field.name) == pytest.approx(getattr(theirs, field.name)), field.name


# ------------------------------------------------------------------ what is learned


@pytest.mark.parametrize("algorithm", QUICKLY)
def test_no_weight_is_no_row_and_equal_weights_are_none(algorithm):
    X, y = numbers(80)
    keep = WEIGHTS[:80] > 0
    moment = {"config": QUICKLY[algorithm].but(max_steps=20)} if algorithm == "family" else {}
    less = learner(algorithm, **moment).fit(X[keep], y[keep])
    weighted = learner(algorithm, **moment).fit(X, y, sample_weight=keep * 0.3)
    assert (weighted.predict_proba(X) == less.predict_proba(X)).all()
    assert weighted.frontier_ == less.frontier_
    assert (WEIGHTS[weighted.validation_rows_] > 0).all()
    plain = learner(algorithm, **moment).fit(X, y)
    alike = learner(algorithm, **moment).fit(X, y, np.full(len(y), 2.5))
    assert (plain.predict_proba(X) == alike.predict_proba(X)).all()


def told_apart_by_weight(n=400):
    """`x` says nothing of the rows as they are; with their weights it says the class of three in four."""
    rng = np.random.default_rng(0)
    x, y = rng.integers(2, size=(2, n))
    return pd.DataFrame({"x": x.astype(float), "noise": rng.normal(size=n)}), y, np.where(x == y, 3, 1)


@pytest.mark.parametrize("algorithm", QUICKLY)
def test_whole_weights_are_as_good_as_repeated_rows(algorithm):
    X, y, weight = told_apart_by_weight()
    settings = {"costs": {"x": "0.1", "noise": 1}, "budget": Tradeoff("0.1")}
    settings |= {"config": replace(QUICK, pretrain_steps=400)} if algorithm == "paper" else {}
    weighted = learner(algorithm, **settings).fit(X, y, sample_weight=weight)
    again = X.index.repeat(weight)
    repeated = learner(algorithm, **settings).fit(X.loc[again], y[again])
    cases = pd.DataFrame({"x": [0.0, 1.0], "noise": [0.0, 0.0]})
    for fitted in (weighted, repeated):
        assert fitted.predict(cases).tolist() == [0, 1]
        assert fitted.predict_proba(cases)[:, 1] == pytest.approx([0.25, 0.75], abs=0.15)
        assert fitted.model_.expected["accuracy"] == pytest.approx(0.75, abs=0.08)  # measured with weights, too
        assert fitted.frontier_[0]["accuracy"] == pytest.approx(0.5, abs=0.12)
    plain = learner(algorithm, **settings).fit(X, y)
    assert plain.model_.expected["accuracy"] < 0.62


@pytest.mark.parametrize("algorithm", QUICKLY)
def test_any_weights_and_settings_give_a_model_that_can_be_kept(frame, algorithm, tmp_path):
    import askwise

    X, y = frame
    for more in ({"class_weight": "balanced"}, {"loss": [[0, 1], [20, 0]]}):
        fitted = learner(algorithm, **PRICES, **more).fit(X, y, sample_weight=WEIGHTS / 7)
        fitted.save(tmp_path / "m.askwise")
        assert (askwise.load(tmp_path / "m.askwise").predict(X) == fitted.predict(X)).all()
        assert np.isfinite(fitted.predict_proba(X)).all()


def test_a_class_without_weight_is_no_class():
    X, y = numbers(classes=3)
    fitted = classifier().fit(X, y, sample_weight=(y != 1).astype(float))
    assert fitted.classes_.tolist() == [0, 2]
    assert set(fitted.predict(X).tolist()) <= {0, 2}


# ------------------------------------------------------------------ scikit-learn


def test_the_score_counts_rows_as_their_weights_say(free, frame):
    X, y = frame
    right = free.predict(X) == y
    assert free.score(X, y, sample_weight=WEIGHTS) == pytest.approx(np.average(right, weights=WEIGHTS))
    assert free.score(X, y, WEIGHTS > 0) == pytest.approx(right[WEIGHTS > 0].mean())
    assert free.score(X, y, sample_weight=pd.Series(WEIGHTS)) == free.score(X, y, sample_weight=WEIGHTS.tolist())


def test_weights_go_through_pipelines_and_cross_validation():
    X, y = numbers()
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    pipeline = make_pipeline(StandardScaler(), classifier())
    pipeline.fit(X, y, costlyclassifier__sample_weight=weight)
    alone = classifier().fit(StandardScaler().fit_transform(X), y, weight)
    assert (pipeline.predict(X) == alone.predict(StandardScaler().fit_transform(X))).all()
    plain = cross_val_score(classifier(), X, y, cv=2, params={"sample_weight": weight})
    assert np.isfinite(plain).all()
    with sklearn.config_context(enable_metadata_routing=True):
        routed = classifier().set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        found = cross_val_score(routed, X, y, cv=2, params={"sample_weight": weight})
    assert np.isfinite(found).all()
    assert (found != plain).any()  # measured with weights, too


WRONG = {
    "too few": ([1.0, 2.0], "sample_weight has shape (2,); there must be one number for each of 160 rows"),
    "a table": (np.ones((160, 2)), "sample_weight has shape (160, 2)"),
    "one number": (2.0, "sample_weight has shape ()"),
    "words": (["much"] * 160, "it must be 160 numbers, one for each row"),
    "negative": (
        np.r_[np.ones(159), -1.0],
        "sample_weight is -1 in row 159 (counted from 0); it must be a finite number, 0 or more",
    ),
    "missing": (np.r_[np.nan, np.ones(159)], "sample_weight is nan in row 0"),
    "without end": (np.r_[np.inf, np.ones(159)], "sample_weight is inf in row 0"),
    "none counts": (np.zeros(160), "sample_weight is zero for all rows; some must be above 0"),
}


@pytest.mark.parametrize("case", WRONG)
def test_weights_that_cannot_be_used_are_refused(free, frame, case):
    weight, words = WRONG[case]
    for use in (classifier().fit, free.score):
        with pytest.raises(InputError) as error:
            use(*frame, sample_weight=weight)
        assert words in str(error.value)


def test_two_classes_must_have_weight():
    X, y = patients(60)
    with pytest.raises(InputError, match="all rows with a weight above 0 are of one class, 'ill'"):
        classifier().fit(X, y, sample_weight=(y == "ill").astype(int))
