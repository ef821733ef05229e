"""Writing files so that they are always whole, and never over what is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from askwise.errors import InputError


def check_out(out: Path, what: str, reads: Iterable[Path | None] = ()) -> None:
    """Before any work is done for it: a file to write has a folder, and is none of those that are read."""
    _check_place(out)
    if out.resolve() in [path.resolve() for path in reads if path is not None]:
        raise InputError(f"{what} cannot be written to {str(out)!r}: that is what is read; name another file")


def _check_place(out: Path) -> None:
    if out.is_dir() or not out.parent.is_dir():
        why = f"{str(out)!r} is a folder; name a file" if out.is_dir() else f"{str(out.parent)!r} is no folder"
        raise InputError(f"cannot write {str(out)!r}: {why}")


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A path to write to. The old file stays until the new one is complete on disk; a crash leaves one of the two, not a part."""
    _check_place(path)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        yield part
        with part.open("rb+") as file:
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def write_whole(path: Path, data: bytes) -> None:
    """All of a file at once."""
    with whole(path) as part:
        part.write_bytes(data)
