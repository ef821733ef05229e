"""docs/paper_map.md and the code tell the same story."""

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest
from tests.support.maps import resolve

from askwise.paper.config import TrainConfig

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src"


def rows() -> dict[str, set[str]]:
    """From what is in the paper to the names the map gives for it."""
    found = {}
    for line in (ROOT / "docs/paper_map.md").read_text().splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 3 and cells[0] not in ("in the paper", "---"):
            found[cells[0]] = set(re.findall(r"`(askwise\.[\w.]+)`", cells[2]))
    return found


MAP = rows()


def paper_lines() -> list[tuple[str, str]]:
    """(item, qualified name of what the docstring belongs to) of every `Paper:` line."""
    found = []

    def visit(node: ast.AST, name: str) -> None:
        for line in (ast.get_docstring(node) or "").splitlines():
            if line.startswith("Paper: "):
                found.extend((item.strip(), name) for item in line.removeprefix("Paper: ").split(";"))
        for child in getattr(node, "body", []):
            if isinstance(child, ast.FunctionDef | ast.ClassDef):
                visit(child, f"{name}.{child.name}")

    for path in sorted(SOURCE.rglob("*.py")):
        name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
        visit(ast.parse(path.read_text()), name.removesuffix(".__init__"))
    return found


def test_the_map_and_the_code_have_enough_paper_lines() -> None:
    assert len(paper_lines()) > 40
    assert len(MAP) > 60
    assert {f"eq. {n}" for n in range(1, 13)} <= set(MAP)


@pytest.mark.parametrize(("item", "name"), paper_lines())
def test_every_paper_line_is_on_the_map(item: str, name: str) -> None:
    assert item in MAP, f"{name} says 'Paper: {item}', which is no row of docs/paper_map.md"
    assert name in MAP[item], f"the row {item!r} of docs/paper_map.md does not name {name}"


@pytest.mark.parametrize("name", sorted(set().union(*MAP.values())))
def test_every_name_on_the_map_exists(name: str) -> None:
    resolve(name)


def test_every_comment_like_paper_line_is_in_a_docstring() -> None:
    for path in SOURCE.rglob("*.py"):
        assert "# Paper:" not in path.read_text(), f"{path.name}: put the line into a docstring, where the map sees it"


MAP_FIELDS = {
    name.rsplit(".", 1)[1] for names in MAP.values() for name in names if name.startswith("askwise.paper.config.TrainConfig.")
} - {"paper", "eta", "epsilon", "lr", "lam_step"}


def test_every_number_of_the_appendix_is_a_field_on_the_map() -> None:
    from askwise.paper.config import TrainConfig

    table = {name for name in MAP_FIELDS if name in {f.name for f in fields(TrainConfig)}}
    assert table == MAP_FIELDS, "a row of table A.1 names a setting that does not exist"
    assert len(table) == 16, "table A.1 (a) has 16 rows"


def switches() -> list[tuple[str, str]]:
    """(setting as printed, setting for tables) of the list of what we do otherwise, as `name=value`."""
    lines = (ROOT / "docs/paper_map.md").read_text().split("how to switch it off\n")[1].splitlines()
    cells = [[c.strip() for c in line.strip("|").split("|")] for line in lines if line.startswith("|")][2:]
    written = [[re.findall(r"`(\w+=[^`]+)`", cell) for cell in row[2:]] for row in cells]
    return [(printed[0], tables[0] if tables else printed[0]) for printed, tables in written if printed]


@pytest.mark.parametrize(("printed", "tables"), switches())
def test_the_settings_of_what_we_do_otherwise_are_those_of_the_code(printed: str, tables: str) -> None:
    for written, config in ((printed, TrainConfig.paper("diabetes")), (tables, TrainConfig.for_size(2_000, 20))):
        name, value = written.split("=")
        assert getattr(config, name) == ast.literal_eval(value)
