"""The networks of a policy family, for training. `family_values` is the same without torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from askwise.components.encoders import Encoder, encoded_width
from askwise.components.networks import Weights, load_weights, stack
from askwise.components.torch_state import own_torch
from askwise.core.arrays import Ints
from askwise.core.cases import Cases
from askwise.core.problem import Problem, Schema
from askwise.family.config import DESIGN, FamilyConfig
from askwise.family.forward import Trunk, own_share, piecewise_linear, uncalibrated

SOME = 2_000  # rows in which the values of a column are counted
NORMAL = 2.563  # deviations of a normal distribution between its first and its last tenth


class Judged(NamedTuple):
    """What to expect, in stakes."""

    rest: Tensor  # B, F: loss at the end and price of all that follows, once a test is bought
    luck: Tensor  # B: how much more it is than that for the test that seems best, which is often the luckiest
    ends: Tensor  # B: its loss at the end alone
    more: Tensor  # B: price of what follows it, by `Scale.reach`
    ask: Tensor | None  # B: loss and price of the existing classifier


@dataclass(frozen=True, eq=False)
class Seen:
    """What there is to know about B cases in progress."""

    cases: Cases
    values: Tensor
    mask: Tensor
    inputs: Tensor
    conditions: Tensor
    labels: Tensor
    legal: Tensor  # B, F
    open: Tensor  # B: something can be bought
    price: Tensor  # B, F: in stakes, at the case's lambda
    reach: Tensor  # B
    rooms: Tensor  # B, F or nothing: see `affordable`


@dataclass(frozen=True, eq=False)
class View:
    """What the networks make of B cases; in stakes."""

    log_belief: Tensor  # B, K
    stop: Tensor  # B: loss of deciding now
    judged: Judged
    offers: Tensor  # B, F: tests that are proposed
    pick: Tensor  # B: the best of them
    now: Tensor  # B: its price
    value: Tensor  # B: loss and price of all that follows it
    on: Tensor  # B: loss and price of going on with it
    goes_on: Tensor  # B


class FamilyNetwork(nn.Module):
    """Inputs are values (B, C) and a mask (B, F) that may be soft: between 0 and 1 where a test is about to be chosen."""

    owner: Tensor
    prior: Tensor  # K: logarithms
    calibration: Tensor  # see `calibration`; what the last networks expect is compared with what comes

    def __init__(
        self, schema: Schema, width: int, encode: PiecewiseLinear | FourierFeatures | None = None, encoder: Encoder | None = None
    ) -> None:
        super().__init__()
        K, F = schema.n_classes, schema.n_tests
        self.encoding = encode if encoder is None else None
        self.register_buffer("prior", torch.zeros(K))
        self.register_buffer("calibration", torch.from_numpy(uncalibrated()).float())
        self.register_buffer("owner", torch.from_numpy(schema.owner), persistent=False)
        columns = len(schema.columns) if self.encoding is None else len(self.encoding.owner)
        self.classifier: nn.Module = stack(columns + F, width) if encoder is None else encoder(schema, width)
        self.selector: nn.Module = (
            stack(columns + F + DESIGN.conditions, width)
            if encoder is None
            else Conditioned(encoder(schema, width), schema, width)
        )
        hidden = width if encoder is None else encoded_width(self.classifier, schema)
        self.class_logits = nn.Linear(hidden, K)
        self.test_logits = nn.Linear(width, F)
        outputs = F + 4 if schema.external_needs is None else F + 5
        seen = K + DESIGN.top_classes + 2 + hidden + width + F + DESIGN.conditions + (F if DESIGN.few_tests >= F else 0)
        self.value_head = nn.Sequential(*stack(seen, DESIGN.value_width, depth=2), nn.Linear(DESIGN.value_width, outputs))
        warm = DESIGN.temperature_width
        self.temperature = nn.Sequential(nn.Linear(4, warm), nn.Tanh(), nn.Linear(warm, 1))
        for net in (self.temperature, self.value_head):  # belief as it is, and nothing to be gained by going on
            for last in list(net[-1].parameters()):
                nn.init.zeros_(last)

    def inputs(self, values: Tensor, mask: Tensor) -> Tensor:
        """B, E + F: encoded values where known, and the mask."""
        if self.encoding is None:
            return torch.cat([values * mask[:, self.owner], mask], 1)
        return torch.cat([self.encoding(values) * mask[:, self.encoding.owner], mask], 1)

    def logits(self, inputs: Tensor) -> tuple[Tensor, Tensor]:
        """B, K before the softmax, and the last hidden layer."""
        hidden = self.classifier(inputs)
        return self.class_logits(hidden), hidden

    def belief(self, logits: Tensor, mask: Tensor) -> Tensor:
        """B, K: logarithms of tempered class probabilities."""
        plain = logits.detach().log_softmax(1)
        held = mask.mean(1, keepdim=True)
        sure = torch.cat([held, held.sqrt(), plain.max(1, keepdim=True).values.exp(), entropy(plain)], 1)
        cooled: Tensor = self.prior + (logits - self.prior) / self.temperature(sure).exp()
        return cooled.log_softmax(1)

    def scores(self, inputs: Tensor, conditions: Tensor) -> tuple[Tensor, Tensor]:
        """B, F: those with the largest are proposed; and the last hidden layer."""
        guide = self.selector(torch.cat([inputs, conditions], 1))
        return self.test_logits(guide), guide

    def judged(
        self, log_belief: Tensor, hidden: Tensor, guide: Tensor, stop: Tensor, behind: Tensor, *rest_of_it: Tensor
    ) -> Judged:
        """`behind`: B, F, how far the scores are behind the best; `rest_of_it`: mask, conditions, what is affordable."""
        belief, F = log_belief.exp(), self.test_logits.out_features
        top = belief.topk(min(DESIGN.top_classes, belief.shape[1]), 1).values
        top = functional.pad(top, (0, DESIGN.top_classes - top.shape[1]))
        out = self.value_head(torch.cat([belief, top, entropy(log_belief), stop[:, None], hidden, guide, *rest_of_it], 1))
        rest, luck, ends, more, lean, *ask = out.split([F] + [1] * (out.shape[1] - F), 1)
        late = functional.softplus(lean - DESIGN.gap_offset) * behind
        return Judged(
            stop[:, None] + own_share(F) * rest + late,
            luck[:, 0],
            stop + ends[:, 0],
            functional.softplus(more[:, 0] - DESIGN.cost_offset),
            ask[0][:, 0] if ask else None,
        )

    @torch.no_grad()
    def follow(self, rank: Ints) -> None:
        """From the classifier to a policy that follows the order: its trunk is copied, the order becomes the bias."""
        if isinstance(self.selector, Conditioned):
            self.selector.start_from(self.classifier)
        else:
            for mine, theirs in zip(self.selector.children(), self.classifier.children(), strict=True):
                if isinstance(mine, nn.Linear) and isinstance(theirs, nn.Linear):
                    mine.weight.zero_()
                    mine.weight[:, : theirs.in_features] = theirs.weight
                    mine.bias.copy_(theirs.bias)
        self.test_logits.weight.zero_()
        self.test_logits.bias.copy_(torch.from_numpy(-3.0 * rank / len(rank)))

    def trunks(self) -> tuple[Trunk, Trunk]:
        """Both large networks as functions of arrays, for `FamilyValues` where the encoder is the user's own."""

        @torch.inference_mode()
        def classify(seen: np.ndarray, _: np.ndarray) -> np.ndarray:
            return np.asarray(self.classifier(torch.from_numpy(seen).float()).numpy())

        @torch.inference_mode()
        def choose(seen: np.ndarray, conditions: np.ndarray) -> np.ndarray:
            both = torch.cat([torch.from_numpy(seen).float(), torch.from_numpy(conditions).expand(len(seen), -1)], 1)
            return np.asarray(self.selector(both).numpy())

        return classify, choose


