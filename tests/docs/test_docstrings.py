"""The reference is made of docstrings: those of public names tell every parameter, and their examples work."""

import doctest
import inspect
import re

import pytest

import askwise

PUBLIC = {name: getattr(askwise, name) for name in askwise.__all__}
METHODS = {
    f"{owner}.{name}": getattr(PUBLIC[owner], name)
    for owner, names in {
        "CostlyClassifier": ("fit", "acquire", "at", "save"),
        "Problem": ("build",),
        "Schema": ("build",),
    }.items()
    for name in names
}
# made by functions that are documented, or explained field by field
WITHOUT_PARAMETERS = {"Budget", "FamilyConfig", "StackConfig", "TrainConfig", "Problem", "Schema"}
DESCRIBED = {**PUBLIC, **METHODS}


def section(what, title: str) -> str:
    text = inspect.getdoc(what) or ""
    match = re.search(rf"^{title}\n-+\n(.*?)(?=^\w[\w ]*\n-+\n|\Z)", text, re.M | re.S)
    return match[1] if match else ""


def parameters(what) -> list[str]:
    """As they are declared, without `self`."""
    if inspect.isclass(what) and issubclass(what, BaseException):
        return []
    names = inspect.signature(what).parameters.values()
    return [f"**{p.name}" if p.kind is p.VAR_KEYWORD else p.name for p in names if p.name != "self"]


@pytest.mark.parametrize("name", DESCRIBED)
def test_a_public_name_is_explained_in_a_sentence(name):
    assert re.match(r"[A-Z].*?\.", inspect.getdoc(DESCRIBED[name]) or "", re.S)


@pytest.mark.parametrize("name", [name for name in DESCRIBED if name not in WITHOUT_PARAMETERS])
def test_every_parameter_is_described_in_the_order_of_the_signature(name):
    described = re.findall(r"^(\*{0,2}\w+)(?: : .+)?$", section(DESCRIBED[name], "Parameters"), re.M)
    assert described == parameters(DESCRIBED[name])


@pytest.mark.parametrize("name", PUBLIC)
def test_examples_in_docstrings_work(name):
    tests = doctest.DocTestFinder(recurse=False).find(PUBLIC[name], name, globs={})
    runner = doctest.DocTestRunner(verbose=False)
    assert [runner.run(test).failed for test in tests if test.examples] == [0] * sum(bool(test.examples) for test in tests)
