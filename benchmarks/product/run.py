"""CostlyClassifier at average and hard budgets, next to what one would do without it.

    ./dev sh python -m benchmarks.product.run [--seconds 45] [--processes 2]

thyroid (balanced class weights), heart and digits; four average and four hard budgets; three seeds, each its own split. One
fit serves all budgets; the paper's algorithm is fitted for each. Beside it logistic regression and gradient boosting on all
tests, and on a static set that fits the same budget (tests by mutual information per cost). Missing values are filled with
training means for these, so that they cannot profit from missingness; what missingness alone would tell is a row of its own,
and for all methods the balanced accuracy is also given on those test rows of thyroid that lack no blood test, where gaps can
tell nothing. Rows are appended to results.jsonl; what is there is not run again.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from askwise import AverageBudget, Budget, CostlyClassifier, HardBudget
from askwise.core.problem import Problem
from askwise.datasets.named import load, raw
from askwise.evaluation import Report
from askwise.facade import Model
from benchmarks import rows
from benchmarks.script import arguments, head, line

HERE = Path(__file__).parent
BUDGETS = {"thyroid": (5, 15, 25, 40), "heart": (5, 50, 120, 250), "digits": (4, 8, 16, 32)}
WEIGHTS = {"thyroid": "balanced", "heart": None, "digits": None}


def one(data: str, kind: str, b: float, seed: int, seconds: float) -> rows.Row:
    """One fit, or one baseline, on one split."""
    if kind in ("average", "hard"):
        return measured(data, fitted(data, seed, seconds, budget_of(kind, b), "paper").model_, seed)
    if kind == "family":
        classifier = fitted(data, seed, seconds, None, "family")
        every = [(f"family {kind}", b) for kind in ("average", "hard") for b in BUDGETS[data]]
        return {
            "of": [
                {"kind": k, "b": b, **measured(data, classifier.at(budget_of(k.split()[1], b)).model_, seed)} for k, b in every
            ]
        }
    return baseline(data, kind, b, seed)


def budget_of(kind: str, b: float) -> Budget:
    return AverageBudget(b) if kind == "average" else HardBudget(b)


def fitted(data: str, seed: int, seconds: float, budget: Budget | None, algorithm: str) -> CostlyClassifier:
    named = raw(data)
    train, validation, _ = named.splits(seed)
    fit_on = np.concatenate([train, validation])
    return CostlyClassifier(
        costs=named.costs,
        setup=named.setup,
        derived=named.derived,
        reveals=named.reveals,
        budget=budget,
        class_weight=WEIGHTS[data],
        time_limit=seconds,
        random_state=seed,
        algorithm=algorithm,
    ).fit(named.table.iloc[fit_on], np.asarray(named.y)[fit_on])


def measured(data: str, model: Model, seed: int) -> rows.Row:
    named = raw(data)
    test = named.splits(seed)[2]
    problem = model.problem(named.table.iloc[test], np.asarray(named.y)[test])
    report = Report(problem, model.rollout(problem))
    best = model.saturation
    whole = complete(data, problem)
    return {
        "cost": report.cost,
        "most": float(report.cost_per_case.max()),
        "accuracy": report.accuracy,
        "balanced_accuracy": report.balanced_accuracy,
        "loss": report.loss,
        "enough": best.cost,
        "balanced_complete": balanced(report.truth[whole], report.episodes.decision[whole]),
        "stopped": model.facts["stopped"],
        "took": model.facts["seconds"],
    }


def baseline(data: str, kind: str, b: float, seed: int) -> rows.Row:
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.metrics import accuracy_score

    split = load(data, seed)
    fit_on = [split.train, split.validation]
    X, y = np.concatenate([p.X for p in fit_on]), np.concatenate([p.y for p in fit_on])  # scaled, 0 where missing: the mean
    schema = split.train.schema
    held = np.ones(schema.n_tests, bool)
    Xt = split.test.X
    if kind == "missingness":
        X = np.concatenate([_holes(p) for p in fit_on])
        Xt = _holes(split.test)
    elif b:
        held = static_set(X, y, split.train, b)
        X, Xt = (x[:, held[schema.owner]] for x in (X, Xt))
    weight = WEIGHTS[data]
    model: Any = (
        LogisticRegression(max_iter=2000, class_weight=weight)
        if kind == "logistic"
        else HistGradientBoostingClassifier(class_weight=weight, random_state=seed, early_stopping=False, max_iter=100)
    )
    predicted = model.fit(X, y).predict(Xt) if X.shape[1] else np.full(len(Xt), np.bincount(y).argmax())
    cost = schema.costs.money(int(schema.costs.cost(held[None])[0])) if kind != "missingness" else 0.0
    truth, whole = np.asarray(split.test.y), complete(data, split.test)
    return {
        "cost": cost,
        "most": cost,
        "accuracy": float(accuracy_score(truth, predicted)),
        "balanced_accuracy": balanced(truth, predicted),
        "balanced_complete": balanced(truth[whole], predicted[whole]),
    }


def balanced(truth: np.ndarray, predicted: np.ndarray) -> float:
    """Mean over the classes of the share of their cases that is told right."""
    return float(np.mean([(predicted[truth == k] == k).mean() for k in np.unique(truth)]))


def complete(data: str, problem: Problem) -> np.ndarray:
    """Which rows lack no blood test (of thyroid; TBG is lacking nearly everywhere)."""
    blood = [problem.schema.tests.index(t) for t in ("TSH", "T3", "TT4", "T4U", "FTI")] if data == "thyroid" else []
    return np.ones(len(problem), bool) if problem.available is None else problem.available[:, blood].all(1)


def _holes(problem: Problem) -> np.ndarray:
    shape = len(problem), problem.schema.n_tests
    return np.zeros(shape) if problem.available is None else (~problem.available).astype(float)


def static_set(X: np.ndarray, y: np.ndarray, problem: Problem, b: float) -> np.ndarray:
    """Tests in the order of mutual information per cost, as long as the set fits the budget."""
    from sklearn.feature_selection import mutual_info_classif

    schema = problem.schema
    gain = np.zeros(schema.n_tests)
    np.maximum.at(gain, schema.owner, mutual_info_classif(X, y, random_state=0))
    alone = np.maximum(schema.costs.money(schema.costs.alone), 1e-9)
    held = np.zeros(schema.n_tests, bool)
    for test in np.argsort(-gain / alone):
        held[test] = True
        if schema.costs.money(int(schema.costs.cost(held[None])[0])) > b:
            held[test] = False
    return held


def table(results: list[rows.Row]) -> str:
    lines = head("data | what | budget | test cost | dearest case | accuracy | balanced accuracy | where nothing lacks")
    results = [{**row, **part} for row in results for part in row.get("of", [{}])]
    kinds = ("family average", "family hard", "average", "hard", "logistic", "boosting", "missingness")
    names = {
        "family average": "askwise, average",
        "family hard": "askwise, hard",
        "average": "the paper's, average",
        "hard": "the paper's, hard",
        "missingness": "boosting on missingness alone",
    }
    for data in BUDGETS:
        for kind in kinds:
            for b in sorted({r["b"] for r in results if r["data"] == data and r["kind"] == kind}):
                of = [r for r in results if (r["data"], r["kind"], r["b"]) == (data, kind, b)]
                what = names.get(kind, f"{kind}, {'static set' if b else 'all tests'}")
                cells = (
                    data,
                    what,
                    b or "",
                    rows.spread([r["cost"] for r in of], 2),
                    f"{max(r['most'] for r in of):.2f}",
                    rows.spread([r["accuracy"] for r in of], 4),
                    rows.spread([r["balanced_accuracy"] for r in of], 4),
                    rows.spread([r["balanced_complete"] for r in of], 4),
                )
                lines.append(line(*cells))
    return "\n".join(lines)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results.jsonl")
    options = parser.parse_args()
    jobs: list[rows.Row] = []
    for seed in range(options.seeds):
        for data, budgets in BUDGETS.items():
            bases = [("logistic", 0), ("boosting", 0), *((k, b) for k in ("logistic", "boosting") for b in budgets)]
            if data == "thyroid":
                bases.append(("missingness", 0))
            bases.append(("family", 0))
            jobs += [{"data": data, "kind": k, "b": b, "seed": seed, "seconds": options.seconds} for k, b in bases]
            jobs += [
                {"data": data, "kind": k, "b": b, "seed": seed, "seconds": options.seconds}
                for k in ("average", "hard")
                for b in budgets
            ]
    for row in rows.fill(options.out, jobs, one, options.processes):
        for part in row.get("of", [row]):
            print(
                f"{row['data']} {part['kind']} {part['b']} seed {row['seed']}: cost {part['cost']:.2f} accuracy "
                f"{part['accuracy']:.4f} balanced {part['balanced_accuracy']:.4f}",
                flush=True,
            )
    text = table(rows.read(options.out))
    command = f"./dev sh python -m benchmarks.product.run --seconds {options.seconds:g}"
    options.out.with_suffix(".md").write_text(f"Made by `{command}`: mean and deviation over seeds.\n\n{text}\n")
    print(text)


if __name__ == "__main__":
    main()
