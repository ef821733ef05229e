"""An order in which to buy the tests, the same for all cases: where learning starts, and what it is compared with."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np

from askwise.components.boosting import column_gain, row_weights
from askwise.core.arrays import Bools, Doubles, Ints
from askwise.core.costs import CostFunction
from askwise.core.problem import Problem


@dataclass(frozen=True)
class OrderSettings:
    """How fast tests are eliminated."""

    many_tests: int = 200  # with more tests than this, elimination takes larger steps on fewer rows
    pace: float = 2e8  # rows x tests x classes x rounds that a core boosts in a second, roughly
    fewest_rows: int = 1_000  # however short the time
    most_dropped: float = 0.7  # share of the tests that are left, in one step


SETTINGS = OrderSettings()


def elimination_order(
    problem: Problem,
    seed: int = 0,
    rows: int = 40_000,
    rounds: int = 30,
    drop: float = 0.12,
    threads: int = 1,
    seconds: float | None = None,
) -> Ints:
    """F: the tests from the first to buy to the last, by recursive elimination; where it has only so many seconds, on fewer rows
    and, if that is not enough, in larger steps.

    Again and again a small boosted model is trained on the tests that are left, and those with the least gain per unit of cost
    go: the share `drop` of them, at least one. Tests that share a set-up or a source share its cost. What is free comes first.
    """
    y = np.asarray(problem.trainable().y)
    schema = problem.schema
    if schema.n_tests > SETTINGS.many_tests:
        rows, rounds, drop = min(rows, 8_000), min(rounds, 20), max(drop, 0.25)
    if seconds is not None:
        fits = int(seconds * SETTINGS.pace * drop / (schema.n_tests * schema.n_classes * rounds))
        rows = min(rows, max(SETTINGS.fewest_rows, fits))
    weight, free = row_weights(problem), free_tests(problem)
    sample = np.sort(np.random.default_rng(seed).permutation(len(problem))[:rows])
    left, gone, ends = ~free, [], np.inf if seconds is None else time.monotonic() + seconds
    while left.sum() > 1:
        began = time.monotonic()
        cost = _cost_shares(problem, left)
        shown = np.flatnonzero((left | free)[schema.owner])  # what is free is always there, and may make another test idle
        rate = np.zeros(schema.n_tests)
        rate[left] = cost
        shown = shown[np.argsort(rate[schema.owner[shown]], kind="stable")]  # of two copies the trees take the first: the cheaper
        data = problem.X[np.ix_(sample, shown)], y[sample], weight[sample]
        per_column = column_gain(*data, schema.n_classes, rounds, seed, threads)
        gain = np.bincount(schema.owner[shown], per_column, minlength=schema.n_tests)[left]
        if seconds is not None:  # time falls with the number of tests, so that all that follows takes (1 - drop) / drop of this
            took = time.monotonic() - began
            drop = min(max(drop, took / (took + max(ends - time.monotonic(), 0.0))), SETTINGS.most_dropped)
        worst = np.lexsort((-cost, gain / cost))[: max(1, int(len(gain) * drop))]  # of equals the most expensive goes first
        gone.append(np.flatnonzero(left)[worst])
        left[gone[-1]] = False
    order = np.concatenate([np.flatnonzero(free), np.flatnonzero(left), *(group[::-1] for group in reversed(gone))])
    return paid_ones_early(order, schema.costs)


def ridge_order(problem: Problem) -> Ints:
    """F: the tests from the first to buy to the last, by recursive elimination with a ridge classifier, one test at a time;
    costs do not count. A test weighs as much as the squared coefficients of its columns, over all classes. The paper's
    baseline orders in this way.
    """
    y, owner, F = np.asarray(problem.trainable().y), problem.schema.owner, problem.schema.n_tests
    weight = row_weights(problem)
    weight /= weight.sum()
    signs = np.where(y[:, None] == np.arange(problem.schema.n_classes), 1.0, -1.0)
    centred = problem.X - (weight @ problem.X).astype(np.float32)
    weighted = centred * weight[:, None].astype(np.float32)
    # all that the regression needs of the rows, once; a ridge of 1 on their sums is 1 / N on their means
    square = (weighted.T @ centred).astype(np.float64)
    square[np.diag_indices_from(square)] += 1 / len(problem)
    product = weighted.T @ signs
    left, gone = np.ones(F, bool), []
    while left.any():
        shown = np.flatnonzero(left[owner])
        coefficients = np.linalg.solve(square[np.ix_(shown, shown)], product[shown])
        heft = np.bincount(owner[shown], (coefficients**2).sum(1), minlength=F)
        gone.append(int(np.where(left, heft, np.inf).argmin()))
        left[gone[-1]] = False
    return np.array(gone[::-1], np.int64)


def free_tests(problem: Problem) -> Bools:
    """F: tests that cost nobody anything: all know them already, or their cost is 0."""
    costs = problem.schema.costs
    known = _known_to_all(problem)
    free: Bools = known | (costs.marginal(costs.paid(known[None], known[None]))[0] == 0)
    return free


def _known_to_all(problem: Problem) -> Bools:
    if problem.known is None:
        return np.zeros(problem.schema.n_tests, bool)
    return np.asarray(problem.known.all(0))


def paid_ones_early(order: Ints, costs: CostFunction) -> Ints:
    """The same order, but what a derived test is computed from comes before it, and what has become free comes at once: neither
    makes any prefix more expensive, and each case knows more for its money."""
    if costs.plain:
        return order
    rank = {test: i for i, test in enumerate(order.tolist())}
    placed: dict[int, None] = {}  # in the order of placing

    def place(test: int) -> None:
        for source in sorted(np.flatnonzero(costs.sources[test]).tolist(), key=rank.__getitem__):
            if source not in placed:
                place(source)
        placed.setdefault(test)
        held = np.isin(np.arange(len(order)), list(placed))[None]
        for free in order[(costs.marginal(costs.paid(held))[0] == 0)[order]].tolist():
            placed.setdefault(free)

    for test in order.tolist():
        if test not in placed:
            place(test)
    return np.array(list(placed), np.int64)


def _cost_shares(problem: Problem, left: Bools) -> Doubles:
    """What each of the tests that are left costs when they are bought together: the cost of a test, or of a set-up, is shared
    equally by all that need it. The shares add up to the cost of the set.

    What leaving a test out would save is no good here: a derived test and what it is computed from would both seem to be for
    nothing, each because the other is there.
    """
    costs, known = problem.schema.costs, _known_to_all(problem)
    each = np.eye(len(left), dtype=bool)[left]
    need = costs.paid(each, np.broadcast_to(known, each.shape))
    tests, setups = need.tests & ~known, need.setups
    share: Doubles = tests @ (costs.own / np.maximum(tests.sum(0), 1)) + setups @ (costs.setup / np.maximum(setups.sum(0), 1))
    return share
