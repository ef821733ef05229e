"""Parquet files, of which a part is read: some rows at a time, or one column. pyarrow is imported only where a file is read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from askwise.core.parameters import check_distinct
from askwise.errors import InputError
from askwise.tables.reading import unreadable

BATCH = 65_536  # rows that are read at a time


@contextmanager
def opened(file: Path) -> Iterator[Any]:
    """A Parquet file, whose errors are told in one sentence."""
    try:
        from pyarrow import parquet
    except ImportError:
        raise InputError("reading Parquet needs pyarrow; install 'askwise[tables]'") from None
    try:
        # through a small buffer: otherwise a whole row group is read at once
        with parquet.ParquetFile(file, buffer_size=1 << 20, pre_buffer=False) as whole:
            yield whole
    except InputError:
        raise
    except Exception as error:
        raise unreadable(file, error) from None


def shape_of(file: Path) -> tuple[int, int]:
    """How many rows and columns there are."""
    with opened(file) as parquet:
        return parquet.metadata.num_rows, parquet.metadata.num_columns


def column(file: Path, name: str) -> Any:
    """One column, as a pandas Series."""
    with opened(file) as parquet:
        return parquet.read(columns=[name], use_threads=False).to_pandas()[name].reset_index(drop=True)


def frames(file: Path, needed: Sequence[str], groups: Sequence[int] | None = None) -> Iterator[Any]:
    """The rows of a file, or of some of its row groups, some at a time. Only reading is done here, so that whatever goes wrong is
    the file's fault."""
    with opened(file) as parquet:
        names = parquet.schema_arrow.names
        check_distinct(names, "column")
        # where one is missing, the whole table is looked at to say what was meant
        columns = list(needed) if set(needed) <= set(names) else None
        for batch in parquet.iter_batches(BATCH, row_groups=groups, columns=columns, use_threads=False):
            yield batch.to_pandas().reset_index(drop=True)
