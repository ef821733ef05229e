"""Work on a Dask cluster, or in several processes of this machine. Dask is imported here and nowhere else, when it is needed."""

from __future__ import annotations

import logging
import os
import re
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from askwise.errors import InputError
from askwise.files import write_whole

LOCAL, DASK = "local", "dask"
ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # set to 1 where processes share the cores
RETRIES = 3  # of a job that could not be begun; Dask itself runs those of a worker that died again
AHEAD = 2  # jobs for each thread of the cluster that are handed over at a time
KEPT = 8  # files of data on a worker
PATIENCE = 30  # seconds to find a scheduler, and a worker
# A cluster on this machine shares its cores with the jobs: nobody looks at what it would watch of itself all the time. And its
# workers keep the memory that they free for the next arrays: giving it back each time, Dask's way, doubles the time of scoring.
QUICK = {
    "distributed.nanny.pre-spawn-environ": dict.fromkeys(ONE_THREAD, 1),
    "distributed.worker.profile.enabled": False,
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.admin.system-monitor.gil.enabled": False,
    "distributed.admin.tick.interval": "1s",
}


def checked(engine: Any) -> str:
    """One of the words that name an engine."""
    if not isinstance(engine, str) or not (engine in (LOCAL, DASK) or re.fullmatch(r"dask://[^/\s]+:\d+", engine)):
        raise InputError(
            f"the engine is {engine!r}; it must be 'local', 'dask' for a cluster on this machine, or dask://HOST:PORT"
        )
    return engine


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def connected(engine: str, processes: int) -> Iterator[Cluster]:
    """The cluster that the engine names; one that is started for it, with so many processes, ends with it."""
    try:
        import distributed
    except ImportError:
        raise InputError(f"the engine {engine!r} needs Dask; install 'askwise[bench]'") from None
    if engine == DASK:
        import dask

        quiet = {"dashboard_address": None, "silence_logs": logging.CRITICAL}
        with dask.config.set(QUICK):
            try:
                local = distributed.LocalCluster(n_workers=processes, threads_per_worker=1, processes=True, **quiet)
            except RuntimeError as error:
                guard = "a script that starts one needs `if __name__ == '__main__':` around what it does"
                raise InputError(f"the workers of a Dask cluster on this machine do not start ({error}); {guard}") from None
            with local, distributed.Client(local) as client:
                yield Cluster(client)
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
        yield Cluster(client)


class Cluster:
    """Takes data, which goes to each worker once, and functions; a job of a worker that dies runs elsewhere."""

    def __init__(self, client: Any) -> None:
        self.client = client

    def send(self, data: bytes) -> Any:
        """A handle of data that workers get when they need it, from each other once one has it. It goes out as a job: what is
        scattered is lost with the worker that has it, and `scatter` waits for ever for a worker that dies meanwhile."""
        import dask

        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1TB"}):  # it is meant
            return self.client.submit(_same, data, key=f"askwise-data-{uuid.uuid4().hex}", retries=RETRIES)

    @property
    def threads(self) -> int:
        """Jobs that run at a time."""
        return max(int(sum(self.client.nthreads().values())), 1)

    def submit(self, function: Callable[..., Any], sent: Any, *arguments: Any, retries: int = 0) -> Any:
        """A future of `function(path, *arguments)` on some worker, where the file of this path holds the data that was sent."""
        return self.client.submit(_call, function, sent, sent.key, arguments, pure=False, retries=retries)

    def results(self, jobs: Sequence[Any], submit: Callable[[Any], Any], span: int | None = None) -> Iterator[tuple[int, Any]]:
        """Number and result of each job, or the exception that it came to, in the order in which they end. `submit(job)` gives a
        future. A few are handed over at a time; with `span`, none that is so many rounds ahead of the first that runs."""
        from distributed import as_completed

        todo, running, ended = deque(range(len(jobs))), dict[Any, int](), as_completed()

        def ahead() -> int:
            """By how many the next job is ahead of the first that runs."""
            return todo[0] - min(running.values(), default=todo[0])

        while todo or running:
            most = AHEAD * self.threads
            while todo and len(running) < most and (span is None or ahead() < span * most):
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


def in_order(results: Iterable[tuple[int, Any]]) -> Iterator[tuple[int, Any]]:
    """Numbered results by their numbers: one that comes before its turn waits for it."""
    early: dict[int, Any] = {}
    turn = 0
    for i, result in results:
        early[i] = result
        while turn in early:
            yield turn, early.pop(turn)
            turn += 1


# ---------------------------------------------------------------------- on a worker


def _same(data: bytes) -> bytes:
    """A job whose result is data that other jobs need."""
    return data


def _call(function: Callable[..., Any], data: bytes, name: str, arguments: tuple[Any, ...]) -> Any:
    """Calls a function with a file of the data, and its other arguments. The file is where the worker keeps its files, which Dask
    removes when it ends; only the latest few are kept."""
    from distributed import get_worker

    path = Path(get_worker().local_directory) / f"askwise-{name}"
    if path.exists():
        os.utime(path)
    else:
        write_whole(path, data)
    most = max(KEPT, 2 * get_worker().state.nthreads)  # every thread may be about to read one
    for old in sorted(path.parent.glob("askwise-*"), key=lambda p: p.stat().st_mtime)[:-most]:
        old.unlink(missing_ok=True)
    return function(path, *arguments)
