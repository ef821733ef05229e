"""What is free is asked before what costs, and a gap in a fixed order does not end a case: in batches and in sessions."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from tests.support.models import answer, family, lacking, paper, table
from tests.support.naive import NaiveCosts
from tests.support.patients import QUICK

from askwise import AverageBudget, CostlyClassifier, FamilyConfig, HardBudget, Tradeoff
from askwise.core.measures import Measure
from askwise.frontier.point import Point

# smoker and town are free; colour is, once pressure has opened the lab; index is computed from others, without a fee
FREE = {"costs": {"age": "0.1", "pressure": 1, "smoker": 0, "colour": 0, "town": 0},
        "setup": {"lab": ("0.5", ["pressure", "colour"])}, "derived": {"index": ["age", "pressure"]}}  # fmt: skip
NAIVE = NaiveCosts(**FREE)
ROWS, _ = table(30, seed=4)
KINDS = {
    "family": (family, None),
    "a mixture": (family, AverageBudget(1.1)),
    "a fixed order": (family, AverageBudget(1.5)),
    "a hard budget": (family, HardBudget("0.6")),
    "nothing to spend": (family, HardBudget(0)),
    "paper": (paper, None),
    "paper, a mixture": (paper, AverageBudget(1.1)),
}


def can_have(test, held, gone):
    sources = FREE["derived"].get(test, ())
    return test in held or (test not in gone and all(can_have(source, held, gone) for source in sources))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_free_is_asked_before_what_costs_and_before_deciding(kind):
    make, budget = KINDS[kind]
    model = make(*table(), budget=budget, **FREE)
    report = model.acquire(ROWS, ids=range(len(ROWS)))
    first = set()
    for i, (_, row) in enumerate(ROWS.iterrows()):
        gone = lacking(model, row)
        session = model.session(refused=gone, case_id=i, outside=True)
        while True:
            step, held = session.next(), set(session.answers)
            free = [t for t in model.schema.tests if t not in held and can_have(t, held, gone) and not NAIVE.price(t, held)]
            assert not free or step.test in free
            if step.decision is not None:
                break
            if free:
                assert (step.test_cost, step.reason) == (
                    0,
                    f"{step.test} is free, so it is asked before tests that cost something",
                )
                first.add(step.test)
            session.tell(step.test, answer(model, row, step.test))
        assert tuple(session.answers) == report.tests[i]
    assert {"smoker", "town"} <= first


def test_until_what_is_free_is_answered_what_was_measured_is_expected():
    """A family learns from cases that hold what is free for everybody."""
    model = family(*table(), budget=AverageBudget("0.8"), **FREE)
    (point, _), session = model.followed, model.session(case_id=1)
    assert point.prefix is None
    for test, value in (("smoker", False), ("town", "Rom")):
        step = session.next()
        assert step.expected.total == pytest.approx(point.cost)
        assert step.expected.loss == pytest.approx(min(point.loss, *step.losses.values()))
        assert all(option.gain is None for option in step.why)
        session.tell(test, value)
    step = session.next()
    assert step.expected.total != pytest.approx(point.cost)
    assert step.why[0].gain is not None
    session.tell("pressure", 0.25)
    assert session.next().test == "colour"  # it is free only now, and such cases were learned from
    assert session.next().why[0].gain is not None


def test_a_free_test_that_is_refused_is_not_waited_for():
    model = family(*table(), **FREE)
    session = model.session(refused=["smoker"], case_id=1)
    assert session.next().test == "town"
    session.refuse("town")
    assert session.next().test not in ("smoker", "town")


@pytest.mark.parametrize("algorithm", ["family", "paper"])
def test_free_noise_does_not_harm_what_is_learned(algorithm):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(700, 5))
    y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "up", "down")
    config = FamilyConfig(max_steps=300, width=32, bins=0) if algorithm == "family" else replace(QUICK, max_epochs=20)
    made = CostlyClassifier(costs=[1, 0, 0, 0, 0], budget=Tradeoff(0.01), config=config, algorithm=algorithm, random_state=0)
    made.fit(X[:400], y[:400])
    report = made.acquire(X[400:])
    assert all(len(tests) >= 4 for tests in report.tests)  # the free ones, and mostly the one that tells
    assert made.score(X[400:], y[400:]) > 0.85


# ------------------------------------------------------------------ a fixed order with a gap


@cache
def ordered():
    """A model that asks everybody the test that tells most, and nothing else; another is nearly as good. 70 of 100 are 'no'."""
    rng = np.random.default_rng(0)
    tells = rng.normal(size=800)
    X = pd.DataFrame({"noise": rng.normal(size=800), "second": tells + 0.3 * rng.normal(size=800), "first": tells})
    y = np.where(tells > np.quantile(tells, 0.7), "yes", "no")
    config = FamilyConfig(max_steps=400, width=16, bins=0)
    model = CostlyClassifier(config=config, random_state=0).fit(X[:500], y[:500]).model_
    assert model.schema.tests[int(np.argmin(model.family.rank))] == "first"
    points = (model.points[0], Point(0.0, Measure(1.0, 0.01, 0.99, 100), prefix=1))
    return replace(model, points=points), X[500:], y[500:]


def test_a_case_that_cannot_follow_an_order_goes_on_with_what_the_model_would_buy_instead():
    model, X, y = ordered()
    majority = np.mean(y == "no")
    assert (model.predict(X) == y).mean() > 0.9
    without = X.assign(first=np.nan)
    report = model.acquire(without)
    assert set(report.tests) == {("second",)}  # for the same money
    assert (report.prediction == y).mean() > majority + 0.1
    assert (report.cost <= 1).all()


def test_the_reason_is_the_true_one():
    model, _, _ = ordered()
    session = model.session()
    assert session.next().reason == "first is next in the order that every case follows here"
    session.refuse("first")
    step = session.next()
    assert step.test == "second"
    lacks = "some tests of the order that every case follows here are not available or not affordable"
    assert step.reason.startswith(f"{lacks}; second is expected to save ")
    assert step.why[0].gain is not None
    session.refuse("second")
    step = session.next()
    if step.test is None:  # noise tells nothing
        assert step.reason == f"{lacks}, and no other test is expected to be worth its cost"
    nobody = model.session(refused=model.schema.tests).next()
    limit = "within 1, which no case exceeds at this point of the frontier"
    assert nobody.reason == f"there is nothing more that could be asked {limit}"
    through = model.session()
    through.tell("first", 0.5)
    assert through.next().reason == "all tests of the order that every case follows here are known"
    nothing = replace(model, points=model.points[:1]).session().next()
    assert (nothing.test, nothing.reason) == (None, "at this budget the case is decided without any test that costs")


def test_a_prefix_is_measured_as_it_is_run():
    """Also the rows that lack a test of the order keep to what the order costs, and spend it otherwise."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(500, 4))
    y = (X[:, 0] + 0.5 * X[:, 1] > 0).astype(int)
    X[rng.random(500) < 0.4, 0] = np.nan
    made = CostlyClassifier(config=FamilyConfig(max_steps=200, width=16, bins=0), random_state=0).fit(X, y)
    model = made.model_
    prefixes = [p for p in model.points if p.prefix and p.cap is None]
    for point in prefixes:
        run = replace(model, points=(model.points[0], replace(point, measure=Measure(point.cost, 0.0, 1.0, 100))))
        costs = run.acquire(X).cost
        assert costs.max() <= point.prefix
        assert run.limit(run.followed[0]) == int(point.prefix / model.schema.costs.smallest_unit)
