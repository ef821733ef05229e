"""What may be spent. A budget is a value: it says what is affordable and how its price lambda moves during training.

Tradeoff(0.01)                        one unit of cost is worth 0.01 of loss (eq. 1)
AverageBudget(12)                     12 per case on average (eq. 2)
HardBudget(40)                        never more than 40 for any case (eq. 3)
AverageBudget(12) & HardBudget(40)    both
Budget()                              none of them: training sweeps the price, to see what each amount of money buys
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from askwise.core.costs import CostFunction, exact
from askwise.core.parameters import Instance, OrNone
from askwise.core.problem import Problem
from askwise.errors import InputError


@dataclass(frozen=True)
class Budget:
    """Make one with `Tradeoff`, `AverageBudget` or `HardBudget`, and join them with `&`."""

    lam: float | None = None
    average: Fraction | None = None
    hard: Fraction | None = None

    def __and__(self, other: Budget) -> Budget:
        if (self.average is not None and other.lam is not None) or (self.lam is not None and other.average is not None):
            raise InputError("a trade-off and an average budget contradict each other: an average budget finds its own price")
        parts: dict[str, Any] = {}
        for name in ("lam", "average", "hard"):
            mine, theirs = getattr(self, name), getattr(other, name)
            if mine is not None and theirs is not None and mine != theirs:
                raise InputError(f"{self} & {other} sets the same limit twice; set it once")
            parts[name] = theirs if mine is None else mine
        return Budget(**parts)

    def __str__(self) -> str:
        parts = []
        if self.lam is not None:
            parts.append(f"Tradeoff({self.lam:g})")
        if self.average is not None:
            parts.append(f"AverageBudget({float(self.average):g})")
        if self.hard is not None:
            parts.append(f"HardBudget({float(self.hard):g})")
        return " & ".join(parts) or "no budget"

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Exactly what it is, in words that fit into JSON."""
        return {name: None if (value := getattr(self, name)) is None else str(value) for name in ("lam", "average", "hard")}

    @classmethod
    def from_dict(cls, given: dict[str, Any]) -> Budget:
        """The inverse of `to_dict`."""
        made = cls()
        for name, kind in (("lam", Tradeoff), ("average", AverageBudget), ("hard", HardBudget)):
            if given[name] is not None:
                made = replace(made, **{name: getattr(kind(given[name]), name)})
        return made

    def cap(self, costs: CostFunction) -> int | None:
        """The most whole units a case may cost; None when there is no hard budget.

        Paper: section 2.5, restricted actions
        """
        return None if self.hard is None else min(math.floor(self.hard / costs.unit), costs.total)

    def controller(self, problem: Problem, rate: float, scale: float, momentum: float) -> PriceController:
        """The object that holds lambda during training; it moves only for an average budget."""
        costs = problem.schema.costs
        alone = np.array([costs.money(int(u)) for u in costs.alone])
        positive = alone[alone > 0]
        if not positive.size:  # everything is free
            return PriceController(lam=self.lam or 0.0, moves=False)
        total = costs.money(costs.total)
        if self == Budget():
            # from where everything is worth buying to where hardly anything is
            low, high = 1e-2 * problem.loss_scale / total, problem.loss_scale / positive.mean()
            return PriceController(lam=low, moves=True, low=low, most=high)
        if self.average is None:
            # With only a hard budget costs do not count, but a noisy maximum must not spend for nothing: ties go to stopping.
            lam = self.lam if self.lam is not None else 1e-3 * problem.loss_scale / total
            return PriceController(lam=lam, moves=False)
        return PriceController(
            lam=0.0,
            moves=True,
            target=float(self.average),
            # in the paper's unit costs and 0/1 loss this is rate / sum of costs, whatever the money is counted in
            gain=rate * problem.loss_scale / positive.mean() / total,
            most=float(problem.loss.max()) / positive.min(),  # at this price no test is worth buying
            scale=scale,
            momentum=momentum,
        )


OPTIONAL_BUDGET = OrNone(Instance(Budget, "Tradeoff(lam), AverageBudget(b), HardBudget(b) or two joined by &"))


def Tradeoff(lam: float) -> Budget:
    """Minimise loss + lam * cost.

    Paper: eq. 1
    """
    return Budget(lam=float(exact(lam, "the price lambda")))


def AverageBudget(b: Any) -> Budget:
    """Minimise loss where the mean cost over cases is at most b.

    Paper: eq. 2
    """
    return Budget(average=exact(b, "the average budget"))


def HardBudget(b: Any) -> Budget:
    """Minimise loss where no case ever costs more than b.

    Paper: eq. 3
    """
    return Budget(hard=exact(b, "the hard budget"))


@dataclass
class PriceController:
    """Gradient ascent on the Lagrangian in lambda, with momentum and a step that shrinks in epochs. Without a target it rises
    from `low` to `most` by equal factors.

    Paper: eq. 5; algorithm 1, update λ
    """

    lam: float
    moves: bool
    target: float | None = None
    low: float = 0.0
    gain: float = 0.0
    most: float = math.inf
    scale: float = 1.0
    momentum: float = 0.0
    velocity: float = 0.0

    def update(self, mean_cost: float, halvings: int, done: float = 0.0) -> None:
        """g := momentum g + rate (E[z] - b);  lambda := clip(lambda + g).

        `halvings`: how often the rate has shrunk; `done`: the share of training that is over.
        """
        if not self.moves:
            return
        if self.target is None:
            self.lam = self.low * (self.most / self.low) ** done
            return
        slope = lagrangian_slope(mean_cost, self.target)
        self.velocity = self.momentum * self.velocity + self.gain * self.scale**halvings * slope
        self.lam = min(max(self.lam + self.velocity, 0.0), self.most)


def lagrangian(loss: float, cost: float, lam: float, b: float) -> float:
    """L(θ, λ) = E[ℓ + λ (z - b)].

    Paper: eq. 4
    """
    return loss + lam * (cost - b)


def lagrangian_slope(cost: float, b: float) -> float:
    """∇_λ L = E[z - b].

    Paper: algorithm 1, update λ
    """
    return cost - b
