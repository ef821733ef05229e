"""Rows of benchmarks that compare no methods and so are no plan for `askwise bench`; they can be killed and go on likewise."""

from __future__ import annotations

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
    with ProcessPoolExecutor(processes, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        futures = {pool.submit(call, **job): job for job in todo}
        for future in as_completed(futures):
            row = {**futures[future], **future.result()}
            append(path, row)
            yield row
