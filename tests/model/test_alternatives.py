"""Other kinds of policies: what was measured of them, and what each makes of an amount of money."""

import json

import numpy as np
import pytest
from tests.support.members import QUICK as quick_members
from tests.support.patients import NAIVE, PRICES

import askwise
from askwise import AverageBudget, CostlyClassifier, HardBudget
from askwise.core.measures import Measure
from askwise.errors import StateError
from askwise.frontier.point import ADAPTIVE, KINDS, LEARNED_STOPPING, SAME_TESTS, Point
from askwise.model import archives
from askwise.model.alternatives import all_tests, alternatives, at_average, best_of_kind, comparison, kinds_followed

QUICK = quick_members.but(value_steps=40, pool_states=400, growths=1, folds=3)


@pytest.fixture(scope="module")
def stack(frame):
    return CostlyClassifier(**PRICES, algorithm="stack", config=QUICK, random_state=0).fit(*frame)


def test_the_kind_of_a_policy_follows_from_its_point():
    m = Measure(0.0, 0.5, 0.5, 1)
    assert Point(0.0, m, prefix=3).kind == SAME_TESTS
    assert Point(0.1, m, breadth=1).kind == LEARNED_STOPPING
    assert Point(0.1, m, breadth=8).kind == Point(0.1, m).kind == ADAPTIVE


def test_a_stack_measures_every_kind_on_all_rows(stack, frame):
    found = alternatives(stack.model_)
    assert {each.kind for each in found} == set(KINDS)
    assert {each.measure.n for each in found} == {len(frame[0])}
    # the best of every kind is among what was measured, and so is what the model keeps
    costs = np.array([each.measure.cost for each in found])
    assert all(np.abs(costs - p.cost).min() < 1e-5 for p in stack.model_.frontier)


def test_all_tests_cost_what_those_cost_that_each_case_can_have(stack, frame):
    everything, X = all_tests(stack.model_), frame[0]
    bills = [NAIVE.cost({test for test in X.columns if row[test]}) for _, row in X.notna().iterrows()]
    assert everything.n == len(X)
    assert everything.cost == pytest.approx(float(np.mean([float(bill) for bill in bills])), rel=1e-5)


def naive_best(measures, b):
    """The least loss of all mixtures of two policies that cost b on average, or of one that costs less."""
    best = min(m.loss for m in measures if m.cost <= b)
    for low in measures:
        for high in measures:
            if low.cost <= b < high.cost:
                share = (b - low.cost) / (high.cost - low.cost)
                best = min(best, (1 - share) * low.loss + share * high.loss)
    return best


def test_each_level_has_the_best_of_each_kind_and_what_is_used(stack):
    model = stack.model_
    levels = comparison(model)
    assert 4 <= len(levels) <= 6
    assert levels[-1].money == pytest.approx(2.9)  # all tests
    found = alternatives(model)
    for level in levels:
        assert list(level.best) == list(KINDS)
        for kind, best in level.best.items():
            own = [model.points[0].measure, *(each.measure for each in found if each.kind == kind)]
            assert best.loss == pytest.approx(naive_best(own, level.money), abs=1e-6)
            assert best.cost <= level.money + 1e-9
            assert best.loss_error > 0
            # what is used is the best of all, but for draws between two policies that are better by no more than noise
            assert level.used.loss <= best.loss + best.loss_error
        there = at_average(model, level.money)
        assert level.used == there.measured
        followed = {p.kind for p in there.followed}
        assert set(level.kinds) <= followed
    assert best_of_kind(model, SAME_TESTS, 0.0).cost == 0


def test_more_money_never_makes_a_kind_worse(stack):
    levels = comparison(stack.model_)
    for kind in KINDS:
        losses = [level.best[kind].loss for level in levels]
        assert losses == sorted(losses, reverse=True)


def test_one_kind_alone_is_not_compared(free, stack):
    assert comparison(free.model_) == []
    assert all_tests(free.model_) is None
    assert comparison(stack.model_.at(HardBudget(0))) == []  # nothing can be bought


def test_under_a_hard_budget_only_policies_that_keep_it_are_compared(stack):
    model = stack.model_.at(HardBudget(1))
    levels, most = comparison(model), model.budget.cap(model.schema.costs)
    assert levels[-1].money == 1
    assert SAME_TESTS in levels[-1].best
    assert levels[-1].used == model.at(AverageBudget(1) & HardBudget(1)).measured
    keeping = [p for p in model.points if model.family.most_paid(model.schema.costs, p.prefix, p.cap) <= most]
    assert set(levels[0].best) >= {p.kind for p in keeping if p.cost > 0}
    for level in levels:
        assert all(level.used.loss <= best.loss + best.loss_error for best in level.best.values())
    plain = [each.measure for each in alternatives(model) if each.tests and naive_most(model, each.tests) <= 1]
    own = [model.points[0].measure, *plain, *(p.measure for p in keeping if p.kind == SAME_TESTS)]
    assert levels[-1].best[SAME_TESTS].loss == pytest.approx(naive_best(own, 1), abs=1e-6)


def naive_most(model, tests):
    """What the first tests of the order cost together."""
    order = np.argsort(model.family.rank)[:tests]
    return NAIVE.cost({model.schema.tests[i] for i in order})


def test_deciding_at_once_is_no_kind_of_its_own_in_a_mixture(stack):
    model = stack.model_
    cheap = min(p.cost for p in model.frontier if p.cost > 0)
    there = at_average(model, cheap / 2)
    assert there.followed[0] is model.points[0]
    assert kinds_followed(there) == (there.followed[1].kind,)
    assert kinds_followed(at_average(model, 0.0)) == ("decides at once",)


def test_it_survives_a_file_and_stays_small(stack, tmp_path):
    stack.save(tmp_path / "m.askwise")
    assert alternatives(askwise.load(tmp_path / "m.askwise")) == alternatives(stack.model_)
    assert len(json.dumps(stack.model_.facts["measured"])) < 40_000


@pytest.mark.parametrize("damage", [{"kind": 3}, {"tests": 99}, {"cap": "all"}, {"loss": -1}, {"cost": "much"}])
def test_a_file_whose_figures_are_none_is_refused(stack, tmp_path, damage):
    facts = json.loads(json.dumps(stack.model_.facts))
    facts["measured"][0] |= damage
    stack.save(tmp_path / "m.askwise")
    arrays, card = archives.read(tmp_path / "m.askwise", archives.MODEL)
    archives.write(tmp_path / "m.askwise", archives.MODEL, arrays, {**card, "facts": facts})
    with pytest.raises(StateError, match="damaged"):
        askwise.load(tmp_path / "m.askwise")
