"""How it ends: how often cases of each class are decided rightly, and how far the probabilities can be trusted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from askwise.errors import InputError
from askwise.model.outcomes import BINS, Outcomes, outcomes_of
from askwise.plots.canvas import BLUE, INK, SOFT, count, empty, tidy
from askwise.plots.models import model_of, used
from askwise.texts import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def _ends(source: Any) -> tuple[Outcomes, Any]:
    """Of a `Report`, or as the fit measured them: how it ended, and the classes."""
    model = model_of(source)
    if model is None:
        return outcomes_of(source), source.problem.schema.classes
    ends = used(model).outcomes
    if ends is None:
        raise InputError("how cases end is not recorded in this model; give a Report of cases, or fit again")
    return ends, model.schema.classes


def calibration(report: Any) -> Figure:
    """How often what had a probability came true: of two classes the rarer one, otherwise the class decided for.

    A point for each tenth of the probabilities, as large as its cases are many, with an interval of one standard error; above is
    the number of cases. On the line probabilities are what they say. Takes a `Report` that has probabilities, a model or a fitted
    classifier.
    """
    ends, classes = _ends(report)
    if not ends.bins:
        raise InputError("this report has no probabilities; model.report(problem) makes one that has")
    figure = empty(5.2, 4.6)
    axes = figure.add_subplot(xlim=(-0.03, 1.03), ylim=(-0.03, 1.03), aspect="equal")
    tidy(axes)
    axes.plot([0, 1], [0, 1], color=INK, linewidth=1, linestyle="-.", label="_what they say")
    x, y = [b.probability for b in ends.bins], [b.share for b in ends.bins]
    for each in ends.bins:
        axes.plot([each.probability] * 2, each.interval, color=BLUE, linewidth=1.4, alpha=0.7, label="_interval")
    most = max(b.cases for b in ends.bins)
    axes.plot(x, y, color=BLUE, linewidth=1, alpha=0.5, label="_joined")
    axes.scatter(x, y, s=[25 + 150 * b.cases / most for b in ends.bins], color=BLUE, edgecolor="white", zorder=3)
    above: dict[str, Any] = {"y": 1.06, "fontsize": 7.5, "color": SOFT, "va": "bottom"}
    axes.text(-0.03, s="cases", ha="right", **above)
    for each in ends.bins:  # above the middle of their tenth, where no two of them meet
        axes.text((each.place + 0.5) / BINS, s=f"{round(each.cases):,}", ha="center", **above)
    about = "the class decided for" if ends.about is None else short(classes[ends.about])
    axes.set_xlabel(f"probability of {about} at the end", parse_math=False)
    axes.set_ylabel("how often it came true")
    return figure


def recall(report: Any, *, most: int = 30) -> Figure:
    """How often cases of each class are decided rightly, with one standard error to either side; at most so many classes, the
    largest. Takes what `calibration` does."""
    if most < 1:
        raise InputError(f"{most} classes cannot be drawn; it must be 1 or more")
    ends, classes = _ends(report)
    present = [(short(name, 20), each) for name, each in zip(classes, ends.classes, strict=True) if each.cases]
    present = sorted(present, key=lambda pair: -pair[1].cases)[:most]
    figure = empty(5.2, 0.9 + 0.42 * len(present))
    axes = figure.add_subplot(xlim=(0, 1.0))
    tidy(axes)
    axes.grid(visible=False, axis="y")
    place = range(len(present))
    shares, errors = [each.recall for _, each in present], [each.error for _, each in present]
    axes.barh(place, shares, 0.55, color=BLUE, alpha=0.75)
    axes.errorbar(shares, place, xerr=errors, fmt="none", ecolor=INK, elinewidth=1.2, capsize=3)
    names = [f"{name}\n{count(round(each.cases), 'case')}" for name, each in present]
    axes.set_yticks(place, names, fontsize=9, parse_math=False)
    for i, (_, each) in enumerate(present):
        axes.text(1.02, i, f"{100 * each.recall:.1f} ± {100 * each.error:.1f} %", va="center", fontsize=9, color=INK)
    axes.set_xlabel("share that is decided rightly")
    axes.invert_yaxis()
    return figure
