"""askwise inspect: what is in a model file."""

import argparse
import json

from askwise.facade import load
from askwise.reports.model_report import card, describe


def run(options: argparse.Namespace) -> None:
    model = load(options.model)
    print(json.dumps(card(model)) if options.json else describe(model))
