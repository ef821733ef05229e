"""Whether given cases bear out what a budget promises."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from askwise.evaluation import Report
from askwise.model.model import LearnedModel
from askwise.reports import by_class
from askwise.reports.model_report import measured, unit_of
from askwise.texts import give_or_take

KEPT, CHANCE, BROKEN = "kept", "above, by no more than chance would explain", "above, by more than chance would explain"
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


def for_machines(model: LearnedModel, report: Report) -> dict[str, Any]:
    """What a model came to on some cases, class by class too, and whether that bears out what it promises."""
    promises = [promise.to_dict() for promise in borne_out(model, report)]
    return {**measured(model, report), **by_class.as_json(report), "promises": promises}


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
    return promises
