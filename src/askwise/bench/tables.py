"""The tables of a report, from entries: areas, measures, budgets, ranks, differences, times, and what did not work."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

from askwise.bench.entries import Entry, budget_words, difference, grouped, name_of, ranks
from askwise.bench.rows import Row, is_number, numbers
from askwise.reports.pages import Strong, Table

NOTHING = "–"
Column = tuple[str, Callable[[Any], str]]  # its head, and what it says of a line


def spread(of: Sequence[float], digits: int) -> str:
    """Mean and deviation, for a table."""
    if not of:
        return NOTHING
    return f"{statistics.mean(of):.{digits}f} ± {statistics.stdev(of):.{digits}f}" if len(of) > 1 else f"{of[0]:.{digits}f}"


def between(pair: Sequence[float] | None, digits: int, sign: str = "") -> str:
    return NOTHING if pair is None else f"{pair[0]:{sign}.{digits}f} to {pair[1]:{sign}.{digits}f}"


def most(of: Sequence[float], form: str = ".0f") -> str:
    return f"{max(of):{form}}" if of else NOTHING


def by_data(of: Iterable[Entry]) -> dict[str, list[Entry]]:
    return grouped(of, lambda entry: entry.data)


def table(title: str, columns: Sequence[Column], of: Iterable[Any]) -> Table:
    """A line for each of them."""
    return Table(title, tuple(head for head, _ in columns), tuple(tuple(cell(each) for _, cell in columns) for each in of))


def _means(name: str, digits: int) -> Callable[[Entry], str]:
    return lambda entry: spread(entry.numbers(name), digits)


def areas(data: str, of: Sequence[Entry]) -> Table:
    """Best first."""
    top = max(round(entry.area, 4) for entry in of)

    def area(entry: Entry) -> str:
        words = spread(entry.numbers("area"), 4)
        return Strong(words) if len(of) > 1 and round(entry.area, 4) == top else words

    columns: list[Column] = [
        ("method", lambda e: e.name),
        ("area", area),
        ("95 % interval", lambda e: between(e.interval, 4)),
        ("seeds", lambda e: str(len(e.rows))),
        ("minutes given", lambda e: f"{e.rows[0]['task']['minutes']:g}"),
        ("minutes taken", _means("minutes_taken", 2)),
        ("memory, MB", lambda e: most(e.numbers("memory_mb"))),
        ("cases: training / test", lambda e: f"{most(e.numbers('n_train'))} / {most(e.numbers('n_test'))}"),
    ]
    return table(f"{data}: area under the frontier", columns, sorted(of, key=lambda e: -e.area))


def readings(data: str, of: Sequence[Entry]) -> Table | None:
    """Scores at fixed costs, and costs at fixed scores."""
    columns: list[Column] = [("method", lambda e: e.name)]
    columns += [(f"score at cost {c}", partial(_score_at, cost=c)) for c in _union(of, "accuracy_at")]
    columns += [(f"cost at score {s}", partial(_cost_at, score=s)) for s in _union(of, "cost_at")]
    return table(f"{data}: read off the frontier", columns, of) if len(columns) > 1 else None


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


def budgets(data: str, of: Sequence[Entry]) -> Table:
    """What was wanted, and what came out on test cases."""
    columns: list[Column] = [
        ("method", lambda e: e.name),
        ("budget", lambda e: budget_words(e.budget)),
        ("seeds", lambda e: str(len(e.rows))),
        ("mean cost", _means("cost", 2)),
        ("95 % interval", lambda e: between(_interval(e, "cost_interval"), 2)),
        ("dearest case", lambda e: most(e.numbers("most"), ".4g")),
        ("kept", kept),
        ("score", _means("score", 4)),
        ("95 % interval", lambda e: between(_interval(e, "score_interval"), 4)),
        *((name, _means(name.replace(" ", "_"), 4)) for name in ("accuracy", "balanced accuracy", "auroc")),
        ("minutes taken", _means("minutes_taken", 2)),
    ]
    return table(f"{data}: budgets", columns, of)


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


def times(done: Sequence[Row]) -> Table:
    """What each method took, all tasks together."""

    def share(rows: list[Row]) -> str:
        timed = [row for row in rows if is_number(row.get("minutes_taken")) and row["task"]["minutes"]]
        return f"{100 * statistics.mean(r['minutes_taken'] / r['task']['minutes'] for r in timed):.0f} %" if timed else NOTHING

    columns: list[Column] = [
        ("method", lambda rows: rows[0]["task"]["label"]),
        ("tasks done", lambda rows: str(len(rows))),
        ("minutes in all", lambda rows: f"{sum(numbers(r.get('minutes_taken') for r in rows)):.1f}"),
        ("minutes a task", lambda rows: spread(numbers(r.get("minutes_taken") for r in rows), 2)),
        ("of the time given", share),
        ("most memory, MB", lambda rows: most(numbers(r.get("memory_mb") for r in rows))),
    ]
    return table("Times", columns, grouped(done, lambda row: row["task"]["label"]).values())


def troubles(rows: Sequence[Row]) -> Table | None:
    """Tasks that were refused or failed, with the reason; those alike but for the seed together."""

    def facts(row: Row) -> tuple[str, ...]:
        task = row["task"]
        return task["data"], name_of(row, ()), budget_words(task["budget"]), row["status"], str(row.get("why", ""))

    alike = grouped((row for row in rows if row["status"] != "done"), facts)
    seeds = (", ".join(map(str, sorted(row["task"]["seed"] for row in of))) for of in alike.values())
    lines = tuple((*same, each, why) for (*same, why), each in zip(alike, seeds, strict=True))
    return Table("Tasks without a result", ("data", "method", "budget", "status", "seeds", "why"), lines) if lines else None
