"""What values a plan may hold, as constraints, beside those of `askwise.core.parameters`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from askwise.core.costs import exact
from askwise.core.parameters import Constraint, Instance
from askwise.errors import InputError, did_you_mean, quoted

TEXT = Instance(str, "a text")
TABLE = Instance(dict, "a table")


class Several(Constraint):
    """A list of values that another constraint allows. Where `alone`, a single value may come without brackets."""

    def __init__(self, each: Constraint, words: str, *, alone: bool = False, distinct: bool = False, least: int = 0) -> None:
        self.each, self.words = each, words
        self.alone, self.distinct, self.least = alone, distinct, least

    def _list(self, value: Any) -> Any:
        return [value] if self.alone and not isinstance(value, list) else value

    def allows(self, value: Any) -> bool:
        values = self._list(value)
        if not isinstance(values, list) or len(values) < self.least or not all(map(self.each.allows, values)):
            return False
        return not self.distinct or len(set(values)) == len(values)

    def plain(self, value: Any) -> list[Any]:
        return [self.each.plain(each) for each in self._list(value)]


NAMES = Several(TEXT, "a list of names", alone=True)


def amount(value: Any, what: str) -> float:
    """An amount of money, a score or a share; 5 and 5.0 are the same one."""
    if isinstance(value, str):
        raise InputError(f"{what} is {quoted(value)}; it must be a finite number, 0 or more, without quotes")
    exact(value, what)
    return int(value) if float(value).is_integer() else float(value)


def check_known(table: Mapping[str, Any], names: Iterable[str], where: str) -> None:
    """Refuses a key that means nothing there."""
    known = list(names)
    for name in table:
        if name not in known:
            raise InputError(f"{where} has {name!r}, which is not a setting here; {did_you_mean(name, known)}")
