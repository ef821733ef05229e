"""Networks that learn the classes from any set of tests, side by side in one batch of matrix products.

Columns are shown as they are, or with quantile bins and sines of them as well; a trial says which of the two.
"""

from __future__ import annotations

import time

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from askwise.components.boosting import row_weights
from askwise.components.networks import soft_update
from askwise.core.arrays import Arrays, Bools, Floats, Ints
from askwise.core.problem import Problem
from askwise.family.config import FamilyConfig
from askwise.family.encodings import FourierFeatures, PiecewiseLinear
from askwise.stack.belief import ColumnFeatures
from askwise.stack.config import StackConfig
from askwise.stack.side_by_side import SideBySide
from askwise.stack.states import StateMaker, some_of

HELD_OUT_STATES = 6_000  # on which it is seen when networks are enough
ENCODED_AT_ONCE = 30_000_000  # numbers that may be kept in memory; where there are more, each batch is encoded by itself
FIRST_CHECK = 0.02  # of the steps; the other checks follow at growing distances, as few rows are learned by heart soon
WORSE = 1.05  # a network whose held-out log loss is so many times its least overfits


def features_of(problem: Problem, config: StackConfig, rich: bool) -> Arrays:
    """How columns are shown: as they are or, `rich`, with bins and sines too."""
    if not rich:
        return {}
    bins, sines = PiecewiseLinear(problem, config.network_bins), FourierFeatures(problem, config.network_frequencies)
    parts = {f"bins.{name}": getattr(bins, name) for name in ("source", "low", "slope")}
    parts |= {f"sines.{name}": getattr(sines, name) for name in ("source", "rate", "phase")}
    return {name: part.numpy() for name, part in parts.items()}


class NetworkTraining:
    """The training of the networks of one member."""

    def __init__(
        self, maker: StateMaker, learned: Ints, held_out: Ints, features: Arrays, config: StackConfig, seed: int
    ) -> None:
        problem, self.rng = maker.problem, np.random.default_rng(seed)
        self.maker, self.learned, self.config, self.features = maker, learned, config, features
        self.encode = ColumnFeatures(features, problem.schema.owner, np.float32)
        self.labels, weight = torch.from_numpy(problem.labels), row_weights(problem)
        self.weight = torch.from_numpy(weight / weight.mean()).float()
        self.encoded: Floats | None = None
        if len(problem) * len(self.encode.owner) <= ENCODED_AT_ONCE:
            self.encoded = self.encode.columns(problem.X)
        sizes = len(self.encode.owner) + problem.schema.n_tests, config.network_width, config.network_depth
        M, K = config.networks, problem.schema.n_classes
        self.network = SideBySide(M, *sizes, K, 0.0 if features else config.network_dropout)
        self.mean = SideBySide(M, *sizes, K).requires_grad_(False).eval()
        self.mean.load_state_dict(self.network.state_dict())
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), lr=config.network_rate, weight_decay=config.network_decay, fused=True
        )
        self.reached = 0.0  # how much of the steps there was time for
        self.curve: list[float] = []  # the log loss on held-out states at each check
        self.at_check: list[Arrays] = []  # what is stored of the networks at each
        self.held_out = some_of(held_out, HELD_OUT_STATES, self.rng)
        self.held_out_inputs = self._inputs(self.held_out, maker.masks(self.held_out, self.rng)).expand(M, -1, -1)

    def _inputs(self, row: Ints, mask: Bools) -> Tensor:
        """B, E + F."""
        shown = self.encode.columns(self.maker.problem.X[row]) if self.encoded is None else self.encoded[row]
        return torch.from_numpy(self.encode.masked(shown, mask))

    def run(self, steps: int, seconds: float) -> float:
        """Learns for so many steps, but no longer than so many seconds, and returns the least log loss on held-out states."""
        began, checks = time.monotonic(), np.geomspace(FIRST_CHECK, 1.0, self.config.network_checks)
        for step in range(1, steps + 1):
            over = min(max(step / steps, (time.monotonic() - began) / max(seconds, 1e-3)), 1.0)
            self._step(step, over)
            if due := int((checks[len(self.curve) :] <= over).sum()):
                log_loss, now = self._held_out_log_loss(), self.mean.arrays()
                self.curve += [log_loss] * due
                self.at_check += [now] * due
                if over >= 1 or log_loss > WORSE * min(self.curve):
                    self.reached = step / steps if over >= 1 else 1.0
                    break
        return min(self.curve)

    def _step(self, step: int, progress: float) -> None:
        M, B = self.config.networks, self.config.network_batch
        row = self.learned[self.rng.integers(len(self.learned), size=M * B)]
        logits = self.network(self._inputs(row, self.maker.masks(row, self.rng)).view(M, B, -1))
        nats = functional.cross_entropy(logits.reshape(M * B, -1), self.labels[row], reduction="none")
        for group in self.optimiser.param_groups:
            group["lr"] = self.config.network_rate * FamilyConfig.rate_factor(progress)
        self.optimiser.zero_grad()
        (M * (self.weight[row] * nats).mean()).backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), M**0.5)
        self.optimiser.step()
        soft_update(self.mean, self.network, max(2e-3, 5 / (step + 10)))

    @torch.no_grad()
    def _held_out_log_loss(self) -> float:
        logits, row = self.mean(self.held_out_inputs).mean(0), self.held_out
        nats = functional.cross_entropy(logits, self.labels[row], reduction="none")
        return float((self.weight[row] * nats).mean())

    def arrays(self) -> Arrays:
        """What is stored of them, see `belief.Networks`, with each layer as it was at each check."""
        layers = {name: np.stack([now[name] for now in self.at_check]) for name in self.at_check[0]}
        return {**self.features, **layers, "curve": np.array(self.curve, np.float32)}


def fit_networks(
    maker: StateMaker, learned: Ints, held_out: Ints, features: Arrays, config: StackConfig, seed: int, seconds: float
) -> tuple[Arrays, float]:
    """Networks of any set of tests, as arrays, and how much of their steps there was time for."""
    ends, training = time.monotonic() + seconds, NetworkTraining(maker, learned, held_out, features, config, seed)
    training.run(config.network_steps, ends - time.monotonic())
    return training.arrays(), training.reached


def choose_features(maker: StateMaker, learned: Ints, held_out: Ints, config: StackConfig, seed: int, seconds: float) -> Arrays:
    """How columns are shown, by a short training each way."""
    steps, least, best = max(1, config.network_steps // config.network_trial), np.inf, {}
    for rich in (False, True):
        ends = time.monotonic() + seconds / 2
        features = features_of(maker.problem, config, rich)
        trial = config.but(networks=1)
        training = NetworkTraining(maker, learned, held_out, features, trial, seed)
        log_loss = training.run(steps, ends - time.monotonic())
        if log_loss < least:
            least, best = log_loss, features
    return best
