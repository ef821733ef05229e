"""What all pictures share: an empty figure, colours, names that fit, and writing the file."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from askwise.core.arrays import Doubles, Ints
from askwise.errors import AskwiseError, InputError
from askwise.files import write_whole
from askwise.texts import printable

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.colors import Colormap
    from matplotlib.figure import Figure

    from askwise.core.budget import Budget
    from askwise.evaluation import Report

INK, SOFT, FAINT = "#222222", "#777777", "#bbbbbb"
BLUE, ORANGE, RED = "#0072B2", "#E69F00", "#D55E00"
# Okabe and Ito's colours, which colour-blind people can tell apart; for classes, in their order
COLOURS = (BLUE, ORANGE, "#009E73", RED, "#CC79A7", "#56B4E9", "#F0E442")
# what is written into a file beside the picture would change with the day and the version
LEFT_OUT: dict[str, dict[str, Any]] = {".png": {"Software": None}, ".svg": dict.fromkeys(["Date", "Creator", "Format", "Type"])}


def empty(width: float, height: float, **layout: float) -> Figure:
    """A figure of so many inches."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise AskwiseError("pictures need matplotlib, which is not installed; pip install 'askwise[plot]'") from None

    figure = Figure(figsize=(width, height))
    figure.set_layout_engine("constrained", **layout)
    return figure


def tidy(axes: Axes) -> None:
    """A faint grid behind the data, and no frame where it says nothing."""
    axes.grid(color=FAINT, alpha=0.4, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def legend(of: Figure | Axes, **how: Any) -> None:
    """A legend whose entries are plain text: a dollar sign is a dollar sign."""
    for text in of.legend(fontsize=8, frameon=False, **how).get_texts():
        text.set_parse_math(False)


def colours_of(name: str) -> Colormap:
    """A colour scale in which what is not a number is light grey."""
    from matplotlib import colormaps

    return colormaps[name].with_extremes(bad="#eeeeee")


def inches(text: str, size: float) -> float:
    """How wide a line of text is at a size in points."""
    from matplotlib.textpath import TextPath

    return float(TextPath((0, 0), text.replace("$", "S"), size=size).get_extents().x1) / 72 if text.strip() else 0.0


def count(n: int, thing: str) -> str:
    """1 case, 1,234 cases."""
    return f"{n:,} {thing}" + ("" if n == 1 else "s")


def money(label: str, unit: str) -> str:
    """A label with the unit of money, if that has a name."""
    return f"{label} ({printable(unit)})" if unit else label


def limit_of(budget: Budget | None) -> tuple[str, float | None]:
    """What cases may cost on average or, where that is not said, at most; and which of the two it is."""
    average, hard = (None, None) if budget is None else (budget.average, budget.hard)
    if average is not None:
        return "average", float(average)
    return ("no", None) if hard is None else ("hard", float(hard))


def purchases(report: Report) -> tuple[Ints, Ints, Ints]:
    """Every test that was bought, as (case, test, position); the first test that a case buys has position 1.

    What the existing classifier needed and was not held yet is bought at once, all at the position of asking it.
    """
    done, schema = report.episodes, report.problem.schema
    case = np.repeat(np.arange(len(done.length)), done.length)
    position = np.arange(len(case)) - np.repeat(done.first, done.length) + 1
    buys = done.action >= schema.first_test
    case, test, position = case[buys], done.action[buys] - schema.first_test, position[buys]
    if schema.external_needs is not None:
        rest = report.bought_mask.copy()
        rest[case, test] = False
        by_asking, needed = np.nonzero(rest)
        case, test = np.r_[case, by_asking], np.r_[test, needed]
        position = np.r_[position, done.length[by_asking]]
    return case, test, position


def share_and_position(report: Report, group: Ints, n: int) -> tuple[Doubles, Doubles]:
    """n, F each: the share of a group's cases that buy a test, and at which position on average; NaN where nobody does."""
    case, test, position = purchases(report)
    F = report.problem.schema.n_tests
    cell = group[case] * F + test
    often = np.bincount(cell, minlength=n * F).reshape(n, F)
    total = np.bincount(cell, position, minlength=n * F).reshape(n, F)
    size = np.bincount(group, minlength=n)
    return often / np.maximum(size, 1)[:, None], np.where(often > 0, total / np.maximum(often, 1), np.nan)


def drawn(figure: Figure, ending: str, dpi: int = 150) -> bytes:
    """The picture as a file would hold it. The same picture gives the same bytes."""
    import matplotlib

    data = io.BytesIO()
    with matplotlib.rc_context({"svg.hashsalt": "askwise"}):
        figure.savefig(data, format=ending[1:], dpi=dpi, metadata=LEFT_OUT[ending])
    return data.getvalue()


def inline(figure: Figure) -> str:
    """The picture as an SVG element, to stand within a page."""
    text = drawn(figure, ".svg").decode()
    return text[text.index("<svg") :]


def save(figure: Figure, path: str | Path, *, dpi: int = 150) -> Path:
    """Writes a PNG or an SVG, by the ending. The same picture gives the same bytes, and the file is always a whole one."""
    path = Path(path)
    ending = path.suffix.lower()
    if ending not in LEFT_OUT:
        raise InputError(f"{path.name!r} has no ending for a picture; end it in .png or .svg")
    write_whole(path, drawn(figure, ending, dpi))
    return path
