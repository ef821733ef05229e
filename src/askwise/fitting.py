"""The work behind `askwise fit`: read the cases, train with progress, measure, and write model, pictures and report."""

from __future__ import annotations

import argparse
import csv
import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askwise.core import checks
from askwise.core.budget import Budget
from askwise.core.episode import measure
from askwise.core.problem import Problem
from askwise.errors import InputError, did_you_mean
from askwise.evaluate import Report
from askwise.files import write_whole
from askwise.model import Model


@dataclass(frozen=True, eq=False)
class Table:
    """Cases with their classes, and what is said about prices."""

    X: Any
    y: NDArray[Any]
    settings: dict[str, Any]  # costs, setup, derived, reveals, loss


def cases_of(given: argparse.Namespace, part: str) -> Table:
    """A file, or the rows of a named set: 'train' (with validation) for fitting, 'test' for measuring."""
    if (given.cases is None) == (given.data is None):
        raise InputError("give either a file of cases or --data NAME")
    if given.data is not None:
        from askwise.data.named import raw

        named = raw(given.data)
        train, validation, test = named.splits(0)
        rows = test if part == "test" else np.sort(np.concatenate([train, validation]))
        settings = {k: getattr(named, k) for k in ("costs", "setup", "derived", "reveals") if getattr(named, k) is not None}
        return Table(_rows(named.table, rows), np.asarray(named.y)[rows], settings)
    from askwise.data.frames import columns_of, read_table

    table = read_table(given.cases)
    if given.target is None:
        raise InputError(f"say which column of {given.cases.name!r} holds the class: --target COLUMN")
    names = columns_of(table)
    if given.target not in names:
        raise InputError(f"{given.cases.name!r} has no column {given.target!r}; {did_you_mean(given.target, names)}")
    y = table[given.target]
    if y.isna().any():
        raise InputError(f"the target {given.target!r} is missing in row {int(np.flatnonzero(y.isna())[0])}; remove such rows")
    return Table(table.drop(columns=given.target), y.to_numpy(), {})


def _rows(table: Any, rows: NDArray[np.int64]) -> Any:
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]


def settings_of(given: argparse.Namespace) -> dict[str, Any]:
    """Prices and the like, from the files that were named."""
    found: dict[str, Any] = {}
    if given.costs is not None:
        found["costs"] = {row["test"]: row["cost"] for row in _lines(given.costs, ("test", "cost"))}
    if given.setup is not None:
        lines = _lines(given.setup, ("setup", "cost", "tests"))
        found["setup"] = {row["setup"]: (row["cost"], _names(row["tests"])) for row in lines}
    if given.derived is not None:
        found["derived"] = {row["test"]: _names(row["sources"]) for row in _lines(given.derived, ("test", "sources"))}
    if given.reveals is not None:
        found["reveals"] = {row["test"]: _names(row["columns"]) for row in _lines(given.reveals, ("test", "columns"))}
    return found


def _names(text: str) -> list[str]:
    return [name.strip() for name in text.split(";")]


