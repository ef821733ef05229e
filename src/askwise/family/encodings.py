"""How columns are shown to the networks: in quantile bins, with sines and cosines, or as they are."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from askwise.core.arrays import Doubles, Ints
from askwise.core.problem import Problem
from askwise.family.config import FamilyConfig
from askwise.family.forward import piecewise_linear


class PiecewiseLinear(nn.Module):
    """x_c ↦ clip((x_c - q_j) / (q_{j+1} - q_j), 0, 1) for every quantile bin [q_j, q_{j+1}] of a column's training values.

    Rows count by what is at stake in them: what tells a rare class may lie in a tail.

    Family: F5
    """

    source: Tensor  # E: the column of each output
    owner: Tensor  # E: its test
    low: Tensor
    slope: Tensor

    def __init__(self, problem: Problem, bins: int, rows: int = 50_000) -> None:
        super().__init__()
        stakes = problem.stakes[problem.labels]
        rng = np.random.default_rng(0)
        if np.ptp(stakes) == 0:
            sample = rng.permutation(len(stakes))[:rows]
        else:
            sample = rng.choice(len(stakes), min(rows, 4 * len(stakes)), p=stakes / stakes.sum())
        source, low, slope = [], [], []
        for column in range(len(problem.schema.owner)):
            x = _available(problem, sample, column)
            edges = np.unique(np.quantile(x, np.linspace(0, 1, bins + 1))) if len(x) else np.zeros(1)
            if len(edges) < 2:
                edges = np.array([edges[0], edges[0] + 1])
            source += [column] * (len(edges) - 1)
            low += edges[:-1].tolist()
            slope += (1 / np.maximum(np.diff(edges), 1e-6)).tolist()
        self.register_buffer("source", torch.tensor(source))
        self.register_buffer("low", torch.tensor(low, dtype=torch.float32))
        self.register_buffer("slope", torch.tensor(slope, dtype=torch.float32))
        self.register_buffer("owner", torch.from_numpy(problem.schema.owner)[self.source], persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        encoded: Tensor = piecewise_linear(values.index_select(1, self.source), self.low, self.slope)
        return encoded


class FourierFeatures(nn.Module):
    """x_c ↦ x_c and, unless it has only two values, sin(w_j x_c), sin(w_j x_c + π/2), w_j = 2π n_j / spread_c, n_j ~ N(0, 1).

    With many rows a class may come and go many times along a column, which ReLUs alone, on the column or on bins of it, take long
    to learn. spread_c is the distance from the first to the last tenth, in deviations of a normal distribution: a few far values
    must not decide how long a wave is.

    Family: F6
    """

    source: Tensor  # the column of each sine
    owner: Tensor  # E: the test of each output
    rate: Tensor
    phase: Tensor

    def __init__(self, problem: Problem, frequencies: int, rows: int = 50_000, counted: int = 2_000) -> None:
        super().__init__()
        deviations = 2.563  # of a normal distribution, from its first to its last tenth
        rng = np.random.default_rng(0)
        sample = rng.permutation(len(problem))[:rows]
        source, rate = [], []
        for column in range(len(problem.schema.owner)):
            x = _available(problem, sample, column)
            drawn = rng.normal(size=frequencies)
            if len(np.unique(x[:counted])) > 2:
                low, high = np.quantile(x, [0.1, 0.9])
                spread = (high - low) / deviations or float(x.std())
                source += [column] * frequencies
                rate += (2 * np.pi * drawn / spread).tolist()
        self.register_buffer("source", torch.tensor([*source, *source], dtype=torch.int64))
        self.register_buffer("rate", torch.tensor([*rate, *rate], dtype=torch.float32))
        self.register_buffer("phase", torch.tensor([0.0] * len(rate) + [np.pi / 2] * len(rate)))
        owner = torch.from_numpy(problem.schema.owner)
        self.register_buffer("owner", torch.cat([owner, owner[self.source]]), persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        waves = values.index_select(1, self.source).mul_(self.rate).add_(self.phase).sin_()
        return torch.cat([values, waves], 1)


Encoding = PiecewiseLinear | FourierFeatures


def encoding_for(problem: Problem, config: FamilyConfig) -> Encoding | None:
    """The encoding that the settings name; None: values as they are."""
    if config.bins:
        return PiecewiseLinear(problem, config.bins)
    return FourierFeatures(problem, config.frequencies) if config.frequencies else None


def _available(problem: Problem, sample: Ints, column: int) -> Doubles:
    """The values of a column in those of the sampled rows that have it."""
    x: Doubles = problem.X[sample, column].astype(float)
    return x if problem.available is None else x[problem.available[sample, problem.schema.owner[column]]]
