"""Whether given cases bear out what a budget promises."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from askwise.core.shares import wilson
from askwise.core.target import Target
from askwise.evaluation import Report
from askwise.model.fit_rows import share_of_fit
from askwise.model.model import LearnedModel
from askwise.reports import by_class
from askwise.reports.model_report import measured, unit_of
from askwise.texts import give_or_take

KEPT, CHANCE, BROKEN = "kept", "above, by no more than chance would explain", "above, by more than chance would explain"
MISSED_BY_CHANCE, MISSED = CHANCE.replace("above", "below"), BROKEN.replace("above", "below")
NO_CASES = "no such cases are among these"
ERRORS = 2.0  # standard errors that chance explains


@dataclass(frozen=True)
class Promise:
    """What was promised, what came, and whether that bears it out."""

    promise: str
    came: str
    verdict: str

    def __str__(self) -> str:
        return f"{self.promise}: {self.came} ({self.verdict})"

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def for_machines(model: LearnedModel, report: Report, kind: str) -> dict[str, Any]:
    """What a model came to on some cases, class by class too, and whether that bears out what it promises. kind: as in
    `MeasuredOn`; of test cases it is told which share of them the fit has seen."""
    of_fit = {"share_of_fit": share_of_fit(model.facts, report.problem)} if kind == "test" else {}
    promises = [promise.to_dict() for promise in borne_out(model, report)]
    return {**measured(model, report), **of_fit, **by_class.as_json(report), "promises": promises}


def borne_out(model: LearnedModel, report: Report) -> list[Promise]:
    """Of each part of the budget that promises something."""
    budget, m, unit, promises = model.budget, report.measure, unit_of(model), list[Promise]()
    if budget.average is not None:
        b = float(budget.average)
        sure = "" if budget.confidence is None else f", with a probability of {budget.confidence:g}"
        verdict = KEPT if m.cost <= b * (1 + 1e-9) else CHANCE if m.cost - b <= ERRORS * m.cost_error else BROKEN
        came = f"these cost {m.cost:.4g}{give_or_take(m.cost_error)}{unit}"
        promises.append(Promise(f"cases cost at most {b:.4g}{unit} on average{sure}", came, verdict))
    if budget.hard is not None:
        b, dearest = float(budget.hard), float(report.cost_per_case.max(initial=0.0))
        verdict = KEPT if dearest <= b * (1 + 1e-9) else BROKEN
        promises.append(Promise(f"no case costs more than {b:.4g}{unit}", f"the dearest costs {dearest:.4g}{unit}", verdict))
    return promises + [_reached(target, model, report) for target in budget.targets]


def _reached(target: Target, model: LearnedModel, report: Report) -> Promise:
    """Whether a target is reached by these cases, whose classes are known."""
    sure = "" if target.confidence is None else f", with a probability of {target.confidence:g}"
    if target.figure == "loss":
        m = report.measure
        verdict = KEPT if m.loss <= target.value + 1e-9 else CHANCE if m.loss - target.value <= ERRORS * m.loss_error else BROKEN
        came = f"these lose {m.loss:.4g}{give_or_take(m.loss_error)}"
        return Promise(f"cases lose at most {target.value:.4g} on average{sure}", came, verdict)
    promise = f"{target.words} of at least {target.value:.4g}{sure}"
    share, cases = target.measured(report.confusion, model.schema.classes, model.losses)[:2]
    if not cases:
        return Promise(promise, NO_CASES, "not seen")
    by_chance = wilson(share, cases, ERRORS)[1] >= target.value
    verdict = KEPT if share >= target.value - 1e-9 else MISSED_BY_CHANCE if by_chance else MISSED
    return Promise(promise, f"these come to {share:.4g}, of {cases:,.0f} cases", verdict)
