"""Pages that can be read offline: the same blocks as HTML and as Markdown. Whatever they say is escaped, pictures excepted, which
are made here."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from html import escape
from importlib import resources

LARGER = 1.35  # than it was drawn
MIN_WIDE = 9  # letters of a column of a table in a terminal, unless it has many
NUMBER = re.compile(r"[<>]? ?[-−]?[\d.,]+( ?± ?[\d.,]+)?( ?%)?|–")


@cache
def style() -> str:
    """The one sheet of all pages: those of the service, and reports."""
    return (resources.files("askwise.reports") / "style.css").read_text()


class Strong(str):
    """A cell of a table that stands out."""


@dataclass(frozen=True)
class Heading:
    text: str
    level: int = 2


@dataclass(frozen=True)
class Words:
    """A paragraph. `lead`: the one that says what the page is about."""

    text: str
    lead: bool = False


@dataclass(frozen=True)
class Facts:
    """Names and figures, side by side."""

    pairs: tuple[tuple[str, str], ...]


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
    """`title` is the line below it; `svg` is ours and is not escaped; `words` say what is to be seen to those who cannot see it;
    `file` is its name where a page only links to it; `table` has the same numbers."""

    title: str
    words: str
    svg: str
    file: str = ""
    table: Table | None = None


@dataclass(frozen=True)
class Beside:
    """Two columns, where there is room for two."""

    left: tuple[Block, ...]
    right: tuple[Block, ...]


Block = Heading | Words | Facts | Code | Table | Picture | Beside


def html(title: str, blocks: Sequence[Block], *, contents: bool = False) -> str:
    """A whole page, without scripts and without anything from elsewhere; `contents`: with links to its sections."""
    body, inside_card = [], False
    for i, block in enumerate(blocks):
        if isinstance(block, Heading) and block.level == 2:  # a section is a card
            body.append(f"{'</section>' if inside_card else ''}<section class='card' aria-labelledby='part-{i}'>")
            inside_card = True
        body.append(_html(block, f"part-{i}"))
    body.append("</section>" if inside_card else "")
    links = "".join(
        f"<li><a href='#part-{i}'>{escape(b.text)}</a></li>"
        for i, b in enumerate(blocks)
        if isinstance(b, Heading) and b.level == 2
    )
    inside = f"<nav aria-label='Contents'><ul>{links}</ul></nav>\n" if contents and links else ""
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'><meta name='color-scheme' content='light dark'>"
        f"<style>{style()}</style></head>\n<body class='report'><main><h1>{escape(title)}</h1>\n{inside}"
        + "\n".join(body)
        + "\n</main></body></html>\n"
    )


def fragment(blocks: Sequence[Block], name: str) -> str:
    """Some blocks to stand within another page; `name` tells their parts from those of others there."""
    return "<div>" + "\n".join(_html(block, f"{name}-{i}") for i, block in enumerate(blocks)) + "</div>"


def _html(block: Block, name: str) -> str:
    if isinstance(block, Heading):
        return f"<h{block.level} id='{name}'>{escape(block.text)}</h{block.level}>"
    if isinstance(block, Words):
        return f"<p{' class=lead' if block.lead else ''}>{escape(block.text)}</p>"
    if isinstance(block, Facts):
        pairs = "".join(f"<div><dt>{escape(what)}</dt><dd>{escape(figure)}</dd></div>" for what, figure in block.pairs)
        return f"<dl class='facts'>{pairs}</dl>"
    if isinstance(block, Code):
        return f"<pre tabindex='0'>{escape(block.text)}</pre>"
    if isinstance(block, Beside):
        sides = (block.left, "left"), (block.right, "right")
        inner = ("\n".join(_html(each, f"{name}-{side}-{i}") for i, each in enumerate(of)) for of, side in sides)
        return "<div class='columns even'>" + "".join(f"<div>{side}</div>" for side in inner) + "</div>"
    if isinstance(block, Picture):
        numbers = "" if block.table is None else f"<details><summary>The numbers</summary>{_html(block.table, name)}</details>"
        return (
            f"<figure><div class='picture'{_widest(block.svg)} role='img' tabindex='0' aria-label='{escape(block.words)}'>"
            f"{_own_names(block.svg, name)}</div>"
            f"<figcaption>{escape(block.title)}</figcaption>{numbers}</figure>"
        )
    number = _numbers(block)
    head = "".join(f"<th scope='col'{_side(number[i])}>{escape(cell)}</th>" for i, cell in enumerate(block.head))
    rows = "".join(f"<tr>{''.join(_cell(cell, i, number[i]) for i, cell in enumerate(row))}</tr>\n" for row in block.rows)
    return (
        f"<div class='wide' role='region' tabindex='0' aria-label='{escape(block.title)}'><table><caption>{escape(block.title)}"
        f"</caption>\n<thead><tr>{head}</tr></thead>\n<tbody>{rows}</tbody></table></div>"
    )


def _numbers(table: Table) -> list[bool]:
    """Which columns hold numbers alone; they go from the right."""
    return [all(NUMBER.fullmatch(row[i]) for row in table.rows) for i in range(len(table.head))]


def as_text(table: Table, least: int = MIN_WIDE) -> str:
    """A table for a terminal, without its title. A row that stands out has a > before it, a single cell a * after it. `least` is
    how many letters wide a column is at least."""
    wide = [max(least, *(len(row[i]) for row in table.rows)) for i in range(len(table.head))]
    heads = [textwrap.wrap(name, n, break_long_words=False) for name, n in zip(table.head, wide, strict=True)]
    wide = [max(n, *map(len, lines)) for n, lines in zip(wide, heads, strict=True)]
    high = max(map(len, heads))
    above = zip(*([""] * (high - len(lines)) + lines for lines in heads), strict=True)
    numbers = _numbers(table)

    def line(cells: Sequence[str]) -> str:
        whole = all(isinstance(cell, Strong) for cell in cells)
        parts = [
            f"{cell:{'>' if number else '<'}{n}}" + ("*" if isinstance(cell, Strong) and not whole else " ")
            for cell, n, number in zip(cells, wide, numbers, strict=True)
        ]
        return f"{'  > ' if whole else '    '}{' '.join(parts)}".rstrip()

    rule = "    " + "-" * (sum(wide) + 2 * len(wide) - 2)
    return "\n".join([*map(line, above), rule, *map(line, table.rows)])


def _widest(svg: str) -> str:
    """A picture takes the room there is, but its letters do not get much larger than those of the text."""
    width = re.match(r'<svg[^>]*? width="([\d.]+)pt"', svg)
    return "" if width is None else f" style='max-width:{LARGER * float(width[1]):.0f}pt'"


def _side(number: bool) -> str:
    return " class='right'" if number else ""


def _cell(text: str, i: int, number: bool) -> str:
    inner = f"<strong>{escape(text)}</strong>" if isinstance(text, Strong) else escape(text)
    return f"<td{_side(number)}>{inner}</td>" if i else f"<th scope='row'{_side(number)}>{inner}</th>"


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
    if isinstance(block, Facts):
        return "\n".join(f"- {escaped(what)}: {escaped(figure)}" for what, figure in block.pairs)
    if isinstance(block, Code):
        fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", block.text)), default=0))
        return f"{fence}\n{block.text}\n{fence}"
    if isinstance(block, Beside):
        return "\n\n".join(map(_markdown, (*block.left, *block.right)))
    if isinstance(block, Picture):
        parts = [f"![{escaped(block.words)}]({block.file})"] if block.file else []
        return "\n\n".join([*parts, escaped(block.title), *([] if block.table is None else [_markdown(block.table)])])
    rows = [[f"**{escaped(c)}**" if isinstance(c, Strong) else escaped(c) for c in row] for row in (block.head, *block.rows)]
    lines = ["| " + " | ".join(row) + " |" for row in (rows[0], ["---"] * len(block.head), *rows[1:])]
    return "\n".join([f"{escaped(block.title)}:\n", *lines])
