"""A random forest, all trees pruned together so that what the cases of the whole forest must buy is worth it.

After Nan, Wang and Saligrama (2016). Cutting the trees is an integer program: errors of the trees, plus λ times what each
case buys anywhere in the forest. The coupling of the trees is dualised; then each tree is solved exactly, from its leaves up.

Two forests are pruned: a usual one, and one that splits where the gain per unit of cost is largest (by the mean impurity of the
children, not by that of the worse one as the authors also tried). Errors are counted on the rows that a tree was not grown from,
since on its own rows no tree would want to be cut. Shared set-ups and derived tests are items that are bought once, like tests.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from askwise.components.boosting import loss_scales, row_weights, unweighted
from askwise.components.cost_trees import Binned, Choose, LazyTrees, Trees, grow, item_costs, items
from askwise.components.prefixes import at_once, columns_within, decide
from askwise.core.arrays import Bools, Doubles, Ints
from askwise.core.budget import Budget, lam_range
from askwise.core.missingness import filled
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.frontier.choice import best_for, next_lam


@dataclass(frozen=True)
class BudgetPruneSettings:
    """The settings of budget-prune."""

    trees: int = 40  # of a forest, or fewer when time is short
    fewest_trees: int = 5  # however short the time
    depth: int = 12  # of a tree, at most
    leaf_weight: float = 2.0  # of a leaf, at least
    most_rows: int = 20_000  # from which a tree is grown
    meetings: int = 3_000_000  # of cases with what they buy, in all trees; this bounds the rows that pruning looks at
    steps: int = 50  # on the multipliers
    lambdas: int = 16  # at which a forest is pruned
    fewest_lambdas: int = 5  # however short the time
    small_cost: float = 1e-3  # of the mean cost of an item, so that what is paid already is cheap, but not infinitely so


SETTINGS = BudgetPruneSettings()


class Pruning(NamedTuple):
    """Where the trees are split, what that comes to, and the best bound that was policies."""

    splits: Bools  # H: nodes that stay inner nodes
    primal: float  # mean error of the trees + λ x mean cost
    dual: float  # no pruning comes to less
    cost: float
    multipliers: Doubles  # M


@dataclass(frozen=True, eq=False)
class Program:
    """min over prunings of Σ_h e_h z_h + λ Σ_p c_p w_p, where z_h = 1 when a tree is cut at node h, and w_p = 1 when case and
    item p = (i, k) meet at a node that stays. Errors are divided by the number of trees, costs by the number of cases.

    A meeting m is where in one tree a case needs an item first: node(m), pair(m). Its multiplier is β_m ≥ 0.
    """

    trees: Trees
    error: Doubles  # H
    node: Ints  # M
    pair: Ints  # M
    cost: Doubles  # P

    def recursion(self, toll: Doubles) -> tuple[Bools, float]:
        """The best pruning of each tree when node h costs toll_h to pass, and the sum of what they come to.

        V(h) = min(e_h, toll_h + V(left) + V(right))
        """
        V, wins = self.error.copy(), np.zeros(len(self.error), bool)
        for level in reversed(self.trees.levels):
            h = level[self.trees.column[level] >= 0]
            going_on = toll[h] + V[self.trees.child[h]].sum(1)
            wins[h] = going_on < V[h]
            V[h] = np.minimum(V[h], going_on)
        return self._reached(wins), float(V[self.trees.roots].sum())

    def _reached(self, wins: Bools) -> Bools:
        """H: inner nodes above which nothing is cut."""
        stays, level = np.zeros(len(wins), bool), self.trees.roots
        while len(level):
            inner = level[wins[level]]
            stays[inner] = True
            level = self.trees.child[inner].ravel()
        return stays

    def errors_of(self, splits: Bools) -> float:
        """Σ e_h over the leaves of a pruning."""
        end = np.zeros(len(splits), bool)
        end[self.trees.roots] = True
        end[self.trees.child[splits].ravel()] = True
        return float(self.error[end & ~splits].sum())

    def cost_of(self, splits: Bools) -> float:
        """Σ c_p w_p: what a case costs on average."""
        met = np.zeros(len(self.cost), bool)
        met[self.pair[splits[self.node]]] = True
        return float(self.cost[met].sum())

    def solve(self, lam: float, start: Doubles | None = None, steps: int = SETTINGS.steps) -> Pruning:
        """Projected subgradient steps on the multipliers, of length (best primal - dual) / |gradient|²; the best pruning met.

        Given β, w_p = 1 where the β of a pair exceed λ c_p together, and each tree is solved by itself. The gradient of β_m is
        (node m stays) - w_p. Without a start, each cost is shared equally by the trees that ask for it.
        """
        H, P = len(self.error), len(self.cost)
        share = self.cost / np.maximum(np.bincount(self.pair, minlength=P), 1)
        beta = lam * share[self.pair] if start is None else start
        none = np.zeros(H, bool)
        best, primal, dual = none, self.errors_of(none), -np.inf
        for _ in range(steps):
            splits, trees = self.recursion(np.bincount(self.node, beta, minlength=H).astype(float))  # also where nothing is met
            spare = lam * self.cost - np.bincount(self.pair, beta, minlength=P)
            dual = max(dual, now := trees + float(np.minimum(spare, 0).sum()))
            comes_to = self.errors_of(splits) + lam * self.cost_of(splits)
            if comes_to < primal:
                best, primal = splits, comes_to
            slope = splits[self.node].astype(float) - (spare < 0)[self.pair]
            length = float(slope @ slope)
            if length == 0 or primal - dual <= 1e-9:
                break
            beta = np.maximum(beta + (primal - now) / length * slope, 0)
        return Pruning(best, primal, dual, self.cost_of(best), beta)


@dataclass(frozen=True, eq=False)
class Forest:
    """Trees whose values are class shares, rows weighted by stake, and the rows that each was grown from."""

    trees: Trees
    bag: Bools  # T, N
    scales: Doubles

    def policy(self, problem: Problem, splits: Bools) -> LazyTrees:
        def classify(total: Doubles) -> Doubles:
            return unweighted(total / total.sum(1, keepdims=True), self.scales)

        schema = problem.schema
        return LazyTrees(self.trees.cut(~splits), schema.owner, schema.first_test, classify, problem.free_loss)


def forest(problem: Problem, columns: Ints, *, aware: bool, seconds: float, seed: int, most: int) -> Forest:
    """As many trees as there is time for, each from a bootstrap sample, and at each node from some columns: of `columns` only."""
    began, rng, y = time.monotonic(), np.random.default_rng(seed), np.asarray(problem.y)
    N, K = len(problem), problem.schema.n_classes
    bins, weight, labels = Binned.of(problem.X[:, columns]), row_weights(problem), np.eye(K)[y]
    tried = min(len(columns), max(2, round((2 if aware else 1) * len(columns) ** 0.5)))  # more, where not all are worth it
    choose = _by_rate(problem, columns) if aware else _by_gain
    parts, bag = [], np.zeros((most, N), bool)
    for t in range(most):
        if t >= SETTINGS.fewest_trees and time.monotonic() - began > seconds:
            break
        drawn = np.bincount(rng.integers(N, size=min(N, SETTINGS.most_rows)), minlength=N)
        bag[t] = drawn > 0
        rows = np.flatnonzero(drawn)
        tree, _ = grow(
            bins.take(rows),
            labels[rows],
            (weight * drawn)[rows],
            depth=SETTINGS.depth,
            least=SETTINGS.leaf_weight,
            choose=choose,
            tried=tried,
            rng=rng,
        )
        parts.append(tree)
    trees = Trees.join(parts)
    back = np.where(trees.column >= 0, columns[trees.column], -1)  # from the columns shown to those of the problem
    return Forest(Trees(back, trees.threshold, trees.child, trees.value, trees.roots), bag[: len(parts)], loss_scales(problem))


def _by_gain(gain: Doubles, asked: Bools) -> Ints:
    best = gain.argmax(1)
    return np.where(gain.max(1) > 1e-9, best, -1)


def _by_rate(problem: Problem, columns: Ints) -> Choose:
    """The largest gain per cost of what has not been paid on the way to the node."""
    costs, owner = problem.schema.costs, problem.schema.owner[columns]
    need, cost = items(costs, np.eye(problem.schema.n_tests, dtype=bool))[owner], item_costs(costs)  # C, R
    small = SETTINGS.small_cost * float(cost.mean()) or 1.0

    def choose(gain: Doubles, asked: Bools) -> Ints:
        have = asked.astype(float) @ need > 0
        rate = gain / ((~have * cost) @ need.T + small)
        return np.where(gain.max(1) > 1e-9, rate.argmax(1), -1)

    return choose


def program(problem: Problem, grown: Forest, rows: Ints) -> Program:
    """The pruning of a forest, with the given training rows as cases. What a case knows or cannot have costs it nothing."""
    part, trees = problem.take(rows), grown.trees
    costs, F, n, T = problem.schema.costs, problem.schema.n_tests, len(rows), len(trees.roots)
    decision = decide(unweighted(trees.value, grown.scales), problem.free_loss)  # H
    drawn = np.ones(n) if part.weight is None else part.weight
    cost = item_costs(costs)
    error, node, pair = np.zeros(len(trees.column)), [], []
    for t, root in enumerate(trees.roots.tolist()):
        outside = drawn * ~grown.bag[t, rows]
        outside /= max(float(outside.sum()), 1e-300)
        at, have = np.full(n, root), np.zeros((n, len(cost)), bool)
        who = np.arange(n)
        while len(who):
            h = at[who]
            error += np.bincount(h, outside[who] * problem.loss[np.asarray(part.y)[who], decision[h]], minlength=len(error))
            who = who[trees.column[h] >= 0]
            h, column = at[who], trees.column[at[who]]
            wanted = np.zeros((len(who), F), bool)
            wanted[np.arange(len(who)), problem.schema.owner[column]] = True
            if part.available is not None:
                wanted &= part.available[who]
            new = items(costs, wanted, None if part.known is None else part.known[who]) & (cost > 0) & ~have[who]
            i, k = np.nonzero(new)
            node.append(h[i])
            pair.append(who[i] * len(cost) + k)
            have[who[i], k] = True
            at[who] = trees.child[h, (part.X[who, column] > trees.threshold[h]).astype(np.int64)]
    pairs, which = np.unique(np.concatenate(pair), return_inverse=True)
    return Program(trees, error / T, np.concatenate(node), which, cost[pairs % len(cost)] / n)


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, cap: int | None = None
) -> list[Policy]:
    """Deciding at once, both forests as they were grown, and each pruned at a range of lambdas.

    Under a hard budget of `cap` units the trees ask only for tests that it allows together.
    """
    began = time.monotonic()
    problem = filled(problem.trainable(), seed)
    policies: list[Policy] = [at_once(problem)]
    columns = columns_within(problem, cap, seed, threads)
    if not len(columns):
        return policies
    for aware in (False, True):
        grown = forest(problem, columns, aware=aware, seconds=0.25 * seconds, seed=seed, most=SETTINGS.trees)
        policies.append(grown.policy(problem, grown.trees.column >= 0))
        share = began + seconds * (1.0 if aware else 0.5)
        policies += [grown.policy(problem, s.splits) for s in pruned_at_lambdas(problem, grown, seed, share)]
    return policies


def pruned_at_lambdas(problem: Problem, grown: Forest, seed: int, until: float = np.inf) -> list[Pruning]:
    """The forest pruned at the ends of a range of lambdas, and then where the mean costs of two neighbours differ most."""
    ends = lam_range(problem)
    most = max(200, SETTINGS.meetings // (len(grown.trees.roots) * SETTINGS.depth))
    rows = np.sort(np.random.default_rng(seed).permutation(len(problem))[:most])
    cases = program(problem, grown, rows)
    if ends is None or not len(cases.cost):  # nothing to pay
        return [cases.solve(0.0)]
    prunings = {lam: cases.solve(lam) for lam in (ends[0] / 10, ends[1])}
    while len(prunings) < SETTINGS.lambdas and (len(prunings) < SETTINGS.fewest_lambdas or time.monotonic() < until):
        lam = next_lam({tried: pruning.cost for tried, pruning in prunings.items()})
        if lam is None:
            break
        near = max(tried for tried in prunings if tried < lam)
        prunings[lam] = cases.solve(lam, prunings[near].multipliers * (lam / near))
    return list({s.splits.tobytes(): s for s in prunings.values()}.values())  # many lambdas make the same of the forest


def fit(problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0) -> Policy:
    """The pruned forest that is best for the budget on validation rows, or a mixture of two."""
    cap = budget.cap(problem.schema.costs)
    return best_for(points(problem, validation, seconds=seconds, seed=seed, cap=cap), validation, budget, seed)
