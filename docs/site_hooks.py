"""Hooks of the documentation site, called by MkDocs.

Some pages are not in docs/: the README, the changelog, the benchmarks. They stay where people look for them, and the site shows
them too. Links are written for readers of the repository, so the site changes them: to a page of the site where there is one, and
to the repository where there is none. Notebooks are run, and become pages with their outputs and pictures.
"""

from __future__ import annotations

import posixpath
import re
import sys
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

sys.path.insert(0, str(Path(__file__).parent))
import site_notebooks

ROOT = Path(__file__).parents[1]
REPOSITORY = "https://github.com/askwise/askwise/blob/main/"
OUTSIDE = {  # path in the repository: path in the site
    "README.md": "index.md",
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "src/askwise/family/README.md": "family.md",
}


def outside() -> dict[str, str]:
    """All pages and pictures that are not in docs/: path in the repository, path in the site."""
    benchmarks = [file for ending in ("md", "svg") for file in sorted((ROOT / "benchmarks").rglob(f"*.{ending}"))]
    paths = {file.relative_to(ROOT).as_posix(): file.relative_to(ROOT).as_posix() for file in benchmarks}
    return paths | {source: target for source, target in OUTSIDE.items() if (ROOT / source).exists()}


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for source, target in outside().items():
        files.append(File.generated(config, target, abs_src_path=str(ROOT / source)))
    notebooks = [file for file in files if file.src_uri.endswith(".ipynb")]
    for file, notebook in zip(notebooks, site_notebooks.run_all([Path(file.abs_src_path) for file in notebooks]), strict=True):
        files.remove(file)
        folder, name = posixpath.split(file.src_uri)
        text, pictures = site_notebooks.page(notebook, name.removesuffix(".ipynb"))
        files.append(File.generated(config, file.src_uri.replace(".ipynb", ".md"), content=text))
        for picture, content in pictures.items():
            files.append(File.generated(config, f"{folder}/{picture}", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    sites = outside()
    here = {target: source for source, target in sites.items()}.get(page.file.src_uri, f"docs/{page.file.src_uri}")

    def link(match: re.Match[str]) -> str:
        target, hash_sign, anchor = match[2].partition("#")
        path = posixpath.normpath(posixpath.join(posixpath.dirname(here), target))
        site = sites.get(path, path.removeprefix("docs/").replace(".ipynb", ".md") if path.startswith("docs/") else None)
        if site is None or files.get_file_from_path(site) is None:
            if not (ROOT / path).exists():
                return match[0]  # MkDocs reports it
            return f"{match[1]}{REPOSITORY}{path}{hash_sign}{anchor})"
        return f"{match[1]}{posixpath.relpath(site, posixpath.dirname(page.file.src_uri) or '.')}{hash_sign}{anchor})"

    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.M | re.S)  # code stays as it is
    return "".join(part if part.startswith("```") else re.sub(r"(\]\()(?!https?:|#)([^)\s]+)\)", link, part) for part in parts)


def on_post_build(config: MkDocsConfig) -> None:
    """The theme can load things from elsewhere: for diagrams, old browsers, and counts of stars. No page needs them."""
    for file in Path(config.site_dir).glob("assets/javascripts/bundle.*.js"):
        file.write_text(re.sub(r"""(["`])https://(unpkg\.com|api\.github\.com)/[^"`]*\1""", '""', file.read_text()))
