"""From rows to the learned part of a model, by either algorithm."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

import numpy as np

from askwise import cluster
from askwise.components.pictures import Convolutions
from askwise.core.budget import Budget
from askwise.core.parameters import OneOf, checked
from askwise.core.problem import Problem
from askwise.errors import Doubt, InputError
from askwise.family.config import FamilyConfig
from askwise.model import fit_rows
from askwise.model.alternatives import to_facts
from askwise.paper.config import TrainConfig
from askwise.stack.config import StackConfig
from askwise.training.checkpoint_checks import seconds_before
from askwise.training.progress import Progress

if TYPE_CHECKING:
    from askwise.training.result import TrainingResult

CONFIGS: dict[str, Any] = {"stack": StackConfig, "family": FamilyConfig, "paper": TrainConfig}
ALGORITHMS = ("auto", *CONFIGS)
STACK_TESTS, STACK_ROWS = 64, 50_000  # tables of up to so many tests and training rows are for the stack


@dataclass(frozen=True, eq=False)
class Learned:
    """A training and what a model tells of it."""

    result: TrainingResult[Any]
    facts: dict[str, Any]


def check(algorithm: Any, config: Any, engine: Any) -> None:
    """Before anything is learned."""
    checked(algorithm, OneOf(*ALGORITHMS), "algorithm")
    if cluster.checked(engine) != cluster.LOCAL and algorithm not in ("auto", "stack"):
        raise InputError(f"the engine is {engine!r}, but algorithm {algorithm!r} learns in one process; leave the engine out")
    right = (StackConfig, FamilyConfig) if algorithm == "auto" else (CONFIGS[algorithm],)
    if config is not None and not isinstance(config, right):
        names = " or a ".join(each.__name__ for each in right)
        raise InputError(f"config is a {type(config).__name__}; for algorithm {algorithm!r} it must be a {names}")


def chosen(algorithm: str, rows: int, tests: int, config: Any, network: Any) -> str:
    """The algorithm that 'auto' stands for: the one whose settings are given; else the stack for tables, and the family where
    there are many tests, as in pictures, very many rows, or a network of the user's own."""
    if algorithm != "auto":
        return algorithm
    if config is not None:
        return "stack" if isinstance(config, StackConfig) else "family"
    small = tests <= STACK_TESTS and rows <= STACK_ROWS
    return "stack" if network is None and small else "family"


def learns_from_all(algorithm: str, config: Any, network: Any, rows: int, apart: int, tests: int) -> bool:
    """Whether rows that are kept apart from so many others are learned from, too."""
    if chosen(algorithm, rows, tests, config, network) != "stack":
        return False
    settings: StackConfig = config or StackConfig.for_size(rows, tests)
    return settings.cross_fits(rows + apart)


def counts_classes(algorithm: str, problem: Problem, config: Any, network: Any) -> bool:
    """Whether a fit will measure policies class by class, under several class weights."""
    name = chosen(algorithm, len(problem), len(problem.schema.offered), config, network)
    most = (config or StackConfig()).weighed_classes if name == "stack" else 0
    return problem.rule is None and problem.schema.n_classes <= most


def learn(
    algorithm: str, problem: Problem, validation: Problem, budget: Budget, config: Any, seed: int, restarts: int, **options: Any
) -> Learned:
    """Trains so many times and keeps the best on validation rows. `options`: those that all algorithms' `run` have, such as
    `encoder`, `time_limit`, `callback`, `resume` and `save`, `threads` for networks, for the family `picture`, and for the stack
    `engine` and `n_jobs`."""
    callback, resume, threads = options.get("callback"), options.get("resume"), options.pop("threads", None)
    picture = options.pop("picture", None)
    network = options.get("encoder") or picture
    algorithm = chosen(algorithm, len(problem), len(problem.schema.offered), config, network)
    if picture is not None and algorithm != "family":
        raise InputError(f"the shape of pictures is given, which algorithm {algorithm!r} has no use for; leave algorithm= out")
    if algorithm == "stack" and options.pop("encoder", None) is not None:
        raise InputError("a network of your own is given, which algorithm 'stack' has no place for; leave algorithm= out")
    if algorithm != "stack":  # it has one network, which learns here
        options = {name: value for name, value in options.items() if name not in ("engine", "n_jobs")}
    config = config or CONFIGS[algorithm].for_size(len(problem), problem.schema.n_tests)
    if isinstance(callback, Progress):
        # the time limit of the paper's algorithm is that of each part of a training
        earlier = None if resume is None else seconds_before(resume[1]) if algorithm != "paper" else 0.0
        callback.begin(restarts, earlier)
    run = import_module(f"askwise.{algorithm}.run").run  # only now: it loads torch
    from askwise.components.torch_state import own_threads

    if algorithm == "family":  # which tries how many pay
        options |= {"threads": threads, "picture": picture and Convolutions(picture.rows, picture.columns, picture.planes)}
    with own_threads(threads if algorithm == "paper" else None):
        results = [run(problem, validation, budget, config, seed + i, **options) for i in range(restarts)]
    best: TrainingResult[Any] = max(results, key=lambda result: result.score)
    if best.doubt:
        warnings.warn(best.doubt, Doubt, stacklevel=2)
    facts = {
        "algorithm": algorithm,
        "config": config.to_dict(),
        "loss_scale": problem.loss_scale,
        "seconds": round(best.seconds, 1),
        "rows": [len(problem), len(validation)],
        "data": problem.fingerprint,
        "fit_rows": fit_rows.to_facts(problem, validation),
        "versions": versions(),
        "stopped": best.stopped,
        "measured_on": best.measured_on,
        "measured": to_facts(best.measured, best.points),
        "records": [
            [r.step, r.lam, (r.train or r.validation).cost, r.validation.loss, r.validation.accuracy] for r in best.history
        ],
    }
    areas = [[r.step, r.area] for r in best.history if r.area is not None]
    drawn = {} if best.drawn is None else {"drawn": best.drawn}
    return Learned(best, {**facts, **drawn, **({"areas": areas} if areas else {})})


def versions() -> dict[str, str]:
    import torch

    return {"askwise": version("askwise"), "torch": torch.__version__, "numpy": np.__version__}
