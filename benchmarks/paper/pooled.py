"""From rows of single policies to the paper's metric: each row is a policy, for a tradeoff, an average or a hard budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from askwise.bench.entries import Entry, mean_curve
from askwise.bench.metrics import score
from askwise.bench.rows import Row
from askwise.frontier.metric import Curve, curve
from benchmarks.paper.intervals import Quantity

Points = tuple[np.ndarray, np.ndarray]  # costs, scores
COST, LOSS, ACCURACY = 0, 1, 2  # in the columns of a row


def means(row: Row, cases: str, network: str = "chosen") -> list[float]:
    """The figures of a network of a training on validation or test rows. Chosen is the best single one that meets the budget."""
    return row[cases][0] if network == "chosen" else row[network][cases]


def most(row: Row, network: str = "chosen") -> float:
    """The most that any test case paid."""
    return row["most"] if network == "chosen" else row[network]["most"]


def score_of(row: Row, cases: str, network: str = "chosen") -> float:
    return float(score(means(row, cases, network)[LOSS], row["loss_scale"]))


@dataclass(frozen=True)
class Pool:
    """The policies of one method on one data set, of all budgets and of one seed or all, as points of the plane."""

    rows: tuple[Row, ...]
    network: str = "chosen"

    def points(self, cases: str) -> Points:
        """On validation or on test rows."""
        cost = np.array([means(row, cases, self.network)[COST] for row in self.rows])
        return cost, np.array([score_of(row, cases, self.network) for row in self.rows])

    @property
    def total(self) -> float:
        return float(self.rows[0]["total"])

    @property
    def prior(self) -> tuple[float, float]:
        """The score of deciding at once on validation and on test rows."""
        validation, test = (
            float(np.mean([score_of(row, cases, "at_once") for row in self.rows])) for cases in ("validation", "test")
        )
        return validation, test

    @cached_property
    def curve(self) -> Curve:
        """Through the points that validation chooses."""
        return curve(self.points("validation"), self.points("test"), self.prior, self.total)

    @property
    def draws(self) -> list[float] | None:
        """The area on each draw of the test rows; None where rows do not have them."""
        if not all("resampled_scores" in row for row in self.rows):
            return None
        costs, scores = (np.array([row[name] for row in self.rows]).T for name in ("resampled_costs", "resampled_scores"))
        chosen_on = self.points("validation")
        return [curve(chosen_on, pair, self.prior, self.total).area for pair in zip(costs, scores, strict=True)]


def by_seed(rows: Sequence[Row]) -> dict[int, list[Row]]:
    seeds = sorted({row["task"]["seed"] for row in rows})
    return {seed: [row for row in rows if row["task"]["seed"] == seed] for seed in seeds}


def areas(rows: Sequence[Row]) -> Quantity:
    """The area for each seed, of whole frontiers or of single policies."""
    groups = by_seed(rows)
    if rows and rows[0]["task"]["budget"] is None:
        return Quantity({s: of[0]["area"] for s, of in groups.items()}, {s: of[0]["resampled"] for s, of in groups.items()})
    pools = {seed: Pool(tuple(of)) for seed, of in groups.items()}
    draws = {seed: drawn for seed, pool in pools.items() if (drawn := pool.draws) is not None}
    return Quantity({seed: pool.curve.area for seed, pool in pools.items()}, draws)


def rewards(rows: Sequence[Row]) -> Quantity:
    """What trainings for a tradeoff are for: the score less the scaled tradeoff times the cost, on test rows."""

    def reward(row: Row, cost: Any, scores: Any) -> Any:
        return np.asarray(scores) - row["task"]["budget"]["tradeoff"] / row["loss_scale"] * np.asarray(cost)

    groups = by_seed(rows)
    by = {s: float(np.mean([reward(r, means(r, "test")[COST], score_of(r, "test")) for r in of])) for s, of in groups.items()}
    drawn_of = {
        s: np.mean([reward(r, r["resampled_costs"], r["resampled_scores"]) for r in of], 0).tolist()
        for s, of in groups.items()
        if all("resampled_scores" in r for r in of)
    }
    return Quantity(by, drawn_of)


def drawn(rows: Sequence[Row]) -> Any:
    """The curve: costs and scores; of single policies with all seeds pooled, as in the paper."""
    if rows[0]["task"]["budget"] is None:
        return mean_curve(Entry(rows[0]["task"]["data"], "", tuple(rows)))
    whole = Pool(tuple(rows)).curve
    return whole.cost, whole.score
