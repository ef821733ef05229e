"""From rows to the paper's metric, also where each row is a policy of its own: for a tradeoff, a target or a hard budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.bench.entries import Entry, mean_curve
from askwise.bench.metrics import score
from askwise.bench.rows import Row
from askwise.bench.tables import spread
from askwise.frontier.metric import Curve, area_over_seeds, curve, step_area

Points = tuple[np.ndarray, np.ndarray]  # costs, scores


@dataclass(frozen=True)
class Pool:
    """The policies of one method on one data set, of all budgets and all seeds, as points of the plane."""

    rows: tuple[Row, ...]

    def points(self, cases: str) -> Points:
        """On validation or on test cases."""
        cost, loss = (np.array([row[cases][0][row["columns"].index(name)] for row in self.rows]) for name in ("cost", "loss"))
        return cost, score(loss, np.array([row["loss_scale"] for row in self.rows]))

    @property
    def total(self) -> float:
        return float(self.rows[0]["total"])

    @property
    def prior(self) -> tuple[float, float] | None:
        """The score of deciding at once on validation and on test cases: that of the policies that buy nothing. None if none is
        such a policy."""
        (vc, vs), (tc, ts) = self.points("validation"), self.points("test")
        nothing = (vc == 0) & (tc == 0)
        return (float(vs[nothing].mean()), float(ts[nothing].mean())) if nothing.any() else None

    @property
    def curve(self) -> Curve | None:
        """Through the points that validation chooses, all seeds pooled, as in the paper."""
        return None if self.prior is None else curve(self.points("validation"), self.points("test"), self.prior, self.total)

    @property
    def area(self) -> str:
        """Of all seeds pooled; with several seeds, the deviation of the areas of each alone."""
        if self.prior is None:
            return ""
        seeds = [row["task"]["seed"] for row in self.rows]
        result = area_over_seeds(seeds, self.points("validation"), self.points("test"), self.prior, self.total)
        return f"{result.pooled:.4f}" + (f" ± {result.deviation:.4f}" if len(result.per_seed) > 1 else "")

    @property
    def steps(self) -> str:
        """For hard budgets: the area under the steps over the budget, mean and deviation over seeds."""
        if self.prior is None:
            return ""
        areas = []
        for seed in sorted({row["task"]["seed"] for row in self.rows}):
            pool = Pool(tuple(row for row in self.rows if row["task"]["seed"] == seed))
            budgets = [row["task"]["budget"]["hard"] for row in pool.rows]
            areas.append(step_area(budgets, pool.points("validation")[1], pool.points("test")[1], self.prior, self.total))
        return spread(areas, 4)


def area(rows: Sequence[Row]) -> str:
    """The metric of a method on a data set, whether its rows are whole frontiers or single policies."""
    if not rows:
        return ""
    if rows[0]["task"]["budget"] is None:
        return spread([row["area"] for row in rows], 4)
    return Pool(tuple(rows)).area


def drawn(rows: Sequence[Row]) -> Any:
    """The same as a curve: costs and scores."""
    if rows[0]["task"]["budget"] is None:
        return mean_curve(Entry(rows[0]["task"]["data"], "", tuple(rows)))
    result = Pool(tuple(rows)).curve
    return None if result is None else (result.cost, result.score)
