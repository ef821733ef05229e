"""The data of a task as one file: the parts of a split, in safetensors, made once and sent to the processes that need them."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from askwise.bench import own_table
from askwise.bench.task import PARTS, Task
from askwise.components.packing import from_file, packed, to_bytes, unpacked
from askwise.core.sampling import some_rows
from askwise.files import write_whole
from askwise.tables.splits import Split


def key(task: Task) -> str:
    """The same for tasks that use the same data."""
    return json.dumps([task.data, task.source, task.seed, task.class_weight, task.rule, task.most_rows], sort_keys=True)


def load(task: Task) -> Split:
    """The split of the task's seed, each part with at most so many rows, the same ones for all methods."""
    if task.source is None:
        from askwise.datasets.named import load as named

        parts = named(task.data, task.seed, task.class_weight)
    else:
        parts = own_table.load(Path(task.folder), task.source, task.seed, task.class_weight)
    problems = {name: replace(getattr(parts, name), rule=task.rule) for name in PARTS}
    return Split(*(part.take(some_rows(len(part), task.most_rows[name], 0)) for name, part in problems.items()))


class SplitFiles:
    """The data of tasks, each made once, in files that are there as long as a task needs them."""

    def __init__(self, tasks: Sequence[Task], folder: Path) -> None:
        self._left = Counter(key(task) for task in tasks)
        self._results: dict[str, Path | Exception] = {}
        self._lock, self._folder = threading.Lock(), folder

    def of(self, task: Task) -> Path:
        """The file; the error if there was one, for every task that needs it."""
        with self._lock:
            if key(task) not in self._results:
                try:
                    path = self._folder / f"{len(self._results)}.safetensors"
                    write_whole(path, pack(load(task)))
                    self._results[key(task)] = path
                except Exception as error:  # tasks on other data go on
                    self._results[key(task)] = error
            result = self._results[key(task)]
        if isinstance(result, Exception):
            raise result
        return result

    def done(self, task: Task) -> None:
        """One task less needs it."""
        with self._lock:
            self._left[key(task)] -= 1
            result = self._results.get(key(task))
            if not self.needed(task) and isinstance(result, Path):
                result.unlink(missing_ok=True)

    def needed(self, task: Task) -> bool:
        """Whether a task that is not done yet uses the same data."""
        return self._left[key(task)] > 0


def pack(parts: Split) -> bytes:
    """The three parts, which share schema and losses."""
    return to_bytes(*packed({name: getattr(parts, name) for name in PARTS}))


def unpack(path: Path) -> Split:
    """What `pack` made, from a file."""
    return Split(**unpacked(*from_file(path)))
