"""What is in the files that askwise writes.

A model file (`.askwise`) is the weights of the policies on the frontier and a card: schema, prices, classes, budget, settings,
metrics, versions, fingerprint of the data. A state file is a training run, to be resumed.
"""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from askwise.core.arrays import Arrays
from askwise.core.budget import Budget
from askwise.core.cases import Cases
from askwise.core.checks import LONGEST_LABEL
from askwise.core.costs import COUNTED, CostFunction, _circle
from askwise.core.measures import Measure
from askwise.core.problem import Problem, Schema
from askwise.errors import StateError
from askwise.family.conditions import Scale, list_prices
from askwise.family.forward import uncalibrated
from askwise.family.inference import Family
from askwise.frontier.point import Point
from askwise.model import archives
from askwise.model.archives import MODEL, STATE, write_npz
from askwise.model.archives import read as _read
from askwise.model.archives import write as _write
from askwise.model.model import LearnedModel
from askwise.model.purchases import fits
from askwise.tables.encoding import Encoding
from askwise.tables.external import Recorded

MOST_POINTS = 10_000  # each is tried when a model is loaded


def write_state(path: str | Path, arrays: Arrays, facts: dict[str, Any]) -> None:
    """Writes the state of a training run."""
    _write(path, STATE, arrays, facts)


def read_state(path: str | Path) -> tuple[Arrays, dict[str, Any]]:
    """What `write_state` wrote."""
    return _read(path, STATE)


def save(model: LearnedModel, path: str | Path) -> None:
    """Writes a model. A fitted existing classifier and an encoder of your own stay with you; hand them to `load` again.

    What is written is read again before it takes the place of an older file.
    """
    _write(path, MODEL, *_packed(model), lambda part: _load_again(model, part))


def save_npz(model: LearnedModel, path: str | Path) -> None:
    """The same in a file that NumPy can read alone."""
    write_npz(path, MODEL, *_packed(model), lambda part: _load_again(model, part))


def as_bytes(model: LearnedModel) -> bytes:
    """What `save` would write."""
    return archives.as_bytes(MODEL, *_packed(model))


def _load_again(model: LearnedModel, path: Path) -> None:
    """What was written for a model is that model."""
    external = None if isinstance(model.external, Recorded) else model.external
    again = load(path, external=external, network=model.encoder)
    mine, theirs = ((m.fingerprint, m.budget, m.trained_for, m.unit) for m in (model, again))
    if mine != theirs:
        raise StateError(f"{str(path)!r} is not the model that was written")


def _packed(model: LearnedModel) -> tuple[Arrays, dict[str, Any]]:
    """A model as arrays and a card."""
    arrays = {f"point/{i}/{name}": value for i, point in enumerate(model.points) for name, value in (point.weights or {}).items()}
    schema, costs = model.schema, model.schema.costs
    arrays |= {"owner": schema.owner, "own": costs.own, "setup": costs.setup, "member": costs.member, "sources": costs.sources}
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
        "money": str(costs.unit),
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


def load(path: str | Path, *, external: Any = None, network: Any = None) -> LearnedModel:
    """Reads a model. `external` and `network`: what it was fitted with, if it was; recorded answers are known already."""
    arrays, card = _read(path, MODEL)
    try:
        with np.errstate(all="raise", under="ignore"):  # what is almost nothing may become nothing
            model = _model(arrays, card, external, network, str(path))
            _rehearse(model)
        return model
    except StateError as error:
        raise (error if str(path) in str(error) else StateError(f"{str(path)!r} is damaged: {error}")) from None
    except Exception as error:  # whatever a file may say, it is the file that is wrong
        reason = (str(error).splitlines() or [""])[0]
        raise StateError(f"{str(path)!r} is damaged: its parts do not fit together ({type(error).__name__}: {reason})") from None


