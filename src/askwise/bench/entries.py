"""Rows for reading: those of several files together, checked, one for each task; and by method, with all seeds side by side."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from askwise.bench import rows
from askwise.core.arrays import Doubles
from askwise.errors import InputError

Row = dict[str, Any]

# what a row may leave out, since nothing was said about it when it was written
UNSAID: Row = {"budget": None, "remove": 0.0, "imputation": None, "options": {}}
NUMBER = (int, float)
TASK: dict[str, Any] = {  # of what kind each must be
    "data": str,
    "method": str,
    "label": str,
    "seed": int,
    "minutes": NUMBER,
    "budget": (dict, type(None)),
    "remove": NUMBER,
    "imputation": (str, type(None)),
    "options": dict,
}
BESIDE: dict[str, Any] = {
    "resampled": list,
    "accuracy_at": dict,
    "cost_at": dict,
    "columns": list,
    "validation": list,
    "test": list,
    "cost_interval": list,
    "score_interval": list,
    "versions": dict,
    "most_rows": dict,
    "source": dict,
}
STATUS = ("done", "refused", "failed")


@dataclass(frozen=True)
class Gathered:
    """The last word on each task, in the order in which tasks first came, and what was passed over on the way."""

    rows: tuple[Row, ...]
    remarks: tuple[str, ...] = ()

    @property
    def done(self) -> list[Row]:
        return [row for row in self.rows if row["status"] == "done"]

    @property
    def frontiers(self) -> list[Row]:
        return [row for row in self.done if row["task"]["budget"] is None]

    @property
    def budgeted(self) -> list[Row]:
        return [row for row in self.done if row["task"]["budget"] is not None]


def gathered(paths: Sequence[Path]) -> Gathered:
    """The rows of some files. Of a task that was tried again the row that is done counts, or the last one."""
    there: dict[str, Row] = {}
    remarks, again = [], 0
    for path in paths:
        if not path.is_file():
            raise InputError(f"there is no file {str(path)!r}; name the rows that `askwise bench` has written")
        for number, row in rows.numbered(path):
            wrong = "is damaged" if row is None else what_is_wrong(row)
            if row is None or wrong:
                remarks.append(f"Line {number} of {path.name} {wrong}; it was passed over.")
                continue
            row = {**row, "task": told(row["task"])}
            key = row["task"]["label"] + rows.identity(row)
            again += key in there
            if key not in there or row["status"] == "done" or there[key]["status"] != "done":
                there[key] = row  # a dict keeps the place of the first
    if again:
        remarks.append(f"{again} rows are of a task that has another row; the last that is done counts, or the last.")
    return Gathered(tuple(there.values()), tuple(remarks))


def told(task: Row) -> Row:
    """A task with what it leaves out."""
    return {**UNSAID, "label": task.get("method"), **task}


def what_is_wrong(row: Row) -> str | None:
    """Why a row cannot be used, as the end of a sentence."""
    task = row.get("task")
    if not isinstance(task, dict):
        return "is not a row of a bench, or one of another version: it has no task"
    task = told(task)
    for name, kind in TASK.items():
        if not isinstance(task.get(name), kind):
            return f"is of another version: the {name} of its task is {task.get(name)!r}"
    for name, kind in BESIDE.items():
        if not isinstance(row.get(name, kind()), (kind, type(None))):
            return f"is of another version: its {name} is {row[name]!r}"
    if row.get("status") not in STATUS:
        return f"has the status {row.get('status')!r}, which nobody knows"
    if row["status"] == "done":
        needed = ("area", "total", "curve") if task["budget"] is None else ("cost", "score")
        for name in needed:
            if not _usable(row.get(name)):
                return f"is of another version: it is done, but has no {name}"
    return None


def _usable(value: Any) -> bool:
    """A finite number, or the two lists of a curve."""
    if isinstance(value, list):
        two = len(value) == 2 and all(isinstance(part, list) for part in value) and len(value[0]) == len(value[1]) > 0
        return two and all(is_number(v) for part in value for v in part)
    return is_number(value)


def is_number(value: Any) -> bool:
    return isinstance(value, NUMBER) and not isinstance(value, bool) and math.isfinite(value)


def numbers(values: Iterable[Any]) -> list[float]:
    """Those that are."""
    return [v for v in values if is_number(v)]


# ---------------------------------------------------------------------- by data


def told_apart(found: Iterable[Row]) -> list[Row]:
    """The rows, with names of data that each stand for one set of cases: where rows give one name to several, it says which.

    A method that has other limits of rows than the rest, but always the same, stays beside them. Told apart once more, names stay
    as they are.
    """
    of = list(found)
    values: dict[tuple[str, str], list[str]] = {}  # by name of data and fact, as they come
    limits: dict[tuple[str, ...], set[str]] = {}
    for row in of:
        data, facts = row["task"]["data"], facts_of_data(row)
        for fact, value in facts.items():
            here = values.setdefault((data, fact), [])
            here += [value] * (value not in here)
        limits.setdefault((data, row["task"]["label"], *facts.values()), set()).add(limits_words(row))
    limited = {data for (data, *_), here in limits.items() if len(here) > 1}

    def name(row: Row) -> str:
        data, said = row["task"]["data"], []
        for fact, value in facts_of_data(row).items():
            if len(here := values[data, fact]) > 1:
                said.append(
                    f"{fact} {here.index(value) + 1 if fact == 'settings' else value}"
                )  # settings are too long for a name
        said += [f"rows {limits_words(row)}"] if data in limited else []
        return f"{data} ({', '.join(said)})" if said else data

    return [{**row, "task": {**row["task"], "data": name(row)}} for row in of]


def facts_of_data(row: Row) -> dict[str, str]:
    """What, beside its name, its seed and the limits of rows, makes the cases of a row those that they are."""
    source = row.get("source") or {}
    settings = {name: value for name, value in source.items() if name not in ("file", "sha256")}
    return {
        "file": str(source.get("sha256", "none")),
        "settings": json.dumps(settings, sort_keys=True),
        "class_weight": str(row.get("class_weight") or "none"),
    }


def limits_words(row: Row) -> str:
    return ", ".join(f"{part} {most}" for part, most in (row.get("most_rows") or {}).items() if most) or "all"


# ---------------------------------------------------------------------- by method


@dataclass(frozen=True)
class Entry:
    """All seeds of a method on a data set, with the same settings and the same budget."""

    data: str
    name: str
    rows: tuple[Row, ...]

    @property
    def budget(self) -> dict[str, float] | None:
        found: dict[str, float] | None = self.rows[0]["task"]["budget"]
        return found

    def numbers(self, name: str) -> list[float]:
        """What the rows say under a name, without those that do not say it."""
        return numbers(row.get(name) for row in self.rows)

    @property
    def area(self) -> float:
        """Mean over seeds."""
        return float(np.mean(self.numbers("area")))

    @property
    def interval(self) -> tuple[float, float] | None:
        """Of the mean area, from the resamplings of the test cases; None where there are none."""
        drawn = [row["resampled"] for row in self.rows if row.get("resampled")]
        if len(drawn) < len(self.rows) or len({len(d) for d in drawn}) > 1:
            return None
        low, high = np.quantile(np.mean(drawn, 0), [0.025, 0.975])
        return float(low), float(high)


def entries(found: Iterable[Row]) -> list[Entry]:
    """Rows that differ in nothing but the seed belong together. The name says what tells entries of one method apart."""
    of = told_apart(found)
    telling = _telling(of)
    grouped: dict[tuple[str, str, str], list[Row]] = {}
    for row in of:
        task = row["task"]
        grouped.setdefault((task["data"], name_of(row, telling.get(task["label"], ())), str(task["budget"])), []).append(row)
    order = list(dict.fromkeys(data for data, _, _ in grouped))
    made = [Entry(data, name, tuple(sorted(them, key=lambda r: r["task"]["seed"]))) for (data, name, _), them in grouped.items()]
    return sorted(made, key=lambda entry: order.index(entry.data))


def _telling(of: list[Row]) -> dict[str, tuple[str, ...]]:
    """By label: the settings that differ between its rows on some data set."""
    seen: dict[tuple[str, str, str], set[str]] = {}
    for row in of:
        for name in (*SAYING, "method"):
            seen.setdefault((row["task"]["label"], name, row["task"]["data"]), set()).add(repr(_setting(row, name)))
    found: dict[str, tuple[str, ...]] = {}
    for (label, name, _), values in seen.items():
        if len(values) > 1 and name not in found.get(label, ()):
            found[label] = (*found.get(label, ()), name)
    return found


def _setting(row: Row, name: str) -> Any:
    return row["task"][name] if name in row["task"] else row.get(name)


SAYING = {
    "minutes": lambda v: f"{v:g} min",
    "remove": lambda v: f"{100 * v:g} % removed" if v else "nothing removed",
    "imputation": lambda v: str(v or "no imputation"),
    "options": lambda v: ", ".join(f"{name}={value}" for name, value in v.items()) or "no options",
    "threads": lambda v: f"{v} threads",
}


def name_of(row: Row, telling: Sequence[str]) -> str:
    """The label, and what tells it apart from others with this label; that values were removed is never left out."""
    task = row["task"]
    said = ["method"] if "method" in telling else []
    said += [name for name in SAYING if name in telling or (name == "remove" and task[name])]
    words = [task["method"] if name == "method" else SAYING[name](_setting(row, name)) for name in said]
    return ", ".join([task["label"], *words])


def budget_words(budget: dict[str, float] | None) -> str:
    return " and ".join(f"{kind} {amount:g}" for kind, amount in (budget or {}).items()) or "none"


def mean_curve(entry: Entry) -> tuple[Doubles, Doubles]:
    """The curves of all seeds, averaged at every cost; unless one of them jumps, the area under it is the mean of theirs."""
    curves = [np.asarray(row["curve"], float) for row in entry.rows]
    if len(curves) == 1:
        return curves[0][0], curves[0][1]
    cost = np.unique(np.concatenate([c[0] for c in curves]))
    return cost, np.mean([np.interp(cost, *c) for c in curves], 0)


# ---------------------------------------------------------------------- comparisons


@dataclass(frozen=True)
class Difference:
    """By how much the area of one entry is above that of another, over the seeds that both have."""

    mean: float
    low: float
    high: float
    seeds: int


def difference(mine: Entry, theirs: Entry) -> Difference | None:
    """With an interval that holds 95 of 100 resamplings of the test cases, the same for both; None where they cannot be compared
    case by case."""
    other = {row["task"]["seed"]: row for row in theirs.rows}
    both = [(row, other[seed]) for row in mine.rows if (seed := row["task"]["seed"]) in other]
    drawn = [(a.get("resampled") or [], b.get("resampled") or []) for a, b in both]
    alike = len({len(d) for pair in drawn for d in pair}) == 1 and len(drawn[0][0]) > 0
    if not alike or any(_test_cases(a) != _test_cases(b) for a, b in both):
        return None
    mean = float(np.mean([a["area"] - b["area"] for a, b in both]))
    low, high = np.quantile(np.mean([np.subtract(a, b) for a, b in drawn], 0), [0.025, 0.975])
    return Difference(mean, float(low), float(high), len(both))


def _test_cases(row: Row) -> tuple[Any, ...]:
    """The same for rows of one seed with the same test cases; as many of the same ones are always the same part of them."""
    return row["task"]["data"], facts_of_data(row), row.get("n_test")


def ranks(values: Sequence[float], digits: int = 4) -> list[float]:
    """1 for the largest; those that are equal, rounded so, share the mean of their places."""
    shown = np.round(np.asarray(values, float), digits)
    return [float((shown > v).sum() + ((shown == v).sum() + 1) / 2) for v in shown]
