"""What is chosen with the labels of some rows is measured on others: the weights of the learners, and the order."""

from dataclasses import replace

import numpy as np
import pytest
from tests.support import members as support

from askwise.stack import run
from askwise.stack.held_out import HeldOutBeliefs


@pytest.fixture(scope="module")
def trainer():
    trainer = support.trainer_of(support.problem_of(240))
    while not trainer.refined:
        trainer.advance()
    return trainer


def test_labels_of_a_part_have_no_say_in_the_weights_by_which_it_is_measured(trainer):
    row = np.tile(np.arange(len(trainer.problem)), 3)
    mask = trainer.maker.masks(row, np.random.default_rng(0))
    before = trainer.beliefs.fitted_weights(row, mask)
    for k in range(trainer.folds.members):
        y = np.where(trainer.folds.belief == k, 1 - trainer.problem.labels, trainer.problem.labels)
        beliefs = HeldOutBeliefs(replace(trainer.problem, y=y), trainer.folds, trainer.common, trainer.members)
        common, own = beliefs.fitted_weights(row, mask)
        if set(common) != set(before[0]):  # another learner was dropped
            continue
        moved = [max(np.abs(a[name] - b[name]).max() for name in a) for a, b in zip(own, before[1], strict=True)]
        assert moved[k] < 0.2 * max(moved)
        assert max(np.abs(common[name] - before[0][name]).max() for name in common) > 3 * moved[k]


def test_members_have_weights_of_their_own_and_all_together_those_of_all_rows(trainer):
    names = [name for name in trainer.common if name.startswith("weight.")]
    assert names
    for name in names:
        np.testing.assert_array_equal(trainer.stack().weights[name], trainer.common[name])
        own = [trainer.member(k, k).weights[name] for k in range(4)]
        assert len({weight.tobytes() for weight in own}) == 4


def test_the_order_by_which_a_part_is_measured_is_found_without_it(trainer, monkeypatch):
    seen, compared = [], []
    find, compare = run.elimination_order, HeldOutBeliefs.log_losses

    def finding(problem, *args, **options):
        seen.append(len(problem))
        return find(problem, *args, **options)

    def comparing(beliefs, rows, held):
        compared.append(frozenset(rows.tolist()))
        return compare(beliefs, rows, held)

    monkeypatch.setattr(run, "elimination_order", finding)
    monkeypatch.setattr(HeldOutBeliefs, "log_losses", comparing)
    orders = run.own_orders(trainer, np.inf)
    assert [sorted(order.tolist()) for order in orders] == [[0, 1, 2, 3]] * 4
    assert seen == [180] * 4
    parts = [set(rows.tolist()) for *_, rows in trainer.folds.parts]
    assert all(any(not rows & part for part in parts) for rows in compared)
    members = [member for member, _ in run.held_out_rows(trainer, trainer.problem, orders).parts]
    for member, order in zip(members, orders, strict=True):
        assert member.policy(0.0, 3).fixed_order.tolist() == order[:3].tolist()
        assert member.limit(trainer.schema.costs, 3, None) == 3
        assert np.array_equal(member.rank, trainer.rank)  # of policies that choose


def test_with_many_rows_the_order_is_that_of_all(trainer):
    many = support.trainer_of(trainer.problem, replace(support.QUICK, own_order_rows=100))
    assert all(order is many.order for order in run.own_orders(many, np.inf))
