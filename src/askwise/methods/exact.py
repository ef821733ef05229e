"""The optimum, by dynamic programming, for problems with few discrete tests. It is the optimum on the rows it is given, and so
an upper bound for every other method on these rows only.

A belief state is (which tests are held, their values). All of them form a cube with one axis per test, whose last index means
"not held"; sums along an axis give the masses of the states where that test is not held. Values are kept as masses, not as
expectations, so the recursion has no division and everything is counted in whole numbers:

    W(S, x) = min( min_k mass of loss when k is said,  min_a λ cost(a | S) n(S, x) + sum over v of W(S + a, (x, v)) )

Under a scoring rule the loss when something is said is that of the class shares there, the exact belief. It is no whole number,
so it is rounded to 10⁻⁶ of the largest stake.
"""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from askwise.core.arrays import Bools, Doubles, Floats, Ints
from askwise.core.budget import Budget
from askwise.core.cases import State
from askwise.core.costs import exact as as_written
from askwise.core.policy import Choice, Mixture, Policy
from askwise.core.problem import Problem
from askwise.core.scoring import expected_losses
from askwise.errors import InputError, RowError


class Codes:
    """The discrete values of each test, seen through its columns."""

    def __init__(self, problem: Problem) -> None:
        self.columns = [np.flatnonzero(problem.schema.owner == f) for f in range(problem.schema.n_tests)]
        self.values = [np.unique(problem.X[:, c], axis=0) for c in self.columns]
        self.sizes = tuple(len(v) for v in self.values)

    def __call__(self, values: Floats, mask: Bools) -> Ints:
        """B, F: the index of each value; the number of values where the test is not held or shows a value never seen."""
        codes = np.empty(mask.shape, np.int64)
        for f, (columns, known) in enumerate(zip(self.columns, self.values, strict=True)):
            same = (values[:, None, columns] == known[None]).all(2)  # B, values
            codes[:, f] = np.where(mask[:, f] & same.any(1), same.argmax(1), len(known))
        return codes


@dataclass(frozen=True, eq=False)
class ExactPolicy(Policy):
    """Looks the best action up. What it has never seen it decides by what it has: a value unknown counts as not held."""

    codes: Codes
    table: Ints  # one action per belief state
    stop: Ints  # the best class there
    mass: Ints  # K, ...: how much of each class is there

    def belief(self, state: State) -> Doubles:
        """B, K: the shares of the classes among the rows that show the same; where there are none, among all."""
        by_state = np.moveaxis(self.mass, 0, -1)
        here = by_state[tuple(self.codes(state.values, state.mask).T)]
        return class_shares(np.where(here.any(1, keepdims=True), here, by_state[self.codes.sizes]))

    def act(self, state: State) -> Choice:
        at = tuple(self.codes(state.values, state.mask).T)
        action = self.table[at]
        legal = state.legal[np.arange(len(action)), action]
        return Choice(np.where(legal, action, self.stop[at]), np.ones(len(action), np.float32))


@dataclass(frozen=True, eq=False)
class ExactSolution:
    """A policy and what it comes to, exactly: mean cost and mean loss over the rows, by their weights."""

    policy: Policy
    cost: Fraction
    loss: Fraction


