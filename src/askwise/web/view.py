"""What the page shows: sessions and models as words and numbers for its templates. Nothing here knows about requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor, log10
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from askwise.core.budget import Budget
from askwise.core.measures import Measure
from askwise.errors import FREE, OUTSIDE, REFUSE, InputError, reworded
from askwise.model.model import LearnedModel
from askwise.model.purchases import usage
from askwise.session.session import TRACE, Session
from askwise.session.step import Option, Step
from askwise.texts import give_or_take

STEPS = 100  # of the slider
NOT_BROKEN = "\u00a0"
IN_FRONT = {"$", "£", "¥"}


class PageState(BaseModel):
    """A case in a form of the page: what a trace needs to be replayed."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)

    case_id: str
    draw: float
    budget: float | str | None = None  # text: a ratio such as 1/3
    known: dict[str, JsonValue] = {}
    outside: bool | list[str] = []
    events: list[dict[str, JsonValue]] = []


def most_events(model: LearnedModel) -> int:
    """What a case may hold on the page, where all events are computed again with every request: every test told, taken back and
    told again, and some more."""
    return 20 + 4 * model.schema.n_tests


def revived(model: LearnedModel, text: str, breathe: Callable[[], None] | None = None) -> Session:
    """The session that a form carries. breathe: also with all that was asked on the way; it is called after every event."""
    try:
        state = PageState.model_validate_json(text)
    except ValidationError:
        raise InputError("the page's own record of the case is damaged; start the case again") from None
    if len(state.events) > (most := most_events(model)):
        raise InputError(f"this case has more than {most} steps; start it again")

    def asked(breathe: Callable[[], None]) -> Iterator[Any]:
        yield {"do": "ask"}
        for event in state.events:
            yield event
            yield {"do": "ask"}
            breathe()

    events = state.events if breathe is None else asked(breathe)
    more = {"draw": {"number": state.draw}, "events": events, "format": TRACE, "at": model.budget.to_dict(), "decision": None}
    return Session.replay(model, {**state.model_dump(), **more}, strict=False)


def carried(session: Session) -> str:
    """The inverse of `revived`."""
    trace, keys = session.trace(), ("do", "test", "value", "paid", "outside")
    events = [{k: e[k] for k in keys if k in e} for e in trace["events"] if e["do"] in ("tell", "refuse", "undo", "stop")]
    kept = {k: trace[k] for k in ("case_id", "budget", "known", "outside")}
    return PageState(**kept, draw=trace["draw"]["number"], events=events).model_dump_json()


