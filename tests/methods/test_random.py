"""Random tests: each as likely as the other, in an order that belongs to the case."""

import numpy as np
import pytest

from askwise.core.budget import AverageBudget
from askwise.core.episode import measure, rollout
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.methods import random


def problem(rows: int, seed: int = 0) -> Problem:
    """The class is the sign of the sum of four tests, of which the last is dearer."""
    X = np.random.default_rng(seed).normal(size=(rows, 4))
    return Problem.build(Schema.build(list("abcd"), [0, 1], [1, 1, 1, 3]), X, (X.sum(1) > 0).astype(int))


@pytest.fixture(scope="module")
def points():
    return random.points(problem(600), problem(200, 1), seconds=0, steps=500)


def test_each_test_is_bought_as_often_as_the_others(points):
    test = problem(2000, 2)
    for k, policy in enumerate(points):
        held = rollout(test, policy, None).mask
        assert (held.sum(1) == k).all()
        assert held.mean(0) == pytest.approx(np.full(4, k / 4), abs=0.05)
    pairs = rollout(test, points[2], None).mask[:, :2].all(1).mean()
    assert pairs == pytest.approx(1 / 6, abs=0.03)


def test_orders_belong_to_the_case_and_to_the_seed(points):
    test = problem(100, 2)
    together = rollout(test, points[2], None)
    alone = [rollout(test, points[2], None, np.array([i])).mask[0] for i in range(10)]
    assert (together.mask[:10] == alone).all()
    grown = rollout(test, points[3], None).mask
    assert (grown >= together.mask).all()  # a longer prefix of the same order
    other = random.Picking(points[2].belief, random.Lots(1), 2, points[2].free, test.loss)
    assert (rollout(test, other, None).mask != together.mask).any(1).mean() > 0.5


def test_more_tests_tell_more(points):
    accuracy = [measure(problem(2000, 2), policy, None).accuracy for policy in points]
    assert (np.diff(accuracy) > 0.02).all()
    assert accuracy[-1] > 0.93


def test_fit_mixes_two_for_an_average_budget():
    validation = problem(600, 1)
    policy = random.fit(problem(600), validation, AverageBudget(2), seconds=0, steps=200)
    assert measure(validation, policy, None).cost == pytest.approx(2, abs=0.2)
