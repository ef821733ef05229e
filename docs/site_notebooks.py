"""Notebooks as pages of the documentation site: run, and written as Markdown with their outputs and pictures."""

from __future__ import annotations

import base64
import os
import re
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode
from traitlets.config import Config

SECONDS = 300  # for one cell; a whole notebook takes well below a minute on a quiet core


def run(path: Path) -> NotebookNode:
    """The notebook with its outputs. It runs in an empty folder; a cell that fails is an error."""
    notebook = nbformat.read(path, as_version=4)
    with tempfile.TemporaryDirectory() as folder:
        settings = Config({"KernelManager": {"transport": "ipc", "ip": f"{folder}/kernel"}})  # no network
        (Path(folder) / "work").mkdir()
        client = NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": f"{folder}/work"}}, config=settings)
        commands = f"{Path(sys.executable).parent}:{os.environ['PATH']}"  # so that `!askwise` is the one of this environment
        return client.execute(env={**os.environ, "PATH": commands})


def run_all(paths: list[Path]) -> list[NotebookNode]:
    """Two at a time."""
    with ThreadPoolExecutor(2) as pool:
        return list(pool.map(run, paths))


def page(notebook: NotebookNode, stem: str) -> tuple[str, dict[str, bytes]]:
    """The Markdown text of a notebook, and its pictures by file name."""
    pictures: dict[str, bytes] = {}
    parts = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
            continue
        source = re.sub(r"^%.*\n?", "", cell.source, flags=re.M).strip()  # settings of the notebook say nothing to a reader
        if source:
            parts.append(f"```python\n{source}\n```")
        parts.extend(_shown(cell.outputs, stem, pictures))
    return "\n\n".join(parts) + "\n", pictures


def _shown(outputs: list[NotebookNode], stem: str, pictures: dict[str, bytes]) -> Iterator[str]:
    for output in outputs:
        assert output.get("name") != "stderr", f"{stem} warns: {output.text}"
        data = output.get("data", {})
        if "image/png" in data:
            name = f"{stem}_{len(pictures) + 1}.png"
            pictures[name] = base64.b64decode(data["image/png"])
            yield f"![]({name})"
        elif "<table" in data.get("text/html", ""):
            yield re.sub(r"<style.*?</style>|\n\s*", "", data["text/html"], flags=re.S)
        else:
            text = output.get("text") or data.get("text/plain", "")
            yield f"```text\n{text.rstrip()}\n```"
