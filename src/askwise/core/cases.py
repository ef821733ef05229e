"""Cases in progress: what a policy may see of them, what may be done, what it costs, and what comes of it.

A state is (row, mask): which case, and which of its tests are held. Cost is a function of the mask, so nothing else needs
keeping, and a state rebuilt from stored decisions is the state that was visited.

Paper: section 2.3, the MDP
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from askwise.core.arrays import Array, Bools, Doubles, Floats, Ints
from askwise.core.problem import Problem
from askwise.errors import InputError


class State(NamedTuple):
    """All that a policy may look at, for B cases. Unbought and unavailable look alike in `values` and `mask`."""

    values: Floats  # B, C: x ⊙ m, 0 where unknown
    mask: Bools  # B, F
    legal: Bools  # B, A: what may be done now
    key: NDArray[np.uint64]  # B: identifies the case, for draws that stay the same along its episode
    left: Doubles | None = None  # B: money left of the hard budget; None when there is none
    test_cost: Doubles | None = None  # B, F: what each test would cost now; None where nobody was told
    place: Ints | None = None  # B: the number of each case in a rollout, in which its tests only become more; None elsewhere

    @property
    def rows(self) -> Ints:
        """B: the number of each row, for one entry of each: `x[state.rows, column]`."""
        return np.arange(self.mask.shape[0], like=self.mask)

    def keep(self, which: Bools) -> State:
        """Only some of the cases."""
        return State(*(None if part is None else part[which] for part in self))  # type: ignore[arg-type]


@dataclass(eq=False)
class Cases:
    """B cases in progress. `cap` is the hard budget in units of the schema's costs, one for all or one for each case; None when
    there is none."""

    problem: Problem
    row: Ints  # B
    mask: Bools  # B, F
    cap: int | Ints | None
    place: Ints | None = None  # B: see `State`

    @classmethod
    def start(cls, problem: Problem, row: Ints, cap: int | Ints | None) -> Cases:
        """Nothing bought; what a case knows already is there, free of charge."""
        if problem.known is None:
            return cls(problem, row, np.zeros((len(row), problem.schema.n_tests), bool), cap)
        return cls(problem, row, problem.known[row], cap)

    def observe(self) -> State:
        """x̄_i = x_i if f_i ∈ F̄ else 0;  m_i = 1 if f_i ∈ F̄ else 0.

        Paper: section 3.2, observation
        """
        left = None if self.cap is None else self.problem.schema.costs.money(self.left())
        return State(self.values(), self.mask, self.legal(), self.problem.keys[self.row], left, self.test_cost(), self.place)

    def values(self) -> Floats:
        """B, C: x ⊙ m."""
        values = self.problem.X[self.row]
        values *= self.problem.schema.by_column(self.mask)
        values += 0.0  # a hidden negative value has become -0.0, which would show its sign
        return values

    def test_cost(self) -> Doubles:
        """B, F: what each test would cost now; meaningless for those that are held."""
        costs = self.problem.schema.costs
        if costs.plain:
            listed = costs.listed  # the same memory for all cases, as numpy.broadcast_to does, which takes several times as long
            return np.ndarray(self.mask.shape, listed.dtype, listed, 0, (0, listed.itemsize))
        return np.asarray(costs.money(costs.marginal(costs.paid(self.mask, self._known()))), float)

    def legal(self, any_available: bool = False) -> Bools:
        """B, A. Deciding for a class is always possible, for something else if the hard budget allows it. A test can be bought
        once, if the row has it, and what it is computed from, and the hard budget allows it.

        `any_available` also counts tests the row lacks: the variation the paper tried and rejected.

        Paper: section 2.5, restricted actions; section 2.6, missing features
        """
        schema, B = self.problem.schema, len(self.row)
        legal = np.ones((B, schema.n_actions), bool)
        tests = legal[:, schema.first_test :]
        np.logical_not(self.mask, out=tests)
        there = None
        if self.problem.available is not None and not any_available:
            there = schema.costs.obtainable(self.problem.available[self.row], self.mask)
            tests &= there
        if self.cap is not None:
            left, known = self.left(), self._known()
            if schema.costs.plain and known is None:
                tests &= schema.costs.own <= left[:, None]
            else:
                tests &= schema.costs.marginal(schema.costs.paid(self.mask, known)) <= left[:, None]
            if schema.costs.decisions.any():
                legal[:, schema.n_classes : schema.n_decisions] = schema.costs.decisions <= np.maximum(left, 0)[:, None]
        if schema.external_needs is not None:
            ask = np.ones(B, bool)
            if there is not None:
                ask &= (there | self.mask | ~schema.external_needs).all(1)
            if self.cap is not None:
                ask &= schema.costs.bill(schema.costs.paid(self.mask, known), self._external_needs()) <= left
            legal[:, schema.n_decisions] = ask
        return legal

    def cost_of(self, action: Ints) -> Ints:
        """B: c(a | F̄) in units; 0 for a class, and for another decision what that costs.

        Paper: section 2.3, reward of a feature; algorithm 3, reward
        """
        schema = self.problem.schema
        test = action - schema.first_test
        last = schema.n_decisions - 1
        decided = np.where(action <= last, schema.decision_cost[np.minimum(action, last)], 0)
        if schema.costs.plain and schema.external_needs is None:
            return np.where(test >= 0, schema.costs.own[np.maximum(test, 0)], decided)
        wanted = np.zeros_like(self.mask)
        buys = np.flatnonzero(test >= 0)
        wanted[buys, test[buys]] = True
        if schema.external_needs is not None:
            wanted[test == -1] = schema.external_needs
        return decided + schema.costs.bill(schema.costs.paid(self.mask, self._known()), wanted)

    def loss_of(self, action: Ints, belief: Array | None = None) -> Doubles:
        """B: ℓ(a, y); 0 for a test, and everywhere when the labels are not known. Under a scoring rule it is what the
        belief (B, K) loses that a decision comes with.

        Paper: section 2.3, reward of a class; algorithm 3, reward
        """
        problem, last = self.problem, self.problem.schema.n_decisions - 1
        if problem.y is None:
            return np.zeros(len(action))
        decision = self.decision_of(action)
        if problem.rule is not None:
            if belief is None:
                only = f"the loss {problem.rule!r} judges class probabilities, and here is only a class"
                raise InputError(f"{only}; use a loss matrix")
            return np.where(decision >= 0, problem.belief_losses(belief, self.row), 0.0)
        return np.where(decision >= 0, problem.loss[problem.y[self.row], np.minimum(decision, last)], 0.0)

    def decision_of(self, action: Ints) -> Ints:
        """B: the class that is said or what else is decided, -1 while tests are bought."""
        decision = np.where(action < self.problem.schema.n_decisions, action, -1)
        if self.problem.external is not None:
            asked = action == self.problem.schema.n_decisions
            decision[asked] = self.problem.external[self.row[asked]]
        return decision

    def believed(self, belief: Array, action: Ints) -> Doubles:
        """B, K: the belief that a decision comes with. What an existing classifier says is believed: its probabilities or, where
        it only names a class, that class, unless the case's own belief (B, K) says the same."""
        own = np.array(belief, np.float64)
        own /= own.sum(1, keepdims=True)  # in single precision they do not quite add up to 1
        if self.problem.external is None:
            return own
        asked = action == self.problem.schema.n_decisions
        if self.problem.external_belief is not None:
            own[asked] = self.problem.external_belief[self.row[asked]]
            return own
        named = self.decision_of(action)
        other = asked & (named != own.argmax(1))
        own[other] = np.eye(own.shape[1])[named[other]]
        return own

    def step(self, action: Ints) -> None:
        """F̄ := F̄ ∪ {a}. The existing classifier leaves all that it needed bought.

        Paper: section 2.3, transition; algorithm 3, add the feature
        """
        schema = self.problem.schema
        self.mask = self.mask.copy()
        buys = np.flatnonzero(action >= schema.first_test)
        self.mask[buys, action[buys] - schema.first_test] = True
        if schema.external_needs is not None:
            self.mask[action == schema.n_decisions] |= schema.external_needs

    def buy_in_order(self, tests: Ints, free_first: bool = False) -> tuple[Ints, Ints] | None:
        """Buys as many of these as each case can have, one after the other. Returns who bought what; None where the cost of one
        test depends on the others, or something that is free has to come first, so that it has to be done step by step."""
        schema, costs = self.problem.schema, self.problem.schema.costs
        free_first = free_first and costs.ever_free
        binds = self.cap is not None and not self._affords(tests)
        if not costs.plain and (free_first or binds):
            return None
        legal = self.legal()[:, schema.first_test :]
        if free_first and (legal & (self.test_cost() == 0)).any():
            return None
        legal = legal[:, tests]
        if binds:
            left = self.left()
            for i, cost in enumerate(costs.own[tests].tolist()):
                legal[:, i] &= cost <= left
                left -= legal[:, i] * cost
        case, which = np.nonzero(legal)
        self.mask = self.mask.copy()
        self.mask[case, tests[which]] = True
        return case, tests[which]

    def _affords(self, tests: Ints) -> bool:
        """Whether every case could pay for all of these together."""
        assert self.cap is not None
        held = self.mask.copy()
        held[:, tests] = True
        return bool((self.problem.schema.costs.cost(held, self._known()) <= self.cap).all())

    def keep(self, which: Array) -> Cases:
        """Only some of the cases."""
        cap = self.cap[which] if isinstance(self.cap, np.ndarray) else self.cap
        place = None if self.place is None else self.place[which]
        return Cases(self.problem, self.row[which], self.mask[which], cap, place)

    def left(self) -> Ints:
        """B: what the hard budget still allows, in units."""
        assert self.cap is not None
        return self.cap - self.problem.schema.costs.cost(self.mask, self._known())

    def _known(self) -> Bools | None:
        return None if self.problem.known is None else self.problem.known[self.row]

    def _external_needs(self) -> Bools:
        assert self.problem.schema.external_needs is not None
        return np.broadcast_to(self.problem.schema.external_needs, self.mask.shape)


def only_free(legal: Bools, test_cost: Doubles) -> Bools:
    """B, A: what may be done (B, A); but whoever can have a test for nothing, by its cost now (B, F), takes such a test first.

    What it tells is never in the way: the same can be done afterwards, for the same money.
    """
    first = legal.shape[1] - test_cost.shape[1]
    free = legal[:, first:] & (test_cost == 0)
    waits = free.any(1)
    if not waits.any():
        return legal
    narrowed = legal.copy()
    narrowed[waits, :first] = False
    narrowed[waits, first:] = free[waits]
    return narrowed
