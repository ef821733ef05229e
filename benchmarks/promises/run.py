"""Whether what a fit expects comes true: expected less achieved accuracy, loss and cost, over random splits of several tables.

    ./dev sh python -m benchmarks.promises.run [--data heart pima] [--splits 50] [--processes 2]

Of each split 70 % of the rows are learned from. Average budgets are 5, 15 and 40 % of what all tests cost. Beside the means: the
calibration error of the forecasts of the final loss, which sessions show at each step. Rows are appended to results.jsonl;
what is there is not run again. The table is written to results.md.
"""

from __future__ import annotations

from pathlib import Path

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
DATA = {"heart": None, "pima": None, "bupa": None, "thyroid": "balanced"}
SHARES = (0.05, 0.15, 0.4)
BINS = 5  # of forecasts, with as many purchases each


def one(data: str, split: int) -> rows.Row:
    """One fit, at all budgets."""
    raw = named.raw(data)
    learn, test = train_test_split(np.arange(len(raw.y)), test_size=0.3, random_state=split, stratify=raw.y)
    classifier = CostlyClassifier(
        raw.costs,
        reveals=raw.reveals,
        setup=raw.setup,
        derived=raw.derived,
        class_weight=DATA[data],
        n_jobs=1,
        random_state=split,
    )
    classifier.fit(raw.table.iloc[learn], raw.y[learn])
    model, new = classifier.model_, classifier.model_.problem(raw.table.iloc[test], raw.y[test])
    costs = new.schema.costs
    everything = float(costs.money(costs.total))
    of = []
    for share in SHARES:
        there = model.at(AverageBudget(share * everything))
        done, expected = there.rollout(new), there.expected
        achieved = {
            "accuracy": float((done.decision == new.y).mean()),
            "loss": float(done.loss.mean()),
            "cost": float(costs.money(done.cost.astype(float)).mean()),
        }
        of.append({"share": share, "b": share * everything, "expected": expected, "achieved": achieved})
    return {"of": of, "loss_scale": model.loss_scale, "forecasts": forecasts(model, new)}


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
    lines += head("data | splits | budget | expected - achieved accuracy | expected - achieved loss | achieved cost / budget")
    for data in DATA:
        of = [row for row in results if row["data"] == data]
        for i, share in enumerate(SHARES if of else ()):
            parts = [row["of"][i] for row in of]

            def gaps(name: str, parts: list[rows.Row] = parts) -> list[float]:
                return [p["expected"][name] - p["achieved"][name] for p in parts]

            loss = [gap / row["loss_scale"] for gap, row in zip(gaps("loss"), of, strict=True)]
            spent = [p["achieved"]["cost"] / p["b"] for p in parts]
            cells = [rows.spread(gaps("accuracy"), 4), rows.spread(loss, 4), rows.spread(spent, 3)]
            lines.append(line(data, len(of), f"{share:.0%}", *cells))
    lines += ["", "Calibration error of the forecasts of the final loss, five bins of equal size, all splits together:", ""]
    lines += head("data | purchases | calibration error")
    for data in DATA:
        pairs = np.array([pair for row in results if row["data"] == data for pair in row["forecasts"]])
        if len(pairs):
            lines.append(line(data, len(pairs), f"{calibration_error(pairs):.4f}"))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    rows.fill_and_write(__doc__, HERE / "results.jsonl", [*DATA], ("split", 50), one, text, lambda row: "")
