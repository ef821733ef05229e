"""The documentation site builds without a warning, runs every notebook, and loads nothing from elsewhere."""

import functools
import http.server
import json
import os
import re
import subprocess
import sys
import threading
from html.parser import HTMLParser
from pathlib import Path

import pytest
from tests.web.browser import IN_CI, MISSING, chromium

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "docs/tutorials").glob("*.ipynb"))
LOADED = {"script": "src", "link": "href", "img": "src", "iframe": "src", "source": "src", "object": "data", "video": "src"}


class Assets(HTMLParser):
    """What a page loads by itself, unlike links, which people follow."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        if tag in LOADED and not (tag == "link" and attributes.get("rel") in ("canonical", "next", "prev")):
            self.addresses.append(attributes.get(LOADED[tag]) or "")


def elsewhere(file: Path) -> list[str]:
    """Addresses of other hosts that a file of the site would load."""
    text = file.read_text()
    if file.suffix == ".html":
        return [address for address in Assets(text).addresses if re.match(r"(https?:)?//", address)]
    if file.suffix == ".css":
        return re.findall(r"""(?:url\(|@import\s)\s*["']?(?:https?:)?//[^"')]+""", text)
    return [address for address in re.findall(r"""["'`](?:https?:)?//[a-z][\w-]*\.[^"'`\s]*""", text) if "w3.org" not in address]


def requests_of(site: Path, pages: list[str]) -> list[str]:
    """Every address that a browser asks for when it opens these pages."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base, asked = f"http://127.0.0.1:{server.server_port}/", []
    try:
        with chromium() as browser:
            page = browser.new_page()
            page.on("request", lambda request: asked.append(request.url))
            for name in pages:
                page.goto(base + name, wait_until="networkidle")
    finally:
        server.shutdown()
        server.server_close()
    return [address for address in asked if not address.startswith((base, "data:"))]


def test_the_site_is_complete_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    settings = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=settings, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stdout + done.stderr

    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > 40
    for notebook in NOTEBOOKS:
        page = (tmp_path / "tutorials" / notebook.stem / "index.html").read_text()
        assert f"../{notebook.stem}_1.png" in page, f"{notebook.name} shows no picture"
        assert str(ROOT) not in page
    assert not list(tmp_path.rglob("*.ipynb"))

    files = [*pages, *tmp_path.rglob("*.css"), *tmp_path.rglob("*.js")]
    assert {str(file.relative_to(tmp_path)): elsewhere(file) for file in files if elsewhere(file)} == {}
    if MISSING and not IN_CI:
        return
    assert requests_of(tmp_path, ["", "tutorials/costs_and_budgets/", "api/", "benchmarks/paper/"]) == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_are_committed_without_outputs(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    assert all(cell["outputs"] == [] and cell["execution_count"] is None for cell in cells if cell["cell_type"] == "code")
    assert any("assert " in line for cell in cells if cell["cell_type"] == "code" for line in cell["source"])


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_link_of_a_notebook_has_a_target(path: Path) -> None:
    cells = json.loads(path.read_text())["cells"]
    text = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for target in re.findall(r"\]\((?!http)([^)#]+)", text):
        assert (path.parent / target).exists(), f"{path.name} links to {target}, which does not exist"


def test_there_are_four_tutorials_and_the_site_lists_them() -> None:
    assert len(NOTEBOOKS) == 4
    nav = (ROOT / "mkdocs.yml").read_text()
    assert all(f"tutorials/{path.stem}.md" in nav for path in NOTEBOOKS)


def test_every_page_of_the_docs_is_in_the_navigation() -> None:
    nav = (ROOT / "mkdocs.yml").read_text()
    for page in sorted((ROOT / "docs").rglob("*.md")):
        assert page.relative_to(ROOT / "docs").as_posix() in nav
