"""What a policy came to on some cases: means, how sure they are, and of how many cases. Means of parts can be joined."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Doubles
from askwise.core.costs import CostFunction


@dataclass(frozen=True)
class Measure:
    """Mean cost in money, mean loss, share of right decisions, and the standard error of each. Weighted rows count as often as
    their weights say."""

    cost: float
    loss: float
    accuracy: float
    n: int  # cases that were measured
    cost_error: float = 0.0  # 0 for what is known exactly
    loss_error: float = 0.0
    accuracy_error: float = 0.0

    def mixed(self, other: Measure, share: float) -> Measure:
        """What comes of following the other in this share of the cases. Both were measured on the same cases, so that errors add
        up rather than average out."""
        if not share:
            return self

        mean = {name: (1 - share) * getattr(self, name) + share * getattr(other, name) for name in FIGURES}
        return Measure(**{**mean, "n": min(self.n, other.n)})

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, figures: Mapping[str, Any]) -> Measure:
        """The inverse of `to_dict`. Other names are left out."""
        return cls(**{name: figures[name] for name in FIGURES})


FIGURES = tuple(Measure.__dataclass_fields__)


@dataclass(frozen=True)
class Mean:
    """The mean of weighted values and its standard error, sqrt(sum w² (x - mean)²) / sum w."""

    weight: float  # sum w
    value: float
    spread: float  # sum w² (x - value)²
    first_moment: float = 0.0  # sum w² (x - value), which is 0 where all weights are alike
    squares: float = 0.0  # sum w²

    @classmethod
    def of(cls, values: Array, weights: Doubles | None = None) -> Mean:
        x = np.asarray(values, float)
        if weights is None:
            mean = float(x.mean())
            return cls(len(x), mean, float(((x - mean) ** 2).sum()), 0.0, len(x))
        total = float(weights.sum())
        mean = float(weights @ x / total) if total else float(x.mean())
        apart, squares = x - mean, weights**2
        return cls(total, mean, float(squares @ apart**2), float(squares @ apart), float(squares.sum()))

    def __add__(self, other: Mean) -> Mean:
        weight = self.weight + other.weight
        mean = self.value + (other.value - self.value) * (other.weight / weight if weight else 0.0)
        a, b = self._around(mean), other._around(mean)
        return Mean(weight, mean, a.spread + b.spread, a.first_moment + b.first_moment, a.squares + b.squares)

    def _around(self, mean: float) -> Mean:
        """The sums around another mean."""
        d, m, s = self.value - mean, self.first_moment, self.squares
        return Mean(self.weight, mean, max(self.spread + 2 * d * m + d * d * s, 0.0), m + d * s, s)

    @property
    def error(self) -> float:
        return self.spread**0.5 / self.weight if self.weight else 0.0


@dataclass(frozen=True)
class Tally:
    """What n cases came to; costs are counted in units of the costs."""

    n: int
    cost: Mean
    loss: Mean
    right: Mean

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.n + other.n, self.cost + other.cost, self.loss + other.loss, self.right + other.right)

    def measure(self, costs: CostFunction) -> Measure:
        cost, error = (float(costs.money(units)) for units in (self.cost.value, self.cost.error))
        return Measure(cost, self.loss.value, self.right.value, self.n, error, self.loss.error, self.right.error)
