"""Learning against known optima, choosing among snapshots, early stopping, resuming."""

import numpy as np
import pytest

from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff
from askwise.core.episode import measure, rollout
from askwise.core.measures import Measure
from askwise.core.policy import Always, Mixture
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.evaluation import evaluate
from askwise.model.file import read_state, write_state
from askwise.paper import run as paper
from askwise.paper.config import TrainConfig
from askwise.paper.select import History, change, expected_for, follow, oscillates, overfits, policy_for, unsettled, why_stop
from askwise.training.checkpoint import TrainingState
from askwise.training.result import InterimMeasurement
from benchmarks.known_optima.regret import SETTINGS, regret_of

TINY = TrainConfig(
    width=16, epoch=20, parallel_cases=50, batch_steps=200, memory_episodes=200, pretrain_steps=40, pretrain_batch=64,
    max_epochs=5, window_epochs=0.5,
)  # fmt: skip


def blobs(n: int = 200, seed: int = 0) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return Problem.build(Schema.build(list("abcd"), [0, 1], [1, 2, 0.5, 3]), X, (X[:, 0] + X[:, 1] > 0).astype(int))


# a pair (3), a set-up (1), a plain one (10): the others are run by `python -m benchmarks.known_optima.run`
@pytest.mark.parametrize(("seed", "setting"), [(3, "average"), (1, "lambda"), (10, "hard")])
def test_learning_comes_near_the_exact_optimum(seed: int, setting: str) -> None:
    assert setting in SETTINGS
    row = regret_of(seed, setting)
    assert row["ok"], row


TEN = AverageBudget(10)


def history_of(*points: tuple[float, float, float], budget: Budget = TEN, mixture: str = "always") -> History:
    """(lambda, cost, loss), the same on training and validation rows."""
    history = History([InterimMeasurement(0, 0.0, 0.0, Measure(0, 0.5, 0.5, 10), Measure(0, 0.5, 0.5, 10))], budget, mixture)
    for i, (lam, cost, loss) in enumerate(points, 1):
        m = Measure(cost, loss, 1 - loss, 10)
        history.add(InterimMeasurement(i, 0.0, lam, m, m), {"w": np.full(2, float(i))})
    return history


def test_only_snapshots_that_something_would_choose_keep_their_weights() -> None:
    history = history_of((0, 4, 0.1), (0, 2, 0.4), (0, 2, 0.2), (0, 5, 0.2), (0, 1, 0.36))
    # on the hull are deciding at once, (2, 0.2) and (4, 0.1); (1, 0.36) is above the line from (0, 0.5) to (2, 0.2)
    assert sorted(history.weights) == [1, 3]
    assert history.weights[3]["w"].tolist() == [3, 3]


def test_without_mixtures_every_best_for_some_money_keeps_its_weights() -> None:
    history = history_of((0, 4, 0.1), (0, 2, 0.4), (0, 2, 0.2), (0, 5, 0.2), (0, 1, 0.36), mixture="never")
    assert sorted(history.weights) == [1, 3, 5]  # also (1, 0.36), which a mixture would beat


def test_without_mixtures_the_best_single_network_that_meets_the_budget_is_chosen() -> None:
    history = history_of((0, 4, 0.1), (0, 2, 0.2), (0, 3, 0.3), mixture="never")
    for b, chosen in ((1, 0), (2, 2), (3, 2), (3.9, 2), (4, 1), (9, 1)):
        blend = history.choose(AverageBudget(b))
        assert (blend.first, blend.second, blend.share) == (chosen, chosen, 0)


@pytest.mark.parametrize(
    ("cost", "lam", "settled"),
    [(10.0, 0.1, True), (9.1, 0.1, True), (8.8, 0.1, False), (11.2, 0.1, False), (4.0, 0.0, True), (4.0, 0.1, False)],
)
def test_a_training_says_whether_lambda_has_settled(cost: float, lam: float, settled: bool) -> None:
    early = [(0.0, 30.0, 0.3)] * 12
    sentence = unsettled(history_of(*early, *[(lam, cost, 0.2)] * 4))
    assert (sentence == "") == settled
    assert settled or f"cost {cost:.3g} on average, and the budget is 10; train for longer" in sentence
    assert unsettled(history_of(*early, budget=Tradeoff(0.1))) == ""


def test_choices() -> None:
    history = history_of((0, 4, 0.1), (0, 2, 0.2))
    assert history.choose(AverageBudget(1)).mean(history.cost()) == 1
    assert history.choose(AverageBudget(1)).mean(history.score()) == pytest.approx(-0.35)
    assert history.choose(AverageBudget(9)).first == 1  # more money no longer helps
    assert history.choose(Tradeoff(0.01)).first == 1
    assert history.choose(Tradeoff(0.1)).first == 2
    assert history.choose(Tradeoff(1)).first == 0  # decides at once
    assert history.choose(HardBudget(9)).first == 1
    assert history.value(Tradeoff(0.1)) == pytest.approx(0.4)


def course(train: list[Measure], validation: list[Measure], lam: float = 0.1) -> History:
    records = [InterimMeasurement(100 + i, 0.0, lam, t, v) for i, (t, v) in enumerate(zip(train, validation, strict=True))]
    return History([InterimMeasurement(0, 0.0, 0.0, Measure(0, 0.5, 0.5, 10), Measure(0, 0.5, 0.5, 10)), *records], Tradeoff(lam))


STOP = TrainConfig(epoch=1, window_epochs=1, stop_epochs=10, explore_epochs=2)


def test_training_ends_when_it_has_settled() -> None:
    flat = [Measure(1, 0.2, 0.8, 10)] * 30
    assert why_stop(course(flat, flat), Tradeoff(0.1), STOP, 1.0) == "settled"
    assert why_stop(course(flat[:15], flat[:15]), Tradeoff(0.1), STOP, 1.0) is None  # too early to tell


