"""The tables of a report, from entries: areas, measures, budgets, ranks, differences, times, and what did not work."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from askwise.bench.entries import Entry, budget_words, difference, name_of, ranks
from askwise.bench.gathering import Row, is_number, numbers
from askwise.reports.pages import Strong, Table

NOTHING = "–"


def spread(of: Sequence[float], digits: int) -> str:
    """Mean and deviation, for a table."""
    if not of:
        return NOTHING
    return f"{statistics.mean(of):.{digits}f} ± {statistics.stdev(of):.{digits}f}" if len(of) > 1 else f"{of[0]:.{digits}f}"


def between(pair: Sequence[float] | None, digits: int, sign: str = "") -> str:
    return NOTHING if pair is None else f"{pair[0]:{sign}.{digits}f} to {pair[1]:{sign}.{digits}f}"


def best(of: Sequence[float | None], digits: int = 4) -> list[bool]:
    """Which are the largest, as far as the table shows it."""
    shown = [None if v is None else round(v, digits) for v in of]
    most = max((v for v in shown if v is not None), default=None)
    return [v is not None and v == most and len(shown) > 1 for v in shown]


def by_data(of: Iterable[Entry]) -> dict[str, list[Entry]]:
    grouped: dict[str, list[Entry]] = {}
    for entry in of:
        grouped.setdefault(entry.data, []).append(entry)
    return grouped


# ---------------------------------------------------------------------- frontiers


def areas(data: str, of: Sequence[Entry]) -> Table:
    """Best first."""
    head = ("method", "area", "95 % interval", "seeds", "minutes given", "minutes taken", "memory, MB", "cases: training / test")
    lines = []
    ordered = sorted(of, key=lambda e: -e.area)
    for entry, first in zip(ordered, best([e.area for e in ordered]), strict=True):
        area = spread(entry.numbers("area"), 4)
        lines.append(
            (
                entry.name,
                Strong(area) if first else area,
                between(entry.interval, 4),
                str(len(entry.rows)),
                f"{entry.rows[0]['task']['minutes']:g}",
                spread(entry.numbers("minutes_taken"), 2),
                _most(entry, "memory_mb"),
                f"{_most(entry, 'n_train')} / {_most(entry, 'n_test')}",
            )
        )
    return Table(f"{data}: area under the frontier", head, tuple(lines))


def _most(entry: Entry, name: str) -> str:
    values = entry.numbers(name)
    return f"{max(values):.0f}" if values else NOTHING


def readings(data: str, of: Sequence[Entry]) -> Table | None:
    """Scores at fixed costs, and costs at fixed scores."""
    costs, scores = (_union(of, name) for name in ("accuracy_at", "cost_at"))
    if not costs and not scores:
        return None
    columns = [[_score_at(entry, c) for entry in of] for c in costs] + [[_cost_at(entry, s) for entry in of] for s in scores]
    head = ("method", *(f"score at cost {c}" for c in costs), *(f"cost at score {s}" for s in scores))
    return Table(f"{data}: read off the frontier", head, tuple(zip([e.name for e in of], *columns, strict=True)))


def _union(of: Sequence[Entry], name: str) -> list[str]:
    keys = {key for entry in of for row in entry.rows for key in row.get(name) or {}}
    return sorted(keys, key=lambda key: (_float(key), key))


def _float(key: str) -> float:
    try:
        return float(key)
    except ValueError:
        return float("inf")


def _score_at(entry: Entry, cost: str) -> str:
    return spread(numbers((row.get("accuracy_at") or {}).get(cost) for row in entry.rows), 4)


def _cost_at(entry: Entry, score: str) -> str:
    """Mean over the seeds that reach it."""
    asked = [row["cost_at"][score] for row in entry.rows if score in (row.get("cost_at") or {})]
    there = numbers(asked)
    if not there:
        return "never" if asked else NOTHING
    return spread(there, 2) + (f" ({len(there)} of {len(asked)} seeds)" if len(there) < len(asked) else "")


def measures(data: str, of: Sequence[Entry]) -> Table | None:
    """The point of each frontier that is best on validation cases, by all measures on test cases."""
    lines = []
    for entry in of:
        points = [p for row in entry.rows if (p := _best_point(row)) is not None]
        if points:
            columns = (numbers(p.get(name) for p in points) for name in MEASURES)
            lines.append((entry.name, *(spread(values, 2 if i == 0 else 4) for i, values in enumerate(columns))))
    return Table(f"{data}: the best point of each method", ("method", *MEASURES), tuple(lines)) if lines else None


MEASURES = ("cost", "loss", "accuracy", "balanced accuracy", "auroc")


def _best_point(row: Row) -> dict[str, Any] | None:
    """On test cases: what has the least loss on validation cases, the cheapest of equals."""
    columns, validation, test = (row.get(name) or [] for name in ("columns", "validation", "test"))
    if not {"cost", "loss"} <= set(columns) or not validation or len(validation) != len(test):
        return None
    cost, loss = columns.index("cost"), columns.index("loss")
    i = min(range(len(validation)), key=lambda i: (validation[i][loss], validation[i][cost]))
    return dict(zip(columns, test[i], strict=False))


# ---------------------------------------------------------------------- budgets


def budgets(data: str, of: Sequence[Entry]) -> Table:
    """What was wanted, and what came out on test cases."""
    costs = ("mean cost", "95 % interval", "dearest case", "kept")
    scores = ("score", "95 % interval", "accuracy", "balanced accuracy", "auroc")
    lines = []
    for e in of:
        around_cost, around_score = (_interval(e, name) for name in ("cost_interval", "score_interval"))
        dearest = e.numbers("most")
        lines.append(
            (
                e.name,
                budget_words(e.budget),
                str(len(e.rows)),
                spread(e.numbers("cost"), 2),
                between(around_cost, 2),
                f"{max(dearest):.4g}" if dearest else NOTHING,
                kept(e),
                spread(e.numbers("score"), 4),
                between(around_score, 4),
                *(spread(e.numbers(name), 4) for name in ("accuracy", "balanced_accuracy", "auroc")),
                spread(e.numbers("minutes_taken"), 2),
            )
        )
    return Table(f"{data}: budgets", ("method", "budget", "seeds", *costs, *scores, "minutes taken"), tuple(lines))


def _interval(entry: Entry, name: str) -> tuple[float, float] | None:
    """The ends of the intervals of all seeds, averaged."""
    pairs = [row[name] for row in entry.rows if len(row.get(name) or ()) == 2]
    return (statistics.mean(p[0] for p in pairs), statistics.mean(p[1] for p in pairs)) if pairs else None


def kept(entry: Entry) -> str:
    """Whether the budget was met on test cases: on average, and by every case."""
    budget, answers = entry.budget or {}, []
    if "average" in budget:
        over = statistics.mean(entry.numbers("cost")) - budget["average"]
        ends = _interval(entry, "cost_interval")
        chance = ", which chance explains" if ends is not None and ends[0] <= budget["average"] else ""
        answers.append("yes" if over <= 1e-9 else f"mean over by {over:.3g}{chance}")
    if "hard" in budget and entry.numbers("most"):
        over = max(entry.numbers("most")) - budget["hard"]
        answers.append("yes" if over <= 1e-9 else f"a case over by {over:.3g}")
    if not answers:
        return NOTHING
    return "yes" if set(answers) == {"yes"} else "; ".join(answer for answer in answers if answer != "yes")


# ---------------------------------------------------------------------- over data sets


def ranking(of: Sequence[Entry]) -> Table:
    """The place of each method on each data set by its mean area, and over all of them."""
    sets = by_data(of)
    place: dict[tuple[str, str], float] = {}
    short: dict[tuple[str, str], float] = {}
    for data, here in sets.items():
        top = max(e.area for e in here)
        for entry, rank in zip(here, ranks([e.area for e in here]), strict=True):
            place[entry.name, data], short[entry.name, data] = rank, top - entry.area
    lines = []
    for name in dict.fromkeys(e.name for e in of):
        ranked = [data for data in sets if (name, data) in place]
        mean, behind = (statistics.mean(values[name, data] for data in ranked) for values in (place, short))
        each = [f"{place[name, d]:g} of {len(sets[d])}" if d in ranked else NOTHING for d in sets]
        lines.append((mean, (name, f"{mean:.2f}", str(len(ranked)), f"{behind:.4f}", *each)))
    head = ("method", "mean rank", "data sets", "mean area short of the best", *sets)
    return Table("Ranks by area", head, tuple(line for _, line in sorted(lines, key=lambda pair: pair[0])))


def differences(data: str, of: Sequence[Entry], against: str | None = None) -> Table | None:
    """The area of the best method that shares its cases with others, or that of a named one, less each other's on these cases."""
    ordered = sorted(of, key=lambda e: -e.area)
    for entry in (e for e in ordered if against in (None, e.name)):
        lines = []
        for other in ordered:
            less = None if other is entry else difference(entry, other)
            if less is not None:
                sure = "yes" if less.low > 0 or less.high < 0 else "no"
                lines.append((other.name, f"{less.mean:+.4f}", between((less.low, less.high), 4, "+"), sure, str(less.seeds)))
        if lines:
            head = (f"{entry.name} less", "difference", "95 % interval", "beyond chance", "seeds")
            return Table(f"{data}: differences of areas", head, tuple(lines))
    return None


