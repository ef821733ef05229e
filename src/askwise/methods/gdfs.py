"""Greedy picks, learned by gradients: a selector proposes the next test and is judged by what the classifier then knows.

After Covert et al. (2023). A classifier of any set of tests learns on random sets. Then a selector π(x_S, S) learns to lower

    loss of f(x, S + soft pick),   soft pick = softmax((π + Gumbel noise) / temperature),

over one step only: the next state has the hard pick, and nothing flows back through it. The temperature falls from 1 to 0.1 in
five stages, and the classifier goes on learning from the same loss.

The method knows no costs: it picks the most telling test, and a point of its frontier is a number of tests for everybody. Under
a hard budget the most telling of those that can still be paid is bought. What costs nothing is always bought and not counted. An
existing classifier is never asked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from askwise.components.networks import gumbel_perturbed
from askwise.components.pace import BestNetworks, set_rate
from askwise.components.subset_classifier import SETTINGS as SUBSET
from askwise.components.subset_classifier import Masked, PickedCases, Picking, SubsetLearner, counts
from askwise.components.torch_state import own_torch
from askwise.core.arrays import Doubles, Ints
from askwise.core.budget import Budget
from askwise.core.cases import State
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.frontier.choice import best_for


@dataclass(frozen=True)
class GdfsSettings:
    """The settings of gdfs."""

    temperatures: tuple[float, ...] = tuple(np.geomspace(1.0, 0.1, 5).tolist())  # of the soft picks, stage by stage
    alone: float = 0.3  # share of the time for the classifier alone
    measurements: int = 10  # of both networks on validation rows, in each stage


SETTINGS = GdfsSettings()


@dataclass(frozen=True, eq=False)
class Selected:
    """B, F: the selector's scores."""

    selector: Masked

    def __call__(self, state: State) -> Doubles:
        scores: Doubles = self.selector.of(state.values, state.mask).double().numpy()
        return scores


def pick_loss(learner: SubsetLearner, selector: Masked, live: PickedCases, temperature: float) -> tuple[Tensor, Ints]:
    """The classifier's loss after a soft pick, whose gradient reaches both networks, and the hard picks of the same draw."""
    values, mask = learner.X[live.row], torch.from_numpy(live.mask).float()
    legal = torch.from_numpy(live.legal())
    scores = selector(values, mask)
    noisy = gumbel_perturbed(scores, legal, torch.rand_like(scores).numpy())
    soft = (noisy / temperature).softmax(1) * legal  # where nothing is legal, nothing is picked
    loss = functional.cross_entropy(learner.network(values, mask + soft), learner.y[live.row])
    return loss, noisy.argmax(1).numpy()


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, steps: int | None = None
) -> list[Policy]:
    """A policy for each of several numbers of tests, and all. With `steps` it learns for so many, however long they take."""
    with own_torch(seed, threads):
        learner = SubsetLearner(problem, validation, seconds, steps, seed)
        learner.pretrain(SETTINGS.alone)
        everything = learner.everything()  # by the classifier of any sets: later it learns only those that are picked
        selector = Masked(problem.schema, problem.schema.n_tests).eval()
        chosen, live = Selected(selector), PickedCases(learner)
        both = learner.network, selector
        adam = torch.optim.Adam([p for network in both for p in network.parameters()], SUBSET.rate, fused=True)
        best = BestNetworks(both)
        for stage, temperature in enumerate(SETTINGS.temperatures, 1):
            best.bad, due = 0, 1 / SETTINGS.measurements
            for done in learner.pace.phase(SETTINGS.alone + (1 - SETTINGS.alone) * stage / len(SETTINGS.temperatures)):
                set_rate(adam, SUBSET.rate * min(1.0, 2 * (1 - done) + 0.01))
                for network in both:
                    network.train()
                loss, picked = pick_loss(learner, selector, live, temperature)
                adam.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                adam.step()
                for network in both:
                    network.eval()
                live.buy(picked)
                if done >= due:
                    best.see(learner.path_loss(chosen))
                    due += 1 / SETTINGS.measurements
                    if best.bad >= SUBSET.patience:
                        break
            best.see(learner.path_loss(chosen))
            best.restore()
    picks = [Picking(learner.belief, chosen, k, learner.free, problem.free_loss) for k in counts(learner.free)]
    return [*picks, *everything]


def fit(
    problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0, steps: int | None = None
) -> Policy:
    """The number of tests that is best for the budget on validation rows, or a mixture of two."""
    return best_for(points(problem, validation, seconds=seconds, seed=seed, steps=steps), validation, budget, seed)
