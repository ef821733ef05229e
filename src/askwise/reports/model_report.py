"""What is said and shown of a model: sentences, a table, pictures, and a page of all of them that opens offline."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askwise import plots
from askwise.core.budget import Budget
from askwise.core.measures import Measure
from askwise.errors import AskwiseError
from askwise.evaluation import Report
from askwise.files import write_whole
from askwise.model.model import LearnedModel
from askwise.model.purchases import usage
from askwise.reports.pages import Block, Code, Heading, Picture, Words, fragment, html
from askwise.tables.external import Recorded
from askwise.texts import encoded, give_or_take, printable

PICTURES, PAGE = (".png", ".svg"), ".html"  # endings of what is written beside a model


def frontier_table(model: LearnedModel) -> str:
    """Text: every kept policy, and where the model works. What was learned for comes first."""
    followed = {model.blend.first, model.blend.second} if model.blend.share else {model.blend.first}
    name = model.objective
    other = "accuracy" if model.weighted else "loss"
    head = f"    {'mean cost':>19}  {name:>19}  {other:>19}  {'cases':>8}"
    lines = [head, "    " + "-" * (len(head) - 4)]
    for i, p in enumerate(model.frontier):
        m, (value, error) = p.measure, _learned(model, p.measure)
        beside, off = (m.accuracy, m.accuracy_error) if model.weighted else (m.loss, m.loss_error)
        figures = _figure(m.cost, m.cost_error, 3), _figure(value, error, 4), _figure(beside, off, 4)
        lines.append(f"{'  > ' if i in followed else '    '}{'  '.join(figures)}  {m.n:>8}")
    lines.append(f"    measured on {model.held_out_cases}; ± is one standard error")
    if model.weighted:
        loss_scale = "" if name == "loss" else f"; the scale is {model.loss_scale:.4g}, the mean of the largest loss of a case"
        lines.append(f"    it was learned for the {name}{loss_scale}; the accuracy counts all mistakes alike")
    return "\n".join(lines)


def describe(model: LearnedModel) -> str:
    """Some sentences about a model."""
    schema, expected, best = model.schema, model.measured, model.saturation
    total = schema.costs.money(schema.costs.total)
    unit = f" {printable(model.unit)}" if model.unit else ""
    kind = model.objective
    trained_for = "every amount of money" if model.trained_for == Budget() else model.trained_for
    hard = model.budget.hard  # a larger one may help
    within = "" if hard is None else f" while no case may cost more than {float(hard):g}{unit}"
    lines = [
        f"{schema.n_tests} tests, {total:.4g}{unit} for all of them; classes {', '.join(map(printable, schema.classes))}",
        f"trained {model.facts['seconds']} s for {trained_for} ({model.facts['stopped']})",
        f"works at {model.budget if model.budget != Budget() else 'its cheapest point within one standard error of the best'}: "
        f"expected cost {expected.cost:.4g}{give_or_take(expected.cost_error)}{unit}, {kind} {_objective(model, expected)}",
        f"more than {best.cost:.4g}{unit} per case would not help{within}: {kind} there is {_objective(model, best.measure)}",
    ]
    if isinstance(model.external, Recorded):
        lines.append(f"may ask the existing classifier, whose answers are in the column {model.external.column!r}")
    return "\n".join(lines)


def one_line(model: LearnedModel) -> str:
    """What `repr` says."""
    schema, expected = model.schema, model.expected
    kind, value = model.objective, model.objective_value(expected["loss"], expected["accuracy"])
    classes = ", ".join(printable(c)[:40] for c in schema.classes[:5]) + (", ..." if schema.n_classes > 5 else "")
    total = f"{schema.costs.money(schema.costs.total):.4g} {printable(model.unit)[:40]}".rstrip()
    at = "" if model.budget == Budget() else f" at {model.budget}"
    return (
        f"Model({schema.n_tests} tests, {total} for all; classes {classes};{at} cost {expected['cost']:.4g}, {kind} {value:.4f})"
    )


def in_notebook(model: LearnedModel) -> str:
    """HTML for a notebook: sentences, the frontier, drawn where matplotlib is installed, and its points."""
    blocks: list[Block] = [Words(line) for line in describe(model).splitlines()]
    try:
        title = "What each amount of money buys"
        blocks.append(Picture(title, title, plots.inline(plots.frontier(model))))
    except AskwiseError:  # it is not
        pass
    return fragment([*blocks, Code(frontier_table(model))], f"askwise-{model.fingerprint}")


def _learned(model: LearnedModel, m: Measure) -> tuple[float, float]:
    """What training was about, and its standard error."""
    return model.objective_value(m.loss, m.accuracy), model.objective_value(m.loss_error, m.accuracy_error)


def _objective(model: LearnedModel, m: Measure) -> str:
    """The figure that training was about, with its error and the number of cases."""
    value, error = _learned(model, m)
    return f"{value:.4f}{give_or_take(error)} on {m.n} {model.measured_on}"


def _figure(value: float, error: float, digits: int) -> str:
    """A figure of the table, with its error."""
    return f"{value:9.{digits}f} ±{error:8.{digits}f}"


def card(model: LearnedModel) -> dict[str, Any]:
    """The same for machines."""
    costs = model.schema.costs
    return {
        "tests": dict(zip(model.schema.tests, costs.money(costs.alone).tolist(), strict=True)),
        "classes": list(model.schema.classes),
        "total_cost": costs.money(costs.total),
        "unit": model.unit,
        "trained_for": str(model.trained_for),
        "budget": str(model.budget),
        "external": model.external.column if isinstance(model.external, Recorded) else None,
        "expected": model.expected,
        "frontier": [point.shown for point in model.frontier],
        "facts": {k: v for k, v in model.facts.items() if k not in ("records", "areas", "usage")},
    }


def draw_frontier(model: LearnedModel, path: Path) -> None:
    plots.save(plots.frontier(model), path)


@dataclass(frozen=True, eq=False)
class MeasuredOn:
    """What a model does on some cases; `words` says which."""

    report: Report
    words: str
    kind: str  # test: none of them had a part in choosing the policies either; validation; or out_of_fold


def results(model: LearnedModel, on: MeasuredOn) -> str:
    """What was measured, in a sentence."""
    report, m, (value, error) = on.report, on.report.measure, _learned(model, on.report.measure)
    loss = f"loss {m.loss:.4g}{give_or_take(m.loss_error)}"
    accuracy = f"accuracy {m.accuracy:.4f}{give_or_take(m.accuracy_error)}"
    balanced = f"balanced accuracy {report.balanced_accuracy:.4f}{give_or_take(report.balanced_accuracy_error)}"
    learned = f"mean cost {m.cost:.4g}{give_or_take(m.cost_error)}, {model.objective} {value:.4f}{give_or_take(error)}"
    return f"on {on.words}: {learned}, {accuracy if model.weighted else loss}, {balanced}"


def measured(model: LearnedModel, report: Report) -> dict[str, Any]:
    """What a model came to on some cases, for machines."""
    m = report.measure
    return {
        "cases": m.n,
        "budget": str(model.budget),
        "cost": m.cost,
        "cost_error": m.cost_error,
        "accuracy": m.accuracy,
        "accuracy_error": m.accuracy_error,
        "balanced_accuracy": report.balanced_accuracy,
        "balanced_accuracy_error": report.balanced_accuracy_error,
        "loss": m.loss,
        "loss_error": m.loss_error,
    }


def lines_of(figures: dict[str, Any]) -> str:
    """The same for people, a figure a line."""
    values = {name: value for name, value in figures.items() if not name.endswith("_error")}
    return "\n".join(
        f"{name:20} {value:.4g}{give_or_take(figures[f'{name}_error'])}" if isinstance(value, float) else f"{name:20} {value}"
        for name, value in values.items()
    )


def beside(out: Path) -> list[Path]:
    """What `write_pictures` writes."""
    return [out.with_suffix(ending) for ending in (*PICTURES, PAGE)]


def write_pictures(model: LearnedModel, out: Path, on: MeasuredOn | None) -> list[Path]:
    """The curve as PNG and SVG, and a page with all pictures that opens offline; without cases, from what the fit recorded."""
    curve = plots.frontier(model, on.report.problem if on is not None and on.kind == "test" else None)
    figures: list[tuple[str, Any]] = [("What each amount of money buys", curve)]
    if on is not None or usage(model) is not None:
        of = model if on is None else on.report
        figures.append(("Which tests are bought", plots.bought(of)))
        figures.append(("The most common paths", plots.paths(of, unit=model.unit)))
    *pictures, page = beside(out)
    for path in pictures:
        plots.save(curve, path)
    blocks: list[Block] = [*(Words(line) for line in describe(model).splitlines()), Code(frontier_table(model))]
    if on is not None:
        blocks += [Heading("Results"), Words(f"O{results(model, on)[1:]}.")]
    for title, figure in figures:
        blocks += [Heading(title), Picture(title, title, plots.inline(figure))]
    write_whole(page, encoded(html(out.stem, blocks)))
    return [*pictures, page]