def _cells(path: Path) -> list[list[str]]:
    """The fields of a small CSV file, as spreadsheets write it, all rows as long as the first."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path.name!r} is not UTF-8 ({error.reason} at byte {error.start}); save it as UTF-8") from None
    rows = [[cell.strip() for cell in row] for row in csv.reader(text.splitlines()) if any(row)]
    for i, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise InputError(f"{path.name!r} has {len(row)} fields in row {i} ({', '.join(row)}); it must be {len(rows[0])}")
    return rows


def _lines(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    rows = _cells(path)
    for name in columns:
        if not rows or name not in rows[0]:
            raise InputError(f"{path.name!r} has no column {name!r}; it must have the columns {', '.join(columns)}")
    found = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
    checks.distinct([row[columns[0]] for row in found], f"{columns[0]} in {path.name!r}")
    return found


def loss_of(path: Path, classes: list[Any]) -> NDArray[np.float64]:
    """A loss matrix with named rows and columns, in the order of the classes."""
    names = [str(c) for c in classes]
    lines = _cells(path)
    table = {row[0]: dict(zip(lines[0][1:], row[1:], strict=True)) for row in lines[1:]}
    for name in names:
        if name not in table or name not in lines[0][1:]:
            raise InputError(f"{path.name!r} has no row or no column for the class {name!r}; it needs both for every class")
    try:
        return np.array([[float(table[a][b]) for b in names] for a in names])
    except ValueError as error:
        raise InputError(f"{path.name!r}: {error}; losses must be numbers") from None


def _check_out(out: Path, given: argparse.Namespace) -> None:
    """Before anything is trained."""
    if out.is_dir() or not out.parent.is_dir():
        raise InputError(f"cannot write {str(out)!r}: {str(out if out.is_dir() else out.parent)!r} is "
                         f"{'a folder; name a file' if out.is_dir() else 'no folder'}")  # fmt: skip
    files = [given.cases, given.costs, given.setup, given.derived, given.reveals, given.loss]
    taken = [f for f in files if f is not None and f.resolve() == out.resolve()]
    if taken or out.suffix in (".png", ".svg", ".html", ".state"):
        raise InputError(f"the model cannot be written to {str(out)!r}: that is where something else is; end it in .askwise")
    if given.restarts != 1 and given.resume:
        raise InputError("--resume goes on with one training, so it cannot be joined with --restarts")
    from importlib.util import find_spec

    if sys.modules.get("matplotlib", sys) is None or find_spec("matplotlib") is None:
        raise InputError("pictures need matplotlib, which is not installed; pip install 'askwise[plot]'")


def fit(given: argparse.Namespace, budget: Budget) -> None:
    """Trains and writes everything; Ctrl-C leaves a state to go on from."""
    from askwise.estimator import CostlyClassifier
    from askwise.store import read_state, write_state

    out = given.out or Path(f"{given.data or 'model'}.askwise")
    _check_out(out, given)
    cases = cases_of(given, part="train")
    settings = {**cases.settings, **settings_of(given)}
    if given.loss is not None:
        settings["loss"] = loss_of(given.loss, np.unique(cases.y).tolist())
    state = out.with_suffix(".state")
    weight = given.class_weight or ("balanced" if given.data == "thyroid" else None)
    known = [name.strip() for name in given.known.split(",")] if given.known else ()
    classifier = CostlyClassifier(
        budget=None if budget == Budget() else budget, class_weight=weight, known=known, n_restarts=given.restarts,
        time_limit=given.time_limit, unit=given.unit or ("dollars" if given.data == "thyroid" else ""), random_state=given.seed,
        **settings,
    )  # fmt: skip
    resume = None
    if given.resume:
        resume = read_state(state)
    elif given.restarts == 1:
        state.unlink(missing_ok=True)
    progress = Progress(given.time_limit, quiet=given.quiet or given.json)
    more: dict[str, Any] = {"save": lambda s: write_state(state, *s), "resume": resume} if given.restarts == 1 else {}
    try:
        classifier.fit(cases.X, cases.y, watch=progress, **more)
    except KeyboardInterrupt:
        progress.end()
        if state.exists():
            print(f"askwise: interrupted; go on with the same command and --resume ({state})", file=sys.stderr)
        raise
    progress.end()
    model = classifier.model_
    classifier.save(out)
    state.unlink(missing_ok=True)
    test = cases_of(given, part="test") if given.data is not None else None
    found = measured(model, test.X, test.y) if test is not None else None
    files = write_pictures(model, out, test)
    if given.json:
        print(json.dumps({"model": str(out), "files": [str(f) for f in files], **card(model), "test": found}))
        return
    print(describe(model))
    print()
    print(frontier_table(model))
    if found is not None:
        print(f"\non {found['cases']} test cases: mean cost {found['cost']:.4g}, accuracy {found['accuracy']:.4f}, "
              f"balanced accuracy {found['balanced_accuracy']:.4f}, expected loss {found['loss']:.4g}")  # fmt: skip
    print("\nwritten: " + ", ".join(str(f) for f in [out, *files]))


class Progress:
    """One line that is written over on a terminal, a line now and then elsewhere."""

    def __init__(self, limit: float | None, quiet: bool) -> None:
        self.limit, self.quiet, self.began, self.last = limit, quiet, time.monotonic(), 0.0
        self.live = sys.stderr.isatty()

    def __call__(self, record: Any) -> None:
        now = time.monotonic()
        if self.quiet or now - self.last < (0.2 if self.live else 10):
            return
        self.last = now
        spent = now - self.began
        left = "" if self.limit is None else f"  {max(0, self.limit - spent):.0f} s left"
        done = min(1.0, spent / self.limit) if self.limit else 0.0
        bar = f"[{'#' * round(20 * done):20}] " if self.limit else ""
        found = f"cost {record.cost:.3g}  accuracy {record.validation.accuracy:.3f}  lambda {record.lam:.4g}"
        line = f"{bar}step {record.step}  {found}{left}"
        print(f"\r{line:<100}" if self.live else line, end="" if self.live else "\n", file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.live and self.last:
            print(file=sys.stderr)


def measured(model: Model, X: Any, y: NDArray[Any]) -> dict[str, Any]:
    """What a model comes to on rows whose classes are known."""
    report = report_of(model, X, y)
    return {
        "cases": len(report.truth),
        "budget": str(model.budget),
        "cost": report.cost,
        "accuracy": report.accuracy,
        "balanced_accuracy": report.balanced_accuracy,
        "loss": report.loss,
    }


def report_of(model: Model, X: Any, y: NDArray[Any]) -> Report:
    problem = model.problem(X, y)
    return Report(problem, model.rollout(problem))


def frontier_table(model: Model) -> str:
    """Text: every kept policy, and where the model works."""
    lines = ["    mean cost  accuracy   loss", "    " + "-" * 26]
    followed = {model.blend.first, model.blend.second} if model.blend.share else {model.blend.first}
    for i, p in enumerate(model.points):
        lines.append(f"{'  > ' if i in followed else '    '}{p.cost:9.3f}  {p.accuracy:8.4f}  {p.loss:.4f}")
    return "\n".join(lines)


def describe(model: Model) -> str:
    """Some sentences about a model."""
    schema, expected = model.schema, model.expected
    total = schema.prices.money(schema.prices.total)
    unit = f" {model.unit}" if model.unit else ""
    best = model.saturation
    # where mistakes are not all alike, accuracy is not what was learned for
    kind = "loss" if model.weighted else "accuracy"
    lines = [
        f"{schema.n_tests} tests, {total:.4g}{unit} for all of them; classes {', '.join(str(c) for c in schema.classes)}",
        f"trained {model.facts['seconds']} s for {_words(model.trained_for)} ({model.facts['stopped']})",
        f"works at {model.budget if model.budget != Budget() else 'its cheapest point within one standard error of the best'}: "
        f"expected cost {expected['cost']:.4g}{unit}, {kind} {expected[kind]:.4f} on validation cases",
        f"more than {best.cost:.4g}{unit} per case would not help: {kind} there is {getattr(best, kind):.4f} on validation cases",
    ]
    return "\n".join(lines)


def _words(budget: Budget) -> str:
    return "every amount of money" if budget == Budget() else str(budget)


def card(model: Model) -> dict[str, Any]:
    """The same for machines."""
    prices = model.schema.prices
    return {
        "tests": dict(zip(model.schema.tests, prices.money(prices.alone).tolist(), strict=True)),
        "classes": list(model.schema.classes),
        "total_cost": prices.money(prices.total),
        "unit": model.unit,
        "trained_for": str(model.trained_for),
        "budget": str(model.budget),
        "expected": model.expected,
        "frontier": [{"lam": p.lam, "cost": p.cost, "loss": p.loss, "accuracy": p.accuracy} for p in model.points],
        "facts": {k: v for k, v in model.facts.items() if k != "records"},
    }


def draw_frontier(model: Model, path: Path) -> None:
    from askwise import plots

    plots.save(_frontier_figure(model, None), path)


def _frontier_figure(model: Model, problem: Problem | None) -> Any:
    """The curve; with test points where there are test cases."""
    from askwise import plots

    def score(loss: float, accuracy: float) -> float:
        return 1 - loss / model.stake if model.weighted else accuracy

    points, expected = model.points, model.expected
    validation = [p.cost for p in points], [score(p.loss, p.accuracy) for p in points]
    test, prior, best = None, validation[1][0], (expected["cost"], score(expected["loss"], expected["accuracy"]))
    if problem is not None:
        cap = model.budget.cap(model.schema.prices)
        found = [measure(problem, model.arm(i), cap) for i in range(len(points))]
        test = [m.cost for m in found], [score(m.loss, m.accuracy) for m in found]
        here = measure(problem, model.policy, cap)
        prior, best = test[1][0], (here.cost, score(here.loss, here.accuracy))
    words = "accuracy" if not model.weighted else "1 - expected loss" + ("" if abs(model.stake - 1) < 1e-9 else " / stake")
    total = model.schema.prices.money(model.schema.prices.total)
    budget = None if model.budget == Budget() else model.budget
    return plots.frontier(
        validation, test, np.arange(len(points)), prior=prior, everything=(total, None), budget=budget, unit=model.unit,
        score=words, best=best,
    )  # fmt: skip


def write_pictures(model: Model, out: Path, test: Table | None) -> list[Path]:
    """The curve as PNG and SVG, and a page with all pictures that opens offline."""
    import io

    from askwise import plots
    from askwise.report import page

    report = None if test is None else report_of(model, test.X, test.y)
    figures: list[tuple[str, Any]] = [
        ("What each amount of money buys", _frontier_figure(model, None if report is None else report.problem))
    ]
    if report is not None:
        figures.append(("Which tests are bought", plots.bought(report)))
        figures.append(("The most common paths", plots.paths(report, unit=model.unit)))
    files = []
    for ending in (".png", ".svg"):
        files.append(out.with_suffix(ending))
        plots.save(figures[0][1], files[-1])
    pictures: list[tuple[str, str]] = []
    for title, figure in figures:
        text = io.StringIO()
        figure.savefig(text, format="svg", metadata=dict.fromkeys(["Date", "Creator", "Format", "Type"]))
        pictures.append((title, text.getvalue()[text.getvalue().index("<svg") :]))
    files.append(out.with_suffix(".html"))
    write_whole(files[-1], page(out.stem, describe(model), frontier_table(model), pictures).encode())
    return files
