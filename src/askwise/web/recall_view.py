"""The slider for the recall of a class: what each of its positions comes to, in words."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from askwise.model.model import LearnedModel
from askwise.model.recalls import ClassRecalls, RecallStep, recall_budget, recalls
from askwise.web.view import errors, money, percent

NO_MORE_LOST = "cases lose no more than if all were decided at once"


def recall_view(model: LearnedModel, of: int | None, at: int | None) -> dict[str, Any] | None:
    """The slider at a position; that of a class ends where no more can be had. None: at the recall that the budget asks for or,
    if there is none, at the most of the rarest class. Nothing where cases were not counted class by class."""
    classes, words, names = recalls(model), recall_words(model), model.schema.classes
    if not classes:
        return None
    asked = {names[t.class_of(names)]: t.value for t in model.budget.targets if t.figure == "recall"}
    of = next((i for i, each in enumerate(classes) if each.name in asked), 0) if of is None else min(of, len(classes) - 1)
    last, least = len(words[of]) - 1, asked.get(classes[of].name, 1.0)
    at = next((i for i, step in enumerate(classes[of].steps) if step.asked >= least), last) if at is None else min(at, last)
    options = [(str(each.name), f"{each.cases:,.0f}") for each in classes]
    return {
        "classes": options,
        "words": words,
        "of": of,
        "at": at,
        "last": last,
        "n": classes[of].steps[at].measure.n,
        "here": words[of][at],
    }


@lru_cache(maxsize=64)
def recall_words(model: LearnedModel) -> list[list[dict[str, str]]]:
    """Of each class and each position."""
    return [[_words(model, each, step) for step in each.steps] for each in recalls(model)]


def _words(model: LearnedModel, of: ClassRecalls, step: RecallStep) -> dict[str, str]:
    low, high = percent(step.recall.low), percent(step.recall.high)
    return {
        "asked": percent(step.asked),
        "cost": money(step.measure.cost, model.unit, about=True),
        "cost-error": errors(step.measure, model.unit)["cost_error"],
        "recall": percent(step.recall.value),
        "interval": f"({low} to {high})",
        "specificity": percent(step.specificity.value),
        "accuracy": percent(step.measure.accuracy),
        "budget": str(recall_budget(model, of.name, step)),
        "rule": "with the most specificity that goes with it" if of.trades else f"where {NO_MORE_LOST}",
        "end": _end(of),
    }


def _end(of: ClassRecalls) -> str:
    if of.trades:
        none = f"No case of {of.name} is found where {NO_MORE_LOST}, so here they lose more."
        more = f" The slider ends at {percent(of.most)}: more are found only by calling all cases that."
        return none if of.most >= 1 else none + more
    if of.most >= 1:
        return ""
    return f"The slider ends at {percent(of.most)}: a higher recall of {of.name} cannot be had where {NO_MORE_LOST}."
