"""What the paper prints."""

from __future__ import annotations

import tomllib
from typing import Any

from benchmarks.paper.experiments import HERE, TABLE

PUBLISHED: dict[str, Any] = tomllib.loads((HERE / "published.toml").read_text())


def paper_of(data: str) -> str:
    """The paper's data set that one stands for."""
    return TABLE["data"][data]["paper"]


def printed(kind: str, data: str, label: str) -> str:
    """An area; a dash where the paper prints none."""
    value = PUBLISHED[kind].get(paper_of(data), {}).get(label)
    return "–" if value is None else f"{value:.3f}"
