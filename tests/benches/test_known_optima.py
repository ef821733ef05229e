"""The benchmarks against exact optima can be run: short trainings, whose regret is not looked at."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from askwise.core.budget import Tradeoff
from askwise.methods import exact
from benchmarks.known_optima import family, promises
from benchmarks.known_optima.small_problems import KINDS, counted, small_problem


def test_one_problem_of_the_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family, "CONFIG", replace(family.CONFIG, max_steps=40, width=16, parallel_cases=32))
    row = family.one(1)
    assert len(row["tradeoff"]) == len(row["hard"]) == 10
    assert all(
        regret >= -1e-9 for regret in row["tradeoff_absolute"] + row["hard_absolute"]
    )  # nothing is better than the optimum
    assert "| 1 | setup | 3 |" in family.table([{"seed": 1, **row}])


def test_small_problems_are_of_every_kind_and_always_the_same():
    small = [small_problem(seed, rows=200) for seed in range(5)]
    assert tuple(m.kind for m in small) == KINDS
    again = small_problem(2, rows=200)
    assert (again.problem.X == small[2].problem.X).all()
    assert again.budgets == small[2].budgets
    for m in small:
        assert 3 <= m.problem.schema.n_tests <= 8
        assert 2 <= m.problem.schema.n_classes <= 4


def test_rows_that_are_alike_count_as_often_as_they_are_there():
    problem = small_problem(0, rows=500).problem
    few = counted(problem)
    assert len(few) < len(problem)
    optima = [exact.solve(each, Tradeoff(0.05)) for each in (problem, few)]
    assert float(optima[0].loss) == pytest.approx(float(optima[1].loss), abs=1e-3)
    assert float(optima[0].cost) == pytest.approx(float(optima[1].cost), abs=1e-3)


def test_the_least_cost_of_a_target_is_that_of_the_best_mixture():
    """Where only two tests together tell something, they are bought for the share of the cases that it takes."""
    problem = counted(small_problem(3, rows=20_000).problem)
    every = promises.followed(problem, exact.Exact(promises.weighed(problem, np.ones(2))).solve(Fraction(0), None))
    nothing = promises.followed(problem, exact.Exact(promises.weighed(problem, np.ones(2))).nothing())
    costs = []
    for share in (0.0, 0.5, 1.0):
        asked = [(1 - share) * a + share * b for a, b in zip(nothing[1:], every[1:], strict=True)]
        optimum = promises.least_cost(problem, asked)
        assert optimum.cost <= (1 - share) * nothing.cost + share * every.cost + 1e-6
        costs.append(optimum.cost)
    assert costs == sorted(costs)
    assert 0.4 * costs[2] < costs[1] < 0.6 * costs[2]
