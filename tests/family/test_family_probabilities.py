"""Class probabilities as the goal of a family: fitted, saved, asked, resumed."""

import numpy as np
import pytest
from sklearn.metrics import log_loss
from tests.support.patients import PRICES, QUICK_FAMILY, patients

from askwise import CostlyClassifier, HardBudget, load
from askwise.core.budget import Budget
from askwise.core.episode import measure
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.core.scoring import largest
from askwise.errors import StateError
from askwise.family.run import run


@pytest.fixture(scope="module")
def fitted():
    X, y = patients(160)
    return CostlyClassifier(**PRICES, algorithm="family", config=QUICK_FAMILY, loss="brier", random_state=0).fit(X, y), X, y


def test_a_fit_measures_the_rule_and_files_keep_it(fitted, tmp_path):
    learned, X, _ = fitted
    model = learned.model_
    assert (model.rule, model.objective) == ("brier", "Brier score")
    assert model.points[0].loss == pytest.approx(model.loss_scale, rel=0.1)
    assert min(p.loss for p in model.points) < 0.8 * model.loss_scale
    learned.save(tmp_path / "m.askwise")
    model.export(tmp_path / "m.npz")
    for name in ("m.askwise", "m.npz"):
        again = load(tmp_path / name)
        assert again.family.rule == "brier"
        assert (again.predict(X) == learned.predict(X)).all()
        assert again.predict_proba(X) == pytest.approx(learned.predict_proba(X), abs=1e-12)


def test_forecasts_are_losses_that_can_be(fitted):
    model = fitted[0].model_
    for most in ("0.5", "2"):
        step = model.at(HardBudget(most)).session({"age": 40}).next()
        assert 0 <= step.expected.loss <= largest(model.loss, model.rule)
        p = np.array(list(step.probabilities.values()))
        assert list(step.losses.values()) == pytest.approx([1 - (p**2).sum()] * 2)


def problem_of(rule, seed=0, rows=120):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 3))
    return Problem.build(Schema.build(["a", "b", "c"], [0, 1]), X, (X[:, 0] + rng.normal(size=rows) > 0).astype(int), loss=rule)


def test_a_training_is_resumed_for_the_same_rule_alone():
    states = []
    whole = run(problem_of("log"), problem_of("log", 1), Budget(), QUICK_FAMILY, 0, save=states.append)
    again = run(problem_of("log"), problem_of("log", 1), Budget(), QUICK_FAMILY, 0, resume=states[0])
    assert [p.shown for p in again.points] == [p.shown for p in whole.points]
    with pytest.raises(StateError, match="another run"):
        run(problem_of("brier"), problem_of("brier", 1), Budget(), QUICK_FAMILY, 0, resume=states[0])
    test = problem_of("log", 2)
    point = min(whole.points, key=lambda p: p.loss)
    assert measure(test, whole.policy(point), None).loss < log_loss(test.y, np.tile(test.shares, (len(test), 1)))
