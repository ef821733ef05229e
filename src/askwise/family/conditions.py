"""What losses, prices and budgets of a problem are measured against, and how a family sees them."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass

import numpy as np

from askwise.core.arrays import Doubles, Floats
from askwise.core.problem import Problem, Schema
from askwise.family.config import DESIGN


@dataclass(frozen=True)
class Scale:
    """What losses, prices and budgets of a problem are measured against. Amounts are money."""

    loss_scale: float  # mean largest loss of a case
    total: float  # cost of everything
    cheapest: float  # the smallest price above 0
    low: float  # lambda below which it hardly matters what is bought
    high: float  # lambda above which nothing is bought

    @classmethod
    def of(cls, problem: Problem) -> Scale:
        costs = problem.schema.costs
        alone = list_prices(problem.schema)
        cheapest = float(min(alone[alone > 0], default=1.0))
        total = float(costs.money(costs.total)) or 1.0
        assert problem.y is not None
        without = float(problem.mean(problem.loss[problem.y]).min())  # of the best decision that buys nothing
        high = max(without, 1e-3 * problem.loss_scale) / cheapest
        return cls(problem.loss_scale, total, cheapest, min(2e-3 * problem.loss_scale / total, high / 10), high)

    @property
    def least(self) -> float:
        """A price of 0 is taken for this one: a noisy maximum would otherwise spend whatever is allowed."""
        return self.low / 2

    def conditions(self, lam: Doubles, left: Doubles | None) -> Floats:
        """B, 33: price and budget left on logarithmic axes, as hat functions, and whether there is no budget to mind."""
        hats = _hats(lam, self.least, self.high)
        if left is None:
            return np.concatenate([hats, np.zeros_like(hats), np.ones((len(lam), 1))], 1, dtype=np.float32)
        free = (left >= self.total)[:, None]
        return np.concatenate([hats, _hats(left, self.cheapest / 2, self.total) * ~free, free], 1, dtype=np.float32)

    def reach(self, lam: Doubles, left: Doubles | None) -> Doubles:
        """B, in stakes: at most this much will still be paid at price lambda: what is left, and no more than can be lost."""
        money = np.full(len(lam), self.total) if left is None else np.clip(left, 1e-9 * self.total, self.total)
        reach: Doubles = np.minimum(1.0, lam * money / self.loss_scale)
        return reach

    def to_dict(self) -> dict[str, float]:
        return asdict(self)


def list_prices(schema: Schema) -> Doubles:
    """F, sorted: what each test costs alone, in money."""
    alone: Doubles = np.sort(schema.costs.money(schema.costs.alone.astype(float)))
    return alone


def affordable(alone: Doubles, price: Doubles, left: Doubles | None) -> Floats:
    """B, F, or nothing where there are many tests: once this test is bought, the share of tests that could be paid with what is
    left. On the axis of the budget it would not be seen exactly where a pair of tests can be had.

    alone: F, sorted: what each test costs alone; price: B, F: what each costs now.
    """
    F = len(alone)
    if DESIGN.few_tests < F:
        return price[:, :0].astype(np.float32)
    if left is None:
        return np.ones(price.shape, np.float32)
    rest = left[:, None] - price + 1e-9 * alone[-1]
    share: Floats = (np.searchsorted(alone, rest, "right") / F).astype(np.float32)
    return share


def _hats(x: Doubles, low: float, high: float) -> Doubles:
    """B, knots: 1 at a knot, falling linearly to 0 at the knots beside it."""
    span = max(math.log(high / low), 1e-9)
    at = np.log(np.clip(x, low, high) / low) / span * (DESIGN.knots - 1)
    hats: Doubles = np.maximum(0, 1 - np.abs(at[:, None] - np.arange(DESIGN.knots)))
    return hats
