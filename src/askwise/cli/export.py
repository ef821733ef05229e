"""askwise export: a model for other runtimes."""

import argparse

from askwise.cli.options import model_of
from askwise.files import check_out


def run(options: argparse.Namespace) -> None:
    check_out(options.out, "the export", [options.model])
    model = model_of(options)
    model.export(options.out)
    print(f"written: {options.out}, {options.out.stat().st_size} bytes, {len(model.schema.offered)} tests")
