"""Picks learned by gradients: the loss of a pick, and a problem where the second test depends on the first."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from askwise.components.subset_classifier import Masked, PickedCases, SubsetLearner
from askwise.components.torch_state import own_torch
from askwise.core.episode import measure, rollout
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.methods import gdfs


def which(rows: int, seed: int = 0) -> Problem:
    """a is half of the class and says where the other half is: in b or in c. d is noise."""
    X = np.random.default_rng(seed).choice([-1.0, 1.0], size=(rows, 4))
    y = 2 * (X[:, 0] > 0) + (np.where(X[:, 0] > 0, X[:, 1], X[:, 2]) > 0)
    return Problem.build(Schema.build(list("abcd"), [0, 1, 2, 3]), X, y, ids=np.arange(rows))


def set_up(data: Problem) -> tuple[SubsetLearner, Masked, PickedCases]:
    learner = SubsetLearner(data, data, 0, 20, 0)
    return learner, Masked(data.schema, 4).eval(), PickedCases(learner)


def test_a_cold_soft_pick_is_a_hard_pick():
    with own_torch(0, 1):
        learner, selector, live = set_up(which(200))
        loss, picked = gdfs.pick_loss(learner, selector, live, 1e-5)
    assert live.legal()[np.arange(len(picked)), picked].all()
    each = []
    for i, test in enumerate(picked):
        mask = torch.from_numpy(live.mask[i : i + 1]).float()
        mask[0, test] = 1
        row = live.row[i : i + 1]
        each.append(float(functional.cross_entropy(learner.network(learner.X[row], mask), learner.y[row]).detach()))
    assert float(loss.detach()) == pytest.approx(np.mean(each), rel=1e-4)


def test_picks_follow_the_scores_by_gumbels_law():
    with own_torch(0, 1):
        learner, selector, _ = set_up(which(200))
        live = PickedCases(learner, 4000)
        for parameter in selector.parameters():
            torch.nn.init.zeros_(parameter)
        selector.layers[-1].bias.data = torch.tensor([0.1, 0.2, 0.3, 0.4]).log()
        _, picked = gdfs.pick_loss(learner, selector, live, 1.0)
    assert np.bincount(picked) / 4000 == pytest.approx([0.1, 0.2, 0.3, 0.4], abs=0.03)


def test_the_second_test_depends_on_the_first():
    points = gdfs.points(which(800), which(300, 1), seconds=0, steps=800)
    test = which(500, 2)
    assert [measure(test, p, None).cost for p in points] == [0, 1, 2, 3, 4]
    two = rollout(test, points[2], None)
    assert two.mask[:, 0].mean() > 0.95
    assert np.where(test.X[:, 0] > 0, two.mask[:, 1], two.mask[:, 2]).mean() > 0.95
    assert 1 - two.loss.mean() > 0.95  # the best two tests for everybody are right in 3 of 4 cases


def test_steps_repeat_exactly():
    data = which(100)
    first, second = (gdfs.points(data, data, seconds=0, seed=3, steps=40)[2] for _ in range(2))
    for a, b in ((first.classifier.network, second.classifier.network), (first.score.selector, second.score.selector)):
        assert all(torch.equal(x, y) for x, y in zip(a.state_dict().values(), b.state_dict().values(), strict=True))