def test_training_goes_on_while_it_gets_better() -> None:
    better = [Measure(1, 0.4 - 0.01 * i, 0.6, 10) for i in range(30)]
    assert why_stop(course(better, better), Tradeoff(0.1), STOP, 1.0) is None


def test_training_ends_when_it_overfits() -> None:
    rng = np.random.default_rng(0)
    wiggle = rng.normal(0, 0.002, 40)
    train = [Measure(1, 0.3 - 0.005 * i + wiggle[i], 0.7, 10) for i in range(40)]
    validation = [Measure(1, 0.2 + 0.005 * i + wiggle[i], 0.8, 10) for i in range(40)]
    assert why_stop(course(train, validation), Tradeoff(0.1), STOP, 1.0) == "overfitting"


def test_training_ends_when_it_oscillates_around_an_average_budget() -> None:
    swing = [Measure(0, 0.5, 0.5, 10) if i % 2 else Measure(3, 0.0, 1.0, 10) for i in range(40)]
    assert why_stop(course(swing, swing), AverageBudget(1.5), STOP, 1.0) == "oscillation"


def test_early_stopping_can_be_turned_off() -> None:
    flat = [Measure(1, 0.2, 0.8, 10)] * 30
    off = TrainConfig(epoch=1, window_epochs=1, stop_epochs=0)
    assert why_stop(course(flat, flat), Tradeoff(0.1), off, 1.0) is None


def test_a_run_killed_and_resumed_chooses_the_same(tmp_path) -> None:
    problem, budget = blobs(), AverageBudget(1.5)
    whole = paper.run(problem, problem, budget, TINY)

    class Killed(Exception):
        pass

    def save_then_die(state: TrainingState) -> None:
        write_state(tmp_path / "run", *state)
        if len(state[1]["records"]) > 4:
            raise Killed

    with pytest.raises(Killed):
        paper.run(problem, problem, budget, TINY, save=save_then_die, save_every=0)
    again = paper.run(problem, problem, budget, TINY, resume=read_state(tmp_path / "run"))
    assert follow(again.points, budget) == follow(whole.points, budget)
    assert again.history == whole.history
    for one, other in zip(whole.points, again.points, strict=True):
        assert one.shown == other.shown
        assert (one.weights is None) == (other.weights is None)
        for name, value in (one.weights or {}).items():
            assert value.tobytes() == other.weights[name].tobytes()


def test_a_time_limit_still_gives_a_policy() -> None:
    problem = blobs()
    run = paper.run(problem, problem, HardBudget(2), TINY, time_limit=0)
    assert run.stopped == "time limit"
    assert (rollout(problem, policy_for(run, HardBudget(2)), None).length == 1).all()  # it decides at once
    run = paper.run(problem, problem, HardBudget(2), TINY, time_limit=1)
    assert evaluate(policy_for(run, HardBudget(2)), problem, HardBudget(2)).cost_per_case.max() <= 2


def test_a_schedule_shorter_than_a_window_is_measured_at_its_end() -> None:
    problem = blobs()
    run = paper.run(problem, problem, Tradeoff(0.01), TINY.scaled(max_epochs=0.2))
    assert [r.step for r in run.history] == [0, 4]


def test_an_average_budget_with_a_hard_cap() -> None:
    problem, budget = blobs(), AverageBudget(1) & HardBudget(2.5)
    run = paper.run(problem, problem, budget, TINY)
    cost = evaluate(policy_for(run, budget), blobs(seed=1), budget).cost_per_case
    assert cost.max() <= 2.5
    assert expected_for(run, budget).cost <= 1 + 1e-9


def test_a_mixture_meets_its_budget_in_the_draw() -> None:
    problem = Problem.build(blobs(2000).schema, blobs(2000).X, blobs(2000).y, ids=np.arange(2000))
    budget = Tradeoff(0.01)
    mix = Mixture(Always(0), policy_for(paper.run(problem, problem, budget, TINY), budget), 0.3)
    alone = measure(problem, mix.second, None).cost
    assert measure(problem, mix, None).cost == pytest.approx(0.3 * alone, rel=0.15)
    one = rollout(problem, mix, None, np.arange(50))
    assert (one.decision == rollout(problem, mix, None).decision[:50]).all()


@pytest.mark.parametrize("rows", ["same seed", "another seed"])
def test_the_seed_decides(rows: str) -> None:
    problem = blobs()
    one = paper.run(problem, problem, Tradeoff(0.01), TINY, seed=1)
    two = paper.run(problem, problem, Tradeoff(0.01), TINY, seed=1 if rows == "same seed" else 2)
    assert (one.history == two.history) == (rows == "same seed")


def test_a_change_is_counted_in_standard_errors():
    # means 1 and 4, variances 1 and 1 of two values each: 3 / sqrt(1/2 + 1/2)
    assert change(np.array([0.0, 2.0, 3.0, 5.0])) == pytest.approx(3.0)
    assert overfits(np.array([5.0, 3.0, 2.0, 0.0]), np.array([0.0, 2.0, 3.0, 5.0]))
    assert not overfits(np.array([5.0, 3.0, 2.0, 0.0]), np.array([5.0, 3.0, 2.0, 0.0]))


def test_costs_oscillate_when_they_cross_the_budget_often_and_by_much():
    assert oscillates(np.array([0.0, 2.0] * 4), 1.0)
    assert not oscillates(np.array([0.99, 1.01] * 4), 1.0), "by little"
    assert not oscillates(np.array([0.0] * 4 + [2.0] * 4), 1.0), "only once"
