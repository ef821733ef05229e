"""Every code block in the docs runs, page by page, in the order it is read."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "benchmarks").rglob("README.md"))]


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)


@pytest.mark.parametrize("page", [p for p in PAGES if blocks(p)], ids=name)
def test_the_code_on_the_page_runs(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": page.stem}
    for block in blocks(page):
        exec(compile(block, str(page), "exec"), names)
    assert capsys.readouterr().out


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"], ids=name)
def test_every_link_between_pages_has_a_target(page: Path) -> None:
    for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text()):
        assert (page.parent / target).exists(), f"{page.name} links to {target}, which is not there"


def test_every_dev_command_in_the_docs_exists() -> None:
    known = set(re.findall(r"^    (\w+)\)", (ROOT / "dev").read_text(), re.M))
    assert {"run", "test", "sh"} <= known
    for page in PAGES:
        for word in re.findall(r"\./dev (\w+)", page.read_text()):
            assert word in known, f"{page.name} says ./dev {word}"


def test_the_readme_has_at_most_700_words() -> None:
    assert len((ROOT / "README.md").read_text().split()) <= 700


def test_every_picture_in_the_readme_is_a_file_of_the_repository() -> None:
    pictures = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", (ROOT / "README.md").read_text())
    assert len(pictures) == 2
    assert all((ROOT / picture).is_file() for picture in pictures)


def test_every_folder_of_benchmarks_is_on_the_page_about_them() -> None:
    page = (ROOT / "benchmarks/README.md").read_text()
    for folder in {file.parent.name for file in (ROOT / "benchmarks").glob("*/__init__.py")}:
        assert f"benchmarks.{folder}." in page or f"({folder}/" in page, f"benchmarks/README.md does not name {folder}"
