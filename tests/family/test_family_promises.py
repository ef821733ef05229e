"""What a model expects at a budget is what it does there, and a further constraint never promises more."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.support.models import family as random_family

from askwise import AverageBudget, Budget, CostlyClassifier, FamilyConfig, HardBudget, Tradeoff
from askwise.core.cost_spec import CostSpec
from askwise.core.episode import tally
from askwise.core.measures import Measure
from askwise.core.schema import Schema
from askwise.family import frontier
from askwise.family.candidates import caps_of, possible_amounts
from askwise.family.conditions import Scale
from askwise.family.config import MeasuringConfig
from askwise.family.start import halves
from askwise.frontier.hull import hull, useful
from askwise.frontier.point import Point
from askwise.model import file

QUICK = FamilyConfig(max_steps=150, width=16, bins=4, prefix_batch=32, parallel_cases=16, max_tests=6)
PRICES = {"a": 3, "b": 2, "c": 4, "d": 1, "e": 5}


def rows(n: int = 400, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """All tests say something, so that more money helps; some values are missing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    y = (X @ [1.0, 0.7, 0.9, 0.4, 0.8] + rng.normal(size=n) > 0).astype(int)
    return np.where(rng.random(X.shape) < 0.05, np.nan, X), y


@pytest.fixture(scope="module")
def fitted():
    import pandas as pd

    X, y = rows()
    made = CostlyClassifier(costs=PRICES, algorithm="family", config=QUICK, random_state=0)
    return made.fit(pd.DataFrame(X, columns=list(PRICES)), y)


@pytest.fixture(scope="module")
def model(fitted):
    return fitted.model_


@pytest.fixture(scope="module")
def measured(fitted, model):
    """The rows that the fit measured on, as cases."""
    import pandas as pd

    X, y = rows()
    kept = fitted.validation_rows_
    problem = model.problem(pd.DataFrame(X[kept], columns=list(PRICES)), y[kept])
    return halves(problem)[1]


HARD = [0, 1, 2, 2.5, 4, 6, 7, 8, 9, 9.99, 11, 13, 14.5, 15, 40]


@pytest.mark.parametrize("average", [None, 0, 1.5, 4, 8])
def test_what_is_expected_under_a_hard_budget_is_what_is_run(model, measured, average):
    for hard in HARD:
        budget = HardBudget(hard) if average is None else AverageBudget(average) & HardBudget(hard)
        there = model.at(budget)
        done = there.rollout(measured)
        assert done.cost.max() <= hard / float(model.schema.costs.smallest_unit)
        found, told = tally(measured, done).measure(measured.schema.costs), there.measured
        assert told.n == len(measured)
        if not there.blend.share:
            assert found.loss == pytest.approx(told.loss, abs=1e-9)
            assert found.accuracy == pytest.approx(told.accuracy, abs=1e-9)
            assert found.loss_error == pytest.approx(told.loss_error, abs=1e-9)
            if there.followed[0].cap is not None or there.followed[0].prefix is not None:
                assert found.cost == pytest.approx(told.cost, abs=1e-9)


def test_a_budget_between_two_measured_ones_keeps_to_the_smaller(model, measured):
    """Nobody pays more than the point that is reported allows."""
    costs = model.schema.costs
    limits = sorted({model.family.most_paid(costs, p.prefix, p.cap) for p in model.points} - {np.inf})
    assert len(limits) > 3
    for small, large in pairwise(limits):
        between = model.at(HardBudget(float(costs.money((small + large) / 2))))
        assert between.expected == model.at(HardBudget(float(costs.money(small)))).expected
        assert costs.money(between.rollout(measured).cost.max()) <= costs.money(small)


def test_a_hard_budget_named_in_fit_is_measured_itself(monkeypatch):
    X, y = rows(200)
    seen, usual = [], frontier.under_caps

    def watched(*given):
        tried = usual(*given)
        seen.extend(t.cap for t in tried)
        return tried

    monkeypatch.setattr(frontier, "under_caps", watched)
    prices = [f"{1.37 * (i + 1):.2f}" for i in range(5)]
    quick = QUICK.but(max_steps=60)
    made = CostlyClassifier(prices, HardBudget("6.66"), algorithm="family", config=quick, random_state=0).fit(X, y)
    cap = made.model_.budget.cap(made.model_.schema.costs)
    assert cap == 666
    assert cap in seen
    assert cap not in caps_of(made.model_.schema, made.model_.family.scale, MeasuringConfig())


AVERAGES = [0, 0.3, 1, 2, 3.3, 5, 8, 12, 20]


