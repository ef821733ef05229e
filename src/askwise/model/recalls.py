"""What was measured of targets, and what each recall of a class costs, from what a fit has counted; nothing is run for it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Doubles
from askwise.core.budget import Budget
from askwise.core.measures import Measure
from askwise.core.shares import Z, wilson
from askwise.core.target import Target, class_number
from askwise.frontier.point import Point
from askwise.frontier.targets import Judge
from askwise.model import targeting
from askwise.model.model import LearnedModel

ASKED = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.92, 0.94, 0.95, 0.96, 0.97, 0.98, 0.99, 1.0)
MOST_CLASSES = 8  # of more than these, the rarest are told about


class MeasuredFigure(NamedTuple):
    """What was measured, of how many cases, and its 95 % interval."""

    value: float
    cases: float
    low: float
    high: float

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "cases": self.cases, "interval": [self.low, self.high]}


@dataclass(frozen=True)
class RecallStep:
    """The cheapest policy that reaches a recall."""

    asked: float
    measure: Measure
    recall: MeasuredFigure
    specificity: MeasuredFigure
    beside: float | None = None  # the specificity that is asked for beside it; None: cases lose no more than if decided at once

    def to_dict(self) -> dict[str, Any]:
        figures = {"recall": self.recall.to_dict(), "specificity": self.specificity.to_dict()}
        return {"asked": self.asked, "specificity_asked": self.beside, **self.measure.to_dict(), **figures}


@dataclass(frozen=True)
class ClassRecalls:
    """What each recall of a class costs, up to the most that can be had."""

    name: Any
    steps: tuple[RecallStep, ...]

    @property
    def cases(self) -> float:
        return self.steps[0].recall.cases

    @property
    def trades(self) -> bool:
        """No case of the class is found where cases lose no more than if all were decided at once, as is common of rare classes:
        then each recall has the most specificity that goes with it, and they lose more."""
        return self.steps[0].beside is not None

    @property
    def most(self) -> float:
        """The most that can be asked for."""
        return self.steps[-1].asked

    def to_dict(self) -> dict[str, Any]:
        return {"class": self.name, "cases": self.cases, "most": self.most, "steps": [step.to_dict() for step in self.steps]}


@lru_cache(maxsize=64)
def recalls(model: LearnedModel) -> tuple[ClassRecalls, ...]:
    """Of each class, the rarest first; nothing where cases were not counted class by class. The hard budget and the class weights
    of the model hold, and what `AtLeast(recall=...)` alone owes to the others; but see `ClassRecalls.trades`."""
    points, classes = model.targeted, model.schema.classes
    if not points or points[0].counts is None:
        return ()
    judge = Judge(classes, model.losses, model.rule)
    kept = targeting.within(points, Budget(hard=model.budget.hard), model.schema.costs, model.family)
    cases = points[0].counts.sum(1) if points[0].cases is None else points[0].cases
    rarest = [int(y) for y in np.argsort(cases, kind="stable") if cases[y] > 0][:MOST_CLASSES]

    def step(name: Any, asked: float, point: Point, beside: float | None = None) -> RecallStep:
        assert point.counts is not None
        return RecallStep(asked, point.measure, *of_class(model, point.counts, name, point.cases), beside)

    measured = []
    for name in (classes[y] for y in rarest):
        menu = judge.menu(Target("recall", 1.0, name), ASKED, points, kept)
        steps = [step(name, asked, points[i]) for asked, i in menu]
        if steps[-1].asked == 0:
            steps = [step(name, asked, points[i], beside) for asked, beside, i in judge.traded(name, ASKED, points, kept)]
        measured += [ClassRecalls(name, tuple(steps))] if steps else []  # nothing finds any
    return tuple(measured)


def of_class(
    model: LearnedModel, counts: Doubles, name: Any, cases: Doubles | None = None
) -> tuple[MeasuredFigure, MeasuredFigure]:
    """Recall and specificity of a class, by counts (K, D); cases: K, see `askwise.core.target.worth`."""
    recall, specificity = (_share(Target(figure, 1.0, name), model, counts, cases) for figure in ("recall", "specificity"))
    return recall, specificity


def for_machines(model: LearnedModel) -> dict[str, Any]:
    """What the budget says of classes, what was measured of it, and what each recall of a class costs. Classes are named as in
    all else that is said of them: whoever asked may have had texts only."""
    classes = model.schema.classes

    def of(name: Any) -> Any:
        return None if name is None else classes[class_number(name, classes, str(model.budget))]

    measured = measured_targets(model)
    return {
        "targets": [{"target": str(t), **t.to_dict(), "of": of(t.of), "measured": m.to_dict()} for t, m in measured],
        "class_weights": [{"class": of(name), "weight": weight} for name, weight in model.budget.class_weights or ()],
        "by_class": [
            {"class": name, "recall": recall.to_dict(), "specificity": specificity.to_dict()}
            for name, recall, specificity in measured_classes(model)
        ],
        "recalls": [each.to_dict() for each in recalls(model)],
    }


def measured_targets(model: LearnedModel) -> list[tuple[Target, MeasuredFigure]]:
    """What the budget has to reach, and what was measured of it."""
    judge, point = Judge(model.schema.classes, model.losses, model.rule), model.followed[0]
    measured = []
    for target in model.budget.targets:
        value, cases = judge.figure(target, point)[:2]
        if target.figure == "loss":
            error = Z * point.measure.loss_error
            measured.append((target, MeasuredFigure(value, cases, max(value - error, 0.0), value + error)))
        else:
            measured.append((target, MeasuredFigure(value, cases, *_interval(value, cases))))
    return measured


def measured_classes(model: LearnedModel) -> list[tuple[Any, MeasuredFigure, MeasuredFigure]]:
    """Recall and specificity of each class where the model works; nothing where the cases of what it follows were not counted."""
    first, second = (model.frontier[i].counts for i in (model.blend.first, model.blend.second))
    if first is None or second is None:
        return []
    counts = (1 - model.blend.share) * first + model.blend.share * second
    cases = model.frontier[model.blend.first].cases  # the same rows of all
    return [(name, *of_class(model, counts, name, cases)) for name in model.schema.classes]


def recall_budget(model: LearnedModel, name: Any, step: RecallStep) -> Budget:
    """The budget that follows what `recalls` tells of a class."""
    targets = [Target("recall", step.asked, name)]
    targets += [] if step.beside is None else [Target("specificity", step.beside, name)]
    return Budget(hard=model.budget.hard, targets=tuple(targets), class_weights=model.budget.class_weights)


def _share(target: Target, model: LearnedModel, counts: Doubles, cases: Doubles | None) -> MeasuredFigure:
    value, n = target.measured(counts, model.schema.classes, model.losses, cases)[:2]
    return MeasuredFigure(value, n, *_interval(value, n))


def _interval(share: float, cases: float) -> tuple[float, float]:
    return wilson(share, cases) if cases else (0.0, 1.0)
