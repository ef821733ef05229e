"""One case, question by question, for a person or a program that fetches a value only when it is asked for.

A session holds what was told and refused; what comes next is one step of `core.episode`, the same as everywhere else. It needs no
torch, unless the model has an encoder of the user's own.
"""

from __future__ import annotations

import copy
import math
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from askwise.core.budget import Budget
from askwise.core.costs import exact
from askwise.core.sampling import hash_cases, uniform
from askwise.errors import FREE, UNDO, InputError, StateError, quoted
from askwise.model.model import LearnedModel
from askwise.session.step import Expected, Option, PartialCase, Step, steps

__all__ = ["Expected", "Option", "Session", "Step", "next_steps"]
TRACE = "askwise-trace-1"
LONGEST = 1000  # characters of a case's name


class Session:
    """One case: `next()` says which test to carry out or what is decided, `tell` takes its result.

    known: {test: value}, free of charge. case_id: what a mixture's draw depends on; a random one if it is not given. budget: what
    this case may cost at most, or a `Budget` as in `Model.at`. answers, refused: what `tell` and `refuse` would be called with.
    outside: whether values may lie outside of what training saw, or the names of the tests whose values may; it holds for `tell`
    too. draw: from 0 to 1, instead of the case's own.
    """

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
        self.model = _at(model, budget) if isinstance(budget, Budget) else model
        self.case_id = uuid.uuid4().hex if case_id is None else _name(case_id)
        self._draw = None if draw is None else _number(draw)
        self._outside = model.form.outside(outside)
        schema = model.schema
        no = np.zeros(schema.n_tests, bool)
        self._waiting = PartialCase(np.zeros(len(schema.columns), np.float32), no, no.copy(), ~no, *self._limits(budget))
        self._free = frozenset(model.form.index(name) for name in model.known)  # for everyone
        self._refused: dict[int, None] = {}
        self._values: dict[int, Any] = {}  # as they were told, in this order
        self._log: list[dict[str, Any]] = []
        self._done: list[tuple[dict[str, Any], bool]] = []  # what can be undone, and whether it had been refused before
        self._step: Step | None = None
        self.stopped = False
        for test, value in _named(known, "known").items():
            self._put(test, value, False, self._may(test))
        self._start = tuple(known or ())
        for test, value in _named(answers, "answers").items():
            self._tell(test, value, True, None)
        self._afford()
        for test in (refused,) if isinstance(refused, str) else refused:
            self._refuse(test)
        self._open()

    def _limits(self, budget: Any) -> tuple[int | None, Fraction | None]:
        """The units that what is asked keeps to, and what the case may cost at most, which may be more: see `Model.limit`."""
        costs, hard = self.model.schema.costs, self.model.budget.hard
        keeps = self.model.limit(self.model.followed[self.second])
        own = None if budget is None or isinstance(budget, Budget) else exact(budget, "the budget of the session")
        given = [amount for amount in (hard, own) if amount is not None]
        if not given:
            return keeps, None
        most = min(*given, costs.total * costs.unit)
        cap = Budget(hard=most).cap(costs)
        if keeps is None and cap == costs.total:  # what everything costs limits nothing, and is not shown to a policy
            return None, most
        return min(limit for limit in (keeps, cap) if limit is not None), most

    # ------------------------------------------------------------------ what is asked

    def next(self) -> Step:
        """The next test, or the decision."""
        return next_steps([self])[0]

    def stop(self) -> Step:
        """Decides now; `undo` takes it back."""
        if not self.stopped:
            self.stopped = True
            self._enter({"do": "stop"})
            self._open()
        return self.next()

    def what_if(self, test: str, value: Any, *, outside: bool | None = None) -> Step:
        """What would come next if this were told. Nothing changes."""
        other = copy.copy(self)
        other._waiting = self._waiting.copy()
        other._refused, other._values = dict(self._refused), dict(self._values)
        other._log, other._done = [], []
        other.tell(test, value, outside=outside)
        return other.next()

    @staticmethod
    def next_many(sessions: Sequence[Session]) -> list[Step]:
        """`next()` of many sessions, computed together."""
        return next_steps(sessions)

    # ------------------------------------------------------------------ what is answered

    def tell(self, test: str, value: Any, *, paid: bool = True, outside: bool | None = None) -> None:
        """The result of a test, asked or not: a value or, of a test that reveals several columns, {column: value}.

        paid: whether it cost its price. outside: the value is right although training saw none like it; None: as the
        session says.
        """
        self._tell(test, value, paid, outside)
        try:
            self._afford()
        except InputError:
            self._take_back(*self._done.pop())
            self._log.pop()
            raise
        self._open()

    def refuse(self, test: str) -> None:
        """This test is not available for this case, nor is what is computed from it."""
        if self._refuse(test):
            self._open()

    def undo(self) -> dict[str, Any]:
        """Takes back the last tell, refuse or stop, and returns it as it stands in the trace."""
        if not self._done:
            raise InputError("there is nothing to undo: no test was answered or refused")
        entry, was_refused = self._done.pop()
        self._take_back(entry, was_refused)
        self._log.append({"do": "undo"})
        self._open()
        return dict(entry)

    def _tell(self, test: str, value: Any, paid: bool, outside: bool | None) -> None:
        outside = self._may(test) if outside is None else outside
        shown = self._put(test, value, paid, outside)
        i = self.model.form.tests[test]
        entry = {"do": "tell", "test": test, "value": shown, "paid": bool(paid), "outside": bool(outside)}
        was_refused = i in self._refused
        self._refused.pop(i, None)
        self._enter(entry, was_refused)

    def _refuse(self, test: str) -> bool:
        """Whether it was not refused before."""
        i = self.model.form.index(test)
        if self._waiting.held[i]:
            raise InputError(f"test {test!r} already has a value, so it cannot be refused; {UNDO}")
        if i in self._refused:
            return False
        self._refused[i] = None
        self._enter({"do": "refuse", "test": test})
        return True

    def _may(self, test: str) -> bool:
        """Whether its value may lie outside of what training saw, where nothing else is said."""
        return self._outside if isinstance(self._outside, bool) else test in self._outside

    def _enter(self, entry: dict[str, Any], was_refused: bool = False) -> None:
        self._log.append(entry)
        self._done.append((entry, was_refused))

    def _put(self, test: str, value: Any, paid: bool, outside: bool) -> Any:
        form, waiting = self.model.form, self._waiting
        i = form.index(test)
        if waiting.held[i]:
            raise InputError(f"test {test!r} already has a value; {UNDO}")
        answer = form.read(test, value, outside)
        waiting.values[form.columns[i]] = answer.encoded
        waiting.held[i] = True
        waiting.known[i] = not paid or i in self._free
        self._values[i] = answer.value
        return answer.value

    def _take_back(self, entry: dict[str, Any], was_refused: bool) -> None:
        if entry["do"] == "stop":
            self.stopped = False
            return
        i = self.model.form.tests[entry["test"]]
        if entry["do"] == "refuse":
            del self._refused[i]
            return
        waiting = self._waiting
        waiting.values[self.model.form.columns[i]] = 0
        waiting.held[i] = waiting.known[i] = False
        del self._values[i]
        if was_refused:
            self._refused[i] = None

    def _afford(self) -> None:
        """Whether what was told keeps to the budget."""
        most, costs = self._waiting.most, self.model.schema.costs
        if most is not None and (units := self._units()) * costs.unit > most:
            last = self.model.schema.tests[next(reversed(self._values))]
            raise InputError(
                f"with test {last!r} this case would cost {costs.money(units):g}, but may cost {float(most):g}; {FREE}"
            )

    def _units(self) -> int:
        return int(self.model.schema.costs.cost(self._waiting.held[None], self._waiting.known[None])[0])

    def _open(self) -> None:
        """Which tests may be asked: not those that are refused, nor what everyone knows already. What is computed from these is
        for `core.episode` to know."""
        self._step = None
        open_ = self._waiting.open
        open_[:] = not self.stopped
        open_[[*self._refused, *self._free]] = False

    # ------------------------------------------------------------------ what there is to know

    @property
    def cost(self) -> float:
        """Paid so far."""
        return float(self.model.schema.costs.money(self._units()))

    @property
    def budget(self) -> float | None:
        """What this case may cost at most. What is asked may keep to a smaller limit, see `Model.limit`."""
        most = self._waiting.most
        return None if most is None else float(most)

    @property
    def known(self) -> dict[str, Any]:
        """What was known, or told free of charge."""
        return {self.model.schema.tests[i]: value for i, value in self._values.items() if self._waiting.known[i]}

    @property
    def answers(self) -> dict[str, Any]:
        """What was told and paid, in this order."""
        return {self.model.schema.tests[i]: value for i, value in self._values.items() if not self._waiting.known[i]}

    @property
    def refused(self) -> list[str]:
        return [self.model.schema.tests[i] for i in self._refused]

    @property
    def expects(self) -> list[str]:
        """Tests that the model takes for known by everyone, and that have no value yet. They are not asked for."""
        return [name for name in self.model.known if not self._waiting.held[self.model.form.tests[name]]]

    @cached_property
    def draw(self) -> float:
        """From 0 to 1, by the name of the case: below the mixture's share, the case follows its second policy."""
        if self._draw is not None:
            return self._draw
        return float(uniform(hash_cases(np.array([self.case_id])), self.model.seed)[0])

    @property
    def second(self) -> bool:
        """Whether the case follows the second policy of a mixture."""
        share = self.model.blend.share
        return bool(share) and self.draw < share

    def trace(self) -> dict[str, Any]:
        """All that happened, for JSON; `replay` makes the same session of it."""
        last = self._step
        return {
            "format": TRACE,
            "model": self.model.fingerprint,
            "case_id": self.case_id,
            "at": self.model.budget.to_dict(),
            "budget": self._told_budget(),
            "unit": self.model.unit,
            "draw": {"number": self.draw, "share": self.model.blend.share, "follows": int(self.second)},
            "known": {test: self._values[self.model.form.tests[test]] for test in self._start},
            "outside": self._outside,
            "events": self._told(),
            "answers": self.answers,
            "refused": self.refused,
            "cost": self.cost,
            "decision": None if last is None else last.decision,
            "probability": None if last is None else last.probability,
        }

    def _told_budget(self) -> float | str | None:
        """The budget for JSON: a number if it is exactly that, otherwise a ratio such as "1/3", so that what was paid fits it
        again."""
        most = self._waiting.most
        return self.budget if most is None or Fraction(str(float(most))) == most else str(most)

    def _told(self) -> list[dict[str, Any]]:
        """The log, with what each answer cost and whether it had been asked for."""
        costs, index = self.model.schema.costs, self.model.form.tests
        held, known = np.zeros((2, 1, len(index)), bool)
        for test in self._start:
            held[0, index[test]] = known[0, index[test]] = True
        asked: str | None = None
        undoable: list[dict[str, Any]] = []
        told: list[dict[str, Any]] = []
        for entry in self._log:
            if entry["do"] == "tell":
                i, before = index[entry["test"]], costs.cost(held, known)[0]
                held[0, i], known[0, i] = True, not entry["paid"] or i in self._free
                price = float(costs.money(costs.cost(held, known)[0] - before))
                entry = {**entry, "price": price, "asked": asked == entry["test"]}
            elif entry["do"] == "undo" and (last := undoable.pop())["do"] == "tell":
                held[0, index[last["test"]]] = known[0, index[last["test"]]] = False
            told.append({"do": entry["do"], **entry["step"].to_dict()} if "step" in entry else entry)
            undoable += [entry] if entry["do"] in ("tell", "refuse", "stop") else []
            asked = entry["step"].test if "step" in entry else None
        return told

    @classmethod
    def replay(cls, model: LearnedModel, trace: Mapping[str, Any], *, strict: bool = True) -> Session:
        """The session of a trace. strict: it must be of this very model, and come to the same decision."""
        if not isinstance(trace, Mapping) or trace.get("format") != TRACE:
            raise StateError(f"this is not the trace of a session; it must have the format {TRACE!r}")
        if strict and trace.get("model") != model.fingerprint:
            raise StateError("this trace is of another model; load that one, or use strict=False")
        try:
            at, most = Budget.from_dict(trace["at"]), trace["budget"]
            session = cls(
                model if at == model.budget else _at(model, at),
                trace["known"],
                case_id=trace["case_id"],
                budget=None if most is None else str(most),
                outside=trace["outside"],
                draw=float(trace["draw"]["number"]),
            )
            for entry in trace["events"]:
                session._repeat(entry)
            decision = trace["decision"]
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise StateError(f"this trace does not fit the model: {error}") from None
        if strict and decision != (session._step.decision if session._step else None):
            raise StateError(f"this trace comes to another decision than {decision!r}; it was changed, or made elsewhere")
        return session

    def _repeat(self, entry: Mapping[str, Any]) -> None:
        match entry["do"]:
            case "tell":
                self.tell(entry["test"], entry["value"], paid=entry["paid"], outside=entry["outside"])
            case "refuse":
                self.refuse(entry["test"])
            case "undo":
                self.undo()
            case "stop":
                self.stop()
            case "ask" | "decide":
                self.next()
            case other:
                raise StateError(f"there is no event {other!r}")


