"""From rows to what a model consists of, by either algorithm."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

import numpy as np

from askwise.core import checks
from askwise.core.budget import Budget
from askwise.core.parameters import OneOf, checked
from askwise.core.policy import decide_at_once
from askwise.core.problem import Problem
from askwise.errors import InputError
from askwise.family.config import FamilyConfig
from askwise.family.inference import Family
from askwise.frontier.point import Point
from askwise.paper.config import TrainConfig
from askwise.training.progress import Progress

CONFIGS: dict[str, Any] = {"paper": TrainConfig, "family": FamilyConfig}


@dataclass(frozen=True, eq=False)
class Learned:
    """The learned part of a model; see there."""

    points: tuple[Point, ...]
    at_once: tuple[float, ...]
    facts: dict[str, Any]
    family: Family | None = None


def check(algorithm: Any, config: Any) -> None:
    """Before anything is learned."""
    checked(algorithm, OneOf(*CONFIGS), "algorithm")
    if config is not None and not isinstance(config, CONFIGS[algorithm]):
        right = CONFIGS[algorithm].__name__
        raise InputError(f"config is a {type(config).__name__}; for algorithm {algorithm!r} it must be a {right}")


def learn(
    algorithm: str,
    problem: Problem,
    validation: Problem,
    budget: Budget,
    config: Any,
    seed: int,
    restarts: int,
    *,
    encoder: Any = None,
    time_limit: float | None = None,
    callback: Callable[[Any], None] | None = None,
    **more: Any,
) -> Learned:
    """Trains so many times and keeps the best on validation rows. `more`: `save` and `resume`, see the methods' `run`."""
    import torch

    config = config or CONFIGS[algorithm].for_size(len(problem), problem.schema.n_tests)
    call = _paper if algorithm == "paper" else _family
    before, more = _timed(more)
    if isinstance(callback, Progress):
        resume = more.get("resume")
        callback.begin(config.max_steps, restarts, None if resume is None else checks.seconds(resume[1], "spent"))
    learned, seconds = call(
        problem, validation, budget, config, seed, restarts, encoder, {"time_limit": time_limit, "callback": callback, **more}
    )
    facts = {
        "algorithm": algorithm,
        "config": config.to_dict(),
        "loss_scale": problem.loss_scale,
        "seconds": round(before + seconds, 1),
        "rows": [len(problem), len(validation)],
        "data": problem.fingerprint,
        "versions": {"askwise": version("askwise"), "torch": torch.__version__, "numpy": np.__version__},
    }
    return Learned(learned.points, learned.at_once, {**facts, **learned.facts}, learned.family)


def _paper(
    problem: Problem,
    validation: Problem,
    budget: Budget,
    config: TrainConfig,
    seed: int,
    restarts: int,
    encoder: Any,
    more: dict[str, Any],
) -> tuple[Learned, float]:
    from askwise.methods import paper
    from askwise.paper.network import dense

    runs = [paper.run(problem, validation, budget, config, seed + i, encoder=encoder or dense, **more) for i in range(restarts)]
    best = min(runs, key=lambda run: run.history.value(budget))
    history = best.history
    points = [
        Point(float(r.lam), replace(r.validation, cost=r.cost), history.weights.get(i))
        for i, r in enumerate(history.records)
        if i == 0 or i in history.weights
    ]
    records = [[r.step, r.lam, r.train.cost, r.validation.loss, r.validation.accuracy] for r in history.records]
    at_once = decide_at_once(problem).q.classes  # type: ignore[attr-defined]
    points.sort(key=lambda p: (p.cost, p.weights is not None))
    return Learned(tuple(points), at_once, {"stopped": best.stopped, "records": records}), best.seconds


def _family(
    problem: Problem,
    validation: Problem,
    budget: Budget,
    config: FamilyConfig,
    seed: int,
    restarts: int,
    encoder: Any,
    more: dict[str, Any],
) -> tuple[Learned, float]:
    from askwise.methods import family

    cap = budget.cap(problem.schema.costs)
    runs = [family.run(problem, validation, config, seed + i, encoder=encoder, cap=cap, **more) for i in range(restarts)]
    best = max(runs, key=lambda run: run.area)

    records = [[r.step, r.lam, r.cost, r.validation.loss, r.validation.accuracy] for r in best.records]
    areas = [[r.step, r.area] for r in best.records]
    at_once = decide_at_once(problem).q.classes  # type: ignore[attr-defined]
    facts = {"stopped": best.stopped, "records": records, "areas": areas}
    return Learned(tuple(best.kept), at_once, facts, best.family), best.seconds


def _timed(run: dict[str, Any]) -> tuple[float, dict[str, Any]]:
    """How long the earlier parts of a resumed training took, and its arguments such that states tell it to the next part."""
    before = checks.seconds(run["resume"][1], "seconds") if run.get("resume") else 0.0
    save = run.get("save")
    if save is None:
        return before, run
    began = time.monotonic()
    return before, {**run, "save": lambda state: save((state[0], {**state[1], "seconds": before + time.monotonic() - began}))}
