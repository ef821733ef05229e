"""The commands with their options and examples, as data. The function `run` of the module that has its name runs a command."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import Field, fields
from pathlib import Path
from typing import Any

from askwise import __version__
from askwise.errors import did_you_mean
from askwise.tables.read_options import ReadOptions
from askwise.web.settings import Limits

Option = tuple[str, dict[str, Any]]  # the arguments of `add_argument`


def parsed(words: list[str]) -> argparse.Namespace:
    """What a line says. One command is of two words: its second would be taken for the name of a plan."""
    top = parser()
    options, rest = top.parse_known_args([" ".join(words[:2]), *words[2:]] if words[:2] == ["bench", "report"] else words)
    unknown = [word.partition("=")[0] for word in rest if word.startswith("-")]
    if unknown:
        _, own = COMMANDS[options.command.replace("_", " ")]
        known = [name for name, _ in own if name.startswith("-")]
        top.error(
            f"askwise {options.command.replace('_', ' ')} has no option {unknown[0]!r}; {did_you_mean(unknown[0], known, 40)}"
        )
    if rest:
        top.error(f"nothing is expected here: {' '.join(rest)}")
    return options


def parser() -> argparse.ArgumentParser:
    words = "Classification with costly features: which test to buy next, and when to stop and decide."
    top = argparse.ArgumentParser(prog="askwise", description=words, allow_abbrev=False)
    top.add_argument("--version", action="version", version=f"askwise {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for name, (words, options) in COMMANDS.items():
        layout = argparse.RawDescriptionHelpFormatter
        sub = commands.add_parser(
            name, help=words, description=words, epilog=EXAMPLES[name], formatter_class=layout, allow_abbrev=False
        )
        sub.set_defaults(command=name.replace(" ", "_"))
        for option, details in options:
            sub.add_argument(option, **details)
    return top


# ---------------------------------------------------------------------- kinds of options


def text(name: str, metavar: str | None, words: str, **details: Any) -> Option:
    return name, {"metavar": metavar, "help": words, **details}


def path(name: str, words: str, **details: Any) -> Option:
    return name, {"type": Path, "metavar": "FILE" if name.startswith("--") else None, "help": words, **details}


def number(name: str, metavar: str | None, words: str | None, default: Any, kind: type = int) -> Option:
    return name, {"type": kind, "default": default, "metavar": metavar, "help": words}


def flag(name: str, words: str) -> Option:
    return name, {"action": "store_true", "help": words}


def limit(field: Field[Any]) -> Option:
    words = f"{field.metadata['words']} (default: {str(field.default).removesuffix('.0')})"
    return number(f"--{field.name.replace('_', '-')}", "N", words, field.default, type(field.default))


# ---------------------------------------------------------------------- options of several commands

MODEL = path("model", "")
TEST = path("--test", "cases to measure on, with the same columns and their classes")
JSON = flag("--json", "print JSON for machines")
READING = [text(f"--{option.name}", option.metadata["metavar"], option.metadata["words"]) for option in fields(ReadOptions)]
CASES = [
    path("cases", "CSV, Excel (.xlsx) or Parquet file with one row per case", nargs="?"),
    *READING,
    text("--target", "COLUMN", "the column that holds the class"),
    text("--data", "NAME", "a named data set instead of a file; see askwise datasets"),
]
MIXING = "whether one of two policies may be drawn for each case (default: only where that is clearly better than any single one)"
BUDGET = [
    text("--average-budget", "B", "mean cost per case"),
    number("--confidence", "P", "probability with which average budget and targets are kept, such as 0.95", None, float),
    ("--mixing", {"action": argparse.BooleanOptionalAction, "help": MIXING}),
    text("--hard-budget", "B", "the most that any case may cost"),
    text("--tradeoff", "LAM", "loss per unit of cost"),
    text(
        "--at-least", "FIGURE=SHARE", "to be reached: accuracy=0.95, recall:CLASS=0.97 or specificity:CLASS=0.9", action="append"
    ),
    text("--at-most", "loss=LOSS", "to be reached: a mean loss of no more than this", action="append"),
    text("--weigh", "CLASS=WEIGHT", "mistakes about this class count so many times as much", action="append"),
]
ENGINE = "local (default), dask for a cluster on this machine, or dask://HOST:PORT"
IDS_THERE = text("--ids", "COLUMN", "column of that file with the names of the cases")

# ---------------------------------------------------------------------- commands

ALGORITHM = "one training for every tradeoff and budget (stack or family; auto: which suits), or the paper's, for one budget"
MISSING = "what is missing tells the model nothing (blind, default), or is known of each case from the start, at no cost"
FIT = [
    *CASES,
    TEST,
    path("--costs", "costs; without it every column costs 1"),
    *(path(f"--{name}", f"{name}, see below") for name in ("setup", "derived", "reveals", "decisions")),
    text("--loss", "LOSS", "what mistakes lose, see below; or log or brier, where class probabilities are the goal"),
    text("--class-weight", None, "more weight for rare classes, or the same for all", choices=["balanced", "none"]),
    text("--known", "NAMES", "columns known before the start, separated by commas"),
    text("--missing", None, MISSING, choices=["blind", "informative"], default="blind"),
    text("--categorical", "NAMES", "columns of numbers that are only codes, separated by commas"),
    text("--ignore", "NAMES", "columns to leave out, separated by commas"),
    text("--shape", "HxW", "the columns are the pixels of pictures of this height and width, row by row; HxWx3 with colours"),
    text("--patch", "N", "with --shape: patches of N x N pixels, or of another HxW, are one test each (default: each pixel)"),
    text("--ids", "COLUMN", "column with the names of the cases; it is not a test"),
    text("--external", "COLUMN", "column with the answers of a classifier you already have"),
    text("--external-needs", "NAMES", "tests it needs, separated by commas (default: all)"),
    text("--algorithm", None, ALGORITHM, choices=["auto", "stack", "family", "paper"], default="auto"),
    number("--restarts", "N", "train N times, keep the best", 1),
    number("--seed", None, None, 0),
    text("--time-limit", "TIME", "for each training: 90, 90s, 5m, 1h (default: by the size of the data)"),
    number("--processes", "N", "processes of this machine for the members of a stack (default: as many as pay)", None),
    number("--threads", "N", "threads with which networks learn (default: as many as pay, on cores that are free)", None),
    text("--engine", "ENGINE", f"where members of a stack are fitted: {ENGINE}", default="local"),
    flag("--resume", "continue an interrupted fit with the same --out"),
    text("--unit", None, "unit of the costs, for display", default=""),
    path("--out", "model to write (default: model.askwise, or the data's name)"),
    flag("--quiet", "do not show progress"),
    *BUDGET,
    JSON,
]
PREDICT = [
    MODEL,
    path("cases", "CSV, .xlsx or Parquet file, or a folder of Parquet files, with a row per case"),
    *READING,
    text("--ids", "COLUMN", "column that names the cases; it comes first in the output"),
    path("--out", "file to write: .parquet, otherwise CSV, or JSON with --json (default: print)"),
    text("--engine", "ENGINE", f"for Parquet: {ENGINE}", default="local"),
    *BUDGET,
    JSON,
]
IDS_AS_PREDICT = text("--ids", "COLUMN", "column that names the cases, for the same draws as predict's")
ASK = [
    MODEL,
    text("--known", "TEST=VALUE", "what is known already; may be given several times", action="append"),
    text("--budget", "B", "the most that this case may cost"),
    text("--case-id", "ID", "name of the case; a mixture of two policies draws by it"),
    path("--trace", "JSON file to write: questions, answers, payments, probabilities"),
    path("--simulate", "cases whose rows give the answers, instead of a person"),
    IDS_THERE,
    *READING,
    *BUDGET,
    JSON,
]
REPORT = [
    MODEL,
    TEST,
    text("--target", "COLUMN", "column of that file with the class"),
    IDS_THERE,
    *READING,
    text("--data", "NAME", "measure on the test rows of a named data set instead of a file"),
    path("--out", "folder to write to", metavar="FOLDER", required=True),
    *BUDGET,
]
PROXY = "address of a proxy in front of the service, whose X-Forwarded-For and -Proto are believed; may be repeated"
SERVE = [
    path("models", "model files; each model is named after its file", metavar="MODEL", nargs="+"),
    text("--host", None, "address to listen on (default: this machine only)", default="127.0.0.1"),
    number("--port", None, "0 picks a free one (default: 8000)", 8000),
    text("--token", None, "what clients must send; better in the variable ASKWISE_TOKEN, where others cannot see it"),
    text("--trusted-proxy", "ADDRESS", PROXY, action="append", default=[]),
    number("--workers", "N", "processes that answer on the one port, one for each core that it may use (default: 1)", 1),
    flag("--log-values", "write the values of cases into the log"),
    flag("--echo", "also answer /api/echo, a baseline for load tests"),
    *map(limit, fields(Limits)),
]
BENCH = [
    path("plan", "TOML file, see docs/bench.md"),
    path("--out", "rows, one JSON object a line (default: PLAN with .jsonl)"),
    number("--processes", "N", "tasks at a time on this machine (default: one for each core)", None),
    text("--engine", "ENGINE", ENGINE, default="local"),
    flag("--dry-run", "only show what would run"),
]
BENCH_REPORT = [
    path("rows", "files that askwise bench has written", metavar="ROWS", nargs="+"),
    path("--out", "page to write, .html (default: the first ROWS with .html)"),
    text("--title", None, "title of the page (default: from the names of the plans)", default=""),
    text("--against", "METHOD", "compare this method with the others (default: the best on each set)"),
]
EXPORT = [MODEL, path("--out", "file to write, .npz or .onnx", required=True), *BUDGET]
FRONTIER = [MODEL, path("--plot", "draw it, as .png or .svg"), JSON]

COMMANDS: dict[str, tuple[str, Sequence[Option]]] = {
    "fit": ("learn a policy from past cases", FIT),
    "predict": ("buy and decide for new cases", PREDICT),
    "evaluate": ("measure a model on cases whose classes are known", [MODEL, *CASES, IDS_AS_PREDICT, *BUDGET, JSON]),
    "ask": ("decide one case, question by question, or simulate that for the rows of a file", ASK),
    "export": ("write a model for NumPy alone (.npz) or for onnxruntime (.onnx)", EXPORT),
    "frontier": ("what each amount of money buys", FRONTIER),
    "inspect": ("what is in a model file", [MODEL, JSON]),
    "report": ("the report of a model: what money buys, which tests are bought, paths, results on test cases", REPORT),
    "serve": ("answer cases over HTTP, and show a page for people", SERVE),
    "datasets": ("the named data sets, or the card of one", [text("name", None, "", nargs="?"), JSON]),
    "methods": ("the methods that can be compared", [JSON]),
    "bench": ("compare methods: run what is left of a plan, and write a row for each task", BENCH),
    "bench report": ("one page about the rows of benches, in HTML and Markdown, from the rows alone", BENCH_REPORT),
}

# what --help shows below the options of a command
EXAMPLES = {
    "fit": """examples:
  askwise fit --data thyroid
  askwise fit cases.csv --target diagnosis --costs costs.csv --average-budget 12 --out model.askwise
  askwise fit cases.csv --target label --hard-budget 40 --known age,sex --time-limit 5m
  askwise fit cases.csv --target label --test new_cases.csv
  askwise fit cases.csv --target label --ids patient --ignore notes,photo --categorical ward
  askwise fit cases.csv --target label --external our_system --external-needs age,scan
  askwise fit cases.csv --target label --loss log
  askwise fit cases.csv --target label --average-budget 12 --resume        (goes on after Ctrl-C)

