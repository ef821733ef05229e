"""askwise datasets: the named data sets, or the card of one."""

import argparse
import json
from dataclasses import asdict
from typing import Any

from askwise.datasets.named import cards
from askwise.errors import InputError, did_you_mean


def run(options: argparse.Namespace) -> None:
    facts: dict[str, Any] = {name: asdict(card) for name, card in cards().items()}
    if options.name is None:
        lines = [f"{name:15} {card['title']}" for name, card in facts.items()]
    elif options.name in facts:
        facts = facts[options.name]
        lines = [f"{name:10} {value}" for name, value in facts.items() if value not in (None, "", ())]
    else:
        raise InputError(f"there is no data set {options.name!r}; {did_you_mean(options.name, facts)}")
    print(json.dumps(facts, default=str) if options.json else "\n".join(lines))
