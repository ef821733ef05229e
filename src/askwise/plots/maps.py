"""Heat maps: how often each test is bought and when, by class or by pixel."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from askwise.errors import InputError
from askwise.plots.canvas import INK, SOFT, colours_of, count, empty, inches, known_of, purchases, share_and_position, short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from askwise.evaluate import Report

Doubles = NDArray[np.float64]
OFTEN, WHEN = "Blues", "cividis"  # both get steadily lighter or darker, so they survive a black and white printer


def bought(report: Report, *, by: Literal["truth", "decision"] | None = None, most: int = 40) -> Figure:
    """How often each test is bought for cases of each class, and at which position on average when it is.

    By the true class where it is known, otherwise, or if asked for, by the class that was decided. Tests are ordered by how
    often they are bought; at most `most` are shown.
    """
    if most < 1:
        raise InputError(f"{most} tests cannot be drawn; it must be 1 or more")
    schema, done = report.problem.schema, report.episodes
    by = by or ("decision" if report.problem.y is None else "truth")
    group = done.decision if by == "decision" else report.truth[done.row]
    present, group, size = np.unique(group, return_inverse=True, return_counts=True)
    share, position = share_and_position(report, group, len(present))
    overall = np.rint(size @ share) / size.sum()  # F; from whole cases, so that ties stay ties
    order = np.argsort(-overall, kind="stable")
    shown, rest = order[:most], order[most:]

    G, T = len(present), len(shown)
    names = _names(report, shown)
    lines = [(short(schema.classes[k], 16), f"n = {n:,}") for k, n in zip(present, size, strict=True)]
    widest = max(inches(line, 8) for pair in lines for line in pair)
    cell = min(max(widest + 0.1, 0.45), 1.2, 6 / G)
    upright = widest > cell
    labels = ["{} ({})".format(*pair) if upright else "\n".join(pair) for pair in lines]
    figure = empty(0.6 + max(inches(n, 8) for n in names) + 2 * max(G * cell, 1.6), 1.6 + 0.24 * T + 1.5 * upright)
    often, when = figure.subplots(1, 2, sharey=True)
    numbers = G <= 12
    _heat(often, share[:, shown].T, OFTEN, (0, 1), numbers, _percent)
    top = float(np.nanmax(position[:, shown], initial=1.0))
    _heat(when, position[:, shown].T, WHEN, (1, max(top, 2)), numbers, "{:.1f}".format)
    every = math.ceil(0.16 / cell)
    for axes, title in ((often, "how often bought\n(% of cases)"), (when, "position when bought\n(1 = first test)")):
        axes.set_title(title, fontsize=10)
        axes.set_xticks(np.arange(0, G, every) + 0.5, labels[::every], fontsize=8, parse_math=False,
                        rotation=90 * upright)  # fmt: skip
        axes.set_xlabel("true class" if by == "truth" else "decision")
    often.set_yticks(np.arange(T) + 0.5, names, fontsize=8, parse_math=False)
    often.invert_yaxis()
    notes = [f"nothing was bought for any of {count(len(group), 'case')}"] if not overall.any() else []
    if len(rest):
        at_most = f", each bought for at most {_percent(overall[rest[0]])} % of cases" if overall[rest[0]] else ", never bought"
        notes.append(f"{count(len(rest), 'more test')} not shown{at_most}")
    if notes:
        figure.supxlabel("; ".join(notes), fontsize=8, color=SOFT)
    return figure


def _names(report: Report, tests: NDArray[np.int64]) -> list[str]:
    """Names, with a word where a test is free or was known from the start."""
    schema, known = report.problem.schema, known_of(report)
    had = np.zeros(schema.n_tests) if known is None else known.mean(0)
    free = schema.prices.alone == 0
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
    mesh = axes.pcolormesh(np.ma.masked_invalid(values), cmap=colours_of(colours), vmin=limits[0], vmax=limits[1],
                           edgecolors="white", linewidth=1)  # fmt: skip
    axes.set_facecolor("#eeeeee")
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    if not numbers:
        axes.figure.colorbar(mesh, ax=axes, location="bottom", shrink=0.9, aspect=40, format=_ticks(limits))
        return
    shade = np.asarray(mesh.cmap(mesh.norm(values)))[..., :3] @ [0.299, 0.587, 0.114]
    for (row, column), value in np.ndenumerate(values):
        if not math.isnan(value):
            axes.text(column + 0.5, row + 0.5, write(value) if value else "·", ha="center", va="center", fontsize=8,
                      color="white" if shade[row, column] < 0.5 else INK)  # fmt: skip


def pixels(report: Report, shape: tuple[int, int], *, example: int | None = None) -> Figure:
    """For images of `shape` (rows, columns of pixels): how often each pixel is bought, and at which position on average.

    `example` is the number of a case of the report; its picture is shown too, with what was bought of it in its order.
    """
    schema = report.problem.schema
    if len(shape) != 2 or shape[0] * shape[1] != len(schema.columns):
        raise InputError(f"the shape is {shape}, but there are {len(schema.columns)} columns; rows times columns must give that")
    n = len(report.episodes.row)
    if example is not None and not 0 <= example < n:
        raise InputError(f"there is no case {example}; the report has cases 0 to {n - 1}")
    share, position = (v[0, schema.owner].reshape(shape) for v in share_and_position(report, np.zeros(n, np.int64), 1))
    panels = 2 + (example is not None)
    height = min(max(3.6 * shape[0] / shape[1], 1.5), 6)
    figure = empty(3.6 * panels, height + 0.95)
    axes = np.atleast_1d(figure.subplots(1, panels))
    top = float(np.nanmax(position, initial=1.0))
    for on, values, colours, limits, title in (
        (axes[0], np.where(share > 0, share, np.nan), OFTEN, (0, float(share.max()) or 1.0), "share of cases that buy it"),
        (axes[1], position, WHEN, (1, max(top, 2)), "mean position when bought"),
    ):
        image = on.imshow(values, cmap=colours_of(colours), vmin=limits[0], vmax=limits[1], interpolation="nearest")
        figure.colorbar(image, ax=on, location="bottom", shrink=0.8, aspect=25, format=_ticks(limits))
        on.set_title(title, fontsize=10)
    if example is not None:
        _example(axes[2], report, shape, example, max(top, 2))
    for on in axes:
        on.set_xticks([])
        on.set_yticks([])
    never = int((share == 0).sum())
    figure.supxlabel(f"{count(n, 'case')}; {count(never, 'pixel')} of {share.size:,} never bought (grey)", fontsize=8, color=SOFT)
    return figure


def _example(axes: Axes, report: Report, shape: tuple[int, int], example: int, top: float) -> None:
    """One case: the whole picture pale, what was bought of it in colours of its order, with numbers when there is room."""
    problem, done = report.problem, report.episodes
    picture = problem.X[done.row[example]].reshape(shape)
    axes.imshow(picture, cmap="Greys", interpolation="nearest", alpha=0.35)
    case, test, position = purchases(report)
    mine = case == example
    order = np.full(problem.schema.n_tests, np.nan)
    order[test[mine]] = position[mine]
    order = order[problem.schema.owner].reshape(shape)
    held = ~np.isnan(order)
    image = axes.imshow(np.ma.masked_where(~held, order), cmap=WHEN, vmin=1, vmax=top, interpolation="nearest")
    y, x = np.nonzero(held)
    if 0 < len(x) <= 40:
        size = min(9.0, 130 / max(shape))
        for i, j in zip(y.tolist(), x.tolist(), strict=True):
            dark = (order[i, j] - 1) / (top - 1) < 0.5
            axes.text(j, i, f"{order[i, j]:.0f}", ha="center", va="center", fontsize=size, color="white" if dark else INK)
    axes.figure.colorbar(image, ax=axes, location="bottom", shrink=0.8, aspect=25)
    classes = [short(c) for c in problem.schema.classes]
    decided, truth = int(done.decision[example]), None if problem.y is None else int(problem.y[done.row[example]])
    verdict = "" if truth is None else " (right)" if truth == decided else f" (wrong: {classes[truth]})"
    axes.set_title(f"case {example}, {count(int(mine.sum()), 'test')} bought: {classes[decided]}{verdict}", fontsize=10,
                   parse_math=False)  # fmt: skip
