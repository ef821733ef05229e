"""A page that opens offline: text, a table and pictures, nothing fetched from anywhere."""

from __future__ import annotations

from html import escape

STYLE = """body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#222}
pre{background:#f6f6f6;padding:1rem;overflow-x:auto}svg{max-width:100%;height:auto}h1,h2{font-weight:600}"""


def page(title: str, words: str, table: str, pictures: list[tuple[str, str]]) -> str:
    """`pictures` are (title, svg) pairs made by us; everything else is escaped."""
    parts = [f"<h2>{escape(name)}</h2>\n<figure role='img' aria-label='{escape(name)}'>{svg}</figure>" for name, svg in pictures]
    paragraphs = "".join(f"<p>{escape(line)}</p>" for line in words.splitlines())
    return (
        f"<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>{escape(title)}</title>"
        f"<meta name='viewport' content='width=device-width'><style>{STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n"
        f"{paragraphs}\n<pre>{escape(table)}</pre>\n{''.join(parts)}\n</body></html>\n"
    )
