"""The MDP, vectorised over cases. There is one loop that buys and decides, `advance`, and everything uses it.

A state is (row, mask): which case, and which of its tests are held. Cost is a function of the mask, so nothing else needs
keeping, and a state rebuilt from stored decisions is the state that was visited.

Paper: section 2.3, the MDP; algorithm 3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from askwise.core.arrays import Array, Bools, Doubles, Floats, Ints
from askwise.core.measures import Mean, Measure, Tally
from askwise.core.problem import Problem

if TYPE_CHECKING:
    from askwise.core.policy import Choice, Policy


class State(NamedTuple):
    """All that a policy may look at, for B cases. Unbought and unavailable look alike in `values` and `mask`."""

    values: Floats  # B, C: x ⊙ m, 0 where unknown
    mask: Bools  # B, F
    legal: Bools  # B, A: what may be done now
    key: NDArray[np.uint64]  # B: identifies the case, for draws that stay the same along its episode
    left: Doubles | None = None  # B: money left of the hard budget; None when there is none
    price: Doubles | None = None  # B, F: what each test would cost now; None where nobody was told

    @property
    def rows(self) -> Ints:
        """B: the number of each row, for one entry of each: `x[state.rows, column]`."""
        return np.arange(self.mask.shape[0], like=self.mask)

    def keep(self, which: Bools) -> State:
        """Only some of the cases."""
        return State(*(None if part is None else part[which] for part in self))  # type: ignore[arg-type]


@dataclass(eq=False)
class Cases:
    """B cases in progress. `cap` is the hard budget in units of the schema's prices, one for all or one for each case; None when
    there is none."""

    problem: Problem
    row: Ints  # B
    mask: Bools  # B, F
    cap: int | Ints | None

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
        return State(self.values(), self.mask, self.legal(), self.problem.keys[self.row], left, self.price())

    def values(self) -> Floats:
        """B, C: x ⊙ m."""
        values = self.problem.X[self.row]
        values *= self.problem.schema.by_column(self.mask)
        values += 0.0  # a hidden negative value has become -0.0, which would show its sign
        return values

    def price(self) -> Doubles:
        """B, F: what each test would cost now; meaningless for those that are held."""
        costs = self.problem.schema.costs
        if costs.plain:
            listed = costs.listed  # the same memory for all cases, as numpy.broadcast_to does, which takes several times as long
            return np.ndarray(self.mask.shape, listed.dtype, listed, 0, (0, listed.itemsize))
        return np.asarray(costs.money(costs.marginal(costs.paid(self.mask, self._known()))), float)

    def legal(self, any_available: bool = False) -> Bools:
        """B, A. Deciding is always possible. A test can be bought once, if the row has it, and what it is computed from,
        and the hard budget allows it.

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
            known = self._known()
            left = self.left()
            paid = schema.costs.paid(self.mask, known)
            tests &= schema.costs.marginal(paid) <= left[:, None]
        if schema.external_needs is not None:
            ask = np.ones(B, bool)
            if there is not None:
                ask &= (there | self.mask | ~schema.external_needs).all(1)
            if self.cap is not None:
                ask &= schema.costs.bill(paid, self._external_needs()) <= left
            legal[:, schema.n_classes] = ask
        return legal

    def cost_of(self, action: Ints) -> Ints:
        """B: c(a | F̄) in units; 0 for a class.

        Paper: section 2.3, reward of a feature; algorithm 3, reward
        """
        schema = self.problem.schema
        test = action - schema.first_test
        if schema.costs.plain and schema.external_needs is None:
            return np.where(test >= 0, schema.costs.own[np.maximum(test, 0)], 0)
        wanted = np.zeros_like(self.mask)
        buys = np.flatnonzero(test >= 0)
        wanted[buys, test[buys]] = True
        if schema.external_needs is not None:
            wanted[test == -1] = schema.external_needs
        return schema.costs.bill(schema.costs.paid(self.mask, self._known()), wanted)

    def loss_of(self, action: Ints) -> Doubles:
        """B: ℓ(a, y); 0 for a test, and everywhere when the labels are not known.

        Paper: section 2.3, reward of a class; algorithm 3, reward
        """
        problem, K = self.problem, self.problem.schema.n_classes
        if problem.y is None:
            return np.zeros(len(action))
        decision = self.decision_of(action)
        return np.where(decision >= 0, problem.loss[problem.y[self.row], np.minimum(decision, K - 1)], 0.0)

    def decision_of(self, action: Ints) -> Ints:
        """B: the class that is said, -1 while tests are bought."""
        decision = np.where(action < self.problem.schema.n_classes, action, -1)
        if self.problem.external is not None:
            asked = action == self.problem.schema.n_classes
            decision[asked] = self.problem.external[self.row[asked]]
        return decision

    def step(self, action: Ints) -> None:
        """F̄ := F̄ ∪ {a}. The existing classifier leaves all that it needed bought.

        Paper: section 2.3, transition; algorithm 3, add the feature
        """
        schema = self.problem.schema
        self.mask = self.mask.copy()
        buys = np.flatnonzero(action >= schema.first_test)
        self.mask[buys, action[buys] - schema.first_test] = True
        if schema.external_needs is not None:
            self.mask[action == schema.n_classes] |= schema.external_needs

    def buy_in_order(self, tests: Ints, free_first: bool = False) -> tuple[Ints, Ints] | None:
        """Buys as many of these as each case can have, one after the other. Returns who bought what; None where the price of one
        test depends on the others, or something that is free has to come first, so that it has to be done step by step."""
        schema, costs = self.problem.schema, self.problem.schema.costs
        free_first = free_first and costs.ever_free
        binds = self.cap is not None and not self._affords(tests)
        if not costs.plain and (free_first or binds):
            return None
        legal = self.legal()[:, schema.first_test :]
        if free_first and (legal & (self.price() == 0)).any():
            return None
        legal = legal[:, tests]
        if binds:
            left = self.left()
            for i, price in enumerate(costs.own[tests].tolist()):
                legal[:, i] &= price <= left
                left -= legal[:, i] * price
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
        return Cases(self.problem, self.row[which], self.mask[which], cap)

    def left(self) -> Ints:
        """B: what the hard budget still allows, in units."""
        assert self.cap is not None
        return self.cap - self.problem.schema.costs.cost(self.mask, self._known())

    def _known(self) -> Bools | None:
        return None if self.problem.known is None else self.problem.known[self.row]

    def _external_needs(self) -> Bools:
        assert self.problem.schema.external_needs is not None
        return np.broadcast_to(self.problem.schema.external_needs, self.mask.shape)


