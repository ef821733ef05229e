"""Decisions for a table. Parquet is scored part by part, here or on a cluster, so that a large table is never held as a whole."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from askwise import cluster
from askwise.cli.options import ids_of
from askwise.errors import InputError, RowError
from askwise.facade import Model, load
from askwise.model.file import as_bytes
from askwise.tables.external import Recorded
from askwise.tables.parquet import frames, opened
from askwise.tables.read_options import OPTIONS, ReadOptions
from askwise.tables.reading import errors_name_lines, read_table
from askwise.texts import joined, split


@dataclass(frozen=True)
class Part:
    """A row group of a Parquet file."""

    file: str
    group: int
    first: int  # row of the file, counted from 0


def decisions(model: Model, cases: Path, ids: str | None, engine: str, read_options: ReadOptions) -> Iterator[Any]:
    """Frames with the decisions for all cases, in their order."""
    parts = parts_of(cases)
    if parts is None:
        if engine != cluster.LOCAL:
            raise InputError(
                f"the engine {engine!r} is for Parquet, since that can be read in parts; {cases.name!r} is read here: "
                "leave --engine out, or save the cases as Parquet"
            )
        with errors_name_lines(cases, read_options):
            return iter([decided(model, read_table(cases, [*model.encoding.text, ids], read_options), ids)])
    read_options.refuse(OPTIONS, cases.name, "text and .xlsx files")
    if engine == cluster.LOCAL:
        return (frame for part in parts for frame in scored(model, part, ids))
    return _on_cluster(model, parts, ids, engine)


def decided(model: Model, table: Any, ids: str | None) -> Any:
    """A frame with a row for each case: its name, cost, prediction, probability and tests."""
    names = ids_of(table, ids)
    frame = model.acquire(table, ids=names).to_frame()
    if names is not None:
        if ids in frame:
            raise InputError(f"the column {ids!r} has the name of a column of the output; rename it")
        frame.insert(0, ids, names)
    return frame


def parts_of(cases: Path) -> list[Part] | None:
    """The row groups of a Parquet file, or of all those in a folder, by name; None for other tables."""
    if cases.is_dir():
        files = sorted(cases.glob("*.parquet"))
        if not files:
            raise InputError(f"there is no Parquet file in the folder {str(cases)!r}; name a file, or a folder of .parquet files")
    elif cases.is_file() and cases.name.lower().endswith(".parquet"):
        files = [cases]
    else:
        return None
    parts: list[Part] = []
    for file in files:
        with opened(file) as parquet:
            sizes = [parquet.metadata.row_group(i).num_rows for i in range(parquet.metadata.num_row_groups)]
        parts += [Part(str(file.resolve()), i, sum(sizes[:i])) for i, rows in enumerate(sizes) if rows]
    if not parts:
        raise InputError(f"the file {cases.name!r} has no rows")
    return parts


def scored(model: Model, part: Part, ids: str | None) -> Iterator[Any]:
    """The decisions for a part, some rows at a time. Only columns that the model needs are read."""
    needed = [*model.encoding.columns, *([model.external.column] if isinstance(model.external, Recorded) else [])]
    needed += [ids] if ids is not None and ids not in needed else []
    first = part.first
    for frame in frames(Path(part.file), needed, [part.group]):
        try:
            yield decided(model, frame, ids)
        except RowError as error:
            raise error.at(f"row {first + error.row + 1} of {Path(part.file).name!r}") from None
        first += len(frame)


def _on_cluster(model: Model, parts: list[Part], ids: str | None, engine: str) -> Iterator[Any]:
    """The decisions of all parts in their order. The model is sent once; workers read the file themselves."""
    import pandas

    with cluster.connected(cluster.checked(engine), cluster.cores()) as workers:
        sent = workers.send(as_bytes(model))

        def submit(part: Part) -> Any:
            return workers.submit(score_on_worker, sent, asdict(part), ids)

        for i, result in cluster.in_order(workers.results(parts, submit, span=2)):
            if isinstance(result, InputError):
                raise result
            if isinstance(result, Exception):
                failure = f"{type(result).__name__}: {result}"
                raise InputError(f"part {i + 1} of {len(parts)} could not be scored on the cluster: {failure}")
            frame = pandas.read_parquet(io.BytesIO(result))
            yield frame.assign(tests=[tuple(split(tests)) for tests in frame["tests"]])


def score_on_worker(model: Path, part: dict[str, Any], ids: str | None) -> bytes:
    """The decisions for one part, as a Parquet file."""
    import pandas

    if not Path(part["file"]).is_file():
        raise InputError(f"a worker finds no file {part['file']!r}; it must be where all workers can read it")
    frames = [joined_tests(frame) for frame in scored(_loaded(model), Part(**part), ids)]
    return bytes(pandas.concat(frames, ignore_index=True).to_parquet(index=False))


def joined_tests(frame: Any) -> Any:
    """Each tuple of tests as one text, separated by ;"""
    return frame.assign(tests=[joined(tests) for tests in frame["tests"]])


@lru_cache(maxsize=2)
def _loaded(path: Path) -> Model:
    return load(path)
