"""The reference names everything there is: parameters, settings, options, and what a model and a report offer."""

import argparse
import ast
import inspect
import re
from dataclasses import MISSING, fields, is_dataclass
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import pytest

import askwise
from askwise import CostlyClassifier, FamilyConfig, StackConfig, TrainConfig, gym, plots
from askwise.cli.parser import parser
from askwise.datasets import named
from askwise.facade import Model
from askwise.frontier.point import Point
from askwise.model.acquisitions import AcquisitionReport
from askwise.model.model import LearnedModel
from askwise.session.partial_case import PartialCase
from askwise.session.providers import Decided, Provider
from askwise.session.session import Session
from askwise.session.step import Step

ROOT = Path(__file__).parents[2]
PAGE = re.sub(r"^```.*?^```", "", (ROOT / "docs/api.md").read_text(), flags=re.M | re.S)  # no code


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


REFERENCE = {
    name: page.name
    for page in sorted((ROOT / "docs/reference").glob("*.md"))
    for name in re.findall(r"^::: ([\w.]+)$", page.read_text(), re.M)
}


def sections(of: object) -> dict[str, dict[str, str]]:
    """The sections of a numpydoc docstring: by title, what each name is said to be."""
    parts = re.split(r"^(\w[\w ]*)\n-+\n", inspect.getdoc(of) or "", flags=re.M)
    titled = zip(parts[1::2], parts[2::2], strict=True)
    return {title: dict(re.findall(r"^(\*{0,2}\w+)(?: : (.*))?\n    \S", text, re.M)) for title, text in titled}


def test_every_parameter_of_the_classifier_is_in_its_docstring_with_its_default() -> None:
    listed, signature = sections(CostlyClassifier)["Parameters"], inspect.signature(CostlyClassifier).parameters
    assert list(listed) == list(signature)
    for name, parameter in signature.items():
        assert listed[name].endswith(f"default={parameter.default!r}"), f"{name} is {parameter.default!r} by default"


def test_every_method_and_attribute_of_the_classifier_is_in_the_reference() -> None:
    ours = {name for name in public(CostlyClassifier) if not name.startswith("set_")}  # scikit-learn makes those
    methods = {name for name in ours if callable(getattr(CostlyClassifier, name))}
    properties = ours - methods
    assert {"fit", "predict", "predict_proba", "score", "acquire", "session", "at", "save"} <= methods
    for name in methods | properties:
        assert inspect.getdoc(vars(CostlyClassifier)[name]), f"CostlyClassifier.{name} has no docstring"
    attributes = set(sections(CostlyClassifier)["Attributes"]) | properties
    assert {"classes_", "frontier_", "model_", "validation_rows_", "n_features_in_", "feature_names_in_"} <= attributes


@pytest.mark.parametrize("config", [TrainConfig, FamilyConfig, StackConfig])
def test_every_setting_has_a_default_and_a_sentence(config: type) -> None:
    bodies = [ast.parse(inspect.getsource(each)).body[0].body for each in config.__mro__ if is_dataclass(each)]
    said = {
        node.target.id
        for body in bodies
        for node, after in pairwise(body)
        if isinstance(node, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
    }
    for field in fields(config):
        assert field.default is not MISSING
        assert field.name in said, f"{config.__name__}.{field.name} has no docstring"
    assert REFERENCE[f"askwise.{config.__name__}"] == "settings.md"


@pytest.mark.parametrize("name", askwise.__all__)
def test_every_public_name_is_in_the_generated_reference_and_has_a_docstring(name: str) -> None:
    assert f"askwise.{name}" in REFERENCE or (name == "AskwiseError" and "askwise.errors" in REFERENCE)
    assert inspect.getdoc(getattr(askwise, name))


@pytest.mark.parametrize("module", [plots, gym], ids=lambda module: module.__name__)
def test_every_public_name_of_a_module_in_the_reference_has_a_docstring(module: ModuleType) -> None:
    assert module.__name__ in REFERENCE
    for name in module.__all__:
        assert inspect.getdoc(getattr(module, name)), f"{module.__name__}.{name} has no docstring"


def commands() -> dict[str, argparse.ArgumentParser]:
    action = next(a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    return dict(action.choices)


@pytest.mark.parametrize("command", commands())
def test_every_option_of_every_command(command: str) -> None:
    listed = {word.split()[0] for word in re.findall(r"`(--[^`]+)`", section(f"askwise {command}"))}
    there = {option for a in commands()[command]._actions for option in a.option_strings if option.startswith("--")} - {"--help"}
    assert listed == there, f"askwise {command}: docs/api.md and the command line differ"


OFFERED = [
    ("Model", Model),
    ("Model", LearnedModel),
    ("Model", Point),
    ("AcquisitionReport", AcquisitionReport),
    ("Session", Session),
    ("Session", PartialCase),
    ("Session", Step),
]


@pytest.mark.parametrize(("title", "of"), [*OFFERED, ("Providers", Provider), ("Providers", Decided)])
def test_everything_that_a_model_and_a_report_offer_is_on_the_overview(title: str, of: type) -> None:
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


def test_every_exported_name_is_on_the_overview() -> None:
    named_there = set(re.findall(r"\w+", PAGE))
    for name in (*askwise.__all__, *plots.__all__, *gym.__all__, *named.cards()):
        assert name in named_there, f"docs/api.md does not name {name}"


@pytest.mark.parametrize("name", plots.__all__)
def test_the_overview_shows_the_arguments_of_every_picture(name: str) -> None:
    shown = re.search(rf"`plots\.{name}\(([^)`]*(?:\(\))?[^)`]*)\)`", section("Plots"))
    assert shown, f"docs/api.md does not show how plots.{name} is called"
    given = [part.split("=")[0].strip() for part in shown[1].split(",")]
    assert given == list(inspect.signature(getattr(plots, name)).parameters)
