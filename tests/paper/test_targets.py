"""The equations: worked by hand, and against loops that follow the formula letter by letter."""

import numpy as np
import pytest
import torch
from torch import nn

from askwise.components.networks import soft_update
from askwise.paper.network import dueling
from askwise.paper.targets import (
    clip_target,
    greedy_action,
    retrace,
    squared_error,
    target_policy_probability,
    target_policy_value,
    truncated_ratio,
)


def rows(*values):
    return torch.tensor(values, dtype=torch.float64)


# ------------------------------------------------------------------ retrace


def test_retrace_of_three_steps_by_hand():
    # two tests at 0.1, then a wrong class
    r = rows([-0.1, -0.1, -1.0])
    v = rows([9.0, -0.4, -0.3])  # v_0 belongs to s_0 and must not be used
    q_a = rows([9.0, -0.5, -0.2])  # nor Q(s_0, a_0)
    rho = rows([9.0, 0.5, 1.0])  # nor the ratio of the first action
    # q_2 = -1
    # q_1 = -0.1 + (-0.3) + 1.0 * (q_2 - (-0.2)) = -0.4 + 1.0 * (-0.8)         = -1.2
    # q_0 = -0.1 + (-0.4) + 0.5 * (q_1 - (-0.5)) = -0.5 + 0.5 * (-0.7)         = -0.85
    assert retrace(r, v, q_a, rho).tolist() == [pytest.approx([-0.85, -1.2, -1.0])]


def test_retrace_with_a_discount_by_hand():
    r, v, q_a, rho = rows([-0.1, -0.1, -1.0]), rows([9.0, -0.4, -0.3]), rows([9.0, -0.5, -0.2]), rows([9.0, 0.5, 1.0])
    # q_1 = -0.1 + 0.5 * (-0.3 + (-0.8)) = -0.65;  q_0 = -0.1 + 0.5 * (-0.4 + 0.5 * (-0.65 + 0.5)) = -0.3375
    assert retrace(r, v, q_a, rho, gamma=0.5).tolist() == [pytest.approx([-0.3375, -0.65, -1.0])]


def naive_retrace(t, r, v, q_a, rho, gamma):
    """q_t of one episode of len(r) steps, by the recursion itself."""
    if t == len(r) - 1:
        return r[t]  # the next state is the end, where Q = 0
    after = naive_retrace(t + 1, r, v, q_a, rho, gamma)
    return r[t] + gamma * v[t + 1] + gamma * rho[t + 1] * (after - q_a[t + 1])


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("gamma", [1.0, 0.9])
def test_retrace_equals_the_recursion_on_episodes_of_unequal_length(seed, gamma):
    rng = np.random.default_rng(seed)
    length = rng.integers(1, 8, size=20)
    filled = np.arange(length.max()) < length[:, None]
    parts = [np.where(filled, rng.normal(size=filled.shape), 0) for _ in range(4)]
    parts[3] = np.clip(np.abs(parts[3]), 0, 1)  # ρ̄
    q = retrace(*(torch.from_numpy(p) for p in parts), gamma).numpy()
    for e, n in enumerate(length):
        expected = [naive_retrace(t, *(p[e, :n] for p in parts), gamma) for t in range(n)]
        assert q[e, :n] == pytest.approx(expected)


def test_without_traces_it_is_the_one_step_target():
    r, v = rows([-0.1, -0.2, -1.0], [-0.3, 0.0, 0.0]), rows([7.0, -0.5, -0.6], [7.0, 0.0, 0.0])
    q = retrace(r, v, rows([5, 5, 5], [5, 0, 0]), torch.zeros_like(r))
    assert q.tolist() == [pytest.approx([-0.1 - 0.5, -0.2 - 0.6, -1.0]), pytest.approx([-0.3, 0, 0])]


def test_on_policy_with_full_traces_and_a_perfect_critic_it_is_the_return():
    r = rows([-0.1, -0.2, -1.0])
    value = rows([-1.3, -1.2, -1.0])  # what follows from each state under the policy that acted
    assert retrace(r, value, value, torch.ones_like(r)).tolist() == [pytest.approx([-1.3, -1.2, -1.0])]


def test_the_inputs_are_not_changed():
    parts = [rows([-0.1, -0.1, -1.0]) for _ in range(4)]
    retrace(*parts)
    assert all(p.tolist() == [[-0.1, -0.1, -1.0]] for p in parts)


