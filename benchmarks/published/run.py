"""Tables with published numbers: the score at hard budgets of 1 to all tests, each of which costs 1, and its mean over them.

    ./dev sh python -m benchmarks.published.run [--data bank california] [--seeds 3] [--processes 1]

Splits and metrics are those of Norcliffe et al. (SEFA, ICML 2025): accuracy, and for two classes AUROC, for which the loss is
`log`. One training serves all budgets. Rows are appended to results.jsonl; what is there is not run again. The table is
written to results.md.
"""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from askwise import CostlyClassifier, HardBudget
from benchmarks import rows
from benchmarks.published.data import NAMES, table
from benchmarks.script import head, line

HERE = Path(__file__).parent
SEFA = {"bank": 0.919, "california": 0.676, "metabric": 0.709, "mnist20": 0.761}
OTHERS = {"bank": 0.910, "california": 0.661, "metabric": 0.706, "mnist20": 0.740}  # the best of those that SEFA compares with


def one(data: str, seed: int) -> rows.Row:
    """One training, its score at each budget."""
    whole = table(data)
    learn, test = ({n: c[which] for n, c in whole.columns.items()} for which in (whole.learn, whole.test))
    y, two = whole.y[whole.test], len(np.unique(whole.y)) == 2
    began, cpu = time.monotonic(), time.process_time()
    classifier = CostlyClassifier(
        loss="log" if two else None, categorical=whole.categorical, validation_fraction=1 / 9, n_jobs=1, random_state=seed
    )
    classifier.fit(learn, whole.y[whole.learn])
    took = {"minutes": round((time.monotonic() - began) / 60, 2), "cpu_minutes": round((time.process_time() - cpu) / 60, 2)}
    scores = []
    for b in range(1, len(whole.columns) + 1):
        p = classifier.at(HardBudget(b)).predict_proba(test)
        scores.append(float(roc_auc_score(y, p[:, 1]) if two else (classifier.classes_[p.argmax(1)] == y).mean()))
    return {"score": float(np.mean(scores)), "scores": [round(s, 4) for s in scores], **took}


def text(results: list[rows.Row]) -> str:
    lines = ["Mean of the score over hard budgets of 1 to all tests; ± over trainings, with the same split of the rows.", ""]
    lines += head("data | metric | askwise | SEFA | best of others in its paper | trainings | CPU minutes each")
    for data in NAMES:
        of = [row for row in results if row["data"] == data]
        if of:
            minutes = float(np.mean([row["cpu_minutes"] for row in of]))
            score = rows.spread([row["score"] for row in of], 4)
            metric = "AUROC" if data == "bank" else "accuracy"
            lines.append(line(data, metric, score, f"{SEFA[data]:.3f}", f"{OTHERS[data]:.3f}", len(of), f"{minutes:.1f}"))
    return "\n".join(lines) + "\n"


def shown(row: rows.Row) -> str:
    return f"{row['score']:.4f} {row['scores']} {row['cpu_minutes']} CPU minutes"


if __name__ == "__main__":
    rows.fill_and_write(__doc__, HERE / "results.jsonl", NAMES, ("seed", 3), one, text, shown)
