"""A trained policy family without torch: what each action is worth in a state, at any price and any hard budget.

Three networks. The first gives class probabilities, tempered to what held-out rows bear out, and with them what deciding now is
worth. The second, which also sees the price and the budget left, proposes tests. The third, a small one, judges them: the loss to
expect at the end, and what will still be paid on the way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Array, Bools, Doubles, Floats
from askwise.core.cases import State
from askwise.core.costs import CostFunction
from askwise.core.policy import NEVER, Greedy, View
from askwise.family import calibration
from askwise.family.conditions import Scale, affordable
from askwise.family.config import DESIGN

NOTHING = np.empty((1, 0), np.float32)
ENCODINGS = ("low", "slope", "rate", "phase")  # the first two are of bins, the others of waves


class Outlook(NamedTuple):
    """B states, in stakes: what each decision would lose, how good each test looks, and what to expect of each."""

    belief: Array  # B, K: class probabilities
    decide: Array  # B, K: expected loss of each decision
    scores: Array  # B, F: by which tests are proposed
    worth: Array  # B, F: loss and price to expect if this test is next
    pick: Array  # B: the best of those that are proposed
    on: Array  # B: loss and price to expect if one goes on with it
    loss: Array  # B: expected at the end if one goes on with it
    price: Array  # B: of it and of all that will still be bought, at lambda
    ask: Array | None  # B: expected loss and price of asking the existing classifier
    offers: Array  # B, F: the tests that are proposed
    stop: Array  # B, 1: expected loss of the best decision


Trunk = Callable[[Array, Array], Array]  # encoded values and mask (B, E + F), conditions (B or 1, none or all) -> B, W


@dataclass(frozen=True, eq=False)
class Family:
    """What one training learned: a policy for every price and every budget."""

    weights: Mapping[str, Array]
    scale: Scale
    rank: Array  # F: the place of each test in the static order
    loss: Doubles  # K, K
    owner: Array  # C
    alone: Doubles  # F: see `list_prices`
    trunks: tuple[Trunk, Trunk] | None = None  # of an encoder of the user's own

    def values(self, lam: float, dtype: Any = np.float32) -> FamilyValues:
        """Adaptive, at a price."""
        return FamilyValues(self.weights, self.scale, self.loss, self.owner, self.alone, lam, self.trunks, dtype)

    def policy(self, lam: float, prefix: int | None = None, dtype: Any = np.float32) -> Greedy:
        """Adaptive at a price or, with a prefix, so many tests of the order for everybody who can have them."""
        values = self.values(lam, dtype)
        return Greedy(values if prefix is None else InOrder(values, self.rank, prefix))

    def limit(self, costs: CostFunction, prefix: int | None, cap: int | None) -> int | None:
        """What no case may pay more than, in units: the hard budget or, along a prefix, the price of its tests together, also for
        those who cannot have all of these. None where nothing limits it."""
        if cap is not None or prefix is None:
            return cap
        return int(costs.cost((self.rank < prefix)[None])[0])

    def most_paid(self, costs: CostFunction, prefix: int | None, cap: int | None) -> float:
        """The same as a number: infinity where nothing limits it."""
        limit = self.limit(costs, prefix, cap)
        return math.inf if limit is None else limit


class FamilyValues:
    """Q(s, a) at one price, for `Greedy`. Only the tests that are proposed compete.

    `trunks` replaces the two large networks, for encoders of the user's own.
    """

    def __init__(
        self,
        weights: Mapping[str, Array],
        scale: Scale,
        loss: Doubles,
        owner: Array,
        alone: Doubles,
        lam: float,
        trunks: tuple[Trunk, Trunk] | None = None,
        dtype: Any = np.float32,
    ) -> None:
        self.scale, self.lam, self.dtype = scale, max(lam, scale.least), dtype
        self.loss = (loss / scale.loss_scale).astype(dtype)
        self.worst = self.loss.max()
        self.alone = alone
        self.class_logits, self.test_logits = (layer(weights, name, dtype) for name in ("class_logits", "test_logits"))
        self.prior, self.calibration = weights["prior"].astype(dtype), weights["calibration"].astype(float)
        self.value_head, self.temperature = layers(weights, "value_head", dtype), layers(weights, "temperature", dtype)
        self.encoding = _Encode(weights, owner, dtype)
        self.trunks = trunks or (_Dense(weights, "classifier", dtype), _Dense(weights, "selector", dtype))

    def decide(self, values: Array, mask: Array) -> Array:
        """B, K: expected loss of each decision."""
        expected: Array = self.believe(values, mask) @ self.loss
        return expected

    def believe(self, values: Array, mask: Array) -> Array:
        """B, K: class probabilities."""
        return self._believe(self.encoding(values, mask), mask)[1]

    def outlook(self, state: State) -> Outlook:
        """Everything the networks say."""
        mask, seen = state.mask, self.encoding(state.values, state.mask)
        conditions, reach, apart = self._limits(state)
        hidden, belief = self._believe(seen, mask)
        decide = belief @ self.loss
        guide = self.trunks[1](seen, conditions)
        scores = guide @ self.test_logits[0] + self.test_logits[1]
        stop = decide.min(1, keepdims=True)
        assert state.test_cost is not None
        (first, _), *rest = self.value_head
        out = np.concatenate([summary(belief, stop), hidden, guide, mask], 1, dtype=self.dtype) @ first[: -self._beside]
        out += apart
        for matrix, bias in rest:
            np.maximum(out, 0, out=out)
            out = out @ matrix
            out += bias
        F, rows = scores.shape[1], state.rows
        price = (state.test_cost * (self.lam / self.scale.loss_scale)).astype(out.dtype)
        legal = state.legal[:, -F:]
        offers, late = proposed(scores, legal)
        late *= softplus(out[:, F + 3 : F + 4] - DESIGN.gap_offset)
        late += stop
        late += price
        worth = late + own_share(F) * out[:, :F]
        pick = np.where(offers, worth, np.inf).argmin(1)
        now = price[rows, pick]
        ask = out[:, F + 4] if out.shape[1] > F + 4 else None
        return Outlook(
            belief,
            decide,
            scores,
            worth,
            pick,
            worth[rows, pick] + out[:, F],
            stop[:, 0] + out[:, F + 1],
            now + reach * softplus(out[:, F + 2] - DESIGN.cost_offset),
            ask,
            offers,
            stop,
        )

    def _limits(self, state: State) -> tuple[Array, Array, Array]:
        """What price and budget mean for each case, or, where there is no budget, for all: `Scale.conditions`, `Scale.reach`, and
        what the judge's first layer makes of them and of what is affordable."""
        if state.left is None:
            return self._unlimited
        assert state.test_cost is not None
        return self._limited(np.full_like(state.left, self.lam), state.left, affordable(self.alone, state.test_cost, state.left))

    @cached_property
    def _unlimited(self) -> tuple[Array, Array, Array]:
        return self._limited(np.full(1, self.lam), None, affordable(self.alone, np.zeros((1, len(self.alone))), None))

    def _limited(self, lam: Doubles, left: Doubles | None, rooms: Floats) -> tuple[Array, Array, Array]:
        first, bias = self.value_head[0]
        conditions = self.scale.conditions(lam, left)
        apart = np.concatenate([conditions, rooms], 1, dtype=self.dtype) @ first[-self._beside :] + bias
        return conditions, self.scale.reach(lam, left).astype(self.dtype), apart

    @property
    def _beside(self) -> int:
        """How many of the judge's inputs are about price and budget; they come last."""
        return DESIGN.conditions + (len(self.alone) if len(self.alone) <= DESIGN.few_tests else 0)

    def _believe(self, seen: Array, mask: Array) -> tuple[Array, Array]:
        """The last hidden layer, and B, K: class probabilities that are no surer than held-out rows allow."""
        hidden = self.trunks[0](seen, NOTHING)
        logits = hidden @ self.class_logits[0] + self.class_logits[1]
        (first, bias), (second, offset) = self.temperature
        cooled = np.tanh(sureness(softmax(logits), mask) @ first + bias) @ second + offset
        return hidden, softmax(self.prior + (logits - self.prior) / np.exp(cooled))

    def __call__(self, state: State) -> Floats:
        return self._values(self.outlook(state), state)

    def view(self, state: State) -> View:
        """The values, and what they come from."""
        seen, B = self.outlook(state), np.arange(len(state.mask))
        loss, cost = self.expected(seen, state)
        luck = seen.on - seen.worth[B, seen.pick]  # what is judged of the best is true of the others too
        gain = (seen.stop - luck[:, None]) - seen.worth
        return View(self._values(seen, state), seen.belief, np.where(seen.offers, gain, np.nan), loss, cost, None)

    def expected(self, seen: Outlook, state: State) -> tuple[Array, Array]:
        """B and B: if one goes on, the loss at the end, in stakes, and payments to come, in money: as judged, and set right."""
        loss, cost = self.calibration @ self.judged(seen, state.left).T
        assert state.test_cost is not None
        now = state.test_cost[np.arange(len(loss)), seen.pick]
        return np.minimum(np.maximum(loss, 0), self.worst), np.maximum(cost * self.scale.total, now)

    def judged(self, seen: Outlook, left: Doubles | None) -> Doubles:
        """See `calibration.inputs`."""
        scale = self.scale
        place = math.log(self.lam / scale.least) / max(math.log(scale.high / scale.least), 1e-9)
        bound = 0.0 if left is None else np.maximum(1 - left / scale.total, 0)
        cost = seen.price * (scale.loss_scale / self.lam / scale.total)
        return calibration.inputs(seen.stop[:, 0], seen.loss, seen.on, cost, place, bound)

    def _values(self, seen: Outlook, state: State) -> Floats:
        K, F = seen.decide.shape[1], seen.scores.shape[1]
        q = np.empty_like(state.legal, dtype=seen.scores.dtype)
        q[:, :K] = -seen.decide
        if seen.ask is not None:
            q[:, K] = -seen.ask
        q[:, -F:] = np.minimum(-seen.worth, -seen.on[:, None]) - 1e3
        q[state.rows, q.shape[1] - F + seen.pick] = -(seen.on + DESIGN.tie_margin)
        return q


