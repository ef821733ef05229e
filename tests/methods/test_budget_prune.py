"""Pruning a forest together: the recursion against all prunings, the bound, and what it is good for."""

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
from tests.support.odd_cases import check_points, odd
from tests.support.policies import with_settings

from askwise.components.cost_trees import LazyTrees, Trees
from askwise.core.budget import AverageBudget, HardBudget
from askwise.core.episode import measure, rollout
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.methods import budget_prune
from askwise.methods.budget_prune import Program


def small_tree(rng):
    """Nodes 0 to 8, of which 0 to 3 are inner ones; 3 is below 1."""
    column = np.array([0, 1, 2, 2, *[-1] * 5])
    child = np.array([[1, 2], [3, 4], [5, 6], [7, 8], *([h, h] for h in range(4, 9))])
    return Trees(column, np.zeros(9), child, rng.random((9, 2)), np.zeros(1, np.int64))


DEEPER_IS_BETTER = np.array([1, 0.4, 0.4, 0.15, 0.15, 0.15, 0.15, 0.05, 0.05])


def all_prunings(trees, h):
    """Every set of inner nodes that a pruning below h may keep."""
    kept = [frozenset()]
    if trees.column[h] >= 0:
        left, right = (all_prunings(trees, c) for c in trees.child[h].tolist())
        kept += [frozenset({h}) | a | b for a, b in product(left, right)]
    return kept


def comes_to(program, kept, toll):
    splits = np.isin(np.arange(len(program.error)), list(kept))
    return program.errors_of(splits) + toll[splits].sum()


def test_each_tree_is_cut_as_well_as_possible():
    rng, sizes = np.random.default_rng(0), set()
    for _ in range(50):
        tree = small_tree(rng)
        program = Program(tree, rng.random(9) * DEEPER_IS_BETTER, *np.zeros((2, 0), int), np.zeros(0))
        toll = np.where(tree.column >= 0, rng.random(9) * 0.1, 0)
        splits, value = program.recursion(toll)
        every = {kept: comes_to(program, kept, toll) for kept in all_prunings(tree, 0)}
        assert len(every) == 7
        assert value == pytest.approx(min(every.values()))
        assert frozenset(np.flatnonzero(splits).tolist()) == min(every, key=every.get)
        sizes.add(int(splits.sum()))
    assert sizes == {0, 1, 2, 3, 4}


def test_the_bound_and_the_best_pruning_of_a_small_forest():
    """Three trees, six cases, three items: all 343 prunings of the forest are tried."""
    rng, gaps = np.random.default_rng(1), []
    for _ in range(20):
        trees = Trees.join([small_tree(rng) for _ in range(3)])
        where = [(h, i, trees.column[h]) for h in np.flatnonzero(trees.column >= 0) for i in range(6) if rng.random() < 0.7]
        first = list({(h // 9, i, k): (h, i * 3 + k) for h, i, k in reversed(where)}.values())  # once in each tree
        node, pair = np.array(first).T
        error = np.tile(DEEPER_IS_BETTER, 3) * rng.uniform(0.7, 1.3, 27) / 3
        program = Program(trees, error, node, pair, rng.random(18) / 18)
        lam = rng.uniform(0.2, 3)
        best = np.inf
        for kept in product(*(all_prunings(trees, h) for h in trees.roots.tolist())):
            splits = np.isin(np.arange(27), list(frozenset().union(*kept)))
            best = min(best, program.errors_of(splits) + lam * program.cost_of(splits))
        found = program.solve(lam)
        assert found.dual <= best + 1e-9 <= found.primal + 2e-9
        assert found.primal == pytest.approx(program.errors_of(found.splits) + lam * program.cost_of(found.splits))
        gaps.append(found.primal - best)
    assert np.mean(gaps) < 0.002
    assert np.mean(np.array(gaps) < 1e-9) > 0.6  # most often the very best is found


@cache
def redundant():
    """a and b tell together; c and d are noisy copies of them. A forest asks for all."""
    parts = []
    for seed, n in ((0, 500), (1, 400), (2, 1000)):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, 6))
        X[:, 2:4] = X[:, :2] + 0.4 * rng.normal(size=(n, 2))
        y = (X[:, 0] + X[:, 1] > 0).astype(int)
        parts.append(Problem.build(Schema.build(list("abcdef"), [0, 1], [1, 2, 1, 2, 1, 1]), X, y))
    return parts


def test_a_pruned_forest_beats_a_forest_of_fewer_trees_at_equal_cost():
    train, _, test = redundant()
    grown = budget_prune.forest(train, np.arange(6), aware=False, seconds=600, seed=0, most=12)
    cost, loss = [], []
    for n in range(1, 13):  # fewer trees is what makes a forest cheaper without pruning
        few = replace(grown.trees, roots=grown.trees.roots[:n])
        whole = grown.policy(train, grown.trees.column >= 0)
        m = measure(test, LazyTrees(few, whole.owner, whole.first_test, whole.classify, whole.loss), None)
        cost.append(m.cost)
        loss.append(m.loss)
    at_once = min(np.bincount(test.y)) / len(test)
    order = np.argsort(cost)
    gain = []
    for solved in budget_prune.pruned_at_lambdas(train, grown, 0):
        m = measure(test, grown.policy(train, solved.splits), None)
        unpruned = np.interp(m.cost, [0, *np.array(cost)[order]], [at_once, *np.minimum.accumulate(np.array(loss)[order])])
        gain.append(unpruned - m.loss)
    assert max(gain) > 0.03
    assert np.mean(gain) > 0


def test_a_forest_that_knows_prices_is_cheaper_from_the_start():
    train, _, test = redundant()
    blind, aware = (
        measure(test, grown.policy(train, grown.trees.column >= 0), None)
        for grown in (budget_prune.forest(train, np.arange(6), aware=a, seconds=600, seed=0, most=12) for a in (False, True))
    )
    assert aware.cost < blind.cost - 1.5
    assert aware.loss < blind.loss + 0.03


def test_what_the_program_counts_is_what_cases_pay():
    train, _, _ = odd()
    grown = budget_prune.forest(train, np.arange(5), aware=True, seconds=600, seed=0, most=6)
    for solved in budget_prune.pruned_at_lambdas(train, grown, 0):
        assert measure(train, grown.policy(train, solved.splits), None).cost == pytest.approx(solved.cost)


def test_everything_the_engine_supports(monkeypatch):
    with_settings(monkeypatch, budget_prune, trees=8)
    with_settings(monkeypatch, budget_prune, lambdas=6)
    train, validation, test = odd()
    found = budget_prune.points(train, validation, seconds=5)
    check_points(found, test)


def test_fit_keeps_to_its_budget_and_repeats_itself(monkeypatch):
    with_settings(monkeypatch, budget_prune, trees=6)
    train, validation, test = redundant()
    average, again = (budget_prune.fit(train, validation, AverageBudget(2), seconds=600, seed=3) for _ in range(2))
    assert measure(validation, average, None).cost == pytest.approx(2, abs=0.15)
    assert (rollout(test, average, None).mask == rollout(test, again, None).mask).all()
    done = rollout(test, budget_prune.fit(train, validation, HardBudget(3), seconds=600), 3)
    assert (done.cost <= 3).all()
    assert done.loss.mean() < 0.12
