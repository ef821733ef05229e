"""The command line: parse, call, print. Everything heavy is imported where it is used, so that --help is fast."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

from askwise.cli.examples import EXAMPLES
from askwise.cli.streams import doubts, drop
from askwise.errors import AskwiseError, InputError, WriteError, did_you_mean
from askwise.files import is_special, named
from askwise.texts import Escaping, printable


def main(argv: list[str] | None = None) -> int:
    """Runs one command. 0: done; 1: a file could not be written, or tasks of a bench failed; 2: something was wrong with what was
    given; 130: interrupted; 143: a bench ended by SIGTERM."""
    words = sys.argv[1:] if argv is None else argv
    with redirect_stdout(Escaping(sys.stdout)), redirect_stderr(Escaping(sys.stderr)):
        return _run(words)


def parsed(words: list[str]) -> argparse.Namespace:
    """What a line says. One command is of two words: its second would be taken for the name of a plan."""
    return parser().parse_args([" ".join(words[:2]), *words[2:]] if words[:2] == ["bench", "report"] else words)


def _run(words: list[str]) -> int:
    given = parsed(words)
    try:
        with doubts(), named("the standard output"):
            code = given.call(given) or 0
            sys.stdout.flush()  # here, where a full disk can still be told
        return int(code)
    except WriteError as error:
        print(f"askwise: {printable(error)}", file=sys.stderr)
        drop(sys.stdout)
        return 1
    except AskwiseError as error:
        print(f"askwise: {printable(error)}", file=sys.stderr)
        return 2
    except MemoryError as error:
        print(f"askwise: the memory of this machine is too small for this; give fewer rows ({printable(error)})", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has seen enough
        sys.stderr.close()
        return 0
    except OSError as error:
        print(f"askwise: {printable(error)}", file=sys.stderr)
        return 1


def parser() -> argparse.ArgumentParser:
    from dataclasses import fields

    from askwise import __version__
    from askwise.web.settings import Limits

    top = argparse.ArgumentParser(
        prog="askwise", description="Classification with costly features: which test to buy next, and when to stop and decide."
    )
    top.add_argument("--version", action="version", version=f"askwise {__version__}")
    commands = top.add_subparsers(title="commands", metavar="COMMAND", required=True)

    def command(name: str, call: Any, words: str) -> argparse.ArgumentParser:
        sub = commands.add_parser(
            name, help=words, description=words, epilog=EXAMPLES[name], formatter_class=argparse.RawDescriptionHelpFormatter
        )
        sub.set_defaults(call=call)
        return sub

    fit = command("fit", _fit, "learn a policy from past cases")
    _cases(fit)
    _test(fit)
    fit.add_argument("--costs", type=Path, metavar="FILE", help="prices; without it every column costs 1")
    for name in ("setup", "derived", "reveals", "loss"):
        fit.add_argument(f"--{name}", type=Path, metavar="FILE", help=f"{name}, see below")
    fit.add_argument("--class-weight", choices=["balanced", "none"], help="more weight for rare classes, or the same for all")
    fit.add_argument("--known", metavar="NAMES", help="columns known before the start, separated by commas")
    fit.add_argument("--categorical", metavar="NAMES", help="columns of numbers that are only codes, separated by commas")
    fit.add_argument("--ignore", metavar="NAMES", help="columns to leave out, separated by commas")
    fit.add_argument("--ids", metavar="COLUMN", help="column with the names of the cases; it is not a test")
    fit.add_argument("--external", metavar="COLUMN", help="column with the answers of a classifier you already have")
    fit.add_argument("--external-needs", metavar="NAMES", help="tests it needs, separated by commas (default: all)")
    fit.add_argument(
        "--algorithm",
        choices=["family", "paper"],
        default="family",
        help="one training for every price and every budget (default), or the paper's, for one budget",
    )
    fit.add_argument("--restarts", type=int, default=1, metavar="N", help="train N times, keep the best")
    fit.add_argument("--seed", type=int, default=0)
    fit.add_argument("--time-limit", metavar="TIME", help="for each training: 90, 90s, 5m, 1h (default: by the size of the data)")
    fit.add_argument("--resume", action="store_true", help="continue an interrupted fit with the same --out")
    fit.add_argument("--unit", default="", help="unit of the prices, for display")
    fit.add_argument("--out", type=Path, metavar="FILE", help="model to write (default: model.askwise, or the data's name)")
    fit.add_argument("--quiet", action="store_true", help="do not show progress")
    _budget(fit)
    _json(fit)

    predict = command("predict", _predict, "buy and decide for new cases")
    predict.add_argument("model", type=Path)
    predict.add_argument("cases", type=Path, help="CSV, .xlsx or Parquet file, or a folder of Parquet files, with a row per case")
    _reading(predict)
    predict.add_argument("--ids", metavar="COLUMN", help="column that names the cases; it comes first in the output")
    predict.add_argument(
        "--out", type=Path, metavar="FILE", help="file to write: .parquet, otherwise CSV, or JSON with --json (default: print)"
    )
    predict.add_argument(
        "--engine",
        default="local",
        metavar="ENGINE",
        help="for Parquet: local (default), dask for a cluster of this machine, dask://HOST:PORT",
    )
    _budget(predict)
    _json(predict)

    evaluate = command("evaluate", _evaluate, "measure a model on cases whose classes are known")
    evaluate.add_argument("model", type=Path)
    _cases(evaluate)
    evaluate.add_argument("--ids", metavar="COLUMN", help="column that names the cases, for the same draws as predict's")
    _budget(evaluate)
    _json(evaluate)

    ask = command("ask", _ask, "decide one case, question by question, or simulate that for the rows of a file")
    ask.add_argument("model", type=Path)
    ask.add_argument("--known", metavar="TEST=VALUE", action="append", help="what is known already; may be given several times")
    ask.add_argument("--budget", metavar="B", help="the most that this case may cost")
    ask.add_argument("--case-id", metavar="ID", help="name of the case; a mixture of two policies draws by it")
    ask.add_argument("--trace", type=Path, metavar="FILE", help="JSON file to write: questions, answers, payments, probabilities")
    ask.add_argument("--simulate", type=Path, metavar="FILE", help="cases whose rows give the answers, instead of a person")
    ask.add_argument("--ids", metavar="COLUMN", help="column of that file with the names of the cases")
    _reading(ask)
    _budget(ask)
    _json(ask)

    export = command("export", _export, "write a model for NumPy alone (.npz) or for onnxruntime (.onnx)")
    export.add_argument("model", type=Path)
    export.add_argument("--out", type=Path, metavar="FILE", required=True, help="file to write, .npz or .onnx")
    _budget(export)

    frontier = command("frontier", _frontier, "what each amount of money buys")
    frontier.add_argument("model", type=Path)
    frontier.add_argument("--plot", type=Path, metavar="FILE", help="draw it, as .png or .svg")
    _json(frontier)

    inspect = command("inspect", _inspect, "what is in a model file")
    inspect.add_argument("model", type=Path)
    _json(inspect)

    about = command(
        "report", _report, "the report of a model: what money buys, which tests are bought, paths, results on test cases"
    )
    about.add_argument("model", type=Path)
    _test(about)
    about.add_argument("--target", metavar="COLUMN", help="column of that file with the class")
    about.add_argument("--ids", metavar="COLUMN", help="column of that file with the names of the cases")
    _reading(about)
    about.add_argument("--data", metavar="NAME", help="measure on the test rows of a named data set instead of a file")
    about.add_argument("--out", type=Path, metavar="FOLDER", required=True, help="folder to write to")
    _budget(about)

    serve = command("serve", _serve, "answer cases over HTTP, and show a page for people")
    serve.add_argument("models", type=Path, nargs="+", metavar="MODEL", help="model files; each model is named after its file")
    serve.add_argument("--host", default="127.0.0.1", help="address to listen on (default: this machine only)")
    serve.add_argument("--port", type=int, default=8000, help="0 picks a free one (default: 8000)")
    serve.add_argument("--token", help="what clients must send; better in the variable ASKWISE_TOKEN, where others cannot see it")
    proxy = "address of a proxy in front of the service, whose X-Forwarded-For and -Proto are believed; may be repeated"
    serve.add_argument("--trusted-proxy", action="append", default=[], metavar="ADDRESS", help=proxy)
    serve.add_argument("--log-values", action="store_true", help="write the values of cases into the log")
    serve.add_argument("--echo", action="store_true", help="also answer /api/echo, a baseline for load tests")
    for limit in fields(Limits):
        kind, words = type(limit.default), limit.metadata["words"]
        option = "--" + limit.name.replace("_", "-")
        serve.add_argument(option, type=kind, default=limit.default, metavar="N", help=f"{words} (default: {limit.default:g})")

    datasets = command("datasets", _datasets, "the named data sets, or the card of one")
    datasets.add_argument("name", nargs="?")
    _json(datasets)
    _json(command("methods", _methods, "the methods that can be compared"))

    bench = command("bench", _bench, "compare methods: run what is left of a plan, and write a row for each task")
    bench.add_argument("plan", type=Path, help="TOML file, see docs/bench.md")
    bench.add_argument("--out", type=Path, metavar="FILE", help="rows, one JSON object a line (default: PLAN with .jsonl)")
    bench.add_argument("--processes", type=int, metavar="N", help="tasks at a time on this machine (default: one for each core)")
    bench.add_argument(
        "--engine",
        default="local",
        metavar="ENGINE",
        help="local (default), dask for a cluster on this machine, or dask://HOST:PORT",
    )
    bench.add_argument("--dry-run", action="store_true", help="only show what would run")

    report = command(
        "bench report", _bench_report, "one page about the rows of benches, in HTML and Markdown, from the rows alone"
    )
    report.add_argument("rows", type=Path, nargs="+", metavar="ROWS", help="files that askwise bench has written")
    report.add_argument("--out", type=Path, metavar="FILE", help="page to write, .html (default: the first ROWS with .html)")
    report.add_argument("--title", default="", help="title of the page (default: from the names of the plans)")
    report.add_argument("--against", metavar="METHOD", help="compare this method with the others (default: the best on each set)")
    return top


def _reading(sub: argparse.ArgumentParser) -> None:
    from dataclasses import fields

    from askwise.tables.reading import Reading

    for option in fields(Reading):
        sub.add_argument(f"--{option.name}", metavar=option.metadata["metavar"], help=option.metadata["words"])


def _cases(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("cases", type=Path, nargs="?", help="CSV, Excel (.xlsx) or Parquet file with one row per case")
    _reading(sub)
    sub.add_argument("--target", metavar="COLUMN", help="the column that holds the class")
    sub.add_argument("--data", metavar="NAME", help="a named data set instead of a file; see askwise datasets")


def _test(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--test", type=Path, metavar="FILE", help="cases to measure on, with the same columns and their classes")


def _budget(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--average-budget", metavar="B", help="mean cost per case")
    sub.add_argument("--hard-budget", metavar="B", help="the most that any case may cost")
    sub.add_argument("--price", metavar="LAMBDA", help="loss per unit of cost")


def _json(sub: argparse.ArgumentParser) -> None:
    sub.add_argument("--json", action="store_true", help="print JSON for machines")


# ---------------------------------------------------------------------- commands


def _fit(given: argparse.Namespace) -> None:
    from askwise.cli.fit import fit

    fit(given, budget_of(given))


def _predict(given: argparse.Namespace) -> None:
    from askwise.cli.fit import reading_of
    from askwise.cli.predict import predict
    from askwise.files import check_out

    if given.out is not None:
        inside = given.out.match("*.parquet") and given.out.resolve().parent == given.cases.resolve()  # would be read next time
        check_out(given.out, "the decisions", [given.model, given.cases, given.out if inside else None])
        if not given.json and given.out.suffix.lower() not in (".csv", ".parquet") and not is_special(given.out):
            raise InputError(f"the decisions cannot be written to {str(given.out)!r}; its name must end in .csv or .parquet")
    predict(_model(given), given.cases, given.ids, given.out, given.json, given.engine, reading_of(given))


def _evaluate(given: argparse.Namespace) -> None:
    from askwise.cli.fit import cases_of, check_target, report_of
    from askwise.reports.model_report import measured, told

    model = _model(given)
    check_target(model, given)
    found = measured(model, report_of(model, cases_of(given, part="test", text=model.encoding.text)))
    print(json.dumps(found) if given.json else told(found))


def _ask(given: argparse.Namespace) -> None:
    from askwise.cli.ask import ask

    ask(given, _model(given))


def _export(given: argparse.Namespace) -> None:
    from askwise.files import check_out

    check_out(given.out, "the export", [given.model])
    model = _model(given)
    model.export(given.out)
    print(f"written: {given.out}, {given.out.stat().st_size} bytes, {model.schema.n_tests} tests")


def _frontier(given: argparse.Namespace) -> None:
    model = _model(given)
    rows = [point.shown for point in model.frontier]
    if given.plot is not None:
        from askwise.reports.model_report import draw_frontier

        draw_frontier(model, given.plot)
    if given.json:
        print(json.dumps(rows))
    else:
        from askwise.reports.model_report import frontier_table

        print(frontier_table(model))


def _inspect(given: argparse.Namespace) -> None:
    from askwise.reports.model_report import card, describe

    model = _model(given)
    print(json.dumps(card(model)) if given.json else describe(model))


def _serve(given: argparse.Namespace) -> None:
    try:
        from askwise.web.server import serve
    except ImportError as error:
        raise InputError(f"askwise serve needs the package {error.name!r}: pip install 'askwise[serve]'") from None
    serve(given)


def _datasets(given: argparse.Namespace) -> None:
    from dataclasses import asdict

    from askwise.datasets.named import cards

    known = cards()
    if given.name is not None:
        if given.name not in known:
            raise InputError(f"there is no data set {given.name!r}; {did_you_mean(given.name, known)}")
        facts = asdict(known[given.name])
        if given.json:
            print(json.dumps(facts, default=str))
        else:
            print("\n".join(f"{name:10} {value}" for name, value in facts.items() if value not in (None, "", ())))
    elif given.json:
        print(json.dumps({name: asdict(c) for name, c in known.items()}, default=str))
    else:
        for name, c in known.items():
            print(f"{name:15} {c.title}")


def _methods(given: argparse.Namespace) -> None:
    from askwise import methods

    found = methods.about()
    print(json.dumps(found) if given.json else "\n".join(f"{name:14} {words}" for name, words in found.items()))


def _bench(given: argparse.Namespace) -> int:
    from askwise.bench.run import bench

    return bench(given.plan, given.out, given.engine, given.processes, given.dry_run)


def _bench_report(given: argparse.Namespace) -> None:
    from askwise.bench.report import report

    for path in report(given.rows, given.out or given.rows[0].with_suffix(".html"), given.title, given.against):
        print(path)


def _report(given: argparse.Namespace) -> None:
    from askwise.cli.fit import report

    if given.model.suffix == ".jsonl":
        raise InputError(
            f"{str(given.model)!r} seems to hold rows of a bench; the page about them is made by askwise bench report"
        )
    for path in report(given, _model(given)):
        print(path)


def _model(given: argparse.Namespace) -> Any:
    from askwise.core.budget import Budget
    from askwise.facade import load

    model = load(given.model)
    budget = budget_of(given) if hasattr(given, "price") else Budget()
    return model if budget == Budget() else model.at(budget)


def budget_of(given: argparse.Namespace) -> Any:
    from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff

    budget = Budget()
    for value, kind in ((given.average_budget, AverageBudget), (given.hard_budget, HardBudget), (given.price, Tradeoff)):
        if value is not None:
            budget = budget & kind(value)
    return budget
