"""The data of a task as one file: the parts of a split, in safetensors, made once and sent to the processes that need them."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from fractions import Fraction
from pathlib import Path

import numpy as np

from askwise.bench import own_table
from askwise.bench.task import PARTS, Task
from askwise.core.arrays import Array
from askwise.core.costs import CostFunction
from askwise.core.problem import Problem, Schema
from askwise.core.sampling import some_rows
from askwise.files import write_whole
from askwise.tables.splits import Split

_ROWS = ("X", "y", "available", "known", "weight", "external")  # what a problem has for each row, ids apart
_COSTS = ("own", "setup", "member", "sources")


def key(task: Task) -> str:
    """The same for tasks that use the same data."""
    return json.dumps([task.data, task.source, task.seed, task.class_weight, task.most_rows], sort_keys=True)


def load(task: Task) -> Split:
    """The split of the task's seed, each part with at most so many rows, the same ones for all methods."""
    if task.source is None:
        from askwise.datasets.named import load as named

        parts = named(task.data, task.seed, task.class_weight)
    else:
        parts = own_table.load(Path(task.folder), task.source, task.seed, task.class_weight)
    problems = {name: getattr(parts, name) for name in PARTS}
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
    """The three parts share schema and losses."""
    from safetensors.numpy import save

    schema, costs = parts.train.schema, parts.train.schema.costs
    arrays = {f"{name}/{what}": getattr(getattr(parts, name), what) for name in PARTS for what in _ROWS}
    arrays |= {f"costs/{what}": getattr(costs, what) for what in _COSTS}
    arrays |= {"owner": schema.owner, "external_needs": schema.external_needs, "loss": parts.train.loss}
    classes = [label.item() if isinstance(label, np.generic) else label for label in schema.classes]
    facts = {"columns": schema.columns, "tests": schema.tests, "classes": classes, "unit": str(costs.smallest_unit)}
    return save({k: np.ascontiguousarray(v) for k, v in arrays.items() if v is not None}, {"facts": json.dumps(facts)})


def unpack(path: Path) -> Split:
    """What `pack` made, from a file."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        facts = json.loads(file.metadata()["facts"])
        arrays: dict[str, Array] = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    costs = CostFunction(smallest_unit=Fraction(facts["unit"]), **{what: arrays[f"costs/{what}"] for what in _COSTS})
    columns, tests, classes = (tuple(facts[what]) for what in ("columns", "tests", "classes"))
    schema = Schema(columns, tests, classes, arrays["owner"], costs, arrays.get("external_needs"))

    def part(name: str) -> Problem:
        rows = {what: arrays.get(f"{name}/{what}") for what in _ROWS}
        return Problem(schema=schema, loss=arrays["loss"], ids=None, **rows)  # type: ignore[arg-type]

    assert {f.name for f in fields(Problem)} == {"schema", "loss", "ids", *_ROWS}, "a problem has something that is not packed"
    return Split(*(part(name) for name in PARTS))
