"""The networks of a family at their start, by hand; and cases in progress, moved one by one."""

import math

import numpy as np
import pytest
import torch
from tests.support.worlds import VARIANTS, world

from askwise.core.cases import Cases
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.family.conditions import Scale, affordable, costs_alone
from askwise.family.config import DESIGN, FamilyConfig
from askwise.family.encodings import PiecewiseLinear
from askwise.family.network import FamilyNetwork, assess
from askwise.family.states import LiveCases, Observation, StateSampler, any_of, best_and_others

CONFIG = FamilyConfig(max_tests=4)


def sampler(problem) -> StateSampler:
    F = problem.schema.n_tests
    return StateSampler(problem.schema, Scale.of(problem), np.arange(F)[::-1].copy(), CONFIG, np.zeros(F))


def observed(problem, n: int = 40, seed: int = 0) -> tuple[LiveCases, Observation]:
    live = sampler(problem).fresh(problem, n, np.random.default_rng(seed))
    return live, Observation.of(live, problem, Scale.of(problem), costs_alone(problem.schema))


@pytest.fixture
def network():
    torch.manual_seed(0)
    return FamilyNetwork(world().problem().schema, 8)


# ------------------------------------------------------------------ networks


def test_at_the_start_belief_is_the_softmax_and_a_temperature_pulls_it_to_the_prior(network):
    K, F = network.class_logits.out_features, network.test_logits.out_features
    logits, mask = torch.randn(5, K), torch.ones(5, F)
    prior = torch.arange(1.0, K + 1)
    network.prior.copy_((prior / prior.sum()).log())
    assert torch.allclose(network.log_belief(logits, mask), logits.log_softmax(1))
    torch.nn.init.constant_(network.temperature[-1].bias, math.log(2))
    naive = (network.prior + (logits - network.prior) / 2).softmax(1)
    assert torch.allclose(network.log_belief(logits, mask).exp(), naive)
    torch.nn.init.constant_(network.temperature[-1].bias, 50.0)
    assert torch.allclose(network.log_belief(logits, mask).exp()[0], prior / prior.sum())


def test_at_the_start_every_test_is_worth_deciding_now_and_a_little_for_its_gap():
    problem = world().problem()
    network = FamilyNetwork(problem.schema, 8)
    _, state = observed(problem)
    inputs = network.inputs(state.values, state.mask)
    loss = torch.from_numpy(problem.loss / problem.loss_scale).float()
    view = assess(network, state, inputs, *network.select(inputs, state.conditions), loss)
    gap = (view.prediction.value_after - view.decision_loss[:, None]) / math.log1p(math.exp(-DESIGN.gap_offset))
    assert gap.min() >= 0
    assert gap.max() <= DESIGN.gap_limit * (1 + 1e-5)
    assert (view.prediction.optimism == 0).all()
    assert torch.equal(view.prediction.final_loss, view.decision_loss)
    assert not view.continues.any()


@pytest.mark.parametrize("name", ["plain", "loss matrix", "missing", "existing classifier"])
def test_an_assessment_as_a_loop(name):
    w, data, _ = VARIANTS[name]
    problem = w.problem(**data)
    torch.manual_seed(1)
    network = FamilyNetwork(problem.schema, 8)
    torch.nn.init.normal_(network.value_head[-1].weight, std=0.2)
    _, state = observed(problem)
    inputs = network.inputs(state.values, state.mask)
    loss = torch.from_numpy(problem.loss / problem.loss_scale).float()
    with torch.no_grad():
        view = assess(network, state, inputs, *network.select(inputs, state.conditions), loss)
        belief = network.log_belief(network.classify(inputs)[0], state.mask).exp()
    for b in range(len(belief)):
        decide = min(sum(p * loss[y, k] for y, p in enumerate(belief[b])) for k in range(len(loss))).item()
        assert view.decision_loss[b].item() == pytest.approx(decide, abs=1e-5)
        can = [i for i in range(len(state.legal[b])) if state.legal[b, i]]
        assert bool(state.open[b]) == bool(can)
        if not can:
            assert not view.continues[b]
            continue
        total = {i: (view.prediction.value_after[b, i] + state.scaled_cost[b, i]).item() for i in can}
        best = min(total, key=total.__getitem__)
        assert total[int(view.best[b])] == pytest.approx(total[best])
        on = total[best] + view.prediction.optimism[b].item()
        assert view.continue_value[b].item() == pytest.approx(on, abs=1e-6)
        assert bool(view.continues[b]) == (view.continue_value[b].item() + DESIGN.tie_margin < view.decision_loss[b].item())


def test_a_selector_begins_as_the_static_order(network):
    F = network.test_logits.out_features
    rank = np.random.default_rng(0).permutation(F)
    network.follow_order(rank)
    inputs = torch.randn(6, network.classifier[0].in_features)
    logits, hidden = network.select(inputs, torch.rand(6, DESIGN.conditions))
    assert torch.allclose(logits, torch.from_numpy(-3.0 * rank / F).float().expand(6, F))
    assert torch.allclose(hidden, network.classify(inputs)[1])


