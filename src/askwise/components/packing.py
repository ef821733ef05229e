"""Problems and other arrays as bytes, for processes elsewhere: safetensors, with facts in JSON. Reading runs nothing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Arrays
from askwise.core.costs import CostFunction
from askwise.core.problem import Problem
from askwise.core.schema import Schema

Facts = dict[str, Any]
_COSTS = ("own", "setup", "member", "sources", "decisions")
_OF_PROBLEM = [field.name for field in fields(Problem) if field.name not in ("schema", "ids")]


def to_bytes(arrays: Mapping[str, Array], facts: Facts) -> bytes:
    from safetensors.numpy import save

    return save({name: np.ascontiguousarray(value) for name, value in arrays.items()}, {"facts": json.dumps(facts)})


def from_bytes(data: bytes) -> Arrays:
    """The arrays alone."""
    from safetensors.numpy import load

    return dict(load(data))


def from_file(path: Path) -> tuple[Arrays, Facts]:
    """What `to_bytes` made."""
    from safetensors import safe_open

    with safe_open(path, framework="numpy") as file:
        return {name: file.get_tensor(name) for name in file.keys()}, json.loads(file.metadata()["facts"])  # noqa: SIM118


def packed(problems: Mapping[str, Problem]) -> tuple[Arrays, Facts]:
    """Problems by their names, which share a schema. Names of cases are left out."""
    schema = next(iter(problems.values())).schema
    classes = [label.item() if isinstance(label, np.generic) else label for label in schema.classes]
    facts: Facts = {
        "columns": schema.columns,
        "tests": schema.tests,
        "classes": classes,
        "other_decisions": schema.other_decisions,
        "tells_gaps": schema.tells_gaps,
        "unit": str(schema.costs.smallest_unit),
        "problems": {},
    }
    arrays: dict[str, Array | None] = {f"costs/{name}": getattr(schema.costs, name) for name in _COSTS}
    arrays |= {"owner": schema.owner, "external_needs": schema.external_needs}
    for name, problem in problems.items():
        parts = {field: getattr(problem, field) for field in _OF_PROBLEM}
        arrays |= {f"{name}/{field}": value for field, value in parts.items() if isinstance(value, np.ndarray)}
        facts["problems"][name] = {field: value for field, value in parts.items() if not isinstance(value, np.ndarray)}
    return {name: value for name, value in arrays.items() if value is not None}, facts


def unpacked(arrays: Arrays, facts: Facts) -> dict[str, Problem]:
    """What `packed` took apart."""
    costs = CostFunction(smallest_unit=Fraction(facts["unit"]), **{name: arrays[f"costs/{name}"] for name in _COSTS})
    columns, tests, classes, others = (tuple(facts[name]) for name in ("columns", "tests", "classes", "other_decisions"))
    schema = Schema(columns, tests, classes, arrays["owner"], costs, arrays.get("external_needs"), others, facts["tells_gaps"])

    def problem(name: str, others: Facts) -> Problem:
        own: dict[str, Any] = {field: arrays[f"{name}/{field}"] for field in _OF_PROBLEM if field not in others}
        return Problem(schema=schema, ids=None, **own, **others)

    return {name: problem(name, others) for name, others in facts["problems"].items()}
