"""One family of errors. Each message is one sentence for the person who reads it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any


class AskwiseError(ValueError):
    """Something askwise was given cannot be used; the message says what, and what would be right."""


class InputError(AskwiseError):
    """Data, costs, budgets or settings that contradict themselves or each other."""


class RowError(InputError):
    """About one row of a table. Rows of frames and arrays are counted from 0, as in Python; whoever has read the table from a
    file says where in the file the row is."""

    def __init__(self, before: str, row: int, after: str) -> None:
        super().__init__(before, row, after)
        self.before, self.row, self.after = before, int(row), after

    def __str__(self) -> str:
        return f"{self.before} in row {self.row} (counted from 0){self.after}"

    def at(self, place: str) -> InputError:
        """The same with another word for the row."""
        return InputError(f"{self.before} in {place}{self.after}")

    def among(self, rows: Sequence[int] | Any) -> RowError:
        """The same about the table of which only these rows were looked at."""
        return type(self)(self.before, rows[self.row], self.after)


class StateError(AskwiseError):
    """A file that does not hold what it should, or belongs to another run."""


def must(holds: bool, words: str) -> None:
    """What a file holds is believed only if this is so."""
    if not holds:
        raise StateError(f"its contents fail a check: {words}")


class ProviderError(AskwiseError, RuntimeError):
    """A function that fetches results raised what ends a loop or a task, such as StopIteration, rather than an error."""


class WriteError(AskwiseError, OSError):
    """A file could not be written; the message says which, and why. What was there before is unharmed."""


# What to do about it, in the words of Python; the terminal, the API and the page put their own in the place of these.
OUTSIDE = "use outside=True if it is right"
FREE = "tell it with paid=False if it cost nothing"
REFUSE = "give it, or refuse the test if it is not available"
UNDO = "undo it first"


def reworded(error: object, words: Mapping[str, str]) -> str:
    """An error's sentence with other words for what to do about it."""
    sentence = str(error)
    for python, other in words.items():
        sentence = sentence.replace(python, other)
    return sentence


class Doubt(UserWarning):
    """Something that can be used, but may not be what was meant."""


def quoted(value: object, most: int = 60) -> str:
    """A value in a sentence: as Python writes it, but never longer than a person reads."""
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "a number of thousands of digits"
    return text if len(text) <= most else f"{text[:most]}..."


def closest(name: object, known: Iterable[object]) -> object:
    """A guess at what was meant, if one of the known names is close: hardly more than a letter is different in a short one. Case
    and what is no letter or digit do not count. Names with other numbers are other things: patch 7,7 is not patch 3,0."""
    text = _letters(name)
    by_letters = {_letters(k): k for k in map(_plain, known)}
    by_letters = {letters: k for letters, k in by_letters.items() if letters == text or not _differ_in_numbers(letters, text)}
    short = [letters for letters in by_letters if max(len(letters), len(text)) <= 3]
    guesses = difflib.get_close_matches(text, by_letters, n=1, cutoff=0.75)
    guesses = guesses or difflib.get_close_matches(text, short, n=1, cutoff=0.66)
    return by_letters[guesses[0]] if guesses else None


def _plain(name: object) -> object:
    """Numbers stay numbers, so that 1 is told from '1'."""
    return name if type(name) in (int, float, bool) else str(name)


def _letters(name: object) -> str:
    """A name without what people write in different ways."""
    text = str(name).casefold()
    return re.sub(r"[\W_]+", "", text) or text


def _differ_in_numbers(a: str, b: str) -> bool:
    """Whether two names are alike but for their digits."""
    return re.sub(r"\d", "", a) == re.sub(r"\d", "", b)


def did_you_mean(name: object, known: Iterable[object], most: int = 8) -> str:
    """The end of an error sentence: a guess at what was meant, or what there is to choose from, but no more than `most`."""
    names = [_plain(k) for k in known]
    guess = closest(name, names)
    if guess is not None:
        return f"did you mean {guess!r}?"
    shown = ", ".join(repr(n) for n in names[:most])
    return f"there are {shown}{', ...' if len(names) > most else ''}"
