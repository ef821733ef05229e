"""Names and words from people's data, made safe for where they go: a terminal, a cell of a spreadsheet, a list within a cell."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

# what a terminal obeys, what turns or hides the text around it, and what cannot be written at all
_OBEYED = re.compile("[\x00-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")
_OBEYED_IN_LINES = re.compile(_OBEYED.pattern.replace("\x00-\x1f", "\x00-\x09\x0b-\x1f"))
_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


def give_or_take(error: float | None) -> str:
    """A standard error, to be written after its figure; nothing where it is not known."""
    if error is None:
        return ""
    return f" ± {error:.0f}" if error >= 100 else f" ± {error:.2g}"


def printable(text: object) -> str:
    """Text for one line of a terminal: control characters are written as escapes, such as \\x1b."""
    return _OBEYED.sub(_escaped, str(text))


def _escaped(character: re.Match[str]) -> str:
    return character[0].encode("unicode_escape").decode()


def short(name: Any, most: int = 30) -> str:
    """A name on one line, with its middle left out if it is long: the end often tells two names apart."""
    text = printable(" ".join(str(name).split())) or "?"
    left = (most - 1) * 2 // 3
    return text if len(text) <= most else f"{text[:left].rstrip()}…{text[len(text) - (most - 1 - left) :].lstrip()}"


def encoded(text: str) -> bytes:
    """Text for a file or an answer, in UTF-8. Of names of files that are not Unicode, the bytes are written as escapes, such as
    \\udcff, which JSON reads as what they were."""
    return text.encode("utf-8", "backslashreplace")


class Escaping:
    """A stream for people: control characters other than line ends are written as escapes."""

    def __init__(self, stream: Any) -> None:
        self.as_it_is = stream

    def write(self, text: str) -> int:
        self.as_it_is.write(_OBEYED_IN_LINES.sub(_escaped, text))
        return len(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.as_it_is, name)


def unescaping(stream: Any) -> Any:
    """The stream below, for what is no text for people."""
    return stream.as_it_is if isinstance(stream, Escaping) else stream


def cell(text: str) -> str:
    """Text for a cell of a CSV file. A spreadsheet would run what begins like a formula, so that gets an apostrophe before it;
    numbers are left alone. `from_cell` takes it away again."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.fullmatch(text) else text


def from_cell(text: str) -> str:
    """The inverse of `cell`."""
    return text[1:] if text.startswith("'") and _FORMULA.match(text) else text


def joined(names: Iterable[str], separator: str = ";") -> str:
    """A list as one text; within a name, the separator and the backslash get a backslash before them."""
    return separator.join(name.replace("\\", "\\\\").replace(separator, f"\\{separator}") for name in names)


def split(text: str, separator: str = ";") -> list[str]:
    """The inverse of `joined`; other backslashes are what they are."""
    if not text:
        return []
    parts, letters = [""], iter(text)
    for letter in letters:
        if letter == "\\":
            after = next(letters, "")
            parts[-1] += after if after in ("\\", separator) else letter + after
        elif letter == separator:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
