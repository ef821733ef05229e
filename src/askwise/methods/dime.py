"""Greedy picks by what each test is expected to tell, for its cost.

After Gadgil et al. (2024). A classifier f of any set of tests learns on random sets. Then a second network v learns what the
picked test a brought,

    target = loss of f(x_S) - loss of f(x_{S + a}),   v = entropy of f(x_S) · sigmoid(output for a),

whose mean is the information of a about the class, given x_S; that is never more than the entropy. Bought is argmax v / cost, at
random with probability ε in training; ε and the learning rate fall when nothing gets better. The classifier goes on learning on
the sets that are picked.

A policy stops where no test tells more than λ per unit of cost, or where the classifier is sure enough; each λ and each degree of
sureness is a point. The cost is that of a test now, given what is paid already, and what costs nothing is always bought.
Losses of mistakes decide how often rows are drawn and what is said at the end; the information itself is about classes, not
losses. An existing classifier is never asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from askwise.components.pace import BestNetworks, set_rate
from askwise.components.subset_classifier import SETTINGS as SUBSET
from askwise.components.subset_classifier import Belief, Masked, PickedCases, Picking, SubsetLearner, counts
from askwise.components.torch_state import own_torch
from askwise.core.arrays import Bools, Doubles, Ints
from askwise.core.budget import Budget
from askwise.core.cases import State
from askwise.core.information import entropy
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.frontier.choice import best_for


@dataclass(frozen=True)
class DimeSettings:
    """The settings of dime."""

    alone: float = 0.3  # share of the time for the classifier alone
    epsilon: float = 0.05  # share of random picks, at first
    measurements: int = 40  # of both networks on validation rows; the best are kept
    plateau: int = 3  # measurements that bring nothing better before ε and the rate are halved
    halvings: int = 4  # after so many it ends
    lambdas: int = 20  # points of the frontier that stop by λ
    sureness: tuple[float, ...] = (0.7, 0.8, 0.9, 0.95, 0.98, 0.99)  # probabilities of a class at which points stop


SETTINGS = DimeSettings()


@dataclass(frozen=True, eq=False)
class InformationPerCost:
    """B, F: expected information per unit of cost; -inf where that is not above `lam`, or where the most likely class has a
    probability of `sure` or more."""

    value: Masked
    belief: Belief
    lam: float
    sure: float
    costs: Doubles  # F: for where a state does not say what tests cost now

    def __call__(self, state: State) -> Doubles:
        p = self.belief.drawn(state)
        value = entropy(p) / (1 + np.exp(-self.value.of(state.values, state.mask).double().numpy()))
        rate = per_cost(value, self.costs if state.test_cost is None else state.test_cost)
        stops = self.belief.as_they_come(p).max(1, keepdims=True) >= self.sure
        rated: Doubles = np.where((rate > self.lam) & ~stops, rate, -np.inf)
        return rated


def per_cost(value: Doubles, cost: Doubles) -> Doubles:
    """B, F. A test for nothing is worth any value."""
    rate: Doubles = value / np.maximum(cost, 1e-9)
    return rate


def brought(learner: SubsetLearner, live: PickedCases, test: Ints) -> tuple[Tensor, Tensor]:
    """B: entropy of the classifier before a test is bought, and how much its loss falls by it."""
    values, labels = learner.X[live.row], learner.y[live.row]
    after = live.mask.copy()
    after[np.arange(len(test)), test] = True
    with torch.no_grad():
        before, then = (learner.network(values, torch.from_numpy(m).float()).log_softmax(1) for m in (live.mask, after))
        drop = functional.nll_loss(before, labels, reduction="none") - functional.nll_loss(then, labels, reduction="none")
        return -(before.exp() * before).sum(1), drop


def pick(rate: Doubles, legal: Bools, epsilon: float, rng: np.random.Generator) -> Ints:
    """B: the legal test with the largest rate, or with probability ε any."""
    at_random = rng.random((len(rate), 1)) < epsilon
    picked: Ints = np.where(legal, np.where(at_random, rng.random(rate.shape), rate), -np.inf).argmax(1)
    return picked


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, steps: int | None = None
) -> list[Policy]:
    """A policy for each of a range of lambdas and degrees of sureness. With `steps` it learns for so many of these."""
    costs = problem.schema.costs
    alone = np.asarray(costs.money(costs.alone), float)
    with own_torch(seed, threads):
        learner = SubsetLearner(problem, validation, seconds, steps, seed)
        learner.pretrain(SETTINGS.alone)
        everything = learner.everything()  # by the classifier of any sets: later it learns only those that are picked
        value = Masked(problem.schema, problem.schema.n_tests).eval()
        _learn_values(learner, value, InformationPerCost(value, learner.belief, -np.inf, np.inf, alone))

    # from where hardly any test tells enough to where all do
    shares = np.bincount(np.asarray(problem.y), learner.scales[problem.y], len(learner.scales)) / len(problem)
    most, paid = float(entropy(shares[None])[0, 0]), alone[alone > 0]
    lambdas = np.geomspace(most / paid.min(), 1e-3 * most / paid.sum(), SETTINGS.lambdas).tolist() if len(paid) else []

    def policy(lam: float, sure: float) -> Policy:
        score = InformationPerCost(value, learner.belief, lam, sure, alone)
        return Picking(learner.belief, score, counts(learner.free)[-1], learner.free, problem.free_loss)

    at_once, most_of_it = policy(np.inf, np.inf), policy(0.0, np.inf)
    adaptive = [*(policy(lam, np.inf) for lam in lambdas), *(policy(0.0, sure) for sure in SETTINGS.sureness)]
    return [at_once, *adaptive, most_of_it, *everything]


def _learn_values(learner: SubsetLearner, value: Masked, score: InformationPerCost) -> None:
    """Both networks, along cases whose tests are picked by the values themselves; the best on validation rows are kept."""
    live, rng = PickedCases(learner), learner.rng
    adam = torch.optim.Adam(value.parameters(), SUBSET.rate, fused=True)
    best, halvings, due = BestNetworks((learner.network, value)), 0, 1 / SETTINGS.measurements
    for done in learner.pace.phase(1.0):
        for optimiser in (adam, learner.adam):
            set_rate(optimiser, SUBSET.rate * 0.5**halvings * min(1.0, 2 * (1 - done) + 0.01))
        case, legal = np.arange(len(live.row)), live.legal()
        picked = pick(score(live.cases.observe()), legal, SETTINGS.epsilon * 0.5**halvings, rng)
        bound, drop = brought(learner, live, picked)
        value.train()
        adam.zero_grad()
        out = value(learner.X[live.row], torch.from_numpy(live.mask).float())
        expected = bound * out[case, picked].sigmoid()
        weight = torch.from_numpy(legal[case, picked]).float()  # who has nothing left to buy has nothing to tell
        (weight * (expected - drop) ** 2).mean().backward()
        adam.step()
        value.eval()
        live.buy(picked)
        learner.learn(live.row, live.mask)
        if done >= due:
            best.see(learner.path_loss(score))
            due += 1 / SETTINGS.measurements
            if best.bad >= SETTINGS.plateau:
                best.bad, halvings = 0, halvings + 1
                if halvings > SETTINGS.halvings:
                    break
    best.see(learner.path_loss(score))
    best.restore()


def fit(
    problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0, steps: int | None = None
) -> Policy:
    """The lambda or the sureness that is best for the budget on validation rows, or a mixture of two."""
    return best_for(points(problem, validation, seconds=seconds, seed=seed, steps=steps), validation, budget, seed)
