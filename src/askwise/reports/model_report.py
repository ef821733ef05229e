"""What is said of a model: sentences, and tables as text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from askwise.core.budget import Budget
from askwise.core.measures import Measure
from askwise.core.scoring import RULES
from askwise.evaluation import Estimate, Report
from askwise.frontier.point import LEARNED_STOPPING
from askwise.model.alternatives import all_tests, comparison
from askwise.model.model import LearnedModel
from askwise.reports.pages import Strong, Table
from askwise.tables.external import Recorded
from askwise.texts import give_or_take, printable

AT_ONCE = "decides at once"


def frontier_table(model: LearnedModel) -> str:
    """Text: every kept policy, of which kind it is, and where the model works. What was learned for comes first."""
    followed = {model.blend.first, model.blend.second} if model.blend.share else {model.blend.first}
    name = model.objective
    other = "accuracy" if model.judged_by_loss else "loss"
    head = f"    {'mean cost':>19}  {name:>19}  {other:>19}  {'cases':>8}  kind of policy"
    lines = [head, "    " + "-" * (len(head) - 4 + len(LEARNED_STOPPING) - len("kind of policy"))]
    for i, p in enumerate(model.frontier):
        m, (value, error) = p.measure, learned(model, p.measure)
        beside, off = (m.accuracy, m.accuracy_error) if model.judged_by_loss else (m.loss, m.loss_error)
        figures = _figure(m.cost, m.cost_error, 3), _figure(value, error, 4), _figure(beside, off, 4)
        lines.append(f"{'  > ' if i in followed else '    '}{'  '.join(figures)}  {m.n:>8}  {kind_of(model, i)}")
    lines.append(f"    measured on {model.held_out_cases}; ± is one standard error")
    if model.rule is not None:
        lines.append(f"    it was learned for the {name} of the class probabilities, not for the class that is named")
    if model.weighted:
        loss_scale = "" if name == "loss" else f"; the scale is {model.loss_scale:.4g}, the mean of the largest loss of a case"
        lines.append(f"    it was learned for the {name}{loss_scale}; the accuracy counts all mistakes alike")
    return "\n".join(lines)


def kind_of(model: LearnedModel, i: int) -> str:
    """The kind of a policy of the frontier; the first of them buys nothing."""
    return model.frontier[i].kind if i else AT_ONCE


def comparison_table(model: LearnedModel) -> str:
    """Text: what each kind of policy makes of several amounts of money; empty where there is nothing to compare."""
    table = compared(model)
    if table is None:
        return ""
    rows = [table.head, *table.rows]
    wide = [max(len(row[i]) for row in rows) for i in range(len(table.head))]
    left = len(wide) - 1  # words go from the left
    lines = ["    " + "  ".join(f"{c:{'<' if i == left else '>'}{wide[i]}}" for i, c in enumerate(row)).rstrip() for row in rows]
    return "\n".join([f"{table.title}:", lines[0], "    " + "-" * (max(map(len, lines)) - 4), *lines[1:]])


def compared(model: LearnedModel) -> Table | None:
    """The same as a block of a page; what is used stands out."""
    levels = comparison(model)
    if not levels:
        return None
    unit = f", {printable(model.unit)}" if model.unit else ""
    cases = sorted({m.n for level in levels for m in (*level.best.values(), level.used)})
    title = (
        f"{model.objective.capitalize()} of each kind of policy, by money per case on average, on {amounts(cases)} "
        f"{model.measured_on}; ± is one standard error"
    )
    head = (f"money per case{unit}", *levels[0].best, "used", "which is")
    rows = []
    for level in levels:
        words = {kind: objective_words(model, m) for kind, m in level.best.items()}
        best = [Strong(text) if kind in level.kinds else text for kind, text in words.items()]
        rows.append((f"{level.money:.4g}", *best, objective_words(model, level.used), " and ".join(level.kinds)))
    return Table(title, head, tuple(rows))


def amounts(numbers: list[int]) -> str:
    """1,000 or, where they differ, 1,000 to 2,531."""
    return f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"


def kinds_used(model: LearnedModel) -> str:
    """Which kind of policy the model uses for which money, in a sentence."""
    unit, runs = f" {printable(model.unit)}" if model.unit else "", list[tuple[str, list[float]]]()
    for i, point in enumerate(model.frontier):
        if not runs or runs[-1][0] != kind_of(model, i):
            runs.append((kind_of(model, i), []))
        runs[-1][1].append(point.cost)
    parts = [f"{kind} at {of[0]:.4g}" + (f" to {of[-1]:.4g}" if len(of) > 1 else "") for kind, of in runs]
    between = "; between two of them a mixture" if len(model.frontier) > 1 else ""
    return f"policies by their mean cost{',' if unit else ''}{unit}: {'; '.join(parts)}{between}"


def headline(model: LearnedModel) -> str:
    """What the model is worth, in one sentence, and on which cases that was measured."""

    def right(m: Measure) -> str:
        return percent(m.accuracy, m.accuracy_error)

    here, everything, costs = model.measured, all_tests(model), model.schema.costs
    total, unit = costs.money(costs.total), f" {printable(model.unit)}" if model.unit else ""
    less = everything is not None and round(everything.cost, 2) < round(total, 2)
    had = f" ({everything.cost:.4g} for what is to be had)" if less and everything is not None else ""
    parts = [f"costs {here.cost:.4g}{give_or_take(here.cost_error)}"]
    parts.append(f"is right in {right(here)} of cases" + ("" if everything is None else f" (all tests: {right(everything)})"))
    if model.judged_by_loss:
        lost = "" if everything is None else f" (all tests: {objective_words(model, everything)})"
        parts.append(f"has {model.objective} {objective_words(model, here)}{lost}")
    figures = f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"All tests cost {total:.4g}{unit}{had}; this policy {figures}. Measured on {here.n:,} {model.measured_on}."


def percent(share: float, error: float) -> str:
    """A share with its standard error."""
    return f"{100 * share:.1f} ± {100 * error:.1f} %"


def objective_words(model: LearnedModel, m: Measure) -> str:
    """What training was about, with its standard error: accuracies in per cent."""
    value, error = learned(model, m)
    return f"{value:.4f} ± {error:.4f}" if model.judged_by_loss else percent(value, error)


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
        headline(model),
        f"{schema.n_tests} tests, {total:.4g}{unit} for all of them; classes {', '.join(map(printable, schema.classes))}",
        f"trained {model.facts['seconds']} s for {trained_for} ({model.facts['stopped']})",
        f"works at {model.budget if model.budget != Budget() else 'its cheapest point within one standard error of the best'}: "
        f"expected cost {expected.cost:.4g}{give_or_take(expected.cost_error)}{unit}, {kind} {_objective(model, expected)}",
        f"more than {best.cost:.4g}{unit} per case would not help{within}: {kind} there is {_objective(model, best.measure)}",
        kinds_used(model),
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


def learned(model: LearnedModel, m: Measure) -> tuple[float, float]:
    """What training was about, and its standard error."""
    return model.objective_value(m.loss, m.accuracy), model.objective_value(m.loss_error, m.accuracy_error)


def _objective(model: LearnedModel, m: Measure) -> str:
    """The figure that training was about, with its error and the number of cases."""
    value, error = learned(model, m)
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
        "rule": model.rule,
        "external": model.external.column if isinstance(model.external, Recorded) else None,
        "expected": model.expected,
        "frontier": [point.shown for point in model.frontier],
        "facts": {k: v for k, v in model.facts.items() if k not in ("records", "areas", "usage")},
    }


@dataclass(frozen=True, eq=False)
class MeasuredOn:
    """What a model does on some cases; `words` says which."""

    report: Report
    words: str
    kind: str  # test: none of them had a part in choosing the policies either; validation; or out_of_fold


def results(model: LearnedModel, on: MeasuredOn) -> str:
    """What was measured, in a sentence."""
    report, m, (value, error) = on.report, on.report.measure, learned(model, on.report.measure)
    loss = f"loss {m.loss:.4g}{give_or_take(m.loss_error)}"
    accuracy = f"accuracy {m.accuracy:.4f}{give_or_take(m.accuracy_error)}"
    balanced = f"balanced accuracy {report.balanced_accuracy:.4f}{give_or_take(report.balanced_accuracy_error)}"
    aim = f"mean cost {m.cost:.4g}{give_or_take(m.cost_error)}, {model.objective} {value:.4f}{give_or_take(error)}"
    others = [
        f"{words} {e.value:.4f}{give_or_take(e.error)}" for words, e in probability_figures(report) if words != model.objective
    ]
    return ", ".join([f"on {on.words}: {aim}", accuracy if model.judged_by_loss else loss, balanced, *others])


def probability_figures(report: Report) -> list[tuple[str, Estimate]]:
    """How good the class probabilities were, by name; nothing where they are not known."""
    each = (RULES["log"], report.log_loss), (RULES["brier"], report.brier_score), ("AUROC", report.auroc)
    return [(words, estimate) for words, estimate in each if estimate is not None]


def measured(model: LearnedModel, report: Report) -> dict[str, Any]:
    """What a model came to on some cases, for machines."""
    m = report.measure
    probabilities = {words.lower().replace(" ", "_"): estimate for words, estimate in probability_figures(report)}
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
        **{
            name: figure for words, e in probabilities.items() for name, figure in ((words, e.value), (f"{words}_error", e.error))
        },
    }


def lines_of(figures: dict[str, Any]) -> str:
    """The same for people, a figure a line."""
    values = {name: value for name, value in figures.items() if not name.endswith("_error")}
    return "\n".join(
        f"{name:20} {value:.4g}{give_or_take(figures[f'{name}_error'])}" if isinstance(value, float) else f"{name:20} {value}"
        for name, value in values.items()
    )