def only_free(legal: Bools, price: Doubles) -> Bools:
    """B, A: what may be done (B, A); but whoever can have a test for nothing, by its price now (B, F), takes such a test first.

    What it tells is never in the way: the same can be done afterwards, for the same money.
    """
    first = legal.shape[1] - price.shape[1]
    free = legal[:, first:] & (price == 0)
    waits = free.any(1)
    if not waits.any():
        return legal
    narrowed = legal.copy()
    narrowed[waits, :first] = False
    narrowed[waits, first:] = free[waits]
    return narrowed


def advance(cases: Cases, policy: Policy) -> tuple[Choice, Bools]:
    """One step of every case: observe, choose, pay. Returns the choices and which cases have been decided."""
    choice = chosen(cases, policy)
    cases.step(choice.action)
    return choice, choice.action < cases.problem.schema.first_test


def chosen(cases: Cases, policy: Policy) -> Choice:
    """What a policy does next, which is always something that it may."""
    state = cases.observe()
    choice = policy.act(state)
    if choice.action.min() < 0 or not state.legal[np.arange(len(choice.action)), choice.action].all():
        raise AssertionError(f"{type(policy).__name__} chose an action that is not legal")
    return choice


@dataclass(frozen=True, eq=False)
class Episodes:
    """N finished episodes: the decisions, and what they came to."""

    row: Ints  # N
    action: Ints  # S: all actions, episode after episode
    probability: Floats  # S: with which the acting policy chose them
    length: Ints  # N
    mask: Bools  # N, F: what was held at the end
    cost: Ints  # N, in units
    decision: Ints  # N
    loss: Doubles  # N

    @property
    def first(self) -> Ints:
        """N: where each episode begins in `action`."""
        return np.cumsum(self.length) - self.length

    @property
    def padded(self) -> Ints:
        """N, L: the actions of each episode, 0 after its end."""
        actions = np.zeros((len(self.row), self.length.max()), np.int64)
        where = np.repeat(np.arange(len(self.row)), self.length)
        actions[where, np.arange(len(where)) - np.repeat(self.first, self.length)] = self.action
        return actions


def rollout(problem: Problem, policy: Policy, cap: int | None, rows: Ints | None = None, chunk: int = 4096) -> Episodes:
    """Whole episodes for the given rows (all by default). Finished cases drop out; `chunk` bounds the memory."""
    rows = np.arange(len(problem)) if rows is None else rows
    return _joined([_rollout(problem, policy, cap, rows[i : i + chunk]) for i in range(0, len(rows), chunk)])


