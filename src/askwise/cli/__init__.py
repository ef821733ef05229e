"""The command line: parse, call, print. A command is imported when it runs, so that --help is fast.

parser: the commands with their options and examples
options: what options of several commands mean: the model at a budget, and cases with their classes
scoring: decisions for a table, part by part, here or on a cluster
predict: askwise predict
evaluate: askwise evaluate
report: askwise report
fit: askwise fit
ask: askwise ask
export: askwise export
frontier: askwise frontier
inspect: askwise inspect
serve: askwise serve
datasets: askwise datasets
methods: askwise methods
bench: askwise bench
bench_report: askwise bench report
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from typing import Any

from askwise.cli.parser import parsed
from askwise.errors import AskwiseError, Doubt, WriteError
from askwise.files import named
from askwise.texts import Escaping, printable


def main(argv: list[str] | None = None) -> int:
    """Runs one command. 0: done; 1: a file could not be written, or tasks of a bench failed; 2: something was wrong with what was
    given; 130: interrupted; 143: a bench ended by SIGTERM."""
    with redirect_stdout(Escaping(sys.stdout)), redirect_stderr(Escaping(sys.stderr)):
        return _run(sys.argv[1:] if argv is None else argv)


def _run(words: list[str]) -> int:
    options = parsed(words)
    try:
        with _warnings_as_lines(), named("the standard output"):
            code = import_module(f"askwise.cli.{options.command}").run(options) or 0
            sys.stdout.flush()  # here, where a full disk can still be told
        return int(code)
    except WriteError as error:
        _complain(error)
        _drop(sys.stdout)
        return 1
    except AskwiseError as error:
        return _complain(error)
    except MemoryError as error:
        return _complain(f"the memory of this machine is too small for this; give fewer rows ({error})")
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:  # the reader has seen enough
        sys.stderr.close()
        return 0
    except OSError as error:
        return _complain(error, code=1)


def _complain(error: object, code: int = 2) -> int:
    """One sentence."""
    print(f"askwise: {printable(error)}", file=sys.stderr)
    return code


def _drop(stream: Any) -> None:
    """Forgets what could not be written; Python would try it once more at its end, and complain."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Our own warnings, as one line and once each."""
    usual = warnings.showwarning
    shown: set[str] = set()  # Python forgets what it has shown whenever filters change, as in a fit

    def show(message: Warning | str, category: type[Warning], *more: Any) -> None:
        if not issubclass(category, Doubt):
            usual(message, category, *more)
        elif str(message) not in shown:
            shown.add(str(message))
            _complain(message)

    with warnings.catch_warnings():
        warnings.simplefilter("default", Doubt)
        warnings.showwarning = show  # type: ignore[assignment]
        yield
