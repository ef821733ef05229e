"""Budgets as values, and the lambdas that go with them."""

import re
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff, lam_range, positive_costs
from askwise.core.costs import CostFunction
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError


def problem(*amounts, loss=None) -> Problem:
    """Tests with these prices, and one row of each of two classes."""
    schema = Schema.build([f"t{i}" for i in range(len(amounts))], [0, 1], costs=amounts)
    return Problem.build(schema, np.zeros((2, len(amounts))), [0, 1], loss=loss)


def prices_of(*amounts) -> CostFunction:
    return problem(*amounts).schema.costs


# ------------------------------------------------------------------ joining


def test_and_joins_in_any_order():
    both = AverageBudget(12) & HardBudget(40)
    assert both == HardBudget(40) & AverageBudget(12) == Budget(average=Fraction(12), hard=Fraction(40))
    assert str(both) == "AverageBudget(12) & HardBudget(40)"


def test_a_trade_off_and_a_hard_budget_go_together():
    assert Tradeoff(0.5) & HardBudget(3) == Budget(lam=0.5, hard=Fraction(3))


def test_saying_the_same_twice_is_no_contradiction():
    assert HardBudget(0.1) & HardBudget("0.10") == HardBudget(0.1)


@pytest.mark.parametrize(
    ("first", "second", "words"),
    [
        (Tradeoff(0.1), AverageBudget(2), ["tradeoff", "average budget"]),
        (AverageBudget(2), Tradeoff(0.1), ["tradeoff", "average budget"]),
        (AverageBudget(2) & HardBudget(3), Tradeoff(0.1), ["tradeoff", "average budget"]),
        (HardBudget(1), HardBudget(2), ["HardBudget(1)", "HardBudget(2)"]),
        (AverageBudget(1), AverageBudget(2), ["AverageBudget(1)", "AverageBudget(2)"]),
        (Tradeoff(0.1), Tradeoff(0.2), ["Tradeoff(0.1)", "Tradeoff(0.2)"]),
    ],
)
def test_contradictions_are_refused(first, second, words):
    with pytest.raises(InputError) as caught:
        first & second
    message = str(caught.value)
    assert "\n" not in message
    assert [w for w in words if w not in message] == [], message


@pytest.mark.parametrize(("make", "name"), [(Tradeoff, "tradeoff"), (AverageBudget, "average"), (HardBudget, "hard")])
@pytest.mark.parametrize(
    "value", [-1, -0.1, float("nan"), float("inf"), -np.inf, "much", None, np.float32("nan"), Decimal("nan")]
)
def test_what_is_not_an_amount_is_refused(make, name, value):
    with pytest.raises(InputError) as caught:
        make(value)
    message = str(caught.value)
    assert "\n" not in message
    assert name in message
    assert repr(value) in message


# ------------------------------------------------------------------ the cap


@pytest.mark.parametrize(
    ("hard", "cap"),
    [(0, 0), (0.1, 1), (0.3, 3), (0.1 + 0.2, 3), (0.29, 2), (0.7, 7), (np.float32(0.7), 7), ("0.7", 7), (Fraction(2, 3), 6)],
)
def test_the_cap_in_tenths_is_exact(hard, cap):
    assert HardBudget(hard).cap(prices_of(0.1, 0.2, 5)) == cap


def test_only_a_hard_budget_has_a_cap():
    assert AverageBudget(1).cap(prices_of(1)) is None
    assert Tradeoff(1).cap(prices_of(1)) is None
    assert (AverageBudget(1) & HardBudget(2)).cap(prices_of(0.5, 9)) == 4


# ------------------------------------------------------------------ lambda


def test_the_range_of_lambda_by_hand():
    # costs 1 and 3: everything costs 4, a test 2 on average; the largest loss is 1
    assert lam_range(problem(1, 3)) == pytest.approx((0.01 / 4, 1 / 2))
    assert lam_range(problem(0, 1, 3)) == pytest.approx((0.01 / 4, 1 / 2)), "free tests do not count"
    assert lam_range(problem(0, 0)) is None
    assert positive_costs(prices_of(0, 1, 3)).tolist() == [1, 3]


def test_lambda_of_a_budget_without_an_average():
    assert (Tradeoff(0.25) & HardBudget(2)).fixed_lam(problem(1, 3)) == 0.25
    assert HardBudget(3).fixed_lam(problem(1, 3)) == pytest.approx(1e-3 / 4)
    assert HardBudget(3).fixed_lam(problem(0, 0)) == 0
    assert Tradeoff(0.3).fixed_lam(problem(0)) == 0.3


def test_how_an_average_budget_is_met_goes_with_it():
    budget = AverageBudget(12, confidence=0.95, mixing=False)
    assert str(budget) == "AverageBudget(12, confidence=0.95, mixing=False)"
    assert Budget.from_dict(budget.to_dict()) == budget
    assert (budget & HardBudget(40)).confidence == 0.95
    assert AverageBudget(12) != budget


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"confidence": 1}, "confidence is 1; it must be a probability from 0.5 to below 1, or None"),
        ({"confidence": "0.9"}, "confidence is '0.9'; it must be a probability"),
        ({"confidence": 0.2}, "confidence is 0.2; it must be a probability"),
        ({"mixing": "no"}, "mixing is 'no'; it must be True or False"),
    ],
)
def test_a_wrong_confidence_or_mixing_is_refused_in_a_sentence(more, words):
    with pytest.raises(InputError, match=re.escape(words)):
        AverageBudget(12, **more)
