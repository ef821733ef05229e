"""A fixed order of tests, boosted trees on its prefixes, and learned stopping: after each stage a case goes on or is decided.

What going on is worth at a stage is regressed, by a small boosted model, from the class probabilities there, from the last stage
back to the first. The probabilities are those of rows that the classifiers did not see: others would stop too early. After
Trapeznikov and Saligrama (2013).
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from askwise.components.boosting import regression
from askwise.components.prefixes import Stage, affordable, boosted_stages, decide, prefix_policies
from askwise.components.static_order import elimination_order
from askwise.core.arrays import Bools, Doubles, Ints
from askwise.core.budget import Budget, lam_range
from askwise.core.cases import State
from askwise.core.information import entropy
from askwise.core.missingness import filled
from askwise.core.policy import Choice, Policy
from askwise.core.problem import Problem
from askwise.frontier.choice import best_for


@dataclass(frozen=True)
class CascadeSettings:
    """The settings of cascade."""

    lambdas: int = 16  # points of the frontier; of these as many as there is time for
    most_rows: int = 40_000  # from which stopping is learned


SETTINGS = CascadeSettings()


@dataclass(frozen=True, eq=False)
class Cascade(Policy):
    """Buys in order. Wherever a stage is reached, it goes on if that is expected to lose less than deciding there."""

    order: Ints
    first_test: int
    stages: list[Stage]
    ahead: list[Any]  # for each stage but the last: a model of the loss, cost included, of going on minus that of deciding
    loss: Doubles
    threads: int = 1

    def act(self, state: State) -> Choice:
        n, case, lengths = len(self.order), np.arange(len(state.mask)), np.array([s.length for s in self.stages])
        can_buy, reached, stage = self._where(state)
        held = state.mask[:, self.order]
        # what is free comes before the first stage and is always bought; who is between two stages has decided to go on
        so_far = np.column_stack([np.zeros(len(case), np.int64), held.cumsum(1)])
        between = so_far[case, reached] > so_far[case, lengths[np.maximum(stage, 0)]]
        asks = ~can_buy | ((stage >= 0) & ~between)
        action = self.first_test + self.order[np.minimum(reached, n - 1)]
        for s in np.unique(stage[asks]).tolist():
            who, at = np.flatnonzero(asks & (stage == s)), max(s, 0)
            p = self.stages[at].classify(state.values[who])
            stops = ~can_buy[who]
            if at < len(self.ahead):
                stops |= self.ahead[at].predict(features(p), num_threads=self.threads) >= 0
            action[who[stops]] = decide(p[stops], self.loss)
        return Choice(action, np.ones(len(action), np.float32))

    def _where(self, state: State) -> tuple[Bools, Ints, Ints]:
        """B each: whether there is anything to buy, how far in the order a case is, and the last stage that it has reached."""
        n, lengths = len(self.order), np.array([s.length for s in self.stages])
        on_offer, held = state.legal[:, self.first_test + self.order], state.mask[:, self.order]
        can_buy = np.asarray(on_offer.any(1))
        # all before the first test on offer is held or not to be had; where nothing is on offer, what counts is the last one held
        reached = np.where(can_buy, on_offer.argmax(1), np.where(held.any(1), n - held[:, ::-1].argmax(1), 0))
        return can_buy, reached, np.searchsorted(lengths, reached, "right") - 1

    def belief(self, state: State) -> Doubles:
        """B, K: class probabilities at the stage that a case has reached."""
        stage = np.maximum(self._where(state)[2], 0)
        p = np.empty((len(stage), len(self.loss)))
        for s in np.unique(stage).tolist():
            p[stage == s] = self.stages[s].classify(state.values[stage == s])
        return p


def features(p: Doubles) -> Doubles:
    """What stopping is learned from: the three largest probabilities, the entropy, and all of them."""
    largest = -np.sort(-p, 1)[:, :3]
    return np.column_stack([largest, entropy(p), p])


@dataclass(frozen=True, eq=False)
class _Walk:
    """Rows that the classifiers have not seen, at every stage."""

    p: list[Doubles]  # N, K each
    lost: list[Doubles]  # N each: the loss when the case is decided here
    paid: list[Doubles]  # N each: cost up to here

    @classmethod
    def along(cls, problem: Problem, order: Ints, stages: list[Stage], p: list[Doubles]) -> _Walk:
        y, costs = np.asarray(problem.y), problem.schema.costs
        paid = []
        for s in stages:
            held = np.repeat(np.isin(np.arange(problem.schema.n_tests), order[: s.length])[None], len(problem), 0)
            if problem.known is not None:
                held |= problem.known
            paid.append(np.asarray(costs.money(costs.cost(held, problem.known)), float))
        if problem.rule is not None:
            rows = np.arange(len(problem))
            return cls(p, [problem.belief_losses(q, rows) for q in p], paid)
        return cls(p, [problem.loss[y, decide(q, problem.free_loss)] for q in p], paid)

    def stopping(self, lam: float, seed: int, threads: int) -> list[Any]:
        """For each stage but the last: going on minus deciding here, regressed from the probabilities.

        V_i = the loss from stage i on, cost included, of stopping where it is predicted to be better; backwards from the last.
        """
        value, models = self.lost[-1], []
        for i in range(len(self.p) - 2, -1, -1):
            going_on = value + lam * (self.paid[i + 1] - self.paid[i])
            inputs, more = features(self.p[i]), self.paid[i + 1] > self.paid[i]  # who can buy nothing more is at the next stage
            learn = more if more.any() else ~more
            models.append(regression(inputs[learn], (going_on - self.lost[i])[learn], seed, threads))
            goes_on = ~more | (models[-1].predict(inputs, num_threads=threads) < 0)
            value = np.where(goes_on, going_on, self.lost[i])
        return models[::-1]


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, cap: int | None = None
) -> list[Policy]:
    """A cascade for each of a range of lambdas, and the prefixes themselves: cascades that stop nowhere before their end.

    Under a hard budget of `cap` units only tests that it allows together are in the order.
    """
    began = time.monotonic()
    problem, validation = filled(problem.trainable(), seed), filled(validation, seed)
    order = affordable(elimination_order(problem, seed, threads=threads), problem.schema.costs, cap)
    left = max(0.8 * seconds - (time.monotonic() - began), 0.2 * seconds)
    stages = boosted_stages(problem, validation, order, seconds=left, seed=seed, threads=threads)
    still = [*prefix_policies(problem, order, stages)]
    ends = lam_range(problem)
    if len(stages) < 2 or ends is None:  # nothing to decide, or nothing to pay
        return [*still]
    outside = [s.outside for s in stages if s.outside is not None]
    if len(outside) == len(stages):
        rows, p = problem, outside
    else:
        rows = validation.with_loss(problem.loss).take(np.arange(min(len(validation), SETTINGS.most_rows)))
        p = [s.classify(rows.X) for s in stages]
    walk = _Walk.along(rows, order, stages, p)
    # the middle of the range first, then ever finer, so that running out of time leaves a coarser range
    grid = np.geomspace(ends[0], ends[1] / 2, SETTINGS.lambdas)
    learned: list[Policy] = []
    for lam in grid[_coarse_to_fine(SETTINGS.lambdas)].tolist():
        ahead = walk.stopping(lam, seed, threads)
        learned.append(Cascade(order, problem.schema.first_test, stages, ahead, problem.free_loss, threads))
        if len(learned) > 3 and time.monotonic() - began > seconds:
            break
    return [*learned, *still]


def _coarse_to_fine(n: int) -> list[int]:
    """0 to n - 1, each half of what lies between two earlier ones."""
    order = [0, n - 1]
    while len(order) < n:
        order += [(a + b) // 2 for a, b in pairwise(sorted(order)) if b - a > 1]
    return order


def fit(problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0) -> Policy:
    """The cascade that is best for the budget on validation rows, or a mixture of two."""
    cap = budget.cap(problem.schema.costs)
    return best_for(points(problem, validation, seconds=seconds, seed=seed, cap=cap), validation, budget, seed)
