"""Whether what a family's classifier learns still holds for rows it has not seen."""

from __future__ import annotations

import math

import numpy as np
import torch

from askwise.components.networks import Weights
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.family.config import FamilyConfig
from askwise.family.losses import surprise
from askwise.family.network import CLASSIFIER, FamilyNetwork
from askwise.family.states import StateSampler


class OverfitMonitor:
    """Looks now and then at the same held-out rows on the same prefixes, and keeps the classifier that was least surprised. To be
    too sure is no harm, temperature scaling corrects it: what counts is the best of several temperatures.

    Family: F23
    """

    def __init__(self, problem: Problem, sampler: StateSampler, config: FamilyConfig, seed: int) -> None:
        row = some_rows(len(problem), config.overfit_rows, seed)
        self.values, self.labels = torch.from_numpy(problem.X[row]), torch.from_numpy(problem.labels[row])
        self.mask = torch.from_numpy(sampler.prefixes(problem, row, np.random.default_rng(seed))).float()
        self.weight = None if problem.weight is None else torch.from_numpy(problem.weight[row]).float()
        self.ratio = config.overfit_ratio
        self.least, self.best = math.inf, Weights()

    @torch.no_grad()
    def surprise(self, network: FamilyNetwork) -> float:
        """Cross-entropy on these rows, at the best temperature."""
        class_logits, _ = network.classify(network.inputs(self.values, self.mask))
        return surprise(class_logits, self.labels, self.weight)

    def overfits(self, network: FamilyNetwork) -> bool:
        """Whether these rows have become more surprising than they were."""
        now = self.surprise(network)
        if now < self.least:
            self.least = now
            self.best = {k: v.numpy().copy() for k, v in network.state_dict().items() if k.startswith(CLASSIFIER)}
        return now > self.ratio * self.least

    def restore(self, network: FamilyNetwork) -> None:
        """The classifier at its best."""
        network.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in self.best.items()}, strict=False)
