"""The opportunistic method: its equations, the rules, and that its order is better than any."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest
import torch

from askwise.core.budget import AverageBudget, HardBudget
from askwise.core.cases import Cases, State
from askwise.core.episode import measure, rollout
from askwise.core.problem import Problem
from askwise.core.sampling import uniform
from askwise.core.schema import Schema
from askwise.frontier.metric import curve
from askwise.methods import opportunistic
from askwise.methods.opportunistic import Opportunistic, PQNetwork, PQTrainer, q_target, reward

STEPS = 400


@cache
def forked() -> list[Problem]:
    """The sign of t0 says which of t1 and t2 tells the class; five more tests are noise. All cost 1 but one of the noise: 3."""
    schema = Schema.build([f"t{i}" for i in range(8)], [0, 1], [1, 1, 1, 1, 3, 1, 1, 1])
    parts = []
    for seed, n in ((0, 480), (1, 300), (2, 600)):
        X = np.random.default_rng(seed).choice([-1.0, 1.0], (n, 8))
        parts.append(Problem.build(schema, X, (np.where(X[:, 0] > 0, X[:, 1], X[:, 2]) > 0).astype(int)))
    return parts


@cache
def trained() -> list[Opportunistic]:
    return opportunistic.points(*forked()[:2], seconds=60, steps=STEPS)


@dataclass(frozen=True, eq=False)
class AnyOrder(Opportunistic):
    """Buys in an order drawn for each case, and decides with the same P."""

    def choose(self, state: State, values: np.ndarray) -> np.ndarray:
        drawn = np.stack([uniform(state.key, test) for test in range(values.shape[1])], 1)
        return super().choose(state, drawn)


def area(policies: list[Opportunistic]) -> float:
    """Under the frontier."""
    found = [[measure(p, policy, None) for policy in policies] for p in forked()[1:]]
    validation, test = (([m.cost for m in ms], [m.accuracy for m in ms]) for ms in found)
    return curve(validation, test, (0.5, 0.5), 10).area


def test_the_reward_is_the_change_of_mind_per_price() -> None:
    before = torch.tensor([[0.5, 0.5], [0.2, 0.8]])
    after = torch.tensor([[0.9, 0.1], [0.3, 0.7]])
    assert reward(before, after, torch.tensor([2.0, 0.5])).tolist() == pytest.approx([0.4, 0.4])


def test_the_target_is_that_of_a_double_dqn_over_what_is_left() -> None:
    q_next = torch.tensor([[3.0, 2.0, 1.0], [3.0, 2.0, 1.0], [3.0, 2.0, 1.0]])
    q_mean = torch.tensor([[10.0, 20.0, 30.0]] * 3)
    buyable = torch.tensor([[True, True, True], [False, True, True], [False, False, False]])
    target = q_target(torch.tensor([1.0, 2.0, 3.0]), q_next, q_mean, buyable)
    gamma = opportunistic.SETTINGS.discount
    assert target.tolist() == pytest.approx([1 + gamma * 10, 2 + gamma * 20, 3])


def test_belief_is_the_mean_over_dropouts_done_one_by_one() -> None:
    torch.manual_seed(0)
    network, seen = PQNetwork(5, 8, 3, 2), torch.randn(4, 5)
    noise = (torch.rand(6, 2, 1, 8) > 0.4).float()
    p = network.p
    one_by_one = [
        p[2](torch.relu(p[1](torch.relu(p[0](seen)) * noise[d, 0])) * noise[d, 1]).softmax(1) for d in range(len(noise))
    ]
    assert torch.allclose(network.belief(seen, noise), torch.stack(one_by_one).mean(0), atol=1e-6)


def test_what_q_learns_leaves_p_alone() -> None:
    network = PQNetwork(5, 8, 3, 2)
    network.values(torch.randn(4, 5)).sum().backward()
    assert all(w.grad is None for w in network.p.parameters())
    assert all(w.grad is not None for w in network.q.parameters())


def test_it_beats_any_order() -> None:
    mine, random = trained(), [AnyOrder(**vars(policy)) for policy in trained()]
    assert area(mine) > area(random) + 0.03
    best = max(measure(forked()[2], policy, None).accuracy for policy in mine)
    assert best > 0.95


def test_it_buys_what_changes_its_mind_in_this_case() -> None:
    """t1 and t2 move the probabilities at once, t0 only afterwards, and only where the two differ."""
    test = forked()[2]
    first_two, three = (rollout(test, trained()[-1], cap) for cap in (2, 3))
    assert first_two.mask[:, 1:3].all(1).mean() > 0.95
    assert three.mask[test.X[:, 1] != test.X[:, 2], 0].mean() > 0.9
    assert (three.decision == test.y).mean() > 0.95


def test_budgets_go_from_nothing_to_everything_and_are_kept() -> None:
    budgets = [policy.budget for policy in trained()]
    assert budgets[0] == 0
    assert budgets[-1] is None
    costs = [rollout(forked()[2], policy, None).cost for policy in trained()]
    for budget, cost in zip(budgets[:-1], costs[:-1], strict=True):
        assert budget - 3 < cost.min() <= cost.max() <= budget
    assert (costs[-1] == 10).all()


def test_what_is_known_to_all_is_not_counted_as_spent() -> None:
    known = replace(forked()[2], known=np.tile(np.arange(8) == 0, (600, 1)))
    policy = replace(trained()[-1], budget=2)
    assert (rollout(known, policy, None).cost == 1).all()  # it seems to have been bought
    assert (rollout(known, replace(policy, known=np.arange(8) == 0), None).cost == 2).all()


def test_the_same_seed_and_steps_give_the_same_networks() -> None:
    train, validation, _ = forked()
    twice = [opportunistic.points(train, validation, seconds=0, steps=20, seed=1)[0] for _ in range(2)]
    other = opportunistic.points(train, validation, seconds=0, steps=20, seed=2)[0]
    first, second, third = (policy.network.state_dict() for policy in (*twice, other))
    assert all((first[name] == second[name]).all() for name in first)
    assert any((first[name] != third[name]).any() for name in first)


def test_a_missing_test_tells_nothing_about_the_class() -> None:
    """All values are noise, but one class always lacks the last test. Whoever does not hold it must not be suspected."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(480, 3)), np.arange(480) % 2
    X[y == 1, 2] = np.nan
    trainer = PQTrainer(Problem.build(Schema.build(list("abc"), [0, 1]), X, y), 0)
    for done in np.linspace(0, 0.99, 150):
        trainer.step(done)
    seen = torch.tensor([[0.0, 0, 0, 1, 1, 0]])
    assert trainer.mean.belief(seen, trainer._noise(32, 2, 1))[0, 1].item() == pytest.approx(0.5, abs=0.1)