class InOrder:
    """Buys the first k tests of a fixed order and decides with the classes of a family. Whoever cannot have or pay one of them
    goes on as the family does at its price, so that a gap does not end a case."""

    def __init__(self, values: FamilyValues, rank: Array, k: int) -> None:
        self.values = values
        self.fixed_order = np.argsort(rank)[:k]
        # better than any decision, the first in the order best of all; whatever is not in it worse than any decision
        self.bonus = np.where(rank < k, 1e6, -1e6) - rank.astype(float)

    def __call__(self, state: State) -> Floats:
        F, K = len(self.bonus), len(self.values.loss)
        q = np.full_like(state.legal, NEVER, dtype=self.values.loss.dtype)  # it does not ask an existing classifier either
        q[:, -F:] = self.bonus
        over, lacks = self._over(state)
        if over.any():  # until then nothing needs to be computed
            q[over, :K] = -self.values.decide(state.values[over], state.mask[over])
        if lacks.any():
            q[lacks] = self.values(state.keep(lacks))
        return q

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

    def view(self, state: State) -> View:
        """The values, and which tests are still to come; of those who go on as the family does, what it says."""
        F, B = len(self.bonus), len(state.mask)
        belief = self.values.believe(state.values, state.mask)
        gain, loss, cost = np.full((B, F), np.nan), np.full(B, np.nan), np.full(B, np.nan)
        _, lacks = self._over(state)
        if lacks.any():
            other = self.values.view(state.keep(lacks))
            gain[lacks], loss[lacks], cost[lacks] = other.gain, other.loss, other.cost
        return View(self(state), belief, gain, loss, cost, self.coming(state))


