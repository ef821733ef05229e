"""Whether what a family's classifier learns still holds for rows it has not seen."""

from __future__ import annotations

import math

import numpy as np
import torch

from askwise.components.networks import Weights, array
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.family.config import FamilyConfig
from askwise.family.losses import surprise
from askwise.family.network import CLASSIFIER, FamilyNetwork
from askwise.family.states import StateSampler, as_numbers


class OverfitMonitor:
    """Looks now and then at the same held-out rows on the same prefixes, and keeps the classifier that was least surprised. To be
    too sure is no harm, temperature scaling corrects it: what counts is the best of several temperatures.

    Family: F23
    """

    def __init__(
        self, problem: Problem, sampler: StateSampler, config: FamilyConfig, seed: int, device: torch.device | None = None
    ) -> None:
        row = some_rows(len(problem), config.overfit_rows, seed)
        mask, weight = sampler.prefixes(problem, row, np.random.default_rng(seed)), problem.weight
        self.values, self.labels = (torch.from_numpy(part[row]).to(device) for part in (problem.X, problem.labels))
        self.mask = as_numbers(mask, device)
        self.weight = None if weight is None else torch.from_numpy(weight[row].astype(np.float32)).to(device)
        self.ratio = config.overfit_ratio
        self.least, self.best = math.inf, Weights()

    @torch.no_grad()
    def surprise(self, network: FamilyNetwork) -> float:
        """Cross-entropy on these rows, at the best temperature."""
        class_logits, _ = network.classify(network.inputs(self.values, self.mask))
        return surprise(class_logits, self.labels, self.weight)

    @torch.no_grad()
    def prior_surprise(self, network: FamilyNetwork) -> float:
        """The same of who only knows how frequent the classes are."""
        return surprise(network.prior.expand(len(self.labels), -1), self.labels, self.weight)

    def overfits(self, network: FamilyNetwork) -> bool:
        """Whether these rows have become more surprising than they were."""
        now = self.surprise(network)
        if now < self.least:
            self.least = now
            self.best = {k: array(v).copy() for k, v in network.state_dict().items() if k.startswith(CLASSIFIER)}
        return now > self.ratio * self.least

    def restore(self, network: FamilyNetwork) -> None:
        """The classifier at its best."""
        network.load_state_dict({k: torch.from_numpy(v.copy()) for k, v in self.best.items()}, strict=False)
