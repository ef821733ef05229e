"""Rows of benchmarks that compare no methods and so are no plan for `askwise bench`; they can be killed and go on likewise."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch

from askwise.bench.rows import Row, append, read
from askwise.bench.tables import spread

__all__ = ["Row", "append", "fill", "read", "spread"]


def fill(path: Path, jobs: Iterable[Row], call: Callable[..., Row], processes: int) -> Iterator[Row]:
    """Runs the jobs that have no row yet, each `call(**job)`, in processes of one thread, and appends rows as they finish."""
    there = [{**row} for row in read(path)]
    todo = [job for job in jobs if not any(job.items() <= row.items() for row in there)]
    with ProcessPoolExecutor(processes, initializer=_begin) as pool:
        futures = {pool.submit(call, **job): job for job in todo}
        for future in as_completed(futures):
            row = {**futures[future], **future.result()}
            append(path, row)
            yield row


def _begin() -> None:
    """In each process. It ends with the one that would write its rows, which may be killed."""
    torch.set_num_threads(1)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
