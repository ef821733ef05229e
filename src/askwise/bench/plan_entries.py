"""The data sets and the methods of a plan, each a name or a table, checked."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from askwise.bench import own_table
from askwise.bench.plan_settings import RULES
from askwise.bench.plan_values import NAMES, TABLE, TEXT, check_known
from askwise.components import imputation as imputations
from askwise.core.parameters import OneOf, checked
from askwise.datasets.named import cards
from askwise.errors import InputError, did_you_mean
from askwise.methods import names as method_names

OF_DATA = ("name", "without", *RULES)
OF_METHOD = ("name", "label", "only", "imputation", "options", *RULES)


@dataclass(frozen=True)
class DataEntry:
    """A named set, or a table of one's own."""

    name: str
    without: list[str]  # labels of methods
    settings: Mapping[str, Any]
    source: dict[str, Any] | None = None  # of a file, see `own_table`


@dataclass(frozen=True)
class MethodEntry:
    """A method with its options."""

    name: str
    label: str
    only: list[str] | None  # names of data; None: all
    imputation: str | None
    options: dict[str, Any]
    settings: Mapping[str, Any]


def tables(plan: Mapping[str, Any], key: str) -> list[dict[str, Any]]:
    """A list of names and tables, all as tables."""
    entries = plan.get(key)
    if not isinstance(entries, list) or not entries:
        raise InputError(f"`{key}` is {entries!r}; it must be a list of names or tables, with one at least")
    for entry in entries:
        if not isinstance(entry, (str, dict)):
            raise InputError(f"`{key}` holds {entry!r}; it must be a name or a table")
    return [{"name": entry} if isinstance(entry, str) else entry for entry in entries]


def data_entry(entry: dict[str, Any], folder: Path) -> DataEntry:
    return _own_table(entry, folder) if "file" in entry else _named_set(entry)


def _named_set(entry: dict[str, Any]) -> DataEntry:
    for name in own_table.OF_FILE:
        if name in entry:
            raise InputError(f"data {entry.get('name')!r} has `{name}`, which is for files; name the file too")
    check_known(entry, OF_DATA, f"data {entry.get('name')!r}")
    name = checked(entry.get("name"), TEXT, "the name of a data set")
    if name not in cards():
        raise InputError(f"there is no data set {name!r}; for a table of your own give a `file`; {did_you_mean(name, cards())}")
    return DataEntry(name, checked(entry.get("without", []), NAMES, f"`without` of {name!r}"), entry)


def _own_table(entry: dict[str, Any], folder: Path) -> DataEntry:
    file = checked(entry["file"], TEXT, "file")
    check_known(entry, (*OF_DATA, *own_table.OF_FILE), f"the data of {file!r}")
    path = folder / file
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    source = own_table.described(entry, folder)
    own_table.check(folder, source)
    with path.open("rb") as stream:
        checksum = hashlib.file_digest(stream, "sha256").hexdigest()[:16]
    name = checked(entry.get("name", path.name.split(".")[0]), TEXT, "name")
    without = checked(entry.get("without", []), NAMES, f"`without` of {file!r}")
    return DataEntry(name, without, entry, {**source, "sha256": checksum})


def method_entry(entry: dict[str, Any]) -> MethodEntry:
    name = checked(entry.get("name"), TEXT, "the name of a method")
    check_known(entry, OF_METHOD, f"method {name!r}")
    if "." in name and not all(part.isidentifier() for part in name.split(".")):
        raise InputError(
            f"the name of a method is {name!r}; it must be that of a module that can be imported, such as 'mine.tree'"
        )
    if "." not in name and name not in method_names():
        raise InputError(f"there is no method {name!r}; {did_you_mean(name.replace('_', '-'), method_names())}")
    imputation = entry.get("imputation")
    if imputation is not None:
        checked(imputation, OneOf(*imputations.KINDS), f"`imputation` of {name!r}")
    only = checked(entry["only"], NAMES, f"`only` of {name!r}") if "only" in entry else None
    label = name.rpartition(".")[2] + (f" {imputation}" if imputation else "")
    label = checked(entry.get("label", label), TEXT, "label")
    return MethodEntry(name, label, only, imputation, _options(entry.get("options", {}), name), entry)


def _options(options: Any, method: str) -> dict[str, Any]:
    checked(options, TABLE, f"`options` of {method!r}")
    for option, value in options.items():
        try:
            json.dumps(value)
        except TypeError:  # TOML knows dates and times
            raise InputError(f"the option {option!r} of {method!r} is {value}; a date must be a text, in quotes") from None
    return dict(options)
