"""Where tasks run: in processes of this machine, or on a cluster. Both give rows as tasks end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from askwise.bench.execution import failed
from askwise.bench.fork_server import ForkServer
from askwise.bench.rows import Row
from askwise.bench.split_files import SplitFiles, key
from askwise.bench.task import Task
from askwise.cluster import LOCAL, RETRIES, connected
from askwise.files import temporary_folder


def rows_of(tasks: Sequence[Task], engine: str, processes: int) -> Iterator[Row]:
    """The row of each task, in the order in which they end."""
    with temporary_folder("askwise-tasks-") as folder:
        files = SplitFiles(tasks, folder)
        if engine == LOCAL:
            yield from on_this_machine(tasks, files, processes)
        else:
            with connected(engine, processes) as cluster:
                yield from on_cluster(cluster, tasks, files)


def on_this_machine(tasks: Sequence[Task], files: SplitFiles, processes: int) -> Iterator[Row]:
    """So many at a time, each in a process of its own."""
    todo, rows, servers = iter(tasks), queue.SimpleQueue[Row](), set[ForkServer]()
    lock, over = threading.Lock(), threading.Event()

    def work() -> None:
        server = None
        while not over.is_set():
            with lock:
                task = next(todo, None)
            if task is None:
                break
            try:
                path = files.of(task)
                if server is None:
                    server = ForkServer()
                    servers.add(server)
                row = server.run(task, path)
            except Exception as error:
                server = None if isinstance(error, RuntimeError) else server
                row = {**task.row, **failed(error)}
            files.done(task)
            rows.put(row)
        if server is not None:
            server.close()

    workers = [threading.Thread(target=work) for _ in range(min(processes, len(tasks)))]
    for worker in workers:
        worker.start()
    try:
        for _ in tasks:
            yield rows.get()
    finally:
        over.set()
        for server in list(servers):
            server.stop()
        for worker in workers:
            worker.join()


def on_cluster(cluster: Any, tasks: Sequence[Task], files: SplitFiles) -> Iterator[Row]:
    """The same on the workers of a cluster. There too each task has a process of its own: a crash spares the worker."""
    sent: dict[str, Any] = {}

    def submit(task: Task) -> Any:
        if key(task) not in sent:
            sent[key(task)] = cluster.send(files.of(task).read_bytes())
        return cluster.submit(on_worker, sent[key(task)], asdict(task), retries=RETRIES)

    for i, row in cluster.results(tasks, submit):
        task = tasks[i]
        yield {**task.row, **failed(row)} if isinstance(row, Exception) else row
        files.done(task)
        if not files.needed(task):  # workers may forget it
            sent.pop(key(task), None)


_idle: queue.SimpleQueue[ForkServer] = queue.SimpleQueue()  # of a worker: kept for its next tasks


def on_worker(path: Path, task: dict[str, Any]) -> Row:
    """Carries out one task whose data is in this file."""
    try:
        server = _idle.get_nowait()
    except queue.Empty:
        server = ForkServer()
    row = server.run(Task(**task), path)
    _idle.put(server)
    return row
