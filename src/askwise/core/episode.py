"""Episodes, vectorised over cases, by the one rule and the one transition that there are, `Cases.legal` and `Cases.step`.

Paper: algorithm 3
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Array, Bools, Doubles, Floats, Ints
from askwise.core.cases import Cases, State
from askwise.core.measures import Mean, Measure, Tally
from askwise.core.policy import Choice, Policy
from askwise.core.problem import Problem
from askwise.errors import InputError


def advance(cases: Cases, policy: Policy) -> tuple[Choice, Bools]:
    """One step of every case: observe, choose, pay. Returns the choices and which cases have been decided."""
    state = cases.observe()
    choice = policy.act(state)
    check_legal(choice, state, policy)
    cases.step(choice.action)
    return choice, choice.action < cases.problem.schema.first_test


def check_legal(choice: Choice, state: State, policy: Policy) -> None:
    """What a policy does must be something that it may."""
    if choice.action.min() < 0 or not state.legal[np.arange(len(choice.action)), choice.action].all():
        raise AssertionError(f"{type(policy).__name__} chose an action that is not legal")


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
    belief: Doubles | None = None  # N, K: with which each was decided; None where it was not asked for or the policy has none

    @property
    def first(self) -> Ints:
        """N: where each episode begins in `action`."""
        return np.cumsum(self.length) - self.length

    def take(self, which: Ints) -> Episodes:
        """Some of the episodes, in this order."""
        length = self.length[which]
        start = np.repeat(self.first[which] - (np.cumsum(length) - length), length)
        steps = start + np.arange(len(start))
        per_step = {"action", "probability"}
        parts: dict[str, Any] = {name: getattr(self, name) for name in Episodes.__dataclass_fields__}
        taken: dict[str, Any] = {n: x if x is None else x[steps if n in per_step else which] for n, x in parts.items()}
        return Episodes(**taken)

    @property
    def padded(self) -> Ints:
        """N, L: the actions of each episode, 0 after its end."""
        actions = np.zeros((len(self.row), self.length.max()), np.int64)
        where = np.repeat(np.arange(len(self.row)), self.length)
        actions[where, np.arange(len(where)) - np.repeat(self.first, self.length)] = self.action
        return actions


def rollout(
    problem: Problem, policy: Policy, cap: int | None, rows: Ints | None = None, chunk: int = 4096, beliefs: bool = False
) -> Episodes:
    """Whole episodes for the given rows (all by default). Finished cases drop out; `chunk` bounds the memory. With `beliefs`, and
    wherever they are judged, also the beliefs with which cases were decided, if the policy has any."""
    if not isinstance(policy, Policy):
        kind = f"{type(policy).__module__}.{type(policy).__qualname__}"
        raise InputError(f"{kind} is used as a policy, but is none; make it a subclass of askwise.core.policy.Policy")
    rows = np.arange(len(problem)) if rows is None else rows
    return _joined([_rollout(problem, policy, cap, rows[i : i + chunk], beliefs) for i in range(0, len(rows), chunk)])


def by_row(parts: Sequence[Episodes]) -> Episodes:
    """Episodes of different rows, put together in the order of the rows."""
    whole = _joined([part for part in parts if len(part.row)])
    return whole.take(np.argsort(whole.row, kind="stable"))


def _joined(parts: Sequence[Episodes]) -> Episodes:
    each = {name: [getattr(p, name) for p in parts] for name in Episodes.__dataclass_fields__}
    whole: dict[str, Any] = {n: None if any(x is None for x in of) else np.concatenate(of) for n, of in each.items()}
    return Episodes(**whole)


def _rollout(problem: Problem, policy: Policy, cap: int | None, rows: Ints, beliefs: bool) -> Episodes:
    n, schema, judged = len(rows), problem.schema, problem.rule is not None and problem.y is not None
    belief = np.empty((n, schema.n_classes)) if beliefs or judged else None
    cases, index = Cases.start(problem, rows, cap), np.arange(n)
    cases.place, policy = index, policy.following(n)
    mask, decision, loss = cases.mask.copy(), np.full(n, -1), np.zeros(n)
    who, what, how = [], [], []
    # a policy that buys the same for everybody need not be asked hundreds of times
    order, free_first = policy.fixed_order, policy.takes_free_first
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
        if belief is not None and done.any():
            own = policy.belief(over.observe())
            if own is not None:
                belief[index[done]] = over.believed(own, choice.action[done])
            elif judged:
                none = f"{type(policy).__name__} has no class probabilities"
                raise InputError(f"{none}, which are what the loss {problem.rule!r} judges; use a loss matrix")
            else:
                belief = None
        loss[index[done]] = over.loss_of(choice.action[done], belief[index[done]] if judged and belief is not None else None)
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
        cost=schema.costs.cost(mask, known) + schema.decision_cost[decision],
        decision=decision,
        loss=loss,
        belief=belief,
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


class Replayed(NamedTuple):
    """The S states of E stored episodes, side by side."""

    cases: Cases  # S
    action: Ints  # S
    episode: Ints  # S
    t: Ints  # S


def replay(problem: Problem, row: Ints, action: Array, length: Ints, cap: int | None) -> Replayed:
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
    return Replayed(Cases(problem, row[episode], mask, cap), flat, episode, t)
