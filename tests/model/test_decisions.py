"""Decisions that are not classes, through every way in."""

from fractions import Fraction

import numpy as np
import pytest
from tests.support.members import QUICK

from askwise import AverageBudget, CostlyClassifier, HardBudget, Tradeoff, load
from askwise.core.budget import Budget
from askwise.core.cost_spec import CostSpec
from askwise.core.episode import measure
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError, StateError
from askwise.methods.exact import Exact
from askwise.model import archives
from askwise.model.archives import MODEL
from askwise.stack.run import run

LOSS = {"ill": {"ill": 0, "well": 9, "specialist": 0.2, "wait": 3}, "well": {"ill": 4, "well": 0, "specialist": 0.2, "wait": 1}}
DECISIONS = {"specialist": 6, "wait": 0}
BUDGETS = [Budget(), Tradeoff(0.3), AverageBudget(3), HardBudget(4), HardBudget(7), AverageBudget(4) & HardBudget(8)]


def patients(n, seed=0):
    rng = np.random.default_rng(seed)
    state = rng.normal(size=n)
    X = np.column_stack([state + rng.normal(size=n), state + 0.7 * rng.normal(size=n), rng.normal(size=n)])
    return X, np.where(state > 0.3, "ill", "well")


def classifier(**more):
    settings = {"algorithm": "stack", "config": QUICK, "random_state": 0}
    return CostlyClassifier([1, 3, 1], decisions=DECISIONS, loss=LOSS, **(settings | more))


@pytest.fixture(scope="module")
def fitted():
    return classifier().fit(*patients(400))


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_all_ways_in_agree_and_keep_the_budget(fitted, budget, tmp_path):
    X, _ = patients(60, 1)
    there = fitted.at(budget)
    decided = there.acquire(X)
    cap = there.model_.budget.hard
    assert cap is None or (decided.cost <= float(cap)).all()
    names = set(decided.prediction)
    assert names <= {"ill", "well", "specialist", "wait"}
    assert np.isnan(decided.probability[np.isin(decided.prediction, list(DECISIONS))]).all()
    there.save(tmp_path / "m.askwise")
    there.model_.export(tmp_path / "m.npz")
    for again in (load(tmp_path / "m.askwise"), load(tmp_path / "m.npz")):
        assert (again.predict(X) == decided.prediction).all()
    for i in range(12):
        session = there.model_.session(case_id=str(i))
        while (step := session.next()).test is not None:
            session.tell(step.test, float(X[i, int(step.test[1:])]))
        alone = there.acquire(X[i : i + 1], ids=[str(i)])
        assert (step.decision, step.cost) == (alone.prediction[0], pytest.approx(alone.cost[0]))
        assert step.decision_cost == DECISIONS.get(step.decision, 0)
        assert set(step.losses) == {"ill", "well", "specialist", "wait"}
        assert (step.probability is None) == (step.decision in DECISIONS)


def test_what_a_decision_costs_is_part_of_what_is_spent(fitted):
    X, y = patients(300, 2)
    dear = fitted.at(HardBudget(8)).model_
    report = dear.report(dear.problem(X, y))
    sent = report.episodes.decision == 2
    assert sent.mean() > 0.3
    tests = dear.schema.costs.cost(report.episodes.mask)
    assert (report.episodes.cost - tests == np.where(sent, 6, 0) / float(dear.schema.costs.smallest_unit)).all()
    assert report.confusion.sum() == 300
    assert report.other_decisions["specialist"].value == pytest.approx(sent.mean())
    named = report.episodes.decision < 2
    right = (report.episodes.decision == report.truth)[named].mean() if named.any() else np.nan
    assert report.classified_accuracy.value == pytest.approx(right, nan_ok=True)
    cheap = fitted.at(HardBudget(5)).acquire(X)
    assert "specialist" not in set(cheap.prediction)


def small(n, seed):
    """Two binary tests of a binary state; the optimum sends the doubtful away."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = np.stack([np.where(rng.random(n) < p, y, 1 - y) for p in (0.75, 0.8)], 1)
    schema = Schema.build(["a", "b"], [0, 1], CostSpec([1, 2], decisions={"defer": 4}))
    return Problem.build(schema, X - 0.5, y, loss=[[0, 1, 0.02], [1, 0, 0.02]])


def test_it_comes_near_the_exact_optimum():
    test = small(3000, 2)
    stack, exact = run(small(500, 0), small(200, 1), None, QUICK.but(value_steps=300), 0).shared, Exact(test)
    for lam in map(Fraction, ("0.02", "0.08", "0.1")):
        best, came = exact.solve(lam, None), measure(test, stack.policy(float(lam)), None)
        optimum, total = float(best.loss + lam * best.cost), came.loss + float(lam) * came.cost
        assert optimum - 1e-9 <= total <= optimum + 0.1 * (test.prior_loss - optimum)
    deferring = exact.solve(Fraction("0.05"), None)
    assert float(deferring.loss) < 0.15  # of which classes alone would lose 0.2


@pytest.mark.parametrize(("more", "sentence"), [
    (dict(loss=None), "nothing says what the decision 'specialist' loses"),
    (dict(loss=[[0, 1], [1, 0]]), "it must be (2, 4)"),
    (dict(loss="log"), "'specialist' is a decision that is not a class"),
    (dict(decisions={"ill": 3}), "the decision 'ill' is a class"),
    (dict(decisions={"specialist": -3, "wait": 0}), "the cost of the decision 'specialist' is -3"),
    (dict(decisions=["specialist"]), "decisions is ['specialist']"),
    (dict(decisions={"specialist": 3, "wait": 0, "pray": 0}), "no column for the decision 'pray'"),
    (dict(decisions={"specialist": 3}), "has a column 'wait', which is neither a class nor one of the other decisions"),
])  # fmt: skip
def test_what_cannot_be_used_is_refused_in_a_sentence(more, sentence):
    other = classifier()
    with pytest.raises(InputError) as caught:
        other.set_params(**more).fit(*patients(60))
    assert sentence in str(caught.value)


@pytest.mark.parametrize("change", [
    lambda arrays, card: card.update(other_decisions=["specialist"]),
    lambda arrays, card: card.update(other_decisions=["specialist", "ill"]),
    lambda arrays, card: card.update(other_decisions=["specialist", 3]),
    lambda arrays, card: arrays.update({"costs/decisions": np.array([-1, 0])}),
    lambda arrays, card: arrays.update({"costs/decisions": np.array([2**62, 2**62])}),
    lambda arrays, card: arrays.update(loss=arrays["loss"][:, :2]),
    lambda arrays, card: card.update(at_once=card["at_once"][:2]),
])  # fmt: skip
def test_a_damaged_file_is_refused(fitted, tmp_path, change):
    path = tmp_path / "m.askwise"
    fitted.save(path)
    arrays, card = archives.read(path, MODEL)
    change(arrays, card)
    archives.write(path, MODEL, arrays, card, lambda _: None)
    with pytest.raises(StateError, match="damaged"):
        load(path)
