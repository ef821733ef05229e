"""Random problems that are small enough to be solved exactly: 3 to 8 discrete tests, 2 to 4 classes, unequal costs.

They come in five kinds, by seed: `plain`; `setup` (some tests share a set-up cost); `derived` (one test is computed from two
others); `pair` (only two tests together say anything, so that greedy buying fails); `mixture` (a pair again, with an average
budget below what the pair costs, so that no single policy uses it).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff
from askwise.core.cost_spec import CostSpec
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.methods.exact import Exact

KINDS = ("plain", "setup", "derived", "pair", "mixture")


@dataclass(frozen=True, eq=False)
class SmallProblem:
    """A problem and a telling budget of each sort for it."""

    seed: int
    kind: str
    problem: Problem
    budgets: dict[str, Budget]


def small_problem(seed: int, rows: int = 4_000, defers: bool = False) -> SmallProblem:
    """The problem of this seed; always the same. `defers`: with a decision that is no class, costs something and is hardly ever
    wrong."""
    rng = np.random.default_rng([seed, 20190])
    kind = KINDS[seed % len(KINDS)]
    F, K = int(rng.integers(3, 9)), int(rng.integers(2, 5))
    sizes = rng.integers(2, 4, F)
    y = rng.choice(K, rows, p=rng.dirichlet(np.full(K, 5.0)))
    X = np.empty((rows, F))
    for f in range(F):  # each test depends on the class, some strongly and some hardly
        given_class = rng.dirichlet(np.full(sizes[f], rng.choice([0.3, 1.0, 5.0])), size=K)
        X[:, f] = (rng.random(rows)[:, None] > given_class[y].cumsum(1)).sum(1)
    costs = {f"t{f}": int(rng.integers(1, 9)) / 4 for f in range(F)}
    setup, derived = None, None
    if kind == "setup":
        setup = {"visit": (1.5, [f"t{f}" for f in range(F // 2 + 1)])}
    elif kind == "derived":
        X[:, -1] = (X[:, 0] + X[:, 1]) % 3
        derived = {f"t{F - 1}": ["t0", "t1"]}
        del costs[f"t{F - 1}"]
    elif kind in ("pair", "mixture"):
        X[:, :2] = rng.integers(0, 2, (rows, 2))
        X[:, 2:] = rng.integers(0, sizes[2:], (rows, F - 2))
        reliable = rng.random(rows) < 0.95
        y = np.where(reliable, X[:, :2].sum(1).astype(int) % 2, y % K)
    decisions, loss = {}, None
    if defers:
        decisions = {"defer": int(rng.integers(4, 13)) / 4}
        loss = np.column_stack([1 - np.eye(K), np.full(K, 0.02)])
    spec = CostSpec(costs, setup or {}, derived or {}, decisions=decisions)
    schema = Schema.build([f"t{f}" for f in range(F)], list(range(K)), spec)
    problem = Problem.build(schema, X - X.mean(0), y, loss=loss, ids=np.arange(rows))
    return SmallProblem(seed, kind, problem, _budgets(problem, kind))


def counted(problem: Problem) -> Problem:
    """Rows that are alike as one, which counts as often as they are there, to 1 / 10,000 of the most frequent one: the optimum is
    computed in whole numbers."""
    alike = np.concatenate([problem.X, problem.labels[:, None]], 1)
    _, first, times = np.unique(alike, axis=0, return_index=True, return_counts=True)
    digits = max(1.0, times.max() / 10_000)
    return replace(problem.take(first), weight=np.rint(times / digits).clip(1))


def _budgets(problem: Problem, kind: str) -> dict[str, Budget]:
    """A tradeoff, a hard and an average budget at which both buying nothing and buying everything would be a mistake."""
    beliefs = Exact(problem)
    nothing, everything = beliefs.nothing(), beliefs.solve(Fraction(0), None)
    lam = (nothing.loss - everything.loss) / everything.cost / 3
    wanted = beliefs.solve(lam, None)
    cost = float(wanted.cost if wanted.cost else everything.cost)
    total = problem.schema.costs.money(problem.schema.costs.total)
    return {
        "lambda": Tradeoff(round(float(lam), 4)),
        "hard": HardBudget(round(min(1.25 * cost, 0.7 * total), 1)),
        "average": AverageBudget(round(0.6 * cost if kind == "mixture" else 0.8 * cost, 2)),
    }
