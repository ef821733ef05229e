"""askwise bench report: a page about the rows of benches."""

import argparse

from askwise.bench.report import report


def run(options: argparse.Namespace) -> None:
    out = options.out or options.rows[0].with_suffix(".html")
    print(*report(options.rows, out, options.title, options.against), sep="\n")