class Exact:
    """The belief states of a problem, ready to be solved for any lambda and any hard budget."""

    def __init__(self, problem: Problem, most_states: int = 3_000_000) -> None:
        problem.trainable()
        self.problem, self.schema = problem, problem.schema
        if problem.available is not None:
            row, test = np.argwhere(~problem.available)[0]
            raise RowError(f"test {self.schema.tests[test]!r} is missing", row, "; the exact optimum needs complete rows")
        if problem.known is not None and (problem.known != problem.known[:1]).any():
            raise InputError("what is known at the start differs from case to case; the exact optimum needs it to be the same")
        self.known = np.zeros(self.schema.n_tests, bool) if problem.known is None else problem.known[0]
        self.codes = Codes(problem)
        states = math.prod(n + 1 for n in self.codes.sizes)
        if states > most_states:
            widest = int(np.argmax(self.codes.sizes))
            raise InputError(
                f"there are {states} belief states, more than {most_states}; the exact optimum is for few discrete tests "
                f"(test {self.schema.tests[widest]!r} alone has {self.codes.sizes[widest]} values)"
            )
        self.loss_unit, loss = _whole(problem.loss)
        if problem.rule is not None:
            self.loss_unit = as_written(problem.loss.max(), "a loss") / 10**6
        held = np.ones((len(problem), self.schema.n_tests), bool)
        cell = tuple(self.codes(problem.X, held).T)
        mass = _counts(problem)
        self.total, self.n = int(mass.sum()), self._cube(cell, mass)
        classes = range(self.schema.n_classes)
        self.mass = np.stack([self._cube(cell, mass * (problem.labels == k)) for k in classes])
        decisions = range(self.schema.n_decisions)
        self.decide = np.stack([sum(self.mass[y] * loss[y, d] for y in classes) for d in decisions])  # the loss mass of each
        self.free = self.schema.decision_cost == 0
        if problem.rule is not None:
            flat = self.mass.reshape(self.schema.n_classes, -1).T
            lost = flat.sum(1, keepdims=True) * expected_losses(class_shares(flat), problem.loss, problem.rule)
            self.decide = self._units(lost).T.reshape(self.mass.shape)
        self.external = None
        if problem.external is not None:
            asked = self._units(problem.external_losses) if problem.rule else loss[problem.labels, problem.external]
            self.external = self._cube(cell, mass * asked)

    def _units(self, loss: Doubles) -> Ints:
        """Losses in whole units, rounded."""
        whole: Ints = np.rint(loss / float(self.loss_unit)).astype(np.int64)
        return whole

    def _cube(self, cell: tuple[Ints, ...], mass: Ints) -> Ints:
        """Sums of `mass` over the rows of every belief state."""
        cube = np.zeros(tuple(s + 1 for s in self.codes.sizes), np.int64)
        np.add.at(cube, cell, mass)
        for axis, size in enumerate(self.codes.sizes):
            inner = np.take(cube, range(size), axis).sum(axis)
            np.moveaxis(cube, axis, 0)[size] = inner
        return cube

    def _slice(self, held: tuple[int, ...]) -> tuple[Any, ...]:
        """The part of a cube where exactly the tests in `held` are held."""
        return tuple(slice(0, s) if f in held else s for f, s in enumerate(self.codes.sizes))

    def solve(self, lam: Fraction, cap: int | None, dear: bool = False) -> ExactSolution:
        """The optimum at `lam` (loss per unit of cost) under a hard budget of `cap` units.

        Among optima it is the cheapest, or with `dear` the most expensive.
        """
        schema, costs = self.schema, self.schema.costs
        # λ cost and loss in one whole number: objective = a * loss units + b * cost units
        rate = lam * costs.smallest_unit / self.loss_unit
        a, b = rate.denominator, rate.numerator
        shape = self.n.shape
        cost, loss = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
        table, stop = np.zeros(shape, np.int64), self.free.nonzero()[0][self.decide[self.free].argmin(0)]
        if int(self.decide.max()) * a + costs.most * self.total * b >= 2**62:
            raise InputError("costs and losses have too many digits for the exact optimum; round them")
        free = [int(f) for f in np.flatnonzero(~self.known)]
        always = tuple(int(f) for f in np.flatnonzero(self.known))
        spent = {}
        for size in range(len(free), -1, -1):
            for bought in itertools.combinations(free, size):
                held = np.zeros((1, schema.n_tests), bool)
                held[0, [*bought, *always]] = True
                at = self._slice((*bought, *always))
                spent[bought] = int(costs.cost(held, self.known[None])[0])
                if cap is not None and spent[bought] > cap:
                    continue
                here_loss = self.decide[(self.free, *at)].min(0)
                here_cost, here_act = np.zeros_like(here_loss), stop[at]
                mass = self.n[at]
                paid = costs.paid(held, self.known[None])

                def offer(its_cost: Ints, its_loss: Ints, action: int) -> None:
                    nonlocal here_cost, here_loss, here_act
                    now, then = a * here_loss + b * here_cost, a * its_loss + b * its_cost
                    cheaper = its_cost > here_cost if dear else its_cost < here_cost
                    better = (then < now) | ((then == now) & cheaper)
                    here_loss = np.where(better, its_loss, here_loss)
                    here_cost = np.where(better, its_cost, here_cost)
                    here_act = np.where(better, action, here_act)

                for decision in (~self.free).nonzero()[0].tolist():
                    its_cost = int(schema.decision_cost[decision])
                    if cap is None or spent[bought] + its_cost <= cap:
                        offer(its_cost * mass, self.decide[(decision, *at)], decision)
                if self.external is not None and schema.external_needs is not None:
                    bill = int(costs.bill(paid, schema.external_needs[None])[0])
                    if cap is None or spent[bought] + bill <= cap:
                        offer(bill * mass, self.external[at], schema.n_decisions)
                for f in free:
                    if f in bought:
                        continue
                    more = tuple(sorted((*bought, f)))
                    if cap is not None and spent[more] > cap:
                        continue
                    its_cost = spent[more] - spent[bought]
                    axis = sum(g < f for g in (*bought, *always))
                    then = self._slice((*more, *always))
                    offer(its_cost * mass + cost[then].sum(axis), loss[then].sum(axis), schema.first_test + f)
                cost[at], loss[at], table[at] = here_cost, here_loss, here_act
        start = self._slice(always)
        return ExactSolution(
            ExactPolicy(self.codes, table, stop, self.mass),
            Fraction(int(cost[start].sum()), self.total) * costs.smallest_unit,
            Fraction(int(loss[start].sum()), self.total) * self.loss_unit,
        )

    def average(self, b: Fraction, cap: int | None, seed: int = 0) -> ExactSolution:
        """The optimum whose mean cost is at most b. Where more money helps it is a mixture of two policies that are both optimal
        at one lambda, found exactly: each step tries the lambda at which the two ends would be equally good."""
        high = self.solve(Fraction(0), cap)
        if high.cost <= b:
            return high
        low = self.nothing()
        while True:
            lam = (low.loss - high.loss) / (high.cost - low.cost)
            cheap, dear = self.solve(lam, cap), self.solve(lam, cap, dear=True)
            if cheap.cost <= b <= dear.cost:
                low, high = cheap, dear
                break
            low, high = (dear, high) if dear.cost < b else (low, cheap)
        if high.cost == low.cost:
            return low
        share = (b - low.cost) / (high.cost - low.cost)
        mixture = Mixture(low.policy, high.policy, float(share), seed)
        return ExactSolution(mixture, b, low.loss + share * (high.loss - low.loss))

    def corners(self, until: float = math.inf) -> list[ExactSolution]:
        """All that some lambda would choose, by rising cost, or what is found in time. Between two that are known, the lambda at
        which they are equally good tells whether there is a better one."""
        corners = {s.cost: s for s in (self.nothing(), self.solve(Fraction(0), None))}
        ahead = [(min(corners), max(corners))]
        while ahead and time.monotonic() < until:
            low, high = (corners[cost] for cost in ahead.pop(0))
            if low.cost == high.cost:
                continue
            lam = (low.loss - high.loss) / (high.cost - low.cost)
            between = self.solve(lam, None)
            if between.loss + lam * between.cost < low.loss + lam * low.cost:
                corners[between.cost] = between
                ahead += [(low.cost, between.cost), (between.cost, high.cost)]
        return [corners[cost] for cost in sorted(corners)]

    def nothing(self) -> ExactSolution:
        """The best without spending. Free tests are used."""
        return self.solve(Fraction(0), 0)


