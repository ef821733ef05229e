"""What a command writes beside its answer: warnings, once each; and what could not be written."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from askwise.errors import Doubt
from askwise.texts import printable


def drop(stream: Any) -> None:
    """Forgets what could not be written; Python would try it once more at its end, and complain."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Our own warnings, as one line and once each."""
    usual = warnings.showwarning
    shown: set[str] = set()  # Python forgets what it has shown whenever filters change, as in a fit

    def show(message: Warning | str, category: type[Warning], *more: Any) -> None:
        if issubclass(category, Doubt):
            if str(message) in shown:
                return
            shown.add(str(message))
            print(f"askwise: {printable(message)}", file=sys.stderr)
        else:
            usual(message, category, *more)

    with warnings.catch_warnings():
        warnings.simplefilter("default", Doubt)
        warnings.showwarning = show  # type: ignore[assignment]
        yield
