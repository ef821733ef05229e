"""Dask: tasks on an existing cluster, or on one of this machine. Workers need askwise; the data goes to each of them once.

A task of a worker that dies is run again elsewhere. It is run in a process of its own there too (see nest.py), so that memory is
the task's own and a crash does not take the worker with it.
"""

from __future__ import annotations

import logging
import os
import queue
import tempfile
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from askwise.bench import parcels
from askwise.bench.engine import DASK, Parcels
from askwise.bench.nest import Nest
from askwise.bench.plan import Task
from askwise.bench.task import failed
from askwise.errors import InputError
from askwise.files import write_whole

Row = dict[str, Any]

TRIES = 4  # of a task whose worker, or whose data, was lost
AHEAD = 2  # tasks for each thread of the cluster that are handed over at a time
PATIENCE = 30  # seconds to find a scheduler, and a worker


@contextmanager
def client_of(engine: str, processes: int) -> Iterator[Any]:
    """A client of the cluster that the engine names; a cluster that is made for it ends with it."""
    try:
        import distributed
    except ImportError:
        raise InputError(f"the engine {engine!r} needs Dask; install 'askwise[bench]'") from None
    if engine == DASK:
        quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
        with (
            distributed.LocalCluster(n_workers=processes, threads_per_worker=1, processes=True, **quiet) as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client
        return
    address = engine.removeprefix("dask://")
    try:
        client = distributed.Client(f"tcp://{address}", timeout=PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        raise InputError(f"no Dask scheduler answers at {address}: {error}") from None
    with client:
        try:
            client.wait_for_workers(1, timeout=PATIENCE)
        except TimeoutError:
            raise InputError(f"the Dask cluster at {address} has no workers; start some") from None
        yield client


def on_cluster(client: Any, tasks: Sequence[Task], data: Parcels) -> Iterator[Row]:
    """The row of each task, in the order in which they end."""
    from distributed import as_completed

    todo, running = deque((task, 1) for task in tasks), dict[Any, tuple[Task, int]]()
    sent: dict[str, Any] = {}
    ended = as_completed()
    while todo or running:
        room = AHEAD * sum(client.nthreads().values()) - len(running)
        for _ in range(min(max(room, 0 if running else 1), len(todo))):
            task, tried = todo.popleft()
            key = parcels.key(task)
            try:
                if key not in sent or sent[key].status in ("cancelled", "lost", "error"):
                    # to all workers, so that it outlives any of them; those that come later fetch it from the others
                    sent[key] = client.scatter(data.of(task).read_bytes(), broadcast=True, hash=False)
            except Exception as error:
                yield {**task.told, **failed(error)}
                _drop(data, task, sent)
                continue
            future = client.submit(on_worker, task.to_dict(), sent[key], sent[key].key, pure=False, retries=TRIES - 1)
            running[future] = task, tried
            ended.add(future)
        if not running:
            continue
        future = next(ended)
        task, tried = running.pop(future)
        try:
            row = future.result()
        except Exception as error:
            if tried < TRIES and future.status in ("cancelled", "lost"):  # its data was lost with a worker
                sent.pop(parcels.key(task), None)
                todo.appendleft((task, tried + 1))
                continue
            row = {**task.told, **failed(error)}
        yield row
        _drop(data, task, sent)


def _drop(data: Parcels, task: Task, sent: dict[str, Any]) -> None:
    """One task less needs the data; after the last one workers may forget it."""
    data.done(task)
    key = parcels.key(task)
    if not data.left[key]:
        sent.pop(key, None)


# ---------------------------------------------------------------------- on a worker

_idle: queue.SimpleQueue[Nest] = queue.SimpleQueue()
KEPT = 8  # files of data on a worker


def on_worker(task: dict[str, Any], data: bytes, name: str) -> Row:
    """Carries out one task, with a server of forks that is kept for the next one."""
    path = _folder() / f"askwise-{name}.safetensors"
    if path.exists():
        os.utime(path)
    else:
        write_whole(path, data)
    try:
        nest = _idle.get_nowait()
    except queue.Empty:
        nest = Nest()
    row = nest.run(Task.from_dict(task), path)
    _idle.put(nest)
    for old in sorted(path.parent.glob("askwise-*.safetensors"), key=lambda p: p.stat().st_mtime)[:-KEPT]:
        old.unlink(missing_ok=True)
    return row


def _folder() -> Path:
    """Where the worker keeps its files, which Dask removes when it ends."""
    from distributed import get_worker

    try:
        return Path(get_worker().local_directory)
    except (ValueError, AttributeError):  # a caller that is no worker
        return Path(tempfile.gettempdir())
