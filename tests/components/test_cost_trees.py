"""Trees that buy what they ask, against one case and one node at a time."""

import numpy as np
import pytest
from tests.support.naive import check_rules, random_world

from askwise.components.cost_trees import SETTINGS, Binned, LazyTrees, Trees, grow, item_costs, items
from askwise.core.cases import Cases
from askwise.core.episode import rollout


class Stepwise(LazyTrees):
    """Asked before every purchase, also before the first ones."""

    fixed_order = None


def by_gain(gain, asked):
    return np.where(gain.max(1) > 1e-9, gain.argmax(1), -1)


def random_trees(rng, columns, outputs, many=4, depth=4):
    """Grown on noise, so that they are deep and ragged."""
    X = rng.normal(size=(60, columns)).astype(np.float32)
    bins, parts = Binned.of(X), []
    for _ in range(many):
        target = rng.normal(size=(60, outputs))
        parts.append(grow(bins, target, np.ones(60), depth=depth, least=2, choose=by_gain, tried=2, rng=rng)[0])
    return Trees.join(parts)


def naive_walk(trees, values, waiting):
    """One case: the column asked nearest to a root and the leaves that are reached."""
    asked, leaves = [], []
    for t, h in enumerate(trees.roots.tolist()):
        level = 0
        while (c := trees.column[h]) >= 0 and not waiting[c]:
            h = trees.child[h][0 if values[c] <= trees.threshold[h] else 1]
            level += 1
        if trees.column[h] >= 0:
            asked.append((level, t, trees.column[h]))
        leaves.append(h)
    return (min(asked)[2] if asked else -1), leaves


def test_walking_is_as_one_case_after_the_other():
    rng = np.random.default_rng(0)
    trees = random_trees(rng, 5, 2)
    values, waiting = rng.normal(size=(200, 5)), rng.random((200, 5)) < rng.random((200, 1)) * 0.5
    wanted, leaf = trees.walk(values, waiting)
    expected = [naive_walk(trees, v, w) for v, w in zip(values, waiting, strict=True)]
    assert wanted.tolist() == [column for column, _ in expected]
    done = wanted < 0
    assert 20 < done.sum() < 180
    assert leaf[done].tolist() == [leaves for column, leaves in expected if column < 0]
    total = [sum(trees.value[h] for h in leaves) for column, leaves in expected if column < 0]
    assert trees.total(leaf[done]) == pytest.approx(np.array(total))


def test_every_threshold_is_tried_and_the_best_one_taken():
    rng = np.random.default_rng(1)
    X = np.column_stack([rng.integers(0, 5, 50), rng.normal(size=50)]).astype(np.float32)
    target, weight = rng.normal(size=(50, 2)) + X[:, :1], rng.uniform(0.5, 2, 50)
    seen = []

    def choose(gain, asked):
        seen.append((gain, asked.copy()))
        return by_gain(gain, asked)

    tree, leaf = grow(Binned.of(X), target, weight, depth=2, least=4, choose=choose)

    def squared(rows):
        mean = np.average(target[rows], axis=0, weights=weight[rows])
        return (weight[rows, None] * (target[rows] - mean) ** 2).sum()

    for c in (0, 1):
        taken_off = [
            squared(np.full(50, True)) - squared(left) - squared(~left)
            for left in (X[:, c] <= x for x in X[:, c])
            if weight[left].sum() >= 4 and weight[~left].sum() >= 4
        ]
        assert seen[0][0][0, c] == pytest.approx(max(taken_off))
    assert tree.value[0] == pytest.approx(np.average(target, axis=0, weights=weight))
    assert [asked[:, tree.column[0]].all() for _, asked in seen] == [False, True]
    # rows are where the tree says, and each leaf predicts their mean
    assert tree.leaves(X)[:, 0].tolist() == leaf.tolist()
    for h in np.unique(leaf):
        assert tree.value[h] == pytest.approx(np.average(target[leaf == h], axis=0, weights=weight[leaf == h]))


def test_few_columns_are_tried_and_many_values_become_bins():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(500, 6)).astype(np.float32)
    bins = Binned.of(X)
    assert bins.codes.max() == SETTINGS.bins - 1
    below = X[:, :, None] > bins.edges[None]
    assert (below.sum(2) == bins.codes).all()

    def choose(gain, asked):
        assert (np.isfinite(gain).sum(1) == 2).all()
        return by_gain(gain, asked)

    grow(bins, X[:, :1].astype(float), np.ones(500), depth=3, least=5, choose=choose, tried=2, rng=rng)


def test_cutting_makes_leaves():
    trees = random_trees(np.random.default_rng(3), 4, 1)
    at = np.zeros(len(trees.column), bool)
    at[trees.child[trees.roots[0]]] = True
    cut = trees.cut(at)
    assert len(cut.levels[0]) == 4
    assert cut.column[trees.roots[0]] >= 0
    X = np.random.default_rng(4).normal(size=(50, 4))
    assert set(cut.leaves(X)[:, 0].tolist()) == set(trees.child[trees.roots[0]].tolist())
    assert (cut.leaves(X)[:, 1:] == trees.leaves(X)[:, 1:]).all()


def test_items_add_up_to_the_cost():
    for seed in range(60):
        problem = random_world(seed).problem()
        costs, rng = problem.schema.costs, np.random.default_rng(seed)
        held = rng.random((5, problem.schema.n_tests)) < 0.5
        known = None if problem.known is None else problem.known
        bought = items(costs, held, known) @ item_costs(costs)
        assert bought == pytest.approx(np.asarray(costs.money(costs.cost(held, known)), float))


def test_lazy_trees_keep_the_rules_in_any_world_and_buy_nothing_that_no_tree_asked():
    for seed in range(100):
        world = random_world(seed)
        problem, rng = world.problem(), np.random.default_rng(seed)
        schema = problem.schema
        if len(schema.columns) == 1:
            continue
        trees = random_trees(rng, len(schema.columns), schema.n_classes, many=3)
        done, slow = (
            rollout(problem, kind(trees, schema.owner, schema.first_test, np.exp, problem.free_loss), world.cap(problem))
            for kind in (LazyTrees, Stepwise)
        )
        check_rules(world, problem, done)
        assert (slow.mask == done.mask).all()  # buying what all need at once makes no difference
        assert slow.action.tolist() == done.action.tolist()
        for i in range(len(problem)):  # who lacks a value goes where 0 goes, and everything held was asked on the way
            x = np.where(done.mask[i][schema.owner], problem.X[i], 0)
            state = Cases(problem, np.array([i]), done.mask[[i]], world.cap(problem)).observe()
            column, _ = naive_walk(trees, x, state.legal[0, schema.first_test :][schema.owner])
            assert column == -1
            asked = set()
            for h in trees.roots.tolist():
                while trees.column[h] >= 0:
                    asked.add(int(schema.owner[trees.column[h]]))
                    h = trees.child[h][0 if x[trees.column[h]] <= trees.threshold[h] else 1]
            known = set() if problem.known is None else set(np.flatnonzero(problem.known[i]).tolist())
            assert set(np.flatnonzero(done.mask[i]).tolist()) - known <= asked or world.hard is not None
