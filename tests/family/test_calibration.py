"""Forecasts, corrected by what happened."""

from dataclasses import replace

import numpy as np
import pytest

from askwise.core.budget import Budget
from askwise.core.episode import measure, replay, rollout
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.family import calibration, forward
from askwise.family import run as family
from askwise.family.config import FamilyConfig


def noisy(n: int, seed: int, free: str = "") -> Problem:
    """Four tests that each tell the class three times in four; some of them are free."""
    rng = np.random.default_rng([seed, n])
    y = rng.integers(2, size=n)
    X = np.where(rng.random((n, 4)) < 0.75, y[:, None], 1 - y[:, None]).astype(float)
    return Problem.build(Schema.build(list("abcd"), [0, 1], dict.fromkeys("abcd", 2) | dict.fromkeys(free, 0)), X, y)


@pytest.fixture(scope="module")
def run():
    return family.run(noisy(1_000, 0), noisy(1_000, 1), Budget(), FamilyConfig(max_steps=250, width=32), 0)


def fitted(shared, problem, limits):
    runs = [[calibration.Followed(shared.values(lam), cap, np.arange(len(problem)))] for lam, cap in limits]
    return calibration.fitted(problem, runs, FamilyConfig().calibration_ridge)


def test_without_evidence_forecasts_stay_as_they_are(run):
    rng = np.random.default_rng(0)
    stop, loss, on, cost, bound = rng.random((5, 30))
    made = forward.forecast_inputs(stop, loss, on, cost, 0.3, bound)
    assert made.shape == (30, forward.FORECAST_INPUTS)
    assert made @ forward.uncalibrated().T == pytest.approx(np.stack([loss, cost], 1))
    assert fitted(run.shared, noisy(10, 0), []) == pytest.approx(forward.uncalibrated())


def test_tradeoffs_and_budgets_change_the_map():
    one = np.ones(1)
    plain = forward.forecast_inputs(one, 2 * one, 3 * one, 4 * one, 0.0, 0.0)[0]
    assert plain.tolist() == [1, 1, 2, 3, 4] + 10 * [0]
    both = forward.forecast_inputs(one, 2 * one, 3 * one, 4 * one, 0.5, one)[0]
    assert both.tolist() == [1, 1, 2, 3, 4, 0.5, 0.5, 1, 1.5, 2, 1, 1, 2, 3, 4]


@pytest.fixture(scope="module")
def free_run():
    return family.run(noisy(1_000, 0, "ab"), noisy(1_000, 1, "ab"), Budget(), FamilyConfig(max_steps=250, width=32), 0)


def test_cases_that_lack_what_is_free_do_not_change_the_map(free_run):
    problem, limits = noisy(600, 1, "ab"), [(0.001, None), (0.01, 4), (0.02, None)]
    held = np.tile([True, True, False, False], (600, 1))
    told, without = (fitted(free_run.shared, p, limits) for p in (problem, replace(problem, known=held)))
    assert told == pytest.approx(without)
    assert not np.allclose(told, forward.uncalibrated())


@pytest.mark.parametrize("cap", [None, 6])
def test_on_new_cases_means_come_true(run, cap):
    new = noisy(2_000, 2)
    costs, expected, came = new.schema.costs, [], []
    for lam in (0.001, 0.005, 0.01, 0.02):
        done = rollout(new, run.shared.policy(lam), cap)
        steps = replay(new, done.row, done.padded, done.length, cap)
        on = steps.action >= new.schema.first_test
        seen = run.shared.values(lam).view(steps.cases.observe())
        paid = costs.money(done.cost[steps.episode] - costs.cost(steps.cases.mask))
        expected.append(np.stack([seen.loss, seen.cost], 1)[on])
        came.append(np.stack([done.loss[steps.episode] / new.loss_scale, paid], 1)[on])
        assert (seen.loss >= 0).all()
    (loss, cost), (lost, paid) = (np.concatenate(of).mean(0) for of in (expected, came))
    assert loss == pytest.approx(lost, abs=0.05)
    assert cost == pytest.approx(paid, rel=0.2)


def test_a_wrong_value_head_is_corrected(run):
    """Whatever the value head says of the final loss, the map corrects it."""
    learned, problem = run.shared, noisy(600, 1)
    wrong = {k: v.copy() for k, v in run.shared.weights.items()}
    wrong["value_head.4.bias"][problem.schema.n_tests + 1] += 5.0  # expected loss at the end, scaled
    lied = type(learned)(wrong, learned.scale, learned.rank, learned.loss, learned.owner, learned.alone)
    assert measure(problem, lied.policy(0.01), None) == measure(problem, learned.policy(0.01), None)
    told = fitted(lied, problem, [(0.01, None), (0.05, None)])
    wrong["calibration"] = told
    state = first_states(problem)
    expected = lied.values(0.01).view(state).loss.mean()
    came = measure(problem, lied.policy(0.01), None).loss / problem.loss_scale
    assert expected == pytest.approx(came, abs=0.02)


def first_states(problem: Problem):
    from askwise.core.cases import Cases

    return Cases.start(problem, np.arange(len(problem)), None).observe()
