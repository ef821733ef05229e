"""Whether recall targets are reached on new cases, and what that costs beside the same tests for everybody.

    ./dev sh python -m benchmarks.promises.recall [--data bank ann_thyroid] [--splits 50] [--processes 2]

Of each split 3,000 rows are learned from, and up to 10,000 others are test cases: a target that is just reached would look missed
in half of all splits with few of them. Classes are uneven, and losses balanced. The recall of the rarest class is to be at least
0.90, 0.95 and 0.97, with a confidence of 0.9, and no more is to be lost than by deciding at once. Beside what the model follows:
the cheapest policy that buys the same tests for everybody and reaches the same by the same rule. Rows are appended to
recall.jsonl; what is there is not run again. The table is written to recall.md.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

from askwise import AtLeast, Budget, CostlyClassifier
from askwise.core.problem import Problem
from askwise.datasets import named
from askwise.errors import InputError
from askwise.facade import Model
from benchmarks import rows
from benchmarks.script import head, line

HERE = Path(__file__).parent
DATA = ("ann_thyroid", "bank", "nhanes")
RECALLS, CONFIDENCE = (0.90, 0.95, 0.97), 0.9
LEARNED, TESTED = 3_000, 10_000  # rows


def one(data: str, split: int) -> rows.Row:
    """One fit, at all targets."""
    raw = named.raw(data)
    learn, test = train_test_split(np.arange(len(raw.y)), train_size=LEARNED, random_state=split, stratify=raw.y)
    test = test[:TESTED]
    how: dict[str, Any] = {"reveals": raw.reveals, "setup": raw.setup, "derived": raw.derived, "class_weight": "balanced"}
    classifier = CostlyClassifier(raw.costs, **how, n_jobs=1, random_state=split).fit(raw.table.iloc[learn], raw.y[learn])
    model, new = classifier.model_, classifier.model_.problem(raw.table.iloc[test], raw.y[test])
    rare = model.schema.classes[int(np.bincount(new.labels).argmin())]
    same = replace(model, targeted=tuple(p for p in model.targeted if p.prefix is not None))
    targets = {r: AtLeast(recall={rare: r}, confidence=CONFIDENCE) for r in RECALLS}
    return {
        "class": str(rare),
        "targeted": [achieved(model, targets[r], new, rare) for r in RECALLS],
        "same tests": [achieved(same, targets[r], new, rare) for r in RECALLS],
    }


def achieved(model: Model, target: Budget, new: Problem, of: Any) -> rows.Row | None:
    """Expected and achieved cost, and the recall of new cases; None where it cannot be reached."""
    try:
        there = model.at(target)
    except InputError:
        return None
    report = there.report(new)
    share = report.recall[of]
    return {"expected": there.expected["cost"], "cost": report.cost, "recall": share.value, "high": share.high}


def text(results: list[rows.Row]) -> str:
    lines = [
        f"Recall of the rarest class, with a confidence of {CONFIDENCE:g}. Promised: splits in which the target could be",
        "promised; the other columns are about these. Reached: splits whose test cases reach it; not refuted: splits in which it",
        "is within the 95 % interval of their recall. Costs are means over test cases, ± standard deviation; of the same tests",
        "for everybody, over the splits in which that can be promised, too.",
        "",
    ]
    lines += head("data | recall | splits | promised | reached | not refuted | mean cost | cost, same tests for everybody")
    for data in DATA:
        of = [row for row in results if row["data"] == data]
        for i, recall in enumerate(RECALLS):
            got = [row["targeted"][i] for row in of if row["targeted"][i] is not None]
            same = [row["same tests"][i]["cost"] for row in of if row["same tests"][i] is not None]
            shares = [f"{np.mean([each[k] >= recall for each in got]):.0%}" if got else "" for k in ("recall", "high")]
            costs = [rows.spread(c, 2) if c else "" for c in ([each["cost"] for each in got], same)]
            if of:
                lines.append(line(data, f"{recall:g}", len(of), len(got), *shares, *costs))
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    rows.fill_and_write(__doc__, HERE / "recall.jsonl", [*DATA], ("split", 50), one, text, lambda row: "")