class PiecewiseLinear(nn.Module):
    """Piecewise linear encoding: each column becomes one input per quantile bin of its training values, where rows count by what
    is at stake in them: what tells a rare class may lie in a tail."""

    source: Tensor
    owner: Tensor
    low: Tensor
    slope: Tensor

    def __init__(self, problem: Problem, bins: int, rows: int = 50_000) -> None:
        super().__init__()
        assert problem.y is not None
        loss_scale = problem.loss.max(1)[problem.y]
        even = np.ptp(loss_scale) == 0
        rng = np.random.default_rng(0)
        some = (
            rng.permutation(len(loss_scale))
            if even
            else rng.choice(len(loss_scale), min(rows, 4 * len(loss_scale)), p=loss_scale / loss_scale.sum())
        )[:rows]
        source, low, slope = [], [], []
        for column, test in enumerate(problem.schema.owner.tolist()):
            x = problem.X[some, column].astype(float)
            if problem.available is not None:
                x = x[problem.available[some, test]]
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
        encoded: Tensor = piecewise_linear(values[:, self.source], self.low, self.slope)
        return encoded


class FourierFeatures(nn.Module):
    """Each column as it is and, unless it has only two values, as sines and cosines of it. With many rows a class may come and go
    many times along a column, which ReLUs alone, on the column or on bins of it, take long to learn."""

    source: Tensor
    owner: Tensor
    rate: Tensor
    phase: Tensor

    def __init__(self, problem: Problem, waves: int, rows: int = 50_000) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        some = rng.permutation(len(problem))[:rows]
        source, rate = [], []
        for column, test in enumerate(problem.schema.owner.tolist()):
            x = problem.X[some, column].astype(float)
            if problem.available is not None:
                x = x[problem.available[some, test]]
            often = rng.normal(size=waves)
            if len(np.unique(x[:SOME])) > 2:
                low, high = np.quantile(x, [0.1, 0.9])  # a few far values must not decide how wide a wave is
                spread = (high - low) / NORMAL or float(x.std())
                source += [column] * waves
                rate += (2 * np.pi * often / spread).tolist()
        self.register_buffer("source", torch.tensor([*source, *source], dtype=torch.int64))
        self.register_buffer("rate", torch.tensor([*rate, *rate], dtype=torch.float32))
        self.register_buffer("phase", torch.tensor([0.0] * len(rate) + [np.pi / 2] * len(rate)))
        owner = torch.from_numpy(problem.schema.owner)
        self.register_buffer("owner", torch.cat([owner, owner[self.source]]), persistent=False)

    def forward(self, values: Tensor) -> Tensor:
        return torch.cat([values, torch.sin(values[:, self.source] * self.rate + self.phase)], 1)


