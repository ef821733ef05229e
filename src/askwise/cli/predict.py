"""askwise predict: buy and decide for new cases, and write or print the decisions in the order of the cases."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from askwise.cli.options import model_of, reading_of
from askwise.cli.scoring import decisions, joined_tests
from askwise.errors import InputError
from askwise.files import check_out, is_special, whole
from askwise.reports.model_report import unit_of
from askwise.texts import cell, joined, unescaping

Write = Callable[[Any], None]


def run(options: argparse.Namespace) -> None:
    out: Path | None = options.out
    if out is not None:
        _check_out(out, options)
    n, spent = 0, 0.0
    model = model_of(options)
    frames = decisions(model, options.cases, options.ids, options.engine, reading_of(options))
    with opened(out, options.json) as write:
        for frame in frames:
            write(frame)
            n, spent = n + len(frame), spent + float(frame["cost"].sum())
    if out is not None:
        print(f"{n} cases, mean cost {spent / n:.4g}{unit_of(model)}: {out}", file=sys.stderr)


def _check_out(out: Path, options: argparse.Namespace) -> None:
    inside = out.match("*.parquet") and out.resolve().parent == options.cases.resolve()  # would be read next time
    check_out(out, "the decisions", [options.model, options.cases, out if inside else None])
    if not options.json and out.suffix.lower() not in (".csv", ".parquet") and not is_special(out):
        raise InputError(f"the decisions cannot be written to {str(out)!r}; its name must end in .csv or .parquet")


@contextmanager
def opened(out: Path | None, as_json: bool) -> Iterator[Write]:
    """A function that takes frames one after the other. A file is there when all of them are written, and not before."""
    if out is None:
        shown = sys.stdout if sys.stdout.isatty() and not as_json else unescaping(sys.stdout)
        with _text(shown, as_json) as write:
            yield write
        return
    with whole(out) as path:
        if out.name.lower().endswith(".parquet") and not as_json:
            with _parquet(path) as write:
                yield write
        else:
            with path.open("w", encoding="utf-8", newline="") as file, _text(file, as_json) as write:
                yield write


@contextmanager
def _text(file: Any, as_json: bool) -> Iterator[Write]:
    first = True

    def write(frame: Any) -> None:
        nonlocal first
        if as_json:
            lines = json.dumps(frame.to_dict(orient="records"), default=str)
            file.write(("[" if first else ", ") + lines[1:-1])
        else:
            file.write(_cells(frame).to_csv(index=False, header=first, lineterminator="\n"))
        first = False

    yield write
    if as_json:
        file.write("]\n")


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    import pyarrow
    from pyarrow import parquet

    writer: Any = None

    def write(frame: Any) -> None:
        nonlocal writer
        table = pyarrow.Table.from_pandas(joined_tests(frame), preserve_index=False, schema=writer.schema if writer else None)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()


def _cells(frame: Any) -> Any:
    """What a spreadsheet may open: words that look like formulas are marked, each test's name on its own."""
    safe = frame.assign(tests=[joined(map(cell, tests)) for tests in frame["tests"]])
    for name in safe.columns:
        if safe[name].dtype.kind not in "biuf":
            safe[name] = [cell(value) if isinstance(value, str) else value for value in safe[name]]
    return safe.rename(columns=cell)
