"""The trainings of experiments.toml as tasks, in their order, and the settings that each takes."""

from __future__ import annotations

import itertools
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askwise.bench.rows import Row, identity
from askwise.bench.task import Task
from askwise.paper.config import TrainConfig

HERE = Path(__file__).parent
TABLE: dict[str, Any] = tomllib.loads((HERE / "experiments.toml").read_text())
SETTINGS = ("cpu", "paper")  # the CPU preset, and the paper's appendix
MOST_ROWS = {"train": 0, "validation": 10_000, "test": 50_000}  # 0: all
INTERRUPTED = 130  # exit code of a training that was stopped from outside, as of shells
RULES = {"name", "data", "budgets", "seeds", "remove", "imputation", "most_rows", "settings", "cpu"}


@dataclass(frozen=True)
class Training:
    """A task and the name of the group that it is of."""

    name: str
    task: Task


def trainings(settings: str = "cpu", table: dict[str, Any] = TABLE) -> list[Training]:
    """All of them, in order of priority."""
    return [Training(entry["name"], task) for entry in table["trainings"] for task in _tasks(entry, settings, table["data"])]


def _tasks(entry: dict[str, Any], settings: str, data: dict[str, Any]) -> Iterator[Task]:
    """Those of one entry: all budgets of a seed, of a share that is removed and of a way to fill it, before the next."""
    if unknown := entry.keys() - RULES:
        raise ValueError(f"experiments.toml: {sorted(unknown)} is not known")
    options = {"settings": settings, **entry.get("settings", {}), **(entry.get("cpu", {}) if settings == "cpu" else {})}
    budgets = [{kind: amount} for kind, amounts in entry["budgets"].items() for amount in amounts]
    fillings = entry.get("imputation", ["mdp"])
    for seed, share, filling, budget in itertools.product(entry["seeds"], entry.get("remove", [0.0]), fillings, budgets):
        yield Task(
            data=entry["data"],
            method="benchmarks.paper.train",
            label=filling if share else {"tradeoff": "rl", "average": "rl-b", "hard": "rl-hard"}[next(iter(budget))],
            seed=seed,
            minutes=0,  # there is no limit: trainings are counted in steps
            budget=budget,
            remove=share,
            imputation=None if filling == "mdp" else filling,
            options=options,
            class_weight=data[entry["data"]].get("class_weight"),
            most_rows=MOST_ROWS | entry.get("most_rows", {}),
            threads=1,
            source=None,
            accuracy_at=None,
            cost_at=[],
            kill_after=None,
            folder="",
        )


def config_of(task: Task) -> TrainConfig:
    """The settings of a task: those of its data set, and what differs."""
    of = TABLE["data"][task.data]
    changes = {**of.get("settings", {}), **task.options}
    return preset(changes.pop("settings"), of["paper"]).but(**changes)


def preset(settings: str, name: str) -> TrainConfig:
    """The CPU preset or the paper's settings, by the name of the paper's data set."""
    return getattr(TrainConfig, settings)(name)


def differences(task: Task) -> dict[str, Any]:
    """What differs from the paper's settings, by name."""
    paper = preset("paper", TABLE["data"][task.data]["paper"]).to_dict()
    return {name: value for name, value in config_of(task).to_dict().items() if value != paper[name]}


def key(row: Row, settings: Row) -> str:
    """The same for the same training, whatever group lists it: its task, and all that differs from the paper's settings."""
    task = {**row["task"], "options": {"settings": row["task"]["options"]["settings"]}}
    return identity({**row, "task": task}) + json.dumps(settings, sort_keys=True)
