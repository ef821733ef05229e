"""What a model does with its money, for every point of its frontier: how often each test is bought, the most common paths, and
how it ends.

Measured on held-out rows at the end of a fit and kept among the model's facts, since a model file holds no cases.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from askwise.core.budget import Budget
from askwise.core.episode import rollout
from askwise.core.policy import Mixture
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.evaluation import Report, mixed
from askwise.frontier.point import Point
from askwise.model.model import LearnedModel
from askwise.model.outcomes import Outcomes, outcomes_of

Follow = Callable[[Point, int | None], Report]
ROWS = 1000  # enough for shares that are shown in whole per cents
PATHS = 8


@dataclass(frozen=True)
class Usage:
    """Shares of cases, for one budget."""

    rows: int  # on which they were measured
    bought: dict[str, float]  # by test
    paths: list[tuple[tuple[str, ...], float]]  # tests in the order bought, the most common first
    outcomes: Outcomes | None = None


def measure_usage(model: LearnedModel, problem: Problem, held_out: Follow | None = None, seed: int = 0) -> dict[str, Any]:
    """What `usage` reads, in words that fit into JSON; tests by their number. `held_out`: what a point comes to on other rows."""
    sample = problem.take(some_rows(len(problem), ROWS, seed))

    def on_sample(point: Point, limit: int | None) -> Report:
        done = rollout(sample, model.arm(point), limit)
        return Report(sample, replace(done, belief=model.belief(sample, done, model.arm(point, np.float64))))

    index = {test: i for i, test in enumerate(model.schema.tests)}
    points = []
    for point in model.frontier:
        report = (held_out or on_sample)(point, model.limit(point))
        sample = report.problem
        points.append(
            {
                **outcomes_of(report).to_facts(),
                "bought": [round(share, 5) for share in report.bought.values()],
                "paths": [[[index[test] for test in tests], round(share, 5)] for tests, share in common_paths(report)],
            }
        )
    return {"rows": len(sample), "hard": _asked(model), "points": points}


def _asked(model: LearnedModel) -> str:
    """What the frontier of a budget depends on."""
    budget = model.budget
    others = Budget(targets=budget.targets, class_weights=budget.class_weights)
    average = budget.average if budget.targets else budget.average is not None
    return str(budget.hard) if others == Budget() else f"{budget.hard} {others} {average}"


def common_paths(report: Report) -> list[tuple[tuple[str, ...], float]]:
    """The most common sequences of tests, and the share of cases that take each."""
    weight = report.problem.weight
    each = np.ones(len(report.problem)) if weight is None else weight  # how much a case counts
    often = Counter[tuple[str, ...]]()
    for i, counts in enumerate(each.tolist()):
        often[tuple(report.tests_of(i))] += counts
    return [(tests, n / float(each.sum())) for tests, n in often.most_common(PATHS)]


def followed(model: LearnedModel, held_out: Follow) -> Report:
    """What a model comes to at its budget, on rows that were held out."""
    first, second = (held_out(point, model.limit(point)) for point in model.followed)
    if not isinstance(model.policy, Mixture):
        return first
    return mixed(first, second, model.policy.takes_second(first.problem.keys))


def usage(model: LearnedModel) -> Usage | None:
    """At the model's budget; None where it was not measured: under another hard budget or other targets than those of the fit."""
    recorded, blend, names = model.facts.get("usage"), model.blend, model.schema.tests
    if recorded is None or recorded["hard"] != _asked(model) or len(recorded["points"]) != len(model.frontier):
        return None
    bought, paths = dict.fromkeys(model.schema.offered, 0.0), dict[tuple[str, ...], float]()
    for i, share in ((blend.first, 1 - blend.share), (blend.second, blend.share)):
        point = recorded["points"][i]
        for test, often in zip(bought, point["bought"], strict=False):  # the last test may tell what is missing
            bought[test] += share * often
        for numbers, often in point["paths"]:
            path = tuple(names[t] for t in numbers)
            paths[path] = paths.get(path, 0.0) + share * often
    common = sorted(((path, often) for path, often in paths.items() if often > 0), key=lambda pair: -pair[1])
    ends = _ends([recorded["points"][i] for i in (blend.first, blend.second)])
    return Usage(recorded["rows"], bought, common[:PATHS], ends[0].mixed(ends[1], blend.share) if ends else None)


def _ends(points: list[dict[str, Any]]) -> list[Outcomes]:
    """How it ended at each of the points; nothing where a file does not tell."""
    return [Outcomes.from_facts(point) for point in points] if all("recall" in point for point in points) else []


def fits(model: LearnedModel) -> bool:
    """Whether what a file says about its usage can be read; files come from anywhere."""
    recorded, F, K = model.facts.get("usage"), model.schema.n_tests, model.schema.n_classes
    if recorded is None:
        return True
    ends = _ends(recorded["points"])
    shares = [s for p in recorded["points"] for s in (*p["bought"], *(often for _, often in p["paths"]))]
    shares += [s for end in ends for each in end.classes for s in (each.recall, *(each.bought or ()))]
    shares += [s for end in ends for each in end.bins for s in (each.probability, each.share)]
    counts = [n for end in ends for each in end.classes for n in (each.cases, each.error)]
    counts += [each.cases for end in ends for each in end.bins]
    numbers = [t for p in recorded["points"] for tests, _ in p["paths"] for t in tests]
    return (
        isinstance(recorded["rows"], int)
        and all(len(p["bought"]) == F for p in recorded["points"])
        and all(len(end.classes) == K and end.about in (None, *range(K)) for end in ends)
        and all(len(each.bought) == F for end in ends for each in end.classes if each.bought is not None)
        and all(each.cases > 0 for end in ends for each in end.bins)
        and all(isinstance(n, (int, float)) and 0 <= n < float("inf") for n in counts)
        and all(isinstance(s, (int, float)) and 0 <= s <= 1 for s in shares)
        and all(type(t) is int and 0 <= t < F for t in numbers)
    )
