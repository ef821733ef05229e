"""The benchmarks against exact optima can be run: short trainings, whose regret is not looked at."""

from dataclasses import replace

import pytest

from benchmarks.known_optima import family
from benchmarks.known_optima.small_problems import KINDS, small_problem


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
