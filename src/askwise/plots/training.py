"""How a training went, over its gradient steps."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from askwise.core.budget import Budget
from askwise.plots.canvas import BLUE, INK, RED, SOFT, empty, legend, limit_of, money, tidy
from askwise.plots.models import model_of, records_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

BOLD: dict[str, Any] = {"color": BLUE, "linewidth": 1.2, "zorder": 3}
THIN: dict[str, Any] = {"color": SOFT, "linewidth": 0.8, "linestyle": ":", "zorder": 2}


def progress(
    records: Any,
    budget: Budget | None = None,
    *,
    unit: str = "",
    score: Literal["accuracy", "loss"] = "accuracy",
    chosen: Sequence[int] = (),
) -> Figure:
    """Lambda, cost and score over the gradient steps of a run, like the paper's figure of the learning progress.

    The budget is a dashed line. A record of step 0 is deciding at once: a line to compare the score with. `chosen` are indices
    of records to mark, those that the policy follows in the end. Instead of records, a model or a fitted classifier tells what it
    keeps of its training; of a family that is `areas`.
    """
    model = model_of(records)
    if model is not None:
        if model.facts.get("areas") is not None:
            return areas(model.facts["areas"])
        records, budget, unit = records_of(model), budget or model.budget, unit or model.unit
    figure = empty(7, 6.5)
    tradeoff, cost, quality = figure.subplots(3, 1, sharex=True)
    learned = [r for r in records if r.step > 0]
    mark = "." if len(learned) < 40 else ""
    tradeoff.plot([r.step for r in learned], [r.lam for r in learned], color=BLUE, linewidth=1.2, marker=mark, label="λ")
    tradeoff.set_ylabel("tradeoff λ\n(loss per unit of cost)")
    marked = [records[i] for i in chosen if records[i].step > 0]
    _draw_figure(cost, learned, "cost", marked, ("train", "validation"), mark)
    _draw_figure(quality, learned, score, marked, ("validation", "train"), mark)
    kind, limit = limit_of(budget)
    if limit is not None:
        cost.axhline(limit, color=INK, linestyle="--", linewidth=1, label=f"{kind} budget {limit:g}")
    for record in [r for r in records if r.step == 0][:1]:
        quality.axhline(getattr(record.validation, score), color=INK, linestyle="-.", linewidth=1, label="deciding at once")
    cost.set_ylabel(money("mean cost", unit), parse_math=False)
    cost.set_ylim(bottom=0)
    quality.set_ylabel(score)
    quality.set_xlabel("gradient steps")
    for axes in (tradeoff, cost, quality):
        tidy(axes)
    for axes in (cost, quality):
        legend(axes, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0.2)
    return figure


def _draw_figure(axes: Axes, records: Any, name: str, marked: Any, parts: tuple[str, str], mark: str) -> None:
    """One figure of the measurements, on training and on validation cases, the first of which that was measured stands out; the
    records to mark on validation cases."""
    words = {"train": "training cases", "validation": "validation cases"}
    styles = [BOLD, THIN]
    for part in parts:
        values = [getattr(getattr(r, part), name, np.nan) for r in records]  # a family is not measured on training cases
        if values and np.isnan(values).all():  # a model does not keep all
            continue
        axes.plot([r.step for r in records], values, marker=mark, label=words[part], **styles.pop(0))
    if marked:
        x, y = [r.step for r in marked], [getattr(r.validation, name) for r in marked]
        axes.plot(x, y, color=RED, marker="v", markersize=8, markeredgecolor="white", linestyle="", zorder=4, label="chosen")


def areas(steps_and_areas: Iterable[tuple[int, float]]) -> Figure:
    """The area under the validation frontier of a family, which learns all tradeoffs at once, over the gradient steps."""
    steps, values = np.array([*steps_and_areas], float).reshape(-1, 2).T
    figure = empty(7, 4)
    axes = figure.add_subplot()
    tidy(axes)
    axes.plot(steps, values, color=BLUE, linewidth=1.2, marker=".")
    axes.set_xlabel("gradient steps")
    axes.set_ylabel("area under the frontier,\nvalidation cases")
    return figure
