"""The settings of a plan, each with its default and what it may be. They may be given for the whole plan, for a data set and for
a method; the method's win over the data set's, and these over the plan's."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from askwise.bench.task import BUDGETS, PARTS
from askwise.core import scoring
from askwise.core.costs import exact
from askwise.core.parameters import Constraint, Instance, OneOf, Real, Whole, checked, constraints
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


# ---------------------------------------------------------------------- settings

FRONTIER = "frontier"  # in place of a budget: all that the method can make
MOST_ROWS = {"train": 0, "validation": 10_000, "test": 30_000}  # 0: all; the standard error of a score is then 0.003 or less
Budgets = tuple[dict[str, float] | None, ...]


class Seeds(Constraint):
    """How many, or which."""

    words = "a number of seeds, or a list of different whole numbers, 0 or more"
    number, several = Whole(at_least=1), Several(Whole(), words, distinct=True, least=1)

    def allows(self, value: Any) -> bool:
        return self.number.allows(value) or self.several.allows(value)

    def plain(self, value: Any) -> list[int]:
        return list(range(value)) if self.number.allows(value) else self.several.plain(value)


class BudgetList(Constraint):
    """Each a table of amounts, or of lists of amounts, which stand for all of their combinations; or the word 'frontier'."""

    words = f"a list like [{{average = 5}}, {{hard = [10, 20]}}, {FRONTIER!r}]"

    def allows(self, value: Any) -> bool:
        return isinstance(value, list) and bool(value)

    def plain(self, value: Any) -> Budgets:
        budgets = [budget for entry in value for budget in self._expanded(entry)]
        for budget in budgets:
            if budgets.count(budget) > 1:
                raise InputError(f"`budgets` has {FRONTIER if budget is None else budget!r} twice; they must be different")
        return tuple(budgets)

    def _expanded(self, entry: Any) -> Budgets:
        if entry == FRONTIER:
            return (None,)
        if not isinstance(entry, dict) or not entry:
            raise InputError(f"a budget is {entry!r}; it must be a table with {', '.join(BUDGETS)}, or the word {FRONTIER!r}")
        check_known(entry, BUDGETS, "a budget")
        if {"tradeoff", "average"} <= set(entry):
            raise InputError(f"the budget {entry!r} has both a tradeoff and an average, but an average finds its own tradeoff")
        kinds = [kind for kind in BUDGETS if kind in entry]
        amounts = [entry[kind] if isinstance(entry[kind], list) else [entry[kind]] for kind in entry]
        each = (dict(zip(entry, chosen, strict=True)) for chosen in itertools.product(*amounts))
        return tuple({kind: amount(budget[kind], f"`{kind}` of a budget") for kind in kinds} for budget in each)


class RowLimits(Constraint):
    """At most so many rows of a part; 0 for all."""

    words = "a table like {train = 5000, test = 500}"

    def allows(self, value: Any) -> bool:
        return isinstance(value, dict)

    def plain(self, value: Any) -> dict[str, int]:
        check_known(value, PARTS, "most_rows")
        return {part: checked(most, Whole(), f"`most_rows` of {part}") for part, most in value.items()}


MINUTES = Real(above=0)
AMOUNTS = Several(Real(at_least=0), "a list of numbers, 0 or more")
SHARES = Several(
    Real(at_least=0, below=1),
    "different shares of the training values, 0 or more and below 1",
    alone=True,
    distinct=True,
    least=1,
)


@dataclass(frozen=True)
class PlanSettings:
    """What may be said for the whole plan, for a data set and for a method."""

    seeds: Annotated[list[int], Seeds()] = field(default_factory=lambda: [0])
    minutes: Annotated[float, MINUTES] = 1.0
    budgets: Annotated[Budgets, BudgetList()] = (None,)
    remove: Annotated[list[float], SHARES] = field(default_factory=lambda: [0.0])  # shares of the values that are learned from
    most_rows: Annotated[dict[str, int], RowLimits()] = field(default_factory=dict)
    class_weight: Annotated[str, OneOf("balanced", "none")] = "none"
    loss: Annotated[str, OneOf("0/1", *scoring.RULES)] = "0/1"
    threads: Annotated[int, Whole(at_least=1)] = 1
    accuracy_at: Annotated[list[float] | None, AMOUNTS] = None  # mean costs; None: some shares of the cost of everything
    cost_at: Annotated[list[float], AMOUNTS] = field(default_factory=lambda: [0.8, 0.9, 0.95])  # scores
    kill_after: Annotated[float | None, MINUTES] = None  # minutes


RULES = constraints(PlanSettings)


def joined(*levels: Mapping[str, Any]) -> PlanSettings:
    """The settings that are given, checked and in one form; later levels win, of `most_rows` for each part by itself."""
    settings: dict[str, Any] = {}
    most_rows = dict(MOST_ROWS)
    for level in levels:
        settings |= {name: checked(level[name], rule, f"`{name}`") for name, rule in RULES.items() if name in level}
        most_rows |= settings.get("most_rows", {})
    return PlanSettings(**{**settings, "most_rows": most_rows})