def encoding(problem: Problem, config: FamilyConfig) -> PiecewiseLinear | FourierFeatures | None:
    """How columns are shown to the networks; None: as they are."""
    if config.bins:
        return PiecewiseLinear(problem, config.bins)
    return FourierFeatures(problem, config.frequencies) if config.frequencies else None


class Conditioned(nn.Module):
    """An encoder of the user's own, and one layer that also sees price and budget."""

    def __init__(self, encoder: nn.Module, schema: Schema, width: int) -> None:
        super().__init__()
        self.encoder = encoder
        self.inputs = len(schema.columns) + schema.n_tests
        self.mix = nn.Linear(encoded_width(encoder, schema) + DESIGN.conditions, width)

    def start_from(self, other: nn.Module) -> None:
        self.encoder.load_state_dict(other.state_dict())

    def forward(self, inputs: Tensor) -> Tensor:
        seen, conditions = inputs[:, : self.inputs], inputs[:, self.inputs :]
        return functional.relu(self.mix(torch.cat([self.encoder(seen), conditions], 1)))


def own_trunks(schema: Schema, width: int, encoder: Encoder, weights: Weights) -> tuple[Trunk, Trunk]:
    """The large networks of a family whose encoder is the user's own, from their weights."""
    with own_torch(0):
        network = FamilyNetwork(schema, width, encoder=encoder)
    load_weights(network, weights)
    return network.eval().trunks()


def entropy(log_belief: Tensor) -> Tensor:
    """B, 1."""
    return -(log_belief.exp() * log_belief).sum(1, keepdim=True)