def class_shares(mass: Ints) -> Doubles:
    """B, K: from B, K masses; equal where there are none."""
    total = mass.sum(1, keepdims=True)
    shares: Doubles = np.where(total > 0, mass / np.maximum(total, 1), 1 / mass.shape[1])
    return shares


def _whole(loss: Doubles) -> tuple[Fraction, Ints]:
    """Losses as whole multiples of a unit."""
    fractions = [[as_written(x, "a loss") for x in row] for row in loss.tolist()]
    unit = Fraction(1, math.lcm(*(x.denominator for row in fractions for x in row)))
    return unit, np.array([[int(x / unit) for x in row] for row in fractions], np.int64)


def _counts(problem: Problem) -> Ints:
    """N: how often each row counts, in whole numbers."""
    if problem.weight is None:
        return np.ones(len(problem), np.int64)
    weights = [Fraction(weight).limit_denominator(10_000) for weight in (problem.weight / problem.weight.max()).tolist()]
    unit = math.lcm(*(weight.denominator for weight in set(weights)))
    if unit * len(weights) >= 2**40:
        raise InputError("the row weights have too many digits for the exact optimum; round them")
    return np.array([int(weight * unit) for weight in weights], np.int64)


def solve(problem: Problem, budget: Budget, seed: int = 0) -> ExactSolution:
    """The optimum for any budget, with what it comes to on the rows of `problem`."""
    beliefs, cap = Exact(problem), budget.cap(problem.schema.costs)
    if budget.average is not None:
        return beliefs.average(budget.average, cap, seed)
    return beliefs.solve(Fraction(str(budget.lam or 0)), cap)


def points(
    problem: Problem, validation: Problem | None = None, *, seconds: float, seed: int = 0, threads: int = 1
) -> list[Policy]:
    """The corners of the frontier of `problem`, or those that are found in time; validation rows are not needed."""
    return [corner.policy for corner in Exact(problem).corners(time.monotonic() + seconds)]


def fit(problem: Problem, validation: Problem | None, budget: Budget, *, seconds: float = 60, seed: int = 0) -> Policy:
    """The optimal policy on `problem`; validation rows are not needed, and it takes as long as it takes."""
    return solve(problem, budget, seed).policy
