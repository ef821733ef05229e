"""What else was measured: other kinds of policies, and what each of them makes of an amount of money.

A fit keeps it among the model's facts, so that a report can compare what is used with what a practitioner would build.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from askwise.core.budget import Budget
from askwise.core.measures import Measure
from askwise.frontier.choice import within_average
from askwise.frontier.point import AT_ONCE, KINDS, Point
from askwise.model.model import LearnedModel

LEVELS = 6  # amounts of money that are compared


class Alternative(NamedTuple):
    """A policy that was measured."""

    kind: str
    tests: int | None  # so many of a fixed order, for everybody; None: it depends on the case
    measure: Measure
    cap: int | None = None  # the hard budget it was measured under, in units of the costs


@dataclass(frozen=True)
class MoneyLevel:
    """What an amount of money buys on average."""

    money: float
    best: dict[str, Measure]  # by kind
    used: Measure  # what the model is expected to come to
    kinds: tuple[str, ...]  # of the policies that it follows there


def to_facts(measured: Iterable[Point], kept: Iterable[Point]) -> list[dict[str, Any]]:
    """What `alternatives` reads. Of a policy that is in both, what is known of it as a kept one counts."""
    points = {(p.lam, p.prefix, p.cap, p.breadth, p.tests, id(p.weights)): p for p in (*measured, *kept)}
    return [
        {
            "kind": p.kind,
            "tests": p.prefix if p.cap is None else None,
            "cap": p.cap,
            **{name: float(f"{v:.6g}") for name, v in p.measure.to_dict().items()},
        }
        for p in points.values()
    ]


def alternatives(model: LearnedModel) -> list[Alternative]:
    """All that were measured, under the hard budget of the fit or, as those that the model keeps, under one of their own."""
    kept = model.facts.get("measured", [])
    return [
        Alternative(each["kind"], each["tests"], replace(Measure.from_dict(each), n=round(each["n"])), each.get("cap"))
        for each in kept
    ]


def within_hard_budget(model: LearnedModel) -> list[Alternative]:
    """Those that are sure to keep the model's hard budget, as its frontier is; all of them where it has none."""
    every, costs, most = alternatives(model), model.schema.costs, model.budget.cap(model.schema.costs)
    if model.family is None or most is None or most == costs.most:
        return every
    return [each for each in every if model.family.most_paid(costs, each.tests, each.cap) <= most]


def all_tests(model: LearnedModel) -> Measure | None:
    """What all tests for everybody come to; None where that was not measured."""
    everything = [each.measure for each in alternatives(model) if each.tests == model.schema.n_tests]
    return everything[0] if everything else None


def at_average(model: LearnedModel, b: float) -> LearnedModel:
    """The model where it may spend b on average, and keeps to the hard budget that it has."""
    average = Fraction(f"{b:.12g}")  # a share of a mean cost, which may be less than a person would give
    return model.at(Budget(average=average, hard=model.budget.hard, class_weights=model.budget.class_weights))


def best_of_kind(model: LearnedModel, kind: str, b: float) -> Measure:
    """The best that policies of one kind make of b on average: deciding at once is always possible, and two may be mixed."""
    measures = [model.points[0].measure, *(each.measure for each in within_hard_budget(model) if each.kind == kind)]
    blend = within_average([m.cost for m in measures], [-m.loss for m in measures], b)
    return measures[blend.first].mixed(measures[blend.second], blend.share)


def comparison(model: LearnedModel) -> list[MoneyLevel]:
    """All kinds of policies at several amounts of money; nothing where only one kind buys anything. Where no case may cost more
    than some amount, only kinds are compared of which a policy was measured that is sure to keep to it."""
    buying = [each for each in within_hard_budget(model) if each.measure.cost > 0]
    kinds = [kind for kind in KINDS if any(each.kind == kind for each in buying)]
    dear = [p.cost for p in model.frontier if p.cost > 0]
    if len(kinds) < 2 or not dear or model.budget.class_weights is not None:  # other policies were measured as in the fit
        return []
    costs, most = model.schema.costs, model.budget.cap(model.schema.costs)
    total = float(costs.money(costs.total if most is None else most))
    money = [float(f"{b:.2g}") for b in np.geomspace(max(min(dear), total / 100), total, LEVELS)[:-1]]
    levels = []
    for b in (*(b for b in dict.fromkeys(money) if b < total), total):
        there = at_average(model, b)
        best = {kind: best_of_kind(model, kind, b) for kind in kinds}
        levels.append(MoneyLevel(b, best, there.measured, kinds_followed(there)))
    return levels


def kinds_followed(model: LearnedModel) -> tuple[str, ...]:
    """Of the policies that a model follows. Deciding at once is a part of every kind, so it counts only where it is all."""
    points = model.followed if model.blend.drawn else model.followed[:1]
    return tuple(dict.fromkeys(p.kind for p in points if p is not model.points[0] and p.prefix != 0)) or (AT_ONCE,)


def fits(model: LearnedModel) -> bool:
    """Whether what a file says about it can be read; files come from anywhere."""
    figures = [
        (each["kind"], each["tests"], each.get("cap"), Measure.from_dict(each)) for each in model.facts.get("measured", [])
    ]
    numbers = [value for *_, m in figures for value in m.to_dict().values()]
    return (
        len(figures) <= 10_000
        and all(isinstance(kind, str) and len(kind) < 100 for kind, *_ in figures)
        and all(tests is None or (type(tests) is int and 0 <= tests <= model.schema.n_tests) for _, tests, *_ in figures)
        and all(cap is None or (type(cap) is int and cap >= 0) for _, _, cap, _ in figures)
        and all(isinstance(v, (int, float)) and 0 <= v < float("inf") for v in numbers)
    )
