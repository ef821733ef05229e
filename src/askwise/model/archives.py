"""Files that hold arrays and a text: safetensors and, for NumPy alone, .npz. Reading one never runs anything from it.

Files come from anywhere. So no size in one is believed before it is compared with the size of the file itself, and whatever is
wrong is one sentence. A checksum over everything says that nothing was lost on the way; it does not say who wrote it.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from askwise.core.arrays import Array, Arrays
from askwise.errors import StateError
from askwise.files import whole

STATE = "askwise-state-3"
MODEL = "askwise-model-3"
WORD = {STATE: "a state of a training run", MODEL: "a model"}
INSTEAD = {STATE: "start the training again", MODEL: "fit again"}  # of using a file of an earlier version
LARGEST = 2**31  # bytes; a model has some millions of numbers at most
LONGEST = 2**24  # bytes of the text; read, it takes twenty times as much memory
META = "meta/"  # before the names of the texts in a .npz file
TEXTS = {"format", "facts", "sha256"}
CONTENTS = 2**20  # bytes of the table of contents of a .npz file: thousands of arrays


def write(path: str | Path, kind: str, arrays: Arrays, card: dict[str, Any], check: Callable[[Path], Any] | None = None) -> None:
    """Writes a safetensors file. `check` reads it again before it takes the place of an older one, and raises what is wrong."""
    _put(path, as_bytes(kind, arrays, card), check)


def as_bytes(kind: str, arrays: Arrays, card: dict[str, Any]) -> bytes:
    """A safetensors file."""
    import safetensors.numpy

    every = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    return bytes(safetensors.numpy.save(every, _texts(kind, every, card)))


def write_npz(path: str | Path, kind: str, arrays: Arrays, card: dict[str, Any], check: Callable[[Path], Any]) -> None:
    """The same in a file that NumPy can read alone."""
    data = io.BytesIO()
    words = {f"{META}{name}": np.frombuffer(value.encode(), np.uint8) for name, value in _texts(kind, arrays, card).items()}
    np.savez(data, **words, **arrays)  # type: ignore[arg-type]
    _put(path, data.getvalue(), check)


def _put(path: str | Path, data: bytes, check: Callable[[Path], Any] | None) -> None:
    with whole(Path(path)) as part:
        part.write_bytes(data)
        if check is not None:
            try:
                check(part)
            except StateError as error:
                why = str(error).replace(str(part), str(path))
                raise StateError(f"{str(path)!r} was not written, since it could not be read again: {why}") from None


def _texts(kind: str, arrays: Arrays, card: dict[str, Any]) -> dict[str, str]:
    text = json.dumps(card)
    return {"format": kind, "facts": text, "sha256": _digest(kind, arrays, text)}


def _digest(kind: str, arrays: Arrays, card: str) -> str:
    """Of everything in a file, so that no byte of it changes unnoticed."""
    digest = hashlib.sha256(f"{kind} {card}".encode())
    for name in sorted(arrays):
        value = arrays[name]
        digest.update(f"{name} {value.dtype.str} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def read(path: str | Path, kind: str) -> tuple[Arrays, dict[str, Any]]:
    """What `write` or `write_npz` wrote."""
    if not Path(path).is_file():
        raise StateError(f"there is no file {str(path)!r}")
    if Path(path).stat().st_size > LARGEST:
        raise StateError(f"{str(path)!r} is larger than {LARGEST // 2**30} GiB, so it cannot be {WORD[kind]}")
    if not _known(path):
        raise StateError(f"{str(path)!r} is not {WORD[kind]}; name a file that askwise has written")
    try:
        arrays, texts = _contents(path)
        written = str(texts.get("format"))
        if written != kind:
            raise StateError(f"{str(path)!r} {_why_not(written, kind)}")
        if texts["sha256"] != _digest(kind, arrays, texts["facts"]) or set(texts) != TEXTS:
            raise ValueError("its checksum is wrong")
        card = _parsed(texts["facts"])
    except StateError:
        raise
    except Exception as error:  # whatever a file may say, it is the file that is wrong
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise StateError(f"{str(path)!r} cannot be read: it is cut short or damaged ({reason:.200})") from None
    return arrays, card


def _why_not(written: str, kind: str) -> str:
    """Why a file of one format cannot be read as another."""
    (name, _, version), (right, _, number) = written.rpartition("-"), kind.rpartition("-")
    if name != right:
        return f"is not {WORD[kind]}"
    if version.isdecimal() and int(version) < int(number):
        return f"was written by an earlier version of askwise, which this one does not read; {INSTEAD[kind]}"
    return "was written by a newer version of askwise; update to read it"


def is_kind(path: str | Path, kind: str) -> bool:
    """Whether a file is a model or a state, be it of another version or with another checksum."""
    try:
        written = "" if Path(path).stat().st_size > LARGEST else str(_contents(path)[1].get("format"))
    except Exception:
        written = ""
    return written.rpartition("-")[0] == kind.rpartition("-")[0]


def _parsed(text: str) -> dict[str, Any]:
    """The card of a file."""
    if len(text) > LONGEST:
        raise ValueError(f"its description has {len(text)} characters; it may have {LONGEST}")
    card = json.loads(text, object_pairs_hook=_once)
    if not isinstance(card, dict):
        raise ValueError("its description has no names")
    return card


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A name that comes twice could mean two things."""
    by_name = dict(pairs)
    if len(by_name) < len(pairs):
        raise ValueError("its description has a name twice")
    return by_name


