"""`askwise serve` in a process of its own, for measuring and for pictures."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def serving(*argv: object, log: Path | None = None) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Its port and its process; it is stopped in the end."""
    command = [sys.executable, "-m", "askwise", "serve", *map(str, argv), "--port", "0", "--rate", "0"]
    with open(log or os.devnull, "w") as lines:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=lines, text=True)
        assert process.stdout is not None
        try:
            line = process.stdout.readline()
            match = re.search(r"http://[^/]+:(\d+)", line)
            if match is None:
                raise RuntimeError(f"it did not start: {line}")
            yield int(match[1]), process
        finally:
            process.terminate()
            process.wait(20)
            process.stdout.close()
