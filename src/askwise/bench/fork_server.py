"""A process of its own for each task, without the seconds that importing torch takes: a small server reads tasks from its
standard input and forks for each of them. It imports itself what earlier tasks had to import. The row comes back as one line.
So the peak of memory is the task's own, a crash ends one task and nothing else, and when whoever started the server dies, even
by a kill, its input closes, and it takes the running task with it."""

from __future__ import annotations

import importlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from askwise.bench.task import Task
from askwise.processes import child_environment

HEAVY = ("torch", "torch._dynamo", "lightgbm", "sklearn.linear_model")  # worth importing once for all tasks


class ForkServer:
    """The server, as whoever starts it sees it."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  why it could not start, if it could not
        self.process = subprocess.Popen(
            [sys.executable, "-m", "askwise.bench.fork_server"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=child_environment(),
            start_new_session=True,  # Ctrl-C is for whoever reads the rows, who then closes the server
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests, self._rows = self.process.stdin, self.process.stdout

    def run(self, task: Task, data: Path) -> dict[str, Any]:
        """The row of a task whose data is in this file."""
        try:
            self._requests.write(json.dumps({"task": asdict(task), "data": str(data)}).encode() + b"\n")
            self._requests.flush()
            return dict(json.loads(self._rows.readline()))
        except (OSError, ValueError):
            self._errors.seek(0)
            reason = (self._errors.read().decode(errors="replace").strip().splitlines() or [""])[-1]
            self.close()
            raise RuntimeError(f"the process that starts tasks has died{f' ({reason})' if reason else ''}") from None

    def stop(self) -> None:
        """Makes it end what it runs, and itself; to be called from anywhere."""
        with suppress(OSError):  # it is dead already
            self._requests.close()

    def close(self) -> None:
        """Waits until it has ended."""
        self.stop()
        self._rows.close()
        self._errors.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def serve() -> None:
    """Reads tasks until the input ends."""
    requests, answers = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):  # whatever a method prints must not get between the rows
        os.dup2(nothing, stream)
    lines = os.fdopen(requests, "rb")
    needed = ["askwise.bench.execution", "askwise.bench.split_files"]  # before a fork, once for all
    while line := lines.readline():
        for name in needed:
            importlib.import_module(name)
        answer = _in_a_fork(line, requests)
        if answer is None:
            return
        needed = answer.pop("imported", [])
        _write(answers, json.dumps(answer).encode() + b"\n")


def _in_a_fork(line: bytes, requests: int) -> dict[str, Any] | None:
    """Carries out one task in a fork; its row, or None when the one who asked is gone."""
    task = Task(**json.loads(line)["task"])
    began = time.monotonic()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        os.close(read)
        _answer(line, write)
    os.close(write)
    try:
        ended, answer = _answer_of(child, read, requests, None if task.kill_after is None else began + 60 * task.kill_after)
    finally:
        os.close(read)
        status = os.waitpid(child, 0)[1]
    if ended == CLOSED:
        return None
    if ended == ANSWERED and status == 0:
        return dict(json.loads(answer))
    why = f"it was not over after {task.kill_after:g} minutes" if ended == LATE else _why_it_ended(status)
    return {**task.row, "status": "failed", "why": why, "minutes_taken": round((time.monotonic() - began) / 60, 4)}


ANSWERED, CLOSED, LATE = range(3)


def _answer_of(child: int, read: int, requests: int, ends: float | None) -> tuple[int, bytes]:
    """What the child writes until it ends. It is killed when the input closes, or when its time is over."""
    chunks: list[bytes] = []
    while True:
        ready = select.select([read, requests], [], [], None if ends is None else max(0.0, ends - time.monotonic()))[0]
        if read in ready:
            chunk = os.read(read, 1 << 20)
            if not chunk:
                return ANSWERED, b"".join(chunks)
            chunks.append(chunk)
        else:  # nothing is written to the input while a task runs, so it can only have closed
            os.kill(child, signal.SIGKILL)
            return (CLOSED if ready else LATE), b""


def _why_it_ended(status: int) -> str:
    """In words, from the status of a process that gave no answer."""
    if not os.WIFSIGNALED(status):
        return f"its process ended with code {os.waitstatus_to_exitcode(status)}"
    name = signal.Signals(os.WTERMSIG(status)).name
    return f"its process was ended by {name}" + (", often a sign of too little memory" if name == "SIGKILL" else "")


def _answer(line: bytes, to: int) -> None:
    """In the fork: never returns."""
    from askwise.bench.execution import carried_out, failed
    from askwise.bench.split_files import unpack

    code = 1
    try:
        request = json.loads(line)
        task = Task(**request["task"])
        try:
            row = carried_out(task, unpack(Path(request["data"])))
        except Exception as error:
            row = {**task.row, **failed(error)}
        row |= {"imported": [name for name in HEAVY if name in sys.modules], "memory_mb": _peak()}
        try:
            text = json.dumps(row, allow_nan=False)
        except ValueError as error:  # a figure that is no number is no result
            text = json.dumps({**task.row, **failed(error)})
        _write(to, text.encode())
        code = 0
    finally:
        os._exit(code)  # nothing of the server's is flushed or closed twice


def _peak() -> int:
    """The most memory that this process has had, in MB."""
    unit = 1 if sys.platform == "darwin" else 1024
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit / 2**20)


def _write(to: int, data: bytes) -> None:
    while data:
        data = data[os.write(to, data) :]


if __name__ == "__main__":
    serve()
