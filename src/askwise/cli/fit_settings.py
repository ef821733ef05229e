"""What the options of `askwise fit` mean for the classifier. No option may name the target as something else."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from askwise.cli.cases import LabelledCases
from askwise.cli.options import budget_of, names
from askwise.core.budget import Budget
from askwise.errors import InputError
from askwise.tables.external import Recorded
from askwise.tables.small_files import read_list, read_loss


def text_columns(options: argparse.Namespace) -> list[str]:
    """The columns that stay as a text file writes them."""
    return [*names(options.categorical), *names(options.ignore)]


def seconds_of(text: str) -> float:
    """A time as people write it: 90, 90s, 5m, 1h."""
    match = re.fullmatch(r"(\d+\.?\d*|\.\d+)\s*([smh]?)", text.strip())
    if match is None:
        raise InputError(f"the time limit is {text!r}; it must be like 90 or 90s for seconds, 5m for minutes, or 1h for hours")
    return float(match[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[match[2]]


def parameters(options: argparse.Namespace, cases: LabelledCases) -> dict[str, Any]:
    """All parameters of the classifier but its time limit."""
    budget = budget_of(options)
    columns = {"known": names(options.known), "categorical": names(options.categorical), "external": _external(options)}
    spec = replace(cases.spec, **_from_files(options)).without(cases.left_out)
    loss = None if options.loss is None else read_loss(options.loss, np.unique(cases.y).tolist())
    # hardly anybody in the thyroid data is ill; who says what mistakes cost knows better
    usual = "balanced" if options.data == "thyroid" and options.loss is None else "none"
    weight = options.class_weight or usual
    return {
        "budget": None if budget == Budget() else budget,
        "class_weight": None if weight == "none" else weight,
        "n_restarts": options.restarts,
        "algorithm": options.algorithm,
        "random_state": options.seed,
        "unit": options.unit or ("dollars" if options.data == "thyroid" else ""),
        "scaling": cases.scaling,
        "loss": loss,
        **columns,
        **vars(spec),
    }


def _external(options: argparse.Namespace) -> Recorded | None:
    """The existing classifier, whose answers are in a column."""
    if options.external is not None:
        return Recorded(options.external, names(options.external_needs) or None)
    if options.external_needs is not None:
        raise InputError("--external-needs is for an existing classifier; name the column of its answers: --external COLUMN")
    return None


def _from_files(options: argparse.Namespace) -> dict[str, Any]:
    """Parts of a `CostSpec`, from the files that were named."""
    parts: dict[str, Any] = {}
    for option, (columns, value) in FILES.items():
        file = getattr(options, option)
        if file is not None:
            parts[option] = {row[columns[0]]: value(row) for row in read_list(file, columns)}
    if options.costs is not None and options.target in parts["costs"]:
        raise InputError(f"{options.costs.name!r} has a cost for {options.target!r}, which is the target; remove that line")
    return parts


# the columns of each file, and what a line says of the name in the first of them
FILES: dict[str, tuple[tuple[str, ...], Callable[[dict[str, str]], Any]]] = {
    "costs": (("test", "cost"), lambda row: row["cost"]),
    "setup": (("setup", "cost", "tests"), lambda row: (row["cost"], names(row["tests"], ";"))),
    "derived": (("test", "sources"), lambda row: names(row["sources"], ";")),
    "reveals": (("test", "columns"), lambda row: names(row["columns"], ";")),
}


def check_target_is_free(options: argparse.Namespace) -> None:
    """Before the cases are read: no option names the target as something else."""
    for option in ("known", "categorical", "ignore", "ids", "external", "external_needs"):
        text = getattr(options, option)
        if options.target is not None and options.target in ([text] if option in ("ids", "external") else names(text)):
            shown = f"--{option.replace('_', '-')}"
            raise InputError(f"{shown} names the column {options.target!r}, which is the target; leave it out there")