class _Encode:
    """B, E + F: values, in bins, with waves or as they are, 0 where unknown, and the mask; what both large networks look at."""

    def __init__(self, weights: Mapping[str, Array], owner: Array, dtype: Any) -> None:
        self.dtype, self.source = dtype, weights.get("encoding.source")
        self.parts = {name: weights[f"encoding.{name}"].astype(dtype) for name in ENCODINGS if f"encoding.{name}" in weights}
        if self.source is not None:
            self.owner = owner[self.source]

    def __call__(self, values: Array, mask: Array) -> Array:
        x = values.astype(self.dtype, copy=False)
        if self.source is None:
            return np.concatenate([x, mask], 1, dtype=self.dtype)
        made, waves = x[:, self.source], "rate" in self.parts
        if waves:
            made *= self.parts["rate"]
            made += self.parts["phase"]
            np.sin(made, out=made)
        else:
            made = encode(made, self.parts["low"], self.parts["slope"])
        made *= mask[:, self.owner]
        return np.concatenate([x, made, mask] if waves else [made, mask], 1, dtype=self.dtype)


class _Dense:
    """Fully connected layers with ReLU."""

    def __init__(self, weights: Mapping[str, Array], name: str, dtype: Any) -> None:
        self.layers, self.dtype = layers(weights, name, dtype), dtype

    def __call__(self, seen: Array, conditions: Array) -> Array:
        (first, bias), *rest = self.layers
        n = seen.shape[1]
        out: Array = seen @ first[:n]
        out += conditions.astype(self.dtype, copy=False) @ first[n:] + bias if conditions.shape[1] else bias
        np.maximum(out, 0, out=out)
        for matrix, bias in rest:
            out = out @ matrix
            out += bias
            np.maximum(out, 0, out=out)
        return out


