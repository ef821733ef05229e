"""The figures as pictures, from rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from askwise import plots
from askwise.bench.rows import Row
from askwise.plots.canvas import empty, legend, tidy
from askwise.plots.cost_score import look
from benchmarks.paper.claims import SMALL
from benchmarks.paper.claims_of_training import FILLINGS, SHARES, averaged, course_of, course_sweeps, missing
from benchmarks.paper.evidence import IMAGES, UNIT, Evidence, percent
from benchmarks.paper.pooled import Pool, drawn, score_of

SCORE = "score, test rows"
Draw = Callable[[], Any]


def pictures(evidence: Evidence) -> dict[str, Draw]:
    """By file name, what draws it; only those for which there are rows. A name begins with the number of the figure."""
    every: dict[str, Draw | None] = {"figure4_miniboone_tiny": scatter(evidence, "miniboone_tiny")}
    every |= {f"figure5_{data}": tradeoffs(evidence, data) for data in UNIT}
    every |= {f"figure6_{data}": targets(evidence, data) for data in SMALL}
    every["figure7_miniboone_tiny"] = settling(evidence)
    every["figure8_miniboone_tiny"] = overfitting(evidence)
    every |= {f"figure9_{data}": hard(evidence, data) for data in SMALL}
    every |= {f"figure10_{data}": gaps(evidence, data) for data in ("miniboone_tiny", "forest")}
    every |= {f"progress_{data}": progress(evidence, data) for data in IMAGES}
    return {name: draw for name, draw in every.items() if draw is not None}


def of_tradeoffs(evidence: Evidence, data: str) -> tuple[Row, ...]:
    return evidence.sweep("images" if data in IMAGES else "tradeoffs", data, "tradeoff").rows


def scatter(evidence: Evidence, data: str) -> Draw | None:
    rows = of_tradeoffs(evidence, data)
    if not rows:
        return None
    pool = Pool(rows)
    points = pool.points("validation"), pool.points("test"), pool.curve.chosen
    return partial(plots.frontier, *points, prior=pool.prior[1], everything=(pool.total, None))


def curves(of: dict[str, Sequence[Row]], title: str) -> Draw | None:
    """Several methods in one plane."""
    lines = {name: drawn(rows) for name, rows in of.items() if rows}
    total = next((rows[0]["total"] for rows in of.values() if rows), None)
    return partial(plots.frontiers, lines, total, title=title, score=SCORE) if lines else None


def tradeoffs(evidence: Evidence, data: str) -> Draw | None:
    others = {label: evidence.other(data, label) for label in ("baseline", "adapt-gbrt", "budget-prune", "random")}
    return curves({"rl": of_tradeoffs(evidence, data), **others}, data)


def hard(evidence: Evidence, data: str) -> Draw | None:
    return curves(
        {
            "rl-hard": evidence.sweep("hard", data, "hard").rows,
            "oplearn": evidence.other(data, "oplearn"),
            "baseline": evidence.other(data, "baseline"),
            "rl-lambda": of_tradeoffs(evidence, data),
        },
        data,
    )


def targets(evidence: Evidence, data: str) -> Draw | None:
    """The best single network of each training."""
    rows = evidence.sweep("targets", data, "average").rows
    budgets = sorted({row["task"]["budget"]["average"] for row in rows})
    marks = {}
    for b in budgets:
        here = [row for row in rows if row["task"]["budget"]["average"] == b]
        marks[f"b = {b:g}"] = [row["cost"] for row in here], [score_of(row, "test") for row in here]
    return partial(plots.targets, marks, budgets, title=data, score=SCORE) if rows else None


def panels(lines: Sequence[tuple[str, np.ndarray, np.ndarray]], names: Sequence[str], b: float | None = None) -> Any:
    """Columns over the steps, one below the other; several trainings in each. `b`: a budget, in the panel of the cost."""
    figure = empty(7, 1.9 * len(names))
    axes = figure.subplots(len(names), 1, sharex=True)
    for i, (label, step, columns) in enumerate(lines):
        for axis, values in zip(axes, columns, strict=True):
            dashes = "--" if i % 2 else "-"
            name = label if axis is axes[0] else "_again"
            axis.plot(step, values, color=look(i)["color"], linestyle=dashes, linewidth=1.1, label=name)
    for axis, name in zip(axes, names, strict=True):
        tidy(axis)
        axis.set_ylabel(name, fontsize=8)
        if b is not None and name.startswith("cost"):
            axis.axhline(b, color="black", linestyle=":", linewidth=1)
    axes[-1].set_xlabel("gradient steps")
    if len(lines) > 1:
        legend(figure, loc="outside lower center", ncols=4)
    return figure


def settling(evidence: Evidence) -> Draw | None:
    """Figure 7: one training for b = 10."""
    rows = evidence.sweep("targets", "miniboone_tiny", "average", amounts=[10]).rows
    if not rows:
        return None
    course = course_of(min(rows, key=lambda row: row["task"]["seed"]))
    names = ("lambda", "cost, training rows", "accuracy, validation")
    return partial(panels, [("b = 10", course[:, 0], course[:, [1, 2, 5]].T)], names, 10)


def overfitting(evidence: Evidence) -> Draw | None:
    """Figure 8: means over seeds."""
    free, bound, _ = course_sweeps(evidence)
    named = (("tradeoff 0", free), (f"b = {bound.planned[0].task.budget['average']:g}", bound))
    lines = [(name, *averaged(sweep.rows)) for name, sweep in named if sweep.rows]
    short = [(name, step, columns[[1, 4]]) for name, step, columns in lines]
    return partial(panels, short, ("cost, training rows", "accuracy, validation")) if short else None


def progress(evidence: Evidence, data: str) -> Draw | None:
    """Where trainings that are far shorter than the paper's were going."""
    rows = of_tradeoffs(evidence, data)
    lines = []
    for row in sorted(rows, key=lambda row: -row["task"]["budget"]["tradeoff"]):
        course = course_of(row)
        lines.append((f"tradeoff {row['task']['budget']['tradeoff']:g}", course[:, 0], course[:, [3, 5]].T))
    return partial(panels, lines, ("cost, validation rows", "accuracy, validation")) if lines else None


