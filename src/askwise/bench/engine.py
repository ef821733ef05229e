"""Where tasks run: in processes of this machine, or on a Dask cluster (see clusters.py). Both give rows as tasks end."""

from __future__ import annotations

import os
import queue
import re
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from askwise.bench import split_files
from askwise.bench.fork_server import ForkServer
from askwise.bench.plan import Task
from askwise.bench.task import failed
from askwise.errors import InputError
from askwise.files import temporary_folder, write_whole

Row = dict[str, Any]

LOCAL, DASK = "local", "dask"


def checked(engine: str) -> str:
    """One of the words that name an engine."""
    if engine not in (LOCAL, DASK) and not re.fullmatch(r"dask://[^/\s]+:\d+", engine):
        raise InputError(
            f"the engine is {engine!r}; it must be 'local', 'dask' for a cluster on this machine, or dask://HOST:PORT"
        )
    return engine


def rows_of(tasks: Sequence[Task], engine: str, processes: int) -> Iterator[Row]:
    """The row of each task, in the order in which they end."""
    with Parcels(tasks) as data:
        if engine == LOCAL:
            yield from local(tasks, data, processes)
        else:
            from askwise.cluster.client import client_of, on_cluster

            with client_of(engine, processes) as client:
                yield from on_cluster(client, tasks, data)


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Parcels:
    """The data of tasks, each made once, in files that are there as long as a task needs them."""

    def __init__(self, tasks: Sequence[Task]) -> None:
        self.left = Counter(split_files.key(task) for task in tasks)
        self.made: dict[str, Path | Exception] = {}
        self.lock = threading.Lock()
        self.held = ExitStack()
        self.folder = self.held.enter_context(temporary_folder("askwise-tasks-"))

    def __enter__(self) -> Parcels:
        return self

    def __exit__(self, *_: object) -> None:
        self.held.close()

    def of(self, task: Task) -> Path:
        """The file; the error if there was one, for every task that needs it."""
        key = split_files.key(task)
        with self.lock:
            if key not in self.made:
                try:
                    path = self.folder / f"{len(self.made)}.safetensors"
                    write_whole(path, split_files.pack(split_files.load(task)))
                    self.made[key] = path
                except Exception as error:  # tasks on other data go on
                    self.made[key] = error
            found = self.made[key]
        if isinstance(found, Exception):
            raise found
        return found

    def done(self, task: Task) -> None:
        """One task less needs it."""
        key = split_files.key(task)
        with self.lock:
            self.left[key] -= 1
            found = self.made.get(key)
            if not self.left[key] and isinstance(found, Path):
                found.unlink(missing_ok=True)


def local(tasks: Sequence[Task], data: Parcels, processes: int) -> Iterator[Row]:
    """So many at a time on this machine, each in a process of its own."""
    todo, rows, nests = iter(tasks), queue.SimpleQueue[Row](), set[ForkServer]()
    lock, over = threading.Lock(), threading.Event()

    def work() -> None:
        nest = None
        while not over.is_set():
            with lock:
                task = next(todo, None)
            if task is None:
                break
            try:
                path = data.of(task)
                if nest is None:
                    nest = ForkServer()
                    nests.add(nest)
                row = nest.run(task, path)
            except Exception as error:
                nest = None if isinstance(error, RuntimeError) else nest
                row = {**task.told, **failed(error)}
            data.done(task)
            rows.put(row)
        if nest is not None:
            nest.close()

    workers = [threading.Thread(target=work) for _ in range(min(processes, len(tasks)))]
    for worker in workers:
        worker.start()
    try:
        for _ in tasks:
            yield rows.get()
    finally:
        over.set()
        for nest in list(nests):
            nest.stop()
        for worker in workers:
            worker.join()