def _rehearse(model: LearnedModel) -> None:
    """Uses every part of a model once, on a case that knows nothing and on one that knows everything."""
    schema, costs = model.schema, model.schema.costs
    _must(all(isinstance(name, str) for name in (*schema.columns, *schema.tests, *model.known, model.unit)), "names are text")
    _must(len(set(schema.tests)) == schema.n_tests and len(set(schema.classes)) == schema.n_classes > 1, "names are unique")
    _must(model.encoding.engine_columns == list(schema.columns), "the encoding has the columns of the network")
    _must(set(model.known) <= set(schema.tests), "what is known is a test")
    _must(set(schema.owner.tolist()) == set(range(schema.n_tests)), "each test reveals a column")
    _must(costs.unit > 0 and costs.unit.denominator < COUNTED and costs.unit.numerator == 1, "money is counted in units")
    _must(min(costs.own.min(), costs.setup.min(initial=0)) >= 0 and 0 <= costs.total < COUNTED, "prices are 0 or more")
    _must(_circle(costs.sources) is None, "no test is computed from itself")
    _must(bool(np.isfinite(model.loss).all() and (model.loss >= 0).all() and model.loss.any()), "losses are 0 or more")
    _must(type(model.seed) is int and 0 <= model.seed < 2**63, "the seed is a whole number of 64 bits")
    _must(len(model.at_once) == schema.n_classes and _numbers(model.at_once), "the values of the classes are numbers")
    _must(isinstance(model.facts, dict) and {"seconds", "stopped", "config"} <= set(model.facts), "the facts are complete")
    seconds, loss_scale = (model.facts[name] for name in ("seconds", "loss_scale"))
    _must(
        _numbers([seconds, loss_scale]) and 0 <= seconds < 1e12 and loss_scale > 0, "time and the scale of the losses are numbers"
    )
    _must(
        all(_rows(model.facts.get(name, []), n) for name, n in (("records", 5), ("areas", 2))), "the training record is complete"
    )
    _must(fits(model), "the shares of bought tests are valid")
    first, rising = model.points[0], [p.cost for p in model.points]
    _must(
        _numbers(
            x
            for p in model.points
            for name, x in (*p.shown.items(), ("prefix", p.prefix), ("cap", p.cap))
            if x is not None or name in ("lam", "cost", "loss", "accuracy")
        ),
        "points are numbers",
    )
    counted = [(x, most) for p in model.points for x, most in ((p.measure.n, 2**62), (p.cap, 2**62), (p.prefix, schema.n_tests))]
    _must(all(x is None or (type(x) is int and 0 <= x <= most) for x, most in counted), "points are counted in whole numbers")
    _must(first.weights is None and first.cost == 0 and rising == sorted(rising), "the points rise from deciding at once")
    everything = np.stack([np.zeros(schema.n_tests, bool), np.ones(schema.n_tests, bool)])
    problem = Problem(
        schema,
        np.zeros((2, len(schema.columns)), np.float32),
        None,
        None,
        everything,
        model.loss,
        None,
        None if schema.external_needs is None else np.zeros(2, np.int64),
        None,
    )
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


def _rows(given: Any, n: int) -> bool:
    """Rows of so many numbers each."""
    return isinstance(given, list) and all(isinstance(row, list) and len(row) == n and _numbers(row) for row in given)


def _must(holds: bool, words: str) -> None:
    if not holds:
        raise StateError(f"its contents fail a check: {words}")


