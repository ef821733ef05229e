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

from askwise.core.budget import Budget
from askwise.core.episode import measure
from askwise.core.problem import Problem
from askwise.errors import InputError, did_you_mean
from askwise.evaluate import Report
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
        found["setup"] = {row["setup"]: (row["cost"], row["tests"].split(";")) for row in lines}
    if given.derived is not None:
        found["derived"] = {row["test"]: row["sources"].split(";") for row in _lines(given.derived, ("test", "sources"))}
    if given.reveals is not None:
        found["reveals"] = {row["test"]: row["columns"].split(";") for row in _lines(given.reveals, ("test", "columns"))}
    return found


def _lines(path: Path, columns: tuple[str, ...]) -> list[dict[str, str]]:
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    with path.open(newline="") as file:
        reader = csv.DictReader(file)
        for name in columns:
            if name not in (reader.fieldnames or []):
                raise InputError(f"{path.name!r} has no column {name!r}; it must have the columns {', '.join(columns)}")
        return list(reader)


def loss_of(path: Path, classes: list[Any]) -> NDArray[np.float64]:
    """A loss matrix with named rows and columns, in the order of the classes."""
    names = [str(c) for c in classes]
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    with path.open(newline="") as file:
        lines = list(csv.reader(file))
    table = {row[0]: dict(zip(lines[0][1:], row[1:], strict=True)) for row in lines[1:]}
    for name in names:
        if name not in table or name not in lines[0][1:]:
            raise InputError(f"{path.name!r} has no row or no column for the class {name!r}; it needs both for every class")
    try:
        return np.array([[float(table[a][b]) for b in names] for a in names])
    except ValueError as error:
        raise InputError(f"{path.name!r}: {error}; losses must be numbers") from None


def fit(given: argparse.Namespace, budget: Budget) -> None:
    """Trains and writes everything; Ctrl-C leaves a state to go on from."""
    from askwise.estimator import CostlyClassifier
    from askwise.store import read_state, write_state

    cases = cases_of(given, part="train")
    settings = {**cases.settings, **settings_of(given)}
    if given.loss is not None:
        settings["loss"] = loss_of(given.loss, np.unique(cases.y).tolist())
    out = given.out or Path(f"{given.data or 'model'}.askwise")
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
    state.unlink(missing_ok=True)
    model = classifier.model_
    classifier.save(out)
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
    lines = [
        f"{schema.n_tests} tests, {total:.4g}{unit} for all of them; classes {', '.join(str(c) for c in schema.classes)}",
        f"trained {model.facts['seconds']} s for {_words(model.trained_for)} ({model.facts['stopped']})",
        f"works at {model.budget if model.budget != Budget() else 'its cheapest point within one standard error of the best'}: "
        f"expected cost {expected['cost']:.4g}{unit}, accuracy {expected['accuracy']:.4f}",
        f"more than {best.cost:.4g}{unit} per case would not help: accuracy there is {best.accuracy:.4f}",
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
        figure.savefig(text, format="svg")
        pictures.append((title, text.getvalue()[text.getvalue().index("<svg") :]))
    files.append(out.with_suffix(".html"))
    files[-1].write_text(page(out.stem, describe(model), frontier_table(model), pictures))
    return files
