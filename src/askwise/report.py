"""What is said and shown of a model: sentences, a table, pictures, and a page of all of them that opens offline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askwise.core.budget import Budget
from askwise.data.external import Recorded
from askwise.errors import AskwiseError
from askwise.evaluate import Report
from askwise.files import write_whole
from askwise.model import Model
from askwise.pages import Block, Code, Heading, Picture, Words, fragment, html
from askwise.texts import printable
from askwise.usage import learned_for, usage

PICTURES, PAGE = (".png", ".svg"), ".html"  # endings of what is written beside a model


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
    unit = f" {printable(model.unit)}" if model.unit else ""
    kind, here = learned_for(model, expected["loss"], expected["accuracy"])
    there = learned_for(model, best.loss, best.accuracy)[1]
    lines = [
        f"{schema.n_tests} tests, {total:.4g}{unit} for all of them; classes {', '.join(map(printable, schema.classes))}",
        f"trained {model.facts['seconds']} s for {_words(model.trained_for)} ({model.facts['stopped']})",
        f"works at {model.budget if model.budget != Budget() else 'its cheapest point within one standard error of the best'}: "
        f"expected cost {expected['cost']:.4g}{unit}, {kind} {here:.4f} on validation cases",
        f"more than {best.cost:.4g}{unit} per case would not help: {kind} there is {there:.4f} on validation cases",
    ]
    if isinstance(model.external, Recorded):
        lines.append(f"may ask the existing classifier, whose answers are in the column {model.external.column!r}")
    return "\n".join(lines)


def one_line(model: Model) -> str:
    """What `repr` says."""
    schema, expected = model.schema, model.expected
    kind, value = learned_for(model, expected["loss"], expected["accuracy"])
    classes = ", ".join(printable(c)[:40] for c in schema.classes[:5]) + (", ..." if schema.n_classes > 5 else "")
    total = f"{schema.prices.money(schema.prices.total):.4g} {printable(model.unit)[:40]}".rstrip()
    at = "" if model.budget == Budget() else f" at {model.budget}"
    return (
        f"Model({schema.n_tests} tests, {total} for all; classes {classes};{at} cost {expected['cost']:.4g}, {kind} {value:.4f})"
    )


def in_notebook(model: Model) -> str:
    """HTML for a notebook: sentences, the frontier, drawn where matplotlib is installed, and its points."""
    blocks: list[Block] = [Words(line) for line in describe(model).splitlines()]
    try:
        from askwise import plots

        title = "What each amount of money buys"
        blocks.append(Picture(title, title, plots.inline(plots.frontier(model))))
    except AskwiseError:  # it is not
        pass
    return fragment([*blocks, Code(frontier_table(model))], f"askwise-{model.fingerprint}")


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

    plots.save(plots.frontier(model), path)


@dataclass(frozen=True, eq=False)
class Held:
    """What a model does on cases that it was not trained on."""

    report: Report
    found: dict[str, Any]  # what that comes to
    words: str  # which cases these are
    test: bool  # none of them had a part in choosing the policies either


def results(model: Model, held: Held) -> str:
    """What was measured, in a sentence."""
    found = held.found
    kind, value = learned_for(model, found["loss"], found["accuracy"])
    beside = f"accuracy {found['accuracy']:.4f}" if model.weighted else f"loss {found['loss']:.4g}"
    return (f"on {held.words}: mean cost {found['cost']:.4g}, {kind} {value:.4f}, {beside}, "
            f"balanced accuracy {found['balanced_accuracy']:.4f}")  # fmt: skip


def beside(out: Path) -> list[Path]:
    """What `write_pictures` writes."""
    return [out.with_suffix(ending) for ending in (*PICTURES, PAGE)]


def write_pictures(model: Model, out: Path, held: Held | None) -> list[Path]:
    """The curve as PNG and SVG, and a page with all pictures that opens offline; without cases, from what the fit recorded."""
    from askwise import plots

    curve = plots.frontier(model, held.report.problem if held is not None and held.test else None)
    figures: list[tuple[str, Any]] = [("What each amount of money buys", curve)]
    if held is not None or usage(model) is not None:
        of = model if held is None else held.report
        figures.append(("Which tests are bought", plots.bought(of)))
        figures.append(("The most common paths", plots.paths(of, unit=model.unit)))
    *pictures, page = beside(out)
    for path in pictures:
        plots.save(curve, path)
    blocks: list[Block] = [*(Words(line) for line in describe(model).splitlines()), Code(frontier_table(model))]
    if held is not None:
        blocks += [Heading("Results"), Words(f"O{results(model, held)[1:]}.")]
    for title, figure in figures:
        blocks += [Heading(title), Picture(title, title, plots.inline(figure))]
    write_whole(page, html(out.stem, blocks).encode())
    return [*pictures, page]
