"""family/README.md, docs/family_map.md and the code tell the same story."""

import ast
import re
from pathlib import Path

import pytest
from tests.support.maps import resolve

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"
README = (SOURCE / "askwise/family/README.md").read_text()
MODULES = [
    *sorted((SOURCE / "askwise/family").glob("*.py")),
    SOURCE / "askwise/components/networks.py",
    SOURCE / "askwise/core/scoring.py",
]


def rows() -> dict[str, tuple[set[str], set[str]]]:
    """From an equation to the names and the tests that the map gives for it."""
    table = {}
    for line in (ROOT / "docs/family_map.md").read_text().splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if len(cells) == 4 and re.fullmatch(r"F\d+", cells[0]):
            table[cells[0]] = set(re.findall(r"`(askwise\.[\w.]+)`", cells[2])), set(re.findall(r"`([\w/]+\.py::\w+)`", cells[3]))
    return table


MAP = rows()


def equations_in_code() -> list[tuple[str, str]]:
    """(equation, qualified name) of every `Family:` line, and of every (F...) that a docstring names."""
    pairs = []

    def visit(node: ast.AST, name: str) -> None:
        text = ast.get_docstring(node) or ""
        numbers = re.findall(r"\((F\d+)\)", text)
        for line in re.findall(r"^Family: (.*)$", text, re.M):
            numbers += [number.strip() for number in line.split(";")]
        pairs.extend((number, name) for number in numbers)
        for child in getattr(node, "body", []):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                visit(child, f"{name}.{child.name}")

    for path in MODULES:
        visit(ast.parse(path.read_text()), ".".join(path.relative_to(SOURCE).with_suffix("").parts))
    return pairs


def test_every_equation_of_the_readme_has_one_row() -> None:
    numbers = re.findall(r"\((F\d+)\) ", README)
    there = sorted(set(numbers), key=lambda number: int(number[1:]))
    assert there == [f"F{n}" for n in range(1, len(there) + 1)], "equations are numbered without a gap"
    assert list(MAP) == there, "docs/family_map.md has a row for each equation of family/README.md, in the same order"


@pytest.mark.parametrize("number", MAP)
def test_every_equation_has_code_and_a_test(number: str) -> None:
    code, tests = MAP[number]
    assert code, f"the row {number} of docs/family_map.md names no function"
    assert tests, f"the row {number} of docs/family_map.md names no test"


@pytest.mark.parametrize(("number", "name"), equations_in_code())
def test_every_equation_that_the_code_names_is_on_the_map(number: str, name: str) -> None:
    assert number in MAP, f"{name} names {number}, which is no row of docs/family_map.md"
    assert name in MAP[number][0], f"the row {number} of docs/family_map.md does not name {name}"


@pytest.mark.parametrize("name", sorted(set().union(*(code for code, _ in MAP.values()))))
def test_every_name_on_the_map_exists(name: str) -> None:
    assert callable(resolve(name)), f"{name} is no function and no class"


@pytest.mark.parametrize("test", sorted(set().union(*(tests for _, tests in MAP.values()))))
def test_every_test_on_the_map_exists(test: str) -> None:
    path, name = test.split("::")
    tree = ast.parse((ROOT / "tests" / path).read_text())
    assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"there is no test {test}"


def test_every_loss_is_on_the_map_and_has_its_equation() -> None:
    tree = ast.parse((SOURCE / "askwise/family/losses.py").read_text())
    public = [node for node in tree.body if isinstance(node, ast.FunctionDef) and not node.name.startswith("_")]
    assert len(public) >= 10
    for node in public:
        assert "Family: F" in (ast.get_docstring(node) or ""), f"losses.{node.name} does not say which equation it is"


def symbols() -> dict[str, list[str]]:
    """From a symbol of the README's table to its names in the code."""
    lines = [line.strip("|").split("|") for line in README.splitlines() if line.startswith("|") and line.count("|") == 4]
    return {cells[0].strip(): re.findall(r"`([\w.]+)`", cells[1]) for cells in lines if cells[0].strip() not in ("symbol", "---")}


def test_every_name_of_the_table_of_symbols_is_used_in_the_code() -> None:
    words = set(re.findall(r"\w+", " ".join(path.read_text() for path in MODULES)))
    for symbol, names in symbols().items():
        for name in names:
            assert set(name.split(".")) <= words, f"the README says that {symbol} is {name!r} in the code, which has no such name"


def test_every_setting_that_the_readme_names_exists() -> None:
    from askwise.family.config import DESIGN, FamilyConfig

    text = README[README.index("## 1.") :]
    for name in re.findall(r"`(\w+_(?:share|steps|power|rate|norm|tests|rows|ratio|softness))`", text):
        assert hasattr(FamilyConfig(), name) or hasattr(DESIGN, name), f"the README names a setting {name!r}"
