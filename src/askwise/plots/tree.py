"""The paths that cases take, from the start through tests to decisions, as a tree of bands as wide as they are common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from askwise.core.arrays import Doubles, Ints
from askwise.errors import InputError
from askwise.plots.canvas import COLOURS, INK, SOFT, count, empty, inches, money
from askwise.plots.models import known_by_all, model_of, used
from askwise.texts import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from askwise.evaluation import Report
    from askwise.model.model import LearnedModel

NOTHING, FURTHER = -1, -2  # in a sequence of tests: it is over; it goes on, but not in the picture
FONT = 9  # points; everything else is in inches
LINE, PLATE = 0.22, 0.17  # a line of text, and a box around it
_wide = partial(inches, size=FONT)
FLOW = 2.6  # the height of all cases together
GAP = 0.35  # between two columns, for the bands
MARGIN = 0.15


class CommonPaths(NamedTuple):
    """The P different paths, the most common first. Paths that differ only in what was cut off are one."""

    tests: Ints  # P, steps + 1
    last: Ints  # P: the action that ended it
    cases: Ints  # P
    cost: Doubles  # P: mean, in money
    right: Doubles | None  # P: share of right decisions


def common(report: Report, steps: int) -> CommonPaths:
    """Groups the cases of a report by what they bought, in which order, and how it ended."""
    done, schema = report.episodes, report.problem.schema
    n = len(done.length)
    case = np.repeat(np.arange(n), done.length)
    t = np.arange(len(case)) - np.repeat(done.first, done.length)
    table = np.full((n, steps + 2), NOTHING)
    buys = (done.action >= schema.first_test) & (t < steps)
    table[case[buys], t[buys]] = done.action[buys] - schema.first_test
    table[done.length - 1 > steps, steps] = FURTHER
    table[:, -1] = done.action[done.first + done.length - 1]
    path = np.zeros(n, np.int64)
    for column in table.T:  # equal rows get equal numbers, column by column; much faster than unique rows
        path = np.unique(path * (schema.n_actions + 2) + column + 2, return_inverse=True)[1]
    _, example, cases = np.unique(path, return_index=True, return_counts=True)
    key = table[example]
    order = np.argsort(-cases, kind="stable")

    def mean(values: Doubles) -> Doubles:
        return (np.bincount(path, values, minlength=len(cases)) / cases)[order]

    right = None if report.problem.y is None else mean((done.decision == report.truth[done.row]).astype(float))
    return CommonPaths(key[order, :-1], key[order, -1], cases[order], mean(report.cost_per_case), right)


@dataclass(eq=False)
class TreeNode:
    """A test that some cases buy after the same tests before, or (`path` is set) the end of a path."""

    name: str
    cases: int  # all that come here, also on paths that are not shown
    depth: int
    path: int | None = None
    children: list[TreeNode] = field(default_factory=list)
    y: float = 0.0  # the middle, in inches from the top

    @property
    def left_out(self) -> int:
        return 0 if self.path is not None else self.cases - sum(c.cases for c in self.children)

    def room(self, scale: float) -> float:
        """The height it needs with all that follows: bands as wide as they are, and every name on a line of its own."""
        return max(LINE, self.cases * scale + 0.03, sum(c.room(scale) for c in self.children))

    def place(self, top: float, scale: float) -> None:
        self.y = top + self.room(scale) / 2
        for child in self.children:
            child.place(top, scale)
            top += child.room(scale)

    def all(self) -> Iterator[TreeNode]:
        yield self
        for child in self.children:
            yield from child.all()

    @property
    def label(self) -> str:
        if self.depth == 0:
            return count(self.cases, "case")
        return self.name if self.path is not None else f"{self.name} ({self.cases:,})"


def grow(paths: CommonPaths, shown: int, names: list[str], ends: list[str]) -> TreeNode:
    """The tree of the first `shown` paths; at every branch the most common comes first."""

    def node(name: str, rows: Ints, depth: int) -> TreeNode:
        """`rows` are the paths, shown or not, that begin with the `depth` tests that led here."""
        branch = TreeNode(name, int(paths.cases[rows].sum()), depth)
        following = np.full(len(rows), NOTHING) if depth == paths.tests.shape[1] else paths.tests[rows, depth]
        for next_test in np.unique(following[rows < shown]):
            there = rows[following == next_test]
            if next_test == NOTHING:
                branch.children += [
                    TreeNode(ends[paths.last[p]], int(paths.cases[p]), depth + 1, int(p)) for p in there if p < shown
                ]
            else:
                branch.children.append(node("…" if next_test == FURTHER else names[next_test], there, depth + 1))
        branch.children.sort(key=lambda c: -c.cases)
        return branch

    return node("", np.arange(len(paths.cases)), 0)


def recorded(model: LearnedModel, steps: int) -> CommonPaths:
    """The paths that a model keeps: how they end is not kept, so each is one, and what it costs follows from its tests."""
    usage, schema, known = used(model), model.schema, known_by_all(model)
    index = {test: i for i, test in enumerate(schema.tests)}
    kept = [[index[t] for t in tests] for tests, _ in usage.paths]
    cases = [round(share * usage.rows) for _, share in usage.paths]
    table = np.full((len(kept) + 1, steps + 1), NOTHING)
    held = np.tile(known, (len(kept) + 1, 1))
    for row, tests in enumerate(kept):
        table[row, : min(len(tests), steps)] = tests[:steps]
        table[row, steps] = FURTHER if len(tests) > steps else NOTHING
        held[row, tests] = True
    cost = np.asarray(schema.costs.money(schema.costs.cost(held, np.tile(known, (len(held), 1)))), float)
    others = max(usage.rows - sum(cases), 0)
    cost[-1] = np.nan  # of all other paths together
    n = len(held) if others else len(kept)
    return CommonPaths(table[:n], np.zeros(n, np.int64), np.array([*cases, others])[:n], cost[:n], None)


def paths(report: Any, most: int = 12, *, steps: int = 6, unit: str = "") -> Figure:
    """The `most` common sequences of tests and decisions, with how many cases take them, what they pay and how often they are
    decided rightly; the others are summed up. After `steps` tests a sequence is cut (…).

    A band is as thick as the cases that take it are many; beside the name of a test is the number of all that come there. Where
    some of them go on along paths that are not shown, a hatched tip points out of the picture.

    Of a model or a fitted classifier, instead of a `Report`: the most common paths of the cases that the fit kept apart, without
    how they end.
    """
    if most < 1 or steps < 1:
        raise InputError(f"{most} paths of {steps} steps cannot be drawn; both must be 1 or more")
    model = model_of(report)
    if model is None:
        schema, taken = report.problem.schema, common(report, steps)
        shown, ends = min(most, len(taken.cases)), [short(c, 18) for c in schema.classes] + ["existing classifier"]
        note = _note(report, taken, shown, steps)
    else:
        schema, taken, unit = model.schema, recorded(model, steps), unit or model.unit
        shown, ends = min(most, len(used(model).paths)), ["decided"]
        note = f"the {count(shown, 'most common path')} of {used(model).rows:,} {model.held_out_cases}"
    root = grow(taken, shown, [short(t, 18) for t in schema.tests], ends)
    return _draw_tree(root, taken, _table(taken, shown, unit), note, steps)


def _draw_tree(root: TreeNode, taken: CommonPaths, beside: tuple[list[list[str]], int], note: str, steps: int) -> Figure:
    """The tree, the table beside it, and a line below."""
    scale, top = FLOW / root.cases, MARGIN + 1.4 * LINE
    root.place(top, scale)
    nodes = list(root.all())
    leaves = sorted((n for n in nodes if n.path is not None), key=lambda n: n.path or 0)
    last = max(n.depth for n in leaves)
    for leaf in leaves:
        leaf.depth = last  # decisions stand in one column
    heads = ["start", *(f"test {d}" for d in range(1, last)), "decision"]
    if any(n.depth > steps and n.path is None for n in nodes):
        heads[-2] = "more"
    wide = [0.15 + max(map(_wide, (head, *(n.label for n in nodes if n.depth == d)))) for d, head in enumerate(heads)]
    left = MARGIN + np.cumsum([0, *(w + GAP for w in wide)])
    table, others = beside
    edge = left[last] + wide[last] + np.cumsum([0.18 + max(map(_wide, column)) for column in table])
    bottom = top + root.room(scale)
    end = bottom + (1.3 * LINE if others else 0.3 * LINE)
    width, height = MARGIN + max(edge[-1], MARGIN + _wide(note)), end + LINE + MARGIN

    figure = empty(width, height, w_pad=0, h_pad=0)
    axes = figure.add_subplot(xlim=(0, width), ylim=(height, 0))
    axes.set_axis_off()
    for node in nodes:
        _draw(axes, node, left, wide, scale, taken.last)
    for x, head in zip(left, heads, strict=False):
        _write(axes, x, MARGIN + LINE / 2, head, color=SOFT)
    rows = [*(leaf.y for leaf in leaves), *([bottom + LINE / 2] if others else [])]
    for x, (head, *cells) in zip(edge, table, strict=True):
        _write(axes, x, MARGIN + LINE / 2, head, SOFT, "right")
        for y, cell in zip(rows, cells, strict=True):
            _write(axes, x, y, cell, ha="right")
    if others:
        words, x = f"other paths ({count(others, 'case')})", left[last] + wide[last]
        _write(axes, x, bottom + LINE / 2, words, ha="right")
        _tip(axes, x - _wide(words) - 0.22, bottom + 0.25 * LINE, bottom + 0.75 * LINE)
    _write(axes, MARGIN, end + LINE / 2, note, color=SOFT)
    return figure


def _table(taken: CommonPaths, shown: int, unit: str) -> tuple[list[list[str]], int]:
    """What stands to the right of the tree: columns, each a head, a cell for each path shown, and one for all others if there
    are any; and how many cases these are."""
    others = int(taken.cases[shown:].sum())

    def values(of: Doubles) -> list[float]:
        return [*of[:shown].tolist(), *([float(of[shown:] @ taken.cases[shown:] / others)] if others else [])]

    cases = [*taken.cases[:shown].tolist(), *([others] if others else [])]
    table = [
        ["cases", *(f"{n:,}" for n in cases)],
        ["share", *(f"{n / taken.cases.sum():.1%}" for n in cases)],
        [money("cost", unit), *("–" if np.isnan(c) else f"{c:,.2f}" for c in values(taken.cost))],
    ]
    if taken.right is not None:
        table.append(["right", *(f"{r:.0%}" for r in values(taken.right))])
    return table, others


def _note(report: Report, taken: CommonPaths, shown: int, steps: int) -> str:
    """What the picture leaves out, in a line."""
    note = f"{shown} of {count(len(taken.cases), 'different path')}" if shown < len(taken.cases) else "all paths"
    cut = int(taken.cases[taken.tests[:, -1] == FURTHER].sum())
    if cut:
        note += f"; {count(cut, 'case')} bought more than {count(steps, 'test')} (…)"
    offered = len(report.problem.schema.offered)
    if report.known is not None and report.known[:, :offered].any():
        each = report.known[:, :offered].sum(1)
        few = count(int(each[0]), "test") if np.ptp(each) == 0 else f"on average {each.mean():.3g} tests"
        note += f"; {few} known from the start"
    return note


def _draw(axes: Axes, node: TreeNode, left: Doubles, wide: list[float], scale: float, last: Ints) -> None:
    """A box with its name, and the bands from it to what follows."""
    from matplotlib.patches import PathPatch, Rectangle
    from matplotlib.path import Path

    x, high = left[node.depth], max(node.cases * scale, PLATE)
    axes.add_patch(Rectangle((x, node.y - high / 2), wide[node.depth], high, linewidth=0.5, **_shade(node, last, 0.55)))
    _write(axes, x + 0.07, node.y, node.label)
    x, y = x + wide[node.depth], node.y - node.cases * scale / 2
    for child in node.children:
        thick = child.cases * scale
        there, bend, end = child.y - thick / 2, left[node.depth + 1], left[child.depth]
        middle = (x + bend) / 2
        upper = [(x, y), (middle, y), (middle, there), (bend, there), (end, there)]
        corners = [*upper, *((across, down + thick) for across, down in reversed(upper)), (x, y)]
        C = Path.CURVE4
        codes = [Path.MOVETO, C, C, C, Path.LINETO, Path.LINETO, Path.LINETO, C, C, C, Path.CLOSEPOLY]
        axes.add_patch(PathPatch(Path(corners, codes), linewidth=0.5, **_shade(child, last, 0.25)))
        y += thick
    if node.left_out:
        _tip(axes, x, y, y + node.left_out * scale)


def _shade(node: TreeNode, last: Ints, strength: float) -> dict[str, Any]:
    """Grey for tests, the class's colour for decisions; pale, so that black text can be read on it."""
    from matplotlib.colors import to_rgb

    colour = "#888888" if node.path is None else COLOURS[last[node.path] % len(COLOURS)]
    pale = tuple(1 - strength * (1 - c) for c in to_rgb(colour))
    return {"facecolor": pale, "edgecolor": pale}


def _tip(axes: Axes, x: float, top: float, bottom: float) -> None:
    """Where cases leave the picture."""
    from matplotlib.patches import Polygon

    points = [(x, top), (x + 0.08, top), (x + 0.15, (top + bottom) / 2), (x + 0.08, bottom), (x, bottom)]
    axes.add_patch(Polygon(points, facecolor="white", edgecolor=SOFT, hatch="/////", linewidth=0.5))


def _write(axes: Axes, x: float, y: float, text: str, color: str = INK, ha: Literal["left", "right"] = "left") -> None:
    axes.text(x, y, text, fontsize=FONT, color=color, ha=ha, va="center", parse_math=False)