def next_steps(sessions: Sequence[Session]) -> list[Step]:
    """`next()` of many sessions, computed together."""
    groups: dict[tuple[Any, ...], list[Session]] = {}
    for session in sessions:
        if session._step is None:
            groups.setdefault((session.model, session.second, session._waiting.cap is None), []).append(session)
    for (model, second, _), some in groups.items():
        some = list(dict.fromkeys(some))
        found = steps(model, second, [s._waiting for s in some], [s.stopped for s in some])
        for session, step in zip(some, found, strict=True):
            session._step = step
            session._log.append({"do": "ask" if step.decision is None else "decide", "step": step})
    return [session._step for session in sessions]  # type: ignore[misc]


@lru_cache(maxsize=32)
def _at(model: LearnedModel, budget: Budget) -> LearnedModel:
    """The model under another budget; the same one for all sessions, since its networks are made ready once."""
    return model.at(budget)


def _name(case_id: Any) -> str:
    name = str(case_id)
    if len(name) > LONGEST:
        raise InputError(f"the case id has {len(name)} characters; it may have {LONGEST}")
    return name


def _named(given: Any, what: str) -> Mapping[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise InputError(f"{what} is {type(given).__name__!r}; it must be values by test, {{test: value}}")
    return given or {}


def _number(draw: Any) -> float:
    try:
        number = float(draw)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not 0 <= number <= 1:
        raise InputError(f"draw is {quoted(draw)}; it must be a number from 0 to 1")
    return number