def test_fit_keeps_to_its_budget(monkeypatch: pytest.MonkeyPatch) -> None:
    train, validation, test = forked()
    points = trained()  # before it is replaced
    monkeypatch.setattr(opportunistic, "points", lambda *_, **__: points)
    average = opportunistic.fit(train, validation, AverageBudget("2.5"))
    assert measure(validation, average, None).cost == pytest.approx(2.5, abs=0.15)
    hard = rollout(test, opportunistic.fit(train, validation, HardBudget(3)), 3)
    assert (hard.cost <= 3).all()
    assert 1 - hard.loss.mean() > 0.95


def test_rare_cases_with_large_losses_are_learned() -> None:
    rng = np.random.default_rng(0)
    y = (rng.random(400) < 0.1).astype(int)
    X = (y * 1.5)[:, None] + rng.normal(size=(400, 2))
    problem = Problem.build(Schema.build(["a", "b"], [0, 1]), X, y, loss=[[0, 1], [10, 0]])
    policy = opportunistic.points(problem, problem, seconds=0, steps=150)[-1]
    assert measure(problem, policy, None).loss < 0.8 * min(problem.loss[y].mean(0))
    state = Cases.start(problem, np.arange(400), 0).observe()
    assert set(policy.act(state).action) <= {0, 1}  # nothing is affordable
