"""Rows of results in a file that only grows: a run can be killed at any moment and goes on where it was."""

from __future__ import annotations

import json
import statistics
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import torch

Row = dict[str, Any]


def read(path: Path) -> list[Row]:
    """The rows so far; a last line cut short by a crash is passed over."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def spread(of: list[float], digits: int) -> str:
    """Mean and deviation, for a table."""
    return f"{statistics.mean(of):.{digits}f} ± {statistics.stdev(of):.{digits}f}" if len(of) > 1 else f"{of[0]:.{digits}f}"


def fill(path: Path, jobs: Iterable[Row], call: Callable[..., Row], processes: int) -> Iterator[Row]:
    """Runs the jobs that have no row yet, each `call(**job)`, in processes of one thread, and appends rows as they finish."""
    there = [{**row} for row in read(path)]
    todo = [job for job in jobs if not any(job.items() <= row.items() for row in there)]
    if path.exists() and not path.read_bytes().endswith(b"\n"):
        with path.open("a") as file:
            file.write("\n")
    with ProcessPoolExecutor(processes, initializer=torch.set_num_threads, initargs=(1,)) as pool:
        futures = {pool.submit(call, **job): job for job in todo}
        for future in as_completed(futures):
            row = {**futures[future], **future.result()}
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            yield row
