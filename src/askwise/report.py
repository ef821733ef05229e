"""What is said and shown of a model: sentences, a table, pictures, and a page of all of them that opens offline."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from askwise.core.budget import Budget
from askwise.core.episode import measure
from askwise.core.problem import Problem
from askwise.data.external import Recorded
from askwise.evaluate import Report
from askwise.files import write_whole
from askwise.model import Model
from askwise.pages import Block, Code, Heading, Picture, Words, html

PICTURES, PAGE = (".png", ".svg"), ".html"  # endings of what is written beside a model


def learned_for(model: Model, loss: float, accuracy: float) -> tuple[str, float]:
    """The measure that training was about, in words and as a number: where mistakes are not all alike it is not the accuracy."""
    if not model.weighted:
        return "accuracy", accuracy
    return ("loss" if abs(model.stake - 1) < 1e-9 else "loss / stake"), loss / model.stake


def frontier_table(model: Model) -> str:
    """Text: every kept policy, and where the model works. What was learned for comes first."""
    followed = {model.blend.first, model.blend.second} if model.blend.share else {model.blend.first}
    name = learned_for(model, 0, 0)[0]
    other = "accuracy" if model.weighted else "loss"
    head = f"    mean cost  {name:>12}  {other:>8}"
    lines = [head, "    " + "-" * (len(head) - 4)]
    for i, p in enumerate(model.frontier):
        value, beside = learned_for(model, p.loss, p.accuracy)[1], getattr(p, other)
        lines.append(f"{'  > ' if i in followed else '    '}{p.cost:9.3f}  {value:12.4f}  {beside:8.4f}")
    if model.weighted:
        stake = "" if name == "loss" else f"; in a case {model.stake:.4g} are at stake on average"
        lines.append(f"    it was learned for the {name}{stake}; the accuracy counts all mistakes alike")
    return "\n".join(lines)


def describe(model: Model) -> str:
    """Some sentences about a model."""
    schema, expected, best = model.schema, model.expected, model.saturation
    total = schema.prices.money(schema.prices.total)
    unit = f" {model.unit}" if model.unit else ""
    kind, here = learned_for(model, expected["loss"], expected["accuracy"])
    there = learned_for(model, best.loss, best.accuracy)[1]
    lines = [
        f"{schema.n_tests} tests, {total:.4g}{unit} for all of them; classes {', '.join(str(c) for c in schema.classes)}",
        f"trained {model.facts['seconds']} s for {_words(model.trained_for)} ({model.facts['stopped']})",
        f"works at {model.budget if model.budget != Budget() else 'its cheapest point within one standard error of the best'}: "
        f"expected cost {expected['cost']:.4g}{unit}, {kind} {here:.4f} on validation cases",
        f"more than {best.cost:.4g}{unit} per case would not help: {kind} there is {there:.4f} on validation cases",
    ]
    if isinstance(model.external, Recorded):
        lines.append(f"may ask the existing classifier, whose answers are in the column {model.external.column!r}")
    return "\n".join(lines)


def _words(budget: Budget) -> str:
    return "every amount of money" if budget == Budget() else str(budget)


def card(model: Model) -> dict[str, Any]:
    """The same for machines."""
    prices = model.schema.prices
    return {
        "tests": dict(zip(model.schema.tests, prices.money(prices.alone).tolist(), strict=True)),
        "classes": list(model.schema.classes),
        "total_cost": prices.money(prices.total),
        "unit": model.unit,
        "trained_for": str(model.trained_for),
        "budget": str(model.budget),
        "external": model.external.column if isinstance(model.external, Recorded) else None,
        "expected": model.expected,
        "frontier": [point.shown for point in model.frontier],
        "facts": {k: v for k, v in model.facts.items() if k not in ("records", "areas", "usage")},
    }


def draw_frontier(model: Model, path: Path) -> None:
    from askwise import plots

    plots.save(_frontier_figure(model, None), path)


def _frontier_figure(model: Model, problem: Problem | None) -> Any:
    """The curve; with test points where there are test cases."""
    from askwise import plots

    def score(loss: float, accuracy: float) -> float:
        value = learned_for(model, loss, accuracy)[1]
        return 1 - value if model.weighted else value

    points, expected = model.frontier, model.expected
    validation = [p.cost for p in points], [score(p.loss, p.accuracy) for p in points]
    test, prior, best = None, validation[1][0], (expected["cost"], score(expected["loss"], expected["accuracy"]))
    if problem is not None:
        cap = model.cap
        found = [measure(problem, model.arm(point), cap) for point in points]
        test = [m.cost for m in found], [score(m.loss, m.accuracy) for m in found]
        here = measure(problem, model.policy, cap)
        prior, best = test[1][0], (here.cost, score(here.loss, here.accuracy))
    words = f"{'1 - expected ' if model.weighted else ''}{learned_for(model, 0, 0)[0]}"
    total = model.schema.prices.money(model.schema.prices.total)
    budget = None if model.budget == Budget() else model.budget
    return plots.frontier(
        validation, test, np.arange(len(points)), prior=prior, everything=(total, None), budget=budget, unit=model.unit,
        score=words, best=best,
    )  # fmt: skip


def write_pictures(model: Model, out: Path, report: Report | None) -> list[Path]:
    """The curve as PNG and SVG, and a page with all pictures that opens offline; `report`: on test cases, if there are any."""
    from askwise import plots

    figures: list[tuple[str, Any]] = [
        ("What each amount of money buys", _frontier_figure(model, None if report is None else report.problem))
    ]
    if report is not None:
        figures.append(("Which tests are bought", plots.bought(report)))
        figures.append(("The most common paths", plots.paths(report, unit=model.unit)))
    files = []
    for ending in PICTURES:
        files.append(out.with_suffix(ending))
        plots.save(figures[0][1], files[-1])
    blocks: list[Block] = [*(Words(line) for line in describe(model).splitlines()), Code(frontier_table(model))]
    for title, figure in figures:
        blocks += [Heading(title), Picture(title, title, plots.inline(figure))]
    files.append(out.with_suffix(PAGE))
    write_whole(files[-1], html(out.stem, blocks).encode())
    return files
