"""Heat maps: how often each test is bought and when, by class or by pixel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from askwise.core.arrays import Array, Doubles, Ints
from askwise.errors import InputError
from askwise.plots.canvas import INK, SOFT, colours_of, count, empty, inches, purchases, share_and_position
from askwise.plots.models import known_by_all, model_of, used
from askwise.texts import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from askwise.core.schema import Schema
    from askwise.evaluation import Report
    from askwise.model.model import LearnedModel

OFTEN, WHEN = "Blues", "cividis"  # both get steadily lighter or darker, so they survive a black and white printer


class Purchases(NamedTuple):
    """How often G groups of cases buy each test and, unless that is not known, at which position on average."""

    share: Doubles  # G, F
    position: Doubles | None  # G, F; NaN where nobody does
    size: Ints  # G
    groups: list[str]
    about: str  # what the groups are
    schema: Schema
    known: Array  # F: the share of cases that knew each test from the start


def _by_class(report: Report, by: Literal["truth", "decision"] | None) -> Purchases:
    """Of cases, by class."""
    schema, done = report.problem.schema, report.episodes
    by = by or ("decision" if report.problem.y is None else "truth")
    group = done.decision if by == "decision" else report.truth[done.row]
    present, group, size = np.unique(group, return_inverse=True, return_counts=True)
    names = [short(schema.decisions[k], 16) for k in present]
    about = "true class" if by == "truth" else "decision"
    had, n = np.zeros(schema.n_tests) if report.known is None else report.known.mean(0), len(schema.offered)
    share, position = share_and_position(report, group, len(present))
    return Purchases(share[:, :n], position[:, :n], size, names, about, schema, had[:n])


def _together(model: LearnedModel) -> Purchases:
    """Of all cases of the fit together."""
    usage = used(model)
    share, size = np.array([list(usage.bought.values())]), np.array([usage.rows])
    return Purchases(share, None, size, ["all cases"], "kept apart by the fit", model.schema, known_by_all(model))


def _recorded(model: LearnedModel, by: Any) -> Purchases:
    """Of the cases of the fit: by class where a model keeps that, otherwise together."""
    ends = used(model).outcomes
    of = [(k, each) for k, each in enumerate(ends.classes) if each.cases] if ends is not None else []
    kept = len(of) > 0 and all(each.bought is not None for _, each in of)
    if by is not None and not (by == "truth" and kept):
        raise InputError(f"by is {by!r}, but this model does not keep what is bought by that; give a Report of cases")
    if not kept:
        return _together(model)
    share, size = (
        np.array([each.bought for _, each in of])[:, : len(model.schema.offered)],
        np.array([round(each.cases) for _, each in of]),
    )
    names = [short(model.schema.classes[k], 16) for k, _ in of]
    return Purchases(share, None, size, names, "true class", model.schema, known_by_all(model))


def bought(report: Any, *, by: Literal["truth", "decision"] | None = None, most: int = 40) -> Figure:
    """How often each test is bought for cases of each class, and at which position on average when it is.

    By the true class where it is known, otherwise, or if asked for, by the class that was decided. Tests are ordered by how
    often they are bought; at most `most` are shown.

    Of a model or a fitted classifier, instead of a `Report`: how often tests are bought by the cases that the fit kept apart.
    """
    if most < 1:
        raise InputError(f"{most} tests cannot be drawn; it must be 1 or more")
    model = model_of(report)
    purchased = _by_class(report, by) if model is None else _recorded(model, by)
    size = purchased.size
    overall = np.rint(size @ purchased.share) / size.sum()  # F; from whole cases, so that ties stay ties
    order = np.argsort(-overall, kind="stable")
    shown, hidden = order[:most], order[most:]
    figure = _draw_bought(purchased, shown)
    notes = [f"nothing was bought for any of {count(int(size.sum()), 'case')}"] if not overall.any() else []
    if len(hidden):
        top = overall[hidden[0]]
        at_most = f", each bought for at most {_percent(top)} % of cases" if top else ", never bought"
        notes.append(f"{count(len(hidden), 'more test')} not shown{at_most}")
    if notes:
        figure.supxlabel("; ".join(notes), fontsize=8, color=SOFT)
    return figure


def _draw_bought(purchased: Purchases, shown: Ints) -> Figure:
    """A row for each test shown, a column for each group; one panel for how often, one for when."""
    share, position, G, T = purchased.share, purchased.position, len(purchased.groups), len(shown)
    names = _names(purchased.schema, purchased.known, shown)
    lines = [(name, f"n = {n:,}") for name, n in zip(purchased.groups, purchased.size, strict=True)]
    widest = max(inches(line, 8) for pair in lines for line in pair)
    cell = min(max(widest + 0.1, 0.45), 1.2, 6 / G)
    upright = widest > cell
    labels = ["{} ({})".format(*pair) if upright else "\n".join(pair) for pair in lines]
    panels = 1 if position is None else 2
    figure = empty(0.6 + max(inches(n, 8) for n in names) + panels * max(G * cell, 1.6), 1.6 + 0.24 * T + 1.5 * upright)
    often, *when = figure.subplots(1, panels, sharey=True, squeeze=False)[0]
    numbers = G <= 12
    _heat(often, share[:, shown].T, OFTEN, (0, 1), numbers, _percent)
    if position is not None:
        top = float(np.nanmax(position[:, shown], initial=1.0))
        _heat(when[0], position[:, shown].T, WHEN, (1, max(top, 2)), numbers, "{:.1f}".format)
    every = math.ceil(0.16 / cell)
    titles = "how often bought\n(% of cases)", "position when bought\n(1 = first test)"
    for axes, title in zip((often, *when), titles, strict=False):
        axes.set_title(title, fontsize=10)
        axes.set_xticks(np.arange(0, G, every) + 0.5, labels[::every], fontsize=8, parse_math=False, rotation=90 * upright)
        axes.set_xlabel(purchased.about)
    often.set_yticks(np.arange(T) + 0.5, names, fontsize=8, parse_math=False)
    often.invert_yaxis()
    return figure


def _names(schema: Schema, had: Array, tests: Ints) -> list[str]:
    """Names, with a word where a test is free or was known from the start."""
    free = schema.costs.alone == 0
    names = []
    for test in tests.tolist():
        words = []
        if had[test]:
            words.append("known" if had[test] == 1 else f"known for {_percent(had[test])} %")
        if free[test]:
            words.append("free")
        names.append(short(schema.tests[test]) + (f" ({', '.join(words)})" if words else ""))
    return names


def _percent(share: float) -> str:
    """A share in percent: nothing is rounded to never or to always."""
    if 0 < share < 0.01:
        return "<1"
    return ">99" if 0.99 < share < 1 else f"{100 * share:.0f}"


def _ticks(limits: tuple[float, float]) -> Any:
    """How the numbers beside a colour scale are written: shares in percent."""
    from matplotlib.ticker import PercentFormatter

    return None if limits[0] else PercentFormatter(1)


def _heat(axes: Axes, values: Doubles, colours: str, limits: tuple[float, float], numbers: bool, write: Any) -> None:
    """One cell per value, with the number in it; nothing in cells that are not a number, and a dot where it is 0."""
    scale: dict[str, Any] = {"cmap": colours_of(colours), "vmin": limits[0], "vmax": limits[1]}
    mesh = axes.pcolormesh(np.ma.masked_invalid(values), **scale, edgecolors="white", linewidth=1)
    axes.set_facecolor("#eeeeee")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if not numbers:
        axes.figure.colorbar(mesh, ax=axes, location="bottom", shrink=0.9, aspect=40, format=_ticks(limits))
        return
    shade = np.asarray(mesh.cmap(mesh.norm(values)))[..., :3] @ [0.299, 0.587, 0.114]
    for (row, column), value in np.ndenumerate(values):
        if not math.isnan(value):
            _write(axes, column + 0.5, row + 0.5, write(value) if value else "·", 8, bool(shade[row, column] < 0.5))


def _write(axes: Axes, x: float, y: float, text: str, size: float, on_dark: bool) -> None:
    """Text in the middle of a cell, in a colour that can be read there."""
    axes.text(x, y, text, ha="center", va="center", fontsize=size, color="white" if on_dark else INK)


def pixels(report: Any, shape: tuple[int, int], *, example: int | None = None) -> Figure:
    """For images of `shape` (rows, columns of pixels): how often each pixel is bought, and at which position on average.

    `example` is the number of a case of the report; its picture is shown too, with what was bought of it in its order.
    Of a model or a fitted classifier, instead of a `Report`: how often pixels are bought by the cases that the fit kept apart.
    """
    model = model_of(report)
    schema = report.problem.schema if model is None else model.schema
    if len(shape) != 2 or shape[0] * shape[1] != len(schema.columns):
        raise InputError(f"the shape is {shape}, but there are {len(schema.columns)} columns; rows times columns must give that")
    n = len(report.episodes.row) if model is None else used(model).rows
    if example is not None and model is not None:
        raise InputError("example is the number of a case, but a model keeps no cases; give a Report of cases")
    if example is not None and not 0 <= example < n:
        raise InputError(f"there is no case {example}; the report has cases 0 to {n - 1}")
    often, when = share_and_position(report, np.zeros(n, np.int64), 1) if model is None else _together(model)[:2]
    share = often[0, schema.owner].reshape(shape)
    position = None if when is None else when[0, schema.owner].reshape(shape)
    panels = 1 + (position is not None) + (example is not None)
    height = min(max(3.6 * shape[0] / shape[1], 1.5), 6)
    figure = empty(3.6 * panels, height + 0.95)
    axes = np.atleast_1d(figure.subplots(1, panels))
    top = max(float(np.nanmax(0 if position is None else position, initial=1.0)), 2.0)
    drawn = [(np.where(share > 0, share, np.nan), OFTEN, (0, float(share.max()) or 1.0), "share of cases that buy it")]
    drawn += [] if position is None else [(position, WHEN, (1, top), "mean position when bought")]
    for panel, (values, colours, limits, title) in zip(axes, drawn, strict=False):
        image = panel.imshow(values, cmap=colours_of(colours), vmin=limits[0], vmax=limits[1], interpolation="nearest")
        figure.colorbar(image, ax=panel, location="bottom", shrink=0.8, aspect=25, format=_ticks(limits))
        panel.set_title(title, fontsize=10)
    if example is not None:
        _example(axes[2], report, shape, example, top)
    for panel in axes:
        panel.set_xticks([])
        panel.set_yticks([])
    never = int((share == 0).sum())
    figure.supxlabel(f"{count(n, 'case')}; {count(never, 'pixel')} of {share.size:,} never bought (grey)", fontsize=8, color=SOFT)
    return figure


def _example(axes: Axes, report: Report, shape: tuple[int, int], example: int, top: float) -> None:
    """One case: the whole picture pale, what was bought of it in colours of its order, with numbers when there is room."""
    problem, done = report.problem, report.episodes
    axes.imshow(problem.X[done.row[example]].reshape(shape), cmap="Greys", interpolation="nearest", alpha=0.35)
    case, test, position = purchases(report)
    bought = case == example
    order = np.full(problem.schema.n_tests, np.nan)
    order[test[bought]] = position[bought]
    order = order[problem.schema.owner].reshape(shape)
    image = axes.imshow(np.ma.masked_invalid(order), cmap=WHEN, vmin=1, vmax=top, interpolation="nearest")
    y, x = np.nonzero(~np.isnan(order))
    if 0 < len(x) <= 40:
        size = min(9.0, 130 / max(shape))
        for i, j in zip(y.tolist(), x.tolist(), strict=True):
            _write(axes, j, i, f"{order[i, j]:.0f}", size, (order[i, j] - 1) / (top - 1) < 0.5)
    axes.figure.colorbar(image, ax=axes, location="bottom", shrink=0.8, aspect=25)
    classes = [short(c) for c in problem.schema.decisions]
    decided, truth = int(done.decision[example]), None if problem.y is None else int(problem.y[done.row[example]])
    verdict = "" if truth is None else " (right)" if truth == decided else f" (wrong: {classes[truth]})"
    title = f"case {example}, {count(int(bought.sum()), 'test')} bought: {classes[decided]}{verdict}"
    axes.set_title(title, fontsize=10, parse_math=False)
