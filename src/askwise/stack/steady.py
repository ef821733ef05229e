"""What policies lose, measured with less noise: what the held-out beliefs expect to be lost, set right by what came.

Of a few hundred cases, the share of right decisions is uncertain by several per cent, and the best of a hundred policies is the
luckiest one. What the beliefs expect, d_m, varies far less from one policy m to the next. What came, l_m, tells how far the
beliefs are wrong, which is much the same for policies that hold as much and expect as much:

    l_m - d_m = a + b h_m + c d_m + e_m,       h_m: the share of tests that cases hold at the end

a, b and c are fitted to all policies, each of which counts by 1 / (τ² + s_m²), where s_m is the standard error of l_m. Of what is
left, e_m, the part τ² / (τ² + s_m²) counts: with few cases little of it, with many all. No figure is further than s_m from what
came: most policies hold little, and what is learned from them may not hold for one that buys everything.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from askwise.core.arrays import Doubles
from askwise.core.costs import CostFunction
from askwise.core.episode import Episodes, tally
from askwise.core.measures import Mean, Measure, Tally
from askwise.core.problem import Problem
from askwise.core.scoring import expected_losses

APART = 0.01  # τ: how far beliefs may be wrong by more with one policy than with another, as a part of the loss scale


@dataclass(frozen=True)
class BelievedTally:
    """What some cases came to, and what was believed."""

    came: Tally
    loss: Mean
    right: Mean
    held: Mean

    def __add__(self, other: BelievedTally) -> BelievedTally:
        return BelievedTally(self.came + other.came, self.loss + other.loss, self.right + other.right, self.held + other.held)

    def measure(self, costs: CostFunction) -> Measure:
        return self.came.measure(costs)


def believed_tally(problem: Problem, done: Episodes) -> BelievedTally:
    """Of finished episodes with their beliefs."""
    came, weights = tally(problem, done), None if problem.weight is None else problem.weight[done.row]
    if done.belief is None or problem.schema.external_needs is not None:  # whose answers no belief knows
        return BelievedTally(came, came.loss, came.right, Mean.of(done.mask.mean(1), weights))
    rows = np.arange(len(done.row))
    lost = expected_losses(done.belief, problem.loss, problem.rule)[rows, done.decision]
    K = problem.schema.n_classes
    right = np.where(done.decision < K, done.belief[rows, np.minimum(done.decision, K - 1)], 0.0)  # only a class can be right
    held = done.mask.mean(1)
    return BelievedTally(came, *(Mean.of(values, weights) for values in (lost, right, held)))


def steadied(tallies: Mapping[int, BelievedTally], costs: CostFunction, loss_scale: float) -> dict[int, Measure]:
    """What policies come to, by their numbers; all were measured on the same rows."""
    measures = {i: t.measure(costs) for i, t in tallies.items()}
    held = np.array([t.held.value for t in tallies.values()])
    figures = {
        "loss": (np.array([t.loss.value for t in tallies.values()]), APART * loss_scale),
        "accuracy": (np.array([t.right.value for t in tallies.values()]), APART),
    }
    for name, (believed, apart) in figures.items():
        came = np.array([getattr(m, name) for m in measures.values()])
        error = np.array([getattr(m, f"{name}_error") for m in measures.values()])
        for i, value in zip(measures, steady(believed, came, error, held, apart).tolist(), strict=True):
            measures[i] = replace(measures[i], **{name: value})
    return measures


def steady(believed: Doubles, came: Doubles, error: Doubles, held: Doubles, apart: float) -> Doubles:
    """Of each policy: what was believed, set right."""
    wrong = came - believed
    noise = apart**2 + np.maximum(error, 1e-12) ** 2
    design, root = np.stack([np.ones_like(held), held, believed], 1), noise**-0.5
    common = design @ np.linalg.lstsq(root[:, None] * design, root * wrong, rcond=None)[0]
    value = believed + common + apart**2 / noise * (wrong - common)
    near: Doubles = np.maximum(value.clip(came - error, came + error), 0.0)
    return near
