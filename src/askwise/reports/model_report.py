"""What is said of a model: sentences, and tables as text."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from askwise.core.budget import Budget
from askwise.core.measures import Measure
from askwise.core.scoring import RULES
from askwise.evaluation import Estimate, Report
from askwise.frontier.choice import NEAR
from askwise.frontier.point import KINDS, Point, neighbours, told_apart
from askwise.model.alternatives import all_tests, comparison
from askwise.model.model import LearnedModel
from askwise.reports.pages import Strong, Table, as_text
from askwise.reports.training import gain_of_late, rows_used
from askwise.tables.external import Recorded
from askwise.texts import give_or_take, printable


def frontier_table(model: LearnedModel) -> str:
    """Text: every kept policy, of which kind it is, and where the model works. What was learned for comes first."""
    name, lines = model.objective, [as_text(points(model))]
    lines.append(f"    > where the model works; measured on {model.held_out_cases}; ± is one standard error")
    lines += [f"    {more}"] if (more := left_out(model)) else []
    if model.rule is not None:
        lines.append(f"    it was learned for the {name} of the class probabilities, not for the class that is named")
    if model.weighted:
        loss_scale = "" if name == "loss" else f"; the scale is {model.loss_scale:.4g}, the mean of the largest loss of a case"
        lines.append(f"    it was learned for the {name}{loss_scale}; the accuracy counts all mistakes alike")
    return "\n".join(lines)


def points(model: LearnedModel) -> Table:
    """The same as a block of a page."""
    followed = {model.blend.first, model.blend.second} if model.blend.share else {model.blend.first}
    rows = []
    for i in told_points(model):
        m = model.frontier[i].measure
        figures = [
            f"{m.cost:.4g}{give_or_take(m.cost_error)}",
            objective_words(model, m),
            percent(m.accuracy, m.accuracy_error) if model.judged_by_loss else f"{m.loss:.4f} ± {m.loss_error:.4f}",
            f"{m.n:,}",
            model.kind_of(i),
        ]
        rows.append(tuple(map(Strong, figures)) if i in followed else tuple(figures))
    other = "accuracy" if model.judged_by_loss else "loss"
    head = (in_unit("mean cost", model), model.objective, other, "cases", "kind of policy")
    more = left_out(model)
    return Table(f"Points of the line; where the model works is bold{more and f'; {more}'}", head, tuple(rows))


def told_points(model: LearnedModel) -> list[int]:
    """Numbers of the listed points of the frontier: a default fit knows many that cost almost nothing and do the same."""
    used = [model.frontier[i] for i in (model.blend.first, model.blend.second)]
    return told_apart(model.frontier, [*used, model.saturation, enough(model)])


def left_out(model: LearnedModel) -> str:
    """How many points are not listed, in words; empty where all are."""
    n = len(model.frontier) - len(told_points(model))
    return f"{n} more, not listed, differ from a cheaper one by hardly any money and by no more than the ±" if n else ""


def unit_of(model: LearnedModel) -> str:
    """To stand after an amount."""
    return f" {printable(model.unit)}" if model.unit else ""


def in_unit(label: str, model: LearnedModel) -> str:
    """A label with the unit of money, if that has a name."""
    return f"{label},{unit_of(model)}" if model.unit else label


def comparison_table(model: LearnedModel) -> str:
    """Text: what each kind of policy makes of several amounts of money; empty where there is nothing to compare."""
    table = compared(model)
    if table is None:
        return ""
    figures = replace(table, head=table.head[:-1], rows=tuple(row[:-1] for row in table.rows))  # a * says what words say there
    mixed = "a kind may draw one of two policies for each case, by lot, which what is used does only where that is much better"
    return f"{table.title}; {mixed}; * is the kind that is used, where there are two as a mixture:\n{as_text(figures)}"


def compared(model: LearnedModel) -> Table | None:
    """The same as a block of a page; what is used stands out."""
    levels = comparison(model)
    if not levels:
        return None
    cases = sorted({m.n for level in levels for m in (*level.best.values(), level.used)})
    title = (
        f"{capital(model.objective)} of each kind of policy, by the money per case on average{_while_capped(model)}. "
        f"Measured on {amounts(cases)} {model.measured_on}; ± is one standard error"
    )
    lacking = [kind for kind in KINDS if kind not in levels[0].best]
    if lacking and model.budget.hard is not None:
        title += f"; no policy that keeps to this limit is known of the kind {_joined_by_or(lacking)}"
    head = (in_unit("money per case", model), *levels[0].best, "what is used", "which is")
    rows = []
    for level in levels:
        words = {kind: objective_words(model, m) for kind, m in level.best.items()}
        best = [Strong(text) if kind in level.kinds else text for kind, text in words.items()]
        rows.append((f"{level.money:.4g}", *best, objective_words(model, level.used), _mixture(level.kinds)))
    return Table(title, head, tuple(rows))


def _while_capped(model: LearnedModel) -> str:
    """To be said of figures that hold under a hard budget alone; a larger one may help."""
    hard = model.budget.hard
    return "" if hard is None else f" while no case may cost more than {float(hard):g}{unit_of(model)}"


def _joined_by_or(words: list[str]) -> str:
    """Quoted, since they may have commas."""
    return " or ".join(f"'{word}'" for word in words)


def _mixture(kinds: tuple[str, ...]) -> str:
    return kinds[0] if len(kinds) == 1 else f"a mixture of {' and '.join(kinds)}"


def capital(words: str) -> str:
    """The beginning of a sentence; names in it stay as they are."""
    return f"{words[:1].upper()}{words[1:]}"


def amounts(numbers: list[int]) -> str:
    """1,000 or, where they differ, 1,000 to 2,531."""
    return f"{numbers[0]:,}" if len(numbers) == 1 else f"{numbers[0]:,} to {numbers[-1]:,}"


def kinds_used(model: LearnedModel) -> str:
    """Which kind of policy the model uses for which money, in a sentence about the policies that are listed."""
    runs = list[tuple[str, list[float]]]()
    for i in told_points(model):
        if not runs or runs[-1][0] != model.kind_of(i):
            runs.append((model.kind_of(i), []))
        runs[-1][1].append(model.frontier[i].cost)
    parts = [f"{kind} at {of[0]:.4g}" + (f" to {of[-1]:.4g}" if of[-1] > of[0] else "") for kind, of in runs]
    close = neighbours(model.frontier) if model.family is not None else []
    between = "; an average budget between two of a kind that cost nearly the same finds one of its own" if close else ""
    return f"{in_unit('policies by their mean cost', model)}: {'; '.join(parts)}{between}"


def headline(model: LearnedModel) -> str:
    """What the model is worth, in one sentence, and on which cases that was measured."""

    def right(m: Measure) -> str:
        return percent(m.accuracy, m.accuracy_error)

    here, everything, costs = model.measured, all_tests(model), model.schema.costs
    total = costs.money(costs.total)
    less = everything is not None and round(everything.cost, 2) < round(total, 2)
    had = f" ({everything.cost:.4g} on average, since some are missing)" if less and everything is not None else ""
    parts = [f"costs {here.cost:.4g}{give_or_take(here.cost_error)} on average"]
    parts.append(f"is right in {right(here)} of cases" + ("" if everything is None else f" (all tests: {right(everything)})"))
    if model.judged_by_loss:
        lost = "" if everything is None else f" (all tests: {objective_words(model, everything)})"
        parts.append(f"has {model.objective} {objective_words(model, here)}{lost}")
    figures = f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f"All tests cost {total:.4g}{unit_of(model)}{had}; this policy {figures}. Measured on {here.n:,} {model.measured_on}."


def percent(share: float, error: float) -> str:
    """A share with its standard error."""
    return f"{100 * share:.1f} ± {100 * error:.1f} %"


def objective_words(model: LearnedModel, m: Measure) -> str:
    """What training was about, with its standard error: accuracies in per cent."""
    value, error = learned(model, m)
    return f"{value:.4f} ± {error:.4f}" if model.judged_by_loss else percent(value, error)


def describe(model: LearnedModel) -> str:
    """Some sentences about a model."""
    schema, expected = model.schema, model.measured
    total, unit = schema.costs.money(schema.costs.total), unit_of(model)
    trained_for = "every amount of money" if model.trained_for == Budget() else model.trained_for

    def reached(m: Measure) -> str:
        return f"{model.objective} {objective_words(model, m)}"

    lines = [
        headline(model),
        f"{len(schema.offered)} tests, {total:.4g}{unit} for all of them; classes {', '.join(map(printable, schema.classes))}",
        f"trained {model.facts['seconds']} s for {trained_for} ({model.facts['stopped']})",
        *([rows] if (rows := rows_used(model)) else []),
        *([gained] if (gained := gain_of_late(model)) else []),
        f"works at {model.budget if model.budget != Budget() else 'its cheapest point within one standard error of the best'}: "
        f"expected cost {expected.cost:.4g}{give_or_take(expected.cost_error)}{unit}, {reached(expected)}",
        *([by_lot] if (by_lot := lottery(model)) else []),
        *([left] if (left := left_over(model)) else []),
        best_measured(model),
        kinds_used(model),
    ]
    if schema.other_decisions:
        lines.append(
            f"may also decide: {', '.join(f'{printable(n)} for {c:.4g}{unit}' for n, c in decision_costs(model).items())}"
        )
    if model.schema.tells_gaps:
        lines.append(gaps_used(model))
    if isinstance(model.external, Recorded):
        lines.append(f"may ask the existing classifier, whose answers are in the column {model.external.column!r}")
    return "\n".join(lines)


def decision_costs(model: LearnedModel) -> dict[str, float]:
    """What each decision that is not a class costs."""
    costs = model.schema.costs
    return dict(zip(model.schema.other_decisions, costs.money(costs.decisions).tolist(), strict=True))


def gaps_used(model: LearnedModel) -> str:
    """What a model that uses what is missing knows of each case, in a sentence."""
    names = [printable(name) for name in model.form.tells]
    shown = f"{', '.join(names[:8])}{f' and {len(names) - 8} more' if len(names) > 8 else ''}"
    return f"is told from the start, at no cost, which of these tests a case lacks: {shown}"


def lottery(model: LearnedModel) -> str:
    """Where one of two policies is drawn for each case, which, in a sentence; empty elsewhere."""
    share = model.blend.drawn
    if not share:
        return ""
    cheap, dear = (f"{point.cost:.4g}{unit_of(model)}" for point in model.followed)
    others = "" if model.budget.mixing else "; no single policy that costs about as much is as good"
    dearer = f"by lot, {percent_of(share)} of cases follow a policy that costs {dear} on average"
    return f"{dearer}, the others one that costs {cheap}{others}"


def percent_of(share: float) -> str:
    """A share that is neither nothing nor all."""
    return "under 1 %" if share < 0.005 else "over 99 %" if share > 0.995 else f"{100 * share:.0f} %"


def left_over(model: LearnedModel) -> str | None:
    """How little of an average budget is spent where a dearer policy is better, and how to spend it; None where it is spent."""
    b, here, unit = model.budget.average, model.measured, unit_of(model)
    if b is None or model.budget.targets or model.budget.confidence is not None or here.cost >= (1 - NEAR) * float(b):
        return None
    dearer = next((p for p in model.frontier if p.cost > float(b)), None)  # they are by rising cost
    if dearer is None:
        return None
    words = f"of {float(b):.4g}{unit} per case only {here.cost:.4g} is spent: the next better policy costs {dearer.cost:.4g}"
    if model.budget.mixing is False:
        return words
    drawn = replace(model, budget=replace(model.budget, mixing=True)).measured
    reached = f"{model.objective} {objective_words(model, drawn)}"
    return f"{words}; --mixing, mixing=True in Python, draws one of two policies for each case: {reached}"


def enough(model: LearnedModel) -> Point:
    """The cheapest point that is as good as the best, as far as one can tell."""
    best = model.saturation
    return next(p for p in model.frontier if p.loss <= best.loss + best.measure.loss_error)  # they are by rising cost


def best_measured(model: LearnedModel) -> str:
    """Beyond which money nothing better was measured, and how little of it is as good as that as far as one can tell. The ± is
    that of each figure; how sure differences are is not known, though they were measured on the same cases."""
    best, near = model.saturation, enough(model)
    if best is model.frontier[0]:
        return f"no policy that buys anything was better than deciding at once{_while_capped(model)}"
    figures = f"{model.objective} {objective_words(model, best.measure)}"
    words = f"nothing dearer was better than {best.cost:.4g}{unit_of(model)} per case{_while_capped(model)}: {figures}"
    if near is best:
        return words
    return f"{words}; {near.cost:.4g}{unit_of(model)} is enough to come within that ±: {objective_words(model, near.measure)}"


def one_line(model: LearnedModel) -> str:
    """What `repr` says."""
    schema, expected = model.schema, model.expected
    kind, value = model.objective, model.objective_value(expected["loss"], expected["accuracy"])
    classes = ", ".join(printable(c)[:40] for c in schema.classes[:5]) + (", ..." if schema.n_classes > 5 else "")
    total = f"{schema.costs.money(schema.costs.total):.4g} {printable(model.unit)[:40]}".rstrip()
    tests = f"{len(schema.offered)} tests, {total} for all"
    at = "" if model.budget == Budget() else f" at {model.budget}"
    return f"Model({tests}; classes {classes};{at} cost {expected['cost']:.4g}, {kind} {value:.4f})"


def learned(model: LearnedModel, m: Measure) -> tuple[float, float]:
    """What training was about, and its standard error."""
    return model.objective_value(m.loss, m.accuracy), model.objective_value(m.loss_error, m.accuracy_error)


def card(model: LearnedModel) -> dict[str, Any]:
    """The same for machines."""
    costs = model.schema.costs
    return {
        "tests": dict(zip(model.schema.offered, costs.money(costs.alone).tolist(), strict=False)),
        "classes": list(model.schema.classes),
        "other_decisions": decision_costs(model),
        "total_cost": costs.money(costs.total),
        "unit": model.unit,
        "trained_for": str(model.trained_for),
        "budget": str(model.budget),
        "rule": model.rule,
        "missing": list(model.form.tells),
        "external": model.external.column if isinstance(model.external, Recorded) else None,
        "expected": model.expected,
        "frontier": model.frontier_figures,
        "facts": {k: v for k, v in model.facts.items() if k not in ("records", "areas", "usage", "fit_rows")},
    }


@dataclass(frozen=True, eq=False)
class MeasuredOn:
    """What a model does on some cases; `words` says which."""

    report: Report
    words: str
    kind: str  # test: none of them had a part in choosing the policies either; validation; or out_of_fold


def results(model: LearnedModel, on: MeasuredOn) -> str:
    """What was measured, in a sentence or two."""
    units = {"mean cost": unit_of(model)}
    figures = ", ".join(f"{name} {words}{units.get(name, '')}" for name, words in result_words(model, on.report).items())
    note = cost_note(model, on)
    return f"on {on.words}: {figures}{f'. {note}' if note else ''}"


def cost_note(model: LearnedModel, on: MeasuredOn) -> str:
    """Why figures on held-out cases are not the expected ones; empty where both are told alike, or where other cases are meant. A
    stack decides a held-out case by the members alone that have not learned from it, and what it expects is steadied."""
    here, expected, unit, notes = on.report.measure, model.measured, unit_of(model), list[str]()
    if on.kind != "out_of_fold":
        return ""
    if f"{here.cost:.4g}" != f"{expected.cost:.4g}":
        notes.append(
            f"The mean cost of {here.cost:.4g}{unit} is that of the parts of the model which had not learned from a case; "
            f"the whole model, which is used, is expected to cost {expected.cost:.4g}{unit}."
        )
    came, promised = (objective_words(model, m).partition(" ±")[0] for m in (here, expected))
    if came != promised:
        came, promised = (words if model.judged_by_loss else f"{words} %" for words in (came, promised))
        notes.append(
            f"The {model.objective} of {came} is what this policy came to on these cases; the {promised} that is expected "
            "is steadied by all others that were measured there, since the one that is chosen may be a lucky one."
        )
    return " ".join(notes)


def result_words(model: LearnedModel, report: Report) -> dict[str, str]:
    """The same by name; what training was about comes after the cost."""
    m, balanced = report.measure, (report.balanced_accuracy, report.balanced_accuracy_error)
    others = {words: f"{e.value:.4f} ± {e.error:.4f}" for words, e in probability_figures(report)}
    return {
        "mean cost": f"{m.cost:.4g}{give_or_take(m.cost_error)}",
        model.objective: objective_words(model, m),
        "accuracy": percent(m.accuracy, m.accuracy_error),
        "balanced accuracy": percent(*balanced),
        **{words: figure for words, figure in others.items() if words != model.objective},
    }


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
        "unit": model.unit,
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
    values = {name: value for name, value in figures.items() if not name.endswith("_error") and name != "unit"}
    units = {"cost": f" {printable(figures['unit'])}".rstrip()}
    return "\n".join(
        f"{name:20} {value:.4g}{give_or_take(figures[f'{name}_error'])}{units.get(name, '')}"
        if isinstance(value, float)
        else f"{name:20} {value}"
        for name, value in values.items()
    )
