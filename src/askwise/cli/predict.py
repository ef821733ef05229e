"""askwise predict: buy and decide for new cases, and write or print the decisions in the order of the cases."""

import argparse
import sys
from pathlib import Path

from askwise.cli.decisions import writer
from askwise.cli.options import model_of, reading_of
from askwise.cli.scoring import decisions
from askwise.errors import InputError
from askwise.files import check_out, is_special


def run(options: argparse.Namespace) -> None:
    out: Path | None = options.out
    if out is not None:
        _check_out(out, options)
    n, spent = 0, 0.0
    frames = decisions(model_of(options), options.cases, options.ids, options.engine, reading_of(options))
    with writer(out, options.json) as write:
        for frame in frames:
            write(frame)
            n, spent = n + len(frame), spent + float(frame["cost"].sum())
    if out is not None:
        print(f"{n} cases, mean cost {spent / n:.4g}: {out}", file=sys.stderr)


def _check_out(out: Path, options: argparse.Namespace) -> None:
    inside = out.match("*.parquet") and out.resolve().parent == options.cases.resolve()  # would be read next time
    check_out(out, "the decisions", [options.model, options.cases, out if inside else None])
    if not options.json and out.suffix.lower() not in (".csv", ".parquet") and not is_special(out):
        raise InputError(f"the decisions cannot be written to {str(out)!r}; its name must end in .csv or .parquet")
