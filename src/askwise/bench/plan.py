"""A plan: data x methods x budgets x seeds x shares of removed values, read from TOML and checked before anything runs."""

from __future__ import annotations

import itertools
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from askwise.bench.plan_entries import DataEntry, MethodEntry, data_entry, method_entry, tables
from askwise.bench.plan_settings import RULES, PlanSettings, joined
from askwise.bench.plan_values import TEXT, check_known
from askwise.bench.rows import identity
from askwise.bench.task import PARTS, Task
from askwise.core.parameters import checked
from askwise.errors import InputError, did_you_mean

OF_PLAN = ("name", "about", "data", "methods", *RULES)


@dataclass(frozen=True)
class Plan:
    """A name and the tasks, in the order in which they are begun."""

    name: str
    tasks: tuple[Task, ...]


def read(path: Path) -> Plan:
    """The plan in a file; mistakes are told in one sentence."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}; name a plan, a TOML file")
    try:
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and thousands of brackets
        raise InputError(f"the plan {path.name!r} is not TOML: {error}") from None
    try:
        return from_dict(table, path.parent, path.stem)
    except InputError as error:
        raise InputError(f"the plan {path.name!r}: {error}") from None


def from_dict(table: Mapping[str, Any], folder: Path, name: str = "plan") -> Plan:
    """A plan from the dict that its file holds. Tables of one's own are looked for in `folder`."""
    check_known(table, OF_PLAN, "the plan")
    name = checked(table.get("name", name), TEXT, "name")
    checked(table.get("about", ""), TEXT, "about")
    data = [data_entry(entry, folder) for entry in tables(table, "data")]
    methods = [method_entry(entry) for entry in tables(table, "methods")]
    _check_names(data, methods)
    tasks: list[Task] = []
    for d, m in itertools.product(data, methods):
        if m.label not in d.without and (m.only is None or d.name in m.only):
            tasks += _tasks(d, m, joined(table, d.settings, m.settings), folder)
    _check_tasks(tasks)
    return Plan(name, tuple(tasks))


def _tasks(d: DataEntry, m: MethodEntry, settings: PlanSettings, folder: Path) -> Iterable[Task]:
    """All tasks of one method on one data set."""
    base = Task(
        data=d.name,
        method=m.name,
        label=m.label,
        seed=0,
        budget=None,
        remove=0.0,
        imputation=m.imputation,
        options=m.options,
        class_weight=None if settings.class_weight == "none" else settings.class_weight,
        most_rows={part: settings.most_rows[part] for part in PARTS},
        source=d.source,
        folder=str(folder),
        **{name: getattr(settings, name) for name in ("minutes", "threads", "accuracy_at", "cost_at", "kill_after")},
    )
    axes = itertools.product(settings.remove, settings.budgets, settings.seeds)
    return [replace(base, remove=share, budget=budget, seed=seed) for share, budget, seed in axes]


def _check_names(data: Sequence[DataEntry], methods: Sequence[MethodEntry]) -> None:
    """Names are there once, and what data sets and methods say about each other exists."""
    names, labels = [d.name for d in data], [m.label for m in methods]
    for kind, each, advice in (("data set", names, ""), ("label", labels, "; give one of them a label")):
        for name in each:
            if each.count(name) > 1:
                raise InputError(f"the {kind} {name!r} appears twice{advice}")
    for d in data:
        for label in d.without:
            if label not in labels:
                raise InputError(f"`without` of {d.name!r} names the method {label!r}; {did_you_mean(label, labels)}")
    for m in methods:
        for name in m.only or ():
            if name not in names:
                raise InputError(f"`only` of {m.label!r} names the data {name!r}; {did_you_mean(name, names)}")


def _check_tasks(tasks: Sequence[Task]) -> None:
    """There are some, and no two are the same but for the label."""
    if not tasks:
        raise InputError(
            "it has no tasks, because `only` and `without` leave every method out of every data set; allow at least one"
        )
    labels: dict[str, str] = {}
    for task in tasks:
        other = labels.setdefault(identity(task.row), task.label)
        if other != task.label:
            raise InputError(
                f"{other!r} and {task.label!r} are the same method with the same settings on {task.data!r}; keep one"
            )
