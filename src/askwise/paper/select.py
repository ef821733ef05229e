"""Which snapshot: everything that was measured, what of it a budget would follow, and when to stop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from askwise.components.networks import Weights
from askwise.core.arrays import Arrays, Doubles
from askwise.core.budget import Budget
from askwise.core.measures import Measure
from askwise.core.policy import Mixture, Policy
from askwise.frontier.choice import Blend, choose
from askwise.frontier.hull import hull, staircase
from askwise.frontier.point import Point
from askwise.paper.config import TrainConfig
from askwise.paper.lagrangian import lagrangian
from askwise.training.checkpoint import TrainingState
from askwise.training.result import InterimMeasurement, TrainingResult


@dataclass
class History:
    """Everything that was measured, and the weights of those snapshots that some tradeoff or budget would choose.

    Record 0 is deciding at once, which every method has for nothing.
    """

    records: list[InterimMeasurement]
    budget: Budget
    mixture: str = "never"
    weights: dict[int, Weights] = field(default_factory=dict)  # by index into records

    def add(self, record: InterimMeasurement, weights: Weights) -> None:
        self.records.append(record)
        self.weights[len(self.records) - 1] = weights
        blend = self.choose(self.budget)
        kept = {blend.first, blend.second, *(hull if self.mixture == "always" else staircase)(self.cost(), self.score()).tolist()}
        self.weights = {i: w for i, w in self.weights.items() if i in kept}

    def cost(self, upto: int | None = None) -> Doubles:
        return np.array([r.cost for r in self.records[:upto]])

    def score(self, upto: int | None = None) -> Doubles:
        return np.array([-r.validation.loss for r in self.records[:upto]])

    def choose(self, budget: Budget, upto: int | None = None) -> Blend:
        """The best on validation that meets the budget; hard budgets are met by every record."""
        error = np.array([r.validation.loss_error for r in self.records[:upto]])
        return choose(self.cost(upto), self.score(upto), error, budget, self.mixture)

    def value(self, budget: Budget, upto: int | None = None) -> float:
        """The objective of what `choose` gives: loss, and lambda times cost where lambda is given."""
        blend = self.choose(budget, upto)
        return -blend.mean(self.score(upto)) + (budget.lam or 0.0) * blend.mean(self.cost(upto))

    def point(self, i: int) -> Point:
        """Loss and accuracy by the validation rows, cost by these and the training rows."""
        record = self.records[i]
        return Point(float(record.lam), replace(record.validation, cost=record.cost), self.weights.get(i))

    def state(self) -> TrainingState:
        arrays = {f"kept/{i}/{name}": v for i, weights in self.weights.items() for name, v in weights.items()}
        return arrays, {"records": [r.to_dict() for r in self.records]}

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any], budget: Budget, mixture: str) -> History:
        history = cls([InterimMeasurement.from_dict(record) for record in facts["records"]], budget, mixture)
        for name, value in arrays.items():
            if name.startswith("kept/"):
                _, i, key = name.split("/", 2)
                history.weights.setdefault(int(i), {})[key] = value
        return history


def why_stop(history: History, budget: Budget, config: TrainConfig, loss_scale: float) -> str | None:
    """The reason to end training now, if there is one: for some epochs what would be returned got no better, and the training
    overfits, oscillates around an average budget, or has settled.

    Paper: section 2.4, oscillations; section 4.6, over-fitting
    """
    if budget == Budget():  # lambda is still on its way
        return None
    n = round(config.stop_epochs / config.window_epochs) if config.window_epochs else 0
    explored = sum(r.step > config.explore_epochs * config.epoch for r in history.records)
    if n < 4 or explored < 2 * n:
        return None
    small = 1e-3 * loss_scale
    if history.value(budget, -n) - history.value(budget) > small:
        return None
    recent, b = history.records[-n:], float(budget.average or 0)
    on_train = [(r.train, r.lam) for r in recent if r.train is not None]
    train = np.array([lagrangian(m.loss, m.cost, lam, b) for m, lam in on_train])
    validation = np.array([lagrangian(r.validation.loss, r.validation.cost, r.lam, b) for r in recent])
    if overfits(train, validation):
        return "overfitting"
    if unsettled(history):
        return None
    if budget.average is not None and oscillates(np.array([m.cost for m, _ in on_train]), b):
        return "oscillation"
    return "settled" if train.std() < 10 * small else None


def overfits(train: Doubles, validation: Doubles) -> bool:
    """Whether the objective clearly fell on training rows and clearly rose on validation rows."""
    return change(train) < -2 and change(validation) > 2


def change(values: Doubles) -> float:
    """From the first half of the values to the second, in standard errors."""
    first, second = values[: len(values) // 2], values[len(values) // 2 :]
    return float((second.mean() - first.mean()) / np.sqrt(first.var() / len(first) + second.var() / len(second) + 1e-12))


def oscillates(cost: Doubles, b: float) -> bool:
    """Whether mean costs cross the budget again and again, and by much."""
    crossings = int((np.diff(np.sign(cost - b)) != 0).sum())
    return crossings >= len(cost) // 4 and bool(cost.std() > 0.1 * b)


def unsettled(history: History) -> str:
    """What is wrong with lambda at the end of a training for an average budget: nothing, or one sentence. It has settled where
    the last quarter of the policies costs about the budget on average, or less with lambda at 0: more money did not help.

    Paper: section 4.6, lambda settles
    """
    last = [r for r in history.records[-max(4, len(history.records) // 4) :] if r.step]
    if history.budget.average is None or not last:
        return ""
    b, cost = float(history.budget.average), float(np.mean([r.cost for r in last]))
    if abs(cost - b) <= 0.1 * b or (cost < b and last[-1].lam == 0):
        return ""
    return (
        f"lambda has not settled: in the last quarter of the training the policy cost {cost:.3g} on average, and the budget is "
        f"{b:g}; train for longer"
    )


def follow(points: Sequence[Point], budget: Budget, mixture: str = "never") -> Blend:
    """Which points of a training for this budget it follows."""
    error = [p.measure.loss_error for p in points]
    return choose([p.cost for p in points], [-p.loss for p in points], error, budget, mixture)


def expected_for(result: TrainingResult[None], budget: Budget, mixture: str = "never") -> Measure:
    """What is expected of the policy for the budget: loss and accuracy by the validation rows, cost by these and the training
    rows."""
    blend = follow(result.points, budget, mixture)
    return result.points[blend.first].measure.mixed(result.points[blend.second].measure, blend.share)


def policy_for(result: TrainingResult[None], budget: Budget, seed: int = 0, mixture: str = "never") -> Policy:
    """The policy for the budget: that of a snapshot or, where that is allowed, a mixture of two."""
    blend = follow(result.points, budget, mixture)
    first, second = (result.policy(result.points[i]) for i in (blend.first, blend.second))
    return Mixture(first, second, blend.share, seed) if blend.share else first
