"""How methods are found: those of other packages like our own, and what is said when that fails."""

import re
import sys
from pathlib import Path

import pytest

from askwise import methods
from askwise.core.budget import Tradeoff
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError
from askwise.methods import baseline

ROOT = Path(__file__).parents[2]


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Puts a package with one module and some entry points where Python looks for packages, as an installer would."""

    def call(package: str, points: str, code: str = "") -> None:
        folder = tmp_path / package
        info = folder / f"{package}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(f"[askwise.methods]\n{points}\n")
        (folder / f"{package}_code.py").write_text(code)
        monkeypatch.syspath_prepend(str(folder))
        monkeypatch.delitem(sys.modules, f"{package}_code", raising=False)

    return call


ALWAYS = """'Always the same.'

from askwise.core.policy import Always

def fit(problem, validation, budget, *, seconds=60, seed=0):
    return Always(1)
"""


def test_own_methods_are_found_through_entry_points():
    assert methods.get("baseline") is baseline
    assert "adapt-gbrt" in methods.names()
    assert methods.names() == sorted(methods.names())
    listed = re.search(r'entry-points."askwise.methods"\]\n(.*?)\n\n', (ROOT / "pyproject.toml").read_text(), re.S)
    assert {line.split(" = ")[0] for line in listed[1].splitlines()} <= set(methods.names())
    files = {p.stem.replace("_", "-") for p in (ROOT / "src" / "askwise" / "methods").glob("*.py")} - {"--init--"}
    assert files == {line.split(" = ")[0] for line in listed[1].splitlines()}, "a method that is not in pyproject.toml"


def test_a_method_of_another_package(install):
    before = methods.names()
    install("elsewhere", "always = elsewhere_code", ALWAYS)
    assert methods.names() == sorted([*before, "always"])
    assert methods.about()["always"] == "Always the same."
    assert "elsewhere_code" not in sys.modules  # only a name so far
    problem = Problem.build(Schema.build(["a"], [0, 1]), [[0.0], [1.0]], [0, 1])
    assert methods.get("always").fit(problem, problem, Tradeoff(1)).decision == 1


def test_anything_with_a_fit_is_a_method(install):
    install("elsewhere", "here = elsewhere_code:Here", "class Here:\n    @staticmethod\n    def fit(*a, **k): return 3")
    assert methods.get("here").fit() == 3


def test_unknown_methods_are_refused_with_a_guess():
    with pytest.raises(InputError, match=r"^there is no method 'static_gbn'; did you mean 'static-gbm'\?$"):
        methods.get("static_gbn")
    with pytest.raises(InputError, match=r"^there is no method 'xyz'; there are 'aaco', .*, 'static-linear'$"):
        methods.get("xyz")


def test_one_name_in_two_packages_is_refused(install):
    install("elsewhere", "dime = elsewhere_code", ALWAYS)
    assert methods.names().count("dime") == 1
    with pytest.raises(InputError, match=r"method 'dime' comes from two packages, .*; uninstall one$"):
        methods.get("dime")


def test_what_is_no_method(install):
    install("elsewhere", "bad = elsewhere_code\nworse = elsewhere_code:nothing\ngone = elsewhere_missing", "x = 1")
    with pytest.raises(InputError, match=r"method 'bad' is elsewhere_code, which has no function fit\(problem, validation"):
        methods.get("bad")
    for name in ("worse", "gone"):
        with pytest.raises(InputError, match=f"method '{name}' is elsewhere_.*, which cannot be imported: .*elsewhere_.*"):
            methods.get(name)
    assert {methods.about()[name] for name in ("bad", "worse", "gone")} == {""}
