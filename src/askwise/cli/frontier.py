"""askwise frontier: what each amount of money buys."""

import argparse
import json

from askwise.facade import load
from askwise.reports.model_page import draw_frontier
from askwise.reports.model_report import frontier_table


def run(options: argparse.Namespace) -> None:
    model = load(options.model)
    if options.plot is not None:
        draw_frontier(model, options.plot)
    print(json.dumps(model.frontier_figures) if options.json else frontier_table(model))
