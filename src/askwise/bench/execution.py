"""What one task does: train a method on a split for the given time, measure it, and say what came of it in a row."""

from __future__ import annotations

import importlib
import inspect
import platform
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from askwise import methods
from askwise.bench import metrics
from askwise.bench.rows import Row
from askwise.bench.task import PARTS, Task
from askwise.core.policy import Policy, decide_at_once
from askwise.core.problem import Problem
from askwise.errors import AskwiseError, InputError
from askwise.evaluation import evaluate
from askwise.tables.splits import Split

Learn = Callable[[Problem, Problem], list[Policy]]

PACKAGES = ("askwise", "numpy", "torch", "lightgbm")


def carried_out(task: Task, parts: Split) -> Row:
    """The row of a task: done, refused by the method, or failed, with the reason. Only what the method itself says about the data
    is a refusal, which is final. That it cannot be found or called as the task asks can be repaired, so it is a failure."""
    row: Row = {**task.row, "status": "done", "began": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions()}
    began = time.monotonic()
    try:
        learn = ready(task)
        try:
            row |= figures_of(task, learn, parts)
        except InputError as error:
            row |= {"status": "refused", "why": str(error)}
    except Exception as error:  # whatever a method does, the others go on
        row |= failed(error)
    row.setdefault("minutes_taken", round((time.monotonic() - began) / 60, 4))
    return row


def failed(error: BaseException) -> Row:
    """What is told of an error: one line, and where it was."""
    reason = (str(error).strip().splitlines() or ["no reason given"])[0]
    why = reason if isinstance(error, AskwiseError) else f"{type(error).__name__}: {reason}"  # ours are whole sentences
    return {"status": "failed", "why": why, "traceback": traceback.format_exception(error)[-6:]}


def figures_of(task: Task, learn: Learn, parts: Split) -> Row:
    """Trains and measures."""
    train, validation = prepared(task, parts)
    began = time.monotonic()
    policies = learn(train, validation)
    taken = (time.monotonic() - began) / 60
    total = float(train.schema.costs.money(train.schema.costs.total))
    whole = task.budget is None  # frontier, which begins with deciding at once
    policies = [decide_at_once(train), *policies] if whole else policies
    problems = validation.with_loss(train.loss), parts.test.with_loss(train.loss)
    # what says itself what was measured of it has learned from validation rows, too, so that these tell nothing more
    held_out = [policy.measured or evaluate(policy, problems[0], task.cap).measure for policy in policies]
    test = [metrics.figures(policy, problems[1], task.cap) for policy in policies]
    first = int(whole)
    row: Row = {
        "minutes_taken": round(taken, 4),
        **{f"n_{name}": len(part) for name, part in zip(PARTS, (train, *problems), strict=True)},
        "total": total,
        "loss_scale": train.loss_scale,
        "columns": list(metrics.COLUMNS),
        "validation": [[m.cost, m.loss, m.accuracy] for m in held_out[first:]],
        "test": [f.means for f in test[first:]],
    }
    if whole:
        return row | metrics.frontier(held_out, test, train.loss_scale, total, task.accuracy_at, task.cost_at)
    return row | metrics.single(test[0], train.loss_scale)


def prepared(task: Task, parts: Split) -> tuple[Problem, Problem]:
    """The rows that are learned from, with values removed and filled in as the task says; test rows stay as they are."""
    train, validation = parts.train, parts.validation
    if task.remove or task.imputation:
        from askwise.components import imputation

        if task.remove:
            train, validation = (imputation.remove(p, task.remove, 2 * task.seed + i) for i, p in enumerate((train, validation)))
        if task.imputation:
            train, validation = imputation.impute(task.imputation, train, validation, seed=task.seed)
    return train, validation


def ready(task: Task) -> Learn:
    """The method as the task asks for it: what makes its points or, under a budget, its one policy. All that is imported only
    when it is used first is imported here: that must not count as time for learning."""
    method, name = method_of(task.method), "points" if task.budget is None else "fit"
    function = getattr(method, name, None)
    if not callable(function):
        if callable(getattr(method, "fit", None)):
            raise InputError(f"method {task.method!r} has no function for a whole frontier, only for a budget; give it budgets")
        raise InputError(f"method {task.method!r} has no function {name!r}; it must have one")
    keywords = keywords_of(function, task)
    if "torch" in sys.modules:
        import torch

        importlib.import_module("torch._dynamo")  # by torch itself with its first optimiser; it takes as long as torch
        torch.set_num_threads(task.threads)
    if "askwise.components.boosting" in sys.modules:
        importlib.import_module("lightgbm")
    if task.budget is None:
        return lambda train, validation: list(function(train, validation, **keywords))
    return lambda train, validation: [function(train, validation, task.cap, **keywords)]


def method_of(name: str) -> Any:
    """A method that is installed or, with dots in its name, a module."""
    if "." not in name:
        return methods.get(name)
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise InputError(f"method {name!r} is not a module that can be imported here: {error}") from error


def keywords_of(function: Callable[..., Any], task: Task) -> dict[str, Any]:
    """Those of the offered arguments that the function takes, and all options, which it must take."""
    offered = {"seconds": 60 * task.minutes, "seed": task.seed, "threads": task.threads}
    known = inspect.signature(function).parameters
    anything = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in known.values())
    for name in task.options:
        if name in offered or (name not in known and not anything):
            more = [n for n, p in known.items() if p.kind is inspect.Parameter.KEYWORD_ONLY and n not in offered]
            raise InputError(f"method {task.method!r} has no option {name!r}; it has {', '.join(more) or 'none'}")
    return {name: value for name, value in offered.items() if name in known} | task.options


def versions() -> dict[str, str]:
    by_package = {"python": platform.python_version()}
    for name in PACKAGES:
        with suppress(PackageNotFoundError):  # nobody needs all of them
            by_package[name] = version(name)
    return by_package
