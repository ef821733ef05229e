"""The work behind `askwise predict`. Parquet is scored part by part, here or on a Dask cluster, and decisions are written part by
part, so that a large table is never held as a whole."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from askwise.cli.fit import ids_of
from askwise.cluster import engines
from askwise.cluster.engines import LOCAL
from askwise.core.parameters import check_distinct
from askwise.errors import InputError, RowError
from askwise.facade import Model
from askwise.files import whole
from askwise.tables.external import Recorded
from askwise.tables.frames import read_table, rows_of, unreadable
from askwise.tables.reading import OPTIONS, RECOGNISED, Reading
from askwise.texts import cell, joined, split, unescaping

BATCH = 65_536  # rows that are decided at a time


@dataclass(frozen=True)
class Part:
    """A row group of a Parquet file."""

    file: str
    group: int
    first: int  # row of the file, counted from 0
    rows: int


def predict(
    model: Model, cases: Path, ids: str | None, out: Path | None, as_json: bool, engine: str, how: Reading = RECOGNISED
) -> None:
    """Decides for all cases and writes, or prints, the decisions in the order of the cases."""
    parts = parts_of(cases)
    if engine != LOCAL and parts is None:
        raise InputError(
            f"the engine {engine!r} is for Parquet, since that can be read in parts; {cases.name!r} is read here: "
            "leave --engine out, or save the cases as Parquet"
        )
    if parts is not None:
        how.refuse(OPTIONS, cases.name, "text and .xlsx files")
    if parts is None:
        with rows_of(cases, how):
            frames = iter([decided(model, read_table(cases, [*model.encoding.text, ids], how), ids)])
    elif engine == LOCAL:
        frames = (frame for part in parts for frame in scored(model, part, ids))
    else:
        frames = _on_cluster(model, parts, ids, engine)
    n, spent = 0, 0.0
    with _writer(out, as_json) as write:
        for frame in frames:
            write(frame)
            n, spent = n + len(frame), spent + float(frame["cost"].sum())
    if out is not None:
        print(f"{n} cases, mean cost {spent / n:.4g}: {out}", file=sys.stderr)


def decided(model: Model, table: Any, ids: str | None) -> Any:
    """A frame with a row for each case: its name, cost, prediction, probability and tests."""
    names = ids_of(table, ids)
    frame = model.acquire(table, ids=names).to_frame()
    if names is not None:
        if ids in frame:
            raise InputError(f"the column {ids!r} has the name of a column of the output; rename it")
        frame.insert(0, ids, names)
    return frame


# ---------------------------------------------------------------------- Parquet


def parts_of(cases: Path) -> list[Part] | None:
    """The row groups of a Parquet file, or of all those in a folder, by name; None for other tables."""
    if cases.is_dir():
        files = sorted(cases.glob("*.parquet"))
        if not files:
            raise InputError(f"there is no Parquet file in the folder {str(cases)!r}; name a file, or a folder of .parquet files")
    else:
        files = [cases] if cases.is_file() and cases.name.lower().endswith(".parquet") else []
    if not files:
        return None
    found: list[Part] = []
    for file in files:
        with _opened(file) as parquet:
            sizes = [parquet.metadata.row_group(i).num_rows for i in range(parquet.metadata.num_row_groups)]
        for i, rows in enumerate(sizes):
            if rows:
                found.append(Part(str(file.resolve()), i, sum(sizes[:i]), rows))
    if not found:
        raise InputError(f"the file {cases.name!r} has no rows")
    return found


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    """A Parquet file, whose errors are told in one sentence."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise InputError("reading Parquet needs pyarrow; install 'askwise[tables]'") from None
    try:
        # through a small buffer: otherwise a whole row group is read at once
        with parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False) as opened:
            yield opened
    except InputError:
        raise
    except Exception as error:
        raise unreadable(file, error) from None


def scored(model: Model, part: Part, ids: str | None) -> Iterator[Any]:
    """The decisions for a part, some rows at a time. Only columns that the model needs are read."""
    needed = [*model.encoding.columns, *([model.external.column] if isinstance(model.external, Recorded) else [])]
    needed += [ids] if ids is not None and ids not in needed else []
    first = part.first
    for frame in _frames(part, needed):
        try:
            yield decided(model, frame, ids)
        except RowError as error:
            raise error.at(f"row {first + error.row + 1} of {Path(part.file).name!r}") from None
        first += len(frame)


