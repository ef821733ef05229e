"""The classifier of any set of tests, and the policy that picks."""

import numpy as np
import pytest
import torch

from askwise.components.subset_classifier import Belief, Masked, PickedCases, Picking, SubsetLearner, counts
from askwise.components.torch_state import own_torch
from askwise.core.cases import Cases, State
from askwise.core.cost_spec import CostSpec
from askwise.core.episode import rollout
from askwise.core.problem import Problem
from askwise.core.schema import Schema


def problem(rows=200, holes=0.0, seed=0, **more) -> Problem:
    """Three tests, one with two columns, one free; the label is the sign of a."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)).astype(np.float32)
    y = (X[:, 0] > 0).astype(int)
    X[rng.random(X.shape) < holes] = np.nan
    schema = Schema.build(
        ["a", "s1", "s2", "free"], [0, 1], CostSpec({"a": 1, "scan": 2, "free": 0}, reveals={"scan": ["s1", "s2"]})
    )
    return Problem.build(schema, X, y, **more)


def learner(of: Problem, steps=300) -> SubsetLearner:
    with own_torch(0, 1):
        return SubsetLearner(of, of, 0, steps, 0)


def lacking_means_well(of_free=False) -> Problem:
    """`scan` is the class. Half of the rows are ill and all of these have it; half of the well ones lack it."""
    ill = np.arange(400) % 2 == 0
    scan = np.where(ill, 1.0, -1.0)
    scan[1::4] = np.nan
    schema = Schema.build(["scan"], ["ill", "well"], {"scan": 0 if of_free else 1})
    return Problem.build(schema, scan[:, None], np.where(ill, "ill", "well"))


@pytest.mark.parametrize("of_free", [False, True])
def test_missing_values_do_not_tell_the_class(of_free):
    gaps = lacking_means_well(of_free)
    mine = learner(gaps, 600)
    with own_torch(0, 1):
        mine.pretrain(1.0)
    nothing = State(np.zeros((1, 1), np.float32), np.zeros((1, 1), bool), np.ones((1, 3), bool), np.zeros(1, np.uint64))
    # of those who have the scan two in three are ill, of all half, of those who lack it none
    assert mine.belief(nothing)[0, 0] == pytest.approx(0.5, abs=0.1)


def test_what_is_learned_from_is_complete_and_what_is_lost_is_lost_by_lot():
    gaps = problem(300, holes=0.3)
    mine = learner(gaps)
    assert mine.problem.available is None
    assert mine.lacking == pytest.approx(1 - gaps.available.mean(0))
    live = PickedCases(mine, 2_000)
    assert live.lost.mean(0) == pytest.approx(mine.lacking, abs=0.05)
    assert not (live.legal() & live.lost).any()
    assert not PickedCases(learner(problem(300)), 50).lost.any()


def test_a_hidden_value_is_not_seen_and_a_soft_mask_is_between():
    with own_torch(0, 1):
        network = Masked(problem().schema, 2).eval()
    x, z = torch.randn(5, 4), torch.randn(5, 4)
    mask = torch.tensor([[0.0, 1, 0]] * 5)
    z[:, 1:3] = x[:, 1:3]  # the columns of the scan
    assert torch.equal(network(x, mask), network(z, mask))
    shown = x.numpy() * np.array([0, 1, 1, 0], np.float32)
    assert torch.equal(network.of(shown, mask.bool().numpy()), network(x, mask))
    soft = torch.tensor([[0.5, 1, 0]] * 5)
    half = torch.cat([x * torch.tensor([0.5, 1, 1, 0]), soft], 1)
    assert torch.equal(network(x, soft), network.layers(half))


def test_the_classifier_learns_from_the_tests_that_are_held():
    data = problem(600)
    mine = learner(data, 500)
    with own_torch(0, 1):
        mine.pretrain(1.0)
    for test, least, most in ((0, 0.93, 1.0), (1, 0.4, 0.65)):
        state = Cases(data, np.arange(600), np.tile(np.arange(3) == test, (600, 1)), None).observe()
        assert least <= (mine.belief(state).argmax(1) == data.y).mean() <= most


def test_loss_weights_are_undone():
    rare = problem(400, loss=[[0, 1], [9, 0]])
    mine = learner(rare, 500)
    with own_torch(0, 1):
        mine.pretrain(1.0)
    nothing = Cases(rare, np.arange(1), np.array([[False, False, True]]), None).observe()  # but what is free
    assert mine.belief.drawn(nothing)[0, 1] == pytest.approx(0.9, abs=0.05)
    assert mine.belief(nothing)[0, 1] == pytest.approx(rare.y.mean(), abs=0.15)


def ones(state: State):
    return np.tile([3.0, 5.0, 1.0], (len(state.mask), 1))


def picking(data: Problem, most: int, score=ones) -> Picking:
    with own_torch(0, 1):
        belief = Belief(Masked(data.schema, 2).eval(), np.ones(2))
    return Picking(belief, score, most, np.array([False, False, True]), data.loss)


@pytest.mark.parametrize(("most", "bought"), [(0, [2]), (1, [2, 1]), (2, [2, 1, 0]), (9, [2, 1, 0])])
def test_free_ones_first_then_by_score_until_enough(most, bought):
    data = problem(5)
    done = rollout(data, picking(data, most), None)
    each = done.action.reshape(5, -1) - data.schema.first_test
    assert each[:, :-1].tolist() == [bought] * 5
    assert (each[:, -1] < 0).all()


def test_what_cannot_be_had_is_passed_over_and_minus_infinity_is_never_picked():
    data = problem(5)
    assert rollout(data, picking(data, 9), 1).mask.tolist() == [[True, False, True]] * 5
    none = picking(data, 9, lambda state: np.where(np.arange(3) == 0, ones(state), -np.inf))
    assert rollout(data, none, None).mask.tolist() == [[True, False, True]] * 5


def test_counts_grow():
    assert counts(np.array([True, False, False])) == [0, 1, 2]
    many = counts(np.zeros(300, bool))
    assert many[:6] == [0, 1, 2, 3, 4, 5]
    assert many[-1] == 64
    assert len(many) < 24
    assert counts(np.ones(3, bool)) == [0]


@pytest.mark.parametrize("more", [{}, {"known": ["a"]}, {"holes": 0.4}])
def test_cases_in_progress_hold_only_what_they_can(more):
    data = problem(100, **more)
    live = PickedCases(learner(data), 50)
    rng, ends = np.random.default_rng(0), 0
    for _ in range(30):
        available = ~live.lost
        assert not (live.mask & ~available).any()
        assert (live.mask[:, 2] == available[:, 2]).all()  # what is free is always there
        if data.known is not None:
            assert live.mask[:, 0].all()
        legal, before, row = live.legal(), live.mask.copy(), live.row.copy()
        test = np.where(legal, rng.random(legal.shape), -1).argmax(1)
        live.buy(test)
        goes_on = (live.row == row) & live.mask[np.arange(50), test] & legal.any(1)
        ends += int((~goes_on).sum())
        assert (live.mask[goes_on] >= before[goes_on]).all()
    assert ends > 100


def test_more_tests_than_are_picked_can_still_be_bought_all():
    rng = np.random.default_rng(0)
    schema = Schema.build([f"x{i}" for i in range(70)], [0, 1])
    X = rng.normal(size=(40, 70))
    X[3, 5] = np.nan
    problem = Problem.build(schema, X, rng.integers(2, size=40))
    learner = SubsetLearner(problem, problem, 1, 2, 0)
    (policy,) = learner.everything()
    done = rollout(problem, policy, None)
    assert (done.mask == problem.available).all()
    assert learner.everything(longest=70) == []
    cheap = rollout(problem, policy, 7)
    assert (cheap.mask.sum(1) == 7).all()
