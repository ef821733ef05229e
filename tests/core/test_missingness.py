"""Gaps that go with the class must not teach the class."""

from dataclasses import replace

import numpy as np
import pytest

from askwise.core.budget import Tradeoff
from askwise.core.cases import Cases
from askwise.core.cost_spec import CostSpec
from askwise.core.missingness import chi_squared, filled, go_with_class, lacking, lost
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.paper.config import TrainConfig
from askwise.paper.train import Trainer


def lacking_means_well() -> Problem:
    """`scan` is the class. Half of the rows are ill and all of these have it; half of the well ones lack it."""
    ill = np.arange(400) % 2 == 0
    scan = np.where(ill, 1.0, -1.0)
    scan[1::4] = np.nan
    return Problem.build(Schema.build(["scan"], ["ill", "well"]), scan[:, None], np.where(ill, "ill", "well"))


@pytest.mark.parametrize(("all_classes", "honest"), [(True, True), (False, False)])
def test_what_a_class_is_worth_without_a_test_is_learned_from_all_rows(all_classes, honest):
    problem = lacking_means_well()
    config = TrainConfig(
        width=16, epoch=100, parallel_cases=32, max_epochs=6, batch_steps=256, memory_episodes=200, pretrain_steps=0,
        lr_start=5e-3, window_epochs=6, explore_epochs=1, epsilon_end=0.02, shrink_epochs=100, all_classes=all_classes,
    )  # fmt: skip
    trainer = Trainer(problem, problem, Tradeoff(0.05), config)
    list(trainer)
    q = trainer.policy().values(Cases.start(problem, np.array([0]), None).observe())[0, :2]
    # half of all cases are ill, so either class costs 0.5; those who are left without a scan are all well
    assert bool(abs(q[0] + 0.5) < 0.12) == honest, q


def test_missing_tests_are_filled_whole_from_rows_of_the_same_class():
    schema = Schema.build(list("abcd"), ["ill", "well"], CostSpec(reveals={"scan": ["a", "b"]}))
    nan = np.nan
    X = [[1, 2, 7, nan], [3, 4, nan, nan], [nan, 5, 8, nan], [-1, -2, nan, nan], [nan, nan, nan, nan], [-1, -2, nan, nan]]
    gaps = Problem.build(schema, X, ["ill"] * 3 + ["well"] * 3)
    seen = set()
    for seed in range(20):
        whole = filled(gaps, seed)
        assert whole.available is None
        seen.add(tuple(whole.X[2, :2].tolist()))
        assert whole.X[4, :2].tolist() == [-1, -2]  # the only value of the class
        assert set(whole.X[3:, 2].tolist()) <= {7, 8}  # no well row has c: from any row
        assert not whole.X[:, 3].any()  # nobody has d
        assert (whole.X[:2, :2] == gaps.X[:2, :2]).all()
    assert seen == {(1, 2), (3, 4)}  # both columns from one row; a half of a scan is none
    assert gaps.X[2].tolist() == [0, 5, 8, 0]  # nothing was overwritten
    complete = Problem.build(schema, np.ones((2, 4)), ["ill", "well"])
    assert filled(complete) is complete


def test_what_is_lost_is_lost_as_often_as_rows_lack_it():
    problem = lacking_means_well()
    assert lacking(problem).tolist() == [0.25]
    rng = np.random.default_rng(0)
    assert lost(lacking(problem), 10_000, rng).mean() == pytest.approx(0.25, abs=0.02)
    assert not lost(lacking(filled(problem)), 100, rng).any()


@pytest.mark.parametrize(("freedom", "chance", "exact"), [(1, 0.05, 3.841), (2, 0.001, 13.816), (9, 1e-5, 39.34)])
def test_what_chance_exceeds_rarely(freedom, chance, exact):
    assert chi_squared(freedom, chance) == pytest.approx(exact, rel=0.03)


@pytest.mark.parametrize("rates", [(0.3, 0.3), (0.0, 0.0), (1.0, 1.0)])
def test_values_missing_at_random_do_not_depend_on_the_class(rates):
    assert not any(go_with_class(gappy(rates, seed)) for seed in range(20))


def test_missing_values_that_depend_on_the_class_are_noticed():
    assert all(go_with_class(gappy((0.2, 0.5), seed)) for seed in range(20))
    assert not go_with_class(replace(gappy((0.2, 0.5), 0), available=None))


def gappy(rates: tuple[float, float], seed: int) -> Problem:
    """Two classes; of the first test, rows of each lack such a share."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=400)
    X = rng.normal(size=(400, 2))
    X[rng.random(400) < np.array(rates)[y], 0] = np.nan
    return Problem.build(Schema.build(["a", "b"], [0, 1]), X, y)
