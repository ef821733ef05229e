"""Files. One safetensors file holds arrays and, in its header, a JSON text; reading one never runs anything from it.

A model file (`.askwise`) is the weights of the policies on the frontier and a card: schema, prices, classes, budget, settings,
metrics, versions, fingerprint of the data. A state file is a training run, to be resumed.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import zipfile
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from askwise.core.budget import Budget
from askwise.core.episode import Cases
from askwise.core.family_scale import Scale, list_prices
from askwise.core.family_values import Family
from askwise.core.forecast import as_judged
from askwise.core.measures import Measure
from askwise.core.prices import COUNTED, Prices, _circle
from askwise.core.problem import Problem, Schema
from askwise.data.encode import Encoding
from askwise.data.external import Recorded
from askwise.errors import StateError
from askwise.files import write_whole
from askwise.frontier import Point
from askwise.model import Model
from askwise.usage import fits

STATE = "askwise-state-1"
MODEL = "askwise-model-1"
LARGEST = 2**31  # bytes; a model has some millions of numbers at most
META = "meta/"  # before the names of what is said in a .npz file
BROKEN = (ValueError, TypeError, KeyError, RecursionError, OSError, EOFError, zipfile.BadZipFile)  # of files that are not whole
WORD = {STATE: "a state of a training run", MODEL: "a model"}

Arrays = dict[str, NDArray[Any]]


def write_state(path: str | Path, arrays: Arrays, facts: dict[str, Any]) -> None:
    """Writes the state of a training run."""
    _write(path, STATE, arrays, facts)


def read_state(path: str | Path) -> tuple[Arrays, dict[str, Any]]:
    """What `write_state` wrote."""
    return _read(path, STATE)


def save(model: Model, path: str | Path) -> None:
    """Writes a model. A fitted existing classifier and an encoder of your own stay with you; hand them to `load` again."""
    _write(path, MODEL, *_packed(model))


def save_npz(model: Model, path: str | Path) -> None:
    """The same in a file that NumPy can read alone."""
    arrays, card = _packed(model)
    text, data = json.dumps(card), io.BytesIO()
    said = {"format": MODEL, "facts": text, "sha256": _digest(MODEL, arrays, text)}
    words = {f"{META}{name}": np.frombuffer(value.encode(), np.uint8) for name, value in said.items()}
    np.savez(data, **words, **arrays)  # type: ignore[arg-type]
    write_whole(Path(path), data.getvalue())


def _packed(model: Model) -> tuple[Arrays, dict[str, Any]]:
    """A model as arrays and a card."""
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
    if model.family is not None:
        arrays |= {f"family/{name}": value for name, value in model.family.weights.items()}
        arrays["rank"] = model.family.rank
    card = {
        "columns": schema.columns,
        "tests": schema.tests,
        "classes": schema.classes,
        "class_type": np.asarray(schema.classes).dtype.str,
        "money": str(prices.unit),
        "encoding": model.encoding.to_dict(),
        "at_once": model.at_once,
        "points": [_told(p) for p in model.points],
        "scale": None if model.family is None else model.family.scale.to_dict(),
        "trained_for": model.trained_for.to_dict(),
        "budget": model.budget.to_dict(),
        "known": model.known,
        "seed": model.seed,
        "unit": model.unit,
        "facts": model.facts,
        "own_encoder": model.encoder is not None,
        "recorded": model.external.column if isinstance(model.external, Recorded) else None,
    }
    return arrays, card


def _told(point: Point) -> dict[str, Any]:
    return {**point.shown, "prefix": point.prefix, "cap": point.cap}


def _point(told: dict[str, Any], weights: Arrays | None = None, cap: int | None = None) -> Point:
    """The inverse of `_told`, also for what earlier versions told."""
    return Point(told["lam"], Measure.from_dict(told), weights, told.get("prefix"), told.get("cap", cap))


def load(path: str | Path, *, external: Any = None, network: Any = None) -> Model:
    """Reads a model. `external` and `network`: what it was fitted with, if it was; recorded answers are known already."""
    arrays, card = _read(path, MODEL)
    try:
        with np.errstate(all="raise"):
            model = _model(arrays, card, external, network, str(path))
            _rehearse(model)
        return model
    except StateError as error:
        raise (error if str(path) in str(error) else StateError(f"{str(path)!r} is damaged: {error}")) from None
    except Exception as error:  # whatever a file may say, it is the file that is wrong
        reason = (str(error).splitlines() or [""])[0]
        raise StateError(f"{str(path)!r} is damaged: it does not hold together ({type(error).__name__}: {reason})") from None


def _rehearse(model: Model) -> None:
    """Uses every part of a model once, on a case that knows nothing and on one that knows everything."""
    schema, prices = model.schema, model.schema.prices
    _must(all(isinstance(name, str) for name in (*schema.columns, *schema.tests, *model.known, model.unit)), "names are words")
    _must(len(set(schema.tests)) == schema.n_tests and len(set(schema.classes)) == schema.n_classes > 1, "names differ")
    _must(model.encoding.engine_columns == list(schema.columns), "the encoding has the columns of the network")
    _must(set(model.known) <= set(schema.tests), "what is known is a test")
    _must(set(schema.owner.tolist()) == set(range(schema.n_tests)), "each test reveals a column")
    _must(prices.unit > 0 and prices.unit.denominator < COUNTED and prices.unit.numerator == 1, "money is counted in units")
    _must(min(prices.own.min(), prices.setup.min(initial=0)) >= 0 and 0 <= prices.total < COUNTED, "prices are 0 or more")
    _must(_circle(prices.sources) is None, "no test is computed from itself")
    _must(bool(np.isfinite(model.loss).all() and (model.loss >= 0).all() and model.loss.any()), "losses are 0 or more")
    _must(isinstance(model.seed, int) and not isinstance(model.seed, bool), "the seed is a whole number")
    _must(len(model.at_once) == schema.n_classes and _numbers(model.at_once), "the values of the classes are numbers")
    _must(isinstance(model.facts, dict) and {"seconds", "stopped", "config"} <= set(model.facts), "the facts are told")
    _must(_numbers([model.facts["stake"]]) and model.stake > 0, "something is at stake")
    _must(fits(model), "what is bought is told in shares")
    first, costs = model.points[0], [p.cost for p in model.points]
    _must(
        _numbers(
            x
            for p in model.points
            for name, x in (*p.shown.items(), ("prefix", p.prefix), ("cap", p.cap))
            if x is not None or name in ("lam", "cost", "loss", "accuracy")
        ),
        "points are numbers",
    )
    _must(all(type(x) in (int, type(None)) for p in model.points for x in (p.found.n, p.prefix, p.cap)), "points are counted")
    _must(first.weights is None and first.cost == 0 and costs == sorted(costs), "the points rise from deciding at once")
    everything = np.stack([np.zeros(schema.n_tests, bool), np.ones(schema.n_tests, bool)])
    problem = Problem(schema, np.zeros((2, len(schema.columns)), np.float32), None, None, everything, model.loss, None,
                      None if schema.external_needs is None else np.zeros(2, np.int64), None)  # fmt: skip
    state = Cases.start(problem, np.arange(2), model.cap).observe()
    shared = None if model.family is None else model.family.weights
    # points of a family that differ only in their limits are the same network
    different = model.points[1:] if shared is None else {(p.lam, p.prefix): p for p in model.points}.values()
    for point in different:
        for values in (shared or point.weights or {}).values():
            _must(values.dtype.kind in "fiu" and bool(np.isfinite(values).all()), "weights are numbers")
        q = model.arm(point).values(state)
        _must(q.shape == state.legal.shape and bool(np.isfinite(q).all()), "the networks fit the tests and classes")
    model.belief(problem, model.rollout(problem))


def _numbers(values: Any) -> bool:
    return all(isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v) for v in values)


def _must(holds: bool, words: str) -> None:
    if not holds:
        raise StateError(f"it is not so that {words}")


def _model(arrays: Arrays, card: dict[str, Any], external: Any, network: Any, path: str) -> Model:
    needs, tests = arrays.get("external_needs"), tuple(card["tests"])
    recorded = card.get("recorded")  # the column of an existing classifier's answers
    if recorded is not None:
        _must(isinstance(recorded, str) and needs is not None, "recorded answers have a column, and need some tests")
        if external is not None:
            raise StateError(f"{path!r} takes the answers of an existing classifier from the column {recorded!r}; "
                             "leave external= out")  # fmt: skip
        external = Recorded(recorded, [t for t, has in zip(tests, needs, strict=True) if has])  # type: ignore[arg-type]
    if (needs is not None) != (external is not None):
        raise StateError(f"{path!r} was fitted with{'' if needs is not None else 'out'} an existing classifier; "
                         f"{'hand it over as external=' if needs is not None else 'leave external= out'}")  # fmt: skip
    if card["own_encoder"] != (network is not None):
        raise StateError(f"{path!r} was fitted with{'' if card['own_encoder'] else 'out'} an encoder of its user's own; "
                         f"{'hand it over as network=' if card['own_encoder'] else 'leave network= out'}")  # fmt: skip
    prices = Prices(arrays["own"], arrays["setup"], arrays["member"], arrays["sources"], _fraction(card["money"]))
    classes = tuple(np.array(card["classes"], card["class_type"]).tolist())
    schema = Schema(tuple(card["columns"]), tests, classes, arrays["owner"], prices, needs)
    F, K, C = schema.n_tests, schema.n_classes, len(schema.columns)
    shapes = {"own": (F,), "setup": (prices.member.shape[1],), "member": (F, len(prices.setup)), "sources": (F, F), "owner": (C,),
              "loss": (K, K), **({} if needs is None else {"external_needs": (F,)})}  # fmt: skip
    kinds = {"own": "i", "setup": "i", "owner": "i", "loss": "f"}
    for name, shape in shapes.items():
        if arrays[name].shape != shape or arrays[name].dtype.kind != kinds.get(name, "b"):
            found = f"{arrays[name].dtype} of shape {arrays[name].shape}"
            raise StateError(f"{path!r} is damaged: {name!r} is {found}, and should have shape {shape}")
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
        points.append(_point(point, weights or None))
    if "caps" in card:  # earlier versions; in units, since of an amount like 0.1 the float is a little more than the amount
        capped = [_point(p, cap=round(Fraction(cap) / prices.unit)) for cap, under in card["caps"] for p in under]
        points = sorted([*points, *capped], key=lambda p: p.cost)
    family = None if card.get("scale") is None else _family(arrays, card, schema, network)
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
        family=family,
    )


def _family(arrays: Arrays, card: dict[str, Any], schema: Schema, network: Any) -> Family:
    weights = {"forecast": as_judged().astype(np.float32)}  # older files have none
    weights |= {k.removeprefix("family/"): v for k, v in arrays.items() if k.startswith("family/")}
    scale, rank = Scale(**card["scale"]), arrays["rank"]
    _must(_numbers(scale.to_dict().values()) and min(scale.to_dict().values()) > 0 and scale.low < scale.high, "the scale is")
    _must(sorted(rank.tolist()) == list(range(schema.n_tests)), "the order has every test once")
    trunks = None
    if network is not None:
        from askwise.core.family_network import own_trunks

        trunks = own_trunks(schema, int(card["facts"]["config"]["width"]), network, weights)
    return Family(weights, scale, rank, arrays["loss"], schema.owner, list_prices(schema), trunks)


def _fraction(text: Any) -> Fraction:
    if not isinstance(text, str) or not re.fullmatch(r"\d{1,40}(/\d{1,40})?", text):
        raise StateError(f"{text!r:.40} is no amount of money")
    return Fraction(text)


def _digest(kind: str, arrays: Arrays, facts: str) -> str:
    """Of everything in a file, so that no byte of it changes unnoticed."""
    digest = hashlib.sha256(f"{kind} {facts}".encode())
    for name in sorted(arrays):
        value = arrays[name]
        digest.update(f"{name} {value.dtype.str} {value.shape}".encode() + np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()


def as_bytes(model: Model) -> bytes:
    """What `save` would write."""
    return _bytes(MODEL, *_packed(model))


def _write(path: str | Path, kind: str, arrays: Arrays, facts: dict[str, Any]) -> None:
    write_whole(Path(path), _bytes(kind, arrays, facts))


def _bytes(kind: str, arrays: Arrays, facts: dict[str, Any]) -> bytes:
    import safetensors.numpy

    whole = {name: np.asarray(value, order="C") for name, value in arrays.items()}
    text = json.dumps(facts)
    data = safetensors.numpy.save(whole, {"format": kind, "facts": text, "sha256": _digest(kind, whole, text)})
    return bytes(data)


def _read(path: str | Path, kind: str) -> tuple[Arrays, dict[str, Any]]:
    if not Path(path).is_file():
        raise StateError(f"there is no file {str(path)!r}")
    if Path(path).stat().st_size > LARGEST:
        raise StateError(f"{str(path)!r} is larger than {LARGEST // 2**30} GiB, so it cannot be {WORD[kind]}")
    if not _known(path):
        raise StateError(f"{str(path)!r} is not {WORD[kind]}; name a file that askwise has written")
    try:
        arrays, meta = _contents(path)
        found = str(meta.get("format"))
        if found != kind:
            newer = found.rpartition("-")[0] == kind.rpartition("-")[0]
            what = "was written by a newer version of askwise; update to read it" if newer else f"is not {WORD[kind]}"
            raise StateError(f"{str(path)!r} {what}")
        if meta["sha256"] != _digest(kind, arrays, meta["facts"]) or set(meta) != {"format", "facts", "sha256"}:
            raise StateError(f"{str(path)!r} cannot be read: it is cut short or damaged (its checksum is another)")
        facts = json.loads(meta["facts"])
    except StateError:
        raise
    except BROKEN as error:
        reason = (str(error).splitlines() or [""])[0]
        raise StateError(f"{str(path)!r} cannot be read: it is cut short or damaged ({reason})") from None
    return arrays, facts


def is_kind(path: str | Path, kind: str) -> bool:
    """Whether a file is a model or a state, be it of another version or with another checksum."""
    try:
        found = "" if Path(path).stat().st_size > LARGEST else str(_contents(path)[1].get("format"))
    except BROKEN:
        found = ""
    return found.rpartition("-")[0] == kind.rpartition("-")[0]


def _known(path: str | Path) -> bool:
    """Whether a file begins as those do that are read here: the length of a header and a bracket, or a zip file's letters."""
    with Path(path).open("rb") as file:
        first = file.read(9)
    return len(first) < 9 or first[8:] == b"{" or first[:2] == b"PK"


def _contents(path: str | Path) -> tuple[Arrays, dict[str, str]]:
    """The arrays of a file, and what it says."""
    return (_unzip if zipfile.is_zipfile(path) else _open)(path)


def _open(path: str | Path) -> tuple[Arrays, dict[str, str]]:
    """The arrays of a safetensors file, and what it says."""
    import safetensors  # here, since a .npz file does without it

    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            return {name: file.get_tensor(name) for name in file.keys()}, file.metadata() or {}  # noqa: SIM118
    except safetensors.SafetensorError as error:
        raise ValueError(str(error)) from None


def _unzip(path: str | Path) -> tuple[Arrays, dict[str, str]]:
    """The arrays of a .npz file, and what it says."""
    with zipfile.ZipFile(path) as file:
        if sum(part.file_size for part in file.infolist()) > LARGEST:
            raise ValueError("what is in it is too large")
    with np.load(path, allow_pickle=False) as found:
        every = {name: found[name] for name in found.files}
    meta = {name.removeprefix(META): every.pop(name).tobytes().decode() for name in list(every) if name.startswith(META)}
    return every, meta
