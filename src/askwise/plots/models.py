"""Pictures of a model alone: what they show is what the fit measured on the cases that it kept apart."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Bools, Doubles
from askwise.core.budget import Budget
from askwise.core.episode import measure
from askwise.core.measures import Measure
from askwise.core.problem import Problem
from askwise.errors import InputError
from askwise.frontier.point import KINDS
from askwise.model.alternatives import all_tests, alternatives
from askwise.model.model import LearnedModel
from askwise.model.purchases import Usage, usage
from askwise.texts import printable
from askwise.training.result import InterimMeasurement


def model_of(source: Any) -> LearnedModel | None:
    """A model, or that of a fitted classifier; None for anything else, which is data."""
    if hasattr(source, "get_params"):
        from sklearn.utils.validation import check_is_fitted

        check_is_fitted(source)
    model = getattr(source, "model_", source)
    return model if isinstance(model, LearnedModel) else None


def scores(model: LearnedModel, of: Any) -> list[float]:
    """What the model was learned for, the larger the better, of points or measurements: the accuracy or, where it is a loss,
    1 - loss / scale."""
    return [1 - each.loss / model.loss_scale if model.judged_by_loss else each.accuracy for each in of]


def score_name(model: LearnedModel) -> str:
    """What `scores` are called."""
    if model.rule is not None:
        return f"share of the {model.objective} that is saved"
    return f"{'1 - expected ' if model.weighted else ''}{model.objective}"


def curve(model: LearnedModel) -> tuple[list[float], list[float]]:
    """Costs and scores of the points of its frontier."""
    return [p.cost for p in model.frontier], scores(model, model.frontier)


def works_at(model: LearnedModel) -> tuple[float, float]:
    """Cost and score that are expected at its budget."""
    return model.measured.cost, scores(model, [model.measured])[0]


class Again(NamedTuple):
    """What the points of a frontier come to on so many other cases."""

    cost: Doubles
    score: Doubles
    error: Doubles
    cases: int


def frontier_parts(model: LearnedModel, problem: Any) -> dict[str, Any]:
    """What `plots.frontier` draws of a model; also on the cases of a problem, whose classes are known, where one is given."""
    if problem is not None and not isinstance(problem, Problem):
        raise InputError("besides a model, its cases can be given, as model.problem(X, y) makes them")
    measured, measures, everything = curve(model), [p.measure for p in model.frontier], all_tests(model)
    total, again = float(model.schema.costs.money(model.schema.costs.total)), None
    if problem is not None:
        there = [measure(problem.labelled(), model.arm(point), model.limit(point)) for point in model.frontier]
        costs, errors = np.array([m.cost for m in there]), np.array(score_errors(model, there))
        again = Again(costs, np.array(scores(model, there)), errors, len(problem))
    return {
        "points_validation": measured,
        "chosen": np.arange(len(model.frontier)),
        "prior": measured[1][0],
        "everything": (total, None) if everything is None else (everything.cost, scores(model, [everything])[0]),
        "budget": None if model.budget == Budget() else model.budget,
        "unit": printable(model.unit),
        "score": score_name(model),
        "best": works_at(model),
        "errors": score_errors(model, measures),
        "cases": min((m.n or 0 for m in measures), default=0) or None,
        "others": others(model),
        "again": again,
    }


def others(model: LearnedModel) -> dict[str, tuple[list[float], list[float]]]:
    """Costs and scores of all policies that were measured, by their kind, the plainest first. Nothing where no case may cost more
    than some amount, which they were not measured for, or where there is one kind alone."""
    every = alternatives(model)
    kinds = [kind for kind in KINDS if any(each.kind == kind for each in every)]
    if model.budget.hard is not None or len(kinds) < 2:
        return {}
    of = {kind: [each.measure for each in every if each.kind == kind] for kind in kinds}
    return {kind: ([m.cost for m in measures], scores(model, measures)) for kind, measures in of.items()}


def score_errors(model: LearnedModel, measures: Sequence[Measure]) -> list[float]:
    """Standard errors of the scores."""
    return [m.loss_error / model.loss_scale if model.judged_by_loss else m.accuracy_error for m in measures]


def records_of(model: LearnedModel) -> list[InterimMeasurement]:
    """How its training went, by the paper's algorithm: cost in training and score in validation; NaN for what is not kept."""
    return [
        InterimMeasurement(step, math.nan, lam, Measure(cost, math.nan, math.nan, 0), Measure(math.nan, loss, accuracy, 0))
        for step, lam, cost, loss, accuracy in model.facts.get("records", [])
    ]


def used(model: LearnedModel) -> Usage:
    """What was bought of the cases that the fit kept apart."""
    recorded = usage(model)
    if recorded is None:
        raise InputError(
            "what this model buys at its budget is not recorded in it; give the cases to look at, "
            "Report(problem, model.rollout(problem)) where problem is model.problem(X, y)"
        )
    return recorded


def known_by_all(model: LearnedModel) -> Bools:
    """Which tests everyone knows from the start, of those that are offered."""
    return np.isin(np.array(model.schema.offered, object), np.array(model.known, object))
