"""For tests of pages that map equations to code."""

import importlib
from typing import Any


def resolve(name: str) -> Any:
    """What a dotted name stands for: a module, a class, a function or an attribute; an error where there is none."""
    parts = name.split(".")
    for cut in range(len(parts), 0, -1):
        try:
            thing: Any = importlib.import_module(".".join(parts[:cut]))
        except ModuleNotFoundError:
            continue
        for part in parts[cut:]:
            thing = getattr(thing, part)
        return thing
    raise AssertionError(f"{name} does not exist")
