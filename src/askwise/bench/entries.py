"""Rows by data set and by method, with all seeds side by side, and how two methods compare."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.bench.rows import Row, numbers
from askwise.core.arrays import Doubles


def with_distinct_data(rows: Iterable[Row]) -> list[Row]:
    """The rows, with names of data that each stand for one set of cases: where rows give one name to several, it says which. A
    method that has other limits of rows than the rest, but always the same, stays beside them. Distinct names stay."""
    rows = list(rows)
    values: dict[tuple[str, str], list[str]] = {}  # by name of data and fact, as they come
    limits: dict[tuple[str, ...], set[str]] = {}
    for row in rows:
        data, facts = row["task"]["data"], facts_of_data(row)
        for fact, value in facts.items():
            here = values.setdefault((data, fact), [])
            here += [value] * (value not in here)
        limits.setdefault((data, row["task"]["label"], *facts.values()), set()).add(limits_words(row))
    limited = {data for (data, *_), here in limits.items() if len(here) > 1}

    def name(row: Row) -> str:
        data, differences = row["task"]["data"], []
        for fact, value in facts_of_data(row).items():
            if len(here := values[data, fact]) > 1:  # settings are too long for a name
                differences.append(f"{fact} {here.index(value) + 1 if fact == 'settings' else value}")
        differences += [f"rows {limits_words(row)}"] if data in limited else []
        return f"{data} ({', '.join(differences)})" if differences else data

    return [{**row, "task": {**row["task"], "data": name(row)}} for row in rows]


def facts_of_data(row: Row) -> dict[str, str]:
    """What, beside its name, its seed and the limits of rows, makes the cases of a row those that they are."""
    source = row.get("source") or {}
    settings = {name: value for name, value in source.items() if name not in ("file", "sha256")}
    return {
        "file": str(source.get("sha256", "none")),
        "settings": json.dumps(settings, sort_keys=True),
        "class_weight": str(row.get("class_weight") or "none"),
        "loss": str(row.get("rule") or "0/1"),
    }


def limits_words(row: Row) -> str:
    return ", ".join(f"{part} {most}" for part, most in (row.get("most_rows") or {}).items() if most) or "all"


@dataclass(frozen=True)
class Entry:
    """All seeds of a method on a data set, with the same settings and the same budget."""

    data: str
    name: str
    rows: tuple[Row, ...]

    @property
    def budget(self) -> dict[str, float] | None:
        budget: dict[str, float] | None = self.rows[0]["task"]["budget"]
        return budget

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


def entries(rows: Iterable[Row]) -> list[Entry]:
    """Rows that differ in nothing but the seed belong together. The name says what tells entries of one method apart."""
    rows = with_distinct_data(rows)
    differing = _differing_settings(rows)

    def facts(row: Row) -> tuple[str, str, str]:
        task = row["task"]
        return task["data"], name_of(row, differing.get(task["label"], ())), str(task["budget"])

    alike = grouped(rows, facts)
    each = [Entry(data, name, tuple(sorted(of, key=lambda r: r["task"]["seed"]))) for (data, name, _), of in alike.items()]
    order = list(dict.fromkeys(entry.data for entry in each))
    return sorted(each, key=lambda entry: order.index(entry.data))


def grouped(items: Iterable[Any], key: Callable[[Any], Any]) -> dict[Any, list[Any]]:
    """By their keys, in the order in which these first come."""
    groups: dict[Any, list[Any]] = {}
    for item in items:
        groups.setdefault(key(item), []).append(item)
    return groups


def _differing_settings(rows: list[Row]) -> dict[str, tuple[str, ...]]:
    """By label: the settings that differ between its rows on some data set."""
    values: dict[tuple[str, str, str], set[str]] = {}
    for row in rows:
        for name in (*SETTING_WORDS, "method"):
            values.setdefault((row["task"]["label"], name, row["task"]["data"]), set()).add(repr(_setting(row, name)))
    differing: dict[str, tuple[str, ...]] = {}
    for (label, name, _), different in values.items():
        if len(different) > 1 and name not in differing.get(label, ()):
            differing[label] = (*differing.get(label, ()), name)
    return differing


def _setting(row: Row, name: str) -> Any:
    return row["task"][name] if name in row["task"] else row.get(name)


SETTING_WORDS = {
    "minutes": lambda v: f"{v:g} min",
    "remove": lambda v: f"{100 * v:g} % removed" if v else "nothing removed",
    "imputation": lambda v: str(v or "no imputation"),
    "options": lambda v: ", ".join(f"{name}={value}" for name, value in v.items()) or "no options",
    "threads": lambda v: f"{v} threads",
}


def name_of(row: Row, differing: Sequence[str]) -> str:
    """The label, and what tells it apart from others with this label; that values were removed is never left out."""
    task = row["task"]
    names = [name for name in SETTING_WORDS if name in differing or (name == "remove" and task[name])]
    words = [task["method"]] if "method" in differing else []
    words += [SETTING_WORDS[name](_setting(row, name)) for name in names]
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


@dataclass(frozen=True)
class Difference:
    """By how much the area of one entry is above that of another, over the seeds that both have."""

    mean: float
    low: float
    high: float
    seeds: int


def difference(entry: Entry, other: Entry) -> Difference | None:
    """With an interval that holds 95 of 100 resamplings, the same for both; None where they do not share their test cases."""
    by_seed = {row["task"]["seed"]: row for row in other.rows}
    both = [(row, by_seed[seed]) for row in entry.rows if (seed := row["task"]["seed"]) in by_seed]
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