def taken(events: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """What was told, refused or stopped and not taken back, in this order."""
    stack: list[dict[str, Any]] = []
    for event in events:
        if event["do"] == "undo":
            stack.pop()
        elif event["do"] in ("tell", "refuse", "stop"):
            stack.append(event)
    return stack


def money(amount: float | None, unit: str, about: bool = False) -> str:
    """An amount with its unit. `about`: an estimate, of which two digits are enough."""
    if amount is None:
        return "–"
    text = f"{amount:,.2f}" if about or round(amount, 2) == round(amount, 6) else f"{amount:,.6g}"
    text = text.removesuffix(".00") if not about and unit not in IN_FRONT | {"€"} else text
    if not unit:
        return text
    return f"{unit}{text}" if unit in IN_FRONT else f"{text}{NOT_BROKEN}{unit}"


def percent(share: float | None) -> str:
    if share is None:
        return "–"
    text = f"{100 * share:.1f}"
    if (text == "100.0" and share < 1) or (text == "0.0" and share > 0):
        text = "over 99.9" if share > 0.5 else "below 0.1"
    return text.removesuffix(".0") + NOT_BROKEN + "%"


def shown(value: Any) -> str:
    """An answer as people write it."""
    if isinstance(value, dict):
        return ", ".join(f"{name}: {shown(each)}" for name, each in value.items())
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


def works_at(model: LearnedModel) -> str:
    """The model's budget as the end of a sentence."""
    b, parts = model.budget, []
    if b.lam is not None:
        parts.append(f"where one more {model.unit or 'unit of cost'} must save {b.lam:.3g} of loss")
    if b.average is not None:
        parts.append(f"at a mean cost of {money(float(b.average), model.unit)} per case")
    if b.hard is not None:
        parts.append(f"with at most {money(float(b.hard), model.unit)} for any case")
    return " and ".join(parts) or "at the cheapest point that is about as good as its best"


_WORDS = {
    REFUSE: "fill it in, or press “Not available”",
    OUTSIDE: "tick the box below if it is right",
    FREE: "tick “it cost nothing” if that is so",
}


def for_people(words: str) -> str:
    """A sentence of the library, in the words of the page."""
    words = reworded(words, _WORDS)
    return words[:1].upper() + words[1:] + "."


def inputs(model: LearnedModel, test: str) -> list[dict[str, Any]]:
    """The fields of a test, each with the words that help to fill it in."""
    fields = []
    for field in model.form.fields(test):
        numeric, date = field.kind == "number", field.kind == "time"
        hint = ""
        if field.low is not None and (numeric or date):
            low, high = (f"{end:.6g}" if isinstance(end, float) else end for end in (field.low, field.high))
            hint = f"{low} to {high} in past cases"
        choices = [(c, c) for c in field.categories] if field.kind in ("category", "ordinal") else []
        if field.kind == "boolean":
            choices = [("true", "yes"), ("false", "no")]
        kind = "text" if not choices or field.others else "radio" if len(choices) <= 6 else "select"
        words = {"column": field.column, "kind": kind, "choices": choices, "hint": hint}
        fields.append({**words, "numeric": numeric, "date": date})
    return fields


def case_view(session: Session, chosen: str | None = None) -> dict[str, Any]:
    """A case as it stands: the question or the decision, beliefs, money and the path. `chosen`: a test that was not asked."""
    step, trace = session.next(), session.trace()
    path, test = taken(trace["events"]), chosen or step.test
    answered = {*session.answers, *session.known, step.test}
    return {
        "session": session,
        "step": step,
        "test": test,
        "chosen": chosen,
        "fields": inputs(session.model, test) if test else [],
        "number": 1 + sum(event["do"] == "tell" for event in path),
        "path": path,
        "known": trace["known"],
        "others": [test for test in session.model.schema.tests if test not in answered],
        "state": carried(session),
        "why": _gains(step),
        **_beliefs(session.model, step),
        **_spending(session, step),
    }


def _gains(step: Step) -> list[tuple[Option, float | None, bool]]:
    """The tests that could be next: how long the bar of each gain is, and which one is asked."""
    longest = max((abs(o.gain) for o in step.why if o.gain is not None), default=0) or 1
    return [(o, None if o.gain is None else abs(o.gain) / longest, o.test == step.test) for o in step.why]


def _beliefs(model: LearnedModel, step: Step) -> dict[str, Any]:
    """How likely each class is, and what deciding for it would lose."""
    shares = step.probabilities
    likeliest = max(shares, key=lambda name: shares[name])
    return {
        "weighted": model.weighted,
        "likeliest": str(likeliest),
        "beliefs": [(str(name), p, p == shares[likeliest]) for name, p in shares.items()],
        "decisions": [(str(name), p, step.losses[name], name == step.decision) for name, p in shares.items()],
    }


def _spending(session: Session, step: Step) -> dict[str, Any]:
    costs, spent = session.model.schema.costs, session.cost
    total = float(costs.money(costs.total))
    share, expected = (spent / total, min(step.expected.total / total, 1.0)) if total else (0.0, 0.0)
    return {"unit": session.model.unit, "total": total, "spent": spent, "spent_share": share, "expected_share": expected}


def at_average(model: LearnedModel, b: float) -> LearnedModel:
    """The model where it may spend b on average, and keeps to the hard budget that it has."""
    average = Fraction(f"{b:.12g}")  # a share of a mean cost, which may be less than a person would give
    return model.at(Budget(average=average, hard=model.budget.hard))


@lru_cache(maxsize=64)
def slider(model: LearnedModel) -> list[dict[str, Any]]:
    """What each position of the slider comes to."""
    positions = []
    for i in range(STEPS + 1):
        b = model.saturation.cost * i / STEPS
        there = at_average(model, b)
        figures = {"budget": b, **{k: there.expected[k] for k in ("cost", "accuracy", "loss")}}
        words = {
            "budget": money(b, model.unit, about=True),
            "cost": money(figures["cost"], model.unit, about=True),
            "accuracy": percent(figures["accuracy"]),
            "loss": f"{figures['loss']:.4g}",
        }
        words |= {name.replace("_", "-"): text for name, text in errors(there.measured, model.unit).items()}
        positions.append({**figures, "words": words, "n": there.measured.n})
    return positions


def errors(measured: Measure, unit: str) -> dict[str, str]:
    """The standard errors in words, for after the figures."""
    return {
        "cost_error": f"± {money(measured.cost_error, unit, about=True)}",
        "accuracy_error": f"± {100 * measured.accuracy_error:.1f}{NOT_BROKEN}%",
        "loss_error": give_or_take(measured.loss_error).strip(),
    }


def position(model: LearnedModel, b: float) -> int:
    """The position of the slider for a budget."""
    most = model.saturation.cost
    return STEPS if not most else min(max(round(b / most * STEPS), 0), STEPS)


def model_view(model: LearnedModel, at: int | None) -> dict[str, Any]:
    """The frontier, and what is bought at one position of the slider; None is where the model works."""
    at = position(model, model.expected["cost"]) if at is None else at
    steps = slider(model)
    there = at_average(model, steps[at]["budget"])
    used, schema = usage(there), model.schema
    return {
        "at": at,
        "most": STEPS,
        "steps": steps,
        "here": steps[at],
        "held_out_cases": model.held_out_cases,
        "rows": None if used is None else used.rows,
        "used": None if used is None else sorted(used.bought.items(), key=lambda pair: -pair[1]),
        "paths": [] if used is None else used.paths,
        "costs": dict(zip(schema.tests, schema.costs.money(schema.costs.alone).tolist(), strict=True)),
        "points": [{**p.shown, **errors(p.measure, model.unit)} for p in model.frontier],
        "weighted": model.weighted,
        "unit": model.unit,
        "total": float(schema.costs.money(schema.costs.total)),
        "chart": chart(model, steps),
        "budget": works_at(model),
    }


def chart(model: LearnedModel, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Coordinates of the frontier in a picture of 480 by 300: accuracy or, where mistakes differ, minus the loss, over cost."""
    key, sign = ("loss", -1.0) if model.weighted else ("accuracy", 1.0)
    xs, ys = [s["cost"] for s in steps], [sign * s[key] for s in steps]
    dots = [(p.cost, sign * getattr(p, key)) for p in model.frontier]
    frame = {"left": 58.0, "right": 466.0, "top": 16.0, "bottom": 250.0}
    left, right, top, bottom = frame.values()
    widest = max([*xs, *(x for x, _ in dots)]) or 1.0
    heights = [*ys, *(y for _, y in dots)]
    low, high = min(heights), max(heights)
    room = (high - low) * 0.08 or 0.05
    low, high = low - room, high + room

    def x(value: float) -> float:
        return round(float(left + (right - left) * value / (1.02 * widest)), 2)

    def y(value: float) -> float:
        return round(float(bottom - (bottom - top) * (value - low) / (high - low)), 2)

    def label(value: float) -> str:
        return percent(value) if sign > 0 else f"{-value:.3g}"

    return {
        "line": " ".join(f"{x(a)},{y(b)}" for a, b in zip(xs, ys, strict=True)),
        "dots": [(x(a), y(b)) for a, b in dots],
        "marks": [(x(a), y(b)) for a, b in zip(xs, ys, strict=True)],
        "x_ticks": [(x(v), f"{v:.4g}") for v in ticks(0, widest)],
        "y_ticks": [(y(v), label(v)) for v in ticks(low, high)],
        **frame,
    }


def ticks(low: float, high: float, n: int = 5) -> list[float]:
    """About n round numbers from low to high."""
    rough = (high - low) / n
    base = 10.0 ** floor(log10(rough))
    step = next(m * base for m in (1, 2, 2.5, 5, 10) if m * base >= rough)
    return [round(i * step, 10) for i in range(ceil(low / step), floor(high / step) + 1)]