def by_row(parts: Sequence[Episodes]) -> Episodes:
    """Episodes of different rows, put together in the order of the rows."""
    whole = _joined([part for part in parts if len(part.row)])
    order = np.argsort(whole.row, kind="stable")
    length = whole.length[order]
    start = np.repeat(whole.first[order] - (np.cumsum(length) - length), length)
    steps = start + np.arange(len(start))
    per_step = {"action", "probability"}
    return Episodes(*(getattr(whole, name)[steps if name in per_step else order] for name in Episodes.__dataclass_fields__))


def _joined(parts: Sequence[Episodes]) -> Episodes:
    return Episodes(*(np.concatenate([getattr(p, name) for p in parts]) for name in Episodes.__dataclass_fields__))


def _rollout(problem: Problem, policy: Policy, cap: int | None, rows: Ints) -> Episodes:
    n, schema = len(rows), problem.schema
    cases, index = Cases.start(problem, rows, cap), np.arange(n)
    mask, decision, loss = cases.mask.copy(), np.full(n, -1), np.zeros(n)
    who, what, how = [], [], []
    # a policy that buys the same for everybody need not be asked hundreds of times
    order, free_first = getattr(policy, "fixed_order", None), getattr(policy, "takes_free_first", False)
    while len(index):
        bought = None if order is None else cases.buy_in_order(order, free_first)
        if bought is not None:
            who.append(index[bought[0]])
            what.append(bought[1] + schema.first_test)
            how.append(np.ones(len(bought[0]), np.float32))
            order = None
        choice, done = advance(cases, policy)
        who.append(index)
        what.append(choice.action)
        how.append(choice.probability)
        over = cases.keep(done)
        mask[index[done]] = over.mask
        decision[index[done]] = over.decision_of(choice.action[done])
        loss[index[done]] = over.loss_of(choice.action[done])
        cases, index = cases.keep(~done), index[~done]
    case = np.concatenate(who)
    by_case = np.argsort(case, kind="stable")  # from step after step to episode after episode
    known = None if problem.known is None else problem.known[rows]
    return Episodes(
        row=rows,
        action=np.concatenate(what)[by_case],
        probability=np.concatenate(how)[by_case],
        length=np.bincount(case, minlength=n),
        mask=mask,
        cost=schema.costs.cost(mask, known),
        decision=decision,
        loss=loss,
    )


def tally(problem: Problem, done: Episodes) -> Tally:
    """What finished episodes came to. Rows count by their weights, if they have any."""
    truth = problem.y[done.row] if problem.y is not None else np.full(len(done.row), -1)
    weights = None if problem.weight is None else problem.weight[done.row]
    cost, loss, right = (Mean.of(values, weights) for values in (done.cost, done.loss, done.decision == truth))
    return Tally(len(done.row), cost, loss, right)


def measure(problem: Problem, policy: Policy, cap: int | None, rows: Ints | None = None) -> Measure:
    """Rolls the policy out and averages."""
    return tally(problem, rollout(problem, policy, cap, rows)).measure(problem.schema.costs)


def some_rows(n: int, most: int, seed: int) -> Ints:
    """All of n rows, or `most` of them, the same ones throughout a run; 0 is no limit."""
    if not most or n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))


class Steps(NamedTuple):
    """The S states of E stored episodes, side by side."""

    cases: Cases  # S
    action: Ints  # S
    episode: Ints  # S
    t: Ints  # S


def replay(problem: Problem, row: Ints, action: Array, length: Ints, cap: int | None) -> Steps:
    """Rebuilds every state of stored episodes from the decisions: row (E), action (E, L), length (E)."""
    schema, E = problem.schema, len(row)
    episode = np.repeat(np.arange(E), length)
    t = np.arange(len(episode)) - np.repeat(np.cumsum(length) - length, length)
    flat: Ints = action[episode, t].astype(np.int64)
    # when[e, f]: the step at which test f was bought; a state at step t holds what was bought before t
    never = np.iinfo(np.int16).max if action.shape[1] < np.iinfo(np.int16).max else np.iinfo(np.int32).max
    when = np.full((E, schema.n_tests), never, np.int16 if never < 2**15 else np.int32)
    if problem.known is not None:
        when[problem.known[row]] = -1
    buys = flat >= schema.first_test
    when[episode[buys], flat[buys] - schema.first_test] = t[buys]
    mask = when[episode] < t.astype(when.dtype)[:, None]
    return Steps(Cases(problem, row[episode], mask, cap), flat, episode, t)
