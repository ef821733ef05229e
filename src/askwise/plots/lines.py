"""Curves: what money buys, and how training went."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from askwise.core.arrays import Doubles
from askwise.core.budget import Budget
from askwise.errors import InputError
from askwise.plots.canvas import BLUE, COLOURS, FAINT, INK, RED, SOFT, empty, legend, money, tidy
from askwise.plots.models import curve, frontier_parts, model_of, records_of, works_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def frontier(
    points_validation: Any,
    points_test: Any = None,
    chosen: ArrayLike | None = None,
    *,
    prior: float | None = None,
    everything: tuple[float, float | None] | None = None,
    budget: Budget | None = None,
    unit: str = "",
    score: str = "accuracy",
    best: tuple[float, float] | None = None,
    errors: ArrayLike | None = None,
    cases: int | None = None,
) -> Figure:
    """The plane of cost and score: all snapshots, the chosen ones joined, and what they must be compared with.

    The points are (costs, scores) of the same snapshots on validation and on test cases (None if there are none), `chosen` the
    indices of those that validation selects. The rest is measured on test cases: `prior` is the score of deciding at once,
    `everything` the cost of all tests and the score with them (None if it was not measured),
    `best` the cost and score of the policy for `budget`; `errors` the standard errors of the scores of all points, measured on so
    many `cases`.

    `frontier(model)` draws what a model, or a fitted classifier, says of itself; `frontier(model, problem)` with test points.
    """
    model = model_of(points_validation)
    if model is not None:
        return frontier(**frontier_parts(model, points_test))
    for name, given in (("chosen", chosen), ("prior", prior), ("everything", everything)):
        if given is None:
            raise InputError(f"{name} is missing; give it beside the points, or give a model or a fitted classifier alone")
    assert chosen is not None
    assert prior is not None
    assert everything is not None
    shown = points_validation if points_test is None else points_test
    (vc, vs), (tc, ts) = (tuple(np.asarray(v, float) for v in pair) for pair in (points_validation, shown))
    if not (len(vc) == len(vs) == len(tc) == len(ts)):
        raise InputError(f"there are {len(vc)} points on validation and {len(tc)} on test; they must be the same points")
    picked = np.asarray(chosen, np.int64)
    picked = picked[np.argsort(tc[picked], kind="stable")]
    total, full = everything
    star = [] if best is None else [best]
    figure = empty(7, 5)
    axes = figure.add_subplot()
    tidy(axes)
    right = _cost_axis(axes, np.r_[vc, tc, [cost for cost, _ in star]], total)
    matter = [prior, *ts[picked].tolist(), *(s for _, s in star), *(s for s in (full,) if s is not None)]
    low = _score_axis(axes, np.r_[vs, ts], matter)

    looks: dict[str, dict[str, Any]] = {
        "validation": {"marker": "x", "color": FAINT, "linewidths": 0.8},
        "test": {"marker": "o", "color": SOFT, "linewidths": 0, "alpha": 0.5},
    }
    drawn = [("validation", vc, vs)] if points_test is None else [("validation", vc, vs), ("test", tc, ts)]
    for of, x, y in drawn:
        below = int((y < low).sum())
        words = f"all snapshots, {of} cases" + (f" ({below} lie below)" if below else "")
        axes.scatter(x, y, s=13, label=words, **looks[of])
    if len(picked):
        # as in `askwise.frontier.metric.curve`: from deciding at once, which can be mixed in, to where more money buys no more
        x, y = np.r_[0, tc[picked], total], np.r_[prior, ts[picked], ts[picked[vs[picked].argmax()]]]
        axes.plot(x, y, color=BLUE, linestyle=":", linewidth=1.2, label="_ends")
        axes.plot(
            x[1:-1],
            y[1:-1],
            color=BLUE,
            marker="o",
            markersize=5,
            label="chosen on validation" + (", test cases" if points_test is not None else " cases"),
        )
    if errors is not None:
        off = np.asarray(errors, float)[picked]
        axes.errorbar(
            tc[picked],
            ts[picked],
            off,
            fmt="none",
            ecolor=BLUE,
            elinewidth=0.8,
            capsize=2,
            label="one standard error" + ("" if cases is None else f", {cases} cases"),
        )
    axes.axhline(prior, color=INK, linewidth=1, linestyle="-.", label=f"deciding at once: {prior:.3f}")
    amount = f"{total:,.10g} {unit}".strip()
    if full is None:
        axes.axvline(total, color=INK, linewidth=1, linestyle="--", label=f"all tests cost {amount}")
    else:
        seen = total <= right
        axes.axhline(full, color=SOFT, linewidth=0.8, linestyle="--", label="_all tests")
        axes.plot(
            total,
            full,
            color=INK,
            marker="D" if seen else "",
            linestyle="--",
            linewidth=0.8,
            label=f"all tests: {full:.3f} for {amount}" + ("" if seen else ", right of the picture"),
        )
    _, limit = _limit(budget)
    if limit is not None and limit <= right:
        axes.axvline(limit, color=RED, linewidth=1, linestyle=(0, (1, 2)), label="_budget")
    for cost, value in star:
        axes.plot(
            cost,
            value,
            color=RED,
            marker="*",
            markersize=15,
            markeredgecolor="white",
            linestyle="",
            zorder=5,
            label=f"{budget or 'chosen policy'}: {value:.3f} for {cost:,.4g} {unit}".strip(),
        )
    axes.set_xlabel(money("mean cost per case", unit), parse_math=False)
    axes.set_ylabel(score, parse_math=False)
    legend(figure, loc="outside lower center", ncols=2)
    return figure


MARKS = ".s^Dvx*"
DASHES = ("-", "--", ":", "-.")


def look(i: int) -> dict[str, Any]:
    """How the i-th of several curves looks: no two have both colour and dashes in common, and neighbours differ in all."""
    return {
        "color": COLOURS[i % len(COLOURS)],
        "marker": MARKS[i % len(MARKS)],
        "linestyle": DASHES[i // len(COLOURS) % len(DASHES)],
    }


def frontiers(
    curves: Mapping[str, Any],
    total: float | None = None,
    *,
    title: str = "",
    unit: str = "",
    score: str = "score",
    looks: Mapping[str, int] | None = None,
) -> Figure:
    """Several frontiers in one plane, by name: (costs, scores), models or fitted classifiers. `total` is the cost of all tests;
    models know it. `looks` numbers the names, so that one that is in several pictures looks the same in all of them."""
    models = [model for model in map(model_of, curves.values()) if model is not None]
    if total is None and len(models) < len(curves):
        raise InputError("total is missing; give the cost of all tests")
    total = max(float(m.schema.costs.money(m.schema.costs.total)) for m in models) if total is None else total
    figure = empty(7, 5)
    axes = figure.add_subplot()
    tidy(axes)
    for i, (name, given) in enumerate(curves.items()):
        model = model_of(given)
        cost, value = given if model is None else curve(model)
        style = look(i if looks is None else looks[name])
        axes.plot(cost, value, markersize=4, linewidth=1.2, label=name, **style)
    if total > 60:  # most of what happens, happens early
        axes.set_xscale("symlog", linthresh=total / 100)
    axes.set_xlim(0, total)
    axes.set_xlabel(money("mean cost per case", unit), parse_math=False)
    axes.set_ylabel(score, parse_math=False)
    axes.set_title(title, parse_math=False)
    legend(figure, loc="outside lower center", ncols=3)
    return figure


def targets(
    points: Mapping[str, Any], wanted: Sequence[float], *, title: str = "", unit: str = "", score: str = "score"
) -> Figure:
    """Single policies in the plane of cost and score, by name, and as dashed lines the costs that were wanted. A model, or a
    fitted classifier, stands where its budget is expected to come to."""
    figure = empty(7, 5)
    axes = figure.add_subplot()
    tidy(axes)
    for b in wanted:
        axes.axvline(b, color=FAINT, linewidth=0.8, linestyle="--")
    for i, (name, given) in enumerate(points.items()):
        model = model_of(given)
        cost, value = given if model is None else works_at(model)
        style = look(i)
        axes.plot(
            cost,
            value,
            color=style["color"],
            marker=style["marker"],
            linestyle="",
            markersize=6,
            label=name,
            fillstyle="none" if i >= len(COLOURS) else "full",
        )
    axes.set_xlabel(money("mean cost per case", unit), parse_math=False)
    axes.set_ylabel(score, parse_math=False)
    axes.set_title(title, parse_math=False)
    legend(figure, loc="outside lower center", ncols=3)
    return figure


def _limit(budget: Budget | None) -> tuple[str, float | None]:
    """What cases may cost on average or, where that is not said, at most."""
    for kind in ("average", "hard"):
        amount = getattr(budget, kind, None)
        if amount is not None:
            return kind, float(amount)
    return "no", None


def _cost_axis(axes: Axes, costs: Doubles, total: float) -> float:
    """Limits the axis and returns its right end: all of it, unless what is drawn would be squeezed into its first third."""
    dearest = float(costs.max(initial=0.0))
    right = 1.15 * dearest if 0 < 3 * dearest < total else (1.05 * max(total, dearest) or 1.0)
    axes.set_xlim(-0.02 * right, right)
    return right


def _score_axis(axes: Axes, scores: Doubles, matter: list[float]) -> float:
    """Limits the axis and returns its lower end: around what matters, and down to other snapshots that are not far below."""
    low, high = min(matter), max([*matter, *scores.tolist()])
    low = float(min([low, *scores[scores >= low - 0.5 * (high - low)]]))
    pad = 0.05 * (high - low) or 0.05
    axes.set_ylim(low - pad, high + pad)
    return low - pad


def _areas(records: Sequence[Any]) -> Figure:
    figure = empty(7, 4)
    axes = figure.add_subplot()
    tidy(axes)
    axes.plot([r.step for r in records], [r.area for r in records], color=BLUE, linewidth=1.2, marker=".")
    axes.set_xlabel("gradient steps")
    axes.set_ylabel("area under the frontier,\nvalidation cases")
    return figure


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
    of records to mark, those that the policy follows in the end. Of a family, which learns all prices at once, the area under its
    validation frontier is shown. Instead of records, a model or a fitted classifier tells what it keeps of its training.
    """
    model = model_of(records)
    if model is not None:
        records, budget, unit = records_of(model), budget or model.budget, unit or model.unit
    if any(hasattr(r, "area") for r in records):
        return _areas(records)
    learned = [r for r in records if r.step > 0]
    marked = [records[i] for i in chosen if records[i].step > 0]
    step = [r.step for r in learned]
    few = "." if len(learned) < 40 else ""
    figure = empty(7, 6.5)
    price, cost, quality = figure.subplots(3, 1, sharex=True)

    price.plot(step, [r.lam for r in learned], color=BLUE, linewidth=1.2, marker=few, label="λ")
    price.set_ylabel("price λ\n(loss per unit of cost)")
    words = {"train": "training cases", "validation": "validation cases"}
    for axes, name, bold, thin in ((cost, "cost", "train", "validation"), (quality, score, "validation", "train")):
        for part, look in (
            (bold, {"color": BLUE, "linewidth": 1.2}),
            (thin, {"color": SOFT, "linewidth": 0.8, "linestyle": ":"}),
        ):
            values = [getattr(getattr(r, part), name) for r in learned]
            if values and np.isnan(values).all():  # a model does not keep all
                continue
            axes.plot(step, values, marker=few, label=words[part], zorder=2 + (part == bold), **look)
        if marked:
            axes.plot(
                [r.step for r in marked],
                [getattr(r.validation, name) for r in marked],
                color=RED,
                marker="v",
                linestyle="",
                markersize=8,
                markeredgecolor="white",
                zorder=4,
                label="chosen",
            )
    kind, limit = _limit(budget)
    if limit is not None:
        cost.axhline(limit, color=INK, linestyle="--", linewidth=1, label=f"{kind} budget {limit:g}")
    for record in [r for r in records if r.step == 0][:1]:
        quality.axhline(getattr(record.validation, score), color=INK, linestyle="-.", linewidth=1, label="deciding at once")
    cost.set_ylabel(money("mean cost", unit), parse_math=False)
    cost.set_ylim(bottom=0)
    quality.set_ylabel(score)
    quality.set_xlabel("gradient steps")
    for axes in (price, cost, quality):
        tidy(axes)
    for axes in (cost, quality):
        legend(axes, loc="lower left", bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0.2)
    return figure
