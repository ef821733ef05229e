"""The targets and losses of training, as pure functions of tensors. Symbols and numbers of equations as in README.md.

B cases, F tests, K classes, P pairs (case, test). Losses and costs are in units of the loss scale; all values are minimised.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from askwise.components.networks import log_softmax
from askwise.core.arrays import Doubles


class Outcome(NamedTuple):
    """What is to be expected of a case from here to its end; `total` is `loss` + `cost`, but may be predicted by itself."""

    total: Tensor
    loss: Tensor  # at the end
    cost: Tensor  # of all that is bought on the way


def prefix_loss(class_logits: Tensor, labels: Tensor) -> Tensor:
    """L_prefix = mean of -log softmax(z)_y.

    z: class_logits (B, K); y: labels (B).

    Family: F16
    """
    return functional.nll_loss(log_softmax(class_logits), labels)


def soft_choice(perturbed: Tensor, open: Tensor, temperature: float) -> Tensor:
    """q = softmax((u + n) / T_s) over A; 0 where A is empty; B, F.

    u + n: perturbed (B, F), selector logits with Gumbel noise, hugely negative outside of A (`gumbel_perturbed`); open (B): A is
    not empty; T_s: temperature.

    Family: F17
    """
    return functional.softmax(perturbed / temperature, 1) * open[:, None]


def soft_mask(mask: Tensor, share: Tensor, stake: Tensor) -> Tensor:
    """max(m, q̄) where q̄ = sg(q) + v_y (q - sg(q)); B, F.

    m: mask (B, F); q: share (B, F); v_y: stake (B), what a wrong decision may lose. q̄ equals q; only its gradient, and so what
    the selector learns, is multiplied by the stake. The classifier must learn how frequent things are.

    Family: F18
    """
    constant = share.detach()
    return torch.maximum(mask, constant + stake[:, None] * (share - constant))


def selector_loss(class_logits: Tensor, labels: Tensor, share: Tensor, scaled_cost: Tensor, nats_per_loss: float) -> Tensor:
    """L_sel = mean of -log softmax(z)_y + μ mean of Σ_i q_i c̃_i.

    z: class_logits (B, K) at the soft mask; y: labels (B); q: share (B, F); c̃: scaled_cost (B, F); μ: nats_per_loss.

    Family: F18
    """
    return functional.nll_loss(log_softmax(class_logits), labels) + nats_per_loss * (share * scaled_cost).sum(1).mean()


def nats_per_loss(class_shares: Doubles, prior_loss: float) -> float:
    """μ = H(shares) / loss of the best decision without a test: cross-entropy and loss, both measured against knowing nothing.

    class_shares (K): of what is at stake; prior_loss: scaled.

    Family: F18
    """
    return float(-(class_shares * np.log(np.maximum(class_shares, 1e-12))).sum() / max(prior_loss, 1e-3))


def ending(
    decision_loss: Tensor, fee: Tensor, external: Tensor | None = None, bill: Tensor | None = None, may_ask: Tensor | None = None
) -> Outcome:
    """(N, N_ℓ, N_c) = (E, E - bill, bill) if asking is legal and E < D else (D, D - fee, fee); each B.

    D: decision_loss, of which fee is what the decision costs; E: external, expected loss and cost of asking the existing
    classifier, whose scaled cost is bill.

    Family: F19
    """
    decides = Outcome(decision_loss, decision_loss - fee, fee)
    if external is None or bill is None or may_ask is None:
        return decides
    return _where(may_ask & (external < decision_loss), Outcome(external, external - bill, bill), decides)


def value_target(end: Outcome, later: Outcome, continues: Tensor) -> Outcome:
    """(T, T_ℓ, T_c) = later if the case continues and G < N else end; each P.

    end: (N, N_ℓ, N_c) if the case ends here; later: (G, ℓ̂, c̃_{i*} + ρ κ) if it buys its best test; continues (P).
    All are those of the averaged networks in the state after the purchase.

    Family: F19
    """
    return _where(continues & (later.total < end.total), later, end)


def temperature_loss(log_belief: Tensor, labels: Tensor) -> Tensor:
    """mean of -log p_y.

    log p: log_belief (B, K), after temperature scaling; y: labels (B), of rows that the classifier has not learned from.

    Family: F20
    """
    return functional.nll_loss(log_belief, labels)


def external_loss(external: Tensor, loss: Tensor, bill: Tensor, rule: str | None = None, most: float = 3.0) -> Tensor:
    """mean (E - min(ℓ̃ + bill, 3))².

    E: external (B); ℓ̃: loss (B) of what the existing classifier says; bill (B): scaled cost of asking it. The bound keeps rare
    large losses from drowning the others; there is none under a scoring rule, which is about these.

    Family: F20
    """
    return functional.mse_loss(external, loss + bill if rule else (loss + bill).clamp(max=most))


def value_loss(value_after: Tensor, target: Tensor) -> Tensor:
    """mean (V_i - T)².

    V_i: value_after (P); T: target (P).

    Family: F20
    """
    return functional.mse_loss(value_after, target)


def best_loss(
    best_value: Tensor, final_loss: Tensor, later_cost_share: Tensor, target: Outcome, cost_bound: Tensor, most: float = 2.0
) -> Tensor:
    """2 mean (sg(V_{i*}) + β - T)² + mean (ℓ̂ - T_ℓ)² + mean (κ - min(T_c / ρ, 2))²; over the pairs with i = i*.

    sg(V_{i*}) + β: best_value; ℓ̂: final_loss; κ: later_cost_share; T, T_ℓ, T_c: target; ρ: cost_bound. The first counts twice,
    since it decides when to stop; the bound keeps tiny ρ from drowning the others.

    Family: F20
    """
    loss = 2 * functional.mse_loss(best_value, target.total)
    loss = loss + functional.mse_loss(final_loss, target.loss)
    return loss + functional.mse_loss(later_cost_share, (target.cost / cost_bound).clamp(max=most))


def surprise(
    class_logits: Tensor, labels: Tensor, weight: Tensor | None, temperatures: tuple[float, ...] = (1.0, 1.3, 1.7, 2.2, 3.0)
) -> float:
    """min over t of the mean of -log softmax(z / t)_y: to be too sure is no harm, temperature scaling corrects it.

    z: class_logits (B, K); y: labels (B); weight (B) of the rows, if they have any.

    Family: F23
    """
    if weight is None:
        return min(float(functional.cross_entropy(class_logits / t, labels)) for t in temperatures)
    each = (functional.cross_entropy(class_logits / t, labels, reduction="none") for t in temperatures)
    return min(float((weight * nats).sum() / weight.sum().clamp(min=1e-30)) for nats in each)


def _where(condition: Tensor, yes: Outcome, no: Outcome) -> Outcome:
    return Outcome(*(torch.where(condition, *both) for both in zip(yes, no, strict=True)))
