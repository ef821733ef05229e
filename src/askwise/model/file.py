"""Model files and states of training runs: what is in them.

A model file (`.askwise`) is the weights of the policies on the frontier and a card: schema, costs, classes, budget, settings,
metrics, versions, fingerprint of the data. A state file is a training run, to be resumed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from askwise.components.pictures import Convolutions
from askwise.core.arrays import Arrays
from askwise.core.budget import Budget
from askwise.core.costs import CostFunction
from askwise.core.measures import Measure
from askwise.core.schema import Schema
from askwise.errors import StateError, must
from askwise.family.conditions import Scale, costs_alone, decision_money
from askwise.family.forward import uncalibrated
from askwise.family.inference import Family
from askwise.frontier.point import Point
from askwise.model import archives, file_checks
from askwise.model.archives import MODEL, STATE
from askwise.model.model import LearnedModel
from askwise.stack.checks import check_stack
from askwise.stack.inference import Stack
from askwise.tables.encoding import Encoding
from askwise.tables.external import Recorded

COST_ARRAYS = ("own", "setup", "member", "sources", "decisions")
MOST_POINTS = 10_000  # each is tried when a model is loaded


def write_state(path: str | Path, arrays: Arrays, facts: dict[str, Any]) -> None:
    """Writes the state of a training run."""
    archives.write(path, STATE, arrays, facts)


def read_state(path: str | Path) -> tuple[Arrays, dict[str, Any]]:
    """What `write_state` wrote."""
    return archives.read(path, STATE)


def save(model: LearnedModel, path: str | Path) -> None:
    """Writes a model. A fitted existing classifier and an encoder of your own stay with you; hand them to `load` again.

    What is written is read again before it takes the place of an older file.
    """
    archives.write(path, MODEL, *_packed(model), lambda part: _load_again(model, part))


def save_npz(model: LearnedModel, path: str | Path) -> None:
    """The same in a file that NumPy can read alone."""
    archives.write_npz(path, MODEL, *_packed(model), lambda part: _load_again(model, part))


def as_bytes(model: LearnedModel) -> bytes:
    """What `save` would write."""
    return archives.as_bytes(MODEL, *_packed(model))


def _load_again(model: LearnedModel, path: Path) -> None:
    """What was written for a model is that model."""
    external = None if isinstance(model.external, Recorded) else model.external
    again = load(path, external=external, encoder=handed_over(model.encoder))
    if any(getattr(again, name) != getattr(model, name) for name in ("fingerprint", "budget", "trained_for", "unit")):
        raise StateError(f"{str(path)!r} is not the model that was written")


def handed_over(encoder: Any) -> Any:
    """An encoder that a file cannot hold; None where it can."""
    return None if isinstance(encoder, Convolutions) else encoder


def _packed(model: LearnedModel) -> tuple[Arrays, dict[str, Any]]:
    """A model as arrays and a card."""
    schema, costs = model.schema, model.schema.costs
    arrays = {f"point/{i}/{name}": value for i, point in enumerate(model.points) for name, value in (point.weights or {}).items()}
    arrays |= {f"costs/{name}": getattr(costs, name) for name in COST_ARRAYS}
    arrays |= {"owner": schema.owner, "loss": model.loss}
    if schema.external_needs is not None:
        arrays["external_needs"] = schema.external_needs
    if model.family is not None:
        arrays |= {f"family/{name}": value for name, value in model.family.weights.items()}
        arrays["rank"] = model.family.rank
    if model.targeted:
        weights = [np.ones(schema.n_classes) if p.class_weights is None else p.class_weights for p in model.targeted]
        arrays["targeted/class_weights"] = np.array(weights)
        arrays |= {f"targeted/{name}": np.array([getattr(p, name) for p in model.targeted]) for name in ("counts", "believed")}
        if model.targeted[0].cases is not None:
            arrays["targeted/cases"] = model.targeted[0].cases  # the same rows of all
    card = {
        "columns": schema.columns,
        "tests": schema.tests,
        "classes": schema.classes,
        "class_type": np.asarray(schema.classes).dtype.str,
        "other_decisions": schema.other_decisions,
        "cost_unit": str(costs.smallest_unit),
        "encoding": model.encoding.to_dict(),
        "at_once": model.at_once,
        "rule": model.rule,
        "points": [_card(point) for point in model.points],
        "targeted": [_card(point) for point in model.targeted],
        "scale": None if model.family is None else model.family.scale.to_dict(),
        "trained_for": model.trained_for.to_dict(),
        "budget": model.budget.to_dict(),
        "known": model.known,
        "seed": model.seed,
        "unit": model.unit,
        "facts": model.facts,
        "custom_encoder": handed_over(model.encoder) is not None,
        "convolutions": model.encoder.to_dict() if isinstance(model.encoder, Convolutions) else None,
        "external_column": model.external.column if isinstance(model.external, Recorded) else None,
    }
    return arrays, card


def _card(point: Point) -> dict[str, Any]:
    return {**point.shown, "prefix": point.prefix, "cap": point.cap, "breadth": point.breadth, "tests": point.tests}


def load(path: str | Path, *, external: Any = None, encoder: Any = None) -> LearnedModel:
    """Reads a model. `external` and `encoder`: what it was fitted with, if it was; recorded answers are known already."""
    arrays, card = archives.read(path, MODEL)
    try:
        with np.errstate(all="raise", under="ignore"):  # what is almost nothing may become nothing
            return file_checks.checked(_model(arrays, card, external, encoder, str(path)))
    except StateError as error:
        raise (error if str(path) in str(error) else StateError(f"{str(path)!r} is damaged: {error}")) from None
    except Exception as error:  # whatever a file may say, it is the file that is wrong
        reason = (str(error).splitlines() or [""])[0]
        raise StateError(f"{str(path)!r} is damaged: its parts do not fit together ({type(error).__name__}: {reason})") from None


def _model(arrays: Arrays, card: dict[str, Any], external: Any, encoder: Any, path: str) -> LearnedModel:
    """The inverse of `_packed`."""
    needs = arrays.get("external_needs")
    external = _external(card, needs, external, path)
    _check_handed_over(path, "a custom encoder", "network", card["custom_encoder"], encoder)
    costs = CostFunction(**{n: arrays[f"costs/{n}"] for n in COST_ARRAYS}, smallest_unit=file_checks.fraction(card["cost_unit"]))
    classes = file_checks.class_names(card["classes"], card["class_type"])
    encoding = Encoding.from_dict(card["encoding"])
    columns, tests, others = (tuple(card[name]) for name in ("columns", "tests", "other_decisions"))
    schema = Schema(columns, tests, classes, arrays["owner"], costs, needs, others, bool(encoding.gaps))
    file_checks.check_arrays(arrays, schema, encoder is not None)
    if card.get("convolutions") is not None:
        must(encoder is None, "convolutions are an encoder")
        encoder = _convolutions(arrays, card)
    return LearnedModel(
        schema=schema,
        encoding=encoding,
        loss=arrays["loss"],
        rule=file_checks.scoring_rule(card["rule"]),
        at_once=tuple(card["at_once"]),
        points=_points(arrays, card["points"], schema, encoder is not None),
        targeted=_targeted(arrays, card.get("targeted", [])),
        trained_for=Budget.from_dict(card["trained_for"]),
        budget=Budget.from_dict(card["budget"]),
        known=tuple(card["known"]),
        seed=card["seed"],
        unit=card["unit"],
        facts=card["facts"],
        external=external,
        encoder=encoder,
        family=None if card["scale"] is None else _family(arrays, card, schema, encoder),
    )


def _convolutions(arrays: Arrays, card: dict[str, Any]) -> Convolutions:
    """What sees the columns of pictures. All its layers have the sizes that it says."""
    convolutions = Convolutions.from_dict(card["convolutions"])
    family = card["scale"] is not None
    width = arrays["family/test_logits.weight"].shape[1] if family else int(card["facts"]["config"]["width"])
    parts = {name.rpartition(".body.")[0] for name in arrays if ".body." in name}
    must(bool(parts) and all(convolutions.fit(arrays, part, width) for part in parts), "the convolutions have their sizes")
    return convolutions


def _external(card: dict[str, Any], needs: Any, external: Any, path: str) -> Any:
    """The existing classifier: the one that is handed over, or the column of its recorded answers."""
    column = card["external_column"]
    if column is not None:
        must(isinstance(column, str) and needs is not None, "recorded answers have a column, and need some tests")
        if external is not None:
            recorded = f"takes the answers of an existing classifier from the column {column!r}"
            raise StateError(f"{path!r} {recorded}; leave external= out")
        external = Recorded(column, [test for test, needed in zip(card["tests"], needs, strict=True) if needed])
    _check_handed_over(path, "an existing classifier", "external", needs is not None, external)
    return external


def _check_handed_over(path: str, what: str, argument: str, needed: bool, value: Any) -> None:
    """Whether `load` was given what a model was fitted with, and nothing else."""
    if needed != (value is not None):
        words = f"with {what}; pass it as {argument}=" if needed else f"without {what}; leave {argument}= out"
        raise StateError(f"{path!r} was fitted {words}")


def _points(arrays: Arrays, cards: list[dict[str, Any]], schema: Schema, own_encoder: bool) -> tuple[Point, ...]:
    must(len(cards) <= MOST_POINTS, f"there are at most {MOST_POINTS} points")
    weights: dict[int, Arrays] = {}  # by the number of the point
    for name, value in arrays.items():
        if name.startswith("point/"):
            _, number, inside = name.split("/", 2)
            weights.setdefault(int(number), {})[inside] = value
    if not own_encoder:
        for i, network in weights.items():
            file_checks.check_network(network, schema, i)
    return tuple(_point(card, weights.get(i)) for i, card in enumerate(cards))


def _point(card: dict[str, Any], weights: Arrays | None = None, **more: Any) -> Point:
    parts = card["prefix"], card["cap"], card["breadth"], _tests(card)
    return Point(card["lam"], Measure.from_dict(card), weights, *parts, **more)


def _targeted(arrays: Arrays, cards: list[dict[str, Any]]) -> tuple[Point, ...]:
    """Points that were measured class by class; what the arrays hold was checked with all others."""
    must(len(cards) <= MOST_POINTS, f"there are at most {MOST_POINTS} points")
    must(len(cards) == len(arrays.get("targeted/counts", ())), "each point of a target has its counts")
    points = []
    for i, card in enumerate(cards):
        weights, counts, believed = (arrays[f"targeted/{name}"][i] for name in ("class_weights", "counts", "believed"))
        asked = None if (weights == 1).all() else tuple(weights.tolist())
        points.append(_point(card, class_weights=asked, counts=counts, believed=believed, cases=arrays.get("targeted/cases")))
    return tuple(points)


def _tests(card: dict[str, Any]) -> tuple[int, ...] | None:
    return None if card["tests"] is None else tuple(card["tests"])


def _family(arrays: Arrays, card: dict[str, Any], schema: Schema, encoder: Any) -> Family:
    weights = {name.removeprefix("family/"): value for name, value in arrays.items() if name.startswith("family/")}
    must(weights["calibration"].shape == uncalibrated().shape, "the calibration has the right shape")
    scale, numbers, rank = Scale(**card["scale"]), card["scale"].values(), arrays["rank"]
    must(file_checks.are_numbers(numbers) and min(numbers) > 0 and scale.low < scale.high, "the scale is valid")
    must(sorted(rank.tolist()) == list(range(schema.n_tests)), "the order has every test once")
    facts = arrays["loss"], schema.owner, costs_alone(schema)
    if "heads.0.weight" in weights:
        check_stack(weights, schema)
        return Stack(weights, scale, rank, *facts, rule=card["rule"], decision_cost=decision_money(schema))
    trunks = None
    if encoder is not None:
        from askwise.family.network import own_trunks

        trunks = own_trunks(schema, encoder, weights)
    return Family(weights, scale, rank, *facts, trunks, card["rule"], decision_money(schema))
