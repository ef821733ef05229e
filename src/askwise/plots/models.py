"""Pictures of a model alone: what they show is what the fit measured on the cases that it kept apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from askwise.core.arrays import Bools
from askwise.core.budget import Budget
from askwise.core.episode import measure, tally
from askwise.core.measures import Measure
from askwise.core.problem import Problem
from askwise.errors import InputError
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
    """What the model was learned for, the larger the better, of points or measurements: the accuracy or, where mistakes are not
    all alike, 1 - loss."""
    values = [model.objective_value(each.loss, each.accuracy) for each in of]
    return [1 - value for value in values] if model.weighted else values


def curve(model: LearnedModel) -> tuple[list[float], list[float]]:
    """Costs and scores of the points of its frontier."""
    return [p.cost for p in model.frontier], scores(model, model.frontier)


def works_at(model: LearnedModel) -> tuple[float, float]:
    """Cost and score that are expected at its budget."""
    return model.measured.cost, scores(model, [model.measured])[0]


def frontier_parts(model: LearnedModel, problem: Any) -> dict[str, Any]:
    """What `plots.frontier` draws of a model; with test points where a problem, cases whose classes are known, is given."""
    if problem is not None and not isinstance(problem, Problem):
        raise InputError("besides a model, its cases can be given, as model.problem(X, y) makes them")
    validation, test, best = curve(model), None, works_at(model)
    measures = [p.measure for p in model.frontier]
    prior = validation[1][0]
    if problem is not None:
        measures = [measure(problem.labelled(), model.arm(point), model.limit(point)) for point in model.frontier]
        here = tally(problem, model.rollout(problem)).measure(problem.schema.costs)
        test = [m.cost for m in measures], scores(model, measures)
        prior, best = test[1][0], (here.cost, scores(model, [here])[0])
    return {
        "points_validation": validation,
        "points_test": test,
        "chosen": np.arange(len(model.frontier)),
        "prior": prior,
        "everything": (float(model.schema.costs.money(model.schema.costs.total)), None),
        "budget": None if model.budget == Budget() else model.budget,
        "unit": printable(model.unit),
        "score": f"{'1 - expected ' if model.weighted else ''}{model.objective}",
        "best": best,
        "errors": [model.objective_value(m.loss_error, m.accuracy_error) for m in measures],
        "cases": min((m.n or 0 for m in measures), default=0) or None,
    }


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
    """F: the tests that everyone knows from the start."""
    return np.isin(np.array(model.schema.tests, object), np.array(model.known, object))
