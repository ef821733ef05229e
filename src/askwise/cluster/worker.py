"""What runs on a worker. Workers need askwise, but nothing of where the work comes from."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from distributed import get_worker

from askwise.files import write_whole

KEPT = 8  # files of data on a worker


def same(data: bytes) -> bytes:
    """A job whose result is data that other jobs need."""
    return data


def call(function: Callable[..., Any], data: bytes, name: str, arguments: tuple[Any, ...]) -> Any:
    """Calls a function with the file of the data, and its other arguments."""
    return function(_file_of(data, name), *arguments)


def _file_of(data: bytes, name: str) -> Path:
    """A file with the data, where the worker keeps its files, which Dask removes when it ends; only the latest few are kept."""
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
