"""The parts of a family's networks without torch, as pure functions of arrays; the numbers are those of the README.

`askwise.model.onnx_graph` records the same functions as an ONNX graph. So they know the number of cases B only through their
arguments: `np.zeros_like(x)` is fine, `np.zeros(len(x))` is not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from askwise.components.numpy_layers import linears, relu_layers
from askwise.core.arrays import Array, Doubles
from askwise.core.information import entropy
from askwise.family.config import DESIGN

Trunk = Callable[[Array, Array], Array]  # inputs e (B, E + F), conditions φ (B or 1, none or all) -> last hidden layer (B, W)
FORECAST_INPUTS = 15  # of the linear map of (F25), for each of its two outputs


class Prediction(NamedTuple):
    """What the networks predict for B states, in units of `loss_scale`."""

    belief: Array  # B, K: p, class probabilities
    decision_losses: Array  # B, D: expected loss of each decision, with what it costs
    decision_loss: Array  # B, 1: D, that of the best one
    test_logits: Array  # B, F: u, the selector's
    candidates: Array  # B, F: 𝒞, the tests that compete
    test_values: Array  # B, F: V + c̃, loss and cost to expect if this test is next
    best: Array  # B: i*
    continue_value: Array  # B: G, loss and cost to expect if i* is bought
    final_loss: Array  # B: ℓ̂, expected at the end if the case continues
    cost_to_come: Array  # B: c̃ of i*, and ρ κ of all that follows
    external_value: Array | None  # B: E, loss and cost of asking the existing classifier


class InputEncoding:
    """B, E + F: e = [enc(x) ⊙ m, m]; values are piecewise linear (F5), with Fourier features (F6) or as they are."""

    def __init__(self, weights: Mapping[str, Array], owner: Array, dtype: Any) -> None:
        parts = {key.removeprefix("encoding."): value for key, value in weights.items() if key.startswith("encoding.")}
        self.dtype, self.source = dtype, parts.pop("source", None)
        self.parts = {key: value.astype(dtype) for key, value in parts.items()}
        if self.source is not None:
            self.owner = owner[self.source]

    def __call__(self, values: Array, mask: Array) -> Array:
        x = values.astype(self.dtype, copy=False)
        if self.source is None:
            return np.concatenate([x, mask], 1, dtype=self.dtype)
        encoded, fourier = x[:, self.source], "rate" in self.parts
        if fourier:
            encoded *= self.parts["rate"]
            encoded += self.parts["phase"]
            np.sin(encoded, out=encoded)
        else:
            encoded = piecewise_linear(encoded, self.parts["low"], self.parts["slope"])
        encoded *= mask[:, self.owner]
        return np.concatenate([x, encoded, mask] if fourier else [encoded, mask], 1, dtype=self.dtype)


def piecewise_linear(x: Any, low: Any, slope: Any) -> Any:
    """(F5) clip((x - q_j) / (q_{j+1} - q_j), 0, 1). For arrays and tensors."""
    return ((x - low) * slope).clip(0, 1)


class DenseTrunk:
    """(F7), (F10) Fully connected layers with ReLU."""

    def __init__(self, weights: Mapping[str, Array], name: str, dtype: Any) -> None:
        self.layers, self.dtype = linears(weights, name, dtype), dtype

    def __call__(self, inputs: Array, conditions: Array) -> Array:
        (first, bias), *others = self.layers
        n = inputs.shape[1]
        hidden: Array = inputs @ first[:n]
        hidden += conditions.astype(self.dtype, copy=False) @ first[n:] + bias if conditions.shape[1] else bias
        np.maximum(hidden, 0, out=hidden)
        return relu_layers(hidden, others)


def temperature_inputs(untempered: Array, mask: Array) -> Array:
    """(F8) B, 4: |S| / F, its root, max p and H(p), of the class probabilities before temperature scaling."""
    held = mask.sum(1, keepdims=True, dtype=untempered.dtype) / mask.shape[1]
    return np.concatenate([held, np.sqrt(held), untempered.max(1, keepdims=True), entropy(untempered)], 1)


def belief_summary(belief: Array, decision_loss: Array) -> Array:
    """B, K + 5: what the value head sees of a belief: p, its three largest, H(p), D."""
    top = np.sort(belief, 1)[:, : -DESIGN.top_classes - 1 : -1]
    absent = [0 * decision_loss] * (DESIGN.top_classes - belief.shape[1])
    return np.concatenate([belief, top, *absent, entropy(belief), decision_loss], 1)


def candidates_and_gaps(test_logits: Array, legal: Array) -> tuple[Array, Array]:
    """(F11) B, F: the legal tests with the largest logits; B, F: δ_i = clip(max_{j ∈ A} u_j - u_i, 0, 5)."""
    allowed = np.where(legal, test_logits, -np.inf).astype(test_logits.dtype, copy=False)
    gap = allowed.max(1, keepdims=True) - test_logits
    np.maximum(gap, 0, out=gap)
    np.minimum(gap, DESIGN.gap_limit, out=gap)
    if test_logits.shape[1] <= DESIGN.candidates:
        return legal, gap
    return legal & (allowed >= _last_of_the_largest(allowed)), gap


def _last_of_the_largest(allowed: Array) -> Array:
    """B, 1: of each row the eighth largest. In long rows the largest are found one by one, in less than half of the time."""
    n = DESIGN.candidates
    if allowed.shape[1] <= DESIGN.few_tests or not isinstance(allowed, np.ndarray):
        last: Array = np.partition(allowed, -n, 1)[:, -n:][:, :1]
        return last
    rest, rows = allowed.copy(), np.arange(len(allowed))
    for _ in range(n - 1):
        rest[rows, rest.argmax(1)] = -np.inf
    least: Array = rest.max(1, keepdims=True)
    return least


def own_share(tests: int) -> float:
    """(F12) ζ = min(1, 64 / F): of many tests each is seen rarely, so that its own output counts less than its logit."""
    return min(1.0, DESIGN.few_tests / tests)


def uncalibrated() -> Doubles:
    """(F25) 2, 15: the map M that takes the forecasts as they are."""
    identity = np.zeros((2, FORECAST_INPUTS))
    identity[0, 2] = identity[1, 4] = 1.0
    return identity


def forecast_inputs(
    decision_loss: Doubles, final_loss: Doubles, continue_value: Doubles, cost: Doubles, place: float, bound: Doubles | float
) -> Doubles:
    """(F25) B, 15: f = (v, v · place, v · bound), v = (1, D, ℓ̂, G, cost).

    cost: to come, in parts of the cost of everything; place of λ on its axis and bound, how much a hard budget binds: 0 to 1.
    """
    f = np.empty((3, 5, len(decision_loss)))
    f[0, 0], f[0, 1], f[0, 2], f[0, 3], f[0, 4] = 1.0, decision_loss, final_loss, continue_value, cost
    np.multiply(f[0], place, out=f[1])
    np.multiply(f[0], bound, out=f[2])
    return f.reshape(FORECAST_INPUTS, -1).T


def softmax(z: Array) -> Array:
    """B, K."""
    z = z - np.maximum.reduce(z, 1, keepdims=True)
    np.exp(z, out=z)
    z /= np.add.reduce(z, 1, keepdims=True)
    return z


def softplus(x: Array) -> Array:
    """log(1 + exp x)."""
    y: Array = np.logaddexp(0, x)
    return y
