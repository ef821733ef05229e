"""Processes of this machine that help this one: each carries out jobs, one after the other.

A helper is a fresh interpreter, so that it does not matter who starts it: a notebook, a script without a guard, a task of a
bench, a worker of Dask. It reads jobs from its standard input. When whoever started it dies, even by a kill, that input closes,
and the helper ends at once, whatever it is doing.
"""

from __future__ import annotations

import importlib
import json
import multiprocessing
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import IO, Any

from askwise.cluster import ONE_THREAD, cores
from askwise.errors import InputError


def check_processes(number: int | None, option: str = "--processes") -> None:
    """What --processes says, or another option for a number of what works side by side."""
    if number is not None and number < 1:
        raise InputError(f"{option} is {number}; it must be 1 or more")


def jobs_of(n_jobs: int | None) -> int:
    """How many processes work at a time, in scikit-learn's words: -1 is one for each core; None: as many as there are free."""
    if n_jobs is None:
        return free_cores()
    return cores() if n_jobs == -1 else n_jobs


def free_cores() -> int:
    """Cores that this process may use and that hardly anybody uses now, its own included. In a process that was started to work
    beside others it is 1: who started it shares out the cores."""
    if multiprocessing.parent_process() is not None:
        return 1
    others = max(os.getloadavg()[0] - 1, 0.0) if hasattr(os, "getloadavg") else 0.0
    return max(1, round(cores() * (1 - others / (os.cpu_count() or 1))))


def child_environment() -> dict[str, str]:
    """For an interpreter that works with one thread: what can be imported here can be imported there."""
    environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1"), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    environment.pop("MALLOC_TRIM_THRESHOLD_", None)  # of Dask's workers: with it arrays take memory anew each time
    return environment


IDLE = 60  # seconds without a job after which a helper ends


class HelperError(Exception):
    """A helper did not come to a result."""


class Helper:
    """A helper, as whoever starts it sees it. `imports`: modules that it imports before it takes a job."""

    def __init__(self, *imports: str) -> None:
        try:
            self.process = subprocess.Popen(
                [sys.executable, "-P", "-m", "askwise.processes", *imports],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=child_environment(),
                start_new_session=True,  # Ctrl-C is for whoever started it, who then closes it
            )
        except OSError as error:
            raise HelperError(f"no process could be started ({error})") from None
        self.ready = False

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def wait(self) -> None:
        """Until it can take a job."""
        if not self.ready:
            self._answer()
            self.ready = True

    def run(self, function: Callable[..., bytes], *arguments: Any) -> bytes:
        """What a function of a module comes to there, with arguments that fit into JSON."""
        self.wait()
        request = {"function": [function.__module__, function.__name__], "arguments": arguments}
        try:
            pipe: IO[bytes] = self.process.stdin  # type: ignore[assignment]
            pipe.write(json.dumps(request).encode() + b"\n")
            pipe.flush()
        except OSError:
            raise HelperError("its process has died") from None
        return self._answer()

    def _answer(self) -> bytes:
        pipe: IO[bytes] = self.process.stdout  # type: ignore[assignment]
        try:
            head = json.loads(pipe.readline() or "{}")
            data = pipe.read(head.get("size", 0))
        except (OSError, ValueError):
            head, data = {}, b""
        if "error" in head:
            raise HelperError(head["error"])
        if "size" not in head or len(data) < head["size"]:
            raise HelperError("its process has died")
        return data

    def kill(self) -> None:
        """Ends it, whatever it does; to be called from anywhere."""
        self.process.kill()

    def close(self) -> None:
        """Ends it, and waits until it has ended."""
        self.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(OSError):  # what was still to be written
                pipe.close()  # type: ignore[union-attr]


# ---------------------------------------------------------------------- in a helper


def serve(imports: list[str]) -> None:
    """Carries out jobs until the input ends, or no more come."""
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # whatever a job prints must not get between the answers
        os.dup2(nothing, stream)
    jobs = queue.SimpleQueue[bytes]()

    def listen() -> None:
        while line := requests.readline():
            jobs.put(line)
        os._exit(0)  # who asked is gone

    threading.Thread(target=listen, daemon=True).start()
    for name in imports:
        importlib.import_module(name)
    _write(answers, {"size": 0})
    while (line := _next(jobs)) is not None:
        request = json.loads(line)
        module, name = request["function"]
        try:
            data = getattr(importlib.import_module(module), name)(*request["arguments"])
        except Exception as error:
            _write(answers, {"error": f"{type(error).__name__}: {error}"})
        else:
            _write(answers, {"size": len(data)}, data)


def _next(jobs: queue.SimpleQueue[bytes]) -> bytes | None:
    try:
        return jobs.get(timeout=IDLE)
    except queue.Empty:
        return None


def _write(answers: IO[bytes], head: dict[str, Any], data: bytes = b"") -> None:
    answers.write(json.dumps(head).encode() + b"\n" + data)
    answers.flush()


if __name__ == "__main__":
    serve(sys.argv[1:])
