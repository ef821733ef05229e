"""The Lagrangian and the controller of lambda, worked by hand."""

import numpy as np
import pytest

from askwise.core.budget import AverageBudget, HardBudget, Tradeoff
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.paper.config import TrainConfig
from askwise.paper.lagrangian import controller_for, lagrangian, lagrangian_slope


def problem(*amounts, loss=None) -> Problem:
    """Tests with these costs, and one row of each of two classes."""
    schema = Schema.build([f"t{i}" for i in range(len(amounts))], [0, 1], costs=amounts)
    return Problem.build(schema, np.zeros((2, len(amounts))), [0, 1], loss=loss)


def controller(budget, of, **settings):
    return controller_for(budget, of, TrainConfig(**{"cost_unit": None, "hard_tradeoff": 1e-3, **settings}))


def test_three_updates_by_hand():
    # costs 1 and 3: mean 2, sum 4, so a step of 0.1 is 0.1 * 1 / 2 / 4 = 0.0125 per unit of cost over the budget
    control = controller(AverageBudget(2), problem(1, 3))
    assert control.lam == 0
    control.update(4.0, step=0.1)  # g = 0.1 * 0 + 0.0125 * (4 - 2) = 0.025
    assert control.lam == pytest.approx(0.025)
    control.update(3.0, step=0.1)  # g = 0.1 * 0.025 + 0.0125 * (3 - 2) = 0.015; lambda = 0.025 + 0.015
    assert control.lam == pytest.approx(0.04)
    control.update(1.0, step=0.05)  # g = 0.1 * 0.015 + 0.00625 * (1 - 2) = -0.00475; lambda = 0.04 - 0.00475
    assert control.lam == pytest.approx(0.03525)


def test_three_updates_as_the_paper_prints_them():
    # g = 0.1 g + rate (cost - b) / sum of costs, whatever the mean cost is; lambda in [0, 1]
    config = TrainConfig.paper("diabetes")
    control = controller_for(AverageBudget(2), problem(1, 3), config)
    control.update(4.0, config.lam_step(0))  # g = 0.1 * (4 - 2) / 4 = 0.05
    assert control.lam == pytest.approx(0.05)
    control.update(3.0, config.lam_step(0))  # g = 0.005 + 0.1 * 1 / 4 = 0.03
    assert control.lam == pytest.approx(0.08)
    control.update(1.0, config.lam_step(1_000))  # ten epochs later half the step: g = 0.003 - 0.05 / 4 = -0.0095
    assert control.lam == pytest.approx(0.0705)
    control.update(4.0, 1000.0)
    assert control.lam == 1


def test_the_papers_hard_budgets_have_no_tradeoff():
    assert controller_for(HardBudget(3), problem(1, 3), TrainConfig.paper("diabetes")).lam == 0


def test_a_unit_of_cost_makes_the_paper_s_rule_independent_of_the_money():
    # costs of 2 to 9 in units of 9 are the paper's diabetes; lambda is per unit of money, so a ninth
    paper = controller_for(AverageBudget(2), problem(1, 3), TrainConfig())
    ours = controller_for(AverageBudget(18), problem(9, 27), TrainConfig(cost_unit=9))
    for mean_cost, step in [(4.0, 0.1), (0.5, 0.05), (4.0, 100.0)]:
        paper.update(mean_cost, step)
        ours.update(9 * mean_cost, step)
        assert ours.lam == pytest.approx(paper.lam / 9)


def test_lambda_never_falls_below_zero():
    control = controller(AverageBudget(2), problem(1, 3))
    control.update(0.0, step=0.1)
    assert control.lam == 0


def test_lambda_stops_where_no_test_is_worth_its_price():
    # the largest loss is 6 and the cheapest test that costs anything 0.5, so at 12 even certainty is not worth it
    control = controller(AverageBudget(0), problem(0, 0.5, 3, loss=[[0, 6], [1, 0]]))
    for _ in range(5):
        control.update(3.5, step=1000)
    assert control.lam == pytest.approx(12)


def test_counting_money_in_cents_changes_nothing():
    euros, cents = controller(AverageBudget(2), problem(1, 3)), controller(AverageBudget(200), problem(100, 300))
    for mean_cost, step in [(4.0, 0.1), (3.0, 0.1), (1.0, 0.05), (0.0, 0.02), (3.5, 0.02)]:
        euros.update(mean_cost, step)
        cents.update(100 * mean_cost, step)
        assert cents.lam == pytest.approx(euros.lam / 100)
    assert cents.most == pytest.approx(euros.most / 100)


def test_counting_losses_in_cents_changes_nothing():
    small, large = (controller(AverageBudget(2), problem(1, 3, loss=loss)) for loss in ([[0, 1], [1, 0]], [[0, 100], [100, 0]]))
    for control in (small, large):
        control.update(4.0, step=0.1)
    assert large.lam == pytest.approx(100 * small.lam)


def test_a_trade_off_does_not_move():
    control = controller(Tradeoff(0.25) & HardBudget(2), problem(1, 3))
    control.update(4.0, step=0.1)
    assert control.lam == 0.25


def test_a_hard_budget_alone_has_a_tiny_price_so_that_ties_go_to_stopping():
    prices = problem(1, 3).schema.costs
    control = controller(HardBudget(3), problem(1, 3))
    control.update(4.0, step=0.1)
    assert 0 < control.lam * prices.money(prices.total) <= 0.01  # buying everything weighs less than a hundredth of an error


@pytest.mark.parametrize("budget", [AverageBudget(1), HardBudget(1), AverageBudget(0) & HardBudget(0)])
def test_where_everything_is_free_the_price_stays_zero(budget):
    control = controller(budget, problem(0, 0))
    control.update(0.0, step=0.1)
    assert control.lam == 0


def test_a_trade_off_keeps_its_price_where_everything_is_free():
    assert controller(Tradeoff(0.3), problem(0)).lam == 0.3


def test_the_lagrangian_and_its_slope():
    # slope by difference: L is linear in lambda
    at = [lagrangian(loss=0.2, cost=5.0, lam=lam, b=3.0) for lam in (0.1, 1.1)]
    assert at[0] == pytest.approx(0.2 + 0.1 * 2)
    assert at[1] - at[0] == pytest.approx(lagrangian_slope(5.0, 3.0))
