"""askwise evaluate: what a model does on cases whose classes are known."""

import argparse
import json

from askwise.cli.cases import cases_of
from askwise.cli.measuring import check_target, report_of
from askwise.cli.options import model_of
from askwise.reports.model_report import lines_of, measured


def run(options: argparse.Namespace) -> None:
    model = model_of(options)
    check_target(model, options)
    measures = measured(model, report_of(model, cases_of(options, part="test", text=model.encoding.text)))
    print(json.dumps(measures) if options.json else lines_of(measures))
