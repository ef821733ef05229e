"""Budgets as values, and the controller of the price lambda worked by hand."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest

from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff, lagrangian, lagrangian_slope
from askwise.core.costs import CostFunction
from askwise.core.problem import Problem, Schema
from askwise.errors import InputError


def problem(*amounts, loss=None) -> Problem:
    """Tests with these prices, and one row of each of two classes."""
    schema = Schema.build([f"t{i}" for i in range(len(amounts))], [0, 1], costs=amounts)
    return Problem.build(schema, np.zeros((2, len(amounts))), [0, 1], loss=loss)


def prices_of(*amounts) -> CostFunction:
    return problem(*amounts).schema.costs


def controller(budget, of, rate=0.1, scale=0.5, momentum=0.1):
    return budget.controller(of, rate, scale, momentum)


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
        (Tradeoff(0.1), AverageBudget(2), ["trade-off", "average budget"]),
        (AverageBudget(2), Tradeoff(0.1), ["trade-off", "average budget"]),
        (AverageBudget(2) & HardBudget(3), Tradeoff(0.1), ["trade-off", "average budget"]),
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


@pytest.mark.parametrize(("make", "name"), [(Tradeoff, "lambda"), (AverageBudget, "average"), (HardBudget, "hard")])
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


# ------------------------------------------------------------------ the controller


def test_three_updates_by_hand():
    # prices 1 and 3: mean 2, sum 4, so the gain is 0.1 * 1 / 2 / 4 = 0.0125 per unit of cost over the budget
    price = controller(AverageBudget(2), problem(1, 3))
    assert price.lam == 0
    price.update(4.0, halvings=0)  # g = 0.1 * 0 + 0.0125 * (4 - 2) = 0.025
    assert price.lam == pytest.approx(0.025)
    price.update(3.0, halvings=0)  # g = 0.1 * 0.025 + 0.0125 * (3 - 2) = 0.015; lambda = 0.025 + 0.015
    assert price.lam == pytest.approx(0.04)
    price.update(1.0, halvings=1)  # g = 0.1 * 0.015 + 0.00625 * (1 - 2) = -0.00475; lambda = 0.04 - 0.00475
    assert price.lam == pytest.approx(0.03525)


def test_lambda_never_falls_below_zero():
    price = controller(AverageBudget(2), problem(1, 3))
    price.update(0.0, halvings=0)
    assert price.lam == 0


def test_lambda_stops_where_no_test_is_worth_its_price():
    # the largest loss is 6 and the cheapest test that costs anything 0.5, so at 12 even certainty is not worth it
    price = controller(AverageBudget(0), problem(0, 0.5, 3, loss=[[0, 6], [1, 0]]), rate=1000)
    for _ in range(5):
        price.update(3.5, halvings=0)
    assert price.lam == pytest.approx(12)


def test_counting_money_in_cents_changes_nothing():
    euros, cents = controller(AverageBudget(2), problem(1, 3)), controller(AverageBudget(200), problem(100, 300))
    for mean_cost, halvings in [(4.0, 0), (3.0, 0), (1.0, 1), (0.0, 2), (3.5, 2)]:
        euros.update(mean_cost, halvings)
        cents.update(100 * mean_cost, halvings)
        assert cents.lam == pytest.approx(euros.lam / 100)
    assert cents.most == pytest.approx(euros.most / 100)


def test_counting_losses_in_cents_changes_nothing():
    small, large = (controller(AverageBudget(2), problem(1, 3, loss=loss)) for loss in ([[0, 1], [1, 0]], [[0, 100], [100, 0]]))
    for price in (small, large):
        price.update(4.0, halvings=0)
    assert large.lam == pytest.approx(100 * small.lam)


def test_a_trade_off_does_not_move():
    price = controller(Tradeoff(0.25) & HardBudget(2), problem(1, 3))
    price.update(4.0, halvings=0)
    assert price.lam == 0.25


def test_a_hard_budget_alone_has_a_tiny_price_so_that_ties_go_to_stopping():
    prices = prices_of(1, 3)
    price = controller(HardBudget(3), problem(1, 3))
    price.update(4.0, halvings=0)
    assert 0 < price.lam * prices.money(prices.total) <= 0.01  # buying everything weighs less than a hundredth of an error


@pytest.mark.parametrize("budget", [AverageBudget(1), HardBudget(1), AverageBudget(0) & HardBudget(0)])
def test_where_everything_is_free_the_price_stays_zero(budget):
    price = controller(budget, problem(0, 0))
    price.update(0.0, halvings=0)
    assert price.lam == 0


def test_a_trade_off_keeps_its_price_where_everything_is_free():
    assert controller(Tradeoff(0.3), problem(0)).lam == 0.3


def test_the_lagrangian_and_its_slope():
    # slope by difference: L is linear in lambda
    at = [lagrangian(loss=0.2, cost=5.0, lam=lam, b=3.0) for lam in (0.1, 1.1)]
    assert at[0] == pytest.approx(0.2 + 0.1 * 2)
    assert at[1] - at[0] == pytest.approx(lagrangian_slope(5.0, 3.0))
