"""Rows of benchmarks that compare no methods and so are no plan for `askwise bench`; they can be killed and go on likewise."""

from __future__ import annotations

import multiprocessing
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path

import torch

from askwise.bench.rows import Row, append, read
from askwise.bench.tables import spread
from benchmarks.script import arguments

__all__ = ["Row", "append", "fill", "fill_and_write", "read", "spread"]


def fill_and_write(
    words: str | None,
    out: Path,
    data: Sequence[str],
    repeated: tuple[str, int],
    call: Callable[..., Row],
    text: Callable[[list[Row]], str],
    shown: Callable[[Row], str],
) -> None:
    """A whole benchmark: reads its options, fills in the rows of each data set and each repetition, shows them as they come, and
    writes the table of all rows beside them. repeated: what is repeated, such as `seed`, and how often unless said otherwise."""
    what, times = repeated
    parser = arguments(words)
    parser.add_argument("--data", nargs="+", choices=[*data], default=[*data])
    parser.add_argument(f"--{what}s", dest="times", type=int, default=times)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=Path, default=out)
    options = parser.parse_args()
    jobs = [{"data": name, what: i} for i in range(options.times) for name in options.data]
    for row in fill(options.out, jobs, call, options.processes):
        print(row["data"], row[what], shown(row), flush=True)
    options.out.with_suffix(".md").write_text(text(read(options.out)))


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
