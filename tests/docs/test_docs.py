"""Every code block in the docs runs, page by page, in the order it is read."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=lambda p: p.name)
def test_the_code_on_the_page_runs(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), names)
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda p: p.name)
def test_links_between_pages_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_commands_in_the_docs_are_those_of_dev() -> None:
    known = set(re.findall(r"^    (\w+)\)", (ROOT / "dev").read_text(), re.M))
    assert {"run", "test", "sh"} <= known
    for page in PAGES:
        for word in re.findall(r"\./dev (\w+)", page.read_text()):
            assert word in known, f"{page.name} says ./dev {word}"