def _known(path: str | Path) -> bool:
    """Whether a file begins as those do that are read here: the length of a header and a bracket, or a zip file's letters."""
    with Path(path).open("rb") as file:
        first = file.read(9)
    return len(first) < 9 or first[8:] == b"{" or first[:2] == b"PK"


def _contents(path: str | Path) -> tuple[Arrays, dict[str, str]]:
    """The arrays and the texts of a file."""
    return (_unzip if zipfile.is_zipfile(path) else _open)(path)


def _open(path: str | Path) -> tuple[Arrays, dict[str, str]]:
    """Of a safetensors file. Its reader compares all sizes with that of the file before it allocates anything."""
    import safetensors  # here, since a .npz file does without it

    with safetensors.safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118


def _unzip(path: str | Path) -> tuple[Arrays, dict[str, str]]:
    """Of a .npz file. `numpy.savez` compresses nothing, so that what comes out is never larger than the file."""
    size = Path(path).stat().st_size
    with Path(path).open("rb") as file:
        _check_end(file, size)
        with zipfile.ZipFile(file) as parts:
            members = parts.infolist()
            if any(m.compress_type != zipfile.ZIP_STORED or m.flag_bits & 1 or m.file_size != m.compress_size for m in members):
                raise ValueError("a part of it is compressed or encrypted")
            if sum(m.file_size for m in members) > size:
                raise ValueError("its parts are larger than it is")
            if len({m.filename for m in members}) < len(members):
                raise ValueError("two of its parts have the same name")
            every = {m.filename.removesuffix(".npy"): _array(parts.read(m)) for m in members}
    texts = {name.removeprefix(META): every.pop(name).tobytes().decode() for name in list(every) if name.startswith(META)}
    return every, texts


def _check_end(file: BinaryIO, size: int) -> None:
    """The table of contents of a zip file stands before its last 22 bytes, which say how long it is. All of it is read at once,
    and a small file may have a large one."""
    file.seek(max(0, size - 42))
    end = file.read()
    if end[-22:-18] != b"PK\5\6" or end[:4] == b"PK\6\7" or int.from_bytes(end[-10:-6], "little") > CONTENTS:
        raise ValueError("its table of contents is too large, or not where it should be")


def _array(data: bytes) -> Array:
    """An array of plain numbers as NumPy writes it."""
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise ValueError("one of its arrays has an unknown format")
    shape, by_column, dtype = np.lib.format.read_array_header_1_0(file)
    if dtype.kind not in "biuf" or any(isinstance(n, bool) or not isinstance(n, int) or n < 0 for n in shape):
        raise ValueError(f"one of its arrays is {dtype} of shape {shape}")
    if math.prod(shape) * dtype.itemsize != len(data) - file.tell():
        raise ValueError(f"one of its arrays should have shape {shape}, but has another length")
    return np.frombuffer(data, dtype, offset=file.tell()).reshape(shape, order="F" if by_column else "C")
