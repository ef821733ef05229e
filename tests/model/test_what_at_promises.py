"""One training, asked for anything by `at`: budgets, confidences, targets and class weights; and two tests that tell something
only together."""

import itertools
import time
import warnings

import numpy as np
import pytest
from tests.support.patients import PRICES, patients

from askwise import AtLeast, AtMost, AverageBudget, Budget, ClassWeights, CostlyClassifier, HardBudget, StackConfig
from askwise.errors import Doubt, InputError
from askwise.reports.model_report import describe

pd = pytest.importorskip("pandas", reason="pandas is not installed")

QUICK = StackConfig.quick().but(folds=3, value_steps=60, network_steps=40)


def fitted(X, y, costs, budget=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", Doubt)
        return CostlyClassifier(**costs, budget=budget, config=QUICK, random_state=0, n_jobs=1).fit(X, y).model_


@pytest.fixture(scope="module")
def model():
    return fitted(*patients(260), PRICES)


def anything(rng, model):
    """A budget of several parts; those of `tighter` are compared part by part."""
    name, share = rng.choice(model.schema.classes), float(rng.choice([0.3, 0.5, 0.7, 0.8, 0.9]))
    sure = rng.choice([None, 0.5, 0.8, 0.95])
    goal = [
        Budget(),
        AtLeast(accuracy=share, confidence=sure),
        AtLeast(recall={name: share}, confidence=sure),
        AtLeast(recall={name: share}, specificity=0.3, confidence=sure),
        AtMost(loss=1 - share, confidence=sure),
    ][rng.integers(5)]
    money = AverageBudget(
        round(float(rng.uniform(0, 3)), 2), confidence=rng.choice([None, 0.8, 0.95]), mixing=bool(rng.integers(2))
    )
    hard = HardBudget(round(float(rng.uniform(0, 4)), 2))
    weights = ClassWeights({name: float(rng.choice([0.01, 0.2, 3, 500]))})
    for part, often in ((money, 0.6), (hard, 0.6), (weights, 0.4)):
        goal &= part if rng.random() < often else Budget()
    return goal


def tighter(a, b):
    """Whether whatever keeps b keeps a, and both are about the same figures, weights and ways to follow them."""
    if [t.key for t in a.targets] != [t.key for t in b.targets] or a.class_weights != b.class_weights:
        return False
    harder = all(
        t.sign * t.value <= u.sign * u.value and (t.confidence or 0) <= (u.confidence or 0)
        for t, u in zip(a.targets, b.targets, strict=True)
    )
    within = all(x is None or (y is not None and x >= y) for x, y in ((a.average, b.average), (a.hard, b.hard)))
    sure = a.average is None or ((a.confidence or 0) <= (b.confidence or 0) and (a.targets or a.mixing == b.mixing))
    # without any limit or target, the cheapest is followed that is as good as the best as far as one can tell
    return harder and within and sure and (a.targets or a.average is not None or a.hard is not None)


def reached(model, budget):
    """The model at a budget; None where that is refused."""
    try:
        return model.at(budget)
    except InputError:
        return None


@pytest.mark.parametrize("seed", range(3))
def test_anything_is_answered_at_once_and_a_tighter_promise_never_promises_more(model, seed):
    promised, rng = dict[Budget, float](), np.random.default_rng(seed)
    for budget in (anything(rng, model) for _ in range(50)):
        began, there = time.perf_counter(), reached(model, budget)
        assert time.perf_counter() - began < 1
        assert there is not None or budget.targets  # only a target may be beyond reach
        assert there is None or there.family is model.family  # nothing was trained
        assert there is None or budget.average is None or there.expected["cost"] <= float(budget.average) + 1e-9
        promised[budget] = np.inf if there is None else there.expected["cost" if budget.targets else "loss"]
    pairs = [(a, b) for a, b in itertools.permutations(promised, 2) if tighter(a, b)]
    assert pairs
    assert all(promised[a] <= promised[b] + 1e-9 for a, b in pairs)


@pytest.mark.parametrize("draw", [0, None], ids=["as often as each other", "by chance"])
def test_two_tests_that_tell_something_together_reach_three_quarters_for_the_money_of_one(draw):
    """By chance one of them alone seems better than nothing, and costs all that may be spent."""
    rows = np.array(list(itertools.product([0.0, 1.0], repeat=2)))
    rng = np.random.default_rng(0)
    X = pd.DataFrame(
        rng.permutation(np.tile(rows, (60, 1))) if draw == 0 else rows[rng.integers(4, size=240)], columns=["u", "v"]
    )
    model = fitted(X, np.where(X.u != X.v, "differ", "same"), {"costs": {"u": 1, "v": 1}}, AverageBudget(1))
    assert model.expected["accuracy"] > 0.73
    assert model.expected["cost"] == pytest.approx(1)
    assert "by lot, 50 % of cases follow a policy that costs 2 on average, the others one that costs 0" in describe(model)
    alone = model.at(AverageBudget(1, mixing=False))
    assert alone.blend.drawn == 0
    assert alone.expected["accuracy"] < 0.6
    if draw == 0:
        assert alone.expected["cost"] == 0
        assert "of 1 per case only 0 is spent: the next better policy costs 2" in describe(alone)


def test_a_class_is_weighed_once():
    counted = fitted(patients(260)[0], (patients(260)[1] == "ill").astype(int), PRICES)
    with pytest.raises(InputError, match=r"^ClassWeights names the class 1 as 1 and as '1'; name it once$"):
        counted.at(ClassWeights({1: 5, "1": 3}))
