"""The policy family: its NumPy twin, its checkpoints, the rules in every variant, and what it learns."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.support.naive import World, check_rules, expected_losses
from tests.support.worlds import JUDGED, VARIANTS, with_batch_norm, with_dropout, world

from askwise.core.budget import HardBudget
from askwise.core.cases import Cases, State
from askwise.core.episode import measure, rollout
from askwise.core.policy import Greedy
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError, StateError
from askwise.family.conditions import Scale, affordable
from askwise.family.config import DESIGN, FamilyConfig
from askwise.family.encodings import FourierFeatures
from askwise.family.forward import candidates_and_gaps
from askwise.family.inference import PrefixValues
from askwise.family.train import FamilyTrainer

TINY = FamilyConfig(max_steps=12, width=8, bins=3, prefix_batch=8, parallel_cases=6, prefix_share=0.3, max_tests=4)


def trainer(problem: Problem, config=TINY, seed=0, encoder=None) -> FamilyTrainer:
    return FamilyTrainer(problem, problem, np.arange(problem.schema.n_tests)[::-1].copy(), config, seed, encoder)


def finished(t: FamilyTrainer) -> FamilyTrainer:
    while not t.finished:
        t.advance()
    return t


def some_states(problem: Problem, seed=0, cap=None) -> State:
    mask = np.random.default_rng(seed).random((len(problem), problem.schema.n_tests)) < 0.4
    if problem.available is not None:
        mask &= problem.available
    return Cases(problem, np.arange(len(problem)), mask, cap).observe()


# ------------------------------------------------------------------ tradeoffs and budgets as inputs


def test_tradeoff_and_budget_are_shown_as_hat_functions():
    HATS = DESIGN.knots
    scale = Scale(loss_scale=1.0, total=100.0, cheapest=2.0, low=0.01, high=1.0)
    lam = np.array([0.0, 0.005, 1.0, 0.005 * 200 ** (1.5 / (HATS - 1))])
    found = scale.conditions(lam, np.array([1.0, 100.0, 99.999, 0.0]))
    assert found.shape == (4, 2 * HATS + 1)
    assert found[:, :HATS].sum(1) == pytest.approx(1)
    assert found[0, 0] == found[1, 0] == found[2, HATS - 1] == 1  # a tradeoff of 0 is the least one
    assert found[3, 1:3] == pytest.approx([0.5, 0.5], abs=1e-6)
    assert found[:, -1].tolist() == [0, 1, 0, 0]  # as much as everything costs is as good as no budget
    assert found[1, HATS:-1].tolist() == [0] * HATS
    assert found[0, HATS] == found[3, HATS] == 1
    assert (scale.conditions(lam, None)[:, HATS:] == [0] * HATS + [1]).all()


# ------------------------------------------------------------------ with and without torch


@pytest.mark.parametrize("name", ["plain", "loss matrix", "missing", "existing classifier", "fewer tests than classes", *JUDGED])
@pytest.mark.parametrize(
    "shown", [{"bins": 0}, {"bins": 3}, {"bins": 0, "frequencies": 2}], ids=["as they are", "bins", "frequencies"]
)
def test_the_runtime_without_torch_says_the_same(name, shown):
    w, data, *_ = (VARIANTS | JUDGED)[name]
    t = finished(trainer(w.problem(**data), TINY.but(**shown)))
    cap = t.schema.costs.total // 2
    state, lam = some_states(t.problem, cap=cap), 0.3
    prediction = t.family(t.weights()).values(lam).predict(state)
    with torch.no_grad():
        mask = torch.from_numpy(state.mask).float()
        inputs = t.mean.inputs(torch.from_numpy(state.values), mask)
        logits, hidden = t.mean.classify(inputs)
        belief = t.mean.log_belief(logits, mask)
        decide = torch.from_numpy(expected_losses(belief.exp(), t.loss.numpy(), t.problem.rule)).float()
        conditions = torch.from_numpy(t.scale.conditions(np.full(len(mask), lam), state.left))
        scores, guide = t.mean.select(inputs, conditions)
        rooms = torch.from_numpy(affordable(t.alone, state.test_cost, state.left))
        late = torch.from_numpy(candidates_and_gaps(scores.numpy(), state.legal[:, t.schema.first_test :])[1])
        judged = t.mean.predict(belief, decide.min(1).values, late, hidden, guide, mask, conditions, rooms)
        own = torch.from_numpy(state.test_cost * lam / t.scale.loss_scale).float()
        legal = torch.from_numpy(state.legal[:, t.schema.first_test :])
        pick = (judged.value_after + own).masked_fill(~legal, torch.inf).argmin(1)
        cost_bound = torch.from_numpy(t.scale.cost_bound(np.full(len(mask), lam), state.left)).float()
        now = own.gather(1, pick[:, None])[:, 0]
    expected = {
        "belief": belief.exp(),
        "decision_losses": decide,
        "decision_loss": decide.min(1, keepdim=True).values,
        "test_logits": scores,
        "test_values": judged.value_after + own,
        "best": pick,
        "continue_value": (judged.value_after + own).gather(1, pick[:, None])[:, 0] + judged.optimism,
        "final_loss": judged.final_loss,
        "cost_to_come": now + cost_bound * judged.later_cost_share,
        "external_value": judged.external_value,
    }
    for field, value in expected.items():
        without_torch = getattr(prediction, field)
        assert (without_torch is None) == (value is None), field
        if value is not None:
            assert without_torch == pytest.approx(value.numpy(), abs=1e-5), field


def test_fourier_features_span_what_most_values_span_and_two_values_need_none():
    rng = np.random.default_rng(0)
    X = np.stack([rng.normal(5, 10, 4_000), rng.integers(0, 2, 4_000), np.full(4_000, 7.0)], 1)
    schema, y = Schema.build(["x", "yes", "same"], [0, 1]), np.arange(4_000) % 2
    waves = FourierFeatures(Problem.build(schema, X, y), 3)
    assert waves.source.tolist() == [0] * 6
    assert waves.owner.tolist() == [0, 1, 2] + [0] * 6
    made, turns = waves(torch.tensor([[2.0, 1.0, 7.0]]))[0].numpy(), 2 * waves.rate[:3].numpy()
    assert made == pytest.approx([2, 1, 7, *np.sin(turns), *np.cos(turns)], abs=1e-5)
    twice = 2 * X
    twice[:5, 0] = 1e6  # a few far values change little
    assert FourierFeatures(Problem.build(schema, twice, y), 3).rate.numpy() == pytest.approx(waves.rate.numpy() / 2, rel=0.01)


def test_what_can_still_be_paid_after_a_test():
    alone, price = np.array([1.0, 2.0, 5.0]), np.array([[5.0, 1.0, 2.0], [0.0, 0.5, 2.0]])
    found = affordable(alone, price, np.array([3.0, 1.0]))
    assert found == pytest.approx(np.array([[0, 2, 1], [1, 0, 0]]) / 3)
    assert (affordable(alone, price, None) == 1).all()
    assert affordable(np.ones(65), np.ones((4, 65)), None).shape == (4, 0)


def test_logit_gaps_are_measured_from_the_best_legal_test():
    scores, legal = np.array([[3.0, 1, 2, -9], [1, 2, 3, 4]]), np.array([[0, 1, 1, 1], [0, 0, 0, 0]], bool)
    assert candidates_and_gaps(scores, legal)[1].tolist() == [[0, 1, 0, 5], [0, 0, 0, 0]]


def test_of_the_tests_the_best_legal_one_has_the_value_that_is_expected():
    t = finished(trainer(world().problem()))
    state = some_states(t.problem)
    values = t.family(t.weights()).values(0.1)
    q, prediction = values(state), values.predict(state)
    tests = state.legal[:, t.schema.first_test :]
    some = tests.any(1)
    best = np.where(tests, q[:, t.schema.first_test :], -np.inf)[some]
    assert best.max(1) == pytest.approx(-(prediction.continue_value + 1e-4)[some], abs=1e-5)
    assert (best.argmax(1) == np.where(tests, prediction.test_values, np.inf)[some].argmin(1)).all()


def test_what_will_be_paid_is_bounded_by_what_is_left_and_by_what_can_be_lost():
    scale = Scale(loss_scale=2.0, total=100.0, cheapest=2.0, low=0.001, high=1.0)
    lam = np.array([0.01, 0.01, 0.01, 0.5])
    assert scale.cost_bound(lam, np.array([50.0, 400.0, 0.0, 50.0])) == pytest.approx([0.25, 0.5, 0.0, 1.0], abs=1e-6)
    assert scale.cost_bound(lam, None) == pytest.approx([0.5, 0.5, 0.5, 1.0])


@pytest.mark.parametrize("tests", [30, 100])
def test_of_many_tests_the_eight_legal_ones_with_the_largest_logits_are_candidates(tests):
    rng = np.random.default_rng(0)
    scores, legal = rng.random((50, tests)), rng.random((50, tests)) < rng.random((50, 1)) ** 3
    for mine, values, can in zip(candidates_and_gaps(scores, legal)[0], scores, legal, strict=True):
        naive = sorted(np.flatnonzero(can).tolist(), key=lambda test, values=values: -values[test])[:8]
        assert np.flatnonzero(mine).tolist() == sorted(naive)


def test_tests_that_tie_for_the_eighth_place_all_compete():
    for tests in (30, 100):
        scores = np.ones((3, tests))
        scores[:, :5], legal = 2, np.arange(tests) != 7
        legal = np.array([legal, legal, np.zeros(tests, bool)])
        assert (candidates_and_gaps(scores, legal)[0] == legal).all()


def test_a_prefix_is_bought_in_its_order_and_what_is_free_before_what_costs():
    w = world()
    t = finished(trainer(w.problem()))
    names = [w.tests[i] for i in t.order]
    for k in range(5):
        done = rollout(t.problem, Greedy(PrefixValues(t.family(t.weights()).values(0.1), t.rank, k)), None)
        bought = done.action[done.action >= t.schema.first_test] - t.schema.first_test
        held: list[str] = []
        while left := [name for name in names if name not in held]:
            free = [name for name in left if not w.naive_costs.price(name, set(held))]
            wanted = [name for name in free or names[:k] if name in left]
            if not wanted:
                break
            held.append(wanted[0])
        assert set(names[:k]) <= set(held)
        assert [w.tests[i] for i in bought] == held * len(t.problem)


# ------------------------------------------------------------------ going on


def everything(t: FamilyTrainer):
    arrays, facts = t.state()
    return {k: (v.dtype, v.shape, v.tobytes()) for k, v in arrays.items()}, json.dumps(facts)


@pytest.mark.parametrize("encoder", [None, with_dropout, with_batch_norm])
@pytest.mark.parametrize("name", ["missing", "existing classifier"])
def test_a_run_killed_at_any_moment_goes_on_as_if_it_had_not_been(name, encoder):
    problem = VARIANTS[name][0].problem()
    whole = trainer(problem, encoder=encoder)
    for _ in range(TINY.max_steps):
        other = trainer(problem, encoder=encoder)
        arrays, facts = whole.state()
        other.load({k: v.copy() for k, v in arrays.items()}, json.loads(json.dumps(facts)))
        whole.advance()
        other.advance()
        assert everything(other) == everything(whole)


def test_a_checkpoint_of_another_run_is_refused():
    one, other = trainer(world().problem()), trainer(world().problem(), TINY.but(width=9))
    with pytest.raises(StateError, match=r"another run: its setting 'width' is 8, here it is 9"):
        other.load(*one.state())


def test_the_same_seed_gives_the_same_weights_and_another_seed_others():
    a, b, c = (finished(trainer(world().problem(), seed=seed)).weights() for seed in (0, 0, 1))
    assert all(np.array_equal(a[k], b[k]) for k in a)
    assert not all(np.array_equal(a[k], c[k]) for k in a)


@pytest.mark.parametrize(
    ("setting", "value"), [("width", 0), ("prefix_batch", -1), ("prefix_share", 1.0), ("averaging", float("nan"))]
)
def test_settings_that_make_no_sense_are_named(setting, value):
    with pytest.raises(InputError, match=setting):
        FamilyConfig(**{setting: value})
    with pytest.raises(InputError, match="there is no setting 'wide'"):
        FamilyConfig.from_dict({"wide": 1})


# ------------------------------------------------------------------ every variant of the problem


@pytest.mark.parametrize("encoder", [None, with_dropout], ids=["dense", "own encoder"])
@pytest.mark.parametrize("name", [*(n for n in VARIANTS if VARIANTS[n][2] == {}), *JUDGED])
def test_every_variant_trains_and_obeys_the_rules(name, encoder):
    w, data, *_ = (VARIANTS | JUDGED)[name]
    problem = w.problem(**data)
    t = finished(trainer(problem, encoder=encoder))
    assert all(np.isfinite(v).all() for v in t.weights().values())
    for hard in (None, "0.9", "0.3"):
        cap = None if hard is None else HardBudget(hard).cap(problem.schema.costs)
        for lam in (0.0, 0.05, 3.0):
            values = t.family(t.weights()).values(lam)
            for q in (values, PrefixValues(values, t.rank, 3)):
                ruled = World(**{**w.__dict__, "hard": hard, "loss": problem.rule or problem.loss.tolist()})
                check_rules(ruled, problem, rollout(problem, Greedy(q), cap))


def test_money_for_what_is_known_is_not_money_left():
    schema = Schema.build(list("abcdef"), [0, 1], dict(zip("abcdef", (50, 30, 1, 1, 1, 1), strict=True)))
    rng = np.random.default_rng(0)
    problem = Problem.build(schema, rng.normal(size=(200, 6)), rng.integers(2, size=200), known=["a", "b"])
    live = trainer(problem, TINY.but(parallel_cases=2_000)).sampler.fresh(problem, 2_000, rng)
    left = Cases(problem, live.row, live.mask, live.cap).left()
    assert left.min() == 1
    assert 0.1 < (left <= 4).mean() < 0.4
    assert 0.4 < (left >= schema.costs.total).mean() < 0.6  # nothing to mind


def test_rows_are_drawn_by_weight():
    schema = Schema.build(["a"], [0, 1])
    y = np.arange(400) % 2
    problem = replace(Problem.build(schema, y[:, None].astype(float), y), weight=np.where(y, 3.0, 1.0))
    t = trainer(problem)
    assert t.network.prior.exp().numpy() == pytest.approx([0.25, 0.75], abs=0.01)
    live = t.sampler.fresh(problem, 4_000, np.random.default_rng(0))
    assert y[live.row].mean() == pytest.approx(0.75, abs=0.03)


# ------------------------------------------------------------------ a problem whose answer is known


def test_one_training_serves_every_tradeoff_and_every_hard_budget():
    # `a` is the label, `b` is noise, `c` is nearly always right and cheap
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=1_000)
    a, b = 2 * y - 1, rng.choice([-1, 1], 1_000)
    c = np.where(rng.random(1_000) < 0.85, a, -a)
    schema = Schema.build(["a", "b", "c"], ["no", "yes"], {"a": 3, "b": 1, "c": 1})
    problem = Problem.build(schema, np.stack([a, b, c], 1).astype(np.float32), np.where(y, "yes", "no"))
    config = FamilyConfig(
        max_steps=1_000, width=32, bins=0, prefix_batch=64, parallel_cases=64, averaging=0.99, max_tests=3, selector_rate=2e-3
    )
    t = finished(FamilyTrainer(problem, problem, np.array([1, 2, 0]), config, seed=1))

    def found(lam: float, hard: float | None = None) -> tuple[float, float]:
        cap = None if hard is None else HardBudget(hard).cap(schema.costs)
        m = measure(problem, Greedy(t.family(t.weights()).values(lam)), cap)
        return m.cost, m.accuracy

    right = float((c == a).mean())
    assert found(0.02) == (pytest.approx(3, abs=0.05), pytest.approx(1, abs=0.01))  # worth 0.06
    assert found(0.2) == (pytest.approx(1, abs=0.1), pytest.approx(right, abs=0.01))  # `a` is too dear, 0.3 for 0.2 is not
    assert found(0.45)[0] < 0.1
    assert found(0.0, 2)[0] <= 2
    assert found(0.0, 2)[1] == pytest.approx(right, abs=0.01)
    assert found(0.0, 3)[1] == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("tests", [4, 65])
def test_a_classifier_that_overfits_goes_back_to_its_best_and_of_many_tests_stays(tests):
    rng = np.random.default_rng(0)
    schema = Schema.build([f"x{i}" for i in range(tests)], [0, 1])

    def noise(n: int) -> Problem:
        return Problem.build(schema, rng.normal(size=(n, tests)), rng.integers(2, size=n))

    config = FamilyConfig(
        max_steps=4_000, width=64, prefix_batch=32, parallel_cases=8, prefix_share=0.9, learning_rate=5e-3, max_tests=3
    )
    t = FamilyTrainer(noise(24), noise(300), np.arange(tests), config)
    while t.phase == 0:
        t.advance()
    assert t.step < 3_000
    assert t.frozen == (tests > 64)
    assert t.monitor.best.keys() == {k for k in t.weights() if k.startswith(("classifier.", "class_logits."))}
    for _ in range(20):
        t.advance()
    after = t.weights()
    stayed = [after[name] == pytest.approx(value, abs=1e-6) for name, value in t.monitor.best.items()]
    assert all(stayed) if tests > 64 else not any(stayed)
