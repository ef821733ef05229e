"""Training a family to its end: time, what is kept, going on, and budgets."""

import json
import re
import signal

import numpy as np
import pytest

from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff
from askwise.core.episode import measure, rollout, tally
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.family import run as family
from askwise.family.candidates import Probe
from askwise.family.config import FamilyConfig, MeasuringConfig
from askwise.family.frontier import GrowingMeasurement, area_of, interim_points
from askwise.family.start import Rows, halves, resumed, with_best_encoding
from askwise.family.train import FamilyTrainer
from askwise.frontier.hull import hull
from askwise.methods import family as method
from askwise.training.progress import Progress
from askwise.training.result import TrainingResult

TINY = FamilyConfig(max_steps=60, width=16, bins=4, prefix_batch=32, parallel_cases=16, max_tests=4, interim_measurements=3)

# A short trial of encodings on two columns.
STRIPES = FamilyConfig(
    max_steps=6_000,
    width=16,
    encoding_trial_steps=300,
    prefix_batch=64,
    parallel_cases=8,
    max_tests=2,
    interim_measurements=1,
    learning_rate=5e-3,
)


def problem(rows=300, seed=0, holes=0.0) -> Problem:
    """`near` tells most, `far` the rest, the others nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)).astype(np.float32)
    y = np.where(X[:, 0] + 0.3 * X[:, 1] > 0, "yes", "no")
    X[rng.random(X.shape) < holes] = np.nan
    return Problem.build(Schema.build(["near", "far", "x", "z"], ["no", "yes"], {"near": 2, "far": 1, "x": 1, "z": 1}), X, y)


UNSEEN = halves(problem(seed=1))[1]


@pytest.fixture(scope="module")
def done() -> TrainingResult:
    return family.run(problem(), problem(seed=1), Budget(), TINY)


def test_it_is_measured_now_and_then_and_the_best_is_kept(done):
    assert [r.step for r in done.history] == sorted({r.step for r in done.history})
    assert done.history[-1].step == TINY.max_steps
    assert len(done.history) == 4  # at the end of the prefixes and three times more
    most = max(r.area for r in done.history)
    best = [r for r in done.history if r.area >= most - MeasuringConfig().equal_areas][-1]
    probe = Probe(done.shared, UNSEEN, np.arange(len(UNSEEN)), TINY.max_tests)
    again = interim_points(probe, MeasuringConfig().interim_lams)
    assert area_of(again, done.shared.scale) == pytest.approx(best.area)


def test_without_a_limit_it_says_about_how_long_everything_takes(capsys):
    config = FamilyConfig(max_steps=110, width=16, bins=4, prefix_batch=32, parallel_cases=16, max_tests=4, prefix_share=0.6)
    progress = Progress(every=True)
    family.run(problem(), problem(seed=1), Budget(), config, callback=progress)
    first = next(line for line in capsys.readouterr().err.splitlines() if "prefixes" in line)
    assert re.search(r"everything takes about \d+ s, or less with a time limit", first)
    limited = Progress(1.0, every=True)
    family.run(problem(), problem(seed=1), Budget(), config, time_limit=2, callback=limited)
    assert "everything takes" not in capsys.readouterr().err


def test_rows_are_counted_as_they_are_drawn_to_learn_from(monkeypatch):
    drawn, draw, learned = [], Problem.draw, problem()

    def counted(self, n, rng, by_stake=True):
        drawn.append(n if self is learned else 0)
        return draw(self, n, rng, by_stake)

    monkeypatch.setattr(Problem, "draw", counted)
    assert family.run(learned, problem(seed=1), Budget(), TINY.but(encoding_trial_steps=0)).drawn == sum(drawn)


def test_the_frontier_has_every_prefix_and_what_they_cost(done):
    prefixes = [p for p in done.measured if p.prefix is not None]
    assert [p.prefix for p in prefixes] == [0, 1, 2, 3, 4]
    costs = problem().schema.costs
    for p in prefixes:
        held = np.isin(np.arange(4), np.argsort(done.shared.rank)[: p.prefix])[None]
        assert p.measure.cost == pytest.approx(float(costs.money(costs.cost(held)[0])))


def test_a_point_is_the_policy_it_was_measured_with(done):
    for p in done.measured[::5]:
        assert measure(UNSEEN, done.policy(p), None) == p.measure


def test_half_of_the_validation_rows_of_each_class_are_kept_for_measuring():
    whole = problem(seed=1)
    judging, measuring = halves(whole)
    assert sorted([*judging.X[:, 0].tolist(), *measuring.X[:, 0].tolist()]) == sorted(whole.X[:, 0].tolist())
    assert [len(part) for part in halves(whole.take(np.array([0])))] == [1, 1]  # too few to share
    for label in np.unique(whole.y):
        assert abs(int((judging.y == label).sum()) - int((measuring.y == label).sum())) <= 1


def test_steps_repeat_exactly_and_a_stopped_run_goes_on(done):
    states = []
    whole = family.run(
        problem(), problem(seed=1), Budget(), TINY, save=lambda s: states.append(json.loads(json.dumps(s[1])) and s)
    )
    assert all(np.array_equal(whole.shared.weights[k], done.shared.weights[k]) for k in done.shared.weights)
    for arrays, facts in states:
        copy = {k: v.copy() for k, v in arrays.items()}, json.loads(json.dumps(facts))
        rest = family.run(problem(), problem(seed=1), Budget(), TINY, resume=copy)
        assert rest.history == whole.history
        assert all(np.array_equal(rest.shared.weights[k], whole.shared.weights[k]) for k in whole.shared.weights)


@pytest.mark.parametrize("step", [5, 40])
def test_interrupted_at_any_step_it_goes_on_as_if_it_had_not_been(done, step, monkeypatch):
    advance, states = FamilyTrainer.advance, []

    def interrupted(self):
        advance(self)
        if self.step == step and not states:
            signal.raise_signal(signal.SIGINT)

    monkeypatch.setattr(FamilyTrainer, "advance", interrupted)
    with pytest.raises(KeyboardInterrupt):
        family.run(problem(), problem(seed=1), Budget(), TINY, save=lambda s: states.append(s) if s[1]["step"] == step else None)
    rest = family.run(problem(), problem(seed=1), Budget(), TINY, resume=states[0])
    assert rest.history == done.history
    assert rest.drawn == done.drawn
    assert all(np.array_equal(rest.shared.weights[k], done.shared.weights[k]) for k in done.shared.weights)


def test_the_frontier_is_nowhere_below_the_prefixes(done):
    cost, loss = (np.array([getattr(p.measure, name) for p in done.measured]) for name in ("cost", "loss"))
    on = hull(cost, -loss)
    for p in done.measured:
        if p.prefix is not None:
            assert p.measure.loss >= np.interp(p.measure.cost, cost[on], loss[on]) - 1e-9
    alone = [p for p in done.measured if p.prefix is not None]
    assert area_of(done.measured, done.shared.scale) >= area_of(alone, done.shared.scale)


def test_time_ends_it():
    long = TINY.but(max_steps=100_000)
    run = family.run(problem(holes=0.2), problem(seed=1, holes=0.2), Budget(), long, time_limit=3.0)
    assert run.stopped == "time limit"
    assert run.history[-1].done == 1
    assert run.seconds < 9
    nothing = family.run(problem(), problem(seed=1), Budget(), TINY, time_limit=0.0)
    assert len(nothing.history) == 1


@pytest.mark.parametrize(
    "budget", [Tradeoff(0.05), AverageBudget(1.2), HardBudget(3), AverageBudget(1.2) & HardBudget(3)], ids=str
)
def test_fit_gives_a_policy_that_keeps_to_the_budget(budget):
    validation = problem(seed=1)
    policy = method.fit(problem(), validation, budget, seconds=1)
    cap = budget.cap(validation.schema.costs)
    done = rollout(validation, policy, cap)
    if cap is not None:
        assert done.cost.max() <= cap
    if budget.average is not None:
        assert measure(validation, policy, cap).cost <= 1.2 * 1.15  # each case draws


def test_of_two_encodings_the_one_that_does_better_goes_on():
    rng = np.random.default_rng(0)
    schema = Schema.build(["x", "y"], [0, 1])

    def stripes(n: int) -> Problem:
        X = rng.uniform(-1, 1, size=(n, 2))
        return Problem.build(schema, X, (np.floor(8 * X[:, 0]) % 2).astype(int))

    train, validation = stripes(600), stripes(600)
    config = STRIPES.but(bins=16)
    chosen = with_best_encoding(Rows(train, validation, None), np.arange(2), config, 0, MeasuringConfig(), None)
    assert chosen.config.bins == 16  # stripes as wide as the bins
    assert chosen.step == 300
    other = FamilyTrainer(train, validation, np.arange(2), config.but(bins=0, encoding_trial_steps=0))
    while other.step < 300:
        other.advance()
    assert chosen.monitor.surprise(chosen.mean) < other.monitor.surprise(other.mean)
    states = []
    run = family.run(train, validation, Budget(), config.but(max_steps=400), 0, save=states.append)
    again = family.run(train, validation, Budget(), config.but(max_steps=400), 0, resume=states[0])
    begun_with = states[0][1]["run"]["setting 'bins'"]
    rows = Rows(train, halves(validation)[0], None)
    assert resumed(rows, config.but(max_steps=400), 0, None, states[0]).config.bins == begun_with
    assert all(np.array_equal(v, again.shared.weights[k]) for k, v in run.shared.weights.items())


def test_fine_stripes_are_learned_from_fourier_features_rather_than_bins():
    rng = np.random.default_rng(0)
    schema = Schema.build(["x", "y"], [0, 1])

    def stripes(n: int) -> Problem:
        X = rng.normal(size=(n, 2))
        return Problem.build(schema, X, (np.sin(20 * X[:, 0]) > 0).astype(int))

    config = STRIPES.but(bins=4, frequencies=32)
    rows = Rows(stripes(2_000), stripes(600), None)
    chosen = with_best_encoding(rows, np.arange(2), config, 0, MeasuringConfig(), None)
    assert (chosen.config.bins, chosen.config.frequencies) == (0, 32)
    states = []
    run = family.run(rows.learn, rows.held_out, Budget(), config.but(max_steps=400), 0, save=states.append)
    again = family.run(rows.learn, rows.held_out, Budget(), config.but(max_steps=400), 0, resume=states[0])
    gone_on = resumed(Rows(rows.learn, halves(rows.held_out)[0], None), config.but(max_steps=400), 0, None, states[0])
    for name, value in gone_on.config.to_dict().items():
        assert states[0][1]["run"][f"setting {name!r}"] == value
    assert all(np.array_equal(v, again.shared.weights[k]) for k, v in run.shared.weights.items())


def test_a_measurement_that_has_used_all_rows_stays_as_it_is(done):
    """Few rows and time left: the next part is empty."""
    rows = problem(20)
    follow = done.policy(done.points[0])
    work = GrowingMeasurement(rows.schema.costs, [lambda part: tally(rows, rollout(rows, follow, None, part))], np.arange(20))
    work.go_on(15, [0])
    work.go_on(15, [0])
    before = work.measure(0)
    work.go_on(15, [0])
    assert before == work.measure(0)
    assert before.n == work.used == 20
