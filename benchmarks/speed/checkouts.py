"""Works of several checkouts that are timed in turns: each checkout is a process that does a work when it is asked to."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

ROOT = Path(__file__).parents[2]


class Checkout:
    """One of the sides. script: a file that calls `answer` when it is started with these arguments."""

    def __init__(self, folder: Path, script: str, *arguments: str) -> None:
        one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
        self.environment = {**os.environ, **one_thread, "PYTHONPATH": f"{folder.resolve() / 'src'}{os.pathsep}{ROOT}"}
        self.process = subprocess.Popen(
            [sys.executable, "-W", "ignore", script, *arguments],
            env=self.environment,
            text=True,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        if self._answer() != "ready":
            raise SystemExit(f"{folder} cannot be measured")

    def _answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def seconds(self, name: str) -> float:
        """Of one work."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def answer(works: Mapping[str, Callable[[], object]]) -> None:
    """Reads names of works, and answers each with the seconds that it took."""
    for work in works.values():
        work()  # what is only done once is done now
    print("ready", flush=True)
    for line in sys.stdin:
        began = time.process_time()
        works[line.strip()]()
        print(time.process_time() - began, flush=True)
