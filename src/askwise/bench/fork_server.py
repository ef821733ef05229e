"""A process of its own for each task, without the seconds that importing torch takes: a small server forks for each task that it
is told on its standard input, and imports itself what the tasks before had to import; the row comes back as one line.

So the peak of memory is the task's own, a crash ends one task and nothing else, and when whoever started the server dies, even
by a kill, its input closes, and it takes the running task with it.
"""

from __future__ import annotations

import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

from askwise.bench.plan import Task

ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # tasks that may use more say so themselves

HEAVY = ("torch", "torch._dynamo", "lightgbm", "sklearn.linear_model")  # worth importing once for all tasks


class ForkServer:
    """The server, as whoever starts it sees it."""

    def __init__(self) -> None:
        # what can be imported here can be imported there
        environment = {**os.environ, **dict.fromkeys(ONE_THREAD, "1"), "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
        environment.pop("MALLOC_TRIM_THRESHOLD_", None)  # of Dask's workers: with it arrays take memory anew each time
        self.said = tempfile.TemporaryFile()  # noqa: SIM115  why it could not start, if it could not
        self.process = subprocess.Popen(
            [sys.executable, "-m", "askwise.bench.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            env=environment,
            start_new_session=True,  # Ctrl-C is for whoever reads the rows, who then closes the nest
        )

    def run(self, task: Task, data: Path) -> dict[str, Any]:
        """The row of a task whose data is in this file."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps({"task": task.to_dict(), "data": str(data)}).encode() + b"\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
            return dict(json.loads(line))
        except (OSError, ValueError):
            self.said.seek(0)
            reason = (self.said.read().decode(errors="replace").strip().splitlines() or [""])[-1]
            self.close()
            raise RuntimeError(f"the process that starts tasks has died{f' ({reason})' if reason else ''}") from None

    def stop(self) -> None:
        """Makes it end what it runs, and itself; to be called from anywhere."""
        assert self.process.stdin is not None
        with suppress(OSError):  # it is dead already
            self.process.stdin.close()

    def close(self) -> None:
        """Waits until it has ended."""
        self.stop()
        assert self.process.stdout is not None
        self.process.stdout.close()
        self.said.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def serve() -> None:
    """Reads tasks until the input ends."""
    from askwise.bench import (
        split_files,  # noqa: F401  before the first fork
        task,  # noqa: F401  before the first fork
    )

    told, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # whatever a method prints must not get between the rows
        os.dup2(nothing, stream)
    lines = os.fdopen(told, "rb")
    needed: list[str] = []
    while line := lines.readline():
        for name in needed:
            importlib.import_module(name)
        answer = _child(line, told)
        if answer is None:
            return
        needed = answer.pop("imported", [])
        _write(answers, json.dumps(answer).encode() + b"\n")


def _child(line: bytes, told: int) -> dict[str, Any] | None:
    """Carries out one task in a fork; its row, or None when the one who asked is gone."""
    task = Task.from_dict(json.loads(line)["task"])
    began = time.monotonic()
    ends = None if task.kill_after is None else began + 60 * task.kill_after
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        _answer(line, write)
    os.close(write)
    got, why = [], ""
    try:
        while True:
            left = None if ends is None else max(0.0, ends - time.monotonic())
            ready = select.select([read, told], [], [], left)[0]
            if read in ready:
                some = os.read(read, 1 << 20)
                if not some:
                    break
                got.append(some)
            elif told in ready:  # nothing is said while a task runs, so this is the end of the input
                os.kill(child, signal.SIGKILL)
                return None
            else:
                os.kill(child, signal.SIGKILL)
                why = f"it was not over after {task.kill_after:g} minutes"
                break
    finally:
        os.close(read)
        status = os.waitpid(child, 0)[1]
    if not why and os.WIFEXITED(status) and not os.WEXITSTATUS(status):
        return dict(json.loads(b"".join(got)))
    if not why and os.WIFSIGNALED(status):
        name = signal.Signals(os.WTERMSIG(status)).name
        why = f"its process was ended by {name}" + (", often a sign of too little memory" if name == "SIGKILL" else "")
    row = {**task.told, "status": "failed", "why": why or f"its process ended with code {os.waitstatus_to_exitcode(status)}"}
    return {**row, "minutes_taken": round((time.monotonic() - began) / 60, 4)}


def _answer(line: bytes, to: int) -> None:
    """In the fork: never returns."""
    import resource

    from askwise.bench.split_files import unpack
    from askwise.bench.task import carried_out, failed

    code = 1
    try:
        given = json.loads(line)
        task = Task.from_dict(given["task"])
        try:
            row = carried_out(task, unpack(Path(given["data"])))
        except Exception as error:
            row = {**task.told, **failed(error)}
        unit = 1 if sys.platform == "darwin" else 1024
        row["imported"] = [name for name in HEAVY if name in sys.modules]
        row["memory_mb"] = round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20)
        try:
            text = json.dumps(row, allow_nan=False)
        except ValueError as error:  # a figure that is no number is no result
            text = json.dumps({**task.told, **failed(error)})
        _write(to, text.encode())
        code = 0
    finally:
        os._exit(code)  # nothing of the server's is flushed or closed twice


def _write(to: int, data: bytes) -> None:
    while data:
        data = data[os.write(to, data) :]


if __name__ == "__main__":
    serve()
