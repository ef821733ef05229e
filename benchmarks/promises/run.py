"""Whether what a fit expects comes true: expected less achieved accuracy, loss and cost, over random splits of several tables.

    ./dev sh python -m benchmarks.promises.run [--data heart pima] [--splits 50] [--processes 2]

Of each split of a small table 70 % of the rows are learned from. Of a large one it is 1,000 rows, and 6,000 others are test
cases: whether a bound on a mean cost holds can only be told by many. Average budgets are 5, 15 and 40 % of what all tests cost:
as they are, by two policies of which one is drawn for each case, and with a confidence of 0.95. Beside the means: the calibration
error of the forecasts of the final loss, which sessions show at each step. Rows are appended to results.jsonl; what is there is
not run again. The table is written to results.md.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from askwise import AverageBudget, CostlyClassifier
from askwise.core.episode import replay, rollout
from askwise.core.problem import Problem
from askwise.datasets import named
from askwise.facade import Model
from benchmarks import rows
from benchmarks.script import head, line

HERE = Path(__file__).parent
DATA = {"heart": None, "pima": None, "bupa": None, "california": None, "ann_thyroid": "balanced"}  # and their class weights
LARGE = ("california", "ann_thyroid")
LEARNED, TESTED = 1_000, 6_000  # rows of a large table
SHARES = (0.05, 0.15, 0.4)
WAYS: dict[str, dict[str, Any]] = {"as it is": {}, "mixing": {"mixing": True}, "confidence": {"confidence": 0.95}}
BINS = 5  # of forecasts, with as many purchases each


def one(data: str, split: int) -> rows.Row:
    """One fit, at all budgets."""
    raw = named.raw(data)
    size: dict[str, Any] = {"train_size": LEARNED, "test_size": TESTED} if data in LARGE else {"test_size": 0.3}
    learn, test = train_test_split(np.arange(len(raw.y)), **size, random_state=split, stratify=raw.y)
    how: dict[str, Any] = {"reveals": raw.reveals, "setup": raw.setup, "derived": raw.derived, "class_weight": DATA[data]}
    classifier = CostlyClassifier(raw.costs, **how, n_jobs=1, random_state=split)
    classifier.fit(raw.table.iloc[learn], raw.y[learn])
    model, new = classifier.model_, classifier.model_.problem(raw.table.iloc[test], raw.y[test])
    costs = new.schema.costs
    everything = float(costs.money(costs.total))
    of = {
        way: [achieved(model.at(AverageBudget(share * everything, **more)), new) for share in SHARES]
        for way, more in WAYS.items()
    }
    facts = {"everything": everything, "most": model.saturation.cost, "loss_scale": model.loss_scale}
    return {"of": of, **facts, "forecasts": forecasts(model, new)}


def achieved(model: Model, new: Problem) -> rows.Row:
    """What a model expects and comes to, and the share of the cases whose tests depend on a draw."""
    done, costs, drawn = model.rollout(new), new.schema.costs, 0.0
    if model.blend.drawn:
        arms = [rollout(new, model.arm(point), model.limit(point)) for point in model.followed]
        drawn = float((arms[0].mask != arms[1].mask).any(1).mean())
    return {
        "expected": model.expected,
        "drawn": drawn,
        "accuracy": float((done.decision == new.y).mean()),
        "loss": float(done.loss.mean()),
        "cost": float(costs.money(done.cost.astype(float)).mean()),
    }


def forecasts(model: Model, new: Problem) -> list[list[float]]:
    """Of every purchase at some tradeoffs: the scaled loss that was forecast at the end, and the one that came."""
    pairs = []
    family = model.family
    assert family is not None
    for lam in np.geomspace(family.scale.high, family.scale.low, 8)[1:]:
        values = family.values(float(lam))
        done = rollout(new, family.policy(float(lam)), None)
        steps = replay(new, done.row, done.padded, done.length, None)
        buys = steps.action >= new.schema.first_test
        if buys.any():
            cases = steps.cases.keep(buys)
            forecast = values.view(cases.observe()).loss
            came = done.loss[steps.episode[buys]] / model.loss_scale
            pairs.append(np.stack([forecast, came], 1))
    every = np.concatenate(pairs) if pairs else np.zeros((0, 2))
    picked = np.random.default_rng(0).permutation(len(every))[:300]
    return np.round(every[picked], 4).tolist()


def calibration_error(pairs: np.ndarray) -> float:
    """The mean over bins of |mean forecast - mean outcome|."""
    order = np.argsort(pairs[:, 0], kind="stable")
    return float(np.mean([abs(np.subtract(*pairs[part].mean(0))) for part in np.array_split(order, BINS)]))


def text(results: list[rows.Row]) -> str:
    lines = ["Means over splits, ± standard deviation. Losses are scaled: 1 is what would be lost by mistakes in all cases.", ""]
    lines += head("data | splits | budget | expected - achieved accuracy | expected - achieved loss")
    for data, share, of in _levels(results):
        parts = [row["of"]["as it is"][SHARES.index(share)] for row in of]
        accuracy = [p["expected"]["accuracy"] - p["accuracy"] for p in parts]
        loss = [(p["expected"]["loss"] - p["loss"]) / row["loss_scale"] for p, row in zip(parts, of, strict=True)]
        lines.append(line(data, len(of), f"{share:.0%}", rows.spread(accuracy, 4), rows.spread(loss, 4)))
    lines += [
        "",
        "Spent: mean cost of the test cases as a part of the budget or, where less is all that helps, of that. Expected: the",
        "same as the fit expects it; where it is less than 1, no policy that was measured promises more for the rest. Drawn: the",
        "share of cases whose tests depend on a draw. Above: splits in which test cases cost more than the budget on average.",
        "",
    ]
    lines += head("data | budget | way | expected | spent | drawn | above | accuracy less that of mixing")
    for data, share, of in _levels(results):
        i, mixing = SHARES.index(share), [row["of"]["mixing"][SHARES.index(share)]["accuracy"] for row in of]
        b = [min(share * row["everything"], row["most"]) for row in of]
        for way in WAYS:
            parts = [row["of"][way][i] for row in of]
            spent = [p["cost"] / most for p, most in zip(parts, b, strict=True)]
            expected = [p["expected"]["cost"] / most for p, most in zip(parts, b, strict=True)]
            above = np.mean([p["cost"] > share * row["everything"] for p, row in zip(parts, of, strict=True)])
            less = [p["accuracy"] - best for p, best in zip(parts, mixing, strict=True)]
            drawn = np.mean([p["drawn"] for p in parts])
            cells = rows.spread(expected, 3), rows.spread(spent, 3), f"{drawn:.1%}", f"{above:.1%}", rows.spread(less, 4)
            lines.append(line(data, f"{share:.0%}", way, *cells))
    lines += ["", "Calibration error of the forecasts of the final loss, five bins of equal size, all splits together:", ""]
    lines += head("data | purchases | calibration error")
    for data in DATA:
        pairs = np.array([pair for row in results if row["data"] == data for pair in row["forecasts"]])
        if len(pairs):
            lines.append(line(data, len(pairs), f"{calibration_error(pairs):.4f}"))
    return "\n".join(lines) + "\n"


def _levels(results: list[rows.Row]) -> list[tuple[str, float, list[rows.Row]]]:
    of = {data: [row for row in results if row["data"] == data] for data in DATA}
    return [(data, share, of[data]) for data in DATA for share in SHARES if of[data]]


if __name__ == "__main__":
    rows.fill_and_write(__doc__, HERE / "results.jsonl", [*DATA], ("split", 50), one, text, lambda row: "")