def test_the_ratio_is_truncated_at_one_and_scaled_by_the_trace():
    pi, mu = torch.tensor([0.2, 0.9, 0.0]), torch.tensor([0.4, 0.3, 0.5])
    assert truncated_ratio(pi, mu).tolist() == pytest.approx([0.5, 1.0, 0.0])
    assert truncated_ratio(pi, mu, trace=0.5).tolist() == pytest.approx([0.25, 0.5, 0.0])


# ------------------------------------------------------------------ the target policy


def random_states(seed, S=30, A=6):
    rng = np.random.default_rng(seed)
    legal = rng.random((S, A)) < 0.5
    legal[:, 0] = True  # deciding is always possible
    q_theta, q_phi = rng.normal(size=(2, S, A))
    action = np.array([rng.choice(np.flatnonzero(row)) for row in legal])
    return q_theta, q_phi, legal, action


def naive_pi(q_theta, legal, eta):
    """Probability of each action in one state."""
    allowed = [a for a in range(len(legal)) if legal[a]]
    best = max(allowed, key=lambda a: q_theta[a])
    return [(a in allowed) * eta / len(allowed) + (1 - eta) * (a == best) for a in range(len(legal))]


@pytest.mark.parametrize("eta", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("seed", range(3))
def test_value_and_probability_of_the_target_policy_equal_a_loop(seed, eta):
    q_theta, q_phi, legal, action = random_states(seed)
    best = greedy_action(torch.from_numpy(q_theta), torch.from_numpy(legal))
    value = target_policy_value(torch.from_numpy(q_phi), best, torch.from_numpy(legal), eta)
    probability = target_policy_probability(torch.from_numpy(action), best, torch.from_numpy(legal), eta)
    for s in range(len(legal)):
        pi = naive_pi(q_theta[s], legal[s], eta)
        assert sum(pi) == pytest.approx(1)
        assert value[s].item() == pytest.approx(sum(p * q for p, q in zip(pi, q_phi[s], strict=True)))
        assert probability[s].item() == pytest.approx(pi[action[s]])


def test_double_q_learning_values_the_choice_of_one_network_with_the_other():
    q_theta, q_phi, legal = rows([1, 2, 3]), rows([-1, -2, -7]), torch.tensor([[True, True, True]])
    assert target_policy_value(q_phi, greedy_action(q_theta, legal), legal, eta=0).tolist() == [-7]  # not max(q_phi) = -1


def test_ties_go_to_stopping_also_in_the_targets():
    q = torch.zeros(1, 4)
    assert greedy_action(q, torch.tensor([[True, True, True, True]])).item() == 0


# ------------------------------------------------------------------ clip, loss, dueling, soft update


def test_clip_by_hand():
    q = torch.tensor([-2.0, -0.1, 0.0, 0.5])
    assert clip_target(q, 0.0).tolist() == pytest.approx([-2.0, -0.1, 0.0, 0.0])
    assert clip_target(q, 0.25).tolist() == pytest.approx([-2.0, -0.25, -0.25, -0.25])


def test_the_loss_is_a_mean():
    assert squared_error(torch.tensor([1.0, 2.0]), torch.tensor([0.0, 4.0])).item() == (1 + 4) / 2


def test_dueling_by_hand():
    # V = 2, A = (1, 2, 6) with mean 3: Q = (0, 1, 5)
    assert dueling(torch.tensor([[2.0]]), torch.tensor([[1.0, 2.0, 6.0]])).tolist() == [[0.0, 1.0, 5.0]]


def test_dueling_cannot_tell_a_constant_in_the_advantages():
    V, A = torch.randn(5, 1, generator=torch.Generator().manual_seed(0)), torch.arange(15.0).view(5, 3)
    assert dueling(V, A).mean(1, keepdim=True).numpy() == pytest.approx(V.numpy(), abs=1e-6)
    assert dueling(V, A + 10).numpy() == pytest.approx(dueling(V, A).numpy(), abs=1e-5)


def test_soft_update_by_hand():
    target, network = nn.Linear(1, 1), nn.Linear(1, 1)
    with torch.no_grad():
        for module, weight, bias in ((target, 1.0, -2.0), (network, 3.0, 8.0)):
            module.weight.fill_(weight)
            module.bias.fill_(bias)
    soft_update(target, network, 0.1)
    assert target.weight.item() == pytest.approx(0.9 * 1 + 0.1 * 3)
    assert target.bias.item() == pytest.approx(0.9 * -2 + 0.1 * 8)
    assert (network.weight.item(), network.bias.item()) == (3, 8)


def test_soft_update_copies_what_is_not_trained():
    target, network = nn.BatchNorm1d(2), nn.BatchNorm1d(2)
    network.running_mean.fill_(5.0)
    soft_update(target, network, 0.1)
    assert target.running_mean.tolist() == [5, 5]
