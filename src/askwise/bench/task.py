"""One task of a plan, as data: it goes to other processes and machines, and its row begins with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff

PARTS = ("train", "validation", "test")
BUDGETS: dict[str, Callable[[Any], Budget]] = {"tradeoff": Tradeoff, "average": AverageBudget, "hard": HardBudget}


@dataclass(frozen=True)
class Task:
    """One method on one split of one data set. Two tasks whose rows begin alike, the label apart, are the same task."""

    data: str
    method: str
    label: str
    seed: int
    minutes: float
    budget: dict[str, float] | None
    remove: float
    imputation: str | None
    options: dict[str, Any]
    class_weight: str | None
    most_rows: dict[str, int]
    threads: int
    source: dict[str, Any] | None  # of a file: its name, checksum, target, costs
    accuracy_at: list[float] | None  # mean costs; None: some shares of the cost of everything
    cost_at: list[float]  # scores
    kill_after: float | None  # minutes
    folder: str  # where files are looked for
    rule: str | None = None  # the scoring rule by which beliefs are judged; None: decisions are, by 0/1 loss

    @property
    def row(self) -> dict[str, Any]:
        """What a row says of its task."""
        own = ("data", "method", "label", "seed", "minutes", "budget", "remove", "imputation", "options")
        beside = ("class_weight", "rule", "most_rows", "threads", "source")
        return {"task": {name: getattr(self, name) for name in own}, **{name: getattr(self, name) for name in beside}}

    @property
    def cap(self) -> Budget:
        """The budget as methods take it."""
        budget = Budget()
        for name, value in (self.budget or {}).items():
            budget = budget & BUDGETS[name](value)
        return budget

    def __str__(self) -> str:
        return shown(self.row["task"])


def shown(task: Mapping[str, Any]) -> str:
    """A few words for a task, from what its row says of it."""
    words = [task["data"], task["label"], f"seed {task['seed']}"]
    words += [f"{name} {value:g}" for name, value in (task["budget"] or {}).items()]
    return " ".join(words + ([f"{task['remove']:.0%} removed"] if task["remove"] else []))
