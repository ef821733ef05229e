"""The benchmarks against exact optima can be run: short trainings, whose regret is not looked at."""

from dataclasses import replace

import pytest

from benchmarks.known_optima import family


def test_one_problem_of_the_family(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(family, "CONFIG", replace(family.CONFIG, max_steps=40, width=16, cases=32))
    row = family.one(1)
    assert len(row["price"]) == len(row["hard"]) == 10
    assert all(regret >= -1e-9 for regret in row["price_absolute"] + row["hard_absolute"])  # nothing is better than the optimum
    assert "| 1 | setup | 3 |" in family.table([{"seed": 1, **row}])