def gaps(evidence: Evidence, data: str) -> Draw | None:
    """Figure 10: a panel for each share."""
    full = missing(evidence, data, "mdp", 0.0).rows
    shares = [share for share in SHARES if missing(evidence, data, "mdp", share).planned]
    of = {share: {filling: missing(evidence, data, filling, share).rows for filling in FILLINGS} for share in shares}
    if not any(rows for fillings in of.values() for rows in fillings.values()):
        return None
    return partial(draw_gaps, {share: {**fillings, "full": full} for share, fillings in of.items()})


def draw_gaps(of: dict[float, dict[str, Sequence[Row]]]) -> Any:
    wide = min(len(of), 2)
    high = -(-len(of) // wide)
    figure = empty(4 * wide, 0.5 + 3 * high)
    grid = figure.subplots(high, wide, sharex=True, sharey=True, squeeze=False)
    named: set[str] = set()
    for axis, (share, fillings) in zip(grid.flat, of.items(), strict=True):
        tidy(axis)
        axis.set_title(f"{percent(share)} removed", fontsize=9)
        for j, (name, rows) in enumerate(fillings.items()):
            if rows:
                axis.plot(*drawn(rows), markersize=4, linewidth=1.1, label="_again" if name in named else name, **look(j))
                named.add(name)
    for axis in grid[-1]:
        axis.set_xlabel("mean cost per case")
    for axis in grid[:, 0]:
        axis.set_ylabel(SCORE)
    legend(figure, loc="outside lower center", ncols=4)
    return figure
