"""The equations of learning, as pure functions over tensors. Letters as in the paper."""

from __future__ import annotations

import torch
from torch import Tensor


def greedy_action(q: Tensor, legal: Tensor) -> Tensor:
    """argmax_a Q(s, a) over legal actions; S, A -> S.

    Paper: section 3.1, greedy policy
    """
    return q.masked_fill(~legal, -torch.inf).argmax(1)


def target_policy_value(q_phi: Tensor, best: Tensor, legal: Tensor, eta: float) -> Tensor:
    """E_{a~π(s)}[Q^φ(s, a)] where π takes the greedy action of Q^θ, and any legal action with probability η; S.

    The maximising action comes from θ and its value from φ: double Q-learning.

    Paper: eq. 11; eq. 12
    """
    value = q_phi.gather(1, best[:, None])[:, 0]
    if eta:
        mean = (q_phi * legal).sum(1) / legal.sum(1)
        value = (1 - eta) * value + eta * mean
    return value


def target_policy_probability(action: Tensor, best: Tensor, legal: Tensor, eta: float) -> Tensor:
    """π(a | s) = (1 - η) [a is greedy] + η / number of legal actions; S.

    Paper: section 3.1, stochastic target policy
    """
    probability = (1 - eta) * (action == best)
    return probability + eta / legal.sum(1) if eta else probability


def truncated_ratio(pi: Tensor, mu: Tensor, trace: float = 1.0) -> Tensor:
    """ρ̄_t = λ_retrace min(π(a_t | s_t) / μ(a_t | s_t), 1).

    Paper: eq. 12, ratio
    """
    return trace * (pi / mu).clamp(max=1.0)


def retrace(r: Tensor, v: Tensor, q_a: Tensor, rho: Tensor, gamma: float = 1.0) -> Tensor:
    """q_t = r_t + γ E_{a~π(s_{t+1})}[Q^φ(s_{t+1}, a)] + γ ρ̄_{t+1} [q_{t+1} - Q^φ(s_{t+1}, a_{t+1})].

    All of shape E, L (episodes, steps), 0 after the end of an episode: r_t the rewards, v_t = E_{a~π(s_t)}[Q^φ(s_t, a)],
    q_a_t = Q^φ(s_t, a_t), rho_t = ρ̄_t. The paper prints the expectation at s_t; it must be at s_{t+1}. With ρ̄ = 0 this is the
    one-step target r_t + γ Q^φ(s_{t+1}, argmax_a Q^θ(s_{t+1}, a)).

    Paper: eq. 7; eq. 9; eq. 10; eq. 12
    """
    q = r.T.clone(memory_format=torch.contiguous_format)  # L, E: one time step is one stretch of memory
    follows = gamma * rho.T[1:]  # of q_{t+1}; all else of q_t needs no other q, and is added for all t at once
    q[:-1] += gamma * v.T[1:] - follows * q_a.T[1:]
    for t in range(len(q) - 2, -1, -1):
        q[t].addcmul_(follows[t], q[t + 1])
    return q.T


def clip_target(q: Tensor, smallest_loss: float) -> Tensor:
    """No value exceeds minus the smallest loss, which is 0 in the paper.

    Paper: algorithm 2, clip the target
    """
    return q.clamp(max=-smallest_loss)


def squared_error(q: Tensor, q_theta: Tensor) -> Tensor:
    """ℓ_θ(B) = mean over the batch of (q_t - Q^θ(s_t, a_t))².

    Paper: eq. 8; algorithm 2, gradient descent
    """
    return (q - q_theta).square().mean()
