"""Members of a stack fitted several at a time, on this machine or on a cluster. They are the same as if they were fitted here.

On this machine this process works too, so that nobody waits for a helper to start. What a helper that dies leaves undone is done
here, or by another one.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

from askwise import cluster
from askwise.components.packing import from_bytes, to_bytes
from askwise.core.arrays import Arrays
from askwise.errors import InputError
from askwise.files import temporary_folder, write_whole
from askwise.processes import Helper, jobs_of
from askwise.stack.members import MemberFitting, MemberTask, MemberTime, OneByOne

HELPED_AFTER = 3.0  # seconds that members take here before helpers are started, unless a number of processes was asked for
GLANCE = 0.2  # seconds between two looks at whether a member is ready
RETRIES = 1  # of a member whose process on a worker has died; those of a worker that died Dask itself runs again
IMPORTS = ("askwise.stack.engines", "lightgbm", "torch._dynamo")  # of a helper, before its first member


def member_fitting(engine: str, n_jobs: int | None, seconds: MemberTime) -> MemberFitting:
    """The way to fit members that an engine and a number of processes stand for."""
    if engine != cluster.LOCAL:
        return OnCluster(engine, cluster.cores() if n_jobs is None else jobs_of(n_jobs), seconds)
    jobs = jobs_of(n_jobs)
    return OneByOne(seconds) if jobs == 1 else Helped(jobs, seconds, HELPED_AFTER if n_jobs is None else 0.0)


class Helped:
    """In this process and, once members have taken so many seconds, in others beside it. Each takes the next that is left."""

    def __init__(self, jobs: int, seconds: MemberTime, after: float = 0.0) -> None:
        self.jobs, self.seconds, self.after = jobs, seconds, after
        self.todo: list[int] = []
        self.helpers: list[Helper] = []
        self.threads: list[threading.Thread] = []
        self.ready = queue.SimpleQueue[tuple[int, Arrays]]()
        self.lock, self.over, self.folder = threading.Lock(), threading.Event(), ExitStack()
        self.began: float | None = None
        self.done_here = 0
        self.working = 1  # processes: this one, and helpers that have started

    def __call__(self, task: MemberTask, missing: Sequence[int]) -> dict[int, Arrays]:
        if self.began is None:
            self._begin(task, missing)
        fitted: dict[int, Arrays] = {}
        if (job := self._next()) is not None:
            fitted[job[0]] = task.fit(*job)
            self.done_here += 1
        wait = job is None
        try:
            while True:
                k, arrays = self.ready.get(wait, GLANCE)
                fitted[k], wait = arrays, False
        except queue.Empty:
            pass
        if fitted.keys() >= set(missing):
            self.close()
        return fitted

    def close(self) -> None:
        self.over.set()
        with self.lock:
            self.todo.clear()
            for helper in self.helpers:
                helper.kill()
        for thread in self.threads:
            thread.join()
        self.folder.close()

    def _begin(self, task: MemberTask, missing: Sequence[int]) -> None:
        self.began, self.todo = time.monotonic(), list(missing)
        path = self.folder.enter_context(temporary_folder("askwise-members-")) / "task"
        for _ in range(min(self.jobs, len(missing)) - 1):
            self.threads.append(threading.Thread(target=self._help, args=(task, path), daemon=True))
            self.threads[-1].start()

    def _next(self) -> tuple[int, float] | None:
        """The next member, for whoever asks, and its seconds."""
        with self.lock:
            return (self.todo.pop(0), self.seconds(len(self.todo) + 1, self.working)) if self.todo else None

    def _help(self, task: MemberTask, path: Path) -> None:
        """In a thread: starts a helper, and gives it one member after the other."""
        if self.over.wait(self.after):
            return
        helper, job = None, None
        try:
            with self.lock:
                if self.over.is_set() or not self._pays():
                    return
                if not path.exists():
                    write_whole(path, task.pack())
                self.helpers.append(helper := Helper(*IMPORTS))
            helper.wait()
            with self.lock:
                self.working += 1
            while (job := self._next()) is not None:
                self.ready.put((job[0], from_bytes(helper.run(fitted_as_bytes, str(path), *job))))
        except Exception:  # whatever it was that went wrong: the member is fitted here, and here an error is told
            if job is not None:
                with self.lock:
                    self.todo.insert(0, job[0])
                    self.working -= 1
        finally:
            if helper is not None:
                helper.close()

    def _pays(self) -> bool:
        """Whether what is left takes longer than it takes to start a helper, as far as one can tell by now."""
        each = (time.monotonic() - (self.began or 0.0)) / max(self.done_here, 1)
        return bool(self.todo) and len(self.todo) * each >= 2 * self.after


class OnCluster:
    """On the workers of a Dask cluster alone. There too members are fitted by helpers, beside the worker: it may have several
    threads, and torch's random numbers are those of a process."""

    def __init__(self, engine: str, processes: int, seconds: MemberTime) -> None:
        self.engine, self.processes, self.seconds = engine, processes, seconds
        self.connection, self.futures = ExitStack(), dict[int, Any]()

    def __call__(self, task: MemberTask, missing: Sequence[int]) -> dict[int, Arrays]:
        if not self.futures:
            self._begin(task, missing)
        ended = [k for k, future in self.futures.items() if future.done()]
        if not ended:
            time.sleep(GLANCE)
        fitted = {k: self._result(k, task) for k in ended}
        if fitted.keys() >= set(missing):
            self.close()
        return fitted

    def close(self) -> None:
        self.futures.clear()
        self.connection.close()

    def _begin(self, task: MemberTask, missing: Sequence[int]) -> None:
        workers = self.connection.enter_context(cluster.connected(self.engine, self.processes))
        sent, seconds = workers.send(task.pack()), self.seconds(len(missing), workers.threads)
        self.futures = {k: workers.submit(fitted_on_worker, sent, k, seconds, retries=RETRIES) for k in missing}

    def _result(self, k: int, task: MemberTask) -> Arrays:
        try:
            return from_bytes(self.futures.pop(k).result())
        except Exception as error:
            why = (str(error).splitlines() or [""])[0]
            raise InputError(
                f"member {k + 1} of {task.folds.members} could not be fitted on the cluster: {type(error).__name__}: {why}"
            ) from None


# ---------------------------------------------------------------------- elsewhere


def fitted_as_bytes(path: str, k: int, seconds: float) -> bytes:
    """In a helper: the learners of a member, of the task in this file."""
    return to_bytes(MemberTask.unpack(Path(path)).fit(k, seconds), {})


_idle: queue.SimpleQueue[Helper] = queue.SimpleQueue()  # of a worker: kept for its next members; they end when none comes


def fitted_on_worker(path: Path, k: int, seconds: float) -> bytes:
    """On a worker: the same, by a helper."""
    helper = _alive() or Helper(*IMPORTS)
    try:
        data = helper.run(fitted_as_bytes, str(path), k, seconds)
    except BaseException:
        helper.close()
        raise
    _idle.put(helper)
    return data


def _alive() -> Helper | None:
    """One of the helpers that wait here."""
    with suppress(queue.Empty):
        while True:
            helper = _idle.get_nowait()
            if helper.alive:
                return helper
            helper.close()
    return None