def _model(arrays: Arrays, card: dict[str, Any], external: Any, network: Any, path: str) -> LearnedModel:
    needs, tests = arrays.get("external_needs"), tuple(card["tests"])
    recorded = card.get("recorded")  # the column of an existing classifier's answers
    if recorded is not None:
        _must(isinstance(recorded, str) and needs is not None, "recorded answers have a column, and need some tests")
        if external is not None:
            raise StateError(
                f"{path!r} takes the answers of an existing classifier from the column {recorded!r}; leave external= out"
            )
        external = Recorded(recorded, [t for t, has in zip(tests, needs, strict=True) if has])  # type: ignore[arg-type]
    if (needs is not None) != (external is not None):
        raise StateError(
            f"{path!r} was fitted with{'' if needs is not None else 'out'} an existing classifier; "
            f"{'pass it as external=' if needs is not None else 'leave external= out'}"
        )
    if card["own_encoder"] != (network is not None):
        raise StateError(
            f"{path!r} was fitted with{'' if card['own_encoder'] else 'out'} a custom encoder; "
            f"{'pass it as network=' if card['own_encoder'] else 'leave network= out'}"
        )
    costs = CostFunction(arrays["own"], arrays["setup"], arrays["member"], arrays["sources"], _fraction(card["money"]))
    classes = _classes(card["classes"], card["class_type"])
    schema = Schema(tuple(card["columns"]), tests, classes, arrays["owner"], costs, needs)
    F, K, C = schema.n_tests, schema.n_classes, len(schema.columns)
    shapes = {
        "own": (F,),
        "setup": (costs.member.shape[1],),
        "member": (F, len(costs.setup)),
        "sources": (F, F),
        "owner": (C,),
        "loss": (K, K),
        **({} if needs is None else {"external_needs": (F,)}),
    }
    kinds = {"own": "i", "setup": "i", "owner": "i", "loss": "f"}
    for name, shape in shapes.items():
        if arrays[name].shape != shape or arrays[name].dtype.kind != kinds.get(name, "b"):
            found = f"{arrays[name].dtype} of shape {arrays[name].shape}"
            raise StateError(f"{path!r} is damaged: {name!r} is {found}, and should have shape {shape}")
    _must(len(card["points"]) <= MOST_POINTS, f"there are at most {MOST_POINTS} points")
    if network is None:  # arrays of other dimensions would grow when they are added, or fit only so many cases
        _must(all(value.ndim == 1 + _is_matrix(name) for name, value in arrays.items()), "arrays have the right dimensions")
    own: dict[int, Arrays] = {}
    for name, value in arrays.items():
        if name.startswith("point/"):
            _, number, inside = name.split("/", 2)
            own.setdefault(int(number), {})[inside] = value
    points = []
    for i, point in enumerate(card["points"]):
        weights = own.get(i, {})
        if (
            weights
            and network is None
            and (weights["encoder.0.weight"].shape[1] != C + F or weights["head.weight"].shape[0] != 1 + schema.n_actions)
        ):
            raise StateError(f"{path!r} is damaged: the network of point {i} does not fit its {F} tests and {K} classes")
        points.append(_point(point, weights or None))
    if "caps" in card:  # earlier versions; in units, since of an amount like 0.1 the float is a little more than the amount
        caps = sorted(((round(Fraction(cap) / costs.unit), under) for cap, under in card["caps"]), key=lambda pair: -pair[0])
        points = sorted([*points, *(_point(p, cap=cap) for cap, under in caps for p in under)], key=lambda p: p.cost)
    family = None if card.get("scale") is None else _family(arrays, card, schema, network)
    return LearnedModel(
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


def _is_matrix(name: str) -> bool:
    return name.endswith(".weight") or name in ("family/calibration", "loss", "member", "sources")


def _classes(given: Any, sort: Any) -> tuple[Any, ...]:
    """The classes, each of the type that it had. How long their texts are is not believed, but counted."""
    kinds: dict[str, Any] = {"U": str, "b": bool, "i": int, "u": int, "f": float}
    kind = kinds.get(sort.lstrip("<>|=")[:1]) if isinstance(sort, str) else None
    _must(kind is not None and isinstance(given, list), "classes have a type")
    _must(all(type(c) is kind for c in given), "all classes are of one type")
    if kind is str:
        _must(all(len(c) <= LONGEST_LABEL for c in given) and np.asarray(given).dtype.str == sort, "class names are short enough")
    else:
        _must(_numbers(map(float, given)), "classes are finite")
    return tuple(given)


def _family(arrays: Arrays, card: dict[str, Any], schema: Schema, network: Any) -> Family:
    weights = {"calibration": uncalibrated().astype(np.float32)}  # older files have none
    weights |= {k.removeprefix("family/"): v for k, v in arrays.items() if k.startswith("family/")}
    _must(weights["calibration"].shape == uncalibrated().shape, "the forecast has the right shape")
    scale, rank = Scale(**card["scale"]), arrays["rank"]
    _must(
        _numbers(scale.to_dict().values()) and min(scale.to_dict().values()) > 0 and scale.low < scale.high, "the scale is valid"
    )
    _must(sorted(rank.tolist()) == list(range(schema.n_tests)), "the order has every test once")
    trunks = None
    if network is not None:
        from askwise.family.network import own_trunks

        trunks = own_trunks(schema, int(card["facts"]["config"]["width"]), network, weights)
    return Family(weights, scale, rank, arrays["loss"], schema.owner, list_prices(schema), trunks)


def _fraction(text: Any) -> Fraction:
    if not isinstance(text, str) or not re.fullmatch(r"\d{1,40}(/\d{1,40})?", text):
        raise StateError(f"{text!r:.40} is not an amount of money")
    return Fraction(text)