files:
  --costs    CSV with the columns test,cost
  --setup    CSV with the columns setup,cost,tests    (tests separated by ;)
  --derived  CSV with the columns test,sources        (separated by ;)
  --reveals  CSV with the columns test,columns        (separated by ;)
  --decisions  CSV with the columns decision,cost     (decisions that are not classes; --loss has a column for each)
  --loss     CSV: first column the true class, then one column per decision

a Parquet file of more than 50,000,000 cells is read part by part, with the same result: encoded rows go to the folder for
temporary files (TMPDIR), and all of them are learned from""",
    "predict": """examples:
  askwise predict model.askwise cases.csv --out decisions.csv
  askwise predict model.askwise cases.csv --ids patient --average-budget 8 --json
  askwise predict model.askwise large.parquet --out decisions.parquet --engine dask""",
    "evaluate": """examples:
  askwise evaluate model.askwise cases.csv --target diagnosis
  askwise evaluate model.askwise --data thyroid --json""",
    "frontier": """examples:
  askwise frontier model.askwise
  askwise frontier model.askwise --plot curve.svg""",
    "inspect": """examples:
  askwise inspect model.askwise
  askwise inspect model.askwise --json""",
    "ask": """examples:
  askwise ask model.askwise --known age=63 --budget 40
  askwise ask model.askwise --case-id A-17 --trace a17.json
  askwise ask model.askwise --simulate cases.csv --ids patient""",
    "export": """examples:
  askwise export model.askwise --out model.npz
  askwise export model.askwise --average-budget 8 --out model.onnx""",
    "report": """examples:
  askwise report model.askwise --out report
  askwise report model.askwise --test new_cases.csv --target diagnosis --average-budget 8 --out report

without --test it shows what the fit measured; a page about benches is made by askwise bench report""",
    "serve": """examples:
  askwise serve model.askwise
  askwise serve thyroid.askwise pima.askwise --port 8080
  ASKWISE_TOKEN=... askwise serve model.askwise --host 0.0.0.0 --rate 20

the page is at http://127.0.0.1:8000/, the JSON API is described at http://127.0.0.1:8000/docs""",
    "datasets": """examples:
  askwise datasets
  askwise datasets thyroid""",
    "methods": """examples:
  askwise methods""",
    "bench": """examples:
  askwise bench plan.toml
  askwise bench plan.toml --processes 8 --out rows.jsonl
  askwise bench plan.toml --dry-run
  askwise bench plan.toml --engine dask://10.0.0.5:8786
  askwise bench report plan.jsonl                       (a page about the rows)""",
    "bench report": """examples:
  askwise bench report plan.jsonl
  askwise bench report small.jsonl large.jsonl --out comparison.html --against family""",
}