# ---------------------------------------------------------------------- the rest


def times(done: Sequence[Row]) -> Table:
    """What each method took, all tasks together."""
    of: dict[str, list[Row]] = {}
    for row in done:
        of.setdefault(row["task"]["label"], []).append(row)
    lines = []
    for label, rows in of.items():
        taken = numbers(r.get("minutes_taken") for r in rows)
        memory = numbers(r.get("memory_mb") for r in rows)
        shares = [
            r["minutes_taken"] / r["task"]["minutes"] for r in rows if is_number(r.get("minutes_taken")) and r["task"]["minutes"]
        ]
        lines.append(
            (
                label,
                str(len(rows)),
                f"{sum(taken):.1f}",
                spread(taken, 2),
                f"{100 * statistics.mean(shares):.0f} %" if shares else NOTHING,
                f"{max(memory):.0f}" if memory else NOTHING,
            )
        )
    head = ("method", "tasks done", "minutes in all", "minutes a task", "of the time given", "most memory, MB")
    return Table("Times", head, tuple(lines))


def troubles(rows: Sequence[Row]) -> Table | None:
    """Tasks that were refused or failed, with the reason; those alike but for the seed together."""
    of: dict[tuple[str, str, str, str, str], list[int]] = {}
    for row in rows:
        if row["status"] != "done":
            task = row["task"]
            key = (task["data"], name_of(row, ()), budget_words(task["budget"]), row["status"], str(row.get("why", "")))
            of.setdefault(key, []).append(task["seed"])
    head = ("data", "method", "budget", "status", "seeds", "why")
    lines = [(d, m, b, status, ", ".join(map(str, sorted(seeds))), why) for (d, m, b, status, why), seeds in of.items()]
    return Table("Tasks without a result", head, tuple(lines)) if lines else None
