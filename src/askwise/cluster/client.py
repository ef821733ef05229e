"""Dask: tasks on an existing cluster, or on one of this machine. Workers need askwise; the data goes to each of them once.

A task of a worker that dies is run again elsewhere. It is run in a process of its own there too (see nest.py), so that memory is
the task's own and a crash does not take the worker with it.
"""

from __future__ import annotations

import logging
import os
import queue
import uuid
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from askwise.bench import split_files
from askwise.bench.engine import DASK, Parcels
from askwise.bench.fork_server import ONE_THREAD, ForkServer
from askwise.bench.plan import Task
from askwise.bench.task import failed
from askwise.errors import InputError
from askwise.files import write_whole

Row = dict[str, Any]

RETRIES = 3  # of a task that could not be begun; Dask itself runs those of a worker that died again
AHEAD = 2  # tasks for each thread of the cluster that are handed over at a time
PATIENCE = 30  # seconds to find a scheduler, and a worker
# A cluster on this machine shares its cores with the tasks: nobody looks at what it would watch of itself all the time. And its
# workers keep the memory that they free for the next arrays: giving it back each time, Dask's way, doubles the time of scoring.
QUICK = {
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(ONE_THREAD, 1),
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "1s",
}


@contextmanager
def client_of(engine: str, processes: int) -> Iterator[Any]:
    """A client of the cluster that the engine names; a cluster that is made for it ends with it."""
    try:
        import distributed
    except ImportError:
        raise InputError(f"the engine {engine!r} needs Dask; install 'askwise[bench]'") from None
    if engine == DASK:
        import dask

        quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
        with (
            dask.config.set(QUICK),
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

    `submit(job)` gives a future. A few jobs are handed over at a time; with `span`, none that is so many rounds ahead of the
    first one that has not ended.
    """
    from distributed import as_completed

    todo, running, ended = deque(range(len(jobs))), dict[Any, int](), as_completed()
    while todo or running:
        most = AHEAD * max(sum(client.nthreads().values()), 1)
        while todo and len(running) < most and (span is None or todo[0] - min(running.values(), default=todo[0]) < span * most):
            i = todo.popleft()
            try:
                future = submit(jobs[i])
            except Exception as error:
                yield i, error
                continue
            running[future] = i
            ended.add(future)
        if running:
            future = next(ended)
            i = running.pop(future)
            try:
                result = future.result()
            except Exception as error:
                result = error
            yield i, result


def on_cluster(client: Any, tasks: Sequence[Task], data: Parcels) -> Iterator[Row]:
    """The row of each task, in the order in which they end."""
    sent: dict[str, Any] = {}

    def submit(task: Task) -> Any:
        key = split_files.key(task)
        if key not in sent:
            sent[key] = send(client, data.of(task).read_bytes())
        return client.submit(on_worker, task.to_dict(), sent[key], sent[key].key, pure=False, retries=RETRIES)

    for i, row in completed(client, tasks, submit):
        task = tasks[i]
        yield {**task.told, **failed(row)} if isinstance(row, Exception) else row
        data.done(task)
        if not data.left[split_files.key(task)]:  # workers may forget it
            sent.pop(split_files.key(task), None)


def send(client: Any, data: bytes) -> Any:
    """Data that workers get when they need it, from each other once one has it. It goes out as a task, not by `scatter`: what is
    scattered is lost with the worker that has it, and scattering waits for ever for a worker that dies meanwhile."""
    import dask

    with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # it is meant
        return client.submit(_same, data, key=f"askwise-data-{uuid.uuid4().hex}", retries=RETRIES)


# ---------------------------------------------------------------------- on a worker

_idle: queue.SimpleQueue[ForkServer] = queue.SimpleQueue()
KEPT = 8  # files of data on a worker


def _same(data: bytes) -> bytes:
    return data


def on_worker(task: dict[str, Any], data: bytes, name: str) -> Row:
    """Carries out one task, with a server of forks that is kept for the next one."""
    path = kept(data, name)
    try:
        nest = _idle.get_nowait()
    except queue.Empty:
        nest = ForkServer()
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
    # every thread may be about to read one
    most = max(KEPT, 2 * get_worker().state.nthreads)
    for old in sorted(path.parent.glob("askwise-*"), key=lambda p: p.stat().st_mtime)[:-most]:
        old.unlink(missing_ok=True)
    return path
