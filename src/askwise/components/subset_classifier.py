"""A classifier of any set of tests, for methods that pick one test after the other: its network, how it learns, and the policy
that picks.

The network sees [x ⊙ m, m], where the mask m is 1 for tests that are held; unbought and unavailable look alike. Rows are drawn by
what is at stake in them, and in the probabilities that come out this is undone, as in `boosting`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from askwise.components.boosting import loss_scales, unweighted
from askwise.components.networks import inputs
from askwise.components.pace import BestNetworks, Pace, set_rate
from askwise.components.prefixes import decide
from askwise.components.static_order import free_tests
from askwise.core.arrays import Bools, Doubles, Floats, Ints
from askwise.core.cases import Cases, State
from askwise.core.missingness import filled, lacking, lost
from askwise.core.policy import Choice, Policy
from askwise.core.problem import Problem
from askwise.core.sampling import random_sets, some_rows
from askwise.core.schema import Schema


@dataclass(frozen=True)
class SubsetSettings:
    """How a classifier of any set of tests is learned, and how tests are picked."""

    dropout: float = 0.3  # after each hidden layer
    rate: float = 1e-3  # the learning rate of Adam
    batch: int = 128  # rows of a step, and cases in progress
    longest: int = 64  # so many tests are picked at most
    fewest_steps: int = 30  # of each phase, however short the time
    validation_rows: int = 1_000  # by which the best networks are known
    look_ahead: int = 16  # picks along which networks are measured
    patience: int = 5  # measurements that bring nothing better before a phase ends


SETTINGS = SubsetSettings()


Score = Callable[[State], Doubles]  # B, F: the test with the largest is picked, one with -inf never


class Masked(nn.Module):
    """Two layers with dropout over [x ⊙ m, m]. The mask may be soft: between 0 and 1 where a test is about to be picked."""

    owner: Tensor

    def __init__(self, schema: Schema, outputs: int) -> None:
        super().__init__()
        width = 128 if schema.n_tests <= 200 else 512
        self.register_buffer("owner", torch.from_numpy(schema.owner), persistent=False)
        sizes = [len(schema.columns) + schema.n_tests, width, width]
        pairs = pairwise(sizes)
        layers = [part for a, b in pairs for part in (nn.Linear(a, b), nn.ReLU(inplace=True), nn.Dropout(SETTINGS.dropout))]
        self.layers = nn.Sequential(*layers, nn.Linear(width, outputs))

    def forward(self, values: Tensor, mask: Tensor) -> Tensor:
        """B, outputs from all values (B, C) and a mask (B, F)."""
        out: Tensor = self.layers(torch.cat([values * mask[:, self.owner], mask], 1))
        return out

    @torch.inference_mode()
    def of(self, values: Floats, mask: Bools) -> Tensor:
        """The same for a state, whose values are 0 where they are not known."""
        out: Tensor = self.layers(inputs(values, mask))
        return out


@dataclass(frozen=True, eq=False)
class Belief:
    """p(y | what is held), from a network whose rows were drawn by stake."""

    network: Masked
    scales: Doubles  # K

    def drawn(self, state: State) -> Doubles:
        """B, K: as the network sees the classes."""
        p: Doubles = self.network.of(state.values, state.mask).double().softmax(1).numpy()
        return p

    def __call__(self, state: State) -> Doubles:
        """B, K: for cases as they come."""
        return self.as_they_come(self.drawn(state))

    def as_they_come(self, drawn: Doubles) -> Doubles:
        return unweighted(drawn, self.scales)


@dataclass(frozen=True, eq=False)
class Picking(Policy):
    """Buys whatever costs nothing, then the tests with the largest score until `most` are held, no score is above -inf or nothing
    is to be had, and says the class with the least expected loss.

    Tests that are free for everybody do not count. Those that a case knew from the start do: they look like bought ones.
    """

    classifier: Belief
    score: Score
    most: int
    free: Bools  # F
    loss: Doubles  # K, K

    def act(self, state: State) -> Choice:
        first = state.legal.shape[1] - len(self.free)
        legal, action = state.legal[:, first:], np.full(len(state.mask), -1)
        for_nothing = legal & (self.free if state.test_cost is None else state.test_cost == 0)
        takes = for_nothing.any(1)
        action[takes] = first + for_nothing[takes].argmax(1)
        asks = ~takes & legal.any(1) & (held(state.mask, self.free) < self.most)
        if asks.any():
            score = np.where(legal[asks], self.score(state.keep(asks)), -np.inf)
            action[asks] = np.where(score.max(1) > -np.inf, first + score.argmax(1), -1)
        ends = action < 0
        if ends.any():
            action[ends] = decide(self.classifier(state.keep(ends)), self.loss)
        return Choice(action, np.ones(len(action), np.float32))

    def belief(self, state: State) -> Doubles:
        return self.classifier(state)


@dataclass(frozen=True, eq=False)
class Everything(Policy):
    """Buys all there is for everybody and says the class with the least expected loss."""

    classifier: Belief
    loss: Doubles  # K, K
    tests: Ints  # F

    @property
    def fixed_order(self) -> Ints:
        return self.tests

    def act(self, state: State) -> Choice:
        first = state.legal.shape[1] - len(self.tests)
        legal = state.legal[:, first:]
        ends: Bools = ~np.asarray(legal.any(1))
        action = first + legal.argmax(1)
        if ends.any():
            action[ends] = decide(self.classifier(state.keep(ends)), self.loss)
        return Choice(action, np.ones(len(action), np.float32))

    def belief(self, state: State) -> Doubles:
        return self.classifier(state)


def held(mask: Bools, free: Bools) -> Ints:
    """B: how many tests are held that somebody has to pay."""
    count: Ints = (mask & ~free).sum(1)
    return count


def counts(free: Bools, longest: int = SETTINGS.longest) -> list[int]:
    """How many tests to buy, from none to all that are not free, or `longest`: every number at first, then ever larger steps."""
    most = min(int((~free).sum()), longest)
    numbers, at = [0], 1.0
    while round(at) < most:
        numbers.append(round(at))
        at = max(at + 1, at * 1.25)
    return sorted({*numbers, most})


class SubsetLearner:
    """Teaches a masked classifier, first any sets of tests, then those that cases in progress come to hold. Gaps are `filled`."""

    def __init__(self, problem: Problem, validation: Problem, seconds: float, steps: int | None, seed: int) -> None:
        self.lacking, self.pace = lacking(problem), Pace(seconds, steps, SETTINGS.fewest_steps)
        self.problem = problem = filled(problem.trainable(), seed)
        self.rng = np.random.default_rng(seed)
        self.X, self.y = torch.from_numpy(problem.X), torch.from_numpy(np.asarray(problem.y))
        self.free, self.scales = free_tests(problem), loss_scales(problem)
        self.held_out = filled(validation.labelled().take(some_rows(len(validation), SETTINGS.validation_rows, seed)), seed)
        self.network = Masked(problem.schema, problem.schema.n_classes).eval()
        self.belief = Belief(self.network, self.scales)
        self.adam = torch.optim.Adam(self.network.parameters(), SETTINGS.rate, fused=True)

    def any_sets(self, problem: Problem, row: Ints) -> Bools:
        """B, F: sets of random size; small ones are more frequent, since tests are bought one by one."""
        mask = random_sets(len(row), problem.schema.n_tests, self.rng)
        mask |= self.free & ~lost(self.lacking, len(row), self.rng)
        return mask if problem.known is None else mask | problem.known[row]

    def learn(self, row: Ints, mask: Bools) -> None:
        """One step of the classifier, by cross-entropy, on these sets."""
        self.network.train()
        self.adam.zero_grad()
        out = self.network(self.X[row], torch.from_numpy(mask).float())
        functional.cross_entropy(out, self.y[row]).backward()  # type: ignore[no-untyped-call]
        self.adam.step()
        self.network.eval()

    def pretrain(self, upto: float) -> None:
        """On any sets, until they are predicted best on validation rows. The rate falls in the second half."""
        row = np.arange(len(self.held_out))
        cases = Cases(self.held_out, row, self.any_sets(self.held_out, row), None).observe()
        best, due = BestNetworks((self.network,)), 0.1
        for done in self.pace.phase(upto):
            set_rate(self.adam, SETTINGS.rate * min(1.0, 2 * (1 - done) + 0.01))
            drawn = self.problem.draw(SETTINGS.batch, self.rng)
            self.learn(drawn, self.any_sets(self.problem, drawn))
            if done >= due:
                best.see(self.log_loss(cases))
                due += 0.1
                if best.bad >= SETTINGS.patience:
                    break
        best.see(self.log_loss(cases))
        best.restore()

    def everything(self, longest: int = SETTINGS.longest) -> list[Policy]:
        """Where more tests can be bought than are ever picked, the policy that buys all, with the classifier as it is now."""
        if (~self.free).sum() <= longest:
            return []
        tests = np.arange(self.problem.schema.n_tests)
        return [Everything(Belief(copy.deepcopy(self.network), self.scales), self.problem.free_loss, tests)]

    def log_loss(self, state: State) -> float:
        """Of validation rows in such states, weighted by stake."""
        p = self.belief.drawn(state)[np.arange(len(self.held_out)), self.held_out.y]
        return float(-(np.log(p + 1e-12) * self.scales[self.held_out.y]).mean())

    def path_loss(self, score: Score) -> float:
        """The mean log loss of validation rows before each of the first picks and after the last one."""
        policy = Picking(self.belief, score, self.problem.schema.n_tests, self.free, self.problem.free_loss)
        cases, losses = Cases.start(self.held_out, np.arange(len(self.held_out)), None), []
        for _ in range(min(SETTINGS.look_ahead, len(self.free)) + 1):
            state = cases.observe()
            losses.append(self.log_loss(state))
            cases.step(policy.act(state).action)  # a case that is decided stays as it is
        return float(np.mean(losses))


class PickedCases:
    """Training rows whose tests are picked one after the other. Each ends at a length of its own, short ones being more
    frequent, or when nothing is left, and a new one takes its place."""

    def __init__(self, learner: SubsetLearner, n: int = SETTINGS.batch) -> None:
        self.problem, self.learner, self.rng = learner.problem, learner, learner.rng
        self.longest = max(1, counts(learner.free)[-1])
        self.row, self.life = np.zeros(n, np.int64), np.zeros(n, np.int64)
        self.mask, self.lost = (np.zeros((n, self.problem.schema.n_tests), bool) for _ in range(2))
        self._begin(np.ones(n, bool))

    @property
    def cases(self) -> Cases:
        return Cases(self.problem, self.row, self.mask, None)

    def legal(self) -> Bools:
        """B, F: what can be bought."""
        return self.cases.legal()[:, self.problem.schema.first_test :] & ~self.lost

    def buy(self, test: Ints) -> None:
        """One test each, and what has become free by it; who is at an end begins anew. Who has nothing left buys nothing."""
        cases, buys = self.cases, self.legal()[np.arange(len(test)), test]
        cases.step(np.where(buys, test + self.problem.schema.first_test, 0))  # to name a class leaves a case as it is
        self.mask = cases.mask
        self.life -= 1
        self._take_free()
        self._begin((self.life <= 0) | ~self.legal().any(1))

    def _begin(self, where: Bools) -> None:
        n = int(where.sum())
        if not n:
            return
        self.row[where] = self.problem.draw(n, self.rng)
        self.lost[where] = lost(self.learner.lacking, n, self.rng)
        self.life[where] = np.ceil(self.longest * (1 - self.rng.random(n)) ** 2)
        self.mask[where] = False if self.problem.known is None else self.problem.known[self.row[where]]
        self._take_free()

    def _take_free(self) -> None:
        self.mask |= self.legal() & (self.cases.test_cost() == 0)