def _frames(part: Part, needed: list[str]) -> Iterator[Any]:
    """The rows of a part, some at a time. Only reading is done here, so that whatever goes wrong is the file's fault."""
    with _opened(Path(part.file)) as parquet:
        names = parquet.schema_arrow.names
        check_distinct(names, "column")
        # where one is missing, the whole table is looked at to say what was meant
        columns = needed if set(needed) <= set(names) else None
        for batch in parquet.iter_batches(BATCH, row_groups=[part.group], columns=columns, use_threads=False):
            yield batch.to_pandas().reset_index(drop=True)


# ---------------------------------------------------------------------- Dask


def _on_cluster(model: Model, parts: list[Part], ids: str | None, engine: str) -> Iterator[Any]:
    """The decisions of all parts in their order. The model is sent once; workers read the file themselves."""
    from askwise.cluster.client import connected
    from askwise.model.file import as_bytes

    with connected(engines.checked(engine), engines.cores()) as cluster:
        sent = cluster.send(as_bytes(model))

        def submit(part: Part) -> Any:
            return cluster.submit(score_on_worker, sent, asdict(part), ids)

        early: dict[int, bytes | Exception] = {}  # those that came before their turn
        turn = 0
        for i, result in cluster.results(parts, submit, span=2):
            early[i] = result
            while turn in early:
                now = early.pop(turn)
                turn += 1
                if isinstance(now, Exception):
                    raise (
                        now
                        if isinstance(now, InputError)
                        else InputError(
                            f"part {turn} of {len(parts)} could not be scored on the cluster: {type(now).__name__}: {now}"
                        )
                    )
                yield _frame(now)


def score_on_worker(model: Path, part: dict[str, Any], ids: str | None) -> bytes:
    """The decisions for one part, as a Parquet file: tests are joined by ;"""
    import pandas

    if not Path(part["file"]).is_file():
        raise InputError(f"a worker finds no file {part['file']!r}; it must be where all workers can read it")
    frame = pandas.concat([_joined(frame) for frame in scored(_loaded(model), Part(**part), ids)], ignore_index=True)
    return bytes(frame.to_parquet(index=False))


@lru_cache(maxsize=2)
def _loaded(path: Path) -> Model:
    from askwise.facade import load

    return load(path)


def _frame(data: bytes) -> Any:
    import pandas

    frame = pandas.read_parquet(io.BytesIO(data))
    frame["tests"] = [tuple(split(tests)) for tests in frame["tests"]]
    return frame


def _joined(frame: Any) -> Any:
    return frame.assign(tests=[joined(tests) for tests in frame["tests"]])


def _cells(frame: Any) -> Any:
    """What a spreadsheet may open: words that look like formulas are marked, each test's name on its own."""
    safe = frame.assign(tests=[joined(map(cell, tests)) for tests in frame["tests"]])
    for name in safe.columns:
        if safe[name].dtype.kind not in "biuf":
            safe[name] = [cell(value) if isinstance(value, str) else value for value in safe[name]]
    return safe.rename(columns=cell)


# ---------------------------------------------------------------------- output

Write = Callable[[Any], None]


@contextmanager
def _writer(out: Path | None, as_json: bool) -> Iterator[Write]:
    """Takes frames one after the other. A file is there when all of them are written, and not before."""
    if out is None:
        shown = sys.stdout if sys.stdout.isatty() and not as_json else unescaping(sys.stdout)
        with _text(shown, as_json) as write:
            yield write
        return
    with whole(out) as path:
        if out.name.lower().endswith(".parquet") and not as_json:
            with _parquet(path) as write:
                yield write
        else:
            with path.open("w", encoding="utf-8", newline="") as file, _text(file, as_json) as write:
                yield write


@contextmanager
def _text(file: Any, as_json: bool) -> Iterator[Write]:
    first = True

    def write(frame: Any) -> None:
        nonlocal first
        if as_json:
            lines = json.dumps(frame.to_dict(orient="records"), default=str)
            file.write(("[" if first else ", ") + lines[1:-1])
        else:
            file.write(_cells(frame).to_csv(index=False, header=first, lineterminator="\n"))
        first = False

    yield write
    if as_json:
        file.write("]\n")


@contextmanager
def _parquet(path: Path) -> Iterator[Write]:
    import pyarrow
    from pyarrow import parquet

    writer: Any = None

    def write(frame: Any) -> None:
        nonlocal writer
        table = pyarrow.Table.from_pandas(_joined(frame), preserve_index=False, schema=writer.schema if writer else None)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)

    try:
        yield write
    finally:
        if writer is not None:
            writer.close()
