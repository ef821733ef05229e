"""Several processes that answer on one port, and what they share.

The service keeps nothing of a case, so any worker answers any request. Limits hold for all of them together. Buckets of requests
are in memory that they share, and are changed under a lock that the system takes back from who dies. Of connections each has
its part: a worker can only send away its own, so that with a common count the silent ones of one would keep out those of another.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import secrets
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from types import FrameType, TracebackType

import numpy as np

from askwise.web.clients import Rate, refilled
from askwise.web.logs import Log, Metrics

SLOTS = 1 << 14  # of clients, by a hash of their addresses
BUCKET = np.dtype([("client", np.uint64), ("left", np.float64), ("then", np.float64)])
AGAIN = 1.0  # seconds between two starts of a worker, at least
ENDS = (signal.SIGINT, signal.SIGTERM)
LEAVE = 3.0  # seconds that workers get beyond those of their requests in progress


class Shared:
    """What workers share. It is made before they are."""

    def __init__(self) -> None:
        self.key = secrets.token_bytes(16)  # nobody can choose addresses that meet
        self.buckets = np.frombuffer(mmap.mmap(-1, SLOTS * BUCKET.itemsize), BUCKET)
        self.folder = Path(tempfile.mkdtemp(prefix="askwise-"))  # counters of each, and a file to lock
        self.lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT, 0o600)

    def hashed(self, client: str) -> int:
        """Of 64 bits; never 0, which is nobody."""
        return int.from_bytes(blake2b(client.encode(), digest_size=8, key=self.key).digest()) | 1

    def __enter__(self) -> Shared:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        os.close(self.lock)
        shutil.rmtree(self.folder, ignore_errors=True)


class SharedRate(Rate):
    """The same bucket for a client, whichever worker is asked. Two clients that meet in a slot take turns in having one."""

    def __init__(self, rate: float, shared: Shared) -> None:
        super().__init__(rate)
        self.shared = shared

    def wait(self, client: str, now: float) -> float:
        if not self.rate:
            return 0.0
        name = self.shared.hashed(client)
        bucket = self.shared.buckets[name % SLOTS : name % SLOTS + 1]
        fcntl.lockf(self.shared.lock, fcntl.LOCK_EX)
        try:
            of, left, then = bucket[0].item()
            left, then = (left, then) if of == name else (self.most, now)
            left, wait = refilled(left, now - then, self.rate, self.most)
            bucket[0] = name, left, now
        finally:
            fcntl.lockf(self.shared.lock, fcntl.LOCK_UN)
        return wait


class Published:
    """The counters of a worker as the others see them. One that takes the place of another goes on counting from there."""

    def __init__(self, shared: Shared, worker: int, metrics: Metrics) -> None:
        self.folder, self.worker, self.metrics, self.parent = shared.folder, worker, metrics, os.getppid()
        for counters in self._read(self.folder / f"{worker}.json"):
            metrics.add({**counters, "gauges": {}})
        metrics.others = self.others

    async def tell(self) -> None:
        """Writes them; the server calls this once a second. Without its parent a worker ends."""
        if os.getppid() != self.parent:
            os.kill(os.getpid(), signal.SIGTERM)
            return
        path = self.folder / f"{self.worker}.json"
        new = path.with_suffix(".new")
        new.write_text(json.dumps(self.metrics.counters()))
        new.replace(path)

    def others(self) -> list[dict[str, object]]:
        """The counters of all other workers."""
        return [c for p in self.folder.glob("*.json") if p.stem != str(self.worker) for c in self._read(p)]

    def _read(self, path: Path) -> list[dict[str, object]]:
        try:
            return [json.loads(path.read_text())]
        except FileNotFoundError:
            return []


def supervise(n: int, work: Callable[[int], None], log: Log, patience: float) -> None:
    """Keeps n workers at work, each in a process of its own, until it is told to stop; one that dies is replaced."""
    running: dict[int, int] = {}  # process: worker
    started = [-AGAIN] * n
    stopping = False

    def stop(*_: int | FrameType | None) -> None:
        nonlocal stopping
        stopping = True
        for process in running:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGTERM)

    for number in ENDS:
        signal.signal(number, stop)
    ends = None
    while running or not stopping:
        if not stopping:
            for worker in set(range(n)) - set(running.values()):
                if time.monotonic() - started[worker] >= AGAIN:
                    started[worker] = time.monotonic()
                    running[_forked(work, worker, log)] = worker
                    if stopping:  # told so meanwhile
                        stop()
        elif ends is None:
            ends = time.monotonic() + patience + LEAVE
        elif time.monotonic() > ends:
            for process in running:
                os.kill(process, signal.SIGKILL)
        process, status = os.waitpid(-1, os.WNOHANG) if running else (0, 0)
        if process in running:
            worker = running.pop(process)
            if not stopping:
                log.write("worker died", worker=worker, process=process, status=os.waitstatus_to_exitcode(status))
        elif not process:
            time.sleep(0.05)


def _forked(work: Callable[[int], None], worker: int, log: Log) -> int:
    """A process that does this work and nothing else. Ctrl-C reaches only its parent, which tells it to stop."""
    kept = signal.pthread_sigmask(signal.SIG_BLOCK, ENDS)
    process = os.fork()
    if process:
        signal.pthread_sigmask(signal.SIG_SETMASK, kept)
        return process
    code = 1
    try:
        os.setpgid(0, 0)
        for number in ENDS:
            signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, kept)
        work(worker)
        code = 0
    except Exception as error:
        log.failure(error, where=f"worker {worker}")
    finally:
        os._exit(code)  # nothing of its parent is done again
