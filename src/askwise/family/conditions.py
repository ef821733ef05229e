"""What losses, costs and budgets of a problem are measured against, and how a family sees tradeoff and budget."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from functools import lru_cache

import numpy as np

from askwise.core.arrays import Doubles, Floats
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.family.config import DESIGN


@dataclass(frozen=True)
class Scale:
    """What losses, costs and budgets of a problem are measured against. Amounts are money."""

    loss_scale: float  # L: mean largest loss of a case
    total: float  # C: cost of everything
    cheapest: float  # the smallest cost of a test above 0
    low: float  # tradeoff below which it hardly matters what is bought
    high: float  # λ_max: above which nothing is bought

    @classmethod
    def of(cls, problem: Problem) -> Scale:
        costs = problem.schema.costs
        alone = costs_alone(problem.schema)
        cheapest = float(min(alone[alone > 0], default=1.0))
        total = float(costs.money(costs.total)) or 1.0
        high = max(problem.prior_loss, 1e-3 * problem.loss_scale) / cheapest
        return cls(problem.loss_scale, total, cheapest, min(2e-3 * problem.loss_scale / total, high / 10), high)

    @property
    def least(self) -> float:
        """λ_min: a tradeoff of 0 is taken for this one: a noisy maximum would otherwise spend whatever is allowed."""
        return self.low / 2

    def conditions(self, lam: Doubles | float, left: Doubles | None) -> Floats:
        """φ: tradeoff and budget left on logarithmic axes, as hat functions, and whether there is no budget; B, 2 J + 1.
        lam: B, or one for all cases.

        Family: F2
        """
        hats = _hats_of_one(lam, self.least, self.high) if isinstance(lam, float) else _hats(lam, self.least, self.high)
        if left is None:
            return np.concatenate([hats, np.zeros_like(hats), np.ones((len(hats), 1))], 1, dtype=np.float32)
        free = (left >= self.total)[:, None]
        if isinstance(lam, float):
            hats = hats + np.zeros_like(left)[:, None]
        return np.concatenate([hats, _hats(left, self.cheapest / 2, self.total) * ~free, free], 1, dtype=np.float32)

    def cost_bound(self, lam: Doubles | float, left: Doubles | None) -> Doubles:
        """ρ = min(1, λ min(b, C) / L); B: no more than this, scaled, will still be paid: what is left, and what can be lost.

        Family: F3
        """
        money = np.full(1, self.total) if left is None else np.minimum(np.maximum(left, 1e-9 * self.total), self.total)
        bound: Doubles = np.minimum(1.0, lam * money / self.loss_scale)
        return bound

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def log_prior(problem: Problem) -> Doubles:
    """K: log π, the class frequencies, from weighted counts + 0.5."""
    weight = None if problem.weight is None else problem.weight / problem.weight.mean()
    counts = np.bincount(problem.labels, weight, minlength=problem.schema.n_classes) + 0.5
    logs: Doubles = np.log(counts / counts.sum())
    return logs


def costs_alone(schema: Schema) -> Doubles:
    """F, sorted: what each test costs alone, in money."""
    alone: Doubles = np.sort(schema.costs.money(schema.costs.alone.astype(float)))
    return alone


def decision_money(schema: Schema) -> Doubles | None:
    """D: what each decision costs, in money; None where none costs anything."""
    if not schema.costs.decisions.any():
        return None
    money: Doubles = schema.costs.money(schema.decision_cost.astype(float))
    return money


def affordable(alone: Doubles, cost: Doubles, left: Doubles | None) -> Floats:
    """a_i = |{j : c(j | ∅) ≤ b - c(i | S)}| / F; B, F, or nothing where there are many tests: once test i is bought, the share of
    tests that could be paid with what is left. On the axis of the budget it is not seen exactly where a pair can be had.

    alone: F, sorted: what each test costs alone; cost: B, F: what each costs now.

    Family: F4
    """
    F = len(alone)
    if DESIGN.few_tests < F:
        return cost[:, :0].astype(np.float32)
    if left is None:
        return np.ones(cost.shape, np.float32)
    # the same for all cases, and many tests cost the same; in an ONNX graph nobody knows
    if isinstance(cost, np.ndarray) and cost.strides[0] == 0:
        cost, kind = np.unique(cost[:1], return_inverse=True)
        return _payable(alone, left[:, None] - cost).take(kind.reshape(-1), 1)
    return _payable(alone, left[:, None] - cost)


def _payable(alone: Doubles, rest: Doubles) -> Floats:
    """The share of tests that cost no more than what is left (any shape)."""
    share: Floats = (np.searchsorted(alone, rest + 1e-9 * alone[-1], "right") / len(alone)).astype(np.float32)
    return share


def _hats(x: Doubles, low: float, high: float) -> Doubles:
    """hat_j(t(x)): 1 at a knot, falling linearly to 0 at the knots beside it; B, J.

    Family: F2
    """
    span = max(math.log(high / low), 1e-9)
    at = np.log(np.minimum(np.maximum(x, low), high) / low) / span * (DESIGN.knots - 1)
    hats: Doubles = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(DESIGN.knots)))
    return hats


@lru_cache(maxsize=256)
def _hats_of_one(x: float, low: float, high: float) -> Doubles:
    """1, J: the same for one number, which all cases of a policy share."""
    return _hats(np.full(1, x), low, high)
