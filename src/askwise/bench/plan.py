"""A plan: data x methods x budgets x seeds x shares of removed values, read from TOML and checked before anything runs.

Settings may be given for the whole plan, for a data set and for a method; the method's win over the data set's, and these over
the plan's.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from askwise.bench import own_table
from askwise.bench.rows import identity
from askwise.bench.task import BUDGETS, MOST_ROWS, PARTS, Task
from askwise.core.costs import exact
from askwise.core.parameters import Choice, Whole, checked
from askwise.errors import InputError, did_you_mean, quoted

FRONTIER = "frontier"  # in place of a budget: all that the method can make

SETTINGS = (
    "seeds",
    "minutes",
    "budgets",
    "remove",
    "most_rows",
    "class_weight",
    "threads",
    "accuracy_at",
    "cost_at",
    "kill_after",
)
OF_PLAN = ("name", "about", "data", "methods", *SETTINGS)
OF_DATA = ("name", "without", *SETTINGS)
OF_METHOD = ("name", "label", "only", "imputation", "options", *SETTINGS)


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
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:  # also numbers of thousands of digits, and thousands of brackets
        raise InputError(f"the plan {path.name!r} is not TOML: {error}") from None
    try:
        return made(given, path.parent, path.stem)
    except InputError as error:
        raise InputError(f"the plan {path.name!r}: {error}") from None


def made(given: Mapping[str, Any], folder: Path, name: str = "plan") -> Plan:
    """A plan from the dict that its file holds. Files are looked for in `folder`."""
    _known(given, OF_PLAN, "the plan")
    name = _word(given.get("name", name), "name")
    _word(given.get("about", ""), "about")
    data = [_data(entry, folder) for entry in _entries(given, "data")]
    methods = [_method(entry) for entry in _entries(given, "methods")]
    for kind, names in (("data set", [d["name"] for d in data]), ("label", [m["label"] for m in methods])):
        twice = next((n for n in names if names.count(n) > 1), None)
        if twice is not None:
            raise InputError(f"the {kind} {twice!r} appears twice" + ("; give one of them a label" if kind == "label" else ""))
    labels = [m["label"] for m in methods]
    for d in data:
        for label in d["without"]:
            if label not in labels:
                raise InputError(f"`without` of {d['name']!r} names the method {label!r}; {did_you_mean(label, labels)}")
    tasks, names = list[Task](), [d["name"] for d in data]
    for m in methods:
        for name_of_data in m["only"] or ():
            if name_of_data not in names:
                raise InputError(f"`only` of {m['label']!r} names the data {name_of_data!r}; {did_you_mean(name_of_data, names)}")
    for d, m in itertools.product(data, methods):
        if m["label"] not in d["without"] and (m["only"] is None or d["name"] in m["only"]):
            tasks += _tasks(_joined(given, d, m), d, m, folder)
    if not tasks:
        raise InputError(
            "it has no tasks, because `only` and `without` leave every method out of every data set; allow at least one"
        )
    labels_of: dict[str, str] = {}
    for task in tasks:
        other = labels_of.setdefault(identity(task.row), task.label)
        if other != task.label:
            raise InputError(
                f"{other!r} and {task.label!r} are the same method with the same settings on {task.data!r}; keep one"
            )
    return Plan(name, tuple(tasks))


def _tasks(settings: dict[str, Any], d: dict[str, Any], m: dict[str, Any], folder: Path) -> Iterable[Task]:
    """All tasks of one method on one data set."""
    most = {**MOST_ROWS, **settings.get("most_rows", {})}
    base = Task(
        data=d["name"],
        method=m["name"],
        label=m["label"],
        seed=0,
        minutes=settings.get("minutes", 1.0),
        budget=None,
        remove=0.0,
        imputation=m.get("imputation"),
        options=m.get("options", {}),
        class_weight=settings.get("class_weight"),
        most_rows={part: most[part] for part in PARTS},
        threads=settings.get("threads", 1),
        source=d.get("source"),
        accuracy_at=settings.get("accuracy_at"),
        cost_at=settings.get("cost_at", Task.cost_at),
        kill_after=settings.get("kill_after"),
        folder=str(folder),
    )
    axes = settings.get("remove", (0.0,)), settings.get("budgets", (None,)), settings.get("seeds", (0,))
    return [replace(base, remove=share, budget=budget, seed=seed) for share, budget, seed in itertools.product(*axes)]


# ---------------------------------------------------------------------- parts of a plan


def _entries(given: Mapping[str, Any], what: str) -> list[dict[str, Any]]:
    """A list of names and tables, all as tables."""
    entries = given.get(what)
    if not isinstance(entries, list) or not entries:
        raise InputError(f"`{what}` is {entries!r}; it must be a list of names or tables, with one at least")
    for entry in entries:
        if not isinstance(entry, (str, dict)):
            raise InputError(f"`{what}` holds {entry!r}; it must be a name or a table")
    return [{"name": entry} if isinstance(entry, str) else entry for entry in entries]


def _data(entry: dict[str, Any], folder: Path) -> dict[str, Any]:
    from askwise.datasets.named import cards

    if "file" not in entry:
        for name in own_table.OF_FILE:
            if name in entry:
                raise InputError(f"data {entry.get('name')!r} has `{name}`, which is for files; name the file too")
        _known(entry, OF_DATA, f"data {entry.get('name')!r}")
        name = _word(entry.get("name"), "the name of a data set")
        if name not in cards():
            raise InputError(
                f"there is no data set {name!r}; for a table of your own give a `file`; {did_you_mean(name, cards())}"
            )
        return {**entry, "without": _names(entry.get("without", []), f"`without` of {name!r}")}
    file = _word(entry["file"], "file")
    _known(entry, (*OF_DATA, *own_table.OF_FILE), f"the data of {file!r}")
    path = folder / file
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    target = _word(entry.get("target"), f"the target of {file!r}")
    source = {**_source(entry, file, folder), "target": target}
    own_table.check(folder, source)
    with path.open("rb") as stream:
        checksum = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
    return {
        **entry,
        "name": _word(entry.get("name", path.name.split(".")[0]), "name"),
        "without": _names(entry.get("without", []), f"`without` of {file!r}"),
        "source": {**source, "sha256": checksum},
    }


def _source(entry: dict[str, Any], file: str, folder: Path) -> dict[str, Any]:
    """What is said about the columns of a file, each in its shape; whether the columns are there, the header tells."""
    source = {name: entry[name] for name in own_table.OF_FILE if name in entry}
    for key in ("ignore", "categorical"):
        if key in source:
            source[key] = _names(source[key], f"`{key}` of {file!r}")
    if isinstance(source.get("costs"), str):
        from askwise.tables.lists import lines

        source["costs"] = {row["test"]: row["cost"] for row in lines(folder / source["costs"], ("test", "cost"))}
    for key, shape in (
        ("costs", "{age = 2}"),
        ("setup", '{draw = {cost = 2, tests = ["sugar"]}}'),
        ("derived", '{index = ["weight", "height"]}'),
        ("reveals", '{form = ["age", "smoker"]}'),
    ):
        if not isinstance(source.get(key, {}), dict):
            raise InputError(f"`{key}` of {file!r} is {source[key]!r}; it must be a table like {shape}")
    for key in ("derived", "reveals"):
        for test, names in source.get(key, {}).items():
            _names(names, f"{test!r} in `{key}` of {file!r}")
    for name, pair in source.get("setup", {}).items():
        if not isinstance(pair, dict) or set(pair) != {"cost", "tests"}:
            raise InputError(f'the set-up {name!r} of {file!r} is {pair!r}; it must be like {{cost = 2, tests = ["sugar"]}}')
        _names(pair["tests"], f"`tests` of the set-up {name!r} of {file!r}")
    shares = source.get("shares")
    if shares is not None:
        given = shares if isinstance(shares, list) else []
        numbers = [_number(share, f"a share in `shares` of {file!r}") for share in given]
        if len(numbers) != len(PARTS) or not all(numbers) or abs(sum(numbers) - 1) > 1e-9:
            raise InputError(
                f"`shares` of {file!r} is {shares!r}; it must be three shares above 0, for {', '.join(PARTS)}, that add up to 1"
            )
    return source


def _method(entry: dict[str, Any]) -> dict[str, Any]:
    from askwise import methods

    name = _word(entry.get("name"), "the name of a method")
    _known(entry, OF_METHOD, f"method {name!r}")
    if "." in name and not all(part.isidentifier() for part in name.split(".")):
        raise InputError(
            f"the name of a method is {name!r}; it must be that of a module that can be imported, such as 'mine.tree'"
        )
    if "." not in name and name not in methods.names():
        raise InputError(f"there is no method {name!r}; {did_you_mean(name.replace('_', '-'), methods.names())}")
    imputation = entry.get("imputation")
    if imputation is not None:
        from askwise.components.imputation import KINDS

        if imputation not in KINDS:
            raise InputError(f"`imputation` of {name!r} is {imputation!r}; it must be {' or '.join(map(repr, KINDS))}")
    options = entry.get("options", {})
    if not isinstance(options, dict):
        raise InputError(f"`options` of {name!r} is {options!r}; it must be a table")
    for option, value in options.items():
        try:
            json.dumps(value)
        except TypeError:  # TOML knows dates and times
            raise InputError(f"the option {option!r} of {name!r} is {value}; a date must be a text, in quotes") from None
    only = _names(entry["only"], f"`only` of {name!r}") if "only" in entry else None
    label = name.rpartition(".")[2] + (f" {imputation}" if imputation else "")
    return {**entry, "only": only, "label": _word(entry.get("label", label), "label")}


def _joined(*levels: Mapping[str, Any]) -> dict[str, Any]:
    """The settings that are given, checked and in one form; later levels win, of `most_rows` for each part by itself."""
    found: dict[str, Any] = {}
    for given in levels:
        here: dict[str, Any] = {name: _CHECKS[name](given[name]) for name in SETTINGS if name in given}
        found = {**found, **here, "most_rows": {**found.get("most_rows", {}), **here.get("most_rows", {})}}
    return found


def _seeds(given: Any) -> tuple[int, ...]:
    if isinstance(given, int) and not isinstance(given, bool) and given > 0:
        return tuple(range(given))
    whole = isinstance(given, list) and given and all(isinstance(s, int) and not isinstance(s, bool) and s >= 0 for s in given)
    if not whole or len(set(given)) < len(given):
        raise InputError(f"`seeds` is {given!r}; it must be a number of seeds, or a list of different whole numbers, 0 or more")
    return tuple(given)


def _budgets(given: Any) -> tuple[dict[str, float] | None, ...]:
    """Each a table of amounts, or of lists of amounts, which stand for all of their combinations; or the word 'frontier'."""
    if not isinstance(given, list) or not given:
        raise InputError(f"`budgets` is {given!r}; it must be a list like [{{average = 5}}, {{hard = [10, 20]}}, {FRONTIER!r}]")
    found: list[dict[str, float] | None] = []
    for one in given:
        if one == FRONTIER:
            found.append(None)
            continue
        if not isinstance(one, dict) or not one:
            raise InputError(f"a budget is {one!r}; it must be a table with tradeoff, average or hard, or the word {FRONTIER!r}")
        _known(one, tuple(BUDGETS), "a budget")
        choices = [[(kind, v) for v in (value if isinstance(value, list) else [value])] for kind, value in one.items()]
        for chosen in itertools.product(*choices):
            budget = {kind: _number(value, f"`{kind}` of a budget") for kind, value in chosen}
            found.append({kind: budget[kind] for kind in BUDGETS if kind in budget})
            if {"tradeoff", "average"} <= set(budget):
                raise InputError(f"the budget {one!r} has both a tradeoff and an average, but an average finds its own tradeoff")
    twice = [one for one in found if found.count(one) > 1]
    if twice:
        raise InputError(f"`budgets` has {FRONTIER if twice[0] is None else twice[0]!r} twice; they must be different")
    return tuple(found)


def _shares(given: Any) -> tuple[float, ...]:
    shares = tuple(float(_number(share, "`remove`")) for share in (given if isinstance(given, list) else [given]))
    if not shares or max(shares) >= 1 or len(set(shares)) < len(shares):
        raise InputError(f"`remove` is {given!r}; it must be different shares of the training values, 0 or more and below 1")
    return shares


def _rows(given: Any) -> dict[str, int]:
    if not isinstance(given, dict):
        raise InputError(f"`most_rows` is {given!r}; it must be a table like {{train = 5000, test = 500}}")
    _known(given, PARTS, "most_rows")
    for part, most in given.items():
        if not isinstance(most, int) or isinstance(most, bool) or most < 0:
            raise InputError(f"`most_rows` of {part} is {most!r}; it must be a whole number, 0 for all")
    return given


def _weight(given: Any) -> str | None:
    return None if checked(given, Choice("balanced", "none"), "`class_weight`") == "none" else "balanced"


def _minutes(given: Any, key: str) -> float:
    minutes = float(_number(given, f"`{key}`"))
    if minutes <= 0:
        raise InputError(f"`{key}` is {given!r}; it must be more than 0")
    return minutes


def _numbers(given: Any, key: str) -> tuple[float, ...]:
    if not isinstance(given, list):
        raise InputError(f"`{key}` is {given!r}; it must be a list of numbers")
    return tuple(_number(value, f"a number of `{key}`") for value in given)


_CHECKS: dict[str, Callable[[Any], Any]] = {
    "seeds": _seeds,
    "minutes": partial(_minutes, key="minutes"),
    "budgets": _budgets,
    "remove": _shares,
    "most_rows": _rows,
    "class_weight": _weight,
    "threads": partial(checked, constraint=Whole(at_least=1), name="`threads`"),
    "accuracy_at": partial(_numbers, key="accuracy_at"),
    "cost_at": partial(_numbers, key="cost_at"),
    "kill_after": partial(_minutes, key="kill_after"),
}


def _number(given: Any, what: str) -> float:
    """5 and 5.0 are the same amount."""
    if isinstance(given, str):
        raise InputError(f"{what} is {quoted(given)}; it must be a finite number, 0 or more, without quotes")
    exact(given, what)
    return int(given) if float(given).is_integer() else float(given)


def _word(given: Any, what: str) -> str:
    if not isinstance(given, str):
        raise InputError(f"{what} is {given!r}; it must be a text")
    return given


def _names(given: Any, what: str) -> list[str]:
    """A single name may come without brackets."""
    names = [given] if isinstance(given, str) else given
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"{what} is {given!r}; it must be a list of names")
    return names


def _known(given: Mapping[str, Any], names: tuple[str, ...], where: str) -> None:
    for name in given:
        if name not in names:
            raise InputError(f"{where} has {name!r}, which is not a setting here; {did_you_mean(name, names)}")
