"""Decision trees that buy what they ask: where a batch of cases stands in every tree, what is asked next, and how trees grow.

H nodes of all trees lie side by side, T of them are roots. A case that reaches a test it cannot have (missing, or too
expensive for what is left) goes where 0, the training mean, would go: unbought and unavailable look alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from askwise.components.prefixes import decide
from askwise.core.arrays import Bools, Doubles, Floats, Ints
from askwise.core.cases import State
from askwise.core.costs import CostFunction
from askwise.core.policy import Choice, Policy


@dataclass(frozen=True)
class TreeSettings:
    """How trees are grown."""

    bins: int = 64  # thresholds that are tried for a column, at most
    cells: int = 2_000_000  # of a histogram, at once


SETTINGS = TreeSettings()


Choose = Callable[[Doubles, Bools], Ints]  # n, C gains and n, C columns asked above to n columns to split by, -1 for none


@dataclass(frozen=True, eq=False)
class Trees:
    """T binary trees. Every node has values, also inner ones, which become leaves when a tree is cut."""

    column: Ints  # H: what a node asks, -1 at a leaf
    threshold: Doubles  # H: up to here a case goes left
    child: Ints  # H, 2: left and right; a leaf is its own child
    value: Doubles  # H, J
    roots: Ints  # T

    @classmethod
    def join(cls, parts: Sequence[Trees]) -> Trees:
        """All trees of several, in this order."""
        first = np.cumsum([0, *(len(p.column) for p in parts)])
        return cls(
            np.concatenate([p.column for p in parts]),
            np.concatenate([p.threshold for p in parts]),
            np.concatenate([p.child + at for p, at in zip(parts, first, strict=False)]),
            np.concatenate([p.value for p in parts]),
            np.concatenate([p.roots + at for p, at in zip(parts, first, strict=False)]),
        )

    def cut(self, at: Bools) -> Trees:
        """The same with leaves where `at` (H) says so."""
        itself = np.arange(len(self.column))[:, None]
        return replace(self, column=np.where(at, -1, self.column), child=np.where(at[:, None], itself, self.child))

    @cached_property
    def levels(self) -> list[Ints]:
        """The nodes that can be reached, level by level from the roots."""
        levels = [self.roots]
        while len(inner := levels[-1][self.column[levels[-1]] >= 0]):
            levels.append(self.child[inner].ravel())
        return levels

    def walk(self, values: NDArray[np.floating], waiting: Bools) -> tuple[Ints, Ints]:
        """All trees level by level, with B, C values. `waiting` (B, C): columns that could be bought; elsewhere the value counts.

        Returns what each case (B) must buy first, the column asked nearest to a root, -1 when all its trees are at a leaf; and
        for the latter these leaves (B, T).
        """
        at = np.tile(self.roots, (len(values), 1))
        wanted = np.full(len(values), -1)
        who = np.arange(len(values))
        while len(who):
            node = at[who]
            column = self.column[node]
            inner = column >= 0
            stuck = waiting[who[:, None], column] & inner
            first = stuck.argmax(1)
            stops = stuck[np.arange(len(who)), first]
            wanted[who[stops]] = column[stops, first[stops]]
            going = ~stops & inner.any(1)
            who, node, column = who[going], node[going], column[going]
            right = values[who[:, None], column] > self.threshold[node]
            at[who] = self.child[node, right.astype(np.int64)]
        return wanted, at

    def total(self, leaf: Ints) -> Doubles:
        """B, J: the values of a case's leaves (B, T), added up."""
        return np.stack([self.value[:, j][leaf].sum(1) for j in range(self.value.shape[1])], 1)

    def leaves(self, X: Floats) -> Ints:
        """N, T: where rows end of which everything is known."""
        return self.walk(X, np.zeros((1, X.shape[1]), bool).repeat(len(X), 0))[1]

    def asked_of_all(self, owner: Ints) -> Ints:
        """The tests at the roots, which every case needs."""
        columns = self.column[self.roots]
        return np.array(list(dict.fromkeys(owner[columns[columns >= 0]].tolist())), np.int64)


@dataclass(frozen=True, eq=False)
class LazyTrees(Policy):
    """Buys what its trees ask, and no more; then says the class with the least expected loss."""

    trees: Trees
    owner: Ints  # C
    first_test: int
    classify: Callable[[Doubles], Doubles]  # B, J totals to B, K probabilities
    loss: Doubles  # K, K

    @property
    def fixed_order(self) -> Ints:
        return self.trees.asked_of_all(self.owner)

    def act(self, state: State) -> Choice:
        wanted, leaf = self._walk(state)
        action = self.first_test + self.owner[wanted]
        ends = wanted < 0
        action[ends] = decide(self.classify(self.trees.total(leaf[ends])), self.loss)
        return Choice(action, np.ones(len(action), np.float32))

    def belief(self, state: State) -> Doubles:
        """B, K: class probabilities where the walk ends for now."""
        return self.classify(self.trees.total(self._walk(state)[1]))

    def _walk(self, state: State) -> tuple[Ints, Ints]:
        return self.trees.walk(state.values, state.legal[:, self.first_test :][:, self.owner])


def items(costs: CostFunction, wanted: Bools, known: Bools | None = None) -> Bools:
    """B, F + G: the tests that must be carried out and the set-ups that must be opened to hold what is wanted (B, F). The cost of
    a set is the sum of the costs of its items, see `item_costs`."""
    paid = costs.paid(wanted, known)
    return np.column_stack([paid.tests if known is None else paid.tests & ~known, paid.setups])


def item_costs(costs: CostFunction) -> Doubles:
    """F + G, in money."""
    return np.asarray(costs.money(np.concatenate([costs.own, costs.setup])), float)


