"""Pages that can be read offline: the same blocks as HTML and as Markdown. Whatever they say is escaped, pictures excepted, which
are made here."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:72rem;margin:2rem auto;padding:0 1rem;color:#222;background:#fff}
pre{background:#f6f6f6;padding:1rem;overflow-x:auto}svg{max-width:100%;height:auto}h1,h2,h3{font-weight:600;line-height:1.25}
.wide{overflow-x:auto}table{border-collapse:collapse;margin:.5rem 0 1.5rem}
caption{text-align:left;font-weight:600;padding:.3rem 0}
th,td{border:1px solid #bbb;padding:.25rem .6rem;text-align:left;vertical-align:top}thead th{background:#f0f0f0}
tbody th{font-weight:400}figure{margin:1rem 0}figcaption{color:#444}a{color:#0b5394}
@media print{body{max-width:none;margin:0;font-size:11px}.wide{overflow:visible}pre{white-space:pre-wrap}
tr,figure,pre{break-inside:avoid}h2,h3,caption{break-after:avoid}}"""


class Strong(str):
    """A cell of a table that stands out."""


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Code:
    """Lines to be shown as they are."""

    text: str


@dataclass(frozen=True)
class Table:
    """The first cell of each row says what the row is about."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Picture:
    """`svg` is ours and is not escaped; `words` say what is to be seen to those who cannot see it; `file` is its name where a
    page only links to it."""

    title: str
    words: str
    svg: str
    file: str = ""


Block = Heading | Words | Code | Table | Picture


def html(title: str, blocks: Sequence[Block], *, contents: bool = False) -> str:
    """A whole page, without scripts and without anything from elsewhere; `contents`: with links to its sections."""
    body = "\n".join(_html(block, f"part-{i}") for i, block in enumerate(blocks))
    links = "".join(
        f"<li><a href='#part-{i}'>{escape(b.text)}</a></li>"
        for i, b in enumerate(blocks)
        if isinstance(b, Heading) and b.level == 2
    )
    inside = f"<nav aria-label='Contents'><ul>{links}</ul></nav>\n" if contents and links else ""
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<meta name='viewport' content='width=device-width, initial-scale=1'><style>{STYLE}</style></head>\n"
        f"<body><main><h1>{escape(title)}</h1>\n{inside}{body}\n</main></body></html>\n"
    )


def fragment(blocks: Sequence[Block], name: str) -> str:
    """Some blocks to stand within another page; `name` tells their parts from those of others there."""
    return "<div>" + "\n".join(_html(block, f"{name}-{i}") for i, block in enumerate(blocks)) + "</div>"


def _html(block: Block, name: str) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level} id='{name}'>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Words):
        return f"<p>{escape(block.text)}</p>"
    if isinstance(block, Code):
        return f"<pre tabindex='0'>{escape(block.text)}</pre>"
    if isinstance(block, Picture):
        return (
            f"<figure><div role='img' aria-label='{escape(block.words)}'>{_own_names(block.svg, name)}</div>"
            f"<figcaption>{escape(block.title)}</figcaption></figure>"
        )
    head = "".join(f"<th scope='col'>{escape(cell)}</th>" for cell in block.head)
    rows = "".join(f"<tr>{''.join(_cell(cell, i) for i, cell in enumerate(row))}</tr>\n" for row in block.rows)
    return (
        f"<div class='wide' role='region' tabindex='0' aria-label='{escape(block.title)}'><table><caption>{escape(block.title)}"
        f"</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
    )


def _cell(text: str, i: int) -> str:
    inner = f"<strong>{escape(text)}</strong>" if isinstance(text, Strong) else escape(text)
    return f"<td>{inner}</td>" if i else f"<th scope='row'>{inner}</th>"


def _own_names(svg: str, name: str) -> str:
    """Several pictures in one page must not share the names of their parts."""
    return re.sub(r'(\bid="|href="#|url\(#)', lambda match: f"{match[1]}{name}-", svg)


def markdown(title: str, blocks: Sequence[Block]) -> str:
    """The same page as text; pictures are links to their files."""
    return "\n\n".join([f"# {escaped(title)}", *(_markdown(block) for block in blocks)]) + "\n"


def escaped(text: str) -> str:
    """Text in which Markdown finds nothing to interpret, on one line."""
    text = re.sub(r"([\\`*\[\]|~]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9]))", r"\\\1", " ".join(text.split()))
    text = escape(text, quote=False)
    return re.sub(r"^([#+\-]|\d+[.)])(?= )", r"\\\1", text)


def _markdown(block: Block) -> str:
    if isinstance(block, Heading):
        return f"{'#' * block.level} {escaped(block.text)}"
    if isinstance(block, Words):
        return escaped(block.text)
    if isinstance(block, Code):
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", block.text)), default=0))
        return f"{fence}\n{block.text}\n{fence}"
    if isinstance(block, Picture):
        return f"![{escaped(block.words)}]({block.file})\n\n{escaped(block.title)}"
    rows = [[f"**{escaped(c)}**" if isinstance(c, Strong) else escaped(c) for c in row] for row in (block.head, *block.rows)]
    lines = ["| " + " | ".join(row) + " |" for row in (rows[0], ["---"] * len(block.head), *rows[1:])]
    return "\n".join([f"{escaped(block.title)}:\n", *lines])
