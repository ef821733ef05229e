"""What people say about tests, other decisions and costs, as one object: from the estimator, a plan or named data to the schema.

Its shape is checked here; whether its names exist, where the columns and the tests are known: in `Schema` and `CostFunction`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from askwise.core.parameters import check_distinct
from askwise.errors import InputError, quoted

_NO_SOURCES = "is computed from nothing; name the tests it is computed from"
_NO_COLUMNS = "reveals nothing; name its columns or remove it"


@dataclass(frozen=True)
class CostSpec:
    """Costs of tests, set-ups that tests share, tests that are computed from others, the columns that a test reveals, and what
    may be decided that is not a class.

    A single name may come without brackets, and None stands for nothing.

    Parameters
    ----------
    costs : dict, pandas.Series or sequence, default=None
        Cost of each test, by name or in the order of the tests. None: 1 for each test that is not derived.
    setup : dict, default={}
        {name: (cost, tests that share it)}.
    derived : dict, default={}
        {test: tests it is computed from}. A cost of its own is a fee on top of what these cost.
    reveals : dict, default={}
        {test: its columns}. Every other column is a test of its own.
    decisions : dict, default={}
        {decision: cost} of decisions that are not classes, such as {'specialist': 120}. The loss matrix says what each loses.

    Examples
    --------
    >>> from askwise import CostSpec, Schema
    >>> spec = CostSpec({"age": 0, "TSH": 20, "T4": 12}, setup={"blood draw": (2, ["TSH", "T4"])})
    >>> Schema.build(["age", "TSH", "T4"], ["ill", "well"], spec)
    Schema(3 columns, 3 tests, 2 classes)
    """

    costs: Any = None
    setup: Mapping[str, tuple[Any, Sequence[str]]] = field(default_factory=dict)
    derived: Mapping[str, Sequence[str]] = field(default_factory=dict)
    reveals: Mapping[str, Sequence[str]] = field(default_factory=dict)
    decisions: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        setup = _mapping(self.setup, "setup", "{'draw': (2, ['sugar'])}")
        derived = _mapping(self.derived, "derived", "{'index': ['weight']}")
        reveals = _mapping(self.reveals, "reveals", "{'form': ['age']}")
        parts = {
            "costs": _amounts(self.costs),
            "setup": {name: _pair(name, pair) for name, pair in setup.items()},
            "derived": {test: _names(names, f"derived test {test!r}", _NO_SOURCES) for test, names in derived.items()},
            "reveals": {test: _names(names, f"test {test!r}", _NO_COLUMNS) for test, names in reveals.items()},
            "decisions": _mapping(self.decisions, "decisions", "{'specialist': 120}"),
        }
        for name, value in parts.items():
            object.__setattr__(self, name, value)

    @classmethod
    def of(cls, costs: Any) -> CostSpec:
        """Itself, or one with nothing but costs."""
        return costs if isinstance(costs, CostSpec) else cls(costs)

    def by_test(self, tests: Sequence[str]) -> dict[str, Any]:
        """The costs by the name of the test."""
        if self.costs is None:
            return {test: 1 for test in tests if test not in self.derived}
        if isinstance(self.costs, Mapping):
            return dict(self.costs)
        if len(self.costs) != len(tests):
            raise InputError(f"there are {len(self.costs)} costs for {len(tests)} tests; give one for each")
        return dict(zip(tests, self.costs, strict=True))

    def without(self, columns: Collection[str]) -> CostSpec:
        """The same for a table without some columns, which may still have a cost."""
        if not isinstance(self.costs, Mapping):
            return self
        return replace(self, costs={test: cost for test, cost in self.costs.items() if test not in columns})


def listed(names: Any) -> list[str]:
    """Names; a single one may come without brackets, and is not taken letter by letter."""
    return [names] if isinstance(names, str) else list(names)


def _names(names: Any, subject: str, empty: str) -> list[str]:
    if not isinstance(names, Collection):
        raise InputError(f"{subject} names {quoted(names)}; it must be a list of names")
    if not len(names):
        raise InputError(f"{subject} {empty}")
    return listed(names)


def _mapping(value: Any, name: str, like: str) -> dict[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise InputError(f"{name} is {quoted(value)}; it must be like {like}")
    return dict(value or {})


def _pair(name: str, pair: Any) -> tuple[Any, list[str]]:
    """The cost of a set-up, and the tests that share it."""
    if not isinstance(pair, (tuple, list)) or len(pair) != 2:
        raise InputError(f"set-up {name!r} is {pair!r}; it must be a pair (cost, tests that share it)")
    return pair[0], _names(pair[1], f"set-up {name!r}", "has no tests; name those that share it")


def _amounts(costs: Any) -> dict[str, Any] | list[Any] | None:
    """Costs by test, or in the order of the tests."""
    if costs is None:
        return None
    if isinstance(costs, str) or not hasattr(costs, "__len__"):
        raise InputError(f"costs are {quoted(costs)}; they must be costs by the name of the test, or one cost for each test")
    if not hasattr(costs, "items"):
        return list(costs)
    check_distinct([name for name, _ in costs.items()], "test of the costs")  # a column of a frame may have a name twice
    return dict(costs.items())