@dataclass(frozen=True, eq=False)
class Binned:
    """Each value as the number of thresholds of its column that lie below it."""

    codes: NDArray[np.uint8]  # N, C
    edges: Doubles  # C, BINS - 1; infinite where a column has fewer

    @classmethod
    def of(cls, X: Floats, most_rows: int = 20_000) -> Binned:
        """Thresholds between neighbours where there are few values, else at quantiles."""
        edges = np.full((X.shape[1], SETTINGS.bins - 1), np.inf)
        codes = np.empty(X.shape, np.uint8)
        for c in range(X.shape[1]):
            column = X[:, c].astype(np.float64)
            distinct = np.unique(column[:most_rows])
            if len(distinct) <= SETTINGS.bins:
                cuts = (distinct[1:] + distinct[:-1]) / 2
            else:
                cuts = np.unique(np.quantile(column[:most_rows], np.arange(1, SETTINGS.bins) / SETTINGS.bins, method="lower"))
            edges[c, : len(cuts)] = cuts
            codes[:, c] = np.searchsorted(cuts, column, "left")
        return cls(codes, edges)

    def take(self, rows: Ints) -> Binned:
        return replace(self, codes=self.codes[rows])


def grow(
    bins: Binned,
    target: Doubles,
    weight: Doubles,
    *,
    depth: int,
    least: float,
    choose: Choose,
    tried: int | None = None,
    rng: np.random.Generator | None = None,
) -> tuple[Trees, Ints]:
    """One tree that predicts `target` (N, J) in weighted least squares, level by level, and the leaf of each row (N).

    For 0/1 targets, one for each class, this is Gini impurity. Each child weighs at least `least`; each node tries `tried`
    columns drawn by `rng`, or all. `choose` picks the column for each node from how much each would take off the squared error.
    """
    N, C = bins.codes.shape
    column, threshold, child, value = [], [], [], []
    at, low, n = np.zeros(N, np.int64), 0, 1
    asked = np.zeros((1, C), bool)
    for level in range(depth + 1):
        rows = np.flatnonzero(at >= low)
        node = at[rows] - low
        heft = np.bincount(node, weight[rows], minlength=n)
        sums = [np.bincount(node, weight[rows] * t[rows], minlength=n) for t in target.T]
        value.append(np.stack(sums, 1) / np.maximum(heft, 1e-300)[:, None])
        split, code = np.full(n, -1), np.zeros(n, np.int64)
        if level < depth:
            if tried is None or tried >= C:
                gain, best = _best_splits(bins.codes[rows], node, n, target[rows], weight[rows], least)
            else:
                assert rng is not None
                shown = rng.random((n, C)).argpartition(tried - 1, 1)[:, :tried]
                codes = bins.codes[rows[:, None], shown[node]]
                gain, best = np.full((n, C), -np.inf), np.zeros((n, C), np.int64)
                best_shown = _best_splits(codes, node, n, target[rows], weight[rows], least)
                np.put_along_axis(gain, shown, best_shown[0], 1)
                np.put_along_axis(best, shown, best_shown[1], 1)
            split = choose(gain, asked)
            code = best[np.arange(n), split]
        inner = split >= 0
        itself = low + np.arange(n)
        after = low + n + 2 * (np.cumsum(inner) - 1)
        column.append(split)
        threshold.append(np.where(inner, bins.edges[split, code], np.inf))
        child.append(np.where(inner[:, None], np.stack([after, after + 1], 1), itself[:, None]))
        if not inner.any():
            break
        moves = inner[node]
        rows, node = rows[moves], node[moves]
        at[rows] = after[node] + (bins.codes[rows, split[node]] > code[node])
        asked = asked[inner]
        asked[np.arange(len(asked)), split[inner]] = True
        low, n, asked = low + n, 2 * len(asked), asked.repeat(2, 0)
    joined = np.concatenate
    return Trees(joined(column), joined(threshold), joined(child), joined(value), np.zeros(1, np.int64)), at


def _best_splits(
    codes: NDArray[np.uint8], node: Ints, n: int, target: Doubles, weight: Doubles, least: float
) -> tuple[Doubles, Ints]:
    """n, C: the gain of the best threshold of each column in each node, -inf where there is none, and its code.

    gain = Σ_j S_Lj² / W_L + S_Rj² / W_R - S_j² / W, where W is weight and S_j the weighted sum of target j
    """
    C = codes.shape[1]
    gain, best = np.full((n, C), -np.inf), np.zeros((n, C), np.int64)
    width = max(1, min(SETTINGS.cells // (n * SETTINGS.bins), 2 * SETTINGS.cells // max(len(codes), 1)))
    for start in range(0, C, width):
        end = min(start + width, C)
        k = end - start
        cell = ((node[:, None] * k + np.arange(k)) * SETTINGS.bins + codes[:, start:end]).ravel()

        def below(amount: Doubles) -> Doubles:  # n, k, BINS: the sum over all rows up to each code
            filled = np.bincount(cell, amount.repeat(k), minlength=n * k * SETTINGS.bins)  # noqa: B023
            return filled.reshape(n, k, SETTINGS.bins).cumsum(2)  # noqa: B023

        W = below(weight)
        left, right = W[..., :-1], W[..., -1:] - W[..., :-1]
        score = np.zeros(left.shape)
        with np.errstate(divide="ignore", invalid="ignore"):  # empty sides are ruled out below
            for t in target.T:
                S = below(weight * t)
                score += S[..., :-1] ** 2 / left + (S[..., -1:] - S[..., :-1]) ** 2 / right - S[..., -1:] ** 2 / W[..., -1:]
        score = np.where((left >= least) & (right >= least), score, -np.inf)
        code = score.argmax(2)
        best[:, start:end] = code
        gain[:, start:end] = np.take_along_axis(score, code[..., None], 2)[..., 0]
    return gain, best