@pytest.mark.parametrize("seed", range(4))
def test_a_further_constraint_never_promises_more(model, seed):
    """Also where luck made points under hard budgets look better than those without."""
    if seed:
        rng = np.random.default_rng(seed)
        points = [
            replace(p, measure=replace(p.measure, loss=p.loss * rng.uniform(0.5, 1.5), cost=p.cost * rng.uniform(0.7, 1.0)))
            for p in random_points(model, rng)
        ]
        model = replace(model, points=(model.points[0], *sorted(points, key=lambda p: p.cost)))

    def loss(budget: Budget) -> float:
        told = model.at(budget).expected
        return told["loss"] + (budget.lam or 0) * told["cost"]

    def falls(values: list[float]) -> bool:
        return all(a >= b - 1e-9 for a, b in pairwise(values))

    assert falls([loss(HardBudget(h)) for h in HARD])
    assert falls([loss(AverageBudget(a)) for a in AVERAGES])
    for h in HARD:
        assert falls([loss(AverageBudget(a) & HardBudget(h)) for a in AVERAGES])
    for mixing in (False, True):  # where two policies are mixed only if no single one is near, a further one may take their place
        for a in AVERAGES:
            average = AverageBudget(a, mixing=mixing)
            assert falls([*(loss(average & HardBudget(h)) for h in HARD), loss(average)])
        for h in HARD:
            assert falls([loss(AverageBudget(a, mixing=mixing) & HardBudget(h)) for a in AVERAGES])
    for lam in (0, 0.002, 0.02, 0.2, 2):
        assert falls([*(loss(Tradeoff(lam) & HardBudget(h)) for h in HARD), loss(Tradeoff(lam))])


def random_points(model, rng):
    """Points under many limits, and without."""
    caps = [None, *rng.integers(1, model.schema.costs.total, 6).tolist()]
    lams = (0.0, 0.01, 0.1)
    free = [p for p in model.points if p.prefix]
    return [*free, *(Point(lam, rng.choice([p.measure for p in model.points]), cap=cap) for cap in caps for lam in lams)]


def test_all_that_was_measured_is_kept_that_some_budget_follows():
    rng = np.random.default_rng(0)
    for _ in range(50):
        cost, score, most = rng.integers(0, 9, 20).astype(float), rng.random(20), rng.choice([3, 5, 8, np.inf], 20)
        kept = set(useful(cost, score, most).tolist())
        for limit in (3, 5, 8, np.inf):
            among = np.flatnonzero(most <= limit)
            assert set(among[hull(cost[among], score[among])].tolist()) <= kept
        assert kept <= set(useful(cost, score, most, 0.1).tolist())


def test_two_policies_with_different_limits_are_mixed_as_predict_sessions_and_files_say(tmp_path):
    """Each case keeps to the limit of the policy that it follows."""
    made = random_family(seed=3)
    costs, points = made.schema.costs, made.points
    small, large = HardBudget("0.8").cap(costs), HardBudget("2.2").cap(costs)
    arms = [
        Point(made.family.scale.low, Measure(c, w, 1 - w, 100), cap=cap) for c, w, cap in ((0.5, 0.3, small), (2, 0.1, large))
    ]
    model = replace(made, points=(points[0], *arms), budget=AverageBudget(1) & HardBudget("2.5"))
    assert [p.cap for p in model.followed] == [small, large]
    model.save(tmp_path / "m.askwise")
    from tests.support.models import answer, lacking, table

    X, _ = table(60, 5)
    ids = [f"case {i}" for i in range(len(X))]
    problem = model.problem(X, ids=ids)
    done, second = model.rollout(problem), model.policy.takes_second(problem.keys)
    assert 0 < second.sum() < len(X)
    assert done.cost[~second].max() <= small < done.cost[second].max() <= large
    there = file.load(tmp_path / "m.askwise").acquire(X, ids=ids)
    for i, row in X.iterrows():
        session = model.session(case_id=ids[i], refused=lacking(model, row))
        while (step := session.next()).decision is None:
            session.tell(step.test, answer(model, row, step.test))
        assert (step.decision, session.cost) == (there.prediction[i], pytest.approx(there.cost[i]))
        assert list(session.answers) == list(there.tests[i])


def test_where_tests_add_up_to_few_amounts_these_are_the_hard_budgets():
    schema = Schema.build(["a", "b", "c"], [0, 1], CostSpec({"a": 2, "b": 5, "c": 5}, setup={"blood": (1, ["b", "c"])}))
    assert possible_amounts(schema.costs) == [1, 2, 3, 5, 6, 7, 8, 10, 11, 12, 13]
    scale = Scale(1.0, 13.0, 2.0, 0.01, 1.0)
    assert caps_of(schema, scale, MeasuringConfig()) == possible_amounts(schema.costs)
    others = caps_of(schema, scale, MeasuringConfig(few_amounts=10, caps=3, test_caps=2))
    assert others == [2, 5, 6, 13]
