"""A trained policy family without torch: what each action is worth in a state, at any tradeoff and any hard budget.

Its parts are in `forward`, its equations in the README. The classifier gives class probabilities, and with them the loss of
deciding now. The selector proposes tests. The value head predicts what loss and cost will follow each of them.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from askwise.components.numpy_layers import linear, linears
from askwise.core.arrays import Array, Bools, Doubles, Floats, Ints
from askwise.core.cases import State
from askwise.core.costs import CostFunction
from askwise.core.policy import NEVER, Greedy, ValueFunction, ValueView
from askwise.core.scoring import expected_losses, largest
from askwise.family.conditions import Scale, affordable
from askwise.family.config import DESIGN
from askwise.family.forward import (
    DenseTrunk,
    InputEncoding,
    Prediction,
    Trunk,
    belief_summary,
    candidates_and_gaps,
    forecast_inputs,
    own_share,
    softmax,
    softplus,
    temperature_inputs,
)
from askwise.frontier.point import Point


@dataclass(frozen=True, eq=False)
class Family:
    """What one training learned: a policy for every tradeoff and every budget."""

    weights: Mapping[str, Array]
    scale: Scale
    rank: Array  # F: the place of each test in the static order
    loss: Doubles  # K, D
    owner: Array  # C
    alone: Doubles  # F: see `costs_alone`
    trunks: tuple[Trunk, Trunk] | None = None  # classifier and selector, where the encoder is the user's own
    rule: str | None = None  # the scoring rule that judges beliefs; None: `loss` judges decisions
    decision_cost: Doubles | None = None  # D: what each decision costs, in money; None: nothing

    def values(self, lam: float, dtype: Any = np.float32) -> PredictedValues:
        """Adaptive, at a tradeoff."""
        return FamilyValues(self, lam, dtype)

    def policy(self, lam: float, prefix: int | None = None, dtype: Any = np.float32) -> Greedy:
        """Adaptive at a tradeoff or, with a prefix, so many tests of the order for everybody who can have them."""
        values = self.values(lam, dtype)
        return Greedy(values if prefix is None else PrefixValues(values, self.rank, prefix))

    def follow(self, point: Point, dtype: Any = np.float32) -> Greedy:
        """The policy of a point."""
        return self.policy(point.lam, point.prefix, dtype)

    @property
    def prefix_rank(self) -> Array:
        """F: the place of each test in the order whose prefixes are bought for everybody."""
        return self.rank

    def limit(self, costs: CostFunction, prefix: int | None, cap: int | None) -> int | None:
        """What no case may pay more than, in units: the hard budget or, along a prefix, the cost of its tests together, also for
        those who cannot have all of these. None where nothing limits it."""
        if cap is not None or prefix is None:
            return cap
        return int(costs.cost((self.prefix_rank < prefix)[None])[0])

    def most_paid(self, costs: CostFunction, prefix: int | None, cap: int | None) -> float:
        """The same as a number: infinity where nothing limits it."""
        limit = self.limit(costs, prefix, cap)
        return math.inf if limit is None else limit


class PredictedValues(ValueFunction):
    """Q(s, a) at one tradeoff, for `Greedy`, from what is predicted for a state. Only candidates compete."""

    def __init__(self, family: Family, lam: float, dtype: Any) -> None:
        scale = family.scale
        self.scale, self.lam, self.dtype = scale, max(float(lam), scale.least), dtype
        self.loss, self.rule = (family.loss / scale.loss_scale).astype(dtype), family.rule
        self.worst = largest(self.loss, self.rule)
        self.fees: Array | None = None  # D: what decisions cost, in units of the loss scale
        if family.decision_cost is not None:
            self.fees = (family.decision_cost * (self.lam / scale.loss_scale)).astype(dtype)
        self.calibration = family.weights["calibration"].astype(float)

    @abstractmethod
    def believe(self, values: Array, mask: Array) -> Array:
        """B, K: class probabilities."""

    @abstractmethod
    def predict(self, state: State) -> Prediction:
        """Everything that is predicted."""

    def __call__(self, state: State) -> Floats:
        return self._values(self.predict(state), state)

    def view(self, state: State) -> ValueView:
        """The values, and what they come from."""
        prediction = self.predict(state)
        loss, cost = self.forecast(prediction, state)
        optimism = prediction.continue_value - prediction.test_values[state.rows, prediction.best]  # holds for the others too
        gain = (prediction.decision_loss - optimism[:, None]) - prediction.test_values
        return ValueView(
            self._values(prediction, state), prediction.belief, np.where(prediction.candidates, gain, np.nan), loss, cost, None
        )

    def free_losses(self, values: Array, mask: Array) -> Array:
        """B, D: expected loss of each decision that costs nothing; of the others more than anything."""
        lost = self.expected_losses(self.believe(values, mask))
        return lost if self.fees is None else np.where(self.fees > 0, np.asarray(-NEVER, lost.dtype), lost)

    def expected_losses(self, belief: Array) -> Array:
        """(F9) B, D: expected loss of each decision for a belief."""
        expected: Array = expected_losses(belief, self.loss, self.rule)
        return expected

    def decision_losses(self, belief: Array, legal: Array) -> Array:
        """(F9) B, D: the same with what decisions cost; more than anything where the hard budget forbids one. legal: B, A."""
        lost = self.expected_losses(belief)
        if self.fees is None:
            return lost
        return np.where(legal[:, : len(self.fees)], lost + self.fees, np.asarray(-NEVER, lost.dtype))

    def belief(self, state: State) -> Array:
        return self.believe(state.values, state.mask)

    def forecast(self, prediction: Prediction, state: State) -> tuple[Array, Array]:
        """(F25) B and B: if the case continues, the loss at the end, scaled, and the money still to be paid; calibrated."""
        loss, cost = self.calibration @ self.forecast_inputs(prediction, state.left).T
        assert state.test_cost is not None
        now = state.test_cost[state.rows, prediction.best]
        return np.minimum(np.maximum(loss, 0), self.worst), np.maximum(cost * self.scale.total, now)

    def forecast_inputs(self, prediction: Prediction, left: Doubles | None) -> Doubles:
        """(F25) B, 15."""
        scale = self.scale
        place = math.log(self.lam / scale.least) / max(math.log(scale.high / scale.least), 1e-9)
        bound = 0.0 if left is None else np.maximum(1 - left / scale.total, 0)
        cost = prediction.cost_to_come * (scale.loss_scale / self.lam / scale.total)
        losses = prediction.decision_loss[:, 0], prediction.final_loss, prediction.continue_value
        return forecast_inputs(*losses, cost, place, bound)

    def _values(self, prediction: Prediction, state: State) -> Floats:
        """(F24) B, A."""
        D, F = prediction.decision_losses.shape[1], prediction.test_values.shape[1]
        q = np.empty_like(state.legal, dtype=prediction.test_values.dtype)
        q[:, :D] = -prediction.decision_losses
        if prediction.external_value is not None:
            q[:, D] = -prediction.external_value
        q[:, -F:] = np.minimum(-prediction.test_values, -prediction.continue_value[:, None]) - 1e3
        q[state.rows, q.shape[1] - F + prediction.best] = -(prediction.continue_value + DESIGN.tie_margin)
        return q


class FamilyValues(PredictedValues):
    """What the networks of a family predict."""

    def __init__(self, family: Family, lam: float, dtype: Any = np.float32) -> None:
        weights, self.alone = family.weights, family.alone
        super().__init__(family, lam, dtype)
        self.class_logits, self.test_logits = (linear(weights, name, dtype) for name in ("class_logits", "test_logits"))
        self.prior = weights["prior"].astype(dtype)
        self.temperature, ((first, bias), *self.value_head) = (
            linears(weights, name, dtype) for name in ("temperature", "value_head")
        )
        # the inputs about tradeoff and budget come last; without a hard budget they are the same for all cases
        n = DESIGN.conditions + (len(self.alone) if len(self.alone) <= DESIGN.few_tests else 0)
        self.from_features, self.from_conditions = first[:-n], (first[-n:], bias)
        self.encoding = InputEncoding(weights, family.owner, dtype)
        self.trunks = family.trunks or (DenseTrunk(weights, "classifier", dtype), DenseTrunk(weights, "selector", dtype))

    def believe(self, values: Array, mask: Array) -> Array:
        """B, K: class probabilities."""
        return self._believe(self.encoding(values, mask), mask)[1]

    def predict(self, state: State) -> Prediction:
        """(F7) to (F13): everything the networks say."""
        mask, inputs = state.mask, self.encoding(state.values, state.mask)
        conditions, cost_bound, from_conditions = self._conditions(state)
        hidden, belief = self._believe(inputs, mask)
        decision_losses = self.decision_losses(belief, state.legal)
        selector_hidden = self.trunks[1](inputs, conditions)
        test_logits = selector_hidden @ self.test_logits[0] + self.test_logits[1]
        decision_loss = decision_losses.min(1, keepdims=True)
        summary = belief_summary(belief, decision_loss)
        out = np.concatenate([summary, hidden, selector_hidden, mask], 1, dtype=self.dtype) @ self.from_features
        out += from_conditions
        for matrix, bias in self.value_head:
            np.maximum(out, 0, out=out)
            out = out @ matrix
            out += bias
        F, rows = test_logits.shape[1], state.rows
        assert state.test_cost is not None
        scaled_cost = (state.test_cost * (self.lam / self.scale.loss_scale)).astype(out.dtype)
        candidates, test_values = candidates_and_gaps(test_logits, state.legal[:, -F:])
        test_values *= softplus(out[:, F + 3 : F + 4] - DESIGN.gap_offset)
        test_values += decision_loss
        test_values += scaled_cost
        test_values = test_values + own_share(F) * out[:, :F]
        best = np.where(candidates, test_values, np.inf).argmin(1)
        return Prediction(
            belief=belief,
            decision_losses=decision_losses,
            decision_loss=decision_loss,
            test_logits=test_logits,
            candidates=candidates,
            test_values=test_values,
            best=best,
            continue_value=test_values[rows, best] + out[:, F],
            final_loss=decision_loss[:, 0] + out[:, F + 1],
            cost_to_come=scaled_cost[rows, best] + cost_bound * softplus(out[:, F + 2] - DESIGN.cost_offset),
            external_value=out[:, F + 4] if out.shape[1] > F + 4 else None,
        )

    def _believe(self, inputs: Array, mask: Array) -> tuple[Array, Array]:
        """(F7), (F8) The last hidden layer, and B, K: class probabilities that are no surer than held-out rows allow."""
        hidden = self.trunks[0](inputs, np.empty((1, 0), np.float32))
        logits = hidden @ self.class_logits[0] + self.class_logits[1]
        (first, bias), (second, offset) = self.temperature
        log_temperature = np.tanh(temperature_inputs(softmax(logits), mask) @ first + bias) @ second + offset
        return hidden, softmax(self.prior + (logits - self.prior) / np.exp(log_temperature))

    def _conditions(self, state: State) -> tuple[Array, Array, Array]:
        """(F2) to (F4) for each case or, without a hard budget, for all: φ, ρ, and the part of the value head's first layer that
        depends on φ and on what is affordable."""
        if state.left is None:
            return self._without_budget
        assert state.test_cost is not None
        return self._under_budget(state.left, state.test_cost)

    @cached_property
    def _without_budget(self) -> tuple[Array, Array, Array]:
        return self._under_budget(None, np.zeros((1, len(self.alone))))

    def _under_budget(self, left: Doubles | None, test_cost: Doubles) -> tuple[Array, Array, Array]:
        matrix, bias = self.from_conditions
        conditions = self.scale.conditions(self.lam, left)
        inputs = np.concatenate([conditions, affordable(self.alone, test_cost, left)], 1, dtype=self.dtype)
        return conditions, self.scale.cost_bound(self.lam, left).astype(self.dtype), inputs @ matrix + bias


class PrefixValues(ValueFunction):
    """Buys the first k tests of a fixed order and decides for what costs nothing. Whoever cannot have or pay one of them
    continues as the family does at its tradeoff, so that a missing result does not end a case."""

    def __init__(self, values: PredictedValues, rank: Array, k: int) -> None:
        self.values = values
        self.order = np.argsort(rank)[:k]
        # better than any decision, the first in the order best of all; whatever is not in it worse than any decision
        self.bonus = np.where(rank < k, 1e6, -1e6) - rank.astype(float)

    def __call__(self, state: State) -> Floats:
        F, D = len(self.bonus), self.values.loss.shape[1]
        q = np.full_like(state.legal, NEVER, dtype=self.values.loss.dtype)  # it does not ask an existing classifier either
        q[:, -F:] = self.bonus
        over, lacks = self._over(state)
        if over.any():  # until then nothing needs to be computed
            q[over, :D] = -self.values.free_losses(state.values[over], state.mask[over])
        if lacks.any():
            q[lacks] = self.values(state.keep(lacks))
        return q

    @property
    def fixed_order(self) -> Ints:
        return self.order

    def belief(self, state: State) -> Array:
        return self.values.belief(state)

    def coming(self, state: State) -> Bools:
        """B, F: which tests of the order are still to come."""
        wanted: Bools = state.legal[:, -len(self.bonus) :] & (self.bonus > 0)
        return wanted

    def _over(self, state: State) -> tuple[Bools, Bools]:
        """B and B: who is at the end of the order and decides; and who goes on, since some of its money could not be spent."""
        ends = ~self.coming(state).any(1)
        saved = ~state.mask & (self.bonus > 0)
        if state.test_cost is not None:
            saved &= state.test_cost > 0
        lacks: Bools = ends & saved.any(1) & state.legal[:, -len(self.bonus) :].any(1)
        return ends & ~lacks, lacks

    def view(self, state: State) -> ValueView:
        """The values, and which tests are still to come; of those who go on as the family does, what it says."""
        F, B = len(self.bonus), len(state.mask)
        belief = self.values.believe(state.values, state.mask)
        gain, loss, cost = np.full((B, F), np.nan), np.full(B, np.nan), np.full(B, np.nan)
        _, lacks = self._over(state)
        if lacks.any():
            other = self.values.view(state.keep(lacks))
            gain[lacks], loss[lacks], cost[lacks] = other.gain, other.loss, other.cost
        return ValueView(self(state), belief, gain, loss, cost, self.coming(state))
