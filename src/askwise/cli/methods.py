"""askwise methods: the methods that can be compared."""

import argparse
import json

from askwise.methods import about


def run(options: argparse.Namespace) -> None:
    methods = about()
    print(json.dumps(methods) if options.json else "\n".join(f"{name:14} {words}" for name, words in methods.items()))
