"""One case in progress: what was told and refused, what that cost, and what may still be asked."""

from __future__ import annotations

import copy
import math
import uuid
from collections.abc import Collection, Iterable, Mapping
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, Self

import numpy as np

from askwise.core.budget import Budget
from askwise.core.costs import exact
from askwise.core.sampling import hash_cases, uniform
from askwise.errors import FREE, UNDO, InputError, quoted
from askwise.model.model import LearnedModel

LONGEST = 1000  # characters of a case's name


class PartialCase:
    """What is known of one case so far. Sessions, the service and the page share it; it asks no policy. Its parameters are
    explained in `Session`."""

    def __init__(
        self,
        model: LearnedModel,
        known: Mapping[str, Any] | None = None,
        *,
        case_id: Any = None,
        budget: Any = None,
        answers: Mapping[str, Any] | None = None,
        refused: Iterable[str] = (),
        outside: bool | Collection[str] = False,
        draw: float | None = None,
    ) -> None:
        if model.external is not None:
            raise InputError("this model has an existing classifier, which a session cannot ask; use predict or acquire")
        self.model = shared_at_budget(model, budget) if isinstance(budget, Budget) else model
        self.case_id = uuid.uuid4().hex if case_id is None else str(case_id)
        if len(self.case_id) > LONGEST:
            raise InputError(f"the case id has {len(self.case_id)} characters; it may have {LONGEST}")
        self._draw = None if draw is None else _number(draw)
        self._outside = model.form.outside(outside)
        schema = model.schema
        self.values = np.zeros(len(schema.columns), np.float32)  # C: 0 where unknown
        self.held, self.free = np.zeros((2, schema.n_tests), bool)  # F, and F: held, and nothing was paid for it
        self.open = np.ones(schema.n_tests, bool)  # F: may be asked, unless it is computed from what may not
        self.cap, self.most = self._limits(budget)  # units that what is asked keeps to; money that it may cost, which may be more
        self.stopped = False
        self._everyone = frozenset(model.form.index(name) for name in model.known)
        if model.form.gaps is not None:
            self.held[model.form.gaps] = self.free[model.form.gaps] = True
        self._refused: dict[int, None] = {}
        self._answers: dict[int, Any] = {}  # as they were told, in this order
        self._log: list[dict[str, Any]] = []
        self._undoable: list[tuple[dict[str, Any], bool]] = []  # and whether its test had been refused before
        for test, value in _by_test(known, "known").items():
            self._put(test, value, False, self._may_be_outside(test))
        self._start = tuple(known or ())
        for test, value in _by_test(answers, "answers").items():
            self._tell(test, value, True, None)
        self._check_budget()
        for test in (refused,) if isinstance(refused, str) else refused:
            self._refuse(test)
        self._reopen()

    def _limits(self, budget: Any) -> tuple[int | None, Fraction | None]:
        """The units that what is asked keeps to, and what the case may cost at most, which may be more: see `Model.limit`."""
        costs, hard = self.model.schema.costs, self.model.budget.hard
        keeps = self.model.limit(self.model.followed[self.second])
        own = None if budget is None or isinstance(budget, Budget) else exact(budget, "the budget of the session")
        amounts = [amount for amount in (hard, own) if amount is not None]
        if not amounts:
            return keeps, None
        most = min(*amounts, costs.most * costs.smallest_unit)
        cap = Budget(hard=most).cap(costs)
        if keeps is None and cap == costs.most:  # what everything costs limits nothing, and is not shown to a policy
            return None, most
        return min(limit for limit in (keeps, cap) if limit is not None), most

    def copy(self) -> Self:
        """Another one, to try something with."""
        other = copy.copy(self)
        for name in ("values", "held", "free", "open", "_refused", "_answers", "_log", "_undoable"):
            setattr(other, name, getattr(self, name).copy())
        return other

    def tell(self, test: str, value: Any, *, paid: bool = True, outside: bool | None = None) -> None:
        """The result of a test, asked or not: a value or, of a test that reveals several columns, {column: value}.

        paid: whether it cost something. outside: the value is right although training saw none like it; None: as the
        session says.
        """
        self._tell(test, value, paid, outside)
        try:
            self._check_budget()
        except InputError:
            self._take_back(*self._undoable.pop())
            self._log.pop()
            raise
        self._reopen()

    def refuse(self, test: str) -> None:
        """This test is not available for this case, nor is what is computed from it."""
        if self._refuse(test):
            self._reopen()

    def stop(self) -> Any:  # a session gives its decision
        """No more tests; `undo` takes it back."""
        if not self.stopped:
            self.stopped = True
            self._enter({"do": "stop"})
            self._reopen()

    def undo(self) -> dict[str, Any]:
        """Takes back the last tell, refuse or stop, and returns it as it stands in the trace."""
        if not self._undoable:
            raise InputError("there is nothing to undo: no test was answered or refused")
        entry, was_refused = self._undoable.pop()
        self._take_back(entry, was_refused)
        self._log.append({"do": "undo"})
        self._reopen()
        return dict(entry)

    def _tell(self, test: str, value: Any, paid: bool, outside: bool | None) -> None:
        outside = self._may_be_outside(test) if outside is None else outside
        shown = self._put(test, value, paid, outside)
        i = self.model.form.tests[test]
        entry = {"do": "tell", "test": test, "value": shown, "paid": bool(paid), "outside": bool(outside)}
        was_refused = i in self._refused
        self._refused.pop(i, None)
        self._enter(entry, was_refused)

    def _refuse(self, test: str) -> bool:
        """Refuses it; False if it was refused already."""
        i = self.model.form.index(test)
        if self.held[i]:
            raise InputError(f"test {test!r} already has a value, so it cannot be refused; {UNDO}")
        if i in self._refused:
            return False
        self._refused[i] = None
        self._enter({"do": "refuse", "test": test})
        return True

    def _may_be_outside(self, test: str) -> bool:
        """Whether its value may lie outside of what training saw, where nothing else is said."""
        return self._outside if isinstance(self._outside, bool) else test in self._outside

    def _enter(self, entry: dict[str, Any], was_refused: bool = False) -> None:
        self._log.append(entry)
        self._undoable.append((entry, was_refused))

    def _put(self, test: str, value: Any, paid: bool, outside: bool) -> Any:
        form = self.model.form
        i = form.index(test)
        if self.held[i]:
            raise InputError(f"test {test!r} already has a value; {UNDO}")
        answer = form.read(test, value, outside)
        self.values[form.columns[i]] = answer.encoded
        self.held[i] = True
        self.free[i] = not paid or i in self._everyone
        self._answers[i] = answer.value
        return answer.value

    def _take_back(self, entry: dict[str, Any], was_refused: bool) -> None:
        if entry["do"] == "stop":
            self.stopped = False
            return
        i = self.model.form.tests[entry["test"]]
        if entry["do"] == "refuse":
            del self._refused[i]
            return
        self.values[self.model.form.columns[i]] = 0
        self.held[i] = self.free[i] = False
        del self._answers[i]
        if was_refused:
            self._refused[i] = None

    def _check_budget(self) -> None:
        """Whether what was told keeps to the budget."""
        most, costs = self.most, self.model.schema.costs
        if most is not None and (units := self._units()) * costs.smallest_unit > most:
            last = self.model.schema.tests[next(reversed(self._answers))]
            amounts = f"would cost {costs.money(units):g}, but may cost {float(most):g}"
            raise InputError(f"with test {last!r} this case {amounts}; {FREE}")

    def _units(self) -> int:
        return int(self.model.schema.costs.cost(self.held[None], self.free[None])[0])

    def _reopen(self) -> None:
        """Which tests may be asked now: not those that are refused, nor what everyone knows already. What is computed from these
        is for `core.cases` to know. A model that uses what is missing is told of it as soon as it is known."""
        self.open[:] = not self.stopped
        self.open[[*self._refused, *self._everyone]] = False
        gaps = self.model.form.gaps
        if gaps is not None:
            self.open[gaps] = False
            self.values[self.model.form.columns[gaps]] = self.model.form.missing(self._refused)

    @property
    def cost(self) -> float:
        """Paid so far."""
        return float(self.model.schema.costs.money(self._units()))

    @property
    def budget(self) -> float | None:
        """What this case may cost at most. What is asked may keep to a smaller limit, see `Model.limit`."""
        return None if self.most is None else float(self.most)

    @property
    def known(self) -> dict[str, Any]:
        """What was known, or told free of charge."""
        return {self.model.schema.tests[i]: value for i, value in self._answers.items() if self.free[i]}

    @property
    def answers(self) -> dict[str, Any]:
        """What was told and paid, in this order."""
        return {self.model.schema.tests[i]: value for i, value in self._answers.items() if not self.free[i]}

    @property
    def refused(self) -> list[str]:
        return [self.model.schema.tests[i] for i in self._refused]

    @property
    def lacking_known(self) -> list[str]:
        """Tests that the model takes for known by everyone, and that have no value yet. They are not asked for."""
        return [name for name in self.model.known if not self.held[self.model.form.tests[name]]]

    @cached_property
    def draw(self) -> float:
        """From 0 to 1, by the name of the case: below the mixture's share, the case follows its second policy."""
        if self._draw is not None:
            return self._draw
        return float(uniform(hash_cases(np.array([self.case_id])), self.model.seed)[0])

    @property
    def drawn(self) -> str:
        """Which policy the case has drawn, in a sentence; empty where the budget follows one alone."""
        share, unit = self.model.blend.drawn, self.model.unit
        if not share:
            return ""
        costs = [f"{point.cost:.4g} {unit}".rstrip() for point in self.model.followed]
        arms = list(zip(("cheaper", "dearer"), costs, (1 - share, share), strict=True))
        word, cost, part = arms[self.second]
        other_word, other_cost, _ = arms[not self.second]
        return (
            f"{self.model.budget} mixes two policies; this case has drawn the {word} one, which costs {cost} on average and "
            f"which {100 * part:.0f} % of cases follow; the {other_word} one costs {other_cost}"
        )

    @property
    def second(self) -> bool:
        """Whether the case follows the second policy of a mixture."""
        share = self.model.blend.drawn
        return bool(share) and self.draw < share


@lru_cache(maxsize=32)
def shared_at_budget(model: LearnedModel, budget: Budget) -> LearnedModel:
    """The model under another budget; the same one for all cases, since its networks are made ready once."""
    return model.at(budget)


def _by_test(values: Any, what: str) -> Mapping[str, Any]:
    if values is not None and not isinstance(values, Mapping):
        raise InputError(f"{what} is {type(values).__name__!r}; it must be values by test, {{test: value}}")
    return values or {}


def _number(draw: Any) -> float:
    try:
        number = float(draw)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= 1:
        raise InputError(f"draw is {quoted(draw)}; it must be a number from 0 to 1")
    return number
