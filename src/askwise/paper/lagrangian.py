"""An average budget as a game: the policy minimises the Lagrangian, lambda maximises it.

Paper: algorithm 1
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from askwise.core.budget import Budget, lam_range, positive_costs
from askwise.core.problem import Problem


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


@dataclass
class LambdaController:
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

    def update(self, mean_cost: float, shrinks: int, done: float = 0.0) -> None:
        """g := momentum g + rate (E[z] - b);  λ := clip(λ + g).

        `shrinks`: how often the rate has shrunk; `done`: the share of training that is over.
        """
        if not self.moves:
            return
        if self.target is None:
            self.lam = self.low * (self.most / self.low) ** done
            return
        slope = lagrangian_slope(mean_cost, self.target)
        self.velocity = self.momentum * self.velocity + self.gain * self.scale**shrinks * slope
        self.lam = min(max(self.lam + self.velocity, 0.0), self.most)


def controller_for(budget: Budget, problem: Problem, rate: float, scale: float, momentum: float) -> LambdaController:
    """What holds lambda during training: it starts at 0 and moves for an average budget, sweeps without a budget, and stays
    where lambda is given or there is only a hard budget.

    Paper: algorithm 1, initialise λ
    """
    costs, ends = problem.schema.costs, lam_range(problem)
    if ends is None:  # everything is free
        return LambdaController(lam=budget.lam or 0.0, moves=False)
    if budget == Budget():
        return LambdaController(lam=ends[0], moves=True, low=ends[0], most=ends[1])
    if budget.average is None:
        return LambdaController(lam=budget.fixed_lam(problem), moves=False)
    positive = positive_costs(costs)
    return LambdaController(
        lam=0.0,
        moves=True,
        target=float(budget.average),
        # in the paper's unit costs and 0/1 loss this is rate / sum of costs, whatever the money is counted in
        gain=rate * problem.loss_scale / positive.mean() / costs.money(costs.total),
        most=float(problem.loss.max()) / positive.min(),  # with this lambda no test is worth buying
        scale=scale,
        momentum=momentum,
    )
