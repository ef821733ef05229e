"""What a set of tests costs: a monotone set function, in exact arithmetic.

cost(S) = sum of the costs of the tests that must be carried out for S + each set-up that any of these needs, once.

A *set-up* is a cost that several tests share (one blood draw). A *derived* test is computed from others: it costs what is unpaid
of them and marks them as paid. Because cost is a function of the set, the order of buying never changes the total, and
cost(a | S) = cost(S + a) - cost(S).

Money is counted in integers of the smallest unit, so that ten purchases at 0.2 fit a budget of 2.0 exactly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Bools, Doubles, Floats, Ints
from askwise.core.cost_spec import CostSpec
from askwise.errors import InputError, did_you_mean, quoted

# Amounts that people give. Everything between can be counted, added, stored and read again; what is beyond was not meant.
LEAST, MOST = Fraction(1, 10**12), Fraction(10**15)
AMOUNTS = "from 1e-12 to 1e15"
DECIMALS = 30
EXACT = 2**24  # sums of whole numbers below this are exact in single precision, and much faster than in whole numbers
COUNTED = 2**62  # units; more of them, or more of them to one, are not counted in whole numbers of 64 bits
_LONGEST = 80  # characters: room for every such amount, also as a ratio


def exact(value: Any, what: str) -> Fraction:
    """The number a person meant: 0.1 is one tenth, not the nearest binary fraction to it, and 0.1 + 0.2 is three tenths.

    This is the one place where people's amounts are read. What is too large, too small or too long is refused here.
    """
    text = _written(value)
    if len(text) > _LONGEST or len(text.lower().partition("e")[2].lstrip("+-0")) > 3:  # 10 ** n is not computed for a large n
        raise InputError(f"{what} is {quoted(value)}; {_RANGE}")
    try:
        number = Fraction(text)
    except (ValueError, ZeroDivisionError):
        raise InputError(f"{what} is {quoted(value)}; {_FINITE}") from None
    if number < 0:
        raise InputError(f"{what} is {quoted(value)}; {_FINITE}")
    if number and not (LEAST <= number <= MOST and number.denominator <= 10**DECIMALS):
        raise InputError(f"{what} is {quoted(value)}; {_RANGE}")
    return number


_FINITE = "it must be a finite number, 0 or more"
_RANGE = f"{_FINITE}: either 0 or {AMOUNTS}, with at most {DECIMALS} decimals"


def _written(value: Any) -> str:
    """A number as text, without computing anything that is as large as the number is."""
    if isinstance(value, float):
        return f"{value:.12g}"  # twelve digits of a float are meant, the rest is rounding
    if isinstance(value, (int, Fraction)) and max(abs(value.numerator), value.denominator) >= 10**_LONGEST:
        return "1e9999"  # Python does not write numbers of thousands of digits
    return str(value)  # of a float32 it is the shortest decimal for it


class Paid(NamedTuple):
    """What need not be paid (again) by each of B cases."""

    tests: Bools  # B, F: carried out for money, or known from the start
    setups: Bools  # B, G


@dataclass(frozen=True, eq=False)
class CostFunction:
    """Costs of F tests and G shared set-ups, in whole units."""

    own: Ints  # F
    setup: Ints  # G
    member: Bools  # F, G: test f needs set-up g
    sources: Bools  # F, F: test f is computed from test j
    smallest_unit: Fraction  # money that everything here is counted in
    decisions: Ints = field(default_factory=lambda: np.zeros(0, np.int64))  # what each decision that is not a class costs

    @classmethod
    def build(cls, tests: Sequence[str], costs: CostSpec | Mapping[str, Any] | Sequence[Any] | None = None) -> CostFunction:
        """The costs of these tests, from all that is said about them or from costs alone.

        A derived test may be left out of the costs; if it is there, that is a fee on top of what it is computed from.
        """
        spec, index = CostSpec.of(costs), {test: i for i, test in enumerate(tests)}
        own = _own(index, spec)
        shared = [exact(amount, f"the cost of set-up {name!r}") for name, (amount, _) in spec.setup.items()]
        decisions = [exact(amount, f"the cost of the decision {name!r}") for name, amount in spec.decisions.items()]
        sources, member = _sources(index, spec), _member(index, spec)
        unit = Fraction(1, math.lcm(1, *(x.denominator for x in own + shared + decisions)))
        units = [[int(x / unit) for x in xs] for xs in (own, shared, decisions)]
        if max(sum(map(sum, units)), unit.denominator) >= COUNTED:
            raise InputError("the costs differ by too many digits to be counted exactly; round them")
        own_units, setup, of_decisions = (np.array(each, np.int64) for each in units)
        return cls(own_units, setup, member, sources, unit, of_decisions)

    @property
    def plain(self) -> bool:
        """No set-ups and no derived tests: cost is a simple sum."""
        return not self.member.size and not self.derived

    @cached_property
    def derived(self) -> list[int]:
        """Derived tests, each before those that it is computed from."""
        order: list[int] = []

        def visit(test: int) -> None:
            if test not in order:
                for source in np.flatnonzero(self.sources[test]).tolist():
                    visit(source)
                order.append(test)

        for test in np.flatnonzero(self.sources.any(1)).tolist():
            visit(test)
        return [test for test in reversed(order) if self.sources[test].any()]

    @cached_property
    def ever_free(self) -> bool:
        """Whether some test may cost nothing, at first or once others are held."""
        return bool(self.derived or (self.own == 0).any())

    @cached_property
    def listed(self) -> Doubles:
        """F: the own costs in money; nobody may write into them, since states show them as they are."""
        listed = np.asarray(self.money(self.own), np.float64)
        listed.flags.writeable = False
        return listed

    @cached_property
    def total(self) -> int:
        """The cost of all tests, in units."""
        return int(self.own.sum() + self.setup[self.member.any(0)].sum())

    @cached_property
    def most(self) -> int:
        """What a case may cost at most, in units: all tests, and the dearest decision."""
        return self.total + int(self.decisions.max(initial=0))

    @cached_property
    def alone(self) -> Ints:
        """F: what each test costs when nothing has been paid."""
        alone: Ints = self.marginal(self.paid(np.zeros((1, len(self.own)), bool)))[0]
        return alone

    def obtainable(self, there: Bools, held: Bools) -> Bools:
        """B, F: those of the tests that are `there` which a case can have. A derived test cannot be computed, whatever stands in
        its own column, unless all that it is computed from is held or can be had."""
        if not self.derived:
            return there
        can = there.copy()
        for d in reversed(self.derived):
            can[:, d] &= (can | held | ~self.sources[d]).all(1)
        return can

    def money(self, units: Any) -> Any:
        """Units as an amount of money, for showing and for rewards; comparisons stay in units."""
        return units * self.smallest_unit.numerator / self.smallest_unit.denominator

    def paid(self, mask: Bools, known: Bools | None = None) -> Paid:
        """What is settled when the tests in `mask` are held, of which those in `known` were there from the start.

        A known value costs nothing and need not be carried out again, but no set-up was paid for it.
        """
        settled = np.zeros_like(mask) if known is None else known
        carried_out = self._carried_out(mask, settled)
        return Paid(carried_out | settled, self._opened(carried_out))

    def _carried_out(self, wanted: Bools, settled: Bools) -> Bools:
        """B, F: what must be carried out for `wanted`. A test that is settled is not, nor is what it would be computed from."""
        new = wanted & ~settled
        for d in self.derived:
            new |= new[:, d, None] & self.sources[d] & ~settled
        return new

    def _opened(self, carried_out: Bools) -> Bools:
        if not self.member.shape[1]:
            return np.zeros((len(carried_out), 0), bool)
        opened: Bools = _sums(carried_out, self.member) > 0
        return opened

    def marginal(self, paid: Paid) -> Ints:
        """B, F: cost(a | S) of every test."""
        cost: Ints = np.where(paid.tests, 0, self.own + (~paid.setups * self.setup) @ self.member.T.astype(np.int64))
        for d in self.derived:
            cost[:, d] = self.bill(paid, np.broadcast_to(np.arange(len(self.own)) == d, paid.tests.shape))
        return cost

    def bill(self, paid: Paid, wanted: Bools) -> Ints:
        """B: what must still be paid to hold all tests in `wanted` (B, F)."""
        new, shared = self.due(paid, wanted)
        bill: Ints = new @ self.own + shared
        return bill

    def due(self, paid: Paid, wanted: Bools) -> tuple[Bools, Ints]:
        """B, F: the tests that must still be carried out to hold all in `wanted`; B: the part of the bill that is set-ups."""
        new = self._carried_out(wanted, paid.tests)
        shared: Ints = (self._opened(new) & ~paid.setups) @ self.setup
        return new, shared

    def cost(self, mask: Bools, known: Bools | None = None) -> Ints:
        """B: cost(S) of each row of `mask`, where `known` tests were there from the start."""
        if self.plain:
            paid = mask if known is None else mask & ~known
            if self.total < EXACT:
                return _sums(paid, self.own).astype(np.int64)
            simple: Ints = paid @ self.own
            return simple
        none = np.zeros_like(mask) if known is None else known
        return self.bill(Paid(none, np.zeros((len(mask), len(self.setup)), bool)), mask)


def _sums(chosen: Bools, amounts: Ints | Bools) -> Floats:
    """The product of the two in single precision."""
    with np.errstate(all="ignore"):  # on some processors BLAS kernels raise flags for whole numbers too
        product: Floats = np.dot(chosen.astype(np.float32), amounts.astype(np.float32))
    return product


def _position(name: str, tests: dict[str, int], where: str) -> int:
    if name not in tests:
        raise InputError(f"{where} names the test {name!r}, which does not exist; {did_you_mean(name, tests)}")
    return tests[name]


def _own(tests: dict[str, int], spec: CostSpec) -> list[Fraction]:
    """F: what each test costs by itself."""
    costs = spec.by_test(list(tests))
    for name in costs:
        _position(name, tests, "the list of costs")
    lacking = [t for t in tests if t not in costs and t not in spec.derived]
    if lacking:
        raise InputError(f"test {lacking[0]!r} has no cost; give one (0 if it is free)")
    return [exact(costs.get(t, 0), f"the cost of test {t!r}") for t in tests]


def _sources(tests: dict[str, int], spec: CostSpec) -> Bools:
    """F, F: the tests that each test is computed from."""
    sources = np.zeros((len(tests), len(tests)), bool)
    for name, names in spec.derived.items():
        for source in names:
            sources[_position(name, tests, "`derived`"), _position(source, tests, f"derived test {name!r}")] = True
    circle = _circle(sources)
    if circle is not None:
        raise InputError(f"derived test {list(tests)[circle]!r} is computed from itself, in a circle; remove one of its sources")
    return sources


def _member(tests: dict[str, int], spec: CostSpec) -> Bools:
    """F, G: the set-ups that each test needs."""
    member = np.zeros((len(tests), len(spec.setup)), bool)
    for g, (name, (_, members)) in enumerate(spec.setup.items()):
        for test in members:
            if test in spec.derived:
                raise InputError(
                    f"test {test!r} is derived and also listed in set-up {name!r}; a derived test already pays the "
                    "set-ups of what it is computed from, so list it in one of the two"
                )
            position = _position(test, tests, f"set-up {name!r}")
            if member[position, g]:
                raise InputError(f"set-up {name!r} lists test {test!r} twice; list it once")
            member[position, g] = True
    return member


def _circle(sources: Bools) -> int | None:
    """A test that is, over any number of steps, computed from itself. In steps of one test each, since files may name many."""
    left = sources.sum(1)
    done = np.flatnonzero(left == 0).tolist()
    for test in done:  # it grows meanwhile: what is computed only from these can be computed
        uses = np.flatnonzero(sources[:, test])
        left[uses] -= 1
        done += uses[left[uses] == 0].tolist()
    if len(done) == len(sources):
        return None
    test, path = int(np.argmax(left > 0)), list[int]()
    while test not in path:  # of what is left, each is computed from one that is left
        path.append(test)
        test = int(np.argmax(sources[test] & (left > 0)))
    return min(path[path.index(test) :])
