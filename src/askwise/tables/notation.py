"""How numbers are written: with a decimal point or a decimal comma, with or without marks between thousands."""

from __future__ import annotations

import re
from collections.abc import Iterable

MARKS = (".", ",")
_ABSENT = "- -- --- . * ? na n/a n.a. n.a nd n.d. nan none null nil unknown missing k.a."
_MISSING = {"", "not done", "not known", "k. a.", *_ABSENT.split()}


def _pattern(mark: str) -> str:
    other = re.escape("," if mark == "." else ".")
    mark = re.escape(mark)
    thousands = rf"[1-9]\d{{0,2}}(?P<group>[{other} '’\u00a0\u202f])\d{{3}}(?:(?P=group)\d{{3}})*"
    return rf"[+-]?(?:(?:{thousands}|\d+)(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?"


_NUMBER = {mark: re.compile(_pattern(mark), re.ASCII) for mark in MARKS}
_FIRST = frozenset("+-.,0123456789")
_BETWEEN = re.compile("[ '’\u00a0\u202f]")
# a bound, and a unit: <5, 12 mg, 40 %. One letter needs a space before it: 12A is rather a code
_BEFORE = re.compile(r"^[<>≤≥~≈=±]+\s*")
_UNIT = re.compile(r"(?:\s*(?:%|‰|°\s?[CFK]?)|\s+[^\W\d_][\w/·^²³]{0,11}|[^\W\d_][\w/·^²³]{1,11})$")


def plain(text: str, mark: str) -> str | None:
    """A number with this decimal mark, as Python writes it: of '1.234,5' and a comma '1234.5'. None if it is no such number."""
    text = text.strip()
    if text[:1] not in _FIRST or not _NUMBER[mark].fullmatch(text):  # the first test is the faster one, and mostly enough
        return None
    return _BETWEEN.sub("", text).replace("," if mark == "." else ".", "").replace(mark, ".")


def marks_of(text: str) -> tuple[str, ...]:
    """The decimal marks with which this is a number. Both, where it is the same number either way or nobody can tell."""
    return tuple(mark for mark in MARKS if plain(text, mark) is not None)


def is_number(text: str) -> bool:
    """Whether it is one with any decimal mark."""
    return bool(marks_of(text))


def ambiguous(text: str) -> bool:
    """Whether it is one number with a decimal point and another with a decimal comma, as 1,234 is."""
    return plain(text, ".") != plain(text, ",") and len(marks_of(text)) == 2


def evidence(texts: Iterable[str]) -> set[str]:
    """The decimal marks of those numbers that can have only one."""
    return {marks[0] for marks in map(marks_of, texts) if len(marks) == 1}


def like_number(text: str) -> bool:
    """Whether it is a number with something around it: a bound such as < or a unit."""
    bare = _BEFORE.sub("", text.strip())
    if re.search(r"\d(st|nd|rd|th)$", bare):  # a place, which is rather a category
        return False
    return is_number(bare) or is_number(_UNIT.sub("", bare))


def like_missing(text: str) -> bool:
    """Whether people write this where they have no value."""
    return text.strip().lower() in _MISSING
