"""Cost-efficient boosting with LightGBM, whose trees buy what they ask."""

from functools import cache

import numpy as np
import pytest
from tests.support.odd_cases import check_points, odd
from tests.support.policies import with_settings

from askwise.components.boosting import boost, row_weights
from askwise.core.budget import AverageBudget, HardBudget
from askwise.core.episode import measure, rollout
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.methods import cegb


@cache
def easy():
    """Half of the cases are told by a alone; the others need b, and a says which they are. The rest is noise."""
    parts = []
    for seed, n in ((0, 800), (1, 400), (2, 800)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 4))
        y = np.where(np.abs(X[:, 0]) > 0.67, X[:, 0] > 0, X[:, 1] > 0).astype(int)
        parts.append(Problem.build(Schema.build(list("abcd"), [0, 1], [1, 2, 2, 1]), X, y))
    return parts


@pytest.mark.parametrize("classes", [2, 3])
def test_the_trees_are_those_of_lightgbm(classes):
    rng = np.random.default_rng(classes)
    X = rng.normal(size=(300, 3)).astype(np.float32)
    X[::3, 0] = 0
    y = np.digitize(X[:, 0] * X[:, 1], [0, 0.5][: classes - 1])
    part = X, y, np.ones(300)
    model = boost(part, part, classes, seconds=60, seed=0, threads=1, rounds=12, num_leaves=7).model
    trees = cegb.trees_of(model, np.array([4, 0, 2]), 1 if classes == 2 else classes)
    wide = np.zeros((300, 5), np.float32)
    wide[:, [4, 0, 2]] = X
    score = model.predict(X, raw_score=True).reshape(300, -1)
    assert trees.total(trees.leaves(wide)) == pytest.approx(score)
    p = cegb.Links(np.ones(classes))(score)
    assert p[:, 1] == pytest.approx(model.predict(X) if classes == 2 else model.predict(X)[:, 1])


def test_costs_of_columns_add_up():
    problem = odd()[0]  # a 1, b 2, c and d together 1, e computed from b, c, d; a set-up of 2 for a and b
    known = np.asarray(problem.known).mean(0)
    # a: 1 and 2/3 of the set-up's 2; b, shared with e: 1 + 2/3; c and d, shared with e: 1/2; e: what is left of both
    whole = np.array([1 + 2 / 3, 1 + 2 / 3, 1 / 2, 1 + 1 / 2 + 2 / 3])
    assert whole.sum() == 1 + 2 + 1 + 2
    share = whole * (1 - known)
    assert cegb.column_costs(problem, np.arange(5)) == pytest.approx([share[0], share[1], share[2] / 2, share[2] / 2, share[3]])
    # without e and a, nothing is shared any more
    assert cegb.column_costs(problem, np.array([1, 2, 3])) == pytest.approx([4, 0.5, 0.5] * (1 - known[[1, 2, 2]]))


def test_a_higher_tradeoff_buys_less_and_only_where_it_helps():
    train, validation, test = easy()
    found = [
        measure(test, cegb.boosted(train, validation, np.arange(4), price, seconds=60, seed=0, threads=1), None)
        for price in (1e-4, 0.02, 0.2, 1.5)
    ]
    cost = [m.cost for m in found]
    assert (np.diff(cost) <= 0).all()
    assert cost[-1] == 0
    assert cost[1] < 2.9  # b is not bought for all
    assert found[1].loss < 0.03
    assert cost[0] > cost[1] + 0.5  # noise is bought when it costs next to nothing


def test_everything_the_engine_supports(monkeypatch):
    with_settings(monkeypatch, cegb, lambdas=6)
    train, validation, test = odd()
    check_points(cegb.points(train, validation, seconds=60), test)


def test_fit_keeps_to_its_budget_and_repeats_itself(monkeypatch):
    with_settings(monkeypatch, cegb, lambdas=5)
    with_settings(monkeypatch, cegb, trees=60)
    train, validation, test = easy()
    average, again = (cegb.fit(train, validation, AverageBudget("1.5"), seconds=600, seed=3) for _ in range(2))
    assert measure(validation, average, None).cost == pytest.approx(1.5, abs=0.15)
    assert (rollout(test, average, None).mask == rollout(test, again, None).mask).all()
    done = rollout(test, cegb.fit(train, validation, HardBudget(3), seconds=600), 3)
    assert (done.cost <= 3).all()
    assert done.loss.mean() < 0.05


def test_where_all_is_free_one_model_is_enough():
    train, validation, _ = easy()
    free = Schema.build(list("abcd"), [0, 1], [0, 0, 0, 0])
    parts = [Problem.build(free, p.X, p.y) for p in (train, validation)]
    assert row_weights(parts[0]).mean() == 1
    assert len(cegb.points(*parts, seconds=60)) == 2
