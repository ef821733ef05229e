"""The paper's algorithm as users get it, on one table: its fits and their row. benchmarks.paper.tables starts it as a process of
its own, with the checkout in PYTHONPATH:

    python -m benchmarks.paper.fits CHECKOUT DATA SEED > row.json

Only what an earlier askwise offers as well is used here. It ends when the process that started it is gone.
"""

from __future__ import annotations

import json
import os
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import askwise
from askwise import AverageBudget, CostlyClassifier
from askwise.core.budget import Budget
from askwise.core.episode import measure
from askwise.core.problem import Problem
from askwise.datasets.named import Raw, raw
from askwise.evaluation import Report
from askwise.facade import Model
from askwise.frontier.metric import curve

WEIGHTS = {"thyroid": "balanced"}
PARENT = os.getppid()
SHARES = (0.1, 0.25, 0.5)  # of what all tests cost: the average budgets


def row_of(name: str, seed: int) -> dict[str, Any]:
    """A fit without a budget and one for each average budget. Test rows are those of the named split; of the others `fit` keeps
    some for validation, as it does for everybody."""
    data, began = raw(name), time.process_time()
    train, validation, test = data.splits(seed)
    rows = np.concatenate([train, validation])
    classifier, model, history = fitted(data, seed, rows, None)
    kept = classifier.prepare(data.table.iloc[rows], data.y[rows]).validation
    total = float(model.schema.costs.money(model.schema.costs.total))
    cases = model.problem(data.table.iloc[test], data.y[test])
    row = {
        **{"n_fit": len(rows), "n_test": len(test), "total": total, "points": len(model.points)},
        "area": area(model, kept, cases, total),
        "budgets": [budget_of(data, seed, rows, test, share, total) for share in SHARES],
    }
    return {**row, "steps": history[-1]["step"], "cpu_seconds": round(time.process_time() - began, 1)}


def fitted(data: Raw, seed: int, rows: Any, budget: Budget | None) -> tuple[CostlyClassifier, Model, list[dict[str, Any]]]:
    """With all settings as they come; also the interim measurements."""
    history: list[dict[str, Any]] = []

    def callback(record: Any) -> None:
        if os.getppid() != PARENT:
            sys.exit(1)
        history.append(record.to_dict())

    classifier = CostlyClassifier(
        costs=data.costs,
        setup=data.setup,
        derived=data.derived,
        reveals=data.reveals,
        categorical=data.categorical,
        scaling=data.scaling,
        class_weight=WEIGHTS.get(data.card.name),
        budget=budget,
        algorithm="paper",
        random_state=seed,
    ).fit(data.table.iloc[rows], data.y[rows], callback=callback)
    return classifier, classifier.model_, history


def area(model: Model, validation: Problem, test: Problem, total: float) -> float:
    """The paper's metric: points chosen on validation rows, the area under their curve on test rows. The first point decides at
    once."""
    arms = [model.arm(point) for point in model.points]
    (vc, vs), (tc, ts) = (
        np.transpose([(m.cost, score(model, m.loss)) for m in (measure(rows, arm, None) for arm in arms)])
        for rows in (validation, test)
    )
    return curve((vc, vs), (tc, ts), (vs[0], ts[0]), total).area


def score(model: Model, loss: float) -> float:
    return float(1 - loss / model.facts["loss_scale"])


def budget_of(data: Raw, seed: int, rows: Any, test: Any, share: float, total: float) -> dict[str, Any]:
    """What a fit for a budget follows, and what that comes to. Cost on the rows of the fit, training and validation together."""
    _, model, history = fitted(data, seed, rows, AverageBudget(share * total))
    cases = model.problem(data.table.iloc[test], data.y[test])
    on_test = Report(cases, model.rollout(cases)).measure
    best = min(model.points, key=lambda point: point.loss)
    return {
        **{"share": share, "budget": share * total, "single": not model.blend.share},
        **{"cost": model.measured.cost, "test_cost": on_test.cost, "test_cost_error": on_test.cost_error},
        **{"score": score(model, on_test.loss), "accuracy": on_test.accuracy},
        # by validation rows: its loss, how far the best point of this training is ahead, and the standard error of that
        **{"loss": model.measured.loss, "behind": model.measured.loss - best.loss, "error": best.measure.loss_error},
        **{"stopped": model.facts["stopped"], "history": history},
    }


def main() -> None:
    checkout, name, seed = Path(sys.argv[1]).resolve(), sys.argv[2], int(sys.argv[3])
    if not Path(askwise.__file__).resolve().is_relative_to(checkout):
        sys.exit(f"askwise comes from {askwise.__file__}, not from {checkout}")
    warnings.simplefilter("ignore")  # whether lambda has settled is judged in the same way for all checkouts, afterwards
    print(json.dumps(row_of(name, seed)))


if __name__ == "__main__":
    main()