def encode(x: Any, low: Any, slope: Any) -> Any:
    """Each column as one input per quantile bin: 0 below the bin, 1 above it, linear inside. For arrays and tensors."""
    return ((x - low) * slope).clip(0, 1)


def sureness(belief: Array, mask: Array) -> Array:
    """B, 4: what the temperature depends on: how much is held, and how sure the untempered belief is."""
    held = mask.sum(1, keepdims=True, dtype=belief.dtype) / mask.shape[1]
    return np.concatenate([held, np.sqrt(held), belief.max(1, keepdims=True), entropy(belief)], 1)


def entropy(belief: Array) -> Array:
    """B, 1."""
    made = np.maximum(belief, 1e-12)
    np.log(made, out=made)
    made *= belief
    return -np.add.reduce(made, 1, keepdims=True)


def summary(belief: Array, stop: Array) -> Array:
    """B, K + 5: what the judge sees of a belief: itself, its three largest, its entropy, and the loss of deciding now."""
    top = np.sort(belief, 1)[:, :-4:-1]
    none = [0 * stop] * (3 - belief.shape[1])
    return np.concatenate([belief, top, *none, entropy(belief), stop], 1)


def own_share(tests: int) -> float:
    """How much of what is judged of a test is about it alone, rather than about its score: of many tests each is seen rarely."""
    return min(1.0, DESIGN.few_tests / tests)


def proposed(scores: Array, legal: Array) -> tuple[Array, Array]:
    """B, F: the legal tests with the largest scores; B, F, 0 to 5: how far each score is behind the largest of them."""
    allowed = np.where(legal, scores, -np.inf).astype(scores.dtype, copy=False)
    late = allowed.max(1, keepdims=True) - scores
    np.maximum(late, 0, out=late)
    np.minimum(late, DESIGN.gap_limit, out=late)
    if scores.shape[1] <= DESIGN.candidates:
        return legal, late
    least = np.partition(allowed, -DESIGN.candidates, 1)[:, -DESIGN.candidates :][:, :1]
    return legal & (allowed >= least), late


def softmax(z: Array) -> Array:
    z = z - np.maximum.reduce(z, 1, keepdims=True)
    np.exp(z, out=z)
    z /= np.add.reduce(z, 1, keepdims=True)
    return z


def softplus(x: Array) -> Array:
    made: Array = np.logaddexp(0, x)
    return made


def layer(weights: Mapping[str, Array], name: str, dtype: Any) -> tuple[Array, Array]:
    """Matrix (in, out) and bias of a linear layer."""
    return np.ascontiguousarray(weights[f"{name}.weight"].T.astype(dtype)), weights[f"{name}.bias"].astype(dtype)


def layers(weights: Mapping[str, Array], name: str, dtype: Any) -> list[tuple[Array, Array]]:
    """All linear layers of a sequence, in order."""
    found = sorted({int(key.split(".")[1]) for key in weights if key.startswith(f"{name}.")})
    return [layer(weights, f"{name}.{i}", dtype) for i in found]
