"""Classifiers on the prefixes of a fixed order of tests, and the policy that buys one prefix for everybody."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.components.boosting import Boosted, ClassShares, Fitted, boost, loss_scales, probabilities, row_weights, unweighted
from askwise.components.static_order import elimination_order, free_tests
from askwise.core.arrays import Bools, Doubles, Floats, Ints
from askwise.core.cases import State
from askwise.core.costs import CostFunction
from askwise.core.policy import Choice, Policy
from askwise.core.problem import Problem

Classifier = Callable[[Floats], Doubles]  # B, C values to B, K probabilities


@dataclass(frozen=True)
class PrefixSettings:
    """How a classifier is learned for each prefix of an order."""

    # a practitioner's three tries: many small trees for few rows, the usual ones, large ones for many rows
    trees: tuple[dict[str, Any], ...] = (
        {"num_leaves": 8, "min_data_in_leaf": 5, "feature_fraction": 0.5},
        {"num_leaves": 31, "feature_fraction": 0.8},
        {"num_leaves": 127, "feature_fraction": 0.8},
    )
    few_rows: int = 20_000  # with fewer training rows each prefix has several models, each with a fold left out
    folds: int = 5  # of the training rows, where these are few
    enough_rounds: int = 120  # a grid of prefixes is made coarser until each model gets about as many rounds


SETTINGS = PrefixSettings()


@dataclass(frozen=True, eq=False)
class Stage:
    """The classifier of the first `length` tests of an order."""

    length: int
    classify: Classifier
    outside: Doubles | None = None  # N, K: for the training rows, from models that did not see them


@dataclass(frozen=True, eq=False)
class Prefix(Policy):
    """Buys the given tests one by one, passing over those that are not to be had, and then says the class with the least
    expected loss."""

    tests: Ints
    first_test: int
    classify: Classifier
    loss: Doubles  # K, K

    @property
    def fixed_order(self) -> Ints:
        return self.tests

    def act(self, state: State) -> Choice:
        action = np.empty(len(state.mask), np.int64)
        wanted = state.legal[:, self.first_test + self.tests]
        buys: Bools = np.asarray(wanted.any(1))
        action[buys] = self.first_test + self.tests[wanted[buys].argmax(1)] if buys.any() else 0
        if not buys.all():
            action[~buys] = decide(self.belief(state.keep(~buys)), self.loss)
        return Choice(action, np.ones(len(action), np.float32))

    def belief(self, state: State) -> Doubles:
        """B, K: class probabilities."""
        return self.classify(state.values)


def decide(p: Doubles, loss: Doubles) -> Ints:
    """B: the class with the least expected loss."""
    decision: Ints = (p @ loss).argmin(1)
    return decision


def prefix_policies(problem: Problem, order: Ints, stages: list[Stage]) -> list[Prefix]:
    """The policy of each stage."""
    return [Prefix(order[: s.length], problem.schema.first_test, s.classify, problem.free_loss) for s in stages]


def at_once(problem: Problem) -> Prefix:
    """Buys nothing, and believes in the shares of the classes."""
    return Prefix(np.zeros(0, np.int64), problem.schema.first_test, ClassShares.of(problem), problem.free_loss)


def columns_within(problem: Problem, cap: int | None, seed: int, threads: int) -> Ints:
    """The columns of tests that a hard budget of `cap` units allows together, the best of the static order first; None: all."""
    if cap is None:
        return np.arange(len(problem.schema.columns))
    order = affordable(elimination_order(problem, seed, threads=threads), problem.schema.costs, cap)
    return np.flatnonzero(np.isin(problem.schema.owner, order))


def affordable(order: Ints, costs: CostFunction, cap: int | None) -> Ints:
    """Those tests of the order that can all be bought together for `cap`; the earlier ones have the right of way."""
    held, kept = np.zeros((1, len(costs.own)), bool), []
    for test in order.tolist():
        held[0, test] = True
        if cap is None or int(costs.cost(held)[0]) <= cap:
            kept.append(test)
        else:
            held[0, test] = False
    return np.array(kept, np.int64)


def lengths_of(problem: Problem, order: Ints, most: int) -> list[int]:
    """About `most` lengths of prefixes at most, from what is free to everything: all of them, or a grid that is fine where it
    begins, since the first tests matter most."""
    first, F = int(free_tests(problem)[order].sum()), len(order)
    every = list(range(first, F + 1))
    for factor in (1.1, 1.2, 1.35, 1.5, 2.0):
        if len(every) <= max(most, 8) and len(every) <= 66:
            break
        every, at = [first], 1.0
        while first + at < F:
            every.append(first + round(at))
            at = max(at + 1, at * factor)
        every.append(F)
    return sorted(set(every))


def boosted_stages(
    problem: Problem, validation: Problem, order: Ints, *, seconds: float, seed: int = 0, threads: int = 1
) -> list[Stage]:
    """A boosted classifier for each prefix of a grid, the settings of its trees tuned on validation rows, in about `seconds`."""
    learner = PrefixLearner(problem, validation, order, seed, threads)
    ends = time.monotonic() + seconds
    # on a prefix at the beginning of the plateau, each try for as long as a model will have in the end
    tries = [learner.fit(max(1, len(order) // 3), None, seconds / 24, tree) for tree in SETTINGS.trees] if len(order) else []
    best = min(range(len(tries)), key=lambda i: tries[i].log_loss, default=0)
    folds = SETTINGS.folds if len(problem) < SETTINGS.few_rows else 1
    per_round = tries[best].per_round if tries else 1.0
    lengths = lengths_of(problem, order, int((ends - time.monotonic()) / (folds * SETTINGS.enough_rounds * per_round)))
    share = np.array(lengths) + len(order) / 4  # more tests, more time; what short prefixes do not use goes to the longer ones
    stages = []
    for i, length in enumerate(lengths):
        granted = max(ends - time.monotonic(), 0.0) * share[i] / share[i:].sum()
        stages.append(learner.stage(length, folds, granted, SETTINGS.trees[best]))
    return stages


class PrefixLearner:
    """What is the same for all prefixes: rows, weights, folds."""

    def __init__(self, problem: Problem, validation: Problem, order: Ints, seed: int, threads: int) -> None:
        self.problem, self.order, self.seed, self.threads = problem, order, seed, threads
        self.weight = row_weights(problem)
        self.fold = np.random.default_rng(seed).permutation(len(problem)) % SETTINGS.folds
        rows = np.random.default_rng(seed).permutation(len(validation))[: SETTINGS.few_rows]  # enough to know when to stop
        self.held_out = validation.take(np.sort(rows)).with_loss(problem.loss)

    def columns(self, length: int) -> Ints:
        return np.flatnonzero(np.isin(self.problem.schema.owner, self.order[:length]))

    def fit(self, length: int, without: int | None, seconds: float, tree: dict[str, Any]) -> Fitted:
        """One model, from all training rows or without one fold."""
        columns, y = self.columns(length), np.asarray(self.problem.y)
        rows = np.flatnonzero(self.fold != without) if without is not None else np.arange(len(y))
        train = self.problem.X[np.ix_(rows, columns)], y[rows], self.weight[rows]
        # by the scales of the training rows: loss_scales(held_out) would be scaled by the validation rows' own mean
        held_out = self.held_out.X[:, columns], np.asarray(self.held_out.y), loss_scales(self.problem)[self.held_out.y]
        classes, seed = self.problem.schema.n_classes, self.seed + (without or 0)
        return boost(train, held_out, classes, seconds=seconds, seed=seed, threads=self.threads, **tree)

    def stage(self, length: int, folds: int, seconds: float, tree: dict[str, Any]) -> Stage:
        columns = self.columns(length)
        if not len(columns):
            shares = ClassShares.of(self.problem)
            return Stage(length, shares, shares(self.problem.X) if folds > 1 else None)
        left_out = range(folds) if folds > 1 else [None]
        models = tuple(self.fit(length, fold, seconds / folds, tree).model for fold in left_out)
        scales = loss_scales(self.problem)
        classify = Boosted(models, columns, scales, self.threads)
        if folds == 1:
            return Stage(length, classify)
        outside = np.empty((len(self.problem), self.problem.schema.n_classes))
        for fold, model in enumerate(models):
            left_out_rows = self.fold == fold
            outside[left_out_rows] = probabilities(model, self.problem.X[np.ix_(left_out_rows, columns)], self.threads)
        return Stage(length, classify, unweighted(outside, scales))
