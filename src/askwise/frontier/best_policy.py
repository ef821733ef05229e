"""From the points of a method to the policy for a budget."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from askwise.core.budget import Budget
from askwise.core.episode import measure
from askwise.core.policy import Mixture, Policy
from askwise.core.problem import Problem
from askwise.frontier.hull import choose


def best_for(policies: Sequence[Policy], validation: Problem, budget: Budget, seed: int = 0) -> Policy:
    """The best of the policies on validation rows, under the budget's hard part; for an average budget a mixture of two where
    that is better. Among the policies must be one as cheap as the budget."""
    cap = budget.cap(validation.schema.costs)
    found = [measure(validation, policy, cap) for policy in policies]
    blend = choose([m.cost for m in found], [-m.loss for m in found], [m.loss_error or 0.0 for m in found], budget)
    first, second = policies[blend.first], policies[blend.second]
    return Mixture(first, second, blend.share, seed) if blend.share else first


def next_price(costs: Mapping[float, float]) -> float | None:
    """Where to look next for another point of a frontier: between the two neighbouring prices whose mean costs differ most. None
    where nothing differs, or the prices are as good as the same. `costs`: the mean cost at each positive price tried."""
    gaps = [(abs(costs[a] - costs[b]), a, b) for a, b in pairwise(sorted(costs)) if b > 1.03 * a]
    gap, a, b = max(gaps, default=(0.0, 1.0, 1.0))
    return (a * b) ** 0.5 if gap > 0 else None
