"""What a budget has to reach and what was measured of it, and what each recall of a class costs, as blocks of a page."""

from __future__ import annotations

from askwise.model.model import LearnedModel
from askwise.model.recalls import ClassRecalls, MeasuredFigure, RecallStep, measured_classes, measured_targets, recalls
from askwise.reports.model_report import in_unit, percent, unit_of
from askwise.reports.pages import Table
from askwise.texts import give_or_take, printable


def targets_table(model: LearnedModel) -> Table | None:
    """Of each target and, where the budget weighs classes, of each class; None where it asks for neither."""
    if not model.budget.targets and model.budget.class_weights is None:
        return None
    rows = [(printable(target), *_words(figure, target.figure == "loss")) for target, figure in measured_targets(model)]
    if model.budget.class_weights is not None:
        for name, *figures in measured_classes(model):
            rows += [
                (f"{word} of {printable(name)}", *_words(figure))
                for word, figure in zip(("recall", "specificity"), figures, strict=True)
            ]
    title = f"What was measured on {model.held_out_cases}, where the model works"
    return Table(title, ("target or figure", "measured", "95 % interval", "cases"), tuple(rows))


def recalls_table(model: LearnedModel) -> Table | None:
    """What each recall costs: of each policy, the most that can be asked for. None where cases were not counted by class."""
    rows = [_row(each, step) for each in recalls(model) for step in last_of_each(each)]
    if not rows:
        return None
    head = ("class", "recall of at least", in_unit("mean cost", model), "recall", "95 % interval", "specificity", "accuracy")
    return Table("The cheapest measured policies by the recall that they reach", head, tuple(rows))


def recalls_words(model: LearnedModel) -> str:
    """How to read the table, and where recalls end."""
    ends = [
        f"A recall of {printable(each.name)} above {100 * each.most:.4g} % cannot be had; so much costs "
        f"{each.steps[-1].measure.cost:.4g}{unit_of(model)} per case."
        for each in recalls(model)
        if each.most < 1
    ]
    trades = [printable(each.name) for each in recalls(model) if each.trades]
    ends += [f"No case of {name} is found so; there it has the most specificity that goes with it instead." for name in trades]
    rule = "Each is the cheapest that reaches its recall where cases lose no more than if all were decided at once."
    return " ".join([f"Measured on {model.held_out_cases}. {rule}", *ends])


def last_of_each(of: ClassRecalls) -> list[RecallStep]:
    """Of steps that follow the same policy the last."""
    following = (*of.steps[1:], None)
    return [step for step, after in zip(of.steps, following, strict=True) if after is None or after.measure is not step.measure]


def _row(of: ClassRecalls, step: RecallStep) -> tuple[str, ...]:
    m = step.measure
    cost, right = f"{m.cost:.4g}{give_or_take(m.cost_error)}", percent(m.accuracy, m.accuracy_error)
    name = f"{printable(of.name)} ({of.cases:,.0f})"
    return (name, _share(step.asked), cost, *_words(step.recall)[:2], _share(step.specificity.value), right)


def _words(figure: MeasuredFigure, loss: bool = False) -> tuple[str, str, str]:
    value, low, high = (f"{each:.4f}" if loss else _share(each) for each in (figure.value, figure.low, figure.high))
    return value, f"{low} to {high}", f"{figure.cases:,.0f}"


def _share(value: float) -> str:
    return f"{100 * value:.1f} %"
