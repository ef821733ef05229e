"""Dask: tasks on an existing cluster, or on one of this machine. Workers need askwise; the data goes to each of them once.

A task of a worker that dies is run again elsewhere. It is run in a process of its own there too (see nest.py), so that memory is
the task's own and a crash does not take the worker with it.
"""

from __future__ import annotations

import logging
import os
import queue
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


def completed(client: Any, jobs: Sequence[Any], submit: Any, span: int | None = None) -> Iterator[tuple[int, Any]]:
    """Number and result of each job, or the exception that it came to, in the order in which they end.

    `submit(job, again)` gives a future; `again` says that what the job had been sent was lost with a worker. With `span`, no job
    begins that is so many rounds ahead of the first one that has not ended.
    """
    from distributed import as_completed

    todo, running, ended = deque((i, 1) for i in range(len(jobs))), dict[Any, tuple[int, int]](), as_completed()
    while todo or running:
        most = AHEAD * max(sum(client.nthreads().values()), 1)
        while todo and len(running) < most:
            i, tried = todo[0]
            if span is not None and running and i - min(j for j, _ in running.values()) >= span * most:
                break
            todo.popleft()
            try:
                future = submit(jobs[i], tried > 1)
            except Exception as error:
                yield i, error
                continue
            running[future] = i, tried
            ended.add(future)
        if not running:
            continue
        future = next(ended)
        i, tried = running.pop(future)
        try:
            result = future.result()
        except Exception as error:
            if tried < TRIES and future.status in ("cancelled", "lost"):
                todo.appendleft((i, tried + 1))
                continue
            result = error
        yield i, result


def on_cluster(client: Any, tasks: Sequence[Task], data: Parcels) -> Iterator[Row]:
    """The row of each task, in the order in which they end."""
    sent: dict[str, Any] = {}

    def submit(task: Task, again: bool) -> Any:
        key = parcels.key(task)
        if key not in sent or (again and sent[key].status != "finished"):
            sent[key] = send(client, data.of(task).read_bytes())
        return client.submit(on_worker, task.to_dict(), sent[key], sent[key].key, pure=False, retries=TRIES - 1)

    for i, row in completed(client, tasks, submit):
        task = tasks[i]
        yield {**task.told, **failed(row)} if isinstance(row, Exception) else row
        data.done(task)
        if not data.left[parcels.key(task)]:  # workers may forget it
            sent.pop(parcels.key(task), None)


def send(client: Any, data: bytes) -> Any:
    """To all workers, so that it outlives any of them; those that come later fetch it from the others."""
    return client.scatter(data, broadcast=True, hash=False)


# ---------------------------------------------------------------------- on a worker

_idle: queue.SimpleQueue[Nest] = queue.SimpleQueue()
KEPT = 8  # files of data on a worker


def on_worker(task: dict[str, Any], data: bytes, name: str) -> Row:
    """Carries out one task, with a server of forks that is kept for the next one."""
    path = kept(data, name)
    try:
        nest = _idle.get_nowait()
    except queue.Empty:
        nest = Nest()
    row = nest.run(Task.from_dict(task), path)
    _idle.put(nest)
    return row


def kept(data: bytes, name: str) -> Path:
    """A file with the data, where the worker keeps its files, which Dask removes when it ends; only the latest few are kept."""
    from distributed import get_worker

    path = Path(get_worker().local_directory) / f"askwise-{name}"
    if path.exists():
        os.utime(path)
    else:
        write_whole(path, data)
    for old in sorted(path.parent.glob("askwise-*"), key=lambda p: p.stat().st_mtime)[:-KEPT]:
        old.unlink(missing_ok=True)
    return path
