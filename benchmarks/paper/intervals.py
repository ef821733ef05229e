"""A number from several seeds or from one, and how sure it is."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from scipy.stats import t


@dataclass(frozen=True)
class Estimate:
    """A mean and its 95 % interval; without limits where there is nothing to tell it from."""

    mean: float
    low: float
    high: float
    seeds: int

    def shown(self, digits: int = 4, sign: str = "") -> str:
        mean = f"{self.mean:{sign}.{digits}f}"
        return mean if math.isinf(self.high) else f"{mean} ({self.low:{sign}.{digits}f} to {self.high:{sign}.{digits}f})"


@dataclass(frozen=True)
class Quantity:
    """A number for each seed; where test rows were resampled, also what it is on each of these draws."""

    by_seed: Mapping[int, float]
    draws: Mapping[int, Sequence[float]] = field(default_factory=dict)

    def minus(self, other: Quantity) -> Quantity:
        """The difference seed by seed and draw by draw: the same seeds have the same rows, and draws are the same for all."""
        both = [seed for seed in self.by_seed if seed in other.by_seed]
        draws = {
            seed: list(np.subtract(self.draws[seed], other.draws[seed]))
            for seed in both
            if seed in self.draws and seed in other.draws and len(self.draws[seed]) == len(other.draws[seed])
        }
        return Quantity({seed: self.by_seed[seed] - other.by_seed[seed] for seed in both}, draws)

    @property
    def estimate(self) -> Estimate | None:
        """Student's t over the seeds; with one seed, the middle 95 of 100 draws of the test rows."""
        if not self.by_seed:
            return None
        values = list(self.by_seed.values())
        mean, n = float(np.mean(values)), len(values)
        if n > 1:
            half = float(t.ppf(0.975, n - 1) * np.std(values, ddof=1) / math.sqrt(n))
            return Estimate(mean, mean - half, mean + half, n)
        drawn = self.draws.get(next(iter(self.by_seed)))
        if drawn is None:
            return Estimate(mean, -math.inf, math.inf, n)
        low, high = np.quantile(drawn, [0.025, 0.975])
        return Estimate(mean, float(low), float(high), n)
