"""How long networks learn, and how the best of them are kept."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor, nn


class Pace:
    """How long phases of learning last: by steps where their number is given, otherwise by time, and then
    `fewest_steps` at least."""

    def __init__(self, seconds: float, steps: int | None = None, fewest_steps: int = 1) -> None:
        self.seconds, self.steps, self.fewest_steps = seconds, steps, fewest_steps
        self.began, self.upto = time.monotonic(), 0.0

    def phase(self, upto: float) -> Iterator[float]:
        """Before each step, how much of this phase is over. At its end the share `upto` of everything is."""
        share, self.upto = upto - self.upto, upto
        start, step = time.monotonic(), 0
        length = max(self.began + upto * self.seconds - start, 1e-9)
        while True:
            if self.steps is not None:
                done = step / max(1, round(share * self.steps))
            else:
                done = min((time.monotonic() - start) / length, step / self.fewest_steps)
            if done >= 1:
                return
            yield done
            step += 1


@dataclass(eq=False)
class BestNetworks:
    """Networks as they were when they did best."""

    networks: tuple[nn.Module, ...]
    loss: float = np.inf
    bad: int = 0  # measurements since then
    kept: list[dict[str, Tensor]] = field(default_factory=list)

    def see(self, loss: float) -> None:
        self.bad += 1
        if not self.kept or loss < self.loss:
            self.loss, self.bad = loss, 0
            self.kept = [{name: v.clone() for name, v in n.state_dict().items()} for n in self.networks]

    def restore(self) -> None:
        for network, state in zip(self.networks, self.kept, strict=True):
            network.load_state_dict(state)


def set_rate(adam: torch.optim.Optimizer, rate: float) -> None:
    for group in adam.param_groups:
        group["lr"] = rate
