"""The command line: parse, call, print. A command is imported when it runs, so that --help is fast.

parser: the commands and their options
examples: what --help shows below the options of a command
streams: warnings, once each; what could not be written
options: what options of several commands mean: the model, its budget, how a file is written
cases: a file of cases, or the rows of a named data set, with their classes
measuring: what a model does on cases whose classes are known
fit_settings: what the options of fit mean for the classifier
fit: askwise fit
decisions: decisions as CSV, JSON or Parquet, part by part
scoring: decisions for a table, part by part, here or on a cluster
predict: askwise predict
evaluate: askwise evaluate
ask: askwise ask
export: askwise export
frontier: askwise frontier
inspect: askwise inspect
report: askwise report
serve: askwise serve
datasets: askwise datasets
methods: askwise methods
bench: askwise bench
bench_report: askwise bench report
"""

from __future__ import annotations

import sys
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module

from askwise.cli.parser import parsed
from askwise.cli.streams import drop, warnings_as_lines
from askwise.errors import AskwiseError, WriteError
from askwise.files import named
from askwise.texts import Escaping, printable


def main(argv: list[str] | None = None) -> int:
    """Runs one command. 0: done; 1: a file could not be written, or tasks of a bench failed; 2: something was wrong with what was
    given; 130: interrupted; 143: a bench ended by SIGTERM."""
    words = sys.argv[1:] if argv is None else argv
    with redirect_stdout(Escaping(sys.stdout)), redirect_stderr(Escaping(sys.stderr)):
        return _run(words)


def _run(words: list[str]) -> int:
    options = parsed(words)
    try:
        with warnings_as_lines(), named("the standard output"):
            code = import_module(f"askwise.cli.{options.command}").run(options) or 0
            sys.stdout.flush()  # here, where a full disk can still be told
        return int(code)
    except WriteError as error:
        _complain(error)
        drop(sys.stdout)
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
        _complain(error)
        return 1


def _complain(error: object) -> int:
    """One sentence; 2, the code for something that was wrong with what was given."""
    print(f"askwise: {printable(error)}", file=sys.stderr)
    return 2
