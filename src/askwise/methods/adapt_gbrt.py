"""A gate keeps easy cases for a cheap boosted model and sends the others on to an expensive one.

After Nan and Saligrama (2017). The expensive model is LightGBM on all columns; its probabilities of the training rows are taken
out of fold. Gate and cheap model are learned together: boosted trees of depth 3 whose splits are charged for the tests that
neither has used before. Published for two classes. With more, one gate serves a cheap score for each class against the rest: that
is ours.

Gate and cheap model buy tests as their trees need them; a case that is sent on buys all that the expensive model looks at.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import NamedTuple

import numpy as np

from askwise.components.boosting import Boosted, boost, loss_scales, probabilities, row_weights, unweighted
from askwise.components.cost_trees import Binned, Trees, grow, item_costs, items
from askwise.components.prefixes import Classifier, Prefix, at_once, columns_within, decide
from askwise.core.arrays import Bools, Doubles, Floats, Ints
from askwise.core.budget import Budget
from askwise.core.cases import State
from askwise.core.episode import measure
from askwise.core.missingness import filled
from askwise.core.policy import Choice, Policy
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.frontier.choice import best_for
from askwise.frontier.hull import hull


@dataclass(frozen=True)
class AdaptGbrtSettings:
    """The settings of adapt-gbrt."""

    penalties: tuple[float, ...] = (5e-4, 2e-3, 8e-3, 3e-2, 1e-1)  # for a test of the mean cost, in mean squared gradient
    shares: tuple[float, ...] = (0.0, 0.1, 0.25, 0.5, 0.75)  # of cases that are to be sent on
    shrinkages: tuple[float, ...] = (0.5, 1.0)  # of each tree
    tried: int = 20  # of these combinations, when there is time
    fewest: int = 3  # combinations, however short the time
    alternations: int = 50  # of q and the models, at most
    settled: float = 0.01  # mean change of q from one alternation to the next, at which they end
    trees: int = 100  # of the gate, and of the cheap model
    depth: int = 3  # of these trees
    rounds: int = 200  # of the expensive model
    folds: int = 3  # of the training rows, for the expensive model
    cells: int = 600_000  # rows x columns that gate and cheap model learn from


SETTINGS = AdaptGbrtSettings()


def sigma(x: Doubles) -> Doubles:
    """1 / (1 + e^-x)"""
    return np.exp(-np.logaddexp(0, -x))


def gate_slope(q1: Doubles, g: Doubles) -> Doubles:
    """Minus the gradient in g of -q1 log σ(g) - q0 log σ(-g): q1 / (1 + e^g) - q0 / (1 + e^-g) = q1 - σ(g)."""
    return q1 - sigma(g)


def cheap_slope(q0: Doubles, y: Doubles, f: Doubles) -> Doubles:
    """Minus the gradient in f of -q0 log σ(y f): y q0 / (1 + e^(y f)), where y is 1 or -1."""
    return y * q0 * sigma(-y * f)


def tilt(lean: Doubles, share: float) -> float:
    """log γ with which the mean of σ(log γ + lean) is `share`, by bisection."""
    low, high = -float(lean.max()) - 40, -float(lean.min()) + 40
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if sigma(middle + lean).mean() < share else (low, middle)
    return (low + high) / 2


def sent_on(h: Doubles, p: Doubles, g: Doubles, share: float) -> Doubles:
    """q1 = γ w1 / (γ w1 + w0) with w1 = h σ(g), w0 = p (1 - σ(g)); γ so that the mean of q1 is `share`.

    h and p are what the expensive and the cheap model give to the true class. log w1 - log w0 = log h - log p + g.
    """
    if share == 0:
        return np.zeros(len(h))
    lean = np.log(h) - np.log(p) + g
    return sigma(tilt(lean, share) + lean)


def cheap_probabilities(f: Doubles) -> Doubles:
    """B, K from the scores (B, J): one score for two classes, else one for each class against the rest, scaled to add up to 1."""
    p = np.column_stack([sigma(-f), sigma(f)]) if f.shape[1] == 1 else np.maximum(sigma(f), 1e-12)
    scaled: Doubles = p / p.sum(1, keepdims=True)
    return scaled


@dataclass(eq=False)
class Charge:
    """Picks the split with the largest mean gain less what its test newly costs; remembers what has been paid."""

    need: Bools  # C, R: the items of each column's test
    cost: Doubles  # R
    lam: float
    heft: float  # of all rows, for the mean

    def __post_init__(self) -> None:
        self.have = np.zeros(len(self.cost), bool)

    def __call__(self, gain: Doubles, asked: Bools) -> Ints:
        score = gain / self.heft - self.lam * ((self.need & ~self.have) @ self.cost)
        best = score.argmax(1)
        splits = score.max(1) > 1e-9
        self.have |= self.need[best[splits]].any(0)
        return np.where(splits, best, -1)


class Pair(NamedTuple):
    """Gate and cheap model, and what they say of the training rows."""

    gate: Trees
    cheap: Trees
    g: Doubles  # N
    f: Doubles  # N, J


def boost_both(bins: Binned, q1: Doubles, sign: Doubles, weight: Doubles, charge: Charge, rate: float) -> Pair:
    """One ensemble for each, tree by tree in turn, on the negative gradients. sign (N, J): 1 for the class, -1 for the rest."""
    N, J = sign.shape
    g, f = np.zeros(N), np.zeros((N, J))
    gate, cheap = [], []
    least = max(5.0, min(50.0, float(weight.sum()) / 100))
    for _ in range(SETTINGS.trees):
        tree, leaf = grow(bins, gate_slope(q1, g)[:, None], weight, depth=SETTINGS.depth, least=least, choose=charge)
        gate.append(replace(tree, value=rate * tree.value))
        g = g + gate[-1].value[leaf, 0]
        tree, leaf = grow(bins, cheap_slope((1 - q1)[:, None], sign, f), weight, depth=SETTINGS.depth, least=least, choose=charge)
        cheap.append(replace(tree, value=rate * tree.value))
        f = f + cheap[-1].value[leaf]
    return Pair(_joined(gate), _joined(cheap), g, f)


def _joined(parts: Sequence[Trees]) -> Trees:
    """All trees; those that are a leaf and nothing else become one."""
    split = [tree for tree in parts if len(tree.column) > 1]
    still = [tree for tree in parts if len(tree.column) == 1]
    if not still:
        return Trees.join(split)
    return Trees.join([*split, replace(still[0], value=np.sum([tree.value for tree in still], axis=0))])


@dataclass(frozen=True, eq=False)
class Expensive:
    """The model on all columns, the tests that it looks at, and what it gives to the true classes of rows it did not see."""

    classify: Classifier
    tests: Ints
    h: Doubles  # N


def expensive(problem: Problem, validation: Problem, columns: Ints, *, seconds: float, seed: int, threads: int) -> Expensive:
    """The mean of one LightGBM model for each fold left out."""
    y, weight, scales = np.asarray(problem.y), row_weights(problem), loss_scales(problem)
    fold = np.random.default_rng(seed).permutation(len(problem)) % SETTINGS.folds
    sample = some_rows(len(validation), 20_000, seed)
    held_out = validation.X[np.ix_(sample, columns)], np.asarray(validation.y)[sample], scales[np.asarray(validation.y)[sample]]
    models, h = [], np.empty(len(problem))
    for left_out in range(SETTINGS.folds):
        rows, outside = np.flatnonzero(fold != left_out), np.flatnonzero(fold == left_out)
        train = problem.X[np.ix_(rows, columns)], y[rows], weight[rows]
        models.append(
            boost(
                train,
                held_out,
                problem.schema.n_classes,
                seconds=seconds / SETTINGS.folds,
                seed=seed,
                threads=threads,
                rounds=SETTINGS.rounds,
                num_leaves=16,
                feature_fraction=0.8,
            ).model
        )
        p = probabilities(models[-1], problem.X[np.ix_(outside, columns)], threads)
        h[outside] = p[np.arange(len(outside)), y[outside]]
    looked_at = np.any([model.feature_importance() > 0 for model in models], axis=0)
    tests = np.unique(problem.schema.owner[columns[looked_at]])
    return Expensive(Boosted(tuple(models), columns, scales, threads), tests, np.clip(h, 1e-6, 1))


@dataclass(frozen=True, eq=False)
class Gated(Policy):
    """Asks the gate; then buys all for the expensive model where it says so, else what the cheap model asks."""

    gate: Trees
    cheap: Trees
    expensive: Classifier
    tests: Ints  # of the expensive model
    owner: Ints
    first_test: int
    loss: Doubles
    scales: Doubles

    @property
    def fixed_order(self) -> Ints:
        return self.gate.asked_of_all(self.owner)

    def act(self, state: State) -> Choice:
        buyable = state.legal[:, self.first_test :]
        waiting = buyable[:, self.owner]
        wanted, leaf = self.gate.walk(state.values, waiting)
        action = self.first_test + self.owner[wanted]
        through = np.flatnonzero(wanted < 0)
        on = self.gate.total(leaf[through])[:, 0] > 0
        for who, go in ((through[on], self._expensive), (through[~on], self._cheap)):
            if len(who):
                action[who] = go(state.values[who], buyable[who])
        return Choice(action, np.ones(len(action), np.float32))

    def _expensive(self, values: Floats, buyable: Bools) -> Ints:
        missing = buyable[:, self.tests]
        buys = missing.any(1)
        action = np.zeros(len(values), np.int64)
        if buys.any():
            action[buys] = self.first_test + self.tests[missing[buys].argmax(1)]
        if not buys.all():
            action[~buys] = decide(self.expensive(values[~buys]), self.loss)
        return action

    def _cheap(self, values: Floats, buyable: Bools) -> Ints:
        wanted, leaf = self.cheap.walk(values, buyable[:, self.owner])
        action = self.first_test + self.owner[wanted]
        ends = wanted < 0
        action[ends] = decide(self._cheaply(leaf[ends]), self.loss)
        return action

    def _cheaply(self, leaf: Ints) -> Doubles:
        return unweighted(cheap_probabilities(self.cheap.total(leaf)), self.scales)

    def belief(self, state: State) -> Doubles:
        """B, K: class probabilities, those of the expensive model for cases that the gate sends there."""
        waiting = state.legal[:, self.first_test :][:, self.owner]
        on = self.gate.total(self.gate.walk(state.values, waiting)[1])[:, 0] > 0
        p = self._cheaply(self.cheap.walk(state.values, waiting)[1])
        if on.any():
            p[on] = self.expensive(state.values[on])
        return p


@dataclass(frozen=True, eq=False)
class GateLearner:
    """What is the same for all settings: rows, and how the columns are charged."""

    problem: Problem  # the rows that are learned from
    columns: Ints
    bins: Binned
    h: Doubles  # N
    need: Bools  # C, R

    @classmethod
    def of(cls, problem: Problem, columns: Ints, h: Doubles, seed: int) -> GateLearner:
        rows = some_rows(len(problem), max(500, SETTINGS.cells // len(columns)), seed)
        part, schema = problem.take(rows), problem.schema
        need = items(schema.costs, np.eye(schema.n_tests, dtype=bool))[schema.owner[columns]]
        if problem.known is not None:  # what all know is free
            need &= ~np.pad(problem.known.all(0), (0, len(schema.costs.setup)))
        return cls(part, columns, Binned.of(part.X[:, columns]), h[rows], need)

    def alternate(self, penalty: float, share: float, rate: float, until: float = np.inf) -> Pair:
        """q from the models, the models from q, until q has settled; twice at least. At first q is the same for all."""
        y, weight, costs = np.asarray(self.problem.y), row_weights(self.problem), item_costs(self.problem.schema.costs)
        K = self.problem.schema.n_classes
        sign = np.where(y[:, None] == (np.array([1]) if K == 2 else np.arange(K)), 1.0, -1.0)
        alone = self.need @ costs
        lam = penalty / float(alone[alone > 0].mean()) if (alone > 0).any() else 0.0
        q1 = np.full(len(y), share)
        for i in range(SETTINGS.alternations):
            pair = boost_both(self.bins, q1, sign, weight, Charge(self.need, costs, lam, float(weight.sum())), rate)
            p = np.clip(cheap_probabilities(pair.f)[np.arange(len(y)), y], 1e-6, 1)
            before, q1 = q1, sent_on(self.h, p, pair.g, share)
            if np.abs(q1 - before).mean() < SETTINGS.settled or (i > 0 and time.monotonic() > until):
                break
        return Pair(self._back(pair.gate), self._back(pair.cheap), pair.g, pair.f)

    def _back(self, trees: Trees) -> Trees:
        """From the columns shown to those of the problem."""
        return replace(trees, column=np.where(trees.column >= 0, self.columns[trees.column], -1))


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, cap: int | None = None
) -> list[Policy]:
    """Deciding at once, the expensive model for everybody, and of gates with cheap models those on the hull of validation rows.

    Under a hard budget of `cap` units no model sees more than the tests that it allows together.
    """
    policies = candidates(problem, validation, seconds=seconds, seed=seed, threads=threads, cap=cap)
    held_out = validation.with_loss(problem.loss)
    measured = [measure(held_out, policy, None) for policy in policies]
    best = hull([m.cost for m in measured], [-m.loss for m in measured])
    return [policy for i, policy in enumerate(policies) if i in {0, 1, *best.tolist()}]


def candidates(
    problem: Problem, validation: Problem, *, seconds: float, seed: int, threads: int, cap: int | None = None
) -> list[Policy]:
    """Deciding at once, the expensive model for everybody, and gates with cheap models, of as many settings as time allows."""
    ends, schema = time.monotonic() + seconds, problem.trainable().schema
    problem = filled(problem, seed)
    columns = columns_within(problem, cap, seed, threads)
    if not len(columns):
        return [at_once(problem)]
    model = expensive(problem, filled(validation, seed), columns, seconds=seconds / 4, seed=seed, threads=threads)
    policies: list[Policy] = [at_once(problem), Prefix(model.tests, schema.first_test, model.classify, problem.free_loss)]
    learner = GateLearner.of(problem, columns, model.h, seed)
    common = model.classify, model.tests, schema.owner, schema.first_test, problem.free_loss, loss_scales(problem)
    combinations = list(product(SETTINGS.penalties, SETTINGS.shares, SETTINGS.shrinkages))
    drawn = np.random.default_rng(seed).permutation(len(combinations))
    for i, at in enumerate(drawn.tolist()):
        now = time.monotonic()
        if i >= SETTINGS.fewest and now > ends:
            break
        penalty, share, rate = combinations[at]
        pair = learner.alternate(penalty, share, rate, now + (ends - now) / max(SETTINGS.tried - i, 1))
        policies.append(Gated(pair.gate, pair.cheap, *common))
    return policies


def fit(problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0) -> Policy:
    """What is best for the budget on validation rows, or a mixture of two."""
    cap = budget.cap(problem.schema.costs)
    return best_for(points(problem, validation, seconds=seconds, seed=seed, cap=cap), validation, budget, seed)
