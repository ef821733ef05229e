"""One training of the paper's algorithm and its row. benchmarks.paper.runs starts it as a process of its own:

    python -m benchmarks.paper.train CHECKPOINT SECONDS < task.json > row.json

The state is written to the checkpoint every so many seconds; where there is one, the training goes on from it.
It ends when the process that started it is gone, so that two never work on one training.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import torch

from askwise.bench import metrics, split_files
from askwise.bench.execution import failed, prepared, versions
from askwise.bench.rows import Row
from askwise.bench.task import PARTS, Task
from askwise.core.policy import Policy, decide_at_once
from askwise.core.problem import Problem
from askwise.errors import StateError
from askwise.model.file import read_state, write_state
from askwise.paper.config import TrainConfig
from askwise.paper.run import run
from askwise.paper.select import policy_for
from askwise.paper.train import policy_of
from askwise.training.checkpoint import TrainingState, part
from askwise.training.result import InterimMeasurement, TrainingResult
from benchmarks.paper.experiments import INTERRUPTED, TABLE, config_of, differences, preset

POINTS = 60  # of the course, at most
COURSE = ("step", "lam", "cost on training rows", "cost", "loss", "accuracy")  # the last three on validation rows
QUARTER = ("lam", "deviation of lam", "cost", "deviation of cost", "crossings")  # on training rows


def row_of(task: Task, checkpoint: Path, save_every: float, check: Callable[[], None] = lambda: None) -> Row:
    """Trains, measures, and says what came of it. `check` is called after every interim measurement."""
    row: Row = {**task.row, "status": "done", "began": datetime.now(UTC).isoformat(timespec="seconds"), "versions": versions()}
    row["settings"] = differences(task)
    try:
        return row | _measured(task, checkpoint, save_every, check)
    except Exception as error:  # the others go on
        return row | failed(error)


def _measured(task: Task, checkpoint: Path, save_every: float, check: Callable[[], None]) -> Row:
    parts = split_files.load(task)
    train, validation = prepared(task, parts)
    config = config_of(task)
    result, last, seconds = trained(train, validation, task, config, checkpoint, save_every, check)
    rows = {"validation": validation.with_loss(train.loss), "test": parts.test.with_loss(train.loss)}
    chosen, others = policy_for(result, task.cap, task.seed), {"at_once": decide_at_once(train), "last": last}
    if task.cap.average is not None:
        others["mixture"] = policy_for(result, task.cap, task.seed, mixture="always")
    paper = preset("paper", TABLE["data"][task.data]["paper"])
    figures = {cases: metrics.figures(chosen, problem, task.cap) for cases, problem in rows.items()}
    single = metrics.single(figures["test"], train.loss_scale)
    resampled = single.pop("resampled_scores")
    row: Row = {
        "cpu_seconds": round(seconds, 1),
        "steps": result.history[-1].step,
        "states": result.history[-1].step * config.batch_steps,
        "share_of_steps": result.history[-1].step / paper.max_steps,
        "share_of_states": result.history[-1].step * config.batch_steps / (paper.max_steps * paper.batch_steps),
        "stopped": result.stopped,
        "doubt": result.doubt,
        **{f"n_{name}": len(p) for name, p in zip(PARTS, (train, *rows.values()), strict=True)},
        "total": float(train.schema.costs.money(train.schema.costs.total)),
        "obtainable": obtainable(rows["test"], task.cap.hard),
        "loss_scale": train.loss_scale,
        "columns": list(metrics.COLUMNS),
        **{cases: [f.means] for cases, f in figures.items()},
        **single,
        **{name: measured(policy, rows, task) for name, policy in others.items()},
        "course": course(result.history),
        "quarters": quarters(result.history, float(task.cap.average or 0)),
    }
    if task.seed == 0:  # with more seeds, these tell how sure a number is
        row |= {
            "resampled_scores": resampled,
            "resampled_costs": [round(float(c), 5) for c in metrics.resampled(figures["test"].cost)],
        }
    return row


def trained(
    train: Problem,
    validation: Problem,
    task: Task,
    config: TrainConfig,
    checkpoint: Path,
    save_every: float,
    check: Callable[[], None],
) -> tuple[TrainingResult[None], Policy, float]:
    """The training, the policy of its last network, and CPU seconds, those before a restart included."""
    began, last = time.process_time(), {}

    def used() -> float:
        return earlier + time.process_time() - began

    def save(state: TrainingState) -> None:
        arrays, facts = state
        last.update(part(arrays, "network/"))
        write_state(checkpoint, arrays, {**facts, "cpu_seconds": used()})

    def callback(_: InterimMeasurement) -> None:
        check()

    def begin(state: TrainingState | None) -> TrainingResult[None]:
        return run(
            train, validation, task.cap, config, task.seed, resume=state, save=save, save_every=save_every, callback=callback
        )

    try:
        state = read_state(checkpoint) if checkpoint.exists() else None
        earlier = 0.0 if state is None else float(state[1]["cpu_seconds"])
        result = begin(state)
    except StateError:  # of an earlier version, or damaged
        earlier = 0.0
        result = begin(None)
    return result, policy_of(last, train.schema, config), used()


def obtainable(problem: Problem, hard: Any) -> float:
    """The most that can be spent on average: what the tests cost that a case has, as far as a hard budget allows."""
    costs = problem.schema.costs
    there = np.ones((1, problem.schema.n_tests), bool) if problem.available is None else problem.available
    return float(np.minimum(costs.money(costs.cost(there)), np.inf if hard is None else float(hard)).mean())


def measured(policy: Policy, rows: dict[str, Problem], task: Task) -> Row:
    """A policy on validation and on test rows, and the most that any case of these paid."""
    figures = {cases: metrics.figures(policy, problem, task.cap) for cases, problem in rows.items()}
    return {**{cases: f.means for cases, f in figures.items()}, "most": float(figures["test"].cost.max())}


def course(history: Sequence[InterimMeasurement]) -> list[list[float]]:
    """By COURSE, without deciding at once, which is the first of the history."""
    every = history[1:]
    picked = np.unique(np.linspace(0, len(every) - 1, min(POINTS, len(every))).round().astype(int))
    rows = [every[i] for i in picked]
    return [
        [r.step, *(_short(v) for v in (r.lam, r.train.cost, r.validation.cost, r.validation.loss, r.validation.accuracy))]
        for r in rows
    ]


def quarters(history: Sequence[InterimMeasurement], b: float) -> list[list[float]]:
    """Of each quarter of the training, by QUARTER, from all measurements; crossings of the budget b by the cost."""
    lam, cost = np.array([[r.lam, r.train.cost] for r in history[1:]]).T
    parts = zip(np.array_split(lam, 4), np.array_split(cost, 4), strict=True)
    return [
        [*(_short(float(v)) for v in (a.mean(), a.std(), c.mean(), c.std())), int((np.diff(np.sign(c - b)) != 0).sum())]
        for a, c in parts
        if len(a)
    ]


def _short(value: float) -> float:
    return float(f"{value:.5g}")


def main() -> None:
    checkpoint, save_every, parent = Path(sys.argv[1]), float(sys.argv[2]), os.getppid()
    torch.set_num_threads(1)
    task = Task(**json.load(sys.stdin))

    def check() -> None:
        if os.getppid() != parent:
            sys.exit(INTERRUPTED)

    try:
        row: dict[str, Any] = row_of(task, checkpoint, save_every, check)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    print(json.dumps(row))


if __name__ == "__main__":
    main()
