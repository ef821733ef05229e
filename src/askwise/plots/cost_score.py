"""Curves and points in the plane of cost and score: what money buys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from askwise.core.arrays import Doubles, Ints
from askwise.core.budget import Budget
from askwise.errors import InputError
from askwise.frontier.hull import staircase
from askwise.plots.canvas import BLUE, COLOURS, FAINT, INK, ORANGE, RED, SOFT, empty, legend, limit_of, money, tidy
from askwise.plots.models import Again, curve, frontier_parts, model_of, works_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MARKS = ".s^Dvx*"
STEEP = 0.85  # of the whole gain: what is above is drawn once more, if it is bought early
CORNER = (0.42, 0.12, 0.56, 0.55)  # left, bottom, width and height of that, as shares of the picture
DASHES = ("-", "--", ":", "-.")


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
    others: Mapping[str, Any] | None = None,
    again: Again | None = None,
) -> Figure:
    """The plane of cost and score: all snapshots, the chosen ones joined, and what they must be compared with.

    The points are (costs, scores) of the same snapshots on validation and on test cases (None if there are none), `chosen` the
    indices of those that validation selects. The rest is measured on test cases: `prior` is the score of deciding at once,
    `everything` the cost of all tests and the score with them (None if it was not measured),
    `best` the cost and score of the policy for `budget`; `errors` the standard errors of the scores of all points, measured on so
    many `cases`, which make a band. `others` are (costs, scores) of other policies, by their kind; the line through the first
    kind joins the best of it. `again` is what the chosen ones come to on other cases.

    `frontier(model)` draws what a model, or a fitted classifier, says of itself; `frontier(model, problem)` also what it comes to
    on the cases of the problem.
    """
    model = model_of(points_validation)
    if model is not None:
        return frontier(**frontier_parts(model, points_test))
    if chosen is None or prior is None or everything is None:
        name = "chosen" if chosen is None else "prior" if prior is None else "everything"
        raise InputError(f"{name} is missing; give it beside the points, or give a model or a fitted classifier alone")
    snapshots, (total, full) = _Snapshots.of(points_validation, points_test, chosen), everything
    compared = {name: tuple(np.asarray(v, float) for v in points) for name, points in (others or {}).items()}
    figure, axes = _plane(score, unit)
    far = np.concatenate(
        [snapshots.validation_cost, snapshots.cost, *(x for x, _ in compared.values()), [best[0]] if best else []]
    )
    right = _cost_axis(axes, far, total)
    matter = [prior, *snapshots.score[snapshots.chosen].tolist(), *([best[1]] if best else []), *([] if full is None else [full])]
    matter += [] if again is None else again.score.tolist()
    if errors is not None:  # the band too
        matter += (snapshots.score + np.asarray(errors, float))[snapshots.chosen].tolist()
    low = _score_axis(axes, np.r_[snapshots.validation_score, snapshots.score], matter)

    def draw(axes: Axes) -> None:
        _draw_chosen(axes, snapshots, prior, total, cases)
        if errors is not None:
            _draw_band(axes, snapshots, np.asarray(errors, float))
        _draw_snapshots(axes, snapshots, low)
        _draw_others(axes, compared, low)
        if again is not None:
            _draw_again(axes, again)
        axes.axhline(prior, color=INK, linewidth=1, linestyle="-.", label=f"deciding at once: {prior:.3f}")
        _draw_everything(axes, total, full, f"{round(total, 2):,.10g} {unit}".strip(), total <= right)
        _, limit = limit_of(budget)
        if limit is not None and limit <= right:
            axes.axvline(limit, color=RED, linewidth=1, linestyle=(0, (1, 2)), label="_budget")
        if best is not None:
            words = f"{budget or 'chosen policy'}: {best[1]:.3f} for {best[0]:,.4g} {unit}".strip()
            axes.plot(*best, color=RED, marker="*", markersize=15, markeredgecolor="white", linestyle="", zorder=5, label=words)

    draw(axes)
    points = [(snapshots.validation_cost, snapshots.validation_score), (snapshots.cost, snapshots.score), *compared.values()]
    points += [] if again is None else [(again.cost, again.score - again.error)]
    enlarged = _enlarged(axes, snapshots, prior, points)
    if enlarged is not None:
        draw(enlarged)
    legend(figure, loc="outside lower center", ncols=2)
    return figure


def _enlarged(axes: Axes, snapshots: _Snapshots, prior: float, points: list[tuple[Any, ...]]) -> Axes | None:
    """Where a little money buys most of the score, what more of it buys is a line at the upper edge: room to draw that edge once
    more, in the corner below. None where it would say nothing or hide something."""
    x, y = np.r_[0, snapshots.cost[snapshots.chosen]], np.r_[prior, snapshots.score[snapshots.chosen]]
    high, (left, right), (bottom, top) = float(y.max()), axes.get_xlim(), axes.get_ylim()
    above = y >= prior + STEEP * (high - prior)
    across, up, _, tall = CORNER
    if not high > prior or above.sum() < 3 or x[above][0] > left + across * (right - left):
        return None
    edge = left + (across - 0.1) * (right - left), bottom + (up + tall + 0.02) * (top - bottom)  # of the corner, axis included
    if any(((px > edge[0]) & (py < edge[1]) & (py > bottom)).any() for px, py in points):
        return None
    room = axes.inset_axes(CORNER)
    tidy(room)
    floor = float(y[above].min())
    room.set_xlim(0.9 * x[above][0], right)
    room.set_ylim(floor - 0.8 * (high - floor), min(top, high + 0.8 * (high - floor)))
    room.set_title("the upper end, enlarged", fontsize=8, color=SOFT)
    room.tick_params(labelsize=7)
    return room


@dataclass(frozen=True, eq=False)
class _Snapshots:
    """The same snapshots on validation cases and, unless there are none, on test cases."""

    validation_cost: Doubles
    validation_score: Doubles
    cost: Doubles  # on test cases, or once more on validation cases
    score: Doubles
    on_test: bool
    chosen: Ints  # by rising cost

    @classmethod
    def of(cls, validation: Any, test: Any, chosen: ArrayLike) -> _Snapshots:
        shown = validation if test is None else test
        (vc, vs), (tc, ts) = (tuple(np.asarray(v, float) for v in pair) for pair in (validation, shown))
        if not (len(vc) == len(vs) == len(tc) == len(ts)):
            raise InputError(f"there are {len(vc)} points on validation and {len(tc)} on test; they must be the same points")
        picked = np.asarray(chosen, np.int64)
        return cls(vc, vs, tc, ts, test is not None, picked[np.argsort(tc[picked], kind="stable")])


def _draw_snapshots(axes: Axes, snapshots: _Snapshots, low: float) -> None:
    """All of them, faintly; how many lie below the picture. Nothing where all were chosen and are drawn anyway."""
    if len(snapshots.chosen) == len(snapshots.cost) and not snapshots.on_test:
        return

    def scatter(of: str, x: Doubles, y: Doubles, **style: Any) -> None:
        below = int((y < low).sum())
        words = f"all snapshots, {of} cases" + (f" ({below} lie below)" if below else "")
        axes.scatter(x, y, s=13, label=words, **style)

    scatter("validation", snapshots.validation_cost, snapshots.validation_score, marker="x", color=FAINT, linewidths=0.8)
    if snapshots.on_test:
        scatter("test", snapshots.cost, snapshots.score, marker="o", color=SOFT, linewidths=0, alpha=0.5)


def _draw_others(axes: Axes, others: Mapping[str, Any], low: float) -> None:
    """Other policies that were measured, by their kind; through the first kind, which is the plainest, goes a line."""
    for i, (name, (x, y)) in enumerate(others.items()):
        below = int((y < low).sum())
        words = name + (f" ({below} lie below)" if below else "")
        if i == 0:
            on = staircase(x, y)
            axes.plot(x[on], y[on], color=ORANGE, linewidth=1.4, linestyle="--", label="_others")
            axes.scatter(x, y, s=16, marker="s", facecolor="white", edgecolor=ORANGE, linewidths=1.1, zorder=2.5, label=words)
        else:
            axes.scatter(x, y, s=16, marker="+x^v"[(i - 1) % 4], color=SOFT, linewidths=0.7, alpha=0.8, label=words)


def _draw_again(axes: Axes, again: Again) -> None:
    """What the chosen ones come to on other cases."""
    style: dict[str, Any] = {"color": SOFT, "linewidth": 0.9, "linestyle": "--", "marker": "o", "markersize": 3, "capsize": 2}
    words = f"the same policies on {again.cases:,} test cases"
    axes.errorbar(again.cost, again.score, again.error, elinewidth=0.6, label=words, **style)


def _draw_chosen(axes: Axes, snapshots: _Snapshots, prior: float, total: float, cases: int | None) -> None:
    """As in `askwise.frontier.metric.curve`: from deciding at once, which can be mixed in, to where more money buys no more."""
    picked = snapshots.chosen
    if not len(picked):
        return
    last = snapshots.score[picked[snapshots.validation_score[picked].argmax()]]
    x, y = np.r_[0, snapshots.cost[picked], total], np.r_[prior, snapshots.score[picked], last]
    axes.plot(x, y, color=BLUE, linestyle=":", linewidth=1.2, label="_ends")
    words = "chosen on validation, test cases" if snapshots.on_test else "the best of all policies"
    words += "" if cases is None else f", {cases:,} held-out cases"
    axes.plot(x[1:-1], y[1:-1], color=BLUE, linewidth=2, marker="o", markersize=4.5, zorder=4, label=words)


def _draw_band(axes: Axes, snapshots: _Snapshots, errors: Doubles) -> None:
    """One standard error to either side of the chosen ones."""
    x, y, spread = (values[snapshots.chosen] for values in (snapshots.cost, snapshots.score, errors))
    axes.fill_between(x, y - spread, y + spread, color=BLUE, alpha=0.16, linewidth=0, label="± one standard error")


def _draw_everything(axes: Axes, total: float, full: float | None, amount: str, inside: bool) -> None:
    """What all tests cost, and the score with them if that was measured."""
    if full is None:
        axes.axvline(total, color=INK, linewidth=1, linestyle="--", label=f"all tests cost {amount}")
        return
    axes.axhline(full, color=SOFT, linewidth=0.8, linestyle="--", label="_all tests")
    words = f"all tests: {full:.3f} for {amount}" + ("" if inside else ", right of the picture")
    axes.plot(total, full, color=INK, marker="D" if inside else "", linestyle="--", linewidth=0.8, label=words)


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
    figure, axes = _plane(score, unit, title)
    for i, (name, source) in enumerate(curves.items()):
        model = model_of(source)
        cost, value = source if model is None else curve(model)
        style = look(i if looks is None else looks[name])
        axes.plot(cost, value, markersize=4, linewidth=1.2, label=name, **style)
    if total > 60:  # most of what happens, happens early
        axes.set_xscale("symlog", linthresh=total / 100)
    axes.set_xlim(0, total)
    legend(figure, loc="outside lower center", ncols=3)
    return figure


def targets(
    points: Mapping[str, Any], wanted: Sequence[float], *, title: str = "", unit: str = "", score: str = "score"
) -> Figure:
    """Single policies in the plane of cost and score, by name, and as dashed lines the costs that were wanted. A model, or a
    fitted classifier, stands where its budget is expected to come to."""
    figure, axes = _plane(score, unit, title)
    for b in wanted:
        axes.axvline(b, color=FAINT, linewidth=0.8, linestyle="--")
    for i, (name, source) in enumerate(points.items()):
        model = model_of(source)
        cost, value = source if model is None else works_at(model)
        style = look(i) | {"linestyle": "", "fillstyle": "none" if i >= len(COLOURS) else "full"}
        axes.plot(cost, value, markersize=6, label=name, **style)
    legend(figure, loc="outside lower center", ncols=3)
    return figure


def _plane(score: str, unit: str, title: str = "") -> tuple[Figure, Axes]:
    """An empty picture with both axes named."""
    figure = empty(7, 5)
    axes = figure.add_subplot()
    tidy(axes)
    axes.set_xlabel(money("mean cost per case", unit), parse_math=False)
    axes.set_ylabel(score, parse_math=False)
    axes.set_title(title, parse_math=False)
    return figure, axes


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
