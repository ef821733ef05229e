"""A time that a checkpoint tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from askwise.errors import StateError, quoted


def seconds(facts: Mapping[str, Any], name: str) -> float:
    """A time that a checkpoint tells."""
    value = facts.get(name, 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        raise StateError(f"the checkpoint is damaged: its {name} is {quoted(value)}; it must be a number of seconds")
    return float(value)
