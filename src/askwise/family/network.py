"""The networks of a policy family, for training; `inference` computes the same without torch. Symbols: README.md."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from askwise.components.encoders import Encoder, encoded_width
from askwise.components.networks import Weights, array, load_weights, log_softmax, stack
from askwise.components.torch_state import own_torch
from askwise.core.arrays import Ints
from askwise.core.schema import Schema
from askwise.family.config import DESIGN
from askwise.family.encodings import Encoding
from askwise.family.forward import Trunk, candidates_and_gaps, own_share, uncalibrated
from askwise.family.states import Observation

CLASSIFIER = ("classifier.", "class_logits.")  # how the names of the classifier's weights begin


class ValuePrediction(NamedTuple):
    """What the value head predicts of B cases."""

    value_after: Tensor  # B, F: V
    optimism: Tensor  # B: β
    final_loss: Tensor  # B: ℓ̂
    later_cost_share: Tensor  # B: κ
    external_value: Tensor | None  # B: E


class FamilyNetwork(nn.Module):
    """Inputs are values (B, C) and a mask (B, F) that may be soft: between 0 and 1 where a test is about to be chosen."""

    owner: Tensor
    prior: Tensor  # K: log π
    calibration: Tensor  # M: see `calibration`

    def __init__(self, schema: Schema, width: int, encoding: Encoding | None = None, encoder: Encoder | None = None) -> None:
        super().__init__()
        K, F = schema.n_classes, schema.n_tests
        self.precision = torch.float32  # of the arithmetic of hidden layers, see `calculating_in`
        self._low: dict[str, list[tuple[Tensor, Tensor]]] = {}  # weights and biases in it, while there is one
        self.encoding = encoding if encoder is None else None
        self.register_buffer("prior", torch.zeros(K))
        self.register_buffer("calibration", torch.from_numpy(uncalibrated()).float())
        self.register_buffer("owner", torch.from_numpy(schema.owner), persistent=False)
        columns = len(schema.columns) if self.encoding is None else len(self.encoding.owner)
        self.dense = encoder is None
        self.one_each = self.encoding is None and np.array_equal(schema.owner, np.arange(F))
        if encoder is None:
            self.classifier: nn.Module = stack(columns + F, width)
            self.selector: nn.Module = stack(columns + F + DESIGN.conditions, width)
        else:
            self.classifier = encoder(schema, width)
            self.selector = Conditioned(encoder(schema, width), schema, width)
        hidden = width if encoder is None else encoded_width(self.classifier, schema)
        self.class_logits = nn.Linear(hidden, K)
        self.test_logits = nn.Linear(width, F)
        outputs = F + 4 if schema.external_needs is None else F + 5
        inputs = K + DESIGN.top_classes + 2 + hidden + width + F + DESIGN.conditions + (F if DESIGN.few_tests >= F else 0)
        self.value_head = nn.Sequential(*stack(inputs, DESIGN.value_width, depth=2), nn.Linear(DESIGN.value_width, outputs))
        wide = DESIGN.temperature_width
        self.temperature = nn.Sequential(nn.Linear(4, wide), nn.Tanh(), nn.Linear(wide, 1))
        for network in (self.temperature, self.value_head):  # belief as it is, and nothing to be gained by continuing
            for weights in list(network[-1].parameters()):
                nn.init.zeros_(weights)

    def inputs(self, values: Tensor, mask: Tensor) -> Tensor:
        """e = [enc(x) ⊙ m, m]; B, E + F.

        Family: F6
        """
        return self.shown(self.encoded(values), mask)

    def encoded(self, values: Tensor) -> Tensor:
        """enc(x); B, E. It does not depend on what is held."""
        return values if self.encoding is None else self.encoding(values)

    def shown(self, encoded: Tensor, mask: Tensor) -> Tensor:
        """e, of enc(x)."""
        inputs = torch.cat([encoded * self._by_column(mask), mask], 1)
        return inputs.to(self.precision) if self.dense else inputs  # once for all layers that see it

    def _by_column(self, mask: Tensor) -> Tensor:
        """B, E: the mask of the test that each column of enc(x) belongs to."""
        return mask if self.one_each else mask.index_select(1, self.owner if self.encoding is None else self.encoding.owner)

    def classify(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """z = W h + w (B, K), and h, the last hidden layer.

        Family: F7
        """
        hidden = self._hidden("classifier", inputs)
        return self.class_logits(hidden.float()), hidden

    @contextmanager
    def calculating_in(self, precision: torch.dtype) -> Iterator[None]:
        """Hidden layers calculate in this precision."""
        self.precision = precision
        try:
            yield
        finally:  # also after Ctrl-C: what is measured then is float32
            self.precision = torch.float32
            self._low.clear()

    def _hidden(self, name: str, inputs: Tensor) -> Tensor:
        """The last hidden layer of a part of the network."""
        if name != "value_head" and not self.dense:
            with torch.autocast(inputs.device.type, self.precision, enabled=self.precision != torch.float32):
                return getattr(self, name)(inputs)  # type: ignore[no-any-return]
        for weight, bias in self._weights(name):
            inputs = torch.relu_(functional.linear(inputs, weight, bias))
        return inputs

    def _weights(self, name: str) -> list[tuple[Tensor, Tensor]]:
        """Of hidden layers, as precise as they calculate; a step that needs them several times converts them once."""
        layers = [layer for layer in getattr(self, name) if isinstance(layer, nn.Linear)]
        hidden = layers[:-1] if name == "value_head" else layers
        if self.precision == torch.float32:
            return [(layer.weight, layer.bias) for layer in hidden]
        if name not in self._low:
            with torch.enable_grad():  # whoever needs them first may not want a gradient
                self._low[name] = [(layer.weight.to(self.precision), layer.bias.to(self.precision)) for layer in hidden]
        return self._low[name]

    def log_belief(self, class_logits: Tensor, mask: Tensor) -> Tensor:
        """log p, p = softmax(log π + (z - log π) / τ), log τ = MLP(|S| / F, √(|S| / F), max softmax(z), H(softmax(z))); B, K.

        Family: F8
        """
        plain = log_softmax(class_logits.detach())
        held = mask.mean(1, keepdim=True)
        sureness = torch.cat([held, held.sqrt(), plain.max(1, keepdim=True).values.exp(), entropy(plain)], 1)
        scaled = self.prior + (class_logits - self.prior) / self.temperature(sureness).exp()
        return log_softmax(scaled)

    def select(self, inputs: Tensor, conditions: Tensor) -> tuple[Tensor, Tensor]:
        """u = W' g + w' (B, F), and g, the last hidden layer.

        Family: F10
        """
        hidden = self._hidden("selector", torch.cat([inputs, conditions.to(inputs.dtype)], 1))
        if self.precision == torch.float32 or self.test_logits.out_features <= DESIGN.few_tests:
            return self.test_logits(hidden.float()), hidden
        product = functional.linear(
            hidden, self.test_logits.weight.to(self.precision)
        ).float()  # almost as large as a hidden layer
        return product + self.test_logits.bias, hidden

    def predict(self, log_belief: Tensor, decision_loss: Tensor, logit_gap: Tensor, *others: Tensor) -> ValuePrediction:
        """V_i = D + ζ r_i + ω δ_i,  β = r_β,  ℓ̂ = D + r_ℓ,  κ = softplus(r_κ - 2),  E = r_E,
        where ω = softplus(r_ω - 4) and ζ = min(1, 64 / F).

        D: decision_loss (B); δ: logit_gap (B, F); others: both hidden layers, mask, conditions, affordable
        share.

        Family: F12
        """
        belief, F = log_belief.exp(), self.test_logits.out_features
        top = belief.topk(min(DESIGN.top_classes, belief.shape[1]), 1).values
        top = functional.pad(top, (0, DESIGN.top_classes - top.shape[1]))
        known = torch.cat([belief, top, entropy(log_belief), decision_loss[:, None]], 1)
        hidden = self._hidden("value_head", torch.cat([part.to(self.precision) for part in (known, *others)], 1))
        raw = self.value_head[-1](hidden.float())
        after, optimism, final_loss, cost_share, gap_weight, *external = raw.split([F] + [1] * (raw.shape[1] - F), 1)
        pushed = functional.softplus(gap_weight - DESIGN.gap_offset) * logit_gap
        return ValuePrediction(
            decision_loss[:, None] + own_share(F) * after + pushed,
            optimism[:, 0],
            decision_loss + final_loss[:, 0],
            functional.softplus(cost_share[:, 0] - DESIGN.cost_offset),
            external[0][:, 0] if external else None,
        )

    @torch.no_grad()
    def follow_order(self, rank: Ints) -> None:
        """Makes the selector follow the static order: hidden layers of the classifier, and the order as bias."""
        if isinstance(self.selector, Conditioned):
            self.selector.encoder.load_state_dict(self.classifier.state_dict())
        else:
            for to, source in zip(self.selector.children(), self.classifier.children(), strict=True):
                if isinstance(to, nn.Linear) and isinstance(source, nn.Linear):
                    to.weight.zero_()
                    to.weight[:, : source.in_features] = source.weight
                    to.bias.copy_(source.bias)
        self.test_logits.weight.zero_()
        self.test_logits.bias.copy_(torch.from_numpy(-3.0 * rank / len(rank)))


class Conditioned(nn.Module):
    """An encoder of the user's own, and one layer that also sees tradeoff and budget."""

    def __init__(self, encoder: nn.Module, schema: Schema, width: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.inputs = len(schema.columns) + schema.n_tests
        self.mix = nn.Linear(encoded_width(encoder, schema) + DESIGN.conditions, width)

    def forward(self, inputs: Tensor) -> Tensor:
        shown, conditions = inputs[:, : self.inputs], inputs[:, self.inputs :]
        return functional.relu(self.mix(torch.cat([self.encoder(shown), conditions], 1)))


@dataclass(frozen=True, eq=False)
class Assessment:
    """What the networks make of B cases."""

    log_belief: Tensor  # B, K: log p
    decision_loss: Tensor  # B: D
    fee: Tensor  # B: the part of it that is cost
    prediction: ValuePrediction
    candidates: Tensor  # B, F: 𝒞
    best: Tensor  # B: i*
    best_cost: Tensor  # B: c̃ of i*
    best_value: Tensor  # B: V of i*, without gradient, + β
    continue_value: Tensor  # B: G, without gradient
    continues: Tensor  # B


def assess(
    network: FamilyNetwork,
    observed: Observation,
    inputs: Tensor,
    test_logits: Tensor,
    selector_hidden: Tensor,
    loss: Tensor,
    rule: str | None = None,
) -> Assessment:
    """i* = argmin_{i ∈ 𝒞} V_i + c̃_i,  G = V_{i*} + β + c̃_{i*}; a case continues if A is not empty and G + ε < D.

    Only temperature and value head get a gradient. loss (K, D): scaled; rule: the scoring rule, if there is one; inputs:
    `network.inputs`; the logits and the hidden layer are those of `network.select`.

    Family: F9; F11; F13
    """
    with torch.no_grad():
        class_logits, hidden = network.classify(inputs)
    log_belief = network.log_belief(class_logits, observed.mask)
    decided = observed.deciding(array(log_belief.exp()), array(loss), rule)
    decision_loss, fee = (torch.from_numpy(part).to(loss.device) for part in decided)
    proposed = candidates_and_gaps(array(test_logits), array(observed.legal))
    candidates, logit_gap = (torch.from_numpy(part).to(loss.device) for part in proposed)
    others = hidden, selector_hidden.detach(), observed.mask, observed.conditions, observed.affordable
    prediction = network.predict(log_belief.detach(), decision_loss, logit_gap, *others)
    value_after = prediction.value_after.detach()
    best = (value_after + observed.scaled_cost).masked_fill(~candidates, math.inf).argmin(1)
    best_cost = observed.scaled_cost.gather(1, best[:, None])[:, 0]
    best_value = value_after.gather(1, best[:, None])[:, 0] + prediction.optimism
    continue_value = (best_value + best_cost).detach()
    continues = observed.open & (continue_value + DESIGN.tie_margin < decision_loss)
    return Assessment(
        log_belief, decision_loss, fee, prediction, candidates, best, best_cost, best_value, continue_value, continues
    )


def own_trunks(schema: Schema, encoder: Encoder, weights: Weights) -> tuple[Trunk, Trunk]:
    """The large networks of a family with an encoder, from their weights, as functions of arrays."""
    with own_torch(0):
        network = FamilyNetwork(schema, weights["test_logits.weight"].shape[1], encoder=encoder)
    load_weights(network, weights)
    network.eval()

    @torch.inference_mode()
    def classifier(inputs: np.ndarray, _: np.ndarray) -> np.ndarray:
        return np.asarray(network.classifier(torch.from_numpy(inputs).float()).numpy())

    @torch.inference_mode()
    def selector(inputs: np.ndarray, conditions: np.ndarray) -> np.ndarray:
        both = torch.cat([torch.from_numpy(inputs).float(), torch.from_numpy(conditions).expand(len(inputs), -1)], 1)
        return np.asarray(network.selector(both).numpy())

    return classifier, selector


def entropy(log_belief: Tensor) -> Tensor:
    """H(p) = -Σ_k p_k log p_k; B, 1."""
    return -(log_belief.exp() * log_belief).sum(1, keepdim=True)
