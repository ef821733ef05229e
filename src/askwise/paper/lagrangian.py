"""An average budget as a game: the policy minimises the Lagrangian, lambda maximises it.

Paper: algorithm 1
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from askwise.core.budget import Budget, lam_range, positive_costs
from askwise.core.problem import Problem
from askwise.paper.config import TrainConfig


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
    """Gradient ascent on the Lagrangian in lambda, with momentum. Without a target lambda rises from `low` to `most` by equal
    factors.

    Paper: eq. 5; algorithm 1, update λ
    """

    lam: float
    moves: bool
    target: float | None = None
    low: float = 0.0
    gain: float = 0.0  # of lambda for one unit of cost over the budget, where the step is 1
    most: float = math.inf
    momentum: float = 0.0
    velocity: float = 0.0
    clip: bool = False  # no slope is steeper than that of a policy that costs nothing

    def update(self, mean_cost: float, step: float, done: float = 0.0) -> None:
        """g := momentum g + step (E[z] - b);  λ := clip(λ + g).

        `done`: the share of training that is over.
        """
        if not self.moves:
            return
        if self.target is None:
            self.lam = self.low * (self.most / self.low) ** done
            return
        slope = lagrangian_slope(mean_cost, self.target)
        if self.clip and self.target:
            slope = min(slope, self.target)
        self.velocity = self.momentum * self.velocity + self.gain * step * slope
        self.lam = min(max(self.lam + self.velocity, 0.0), self.most)


def controller_for(budget: Budget, problem: Problem, config: TrainConfig) -> LambdaController:
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
        return LambdaController(lam=budget.fixed_lam(problem, config.hard_tradeoff), moves=False)
    # The paper's step is rate (E[z] - b) / sum of costs and its largest lambda 1, for costs near 1 and 0/1 loss. With units of
    # cost and loss it is the same whatever the money is counted in; at the largest lambda nothing is worth buying.
    positive = positive_costs(costs)
    unit, least = (positive.mean(), positive.min()) if config.cost_unit is None else (config.cost_unit, config.cost_unit)
    return LambdaController(
        lam=0.0,
        moves=True,
        target=float(budget.average),
        gain=problem.loss_scale / unit / costs.money(costs.total),
        most=float(problem.loss.max()) / least,
        momentum=config.lam_momentum,
        clip=config.lam_clip,
    )
