"""One case, question by question, for a person or a program that fetches a value only when it is asked for; and its record.

It needs no torch, unless the model has an encoder of the user's own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from askwise.core.budget import Budget
from askwise.errors import StateError
from askwise.model.model import LearnedModel
from askwise.session.next_steps import next_steps
from askwise.session.partial_case import PartialCase, shared_at_budget
from askwise.session.step import Step

TRACE = "askwise-trace-2"


class Session(PartialCase):
    """One case: `next()` says which test to carry out or what is decided, `tell` takes its result.

    Parameters
    ----------
    model : Model
    known : dict, default=None
        {test: value}, free of charge.
    case_id : str or int, default=None
        What a mixture's draw depends on; a random one by default.
    budget : Budget or amount, default=None
        As in `Model.at`, or what this case may cost at most.
    answers : dict, default=None
        {test: value}: what `tell` would be called with.
    refused : sequence of str, default=()
        What `refuse` would be called with.
    outside : bool or sequence of str, default=False
        Whether values may lie outside of what training saw, or the tests whose values may; it holds for `tell` too.
    draw : float, default=None
        From 0 to 1, instead of the case's own draw.

    Examples
    --------
    >>> session = model.session(known={"age": 52})  # doctest: +SKIP
    >>> while (step := session.next()).decision is None:  # doctest: +SKIP
    ...     session.tell(step.test, measure(step.test))
    """

    _step: Step | None = None

    def _reopen(self) -> None:
        super()._reopen()
        self._step = None

    def next(self) -> Step:
        """The next test, or the decision."""
        return self.next_many([self])[0]

    def stop(self) -> Step:
        """Decides now; `undo` takes it back."""
        super().stop()
        return self.next()

    def what_if(self, test: str, value: Any, *, outside: bool | None = None) -> Step:
        """What would come next if this were told. Nothing changes."""
        other = self.copy()
        other.tell(test, value, outside=outside)
        return other.next()

    @staticmethod
    def next_many(sessions: Sequence[Session]) -> list[Step]:
        """`next()` of many sessions, computed together."""
        waiting = list(dict.fromkeys(session for session in sessions if session._step is None))
        for session, step in zip(waiting, next_steps(waiting), strict=True):
            session._step = step
            session._log.append({"do": "ask" if step.decision is None else "decide", "step": step})
        return [session._step for session in sessions]  # type: ignore[misc]

    def trace(self) -> dict[str, Any]:
        """All that happened, for JSON; `replay` makes the same session of it."""
        last, most = self._step, self.most
        return {
            "format": TRACE,
            "model": self.model.fingerprint,
            "case_id": self.case_id,
            "at": self.model.budget.to_dict(),
            # a number if it is exactly that, otherwise a ratio such as "1/3", so that what was paid fits it again
            "budget": self.budget if most is None or Fraction(str(float(most))) == most else str(most),
            "unit": self.model.unit,
            "draw": {"number": self.draw, "share": self.model.blend.drawn, "follows": int(self.second)},
            "known": {test: self._answers[self.model.form.tests[test]] for test in self._start},
            "outside": self._outside,
            "events": self._events(),
            "answers": self.answers,
            "refused": self.refused,
            "cost": self.cost,
            "decision": None if last is None else last.decision,
            "probability": None if last is None else last.probability,
            "decision_cost": None if last is None else last.decision_cost,
        }

    def _events(self) -> list[dict[str, Any]]:
        """The log, with what each answer cost and whether it had been asked for."""
        costs, index = self.model.schema.costs, self.model.form.tests
        held, free = np.zeros((2, 1, self.model.schema.n_tests), bool)
        for test in self._start:
            held[0, index[test]] = free[0, index[test]] = True
        asked: str | None = None
        undoable: list[dict[str, Any]] = []
        events: list[dict[str, Any]] = []
        for entry in self._log:
            if entry["do"] == "tell":
                i, before = index[entry["test"]], costs.cost(held, free)[0]
                held[0, i], free[0, i] = True, not entry["paid"] or i in self._everyone
                cost = float(costs.money(costs.cost(held, free)[0] - before))
                entry = {**entry, "cost": cost, "asked": asked == entry["test"]}
            elif entry["do"] == "undo" and (last := undoable.pop())["do"] == "tell":
                held[0, index[last["test"]]] = free[0, index[last["test"]]] = False
            events.append({"do": entry["do"], **entry["step"].to_dict()} if "step" in entry else entry)
            undoable += [entry] if entry["do"] in ("tell", "refuse", "stop") else []
            asked = entry["step"].test if "step" in entry else None
        return events

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
                model if at == model.budget else shared_at_budget(model, at),
                trace["known"],
                case_id=trace["case_id"],
                budget=None if most is None else str(most),
                outside=trace["outside"],
                draw=float(trace["draw"]["number"]),
            )
            for event in trace["events"]:
                session.repeat(event)
            decision = trace["decision"]
        except (KeyError, TypeError, AttributeError, ValueError, OverflowError) as error:
            raise StateError(f"this trace does not fit the model: {error}") from None
        if strict and decision != (session._step.decision if session._step else None):
            raise StateError(f"this trace comes to another decision than {decision!r}; it was changed, or made elsewhere")
        return session

    def repeat(self, event: Mapping[str, Any]) -> None:
        """One event of a record."""
        match event["do"]:
            case "ask" | "decide":
                self.next()
            case "tell":
                self.tell(event["test"], event["value"], paid=event["paid"], outside=event["outside"])
            case "refuse":
                self.refuse(event["test"])
            case "undo":
                self.undo()
            case "stop":
                super().stop()
            case other:
                raise StateError(f"there is no event {other!r}")
