"""Why a policy asks for a test or decides, what it expects, and what else it could do: in words and amounts that people know."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Bools, Ints
from askwise.core.cases import State
from askwise.core.policy import Constant, ValueView
from askwise.core.scoring import expected_losses
from askwise.frontier.point import Point
from askwise.model.model import LearnedModel
from askwise.model.targeting import weighed_loss
from askwise.session.partial_case import PartialCase
from askwise.session.step import Expected, Option, Step

RUNNERS_UP = 3
LACKS = "some tests of the order that every case follows here are not available or not affordable"


@dataclass(eq=False)
class StepExplainer:
    """What a policy saw in some cases, in words and amounts that people know."""

    model: LearnedModel
    point: Point
    cases: Sequence[PartialCase]
    known: Bools | None
    held: Bools
    spent: Ints
    state: State
    view: ValueView
    value_function: Any

    def __post_init__(self) -> None:
        model, view, self.costs = self.model, self.view, self.model.schema.costs
        others = bool(model.schema.other_decisions)
        self.order: list[int] = self.value_function.fixed_order.tolist() if view.coming is not None else []
        self.cost = np.asarray(self.costs.money(self.spent), float)
        self.risk: Array  # B, D: expected loss of each decision now
        if view.belief is not None:
            self.belief = view.belief / np.add.reduce(view.belief, 1, keepdims=True, dtype=np.float64)
            self.risk = expected_losses(self.belief, weighed_loss(model.loss, self.point.class_weights), model.rule)
        else:
            self.belief = model.believed(view.q)
            self.risk = self.belief @ model.loss if others else -view.q[:, : model.schema.n_classes] * model.loss_scale
        # the best decision now that costs nothing, and its loss
        self.best = (np.where(model.schema.decision_cost > 0, np.inf, self.risk) if others else self.risk).argmin(1)
        self.now = self.risk[np.arange(len(self.best)), self.best]
        if model.rule is not None:  # the belief loses the same, whatever class is named
            self.risk = np.repeat(self.now[:, None], model.schema.n_classes, 1)
        finite = np.isfinite(view.gain)
        ranking = np.where(finite, -view.gain, np.inf).argsort(1, kind="stable")
        self.gain = self._possible(view.gain * model.loss_scale, ranking)
        ranked = ranking[:, : RUNNERS_UP + 1].tolist()
        # B lists: the tests with the largest gains
        self.ranked = [tests[:n] for tests, n in zip(ranked, np.add.reduce(finite, 1).tolist(), strict=True)]
        # B: whether a family says nothing useful of a case yet: it has learned from cases that hold what is free for everybody
        free = self.state.legal[:, model.schema.first_test :] & (self.costs.alone == 0)
        self.lacks_free: list[bool] = (np.logical_or.reduce(free, 1) & ~np.isnan(view.cost)).tolist()
        # B: whether nothing is known of a case that others do not begin with: what was measured then says more than a forecast
        limit = model.limit(self.point)
        self.begins = [
            not held.any() and case.open.all() and case.cap == limit for held, case in zip(self.held, self.cases, strict=True)
        ]
        self.shown_belief, self.shown_risk = self.belief.tolist(), np.maximum(self.risk, 0).tolist()  # values may be below 0

    def _possible(self, gain: Array, ranking: Ints) -> Array:
        """B, F: gains as far as they are possible, in the order of the estimates, which know no bounds. No test saves more than
        all that is lost by deciding now, and that only if nothing but itself is paid:

            gain ≤ max(now - λ cost, 0)
        """
        assert self.state.test_cost is not None
        most = np.maximum(self.now[:, None] - self.point.lam * self.state.test_cost, 0)
        possible = np.empty(gain.shape)
        bounded = np.take_along_axis(np.fmin(gain, most), ranking, 1)  # what is not estimated comes last
        np.put_along_axis(possible, ranking, np.minimum.accumulate(bounded, 1), 1)
        return np.where(np.isfinite(gain), possible, np.nan)

    def asked(self, i: int, test: int) -> Step:
        """Case i goes on with a test."""
        tests, state = self.model.schema.tests, self.state
        assert state.test_cost is not None
        test_cost, shared = float(state.test_cost[i, test]), 0.0
        includes: tuple[str, ...] = ()
        if not self.costs.plain:
            row = slice(i, i + 1)
            paid = self.costs.paid(self.held[row], None if self.known is None else self.known[row])
            new, part = self.costs.due(paid, np.arange(len(tests))[None] == test)
            shared = float(self.costs.money(part[0]))
            includes = tuple(tests[j] for j in np.flatnonzero(new[0]).tolist() if j != test)
        why = self._options(i, test)
        chosen: dict[str, Any] = {"test": tests[test], "test_cost": test_cost, "shared": shared, "includes": includes}
        return self._step(i, why, self._because(why), self._expected(i, test_cost), **chosen)

    def decided(self, i: int, decision: int) -> Step:
        """Case i is decided."""
        schema, cost = self.model.schema, float(self.cost[i])
        p = float(self.belief[i, decision]) if decision < schema.n_classes else None
        fee = float(self.costs.money(int(schema.decision_cost[decision])))
        why = self._options(i, None)
        if self.cases[i].stopped:
            reason = "stopping was requested"
        elif isinstance(self.value_function, Constant) or (self._in_order(i) and not self.order):
            reason = "at this budget the case is decided without any test that costs"
        elif self._in_order(i) and self.held[i, self.order].all():
            reason = "all tests of the order that every case follows here are known"
        elif not self.state.legal[i, schema.first_test :].any():
            reason = "there is nothing more that could be asked" + self._within(i)
        elif self.view.coming is not None:
            reason = f"{LACKS}, and no other test is expected to be worth its cost"
        else:
            reason = "no test is expected to be worth its cost"
        lost = self.risk[i, decision] if schema.other_decisions else self.now[i]
        expected = Expected(0.0, cost + fee, float(max(lost, 0)), p or 0.0)
        reason += self._weighed(i, decision)
        decided: dict[str, Any] = {"decision": schema.decisions[decision], "probability": p, "decision_cost": fee}
        return self._step(i, why, reason, expected, fee=fee, **decided)

    def _step(self, i: int, why: tuple[Option, ...], reason: str, expected: Expected, *, fee: float = 0.0, **chosen: Any) -> Step:
        schema, most = self.model.schema, self.cases[i].most
        return Step(
            probabilities=dict(zip(schema.classes, self.shown_belief[i], strict=True)),
            losses=dict(zip(schema.decisions, self.shown_risk[i], strict=True)),
            why=why,
            reason=reason,
            expected=expected,
            cost=float(self.cost[i]) + fee,
            left=None if most is None else float(most - int(self.spent[i]) * self.costs.smallest_unit) - fee,
            **chosen,
        )

    def _weighed(self, i: int, decision: int) -> str:
        """Why the decision need not be the likeliest class, where mistakes are not all alike."""
        classes, likeliest = self.model.schema.decisions, int(self.belief[i].argmax())
        if decision >= self.model.schema.n_classes:
            least = f"{classes[decision]} is expected to lose and cost less than any class"
            return f"; {least}, the likeliest of which is {classes[likeliest]}"
        if not self.model.weighted:
            heavier = f"; {classes[decision]} weighs more here than {classes[likeliest]}, which is more likely"
            return "" if self.model.rule is None or likeliest == decision else heavier
        although = "" if likeliest == decision else f", although {classes[likeliest]} is more likely"
        return f"; mistakes weigh differently here, and {classes[decision]} has the least expected loss{although}"

    def _within(self, i: int) -> str:
        cap, most = self.cases[i].cap, self.cases[i].most
        if cap is None:
            return ""
        if most is None:
            return f" within {self.costs.money(cap):g}, which no case exceeds at this point of the frontier"
        less = (cap + 1) * self.costs.smallest_unit <= most
        return f" within the {self.costs.money(cap):g} of the budget that it keeps to" if less else " within the budget"

    def _options(self, i: int, chosen: int | None) -> tuple[Option, ...]:
        """The chosen test first, then the best others: in a fixed order those that follow, otherwise by gain."""
        first = [] if chosen is None else [chosen]
        coming, test_cost = self.view.coming, self.state.test_cost
        assert test_cost is not None
        if coming is not None and self._in_order(i):
            ranked = [j for j in self.order if coming[i, j]]
            gain = None
        else:
            gain, ranked = self.gain[i], self.ranked[i]
        others = [j for j in ranked if j != chosen][:RUNNERS_UP]
        names = self.model.schema.tests
        if self.lacks_free[i]:
            gain = None
        return tuple(
            Option(names[j], float(test_cost[i, j]), None if gain is None or not math.isfinite(gain[j]) else float(gain[j]))
            for j in (*first, *others)
        )

    def _expected(self, i: int, test_cost: float) -> Expected:
        """If case i goes on, with a test of this cost."""
        view, spent, now = self.view, float(self.cost[i]), float(max(self.now[i], 0))
        cost, loss = float(view.cost[i]), float(view.loss[i]) * self.model.loss_scale
        if view.coming is not None and self._in_order(i):  # what comes is certain, how good it is was measured
            row = slice(i, i + 1)
            paid = self.costs.paid(self.held[row], None if self.known is None else self.known[row])
            cost, loss = float(self.costs.money(self.costs.bill(paid, view.coming[row])[0])), self.point.loss
        elif math.isnan(cost):  # only their sum is known, so the cost is taken from what was measured
            cost = max(self.point.cost - spent, test_cost)
            best = float(np.where(self.state.legal[i], view.q[i], -np.inf).max())
            loss = -best * self.model.loss_scale - self.point.lam * cost
        elif self.lacks_free[i] or self.begins[i]:
            cost, loss = max(self.point.cost - spent, test_cost), self.point.loss
        most = float(self.costs.money(self.costs.most)) - spent if self.state.left is None else float(self.state.left[i])
        cost, loss = max(min(cost, most), test_cost), min(max(loss, 0.0), now)
        if self.begins[i]:
            return Expected(cost, spent + cost, loss, self.point.measure.accuracy)
        # mistakes become rarer as the loss becomes smaller
        wrong = 1 - float(self.belief[i, min(self.best[i], self.belief.shape[1] - 1)])
        return Expected(cost, spent + cost, loss, 1 - wrong * (loss / now if now > 0 else 1.0))

    def _in_order(self, i: int) -> bool:
        """Whether case i follows a fixed order, rather than what is expected of each test."""
        return self.view.coming is not None and math.isnan(self.view.cost[i])

    def _because(self, why: tuple[Option, ...]) -> str:
        first, *others = why
        if first.cost == 0:
            return f"{first.test} is free, so it is asked before tests that cost something"
        if first.gain is None:
            return f"{first.test} is next in the order that every case follows here"
        loss = "loss" if self.model.rule is None else self.model.objective
        saves = f"{first.test} is expected to save {first.gain:.3g} of {loss} beyond its cost"
        if others:
            saves += f"; {', '.join(f'{o.test} {o.gain:.3g}' for o in others)}"
        return saves if self.view.coming is None else f"{LACKS}; {saves}"
