"""Files. One safetensors file holds arrays and, in its header, a JSON text; reading one never runs anything from it.

A model file (`.askwise`) is the weights of the policies on the frontier and a card: schema, prices, classes, budget, settings,
metrics, versions, fingerprint of the data. A state file is a training run, to be resumed.
"""

from __future__ import annotations

import json
import os
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
from numpy.typing import NDArray

from askwise.core.budget import Budget
from askwise.core.prices import Prices
from askwise.core.problem import Schema
from askwise.data.encode import Encoding
from askwise.errors import StateError
from askwise.model import Model, Point

STATE = "askwise-state-1"
MODEL = "askwise-model-1"
LARGEST = 2**31  # bytes; a model has some millions of numbers at most
WORD = {STATE: "a state of a training run", MODEL: "a model"}

Arrays = dict[str, NDArray[Any]]


def write_state(path: str | Path, arrays: Arrays, facts: dict[str, Any]) -> None:
    """Writes the state of a training run."""
    _write(path, STATE, arrays, facts)


def read_state(path: str | Path) -> tuple[Arrays, dict[str, Any]]:
    """What `write_state` wrote."""
    return _read(path, STATE)


def save(model: Model, path: str | Path) -> None:
    """Writes a model. An existing classifier and an encoder of your own stay with you; hand them to `load` again."""
    arrays = {
        f"point/{i}/{name}": value for i, point in enumerate(model.points) for name, value in (point.weights or {}).items()
    }  # fmt: skip
    schema, prices = model.schema, model.schema.prices
    arrays |= {
        "owner": schema.owner,
        "own": prices.own,
        "setup": prices.setup,
        "member": prices.member,
        "sources": prices.sources,
    }
    arrays["loss"] = model.loss
    if schema.external_needs is not None:
        arrays["external_needs"] = schema.external_needs
    card = {
        "columns": schema.columns,
        "tests": schema.tests,
        "classes": schema.classes,
        "class_type": np.asarray(schema.classes).dtype.str,
        "money": str(prices.unit),
        "encoding": model.encoding.to_dict(),
        "at_once": model.at_once,
        "points": [
            {"lam": p.lam, "cost": p.cost, "loss": p.loss, "accuracy": p.accuracy, "error": p.error} for p in model.points
        ],
        "trained_for": model.trained_for.to_dict(),
        "budget": model.budget.to_dict(),
        "known": model.known,
        "seed": model.seed,
        "unit": model.unit,
        "facts": model.facts,
        "own_encoder": model.encoder is not None,
    }
    _write(path, MODEL, arrays, card)


def load(path: str | Path, *, external: Any = None, network: Any = None) -> Model:
    """Reads a model. `external` and `network`: what it was fitted with, if it was."""
    arrays, card = _read(path, MODEL)
    try:
        return _model(arrays, card, external, network, str(path))
    except (KeyError, TypeError, ValueError, IndexError) as error:
        if isinstance(error, StateError):
            raise
        raise StateError(
            f"{str(path)!r} is damaged: its card does not fit its weights ({type(error).__name__}: {error})"
        ) from None


def _model(arrays: Arrays, card: dict[str, Any], external: Any, network: Any, path: str) -> Model:
    needs = arrays.get("external_needs")
    if (needs is not None) != (external is not None):
        raise StateError(f"{path!r} was fitted with{'' if needs is not None else 'out'} an existing classifier; "
                         f"{'hand it over as external=' if needs is not None else 'leave external= out'}")  # fmt: skip
    if card["own_encoder"] != (network is not None):
        raise StateError(f"{path!r} was fitted with{'' if card['own_encoder'] else 'out'} an encoder of its user's own; "
                         f"{'hand it over as network=' if card['own_encoder'] else 'leave network= out'}")  # fmt: skip
    prices = Prices(arrays["own"], arrays["setup"], arrays["member"], arrays["sources"], Fraction(card["money"]))
    classes = tuple(np.array(card["classes"], card["class_type"]).tolist())
    schema = Schema(tuple(card["columns"]), tuple(card["tests"]), classes, arrays["owner"], prices, needs)
    F, K, C = schema.n_tests, schema.n_classes, len(schema.columns)
    shapes = {"own": (F,), "member": (F, len(prices.setup)), "sources": (F, F), "owner": (C,), "loss": (K, K)}
    for name, shape in shapes.items():
        if arrays[name].shape != shape:
            raise StateError(f"{path!r} is damaged: {name!r} has shape {arrays[name].shape}, and should have {shape}")
    points = []
    for i, point in enumerate(card["points"]):
        prefix = f"point/{i}/"
        weights = {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        if (
            weights
            and network is None
            and (weights["encoder.0.weight"].shape[1] != C + F or weights["head.weight"].shape[0] != 1 + schema.n_actions)
        ):
            raise StateError(f"{path!r} is damaged: the network of point {i} does not fit its {F} tests and {K} classes")
        points.append(Point(**point, weights=weights or None))
    return Model(
        schema=schema,
        encoding=Encoding.from_dict(card["encoding"]),
        loss=arrays["loss"],
        at_once=tuple(card["at_once"]),
        points=tuple(points),
        trained_for=Budget.from_dict(card["trained_for"]),
        budget=Budget.from_dict(card["budget"]),
        known=tuple(card["known"]),
        seed=card["seed"],
        unit=card["unit"],
        facts=card["facts"],
        external=external,
        encoder=network,
    )


def _write(path: str | Path, kind: str, arrays: Arrays, facts: dict[str, Any]) -> None:
    """So that the file is always whole: the old one until the new one is complete on disk."""
    path = Path(path)
    whole = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    data = safetensors.numpy.save(whole, {"format": kind, "facts": json.dumps(facts)})
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


def _read(path: str | Path, kind: str) -> tuple[Arrays, dict[str, Any]]:
    if not Path(path).is_file():
        raise StateError(f"there is no file {str(path)!r}")
    if Path(path).stat().st_size > LARGEST:
        raise StateError(f"{str(path)!r} is larger than {LARGEST // 2**30} GiB, so it cannot be {WORD[kind]}")
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            meta = file.metadata() or {}
            found = str(meta.get("format"))
            if found != kind:
                newer = found.rpartition("-")[0] == kind.rpartition("-")[0]
                what = "was written by a newer version of askwise; update to read it" if newer else f"is not {WORD[kind]}"
                raise StateError(f"{str(path)!r} {what}")
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        facts = json.loads(meta["facts"])
    except (safetensors.SafetensorError, json.JSONDecodeError, KeyError, OSError) as error:
        raise StateError(f"{str(path)!r} cannot be read: it is cut short or damaged ({error})") from None
    return arrays, facts
