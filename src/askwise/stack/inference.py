"""A trained stack without torch: what each action is worth in a state, at any tradeoff and any hard budget.

    D = min_d Σ_y p_y w_y ℓ̃(y, d) + c̃_d                deciding now, p from the stack, w: class weights; scoring rules: (F9)
    𝒞 = the first n legal tests of the static order      n: breadth
    r = mean of the value heads of [summary of p, x ⊙ m, m, φ, a, breadth, log w]
    V_i = D + r_i,   G = min_{i ∈ 𝒞} (V_i + c̃_i) + r_β   buy if G + ε < D

Symbols are those of the family's README, and so is what becomes of these predictions.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from askwise.components.numpy_layers import AveragedNetworks
from askwise.core.arrays import Array, Doubles
from askwise.core.cases import State
from askwise.core.policy import Greedy
from askwise.core.schema import Schema
from askwise.family.conditions import Scale, affordable
from askwise.family.config import DESIGN as FAMILY
from askwise.family.forward import Prediction, belief_summary, softplus
from askwise.family.inference import Family, PredictedValues, PrefixValues
from askwise.frontier.point import Point
from askwise.stack.belief import StackedBelief
from askwise.stack.config import DESIGN
from askwise.stack.growing import LEAST_CASES, GrowingBelief

Believe = Callable[[Any, Any], Any]  # values, 0 where unknown (B, C), and mask (B, F) -> B, K


@dataclass(frozen=True, eq=False)
class Stack(Family):
    """What one training learned: a policy for every tradeoff, every budget, every breadth and all weights of the classes."""

    beliefs: Believe | None = None  # another way to its beliefs, one that remembers them
    prefix_order: tuple[int, ...] | None = None  # that prefixes are of, if not the static order, for which values were learned

    @property
    def weighs(self) -> bool:
        """Whether its heads know how classes weigh against each other."""
        F, K, C = len(self.rank), len(self.weights["prior"]), len(self.owner)
        return bool(self.weights["heads.0.weight"].shape[1] == _head_inputs(F, K, C, True))

    def values(
        self,
        lam: float,
        dtype: Any = np.float32,
        breadth: int = DESIGN.breadths[-1],
        class_weights: tuple[float, ...] | None = None,
    ) -> StackValues:
        return StackValues(self, lam, breadth, dtype, class_weights)

    def policy(
        self,
        lam: float,
        prefix: int | None = None,
        dtype: Any = np.float32,
        breadth: int = DESIGN.breadths[-1],
        tests: tuple[int, ...] | None = None,
        class_weights: tuple[float, ...] | None = None,
    ) -> Greedy:
        values = self.values(lam, dtype, breadth, class_weights)
        return Greedy(values if prefix is None else PrefixValues(values, self._rank(tests), prefix))

    def follow(self, point: Point, dtype: Any = np.float32) -> Greedy:
        return self.policy(point.lam, point.prefix, dtype, point.breadth or 1, point.tests, point.class_weights)

    @property
    def prefix_rank(self) -> Array:
        return self._rank(None)

    def _rank(self, tests: tuple[int, ...] | None) -> Array:
        """With these tests before all others."""
        tests = tests or self.prefix_order
        if tests is None:
            return self.rank
        order = np.argsort(self.rank)
        return np.argsort([*tests, *order[~np.isin(order, tests)]])


class StackValues(PredictedValues):
    """What the belief and the value heads of a stack predict."""

    def __init__(
        self, stack: Stack, lam: float, breadth: int, dtype: Any = np.float32, class_weights: tuple[float, ...] | None = None
    ) -> None:
        weights = stack.weights
        weighed = np.ones(len(stack.loss)) if class_weights is None else np.array(class_weights, float)
        super().__init__(stack if class_weights is None else replace(stack, loss=weighed[:, None] * stack.loss), lam, dtype)
        self.log_weights = np.log(weighed) if stack.weighs else None
        self.alone, self.breadth, self.owner = stack.alone, breadth, stack.owner
        self.order, self.rank = np.argsort(stack.rank), stack.rank
        self.believe_in = stack.beliefs or StackedBelief(weights, stack.owner, dtype)
        self.growing: GrowingBelief | None = None  # the same belief, along a rollout
        heads = {name.removeprefix("heads."): value for name, value in weights.items() if name.startswith("heads.")}
        self.heads = AveragedNetworks(heads, dtype)

    def believe(self, values: Array, mask: Array) -> Array:
        """B, K: class probabilities."""
        belief: Array = self.believe_in(values, mask)
        return belief

    def belief(self, state: State) -> Array:
        if self.growing is None or state.place is None:
            return self.believe(state.values, state.mask)
        return self.growing(state.values, state.mask, state.place)

    def following(self, n: int) -> StackValues:
        if n < LEAST_CASES or not isinstance(self.believe_in, StackedBelief):
            return self
        followed = copy(self)
        followed.growing = GrowingBelief(self.believe_in, n)
        return followed

    def predict(self, state: State) -> Prediction:
        """Belief, candidates, and what is to be expected of each."""
        belief = self.belief(state)
        decision_losses = self.decision_losses(belief, state.legal)
        decision_loss = decision_losses.min(1, keepdims=True)
        assert state.test_cost is not None
        shown = head_inputs(belief, decision_loss, state.values, state.mask)
        conditions, cost_bound = self._conditions(state)
        out = self.heads(np.concatenate([shown, conditions], 1, dtype=self.dtype))
        F, rows = state.mask.shape[1], state.rows
        scaled_cost = (state.test_cost * (self.lam / self.scale.loss_scale)).astype(out.dtype)
        candidates = next_in_order(state.legal[:, -F:], self.order, self.rank, self.breadth)
        test_values = out[:, :F] + decision_loss + scaled_cost
        best = np.where(candidates, test_values, np.inf).argmin(1)
        return Prediction(
            belief=belief,
            decision_losses=decision_losses,
            decision_loss=decision_loss,
            test_logits=out[:, :F],
            candidates=candidates,
            test_values=test_values,
            best=best,
            continue_value=test_values[rows, best] + out[:, F],
            final_loss=decision_loss[:, 0] + out[:, F + 1],
            cost_to_come=scaled_cost[rows, best] + cost_bound * softplus(out[:, F + 2] - FAMILY.cost_offset),
            external_value=out[:, F + 3] if out.shape[1] > F + 3 else None,
        )

    def _conditions(self, state: State) -> tuple[Any, Any]:
        """What value heads see of what is asked for, and ρ: without a hard budget the same for all cases."""
        if state.left is None:
            conditions, cost_bound = self._without_budget
            return np.repeat(conditions, len(state.mask), 0), cost_bound
        return self._under_budget(state.left, state.test_cost)

    @cached_property
    def _without_budget(self) -> tuple[Any, Any]:
        return self._under_budget(None, np.zeros((1, len(self.alone))))

    def _under_budget(self, left: Doubles | None, test_cost: Any) -> tuple[Any, Any]:
        conditions = condition_inputs(self.scale, self.alone, self.lam, left, test_cost, self.breadth, self.log_weights)
        return conditions, self.scale.cost_bound(self.lam, left).astype(self.dtype)


def head_sizes(schema: Schema, weighs: bool) -> tuple[int, int]:
    """How many inputs and outputs a value head has; `weighs`: whether it knows how classes weigh against each other."""
    F = schema.n_tests
    return _head_inputs(F, schema.n_classes, len(schema.columns), weighs), F + 3 + (schema.external_needs is not None)


def _head_inputs(F: int, K: int, C: int, weighs: bool) -> int:
    of_state = K + FAMILY.top_classes + 2 + C + F  # as in `belief_summary`, and values and mask
    return of_state + FAMILY.conditions + (F if FAMILY.few_tests >= F else 0) + len(DESIGN.breadths) + weighs * K


def head_inputs(belief: Any, decision_loss: Any, values: Any, mask: Any) -> Any:
    """What value heads see of a state: p and its summary, values and mask. values: B, C, 0 where unknown."""
    limited = values.clip(-DESIGN.value_limit, DESIGN.value_limit)
    return np.concatenate([belief_summary(belief, decision_loss), limited, mask], 1, dtype=belief.dtype)


def condition_inputs(
    scale: Scale,
    alone: Doubles,
    lam: Doubles | float,
    left: Doubles | None,
    test_cost: Array,
    breadth: int,
    log_weights: Doubles | None = None,
) -> Any:
    """What value heads see of what is asked for: φ, a, which of the breadths it is, and log w where they know it; B, ..."""
    chosen = np.concatenate([np.equal(breadth, DESIGN.breadths), [] if log_weights is None else log_weights])
    conditions = scale.conditions(lam, left)
    return np.concatenate([conditions, affordable(alone, test_cost, left), 0 * conditions[:, :1] + chosen[None]], 1)


def next_in_order(legal: Any, order: Array, rank: Array, breadth: Any) -> Any:
    """B, F: the first so many legal tests of the static order. breadth: one for all, or B, 1."""
    place = np.cumsum(legal[:, order].astype(np.float32), 1)[:, rank]
    return legal & (place <= breadth)
