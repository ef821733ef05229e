"""Whether what a family's classifier learns still holds for rows it has not seen."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch.nn import functional

from askwise.components.networks import Weights
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.family.network import FamilyNetwork
from askwise.family.states import Starts

ROWS = 1_000
TEMPERATURES = (1.0, 1.3, 1.7, 2.2, 3.0)
WORSE = 1.05  # times the least surprise so far
PARTS = ("classifier.", "class_logits.")


class OverfitMonitor:
    """Looks now and then at the same held-out rows on the same prefixes, and keeps the classifier that was least surprised. To be
    too sure is no harm: belief is tempered later."""

    def __init__(self, problem: Problem, starts: Starts, seed: int) -> None:
        assert problem.y is not None
        row = some_rows(len(problem), ROWS, seed)
        self.values, self.labels = torch.from_numpy(problem.X[row]), torch.from_numpy(problem.y[row])
        self.mask = torch.from_numpy(starts.prefixes(problem, row, np.random.default_rng(seed))).float()
        self.weight = None if problem.weight is None else torch.from_numpy(problem.weight[row]).float()
        self.least, self.best = math.inf, Weights()

    @torch.no_grad()
    def surprise(self, network: FamilyNetwork) -> float:
        logits, _ = network.logits(network.inputs(self.values, self.mask))
        if self.weight is None:
            return min(float(functional.cross_entropy(logits / t, self.labels)) for t in TEMPERATURES)
        each = (functional.cross_entropy(logits / t, self.labels, reduction="none") for t in TEMPERATURES)
        return min(float((self.weight * off).sum() / self.weight.sum().clamp(min=1e-30)) for off in each)

    def overfits(self, network: FamilyNetwork) -> bool:
        """Whether these rows have become more surprising than they were."""
        surprise = self.surprise(network)
        if surprise < self.least:
            self.least = surprise
            self.best = {k: v.numpy().copy() for k, v in network.state_dict().items() if k.startswith(PARTS)}
        return surprise > WORSE * self.least

    def restore(self, network: FamilyNetwork) -> None:
        """The classifier at its best."""
        network.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in self.best.items()}, strict=False)
