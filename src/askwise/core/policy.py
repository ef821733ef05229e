"""Policies: from what is known of B cases to what is done next. They see a `State` and nothing else: no row, no label."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askwise.core.arrays import Array, Bools, Doubles, Floats, Ints
from askwise.core.cases import State, only_free
from askwise.core.measures import Measure
from askwise.core.problem import Problem
from askwise.core.sampling import uniform
from askwise.core.scoring import expected_losses

QFunction = Callable[[State], Floats]  # B, A
NEVER = -1e9  # the value of what is only done when nothing else may be


class Choice(NamedTuple):
    """What B cases do next, and the probability with which they do it."""

    action: Ints
    probability: Floats


class ValueView(NamedTuple):
    """What values of B states come from, as far as they can tell; losses in units of `loss_scale`, NaN where they cannot."""

    q: Floats  # B, A
    belief: Array | None  # B, K: class probabilities; None: only what can be read from the values of the classes
    gain: Array  # B, F: loss and scaled cost saved by going on with a test rather than deciding now; NaN: not considered
    loss: Array  # B: expected at the end
    cost: Array  # B: money to be paid until then
    coming: Bools | None  # B, F: where the order is fixed, what of it will still be bought


class Explained(NamedTuple):
    """A choice, what it comes from, and the state it was made in: where something is free, only that is legal there."""

    choice: Choice
    view: ValueView
    state: State


class Policy(ABC):
    """From what is known of B cases to what each does next. A policy must have `act`; the rest is what it may offer besides."""

    takes_free_first: ClassVar[bool] = False  # whether it takes all that is free before it follows its `fixed_order`

    @abstractmethod
    def act(self, state: State) -> Choice:
        """What each case does next: something legal."""

    @property
    def fixed_order(self) -> Ints | None:
        """Tests that it buys first, in this order, whatever it sees; None: it has no such order."""
        return None

    def following(self, n: int) -> Policy:
        """The same policy for one rollout of n cases: of each it may remember what it has computed, by `State.place`."""
        return self

    @property
    def measured(self) -> Measure | None:
        """What its method measured of it on rows that it has not learned from. A method that also learns from validation rows
        must say it, since these can tell nothing more; None: validation rows can tell."""
        return None

    def belief(self, state: State) -> Array | None:
        """B, K: class probabilities of cases that it would decide now; None: it has none."""
        return None

    def values(self, state: State) -> Array | None:
        """B, A: what it believes each action is worth; None: it has no values."""
        return None

    def explain(self, state: State) -> Explained | None:
        """What `act` does, and why; None: it cannot say."""
        return None


class ValueFunction(ABC):
    """What each action is worth. A value function must be callable; the rest is what it may tell besides."""

    @abstractmethod
    def __call__(self, state: State) -> Floats:
        """B, A."""

    @property
    def fixed_order(self) -> Ints | None:
        """Tests that its values put before everything else, in this order; None: they depend on the state."""
        return None

    def following(self, n: int) -> ValueFunction:
        """The same for one rollout of n cases, see `Policy.following`."""
        return self

    def coming(self, state: State) -> Bools | None:
        """B, F: which tests of the fixed order are still to come; None: it has no such order."""
        return None

    def belief(self, state: State) -> Array | None:
        """B, K: class probabilities; None: only what can be read from the values of the classes."""
        return None

    def view(self, state: State) -> ValueView:
        """The values, and what they come from."""
        values, F, B = self(state), state.mask.shape[1], len(state.mask)
        K = state.legal.shape[1] - F
        gain = np.where(state.legal[:, K:], values[:, K:] - values[:, :K].max(1, keepdims=True), np.nan)
        return ValueView(values, None, gain, np.full(B, np.nan), np.full(B, np.nan), None)


def free_first(state: State) -> State:
    """The same, where as long as something is free only that may be done; see `only_free`."""
    return state if state.test_cost is None else state._replace(legal=only_free(state.legal, state.test_cost))


def greedy(q: Floats, legal: Bools) -> Ints:
    """The best legal action. Classes come first, so that a tie is broken towards stopping.

    Paper: section 3.1, greedy policy
    """
    best: Ints = np.where(legal, q, -np.inf).argmax(1)
    return best


@dataclass(frozen=True)
class Greedy(Policy):
    """Always the action with the largest value; what is free comes first."""

    value_function: ValueFunction
    takes_free_first: ClassVar[bool] = True

    def act(self, state: State) -> Choice:
        state = free_first(state)
        return Choice(greedy(self.value_function(state), state.legal), np.ones(len(state.mask), np.float32))

    @property
    def fixed_order(self) -> Ints | None:
        return self.value_function.fixed_order

    def following(self, n: int) -> Greedy:
        return replace(self, value_function=self.value_function.following(n))

    def belief(self, state: State) -> Array | None:
        return self.value_function.belief(state)

    def values(self, state: State) -> Floats:
        return self.value_function(free_first(state))

    def explain(self, state: State) -> Explained:
        now = free_first(state)
        view = self.value_function.view(now)
        if view.coming is not None:  # also what comes after that which is free
            view = view._replace(coming=self.value_function.coming(state))
        return Explained(Choice(greedy(view.q, now.legal), np.ones(len(state.mask), np.float32)), view, now)


@dataclass(frozen=True)
class MeasuredGreedy(Greedy):
    """Greedy, and what was measured of it."""

    out_of_fold: Measure

    @property
    def measured(self) -> Measure:
        return self.out_of_fold


@dataclass(frozen=True)
class Constant(ValueFunction):
    """The same values in every state, for decisions only: greedy on these decides at once."""

    decisions: tuple[float, ...]
    shares: tuple[float, ...] | None = None  # of the classes, which it believes

    def belief(self, state: State) -> Doubles | None:
        return None if self.shares is None else np.tile(self.shares, (len(state.mask), 1))

    def __call__(self, state: State) -> Floats:
        values = np.full_like(state.legal, NEVER, dtype=np.float32)
        values[:, : len(self.decisions)] = self.decisions
        return values

    def view(self, state: State) -> ValueView:
        """The values; nothing else was considered."""
        B, F = state.mask.shape
        gain = np.full((B, F), np.nan)
        return ValueView(self(state), self.belief(state), gain, np.full(B, np.nan), np.full(B, np.nan), None)


def decision_values(problem: Problem) -> tuple[float, ...]:
    """D: minus the scaled loss to expect of each decision when nothing is known; what costs something is never decided."""
    expected = problem.mean(problem.loss[problem.labels])
    if problem.rule is not None:
        expected = expected_losses(problem.shares[None], problem.loss, problem.rule)[0]
    return tuple(np.where(problem.schema.decision_cost > 0, NEVER, -expected / problem.loss_scale).tolist())


def decide_at_once(problem: Problem) -> Greedy:
    """Buys nothing and makes the decision with the least expected loss, among those that cost nothing."""
    return Greedy(Constant(decision_values(problem), tuple(problem.shares.tolist())))


@dataclass(frozen=True)
class Exploring(Policy):
    """ε-greedy: with probability ε any legal action, classes included. Without a value function: purely random. What is free
    comes first, as it does when the policy is used.

    Paper: section 3.2, ε-greedy policy
    """

    value_function: QFunction | None
    epsilon: float
    rng: np.random.Generator

    def act(self, state: State) -> Choice:
        state = free_first(state)
        B = len(state.mask)
        anywhere = self.epsilon / state.legal.sum(1)
        explore = self.rng.random(B) < self.epsilon
        noise = self.rng.random((int(explore.sum()), state.legal.shape[1]), dtype=np.float32)
        random = np.where(state.legal[explore], noise, -1).argmax(1)
        if self.value_function is None:
            action = np.zeros(B, np.int64)
            action[explore] = random
            return Choice(action, anywhere.astype(np.float32))
        best = greedy(self.value_function(state), state.legal)
        action = best.copy()
        action[explore] = random
        return Choice(action, (anywhere + (1 - self.epsilon) * (action == best)).astype(np.float32))

    def belief(self, state: State) -> Array | None:
        return self.value_function.belief(state) if isinstance(self.value_function, ValueFunction) else None


def random_policy(rng: np.random.Generator) -> Exploring:
    """Any legal action with equal probability.

    Paper: algorithm 2, initialise memory
    """
    return Exploring(None, 1.0, rng)


@dataclass(frozen=True)
class Always(Policy):
    """Says one class at once and buys nothing."""

    decision: int

    def act(self, state: State) -> Choice:
        B = len(state.mask)
        return Choice(np.full(B, self.decision), np.ones(B, np.float32))


@dataclass(frozen=True)
class Mixture(Policy):
    """Follows `second` for a share of the cases and `first` for the others. Each case draws once, from a hash of the seed
    and its key, so that the draw does not depend on the batch and stays the same along the episode.

    Paper: section 2.4, stochastic policy
    """

    first: Policy
    second: Policy
    share: float
    seed: int = 0

    def act(self, state: State) -> Choice:
        action = np.empty(len(state.key), np.int64)
        probability = np.empty(len(state.key), np.float32)
        for arm, who in self.arms(state):
            action[who], probability[who] = arm.act(state.keep(who))
        return Choice(action, probability)

    def following(self, n: int) -> Mixture:
        return replace(self, first=self.first.following(n), second=self.second.following(n))

    def belief(self, state: State) -> Doubles | None:
        return self._by_arm(state, lambda arm, part: arm.belief(part))

    def values(self, state: State) -> Doubles | None:
        return self._by_arm(state, lambda arm, part: arm.values(part))

    def _by_arm(self, state: State, tell: Callable[[Policy, State], Array | None]) -> Doubles | None:
        """What the arm that each case follows tells; None where one of them tells nothing."""
        parts = [(who, tell(arm, state.keep(who))) for arm, who in self.arms(state)]
        joined = None
        for who, part in parts:
            if part is None:
                return None
            joined = np.empty((len(who), part.shape[1])) if joined is None else joined
            joined[who] = part
        return joined

    def arms(self, state: State) -> list[tuple[Policy, Bools]]:
        """The policies that some of the cases follow, and who follows each."""
        second = self.takes_second(state.key)
        return [(arm, who) for arm, who in ((self.first, ~second), (self.second, second)) if who.any()]

    def takes_second(self, key: NDArray[np.uint64]) -> Bools:
        """B: who follows the second policy."""
        drawn: Bools = uniform(key, self.seed) < self.share
        return drawn
