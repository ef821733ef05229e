"""Gradient steps: the optimiser of a phase, and the averaged networks that follow."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from askwise.components.networks import soft_update
from askwise.family.network import FamilyNetwork

Rates = dict[tuple[str, ...], float]  # by the names of parts of the network that learn alike, their largest rate


class Descent:
    """The optimiser of a phase in which these parts of the network learn. `all_follow`: more than they may change, as the buffers
    of an encoder of the user's own do; otherwise all else is its own average already."""

    def __init__(self, network: FamilyNetwork, mean: FamilyNetwork, rates: Rates, weight_decay: float, all_follow: bool) -> None:
        def weights(of: nn.Module, *names: str) -> list[Tensor]:
            return [p for name in names for p in getattr(of, name).parameters()]

        learning = [name for names in rates for name in names]
        self.network, self.mean, self.all_follow = network, mean, all_follow
        self.averaged, self.learned = weights(mean, *learning), weights(network, *learning)
        self.clipped = weights(network, "selector", "test_logits", "value_head", "temperature")
        groups = [{"params": weights(network, *names), "peak": rate} for names, rate in rates.items()]
        self.optimiser = torch.optim.AdamW(groups, lr=1e-3, weight_decay=weight_decay, fused=True)
        for group in self.optimiser.param_groups:
            if not group["peak"]:
                self._stop(group)

    def stop_classifier(self) -> None:
        """The classifier learns no more."""
        self._stop(self.optimiser.param_groups[0])

    @staticmethod
    def _stop(group: dict[str, Any]) -> None:
        group["peak"] = 0.0
        for parameter in group["params"]:
            parameter.requires_grad_(False)

    def step(self, loss: Tensor, rate_factor: float, norm: float | None, averaging_weight: float) -> None:
        """One step. norm: gradients of all but the classifier are shortened to it."""
        for group in self.optimiser.param_groups:
            group["lr"] = group["peak"] * rate_factor
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if norm is not None:
            nn.utils.clip_grad_norm_(self.clipped, norm)
        self.optimiser.step()
        if self.all_follow:
            soft_update(self.mean, self.network, averaging_weight)
        else:
            torch._foreach_lerp_(self.averaged, self.learned, averaging_weight)
