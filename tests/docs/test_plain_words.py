"""Everything that a person reads is plain English: turns of phrase that puzzled people do not come back."""

import re
from pathlib import Path

import pytest

import askwise

SRC = Path(askwise.__file__).parent
PAGES = sorted([*SRC.rglob("*.py"), *SRC.rglob("*.html"), *SRC.rglob("*.js")])
PUZZLES = (
    "of an unknown sort", "was told", "Which case is it", "it is not so that", "is said to be known", "said to be categorical",
    "is there twice", "that is what is read", "is there, and", "cannot be joined with", "hand it over", "what is said in it",
    "and is no model", "is no pair",
    "which is no test", "is no row", "is no record", "is no folder", "are no tests, ", "is none; leave",
    "two values of one kind", "its checksum is another", "it cannot be had", "what came of", "comes to no task",
)  # fmt: skip


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(SRC)))
def test_messages_have_no_puzzling_phrases(page: Path) -> None:
    text = page.read_text()
    if page.suffix == ".py":  # what is said to programmers in docstrings and comments is not looked at
        text = re.sub(r'"""(?!answer with|examples|files:).*?"""|#[^\n"]*$', "", text, flags=re.S | re.M)
    found = [words for words in PUZZLES if words in text]
    assert found == []
