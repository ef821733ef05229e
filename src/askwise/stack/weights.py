"""How much each learner of a stack counts, learned on states of rows that it has not seen."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from askwise.core.arrays import Array, Doubles, Ints

FEWEST_NATS = 1e-4  # that a learner must save to stay
ROUNDS, ROUNDS_FROM_NEAR = 100, 10  # of L-BFGS, at most


def fit_weights(
    logits: dict[str, Array], prior: Array, held: Array, labels: Ints, weight: Doubles, shift: Array
) -> dict[str, Array]:
    """Some for each learner that earns its place, see `belief`.

    logits: B, K of each learner; held: B, ..., what weights depend on; weight: B, stakes included, whose effect `shift` (K)
    undoes. A learner without which the others do as well is left out.
    """
    best, names = weights_of_all(logits, prior, held, labels, weight, shift), list(logits)
    for name in names:
        if len(best[1]) > 1:
            fewer = weights_of_all({n: logits[n] for n in best[1] if n != name}, prior, held, labels, weight, shift)
            if fewer[0] < best[0] + FEWEST_NATS:
                best = fewer
    return best[1]


def weights_of_all(
    logits: dict[str, Array],
    prior: Array,
    held: Array,
    labels: Ints,
    weight: Doubles,
    shift: Array,
    near: dict[str, Array] | None = None,
) -> tuple[float, dict[str, Array]]:
    """The cross-entropy, and the weights, none of the learners left out. near: weights from which it is not far."""
    from_prior = [torch.from_numpy(z - prior) for z in logits.values()]
    base, basis = torch.from_numpy(prior + shift), torch.from_numpy(np.asarray(held, float))
    y, of_row = torch.from_numpy(labels), torch.from_numpy(weight / weight.sum())
    alike = math.log(math.expm1(1 / len(from_prior)))
    coefficients = torch.zeros(len(from_prior), basis.shape[1], dtype=torch.float64)
    coefficients[:, 0] = alike
    if near is not None:
        coefficients = torch.from_numpy(np.stack([near[name] for name in logits]))
    coefficients.requires_grad_()
    rounds = ROUNDS if near is None else ROUNDS_FROM_NEAR
    optimiser = torch.optim.LBFGS([coefficients], max_iter=rounds, line_search_fn="strong_wolfe")

    def nats() -> Tensor:
        z = base + sum(
            (functional.softplus(basis @ a)[:, None] * own for a, own in zip(coefficients, from_prior, strict=True)), 0
        )
        each: Tensor = (of_row * functional.cross_entropy(z, y, reduction="none")).sum()
        return each

    def loss() -> Tensor:
        optimiser.zero_grad()
        total = nats() + 1e-3 * coefficients[:, 1:].square().sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimiser.step(loss)  # type: ignore[no-untyped-call]
    with torch.no_grad():
        final = float(nats())
    return final, dict(zip(logits, coefficients.detach().numpy().copy(), strict=True))
