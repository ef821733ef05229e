"""What every script here does: read its options, show and write its result, and make tables."""

from __future__ import annotations

import argparse
import json
from pathlib import Path


def arguments(words: str | None) -> argparse.ArgumentParser:
    """A parser that shows the words as they are written."""
    return argparse.ArgumentParser(description=words, formatter_class=argparse.RawDescriptionHelpFormatter)


def publish(result: object, out: Path | None) -> None:
    """Prints the result and, where a file is named, writes it."""
    text = json.dumps(result, indent=1)
    print(text)
    if out is not None:
        out.write_text(text + "\n")


def head(columns: str) -> list[str]:
    """The first two lines of a table in Markdown, from `data | method | area`."""
    return [f"| {columns} |", "|---" * (columns.count("|") + 1) + "|"]


def line(*cells: object) -> str:
    """Another line of it."""
    return f"| {' | '.join(map(str, cells))} |"
