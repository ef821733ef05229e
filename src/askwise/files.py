"""Writing files so that they are always whole, and never over what is read.

A new file is written beside the old one, under a name of its own, and takes its place when it is complete. A symbolic link stays
what it is: the file that it leads to is replaced. What is no file on a disk (a device, a pipe, the standard output) is never
replaced: it gets the bytes once all of them are there.

Who writes holds a lock on the unfinished file. A process that is killed loses its locks, so what it left is recognised, and
removed by the next one that writes the same file, or that makes a temporary folder.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askwise.errors import InputError, WriteError

try:
    import fcntl
except ImportError:  # not on this system: there what was left stays
    fcntl = None  # type: ignore[assignment]

Array = NDArray[Any]
_BLOCK = 65_536  # rows that are copied at a time
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a disk, a quota, the largest file that is allowed
OPENED = ("/dev/fd/", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/proc/")  # what a process has open already, by name


def check_out(out: Path, what: str, reads: Iterable[Path | None] = (), *, through: bool = True) -> None:
    """Before any work is done for it: a file can be written here, and is none of those that are read.

    through: it may also be a device or a pipe.
    """
    if _place(out) is None and not through:
        raise InputError(f"{what} cannot be written to {str(out)!r}: that is a device or a pipe; name a file")
    if out.resolve() in [path.resolve() for path in reads if path is not None]:
        raise InputError(f"{what} cannot be written to {str(out)!r}: that file is also an input; name another file")


def is_special(path: Path) -> bool:
    """Whether this is a device, a pipe or the like, rather than a file that is there or could be."""
    return os.path.abspath(path).startswith(OPENED) or (path.exists() and not path.is_file() and not path.is_dir())


def _place(out: Path) -> Path | None:
    """The file that is to be written, links followed; None for what is written through."""
    try:
        if is_special(out):
            return None
    except OSError as error:
        raise InputError(f"cannot write {str(out)!r}: {_reason(error)}") from None
    real = Path(os.path.realpath(out))
    if out.is_dir() or not real.parent.is_dir():
        why = f"{str(out)!r} is a folder; name a file" if out.is_dir() else f"{str(real.parent)!r} is not a folder"
        raise InputError(f"cannot write {str(out)!r}: {why}")
    if real.is_symlink():
        raise InputError(f"cannot write {str(out)!r}: this link leads back to itself")
    for needed in (real.parent, real):
        if needed.exists() and not os.access(needed, os.W_OK):
            raise InputError(f"cannot write {str(out)!r}: you may not write to {str(needed)!r}")
    return real


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A path to write to. The old file stays until the new one is complete on disk; a crash leaves one of the two, not a part."""
    place = _place(path)
    if place is None:
        with temporary_folder("askwise-through-") as folder, named(path, folder / path.name):
            yield folder / path.name
            with (folder / path.name).open("rb") as source, path.open("wb") as to:
                shutil.copyfileobj(source, to)
        return
    remove_leftovers(place)
    part = place.with_name(f".{place.name}.{os.urandom(6).hex()}.part")
    with named(path, part):
        part.touch(exist_ok=False)
        with _locked(part), ExitStack() as stack:
            stack.callback(part.unlink, missing_ok=True)
            yield part
            with part.open("rb+") as file:
                os.fsync(file.fileno())
            if place.exists():
                part.chmod(stat.S_IMODE(place.stat().st_mode))  # who may read the old one may read the new one, and nobody else
            part.replace(place)


def write_whole(path: Path, data: bytes) -> None:
    """All of a file at once."""
    with whole(path) as part:
        part.write_bytes(data)


@contextmanager
def named(path: Path | str, *own: Path) -> Iterator[None]:
    """Says which file could not be written, and why. `own`: other names under which it is written."""
    try:
        yield
    except BrokenPipeError:  # who reads it has seen enough
        raise
    except OSError as error:
        names = [str(path), *map(str, own)]
        if isinstance(error, WriteError) or (error.errno not in FULL and str(error.filename) not in names):
            raise
        kept = "; the old file is as it was" if isinstance(path, Path) and path.is_file() and own else ""
        raise WriteError(f"cannot write {str(path)!r}: {_reason(error)}{kept}") from None


def _reason(error: OSError) -> str:
    words = {errno.ENOSPC: "the disk is full", errno.EDQUOT: "your share of the disk is used up"}
    return words.get(error.errno or 0) or (os.strerror(error.errno).lower() if error.errno else str(error))


# ---------------------------------------------------------------------- rows that need not be in memory


def beyond_memory(blocks: Iterable[Array]) -> Array:
    """The rows of all blocks, one after the other, in a file without a name: in memory is what was looked at, as long as there is
    room. Nothing is left of the file, however this process ends. What is written to the array stays there."""
    where, rows, block = tempfile.gettempdir(), 0, None
    with tempfile.TemporaryFile(prefix="askwise-", dir=where) as file:
        try:
            for block in blocks:
                file.write(np.ascontiguousarray(block).data)
                rows += len(block)
            file.flush()
        except OSError as error:
            if error.errno not in FULL:
                raise
            words = f"the disk of the folder {where!r}, where encoded rows are kept, is full"
            raise WriteError(f"{words}; name a folder with more room in the variable TMPDIR") from None
        assert block is not None
        return np.asarray(np.memmap(file, block.dtype, "r+", shape=(rows, *block.shape[1:])))


def copied(rows: Array) -> Array:
    """A copy; of rows that are beyond memory, one that is there too."""
    if not isinstance(rows.base, np.memmap):
        return rows.copy()
    return beyond_memory(rows[i : i + _BLOCK] for i in range(0, len(rows), _BLOCK))


# ---------------------------------------------------------------------- what killed processes leave


def remove_leftovers(path: Path) -> None:
    """Removes unfinished files of this name that no living process writes."""
    place = Path(os.path.realpath(path))
    unfinished = re.compile(re.escape(f".{place.name}.") + r"[0-9a-f]{12}\.part")
    with suppress(OSError):  # a folder that cannot be listed
        for part in [p for p in place.parent.iterdir() if unfinished.fullmatch(p.name)]:
            with _abandoned(part) as ours:
                if ours:
                    part.unlink(missing_ok=True)


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder that is there as long as this lasts. Those of this prefix that a killed process left are removed first."""
    for folder in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError), _abandoned(folder) as ours:
            if ours and folder.is_dir() and not folder.is_symlink() and folder.stat().st_uid == os.getuid():
                shutil.rmtree(folder, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as name, _locked(Path(name)):
        Path(name).mkdir(mode=0o700, exist_ok=True)  # somebody may have taken it for abandoned before it was locked
        yield Path(name)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """We hold the lock of a file or folder while this lasts, or until this process ends, however it does."""
    with ExitStack() as stack:
        if fcntl is not None:
            file = os.open(path, os.O_RDONLY)
            stack.callback(os.close, file)
            with suppress(OSError):  # a file system without locks: nobody will take it for abandoned there
                fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def _abandoned(path: Path) -> Iterator[bool]:
    """Whether nobody holds the lock of a file or folder; while this lasts we do."""
    ours = False
    with ExitStack() as stack:
        if fcntl is not None:
            with suppress(OSError):
                file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
                stack.callback(os.close, file)
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                ours = True
        yield ours
