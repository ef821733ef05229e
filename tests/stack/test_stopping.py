"""Learners stop by what the other members held out."""

from dataclasses import replace

import lightgbm
import numpy as np
import pytest
from tests.support import members as support

from askwise.components.static_order import elimination_order
from askwise.stack.folds import Folds
from askwise.stack.members import MemberTask
from askwise.stack.networks import features_of
from askwise.stack.states import StateMaker
from askwise.stack.stopping import at, stopped, stops
from askwise.stack.trees import from_lightgbm

CONFIG = support.QUICK.but(folds=3, tree_rounds=12, network_checks=5)


def test_each_stops_where_the_others_lose_least():
    curves = [np.array([3.0, 1, 2, 5]), np.array([3.0, 3, 1, 5]), np.array([5.0, 4, 3, 2])]
    assert stops(curves) == [2, 1, 2]  # the others together: 8 7 4 7, 8 5 5 7 and 6 4 3 10


def test_a_curve_that_ends_before_goes_on_as_it_ended_and_nobody_stops_after_the_end():
    curves = [np.array([3.0, 4.0]), np.array([5.0, 4, 3, 2]), np.array([5.0, 4, 3, 2])]
    assert stops(curves) == [1, 3, 3]  # the others: 10 8 6 4, and twice 8 8 7 6
    assert stops(curves[:2]) == [1, 0]
    assert stops([np.array([3.0, 1, 2])]) == [1]  # there is nobody else


def test_what_a_member_is_measured_on_does_not_choose_its_end():
    """Curves of chance: what a member loses at its end is on average what it loses anywhere; by its own curve it is less."""
    rng = np.random.default_rng(0)
    own, others = [], []
    for _ in range(400):
        curves = list(rng.normal(size=(5, 20)))
        others += [curve[i] for curve, i in zip(curves, stops(curves), strict=True)]
        own += [curve.min() for curve in curves]
    assert np.mean(own) < -1.5
    assert abs(np.mean(others)) < 4 / np.sqrt(len(others))


@pytest.fixture(scope="module")
def task():
    problem = support.problem_of(120)
    folds, order = Folds.across(problem.labels, 3, 0), elimination_order(problem)
    task = MemberTask(StateMaker.of(problem, order, CONFIG), folds, CONFIG, 0)
    return replace(task, features=features_of(problem, CONFIG, rich=True))


def test_learners_at_their_end(task):
    members = [task.fit(k, 1e9) for k in range(3)]
    for whole, used in zip(members, stopped(members), strict=True):
        rounds, checks = len(whole["trees.curve"]), len(whole["networks.curve"])
        assert set(whole) - set(used) == {"trees.curve", "networks.curve"}
        assert checks == CONFIG.network_checks
        assert len(used["trees.root"]) <= len(whole["trees.root"]) == rounds
        stopped_at = [at(whole, len(used["trees.root"]) - 1, check) for check in range(checks)]
        assert any(all(np.array_equal(each[name], used[name]) for name in used) for each in stopped_at)
    elsewhere = [{**members[0], "trees.curve": members[0]["trees.curve"][::-1].copy()}, *members[1:]]
    assert all(np.array_equal(stopped(elsewhere)[0][name], value) for name, value in stopped(members)[0].items())


@pytest.mark.parametrize("classes", [2, 3])
def test_the_first_rounds_are_those_of_lightgbm(classes):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)).astype(np.float32), rng.integers(classes, size=300)
    kind = {"objective": "binary"} if classes == 2 else {"objective": "multiclass", "num_class": classes}
    model = lightgbm.train({**kind, "verbose": -1, "num_leaves": 5, "num_threads": 1}, lightgbm.Dataset(X, y), 6)
    trees = from_lightgbm(model, 4, classes)
    outputs = len(trees.root) // 6
    for rounds in (1, 4, 6):
        expected = model.predict(X, raw_score=True, num_iteration=rounds)
        scores = trees.part(0, rounds * outputs).scores(X, np.ones(X.shape, bool), classes)
        assert np.allclose(scores[:, 1] if classes == 2 else scores, expected, atol=1e-5)
