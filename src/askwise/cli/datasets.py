"""askwise datasets: the named data sets, or the card of one."""

import argparse
import json
from dataclasses import asdict

from askwise.datasets.named import cards
from askwise.errors import InputError, did_you_mean


def run(options: argparse.Namespace) -> None:
    known = cards()
    if options.name is None:
        if options.json:
            print(json.dumps({name: asdict(card) for name, card in known.items()}, default=str))
        else:
            print("\n".join(f"{name:15} {card.title}" for name, card in known.items()))
        return
    if options.name not in known:
        raise InputError(f"there is no data set {options.name!r}; {did_you_mean(options.name, known)}")
    facts = asdict(known[options.name])
    lines = (f"{name:10} {value}" for name, value in facts.items() if value not in (None, "", ()))
    print(json.dumps(facts, default=str) if options.json else "\n".join(lines))
