"""The commands and their options. What runs a command is the function `run` of the module that has its name."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path

from askwise.cli.examples import EXAMPLES

Parser = argparse.ArgumentParser


def parsed(words: list[str]) -> argparse.Namespace:
    """What a line says. One command is of two words: its second would be taken for the name of a plan."""
    return parser().parse_args([" ".join(words[:2]), *words[2:]] if words[:2] == ["bench", "report"] else words)


def parser() -> Parser:
    from askwise import __version__

    top = Parser(
        prog="askwise", description="Classification with costly features: which test to buy next, and when to stop and decide."
    )
    top.add_argument("--version", action="version", version=f"askwise {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (words, add_options) in COMMANDS.items():
        sub = commands.add_parser(
            name, help=words, description=words, epilog=EXAMPLES[name], formatter_class=argparse.RawDescriptionHelpFormatter
        )
        sub.set_defaults(command=name.replace(" ", "_"))
        add_options(sub)
    return top


def _fit(sub: Parser) -> None:
    _cases(sub)
    _test(sub)
    sub.add_argument("--costs", type=Path, metavar="FILE", help="costs; without it every column costs 1")
    for name in ("setup", "derived", "reveals", "loss"):
        sub.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"{name}, see below")
    sub.add_argument("--class-weight", choices=["balanced", "none"], help="more weight for rare classes, or the same for all")
    sub.add_argument("--known", metavar="NAMES", help="columns known before the start, separated by commas")
    sub.add_argument("--categorical", metavar="NAMES", help="columns of numbers that are only codes, separated by commas")
    sub.add_argument("--ignore", metavar="NAMES", help="columns to leave out, separated by commas")
    sub.add_argument("--ids", metavar="COLUMN", help="column with the names of the cases; it is not a test")
    sub.add_argument("--external", metavar="COLUMN", help="column with the answers of a classifier you already have")
    sub.add_argument("--external-needs", metavar="NAMES", help="tests it needs, separated by commas (default: all)")
    sub.add_argument(
        "--algorithm",
        choices=["family", "paper"],
        default="family",
        help="one training for every tradeoff and every budget (default), or the paper's, for one budget",
    )
    sub.add_argument("--restarts", type=int, default=1, metavar="N", help="train N times, keep the best")
    sub.add_argument("--seed", type=int, default=0)
    sub.add_argument("--time-limit", metavar="TIME", help="for each training: 90, 90s, 5m, 1h (default: by the size of the data)")
    sub.add_argument("--resume", action="store_true", help="continue an interrupted fit with the same --out")
    sub.add_argument("--unit", default="", help="unit of the costs, for display")
    sub.add_argument("--out", type=Path, metavar="FILE", help="model to write (default: model.askwise, or the data's name)")
    sub.add_argument("--quiet", action="store_true", help="do not show progress")
    _budget(sub)
    _json(sub)


def _predict(sub: Parser) -> None:
    _model(sub)
    sub.add_argument("cases", type=Path, help="CSV, .xlsx or Parquet file, or a folder of Parquet files, with a row per case")
    _reading(sub)
    sub.add_argument("--ids", metavar="COLUMN", help="column that names the cases; it comes first in the output")
    sub.add_argument(
        "--out", type=Path, metavar="FILE", help="file to write: .parquet, otherwise CSV, or JSON with --json (default: print)"
    )
    _engine(sub, "for Parquet: local (default), dask for a cluster of this machine, dask://HOST:PORT")
    _budget(sub)
    _json(sub)


def _evaluate(sub: Parser) -> None:
    _model(sub)
    _cases(sub)
    sub.add_argument("--ids", metavar="COLUMN", help="column that names the cases, for the same draws as predict's")
    _budget(sub)
    _json(sub)


def _ask(sub: Parser) -> None:
    _model(sub)
    sub.add_argument("--known", metavar="TEST=VALUE", action="append", help="what is known already; may be given several times")
    sub.add_argument("--budget", metavar="B", help="the most that this case may cost")
    sub.add_argument("--case-id", metavar="ID", help="name of the case; a mixture of two policies draws by it")
    sub.add_argument("--trace", type=Path, metavar="FILE", help="JSON file to write: questions, answers, payments, probabilities")
    sub.add_argument("--simulate", type=Path, metavar="FILE", help="cases whose rows give the answers, instead of a person")
    sub.add_argument("--ids", metavar="COLUMN", help="column of that file with the names of the cases")
    _reading(sub)
    _budget(sub)
    _json(sub)


def _export(sub: Parser) -> None:
    _model(sub)
    sub.add_argument("--out", type=Path, metavar="FILE", required=True, help="file to write, .npz or .onnx")
    _budget(sub)


def _frontier(sub: Parser) -> None:
    _model(sub)
    sub.add_argument("--plot", type=Path, metavar="FILE", help="draw it, as .png or .svg")
    _json(sub)


def _inspect(sub: Parser) -> None:
    _model(sub)
    _json(sub)


def _report(sub: Parser) -> None:
    _model(sub)
    _test(sub)
    sub.add_argument("--target", metavar="COLUMN", help="column of that file with the class")
    sub.add_argument("--ids", metavar="COLUMN", help="column of that file with the names of the cases")
    _reading(sub)
    sub.add_argument("--data", metavar="NAME", help="measure on the test rows of a named data set instead of a file")
    sub.add_argument("--out", type=Path, metavar="FOLDER", required=True, help="folder to write to")
    _budget(sub)


def _serve(sub: Parser) -> None:
    from askwise.web.settings import Limits

    sub.add_argument("models", type=Path, nargs="+", metavar="MODEL", help="model files; each model is named after its file")
    sub.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    sub.add_argument("--port", type=int, default=8000, help="0 picks a free one (default: 8000)")
    sub.add_argument("--token", help="what clients must send; better in the variable ASKWISE_TOKEN, where others cannot see it")
    proxy = "address of a proxy in front of the service, whose X-Forwarded-For and -Proto are believed; may be repeated"
    sub.add_argument("--trusted-proxy", action="append", default=[], metavar="ADDRESS", help=proxy)
    sub.add_argument("--log-values", action="store_true", help="write the values of cases into the log")
    sub.add_argument("--echo", action="store_true", help="also answer /api/echo, a baseline for load tests")
    for limit in fields(Limits):
        kind, words = type(limit.default), limit.metadata["words"]
        option = "--" + limit.name.replace("_", "-")
        sub.add_argument(option, type=kind, default=limit.default, metavar="N", help=f"{words} (default: {limit.default:g})")


def _datasets(sub: Parser) -> None:
    sub.add_argument("name", nargs="?")
    _json(sub)


def _bench(sub: Parser) -> None:
    sub.add_argument("plan", type=Path, help="TOML file, see docs/bench.md")
    sub.add_argument("--out", type=Path, metavar="FILE", help="rows, one JSON object a line (default: PLAN with .jsonl)")
    sub.add_argument("--processes", type=int, metavar="N", help="tasks at a time on this machine (default: one for each core)")
    _engine(sub, "local (default), dask for a cluster on this machine, or dask://HOST:PORT")
    sub.add_argument("--dry-run", action="store_true", help="only show what would run")


def _bench_report(sub: Parser) -> None:
    sub.add_argument("rows", type=Path, nargs="+", metavar="ROWS", help="files that askwise bench has written")
    sub.add_argument("--out", type=Path, metavar="FILE", help="page to write, .html (default: the first ROWS with .html)")
    sub.add_argument("--title", default="", help="title of the page (default: from the names of the plans)")
    sub.add_argument("--against", metavar="METHOD", help="compare this method with the others (default: the best on each set)")


# ---------------------------------------------------------------------- options of several commands


def _model(sub: Parser) -> None:
    sub.add_argument("model", type=Path)


def _reading(sub: Parser) -> None:
    from askwise.tables.read_options import ReadOptions

    for option in fields(ReadOptions):
        sub.add_argument(f"--{option.name}", metavar=option.metadata["metavar"], help=option.metadata["words"])


def _cases(sub: Parser) -> None:
    sub.add_argument("cases", type=Path, nargs="?", help="CSV, Excel (.xlsx) or Parquet file with one row per case")
    _reading(sub)
    sub.add_argument("--target", metavar="COLUMN", help="the column that holds the class")
    sub.add_argument("--data", metavar="NAME", help="a named data set instead of a file; see askwise datasets")


def _test(sub: Parser) -> None:
    sub.add_argument("--test", type=Path, metavar="FILE", help="cases to measure on, with the same columns and their classes")


def _engine(sub: Parser, words: str) -> None:
    sub.add_argument("--engine", default="local", metavar="ENGINE", help=words)


def _budget(sub: Parser) -> None:
    sub.add_argument("--average-budget", metavar="B", help="mean cost per case")
    sub.add_argument("--hard-budget", metavar="B", help="the most that any case may cost")
    sub.add_argument("--tradeoff", metavar="LAM", help="loss per unit of cost")


def _json(sub: Parser) -> None:
    sub.add_argument("--json", action="store_true", help="print JSON for machines")


COMMANDS: dict[str, tuple[str, Callable[[Parser], None]]] = {
    "fit": ("learn a policy from past cases", _fit),
    "predict": ("buy and decide for new cases", _predict),
    "evaluate": ("measure a model on cases whose classes are known", _evaluate),
    "ask": ("decide one case, question by question, or simulate that for the rows of a file", _ask),
    "export": ("write a model for NumPy alone (.npz) or for onnxruntime (.onnx)", _export),
    "frontier": ("what each amount of money buys", _frontier),
    "inspect": ("what is in a model file", _inspect),
    "report": ("the report of a model: what money buys, which tests are bought, paths, results on test cases", _report),
    "serve": ("answer cases over HTTP, and show a page for people", _serve),
    "datasets": ("the named data sets, or the card of one", _datasets),
    "methods": ("the methods that can be compared", _json),
    "bench": ("compare methods: run what is left of a plan, and write a row for each task", _bench),
    "bench report": ("one page about the rows of benches, in HTML and Markdown, from the rows alone", _bench_report),
}
