"""What the page shows: sessions and models as words and numbers for its templates. Nothing here knows about requests."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from askwise.core.measures import Measure
from askwise.core.target import Target
from askwise.errors import FREE, OUTSIDE, REFUSE, InputError, reworded
from askwise.frontier.hull import staircase
from askwise.frontier.point import SAME_TESTS
from askwise.model.alternatives import alternatives, at_average
from askwise.model.model import LearnedModel
from askwise.model.outcomes import BINS, Outcomes
from askwise.model.purchases import Usage, usage
from askwise.reports.model_report import compared, headline, lottery
from askwise.reports.pages import Strong
from askwise.session.session import TRACE, Session
from askwise.session.step import Option, Step
from askwise.web.chart_frames import Frame, enlarged, ticks

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
    if text == "1" and len(unit) > 3 and unit.endswith("s"):
        unit = unit[:-1]  # 1 dollar, 2 dollars
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
        most = "at most " if b.targets or b.confidence is not None else ""  # which may be far less
        sure = "" if b.confidence is None else f" with a probability of {b.confidence:g}"
        parts.append(f"at a mean cost of {most}{money(float(b.average), model.unit)} per case{sure}")
    if b.hard is not None:
        parts.append(f"with at most {money(float(b.hard), model.unit)} for any case")
    parts += [_has_to_reach(target) for target in b.targets]
    if b.class_weights is not None:
        weights = [f"mistakes about {name} count {weight:g} times as much" for name, weight in b.class_weights]
        parts.append(f"where {' and '.join(weights)}")
    return " and ".join(parts) or "at its cheapest point within one standard error of the best"


def _has_to_reach(target: Target) -> str:
    figure = target.figure if target.of is None else f"{target.figure} of {target.of}"
    sure = "" if target.confidence is None else f" with a probability of {target.confidence:g}"
    if target.figure == "loss":
        return f"at the least cost for a loss of at most {target.value:g}{sure}"
    return f"at the least cost for {'an' if figure[0] == 'a' else 'a'} {figure} of at least {percent(target.value)}{sure}"


_WORDS = {
    REFUSE: "fill it in, or press “Not available”",
    OUTSIDE: "tick the box below if it is right",
    FREE: "tick “it cost nothing” if that is so",
}


def for_people(words: str) -> str:
    """A sentence of the library, in the words of the page."""
    words = reworded(words, _WORDS)
    return _as_sentence(words)


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
        "others": [test for test in session.model.schema.offered if test not in answered],
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
        "loss_name": loss_name(model),
        "likeliest": str(likeliest),
        "beliefs": [(str(name), p, p == shares[likeliest]) for name, p in shares.items()],
        "decisions": [(str(name), shares.get(name), lost, name == step.decision) for name, lost in step.losses.items()],
    }


def _spending(session: Session, step: Step) -> dict[str, Any]:
    costs, spent = session.model.schema.costs, session.cost
    total = float(costs.money(costs.total))
    share, expected = (spent / total, min(step.expected.total / total, 1.0)) if total else (0.0, 0.0)
    return {"unit": session.model.unit, "total": total, "spent": spent, "spent_share": share, "expected_share": expected}


@lru_cache(maxsize=64)
def slider(model: LearnedModel) -> list[dict[str, Any]]:
    """What each position of the slider comes to."""
    positions = []
    for i in range(STEPS + 1):
        there = at_position(model, i)
        b = there.expected["cost"] if there is model else model.saturation.cost * i / STEPS
        figures = {"budget": b, **{k: there.expected[k] for k in ("cost", "accuracy", "loss")}}
        words = {
            "budget": money(b, model.unit, about=True),
            "cost": money(figures["cost"], model.unit, about=True),
            "accuracy": percent(figures["accuracy"]),
            "loss": f"{figures['loss']:.4f}",
            "lottery": _as_sentence(lottery(there)),
        }
        words |= {name.replace("_", "-"): text for name, text in errors(there.measured, model.unit).items()}
        error = there.measured.loss_error if model.judged_by_loss else there.measured.accuracy_error
        positions.append({**figures, "error": error, "words": words, "n": there.measured.n})
    return positions


def _as_sentence(words: str) -> str:
    return words and f"{words[0].upper()}{words[1:]}."


def errors(measured: Measure, unit: str) -> dict[str, str]:
    """The standard errors in words, for after the figures."""
    return {
        "cost_error": f"± {money(measured.cost_error, unit, about=True)}",
        "accuracy_error": f"± {100 * measured.accuracy_error:.1f}{NOT_BROKEN}%",
        "loss_error": f"± {measured.loss_error:.4f}",
    }


def position(model: LearnedModel, b: float) -> int:
    """The position of the slider for a budget."""
    most = model.saturation.cost
    return STEPS if not most else min(max(round(b / most * STEPS), 0), STEPS)


def at_position(model: LearnedModel, at: int) -> LearnedModel:
    """The model at a position of the slider; where it works, that is the model itself, so that all figures agree."""
    return model if at == position(model, model.expected["cost"]) else at_average(model, model.saturation.cost * at / STEPS)


def loss_name(model: LearnedModel) -> str | None:
    """What the loss is called that a model was learned for; None where it was the accuracy."""
    return model.objective if model.rule is not None else "loss" if model.weighted else None


def model_view(model: LearnedModel, at: int | None) -> dict[str, Any]:
    """The frontier, and what is bought at one position of the slider; None is where the model works."""
    at = position(model, model.expected["cost"]) if at is None else at
    steps = slider(model)
    used, schema = usage(at_position(model, at)), model.schema
    return {
        "at": at,
        "most": STEPS,
        "steps": steps,
        "here": steps[at],
        "held_out_cases": model.held_out_cases,
        "rows": None if used is None else used.rows,
        "used": None if used is None else _bought(model, used),
        "ends": None if used is None or used.outcomes is None else _ends(model, used.outcomes),
        "headline": headline(model),
        "kinds": _kinds(model),
        "paths": [] if used is None else used.paths,
        "costs": dict(zip(schema.offered, schema.costs.money(schema.costs.alone).tolist(), strict=False)),
        "points": [{**p.shown, **errors(p.measure, model.unit)} for p in model.frontier],
        "loss_name": loss_name(model),
        "unit": model.unit,
        "total": float(schema.costs.money(schema.costs.total)),
        "chart": chart(model, steps),
        "budget": works_at(model),
    }


def _kinds(model: LearnedModel) -> dict[str, Any] | None:
    """Kinds of policies compared; which cells are of what is used."""
    table = compared(model)
    if table is None:
        return None
    rows = [[(cell, isinstance(cell, Strong)) for cell in row] for row in table.rows]
    return {"title": table.title, "head": table.head, "rows": rows}


def _bought(model: LearnedModel, used: Usage) -> list[tuple[str, float, list[tuple[str, float]]]]:
    """How often each test is bought, by all cases and by those of each class."""
    classes = [] if used.outcomes is None else used.outcomes.classes
    kept = [(str(name), each.bought) for name, each in zip(model.schema.classes, classes, strict=False) if each.cases]
    rows = []
    for i, (test, share) in enumerate(used.bought.items()):
        rows.append((test, share, [(name, bought[i]) for name, bought in kept if bought is not None]))
    return sorted(rows, key=lambda row: -row[1])


def _ends(model: LearnedModel, ends: Outcomes) -> dict[str, Any]:
    """How often cases of each class are decided rightly, and a picture of 300 by 290 of how far probabilities can be trusted."""
    frame = Frame(66.0, 280.0, 26.0, 240.0, (0.0, 1.0), (0.0, 1.0))
    classes = zip(model.schema.classes, ends.classes, strict=True)
    most = max((b.cases for b in ends.bins), default=1)
    return {
        "classes": [
            (str(name), round(c.cases), c.recall, f"± {100 * c.error:.1f}{NOT_BROKEN}%") for name, c in classes if c.cases
        ],
        "about": "the class decided for" if ends.about is None else str(model.schema.classes[ends.about]),
        "cases": ends.cases,
        "off": f"{100 * ends.calibration_error:.1f}",
        "frame": frame,
        "ticks": [(frame.x(v), frame.y(v), percent(v)) for v in (0.0, 0.25, 0.5, 0.75, 1.0)],
        "bins": [
            {
                "x": frame.x(b.probability),
                "y": frame.y(b.share),
                "low": frame.y(b.interval[0]),
                "high": frame.y(b.interval[1]),
                "r": round(4 + 5 * (b.cases / most) ** 0.5, 2),
                "above": frame.x((b.place + 0.5) / BINS),
                "words": (percent(b.probability), percent(b.share), round(b.cases)),
            }
            for b in ends.bins
        ],
    }


def chart(model: LearnedModel, steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Coordinates of the frontier in a picture of 480 by 300: accuracy or, if it was learned for a loss, minus it, over cost;
    with a band of one standard error, and what the same tests for everybody come to."""
    key, sign = ("loss", -1.0) if model.judged_by_loss else ("accuracy", 1.0)
    xs, ys = [s["cost"] for s in steps], [sign * s[key] for s in steps]
    dots = [(p.cost, sign * getattr(p, key)) for p in model.frontier]
    near = 1.3 * max(xs)  # what is much dearer would squeeze the curve
    plain = [each.measure for each in alternatives(model) if each.kind == SAME_TESTS and model.budget.hard is None]
    others = sorted((m.cost, sign * getattr(m, key)) for m in plain if 0 < m.cost <= near)
    widest = max([*xs, *(x for x, _ in (*dots, *others))]) or 1.0
    heights = [*ys, *(y for _, y in dots)]
    low, high = min(heights), max(y + s["error"] for y, s in zip(ys, steps, strict=True))
    room = (high - low) * 0.08 or 0.05
    frame = Frame(72.0, 466.0, 16.0, 250.0, (0.0, 1.02 * widest), (low - room, high + room))
    x, y = frame.x, frame.y

    def label(value: float) -> str:
        return percent(value) if sign > 0 else f"{0.0 - value:.3g}"

    edges = [*((a, b + s["error"]) for a, b, s in zip(xs, ys, steps, strict=True))]
    edges += [(a, b - s["error"]) for a, b, s in reversed(list(zip(xs, ys, steps, strict=True)))]
    best = [others[i] for i in staircase([a for a, _ in others], [b for _, b in others]).tolist()]
    return {
        "line": " ".join(f"{x(a)},{y(b)}" for a, b in zip(xs, ys, strict=True)),
        "band": " ".join(f"{x(a)},{y(b)}" for a, b in edges),
        "dots": [(x(a), y(b)) for a, b in dots],
        "marks": [(x(a), y(b)) for a, b in zip(xs, ys, strict=True)],
        "others": [(x(a), y(b)) for a, b in others],
        "others_line": " ".join(f"{x(a)},{y(b)}" for a, b in best),
        "x_ticks": [(x(v), f"{v:.4g}") for v in ticks(0, widest)],
        "y_ticks": [(y(v), label(v)) for v in ticks(*frame.up)],
        "enlarged": enlarged(frame, list(zip(xs, ys, strict=True)), [*dots, *others], label),
        "left": frame.left,
        "right": frame.right,
        "top": frame.top,
        "bottom": frame.bottom,
    }
