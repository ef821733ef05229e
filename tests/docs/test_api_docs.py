"""The reference names everything there is: parameters, settings, options, and what a model and a report offer."""

import argparse
import inspect
import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

import askwise
from askwise import CostlyClassifier, FamilyConfig, TrainConfig, gym, plots
from askwise.cli.parser import parser
from askwise.datasets import named
from askwise.facade import Model
from askwise.frontier.point import Point
from askwise.model.acquisitions import AcquisitionReport
from askwise.session.providers import Decided, Provider
from askwise.session.session import Session, Step

PAGE = re.sub(r"^```.*?^```", "", (Path(__file__).parents[2] / "docs" / "api.md").read_text(), flags=re.M | re.S)  # no code


def section(title: str) -> str:
    """The text under a heading, up to the next heading."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#{{1,3}} |\Z)", PAGE, re.M | re.S)
    assert found, f"docs/api.md has no section {title!r}"
    return found[1]


def rows(title: str) -> dict[str, list[str]]:
    """The tables of a section: the words in backticks of each first cell, with the other cells."""
    lines = [line.strip("| ").split(" | ") for line in section(title).splitlines() if line.startswith("| `")]
    return {name: cells[1:] for cells in lines for name in re.findall(r"`([^`]+)`", cells[0])}


def public(of: type) -> set[str]:
    return {name for name in (*vars(of), *getattr(of, "__dataclass_fields__", ())) if not name.startswith("_")}


def words(title: str) -> set[str]:
    return set(re.findall(r"\w+", " ".join(re.findall(r"`([^`]+)`", section(title)))))


def test_every_parameter_of_the_classifier_with_its_default() -> None:
    listed = rows("CostlyClassifier")
    for name, parameter in inspect.signature(CostlyClassifier).parameters.items():
        assert name in listed, f"docs/api.md does not name {name}"
        shown = listed[name][0].strip("`").replace('"', "'")
        assert shown == repr(parameter.default), f"docs/api.md says that {name} is {shown} by default"


def test_every_method_and_attribute_of_the_classifier() -> None:
    listed = words("CostlyClassifier")
    made = {name for name in public(CostlyClassifier) if name.startswith("set_")}  # by scikit-learn
    for name in (public(CostlyClassifier) - made) | {"score", "classes_", "model_"}:
        assert name in listed, f"docs/api.md does not name {name}"


@pytest.mark.parametrize("config", [TrainConfig, FamilyConfig])
def test_every_setting_with_its_default(config: type) -> None:
    listed = rows(config.__name__)
    for field in fields(config):
        assert field.default is not MISSING
        assert field.name in listed, f"docs/api.md does not name the setting {field.name}"
        shown = listed[field.name][0]
        right = shown == str(field.default) if isinstance(field.default, (bool, type(None))) else float(shown) == field.default
        assert right, f"docs/api.md says that {field.name} is {shown}, it is {field.default}"


def commands() -> dict[str, argparse.ArgumentParser]:
    action = next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


@pytest.mark.parametrize("command", commands())
def test_every_option_of_every_command(command: str) -> None:
    listed = {word.split()[0] for word in re.findall(r"`(--[^`]+)`", section(f"askwise {command}"))}
    there = {option for a in commands()[command]._actions for option in a.option_strings if option.startswith("--")} - {"--help"}
    assert listed == there, f"askwise {command}: docs/api.md and the command line differ"


OFFERED = [("Model", Model), ("Model", Point), ("AcquisitionReport", AcquisitionReport), ("Session", Session), ("Session", Step)]


@pytest.mark.parametrize(("title", "of"), [*OFFERED, ("Providers", Provider), ("Providers", Decided)])
def test_what_a_model_and_a_report_offer(title: str, of: type) -> None:
    inner = {
        "encoding",
        "loss",
        "at_once",
        "external",
        "encoder",
        "policy",
        "belief",
        "believed",
        "loss_scale",
        "weights",
        "index",
    }
    for name in public(of) - inner:
        assert name in words(title), f"docs/api.md does not name {of.__name__}.{name}"


def test_everything_that_is_exported() -> None:
    named_there = set(re.findall(r"\w+", PAGE))
    for name in (*askwise.__all__, *plots.__all__, *gym.__all__, *named.cards()):
        assert name in named_there, f"docs/api.md does not name {name}"


@pytest.mark.parametrize("name", plots.__all__)
def test_the_arguments_of_pictures(name: str) -> None:
    shown = re.search(rf"`plots\.{name}\(([^)`]*(?:\(\))?[^)`]*)\)`", section("Plots"))
    assert shown, f"docs/api.md does not show how plots.{name} is called"
    given = [part.split("=")[0].strip() for part in shown[1].split(",")]
    assert given == list(inspect.signature(getattr(plots, name)).parameters)
