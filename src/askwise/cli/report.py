"""askwise report: the report of a model, as a fit writes it, into a folder."""

from __future__ import annotations

import argparse
import sys
from importlib.util import find_spec
from pathlib import Path

from askwise.cli.evaluate import on_test_cases
from askwise.cli.options import model_of
from askwise.errors import InputError
from askwise.reports.model_page import beside, write_report


def run(options: argparse.Namespace) -> None:
    if options.model.suffix == ".jsonl":
        raise InputError(
            f"{str(options.model)!r} seems to hold rows of a bench; the page about them is made by askwise bench report"
        )
    model = model_of(options)
    check_drawable()
    out = options.out / options.model.name
    _check_folder(options.out, beside(out))
    if options.test is None and options.data is None and options.target is not None:
        raise InputError("--target is for cases to measure on; name their file: --test FILE")
    held_out = on_test_cases(model, options)
    options.out.mkdir(parents=True, exist_ok=True)
    print(*write_report(model, out, [] if held_out is None else [held_out]), sep="\n")


def check_drawable() -> None:
    """Before any work is done for pictures."""
    if sys.modules.get("matplotlib", sys) is None or find_spec("matplotlib") is None:
        raise InputError("pictures need matplotlib, which is not installed; pip install 'askwise[plot]'")


def _check_folder(folder: Path, files: list[Path]) -> None:
    """Only an earlier report is replaced, which has all of its files."""
    if folder.exists() and not folder.is_dir():
        raise InputError(f"the report cannot be written to {str(folder)!r}: that is a file; name a folder")
    existing = [path for path in files if path.exists()]
    if existing and len(existing) < len(files):
        raise InputError(
            f"the report would write over {str(existing[0])!r}, which does not come from a report; "
            "move it, or name another folder"
        )
