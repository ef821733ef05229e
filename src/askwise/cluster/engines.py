"""The words that name where work runs, and what this machine offers. Needs no Dask."""

from __future__ import annotations

import os
import re

from askwise.errors import InputError

LOCAL, DASK = "local", "dask"
ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # set to 1 where processes share the cores


def checked(engine: str) -> str:
    """One of the words that name an engine."""
    if engine not in (LOCAL, DASK) and not re.fullmatch(r"dask://[^/\s]+:\d+", engine):
        raise InputError(
            f"the engine is {engine!r}; it must be 'local', 'dask' for a cluster on this machine, or dask://HOST:PORT"
        )
    return engine


def cores() -> int:
    """How many this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
