"""What a budget with targets or class weights follows: points whose cases were counted class by class."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from askwise.core.arrays import Array, Bools, Doubles
from askwise.core.budget import Budget
from askwise.core.costs import CostFunction
from askwise.core.target import OF_A_CLASS, class_number
from askwise.errors import InputError
from askwise.family.inference import Family
from askwise.frontier.confidence import upper_bound
from askwise.frontier.point import Point
from askwise.frontier.targets import Judge, Unreachable
from askwise.stack.class_weights import normalised

Following = TypeVar("Following", bound="Any")  # a model, of any sort


def check(budget: Budget, classes: Sequence[Any], counted: bool, algorithm: str) -> None:
    """Whether a model knows what a budget asks about classes. `counted`: its policies were measured class by class."""
    named = [f"the {t.figure} of a class" for t in budget.targets if t.figure in OF_A_CLASS]
    if (named or budget.class_weights is not None) and not counted:
        what = named[0] if named else "how classes weigh against each other"
        why = "have its policies measured class by class: that needs algorithm 'stack', a loss of decisions, and few classes"
        raise InputError(f"{budget} asks for {what}, but the fit by algorithm {algorithm!r} did not {why}")
    for target in budget.targets:
        if target.figure in OF_A_CLASS:
            target.class_of(classes)
    asked_weights(budget, classes, np.zeros(len(classes)))


def asked_weights(budget: Budget, classes: Sequence[Any], log_prior: Array) -> tuple[float, ...] | None:
    """K: how the classes weigh, as a budget says; None: all alike."""
    if budget.class_weights is None:
        return None
    weights, named = np.ones(len(classes)), dict[int, object]()
    for name, weight in budget.class_weights:
        y = class_number(name, classes, f"ClassWeights({{{name!r}: {weight:g}}})")
        if y in named:  # 1 and '1' are the same class where only one of them exists
            raise InputError(f"ClassWeights names the class {classes[y]!r} as {named[y]!r} and as {name!r}; name it once")
        weights[y], named[y] = weight, name
    return tuple(normalised(weights, log_prior).tolist())


def weighed_loss(loss: Doubles, weights: tuple[float, ...] | None) -> Doubles:
    """K, D: losses as the classes weigh."""
    return loss if weights is None else np.array(weights)[:, None] * loss


def weighed(points: Sequence[Point], weights: tuple[float, ...], loss: Doubles, exactly: bool) -> tuple[Point, ...]:
    """The points of the measured weights that are nearest; what they lose is weighed as asked. exactly: with the weights that are
    asked for, with which they may pay more or less than was measured; otherwise with those of the measurement."""

    def apart(point: Point) -> float:
        there = np.ones(len(weights)) if point.class_weights is None else np.array(point.class_weights)
        ratio = np.log(there / np.array(weights))
        return float(np.ptp(ratio))

    nearest = min(map(apart, points))
    chosen = [judged(p, weighed_loss(loss, weights)) for p in points if apart(p) <= nearest + 1e-9]
    run = [replace(p, class_weights=weights) for p in chosen] if exactly else chosen
    return tuple(sorted(run, key=lambda p: (p.cost, p.prefix != 0, p.loss)))


def judged(point: Point, loss: Doubles) -> Point:
    """The same policy with what it loses by these losses."""
    assert point.counts is not None
    n, of_class = point.counts.sum(), point.counts.sum(1)
    mean = float((point.counts * loss).sum() / n)
    of_row = np.ones(len(of_class))  # K: the weight of a row, on average by weight
    if point.cases is not None:
        of_row = of_class / np.where(point.cases > 0, point.cases, 1.0)
    error = float((of_row @ (point.counts * (loss - mean) ** 2).sum(1)) ** 0.5 / n)
    return replace(point, measure=replace(point.measure, loss=mean, loss_error=error))


def candidates(points: Sequence[Point], counted: Sequence[Point], budget: Budget) -> Sequence[Point]:
    """Those among which the targets of a budget choose. Recalls, class weights and confidences need policies whose cases
    were counted class by class, which are fewer; accuracy and loss by themselves are known of all."""
    of_classes = budget.class_weights is not None or any(t.figure in OF_A_CLASS for t in budget.targets)
    sure = budget.confidence is not None or any(t.confidence is not None for t in budget.targets)
    return (counted or points) if of_classes or sure else (*counted, *points)


def within(points: Sequence[Point], budget: Budget, costs: CostFunction, family: Family | None) -> Bools:
    """Which points keep to the hard and to the average part of a budget. Without a family all points keep to the hard one."""
    kept, most = np.ones(len(points), bool), budget.cap(costs)
    if family is not None and most is not None and most < costs.most:
        kept &= np.array([family.most_paid(costs, p.prefix, p.cap) <= most for p in points])
    if budget.average is not None:  # looked at from the cheapest on, see `askwise.frontier.confidence`
        at_most = np.array([upper_bound(p.cost, p.measure.cost_error, budget.confidence) for p in points])
        order = np.argsort([p.cost for p in points], kind="stable")
        at_most[order] = np.maximum.accumulate(at_most[order])
        kept &= at_most <= float(budget.average)
    return kept


def targeted(points: Sequence[Point], judge: Judge, budget: Budget, kept: Bools, unit: str) -> Point:
    """The point that a budget with targets follows, among those that are `within` it. The first of all decides at once."""
    limits = replace(budget, targets=(), class_weights=None)
    return points[judge.cheapest(budget.targets, points, kept, "" if limits == Budget() else str(limits), unit)]


def reached(model: Following) -> Following:
    """A model that knows what it follows: a target that cannot be reached is refused now."""
    _ = model.followed
    return model


def nearest(model: Following) -> tuple[Following, list[str]]:
    """The same model, whose targets that cannot be reached ask for the best that can be had, rounded to what people write; and a
    sentence for each. None of them is refused: the model was made when they were reached, by another version of what measures."""
    sentences = list[str]()
    while True:
        try:
            return reached(model), sentences
        except Unreachable as error:
            left, best = error.target, 1e4 * error.best
            value = (math.floor(best + 1e-6) if left.sign > 0 else math.ceil(best - 1e-6)) / 1e4
            can_be_had = value != left.value and (value > 0 or left.sign < 0)
            lower = [replace(left, value=value)] if can_be_had else []
            targets = tuple(t for each in model.budget.targets for t in (lower if each is left else [each]))
            model = replace(model, budget=replace(model.budget, targets=targets))
            sentences.append(f"{error}; the model follows {model.budget}" if targets else f"{error}; the model follows no target")