def test_piecewise_linear_by_hand():
    problem = Problem.build(Schema.build(["x"], [0, 1]), np.array([[0.0], [1.0], [2.0], [4.0], [8.0]]), [0, 1, 0, 1, 0])
    encode = PiecewiseLinear(problem, 2)  # bins 0 to 2 and 2 to 8
    columns = torch.tensor([[-1.0], [1.0], [5.0], [9.0]])
    assert encode(columns).tolist() == [pytest.approx(v) for v in ([0, 0], [0.5, 0], [1, 0.5], [1, 1])]


# ------------------------------------------------------------------ states


@pytest.mark.parametrize("name", ["plain", "missing", "existing classifier"])
def test_cases_buy_by_the_one_transition_that_there_is(name):
    w, data, _ = VARIANTS[name]
    problem = w.problem(**data)
    live, state = observed(problem)
    before, can = live.mask.copy(), state.open.numpy()
    test = np.where(state.legal.numpy(), np.arange(before.shape[1]), -1).max(1)
    live.buy(problem, test, can)
    for b in range(len(can)):
        bought = before[b].copy()
        if can[b]:
            bought[test[b]] = True
        assert live.mask[b].tolist() == bought.tolist()
    assert (state.cases.mask == before).all()  # what was observed stays as it was


def test_after_a_purchase_only_the_mask_is_another():
    problem = world().problem()
    live, state = observed(problem)
    case, test = np.nonzero(state.legal.numpy())
    then = live.after(case, test, problem)
    for p, (b, i) in enumerate(zip(case, test, strict=True)):
        assert np.flatnonzero(then.mask[p] != live.mask[b]).tolist() == [i]
        assert (then.row[p], then.lam[p], then.cap[p]) == (live.row[b], live.lam[b], live.cap[b])


def test_an_observation_says_what_the_rules_say():
    problem = VARIANTS["missing"][0].problem()
    live, state = observed(problem)
    scale, costs = Scale.of(problem), problem.schema.costs
    cases = Cases(problem, live.row, live.mask, live.cap)
    legal = cases.legal()[:, problem.schema.first_test :] & ~live.refused
    assert (state.legal.numpy() <= legal).all()  # and what a test is computed from can be had
    naive = cases.test_cost() * live.lam[:, None] / scale.loss_scale
    assert state.scaled_cost.numpy() == pytest.approx(naive, rel=1e-5)
    share = affordable(costs_alone(problem.schema), cases.test_cost(), costs.money(cases.left()))
    assert (state.affordable.numpy() == share).all()


def test_prefixes_are_prefixes_but_for_what_is_flipped():
    problem = world().problem()
    F = problem.schema.n_tests
    config = FamilyConfig(flip_share=0.0, random_set_share=0.0, random_set_share_few=0.0)
    rank = np.random.default_rng(0).permutation(F)
    draws = StateSampler(problem.schema, Scale.of(problem), rank, config, np.zeros(F))
    row = np.zeros(2_000, int)
    mask = draws.prefixes(problem, row, np.random.default_rng(0))
    known = np.zeros(F, bool) if problem.known is None else problem.known[0]
    length = mask[:, np.argsort(rank)].sum(1)
    assert (mask == ((rank < length[:, None]) | known)).all()
    assert (length == 0).mean() == pytest.approx((0.5 / F) ** (1 / 3), abs=0.05)  # u³ F < 1/2


# ------------------------------------------------------------------ tests by lot


def test_each_test_that_may_be_drawn_is_drawn_as_often_as_the_others():
    which = np.tile([[True, False, True, True], [False, False, True, False]], (20_000, 1))
    drawn = any_of(which, np.random.default_rng(0))
    assert (drawn[1::2] == 2).all()
    assert np.bincount(drawn[::2], minlength=4) / 20_000 == pytest.approx([1 / 3, 0, 1 / 3, 1 / 3], abs=0.015)
    assert any_of(which[:0], np.random.default_rng(0)).tolist() == []


def test_the_best_candidate_is_looked_up_and_others_as_often_as_each_other():
    candidates = np.tile([[True, True, False, True, True], [False, True, False, True, False], [False] * 5], (9_000, 1))
    best = np.tile([3, 1, 0], 9_000)
    case, test = best_and_others(candidates, best, 3, np.random.default_rng(0))
    assert len(set(zip(case.tolist(), test.tolist(), strict=True))) == len(case)
    assert [np.bincount(test[case % 3 == k], minlength=5).tolist()[3 if k == 0 else 1] for k in (0, 1)] == [9_000, 9_000]
    assert np.bincount(test[case % 3 == 0], minlength=5) / 9_000 == pytest.approx([2 / 3, 2 / 3, 0, 1, 2 / 3], abs=0.02)
    assert np.bincount(test[case % 3 == 1], minlength=5).tolist() == [0, 9_000, 0, 9_000, 0]  # fewer than were asked for
    assert not (case % 3 == 2).any()
