"""What values a parameter may have, as data beside the parameter, and the one function that words the error.

A constraint stands in the type of a parameter, of a dataclass or of a function:

    width: Annotated[int, Whole(at_least=1)] = 128

`checked` refuses a value that it does not allow; `checked_attributes` does so for all parameters that are declared in one place.
"""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Annotated, Any, Self, get_type_hints

from askwise.errors import AskwiseError, InputError, closest, did_you_mean, quoted


class Constraint:
    """Which values are right."""

    words: str
    """What is right, to be read after "it must be"."""

    def allows(self, value: Any) -> bool:
        raise NotImplementedError

    def plain(self, value: Any) -> Any:
        """An allowed value as Python's own: a NumPy number becomes an int or a float."""
        return value

    def advice(self, value: Any) -> str:
        """What to do about a value that is not allowed."""
        return f"it must be {self.words}"


@dataclass(frozen=True)
class Whole(Constraint):
    """A whole number; true and false are none."""

    at_least: int = 0
    at_most: int | None = None

    @property
    def words(self) -> str:  # type: ignore[override]
        return f"a whole number{_interval(self.at_least, self.at_most)}"

    def allows(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, numbers.Integral):
            return False
        return self.at_least <= int(value) and (self.at_most is None or int(value) <= self.at_most)

    def plain(self, value: Any) -> int:
        return int(value)


@dataclass(frozen=True)
class Real(Constraint):
    """A number, finite unless infinity is allowed. `above` and `below` are ends that are not allowed themselves."""

    at_least: float | None = None
    at_most: float | None = None
    above: float | None = None
    below: float | None = None
    infinite: bool = False
    noun: str = "a finite number"

    @property
    def words(self) -> str:  # type: ignore[override]
        return self.noun + _interval(self.at_least, self.at_most, self.above, self.below)

    def allows(self, value: Any) -> bool:
        if isinstance(value, bool) or not isinstance(value, numbers.Real):
            return False
        try:
            number = float(value)
        except OverflowError:  # a whole number of hundreds of digits
            return False
        if math.isnan(number) or (math.isinf(number) and not self.infinite):
            return False
        low = (self.at_least is None or number >= self.at_least) and (self.above is None or number > self.above)
        return low and (self.at_most is None or number <= self.at_most) and (self.below is None or number < self.below)

    def plain(self, value: Any) -> float:
        return float(value)


class Jobs(Constraint):
    """scikit-learn's number of processes."""

    words = "1 or more, -1 for one on each core, or None for as many as pay"

    def allows(self, value: Any) -> bool:
        return value is None or (Whole(at_least=-1).allows(value) and value != 0)


class OneOf(Constraint):
    """One of a few words."""

    def __init__(self, *options: str) -> None:
        self.options = options
        *others, last = map(repr, options)
        self.words = f"{', '.join(others)} or {last}" if others else last

    def allows(self, value: Any) -> bool:
        return isinstance(value, str) and value in self.options

    def advice(self, value: Any) -> str:
        """A guess at what was meant, or all that there is."""
        guess = closest(value, self.options)
        return super().advice(value) if guess is None else f"did you mean {guess!r}?"


@dataclass(frozen=True)
class Instance(Constraint):
    """A value of a type, or of one of several."""

    of: type | tuple[type, ...]
    words: str

    def allows(self, value: Any) -> bool:
        return isinstance(value, self.of)


class Either(Constraint):
    """What one of several constraints allows."""

    def __init__(self, *constraints: Constraint) -> None:
        self.constraints = constraints
        self.words = ", or ".join(constraint.words for constraint in constraints)

    def allows(self, value: Any) -> bool:
        return any(constraint.allows(value) for constraint in self.constraints)

    def plain(self, value: Any) -> Any:
        return next(constraint for constraint in self.constraints if constraint.allows(value)).plain(value)

    def advice(self, value: Any) -> str:
        guesses = (constraint.advice(value) for constraint in self.constraints if isinstance(constraint, OneOf))
        return next((guess for guess in guesses if guess.startswith("did")), super().advice(value))


def OrNone(constraint: Constraint) -> Either:
    """What another constraint allows, or None."""
    return Either(constraint, Instance(type(None), "None"))


Count = Annotated[int, Whole()]
Size = Annotated[int, Whole(at_least=1)]
Amount = Annotated[float, Real(at_least=0)]
Flag = Annotated[bool, Instance(bool, "True or False")]
Share = Annotated[float, Real(at_least=0, at_most=1, noun="a share")]


def checked(value: Any, constraint: Constraint, name: str, error: type[AskwiseError] = InputError) -> Any:
    """The value, as Python's own, or an error that names the parameter, the value and what would be right."""
    if not constraint.allows(value):
        raise error(f"{name} is {quoted(value)}; {constraint.advice(value)}")
    return constraint.plain(value)


@cache
def constraints(declared: Any) -> Mapping[str, Constraint]:
    """The constraints of the fields of a class, or of the arguments of a function, by name."""
    hints = get_type_hints(declared, include_extras=True).items()
    each = ((name, note) for name, hint in hints for note in getattr(hint, "__metadata__", ()))
    return {name: note for name, note in each if isinstance(note, Constraint)}


def checked_attributes(owner: object, declared: Any, spell: Callable[[str], str] = str) -> dict[str, Any]:
    """The attributes of an object that have a constraint where they are declared, as Python's own values.

    spell: how an error names a parameter.
    """
    return {name: checked(getattr(owner, name), rule, spell(name)) for name, rule in constraints(declared).items()}


def check_settings(settings: object, spell: Callable[[str], str] = "setting {!r}".format) -> None:
    """For `__post_init__` of a frozen dataclass: its fields are checked, and NumPy numbers become Python's own."""
    for name, value in checked_attributes(settings, type(settings), spell).items():
        object.__setattr__(settings, name, value)


@dataclass(frozen=True)
class Settings:
    """Base of dataclasses whose fields declare what they may be."""

    def __post_init__(self) -> None:
        check_settings(self)

    @classmethod
    def from_dict(cls, settings: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`; an unknown name is an error."""
        check_names(settings, cls.__dataclass_fields__)
        return cls(**settings)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def but(self, **changes: Any) -> Self:
        """The same with some settings changed."""
        check_names(changes, self.__dataclass_fields__)
        return replace(self, **changes)


def check_names(names: Iterable[str], declared: Iterable[str]) -> None:
    """Refuses the name of a setting that there is not."""
    there = list(declared)
    for name in names:
        if name not in there:
            raise InputError(f"there is no setting {name!r}; {did_you_mean(name, there)}")


def check_distinct(names: Iterable[Any], what: str) -> None:
    """Refuses a name that appears twice."""
    before: set[Any] = set()
    for name in names:
        if name in before:
            raise InputError(f"the {what} {name!r} appears twice; every {what} needs its own name")
        before.add(name)


def _interval(
    at_least: float | None, at_most: float | None = None, above: float | None = None, below: float | None = None
) -> str:
    """The ends of an interval in words."""
    if at_least is not None:
        end = f" to {at_most}" if at_most is not None else f" to below {below}" if below is not None else ""
        return f" from {at_least}{end}" if end else f", {at_least} or more"
    if above is None and below is None:
        return "" if at_most is None else f", at most {at_most}"
    ends = (("above", above), ("below", below), ("at most", at_most))
    return " " + " and ".join(f"{word} {end}" for word, end in ends if end is not None)
