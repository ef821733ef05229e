"""A plan: data x methods x budgets x seeds x shares of removed values, read from TOML and checked before anything runs."""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from askwise.bench import own_table
from askwise.bench.plan_settings import NAMES, RULES, TABLE, TEXT, PlanSettings, check_known, joined
from askwise.bench.rows import identity
from askwise.bench.task import PARTS, Task
from askwise.components import imputation as imputations
from askwise.core.parameters import OneOf, checked
from askwise.datasets.named import cards
from askwise.errors import InputError, did_you_mean
from askwise.methods import names as method_names

OF_PLAN = ("name", "about", "data", "methods", *RULES)
OF_DATA = ("name", "without", *RULES)
OF_METHOD = ("name", "label", "only", "imputation", "options", *RULES)


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
    data = [_data_entry(entry, folder) for entry in _tables(table, "data")]
    methods = [_method_entry(entry) for entry in _tables(table, "methods")]
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
        rule=None if settings.loss == "0/1" else settings.loss,
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
    mentions = [(f"`without` of {d.name!r} names the method", label, labels) for d in data for label in d.without]
    mentions += [(f"`only` of {m.label!r} names the data", name, names) for m in methods for name in m.only or ()]
    for words, name, known in mentions:
        if name not in known:
            raise InputError(f"{words} {name!r}; {did_you_mean(name, known)}")


def _check_tasks(tasks: Sequence[Task]) -> None:
    """There are some, and no two are the same but for the label."""
    if not tasks:
        raise InputError(
            "it has no tasks, because `only` and `without` leave every method out of every data set; allow at least one"
        )
    labels: dict[str, str] = {}
    for task in tasks:
        label, other = task.label, labels.setdefault(identity(task.row), task.label)
        if other != label:
            raise InputError(f"{other!r} and {label!r} are the same method with the same settings on {task.data!r}; keep one")


# ---------------------------------------------------------------------- data sets and methods, each a name or a table


@dataclass(frozen=True)
class DataEntry:
    """A named set, or a table of one's own."""

    name: str
    without: list[str]  # labels of methods
    settings: Mapping[str, Any]
    source: dict[str, Any] | None = None  # of a file, see `own_table`


@dataclass(frozen=True)
class MethodEntry:
    """A method with its options."""

    name: str
    label: str
    only: list[str] | None  # names of data; None: all
    imputation: str | None
    options: dict[str, Any]
    settings: Mapping[str, Any]


def _tables(plan: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of names and tables, all as tables."""
    entries = plan.get(key)
    if not isinstance(entries, list) or not entries:
        raise InputError(f"`{key}` is {entries!r}; it must be a list of names or tables, with one at least")
    for entry in entries:
        if not isinstance(entry, (str, dict)):
            raise InputError(f"`{key}` holds {entry!r}; it must be a name or a table")
    return [{"name": entry} if isinstance(entry, str) else entry for entry in entries]


def _data_entry(entry: dict[str, Any], folder: Path) -> DataEntry:
    if "file" in entry:
        return _own_table(entry, folder)
    for name in own_table.OF_FILE:
        if name in entry:
            raise InputError(f"data {entry.get('name')!r} has `{name}`, which is for files; name the file too")
    check_known(entry, OF_DATA, f"data {entry.get('name')!r}")
    name = checked(entry.get("name"), TEXT, "the name of a data set")
    if name not in cards():
        raise InputError(f"there is no data set {name!r}; for a table of your own give a `file`; {did_you_mean(name, cards())}")
    return DataEntry(name, checked(entry.get("without", []), NAMES, f"`without` of {name!r}"), entry)


def _own_table(entry: dict[str, Any], folder: Path) -> DataEntry:
    file = checked(entry["file"], TEXT, "file")
    check_known(entry, (*OF_DATA, *own_table.OF_FILE), f"the data of {file!r}")
    path = folder / file
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    source = own_table.described(entry, folder)
    own_table.check(folder, source)
    with path.open("rb") as stream:
        checksum = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
    name = checked(entry.get("name", path.name.split(".")[0]), TEXT, "name")
    without = checked(entry.get("without", []), NAMES, f"`without` of {file!r}")
    return DataEntry(name, without, entry, {**source, "sha256": checksum})


def _method_entry(entry: dict[str, Any]) -> MethodEntry:
    name = checked(entry.get("name"), TEXT, "the name of a method")
    check_known(entry, OF_METHOD, f"method {name!r}")
    if "." in name and not all(part.isidentifier() for part in name.split(".")):
        raise InputError(
            f"the name of a method is {name!r}; it must be that of a module that can be imported, such as 'mine.tree'"
        )
    if "." not in name and name not in method_names():
        raise InputError(f"there is no method {name!r}; {did_you_mean(name.replace('_', '-'), method_names())}")
    imputation = entry.get("imputation")
    if imputation is not None:
        checked(imputation, OneOf(*imputations.KINDS), f"`imputation` of {name!r}")
    only = checked(entry["only"], NAMES, f"`only` of {name!r}") if "only" in entry else None
    label = name.rpartition(".")[2] + (f" {imputation}" if imputation else "")
    label = checked(entry.get("label", label), TEXT, "label")
    return MethodEntry(name, label, only, imputation, _options(entry.get("options", {}), name), entry)


def _options(options: Any, method: str) -> dict[str, Any]:
    checked(options, TABLE, f"`options` of {method!r}")
    for option, value in options.items():
        try:
            json.dumps(value)
        except TypeError:  # TOML knows dates and times
            raise InputError(f"the option {option!r} of {method!r} is {value}; a date must be a text, in quotes") from None
    return dict(options)
