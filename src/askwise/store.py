"""Files. One safetensors file holds arrays and, in its header, a JSON text; reading one never runs anything from it."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from askwise.errors import StateError

FORMAT = "askwise-state-1"


def write_state(path: str | Path, arrays: dict[str, NDArray[Any]], facts: dict[str, Any]) -> None:
    """Writes a state so that the file is always whole: the old one until the new one is complete on disk."""
    path = Path(path)
    whole = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    data = safetensors.numpy.save(whole, {"format": FORMAT, "facts": json.dumps(facts)})
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def read_state(path: str | Path) -> tuple[dict[str, NDArray[Any]], dict[str, Any]]:
    """What `write_state` wrote."""
    if not Path(path).is_file():
        raise StateError(f"there is no file {str(path)!r}")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            meta = file.metadata() or {}
            if meta.get("format") != FORMAT:
                raise StateError(f"{str(path)!r} is not a state of a training run, or is of a newer version of askwise")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        facts = json.loads(meta["facts"])
    except (safetensors.SafetensorError, json.JSONDecodeError, KeyError) as error:
        raise StateError(f"{str(path)!r} cannot be read: it is cut short or damaged ({error})") from None
    return arrays, facts
