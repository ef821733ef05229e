"""What one model keeps of its promises, on test cases.

    ./dev sh python -m benchmarks.family.evidence [--data ...] [--seconds 120] [--seeds 1] [--processes 2]

For each data set one fit, and then:
- average budgets: ten of them, what was really spent, and the interval that the model gave;
- hard budgets: the score under each, and the dearest case;
- calibration: what it expected at every step, of the loss at the end and of payments to come, against what came;
- off the beaten path: a random 30 % of the tests known from the start, or refused; on some cases, against LightGBM trained on
  exactly the columns with which each of these cases ended.
Rows are appended to evidence.jsonl; what is there is not run again. The tables are written to evidence.md.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from askwise import AverageBudget, CostlyClassifier, HardBudget, Tradeoff
from askwise.components.boosting import boost, loss_scales, probabilities, unweighted
from askwise.core.episode import Episodes, replay, rollout
from askwise.core.problem import Problem
from askwise.datasets.named import raw
from askwise.facade import Model
from benchmarks import rows
from benchmarks.script import arguments

HERE = Path(__file__).parent
DATA = ("digits", "miniboone_tiny", "ann_thyroid")
UNEVEN = ("ann_thyroid", "thyroid", "nhanes")  # classes weighted; scores are then 1 - expected loss
SHARE = 0.3  # of tests that are known, or refused
CASES = 50  # each with a LightGBM of its own


def fitted(data: str, seed: int, seconds: float, **settings: Any) -> tuple[Model, Problem, Problem, Problem]:
    """A model, and the rows for training, validation and test as its cases."""
    named = raw(data)
    train, validation, test = named.splits(seed)
    X, y = named.table, np.asarray(named.y)
    fit_on = np.concatenate([train, validation])
    model = (
        CostlyClassifier(
            costs=named.costs,
            setup=named.setup,
            derived=named.derived,
            reveals=named.reveals,
            scaling=named.scaling,
            class_weight="balanced" if data in UNEVEN else None,
            time_limit=seconds,
            random_state=seed,
            **settings,
        )
        .fit(X.iloc[fit_on], y[fit_on])
        .model_
    )
    learn, held_out, new = (model.problem(X.iloc[part], y[part]) for part in (train, validation, test))
    return model, learn, held_out, new


def one(data: str, seed: int, seconds: float) -> rows.Row:
    model, learn, held_out, new = fitted(data, seed, seconds)
    return {
        "average": averages(model, new),
        "hard": hard(model, new),
        "calibration": calibration(model, new),
        "known": aside(model, learn, held_out, new, known=True),
        "refused": aside(model, learn, held_out, new, known=False),
    }


def score(model: Model, problem: Problem, done: Episodes) -> float:
    return float(1 - done.loss.mean() / problem.loss_scale)


def averages(model: Model, new: Problem) -> list[dict[str, float]]:
    """Ten budgets from little to more than can be used, and what was spent."""
    results = []
    for b in np.linspace(0.1, 1.0, 10) * model.saturation.cost:
        at = model.at(AverageBudget(float(b)))
        done = at.rollout(new)
        cost = new.schema.costs.money(done.cost.astype(float))
        results.append(
            {
                "b": float(b),
                "expected": at.expected["cost"],
                "error": at.expected["cost_error"],
                "cost": float(cost.mean()),
                "test_error": float(cost.std() / len(cost) ** 0.5),
                "score": score(model, new, done),
            }
        )
    return results


def hard(model: Model, new: Problem) -> list[dict[str, float]]:
    costs = new.schema.costs
    results = []
    for b in np.geomspace(0.05, 1.0, 10) * float(costs.money(costs.total)):
        done = model.at(HardBudget(float(b))).rollout(new)
        cost = costs.money(done.cost.astype(float))
        results.append({"b": float(b), "cost": float(cost.mean()), "most": float(cost.max()), "score": score(model, new, done)})
    return results


def calibration(model: Model, new: Problem) -> dict[str, Any]:
    """All states in which the policy goes on, at five tradeoffs: expected loss and cost, and what came."""
    assert model.family is not None
    expected_values, came = [], []
    for lam in np.quantile(adaptive(model), [0.1, 0.3, 0.5, 0.7, 0.9]):
        policy, costs = model.family.policy(float(lam)), new.schema.costs
        done = rollout(new, policy, None)
        steps = replay(new, done.row, done.padded, done.length, None)
        view = model.family.values(float(lam)).view(steps.cases.observe())
        on = steps.action >= new.schema.first_test
        whole = costs.money(done.cost.astype(float))[steps.episode]
        so_far = costs.money(costs.cost(steps.cases.mask).astype(float))
        expected_values.append(np.stack([view.loss, view.cost], 1)[on])
        came.append(np.stack([done.loss[steps.episode] / model.family.scale.loss_scale, whole - so_far], 1)[on])
    expected, real = np.concatenate(expected_values), np.concatenate(came)
    results: dict[str, Any] = {"states": len(expected)}
    for i, name in enumerate(("loss", "cost")):
        edges = np.quantile(expected[:, i], np.linspace(0, 1, 11)[1:-1])
        which = np.searchsorted(edges, expected[:, i])
        bins = [
            (float(expected[which == b, i].mean()), float(real[which == b, i].mean()), int((which == b).sum()))
            for b in range(10)
            if (which == b).any()
        ]
        off = sum(abs(e - r) * n for e, r, n in bins) / len(expected)
        results[name] = {"bins": bins, "error": off, "mean": float(real[:, i].mean())}
    return results


def adaptive(model: Model) -> list[float]:
    """Tradeoffs at which it does not just follow its static order."""
    assert model.family is not None
    return [p.lam for p in model.points if p.prefix is None and p.cost > 0] or [model.family.scale.high / 10]


def aside(model: Model, learn: Problem, held_out: Problem, new: Problem, known: bool) -> list[dict[str, float]]:
    """Some cases that begin elsewhere, at three tradeoffs, against LightGBM on exactly what each of them came to know."""
    rng = np.random.default_rng(0)
    rows_taken = np.sort(rng.choice(len(new), min(CASES, len(new)), replace=False))
    part = new.take(rows_taken)
    drawn = rng.random((len(part), part.schema.n_tests)) < SHARE
    there = np.ones_like(drawn) if part.available is None else part.available
    part = replace(part, known=drawn & there) if known else replace(part, available=there & ~drawn)
    results = []
    for lam in np.quantile(adaptive(model), [0.2, 0.5, 0.8]):
        done = model.at(Tradeoff(float(lam))).rollout(part)
        boosted_score = boosted(learn, held_out, part, done.mask)
        cost = part.schema.costs.money(done.cost.astype(float))
        our_score = 1 - done.loss / part.loss_scale
        better = our_score - boosted_score
        results.append(
            {
                "cost": float(cost.mean()),
                "score": float(our_score.mean()),
                "lightgbm": float(boosted_score.mean()),
                "difference_error": float(better.std() / len(better) ** 0.5),
            }
        )
    return results


def boosted(learn: Problem, held_out: Problem, part: Problem, mask: np.ndarray) -> np.ndarray:
    """The score of each case by a model of its own."""
    weights, scores = loss_scales(learn), np.empty(len(part))
    for i in range(len(part)):
        columns = np.flatnonzero(mask[i][part.schema.owner])
        p = np.bincount(learn.y, minlength=part.schema.n_classes)[None] / len(learn)
        if len(columns):
            parts = [(q.X[:, columns], np.asarray(q.y), weights[q.y]) for q in (learn, held_out)]
            model = boost(*parts, part.schema.n_classes, seconds=1.0, seed=0, threads=1, num_leaves=15).model
            p = unweighted(probabilities(model, part.X[i : i + 1, columns], 1), weights)
        scores[i] = 1 - part.loss[part.y[i], (p @ part.loss).argmin()] / part.loss_scale
    return scores


def grid(title: str, head: str, lines: list[tuple[Any, ...]]) -> str:
    """A heading and a table; numbers have four digits."""
    cells = [" | ".join(f"{c:.4g}" if isinstance(c, float) else str(c) for c in line) for line in lines]
    rule = "|".join(["---"] * (head.count("|") + 1))
    return "\n".join([f"## {title}\n", f"| {head} |", f"|{rule}|", *(f"| {line} |" for line in cells)]) + "\n"


def off(mean: float, error: float) -> str:
    return f"{mean:.3f} ± {1.96 * error:.3f}"


def text(results: list[rows.Row]) -> str:
    averages, hards, calibrations, asides = [], [], [], []
    for r in results:
        name = f"{r['data']}, seed {r['seed']}"
        for a in r["average"]:
            spent = off(a["expected"], a["error"]), off(a["cost"], a["test_error"]), a["cost"] / a["b"]
            averages.append((name, a["b"], *spent, a["score"]))
        hards += [(name, h["b"], h["most"], h["cost"], h["score"]) for h in r["hard"]]
        c = r["calibration"]
        calibrations.append((name, c["states"], *(c[of][what] for of in ("loss", "cost") for what in ("error", "mean"))))
        for what in ("known", "refused"):
            for a in r[what]:
                better = off(a["score"] - a["lightgbm"], a["difference_error"])
                asides.append((name, what, a["cost"], a["score"], a["lightgbm"], better))
    return "\n".join(
        [
            grid("Average budgets", "data | b | expected | spent on test cases | spent / b | score", averages),
            grid("Hard budgets", "data | b | dearest case | mean cost | score", hards),
            grid(
                "Calibration: mean distance between expected and real in ten bins, over all steps at five tradeoffs",
                "data | states | loss at the end | its mean | payments to come | their mean",
                calibrations,
            ),
            grid(
                f"Known or refused, {CASES} cases",
                "data | 30 % of tests are | mean cost | score | LightGBM on the same columns | difference",
                asides,
            ),
        ]
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", nargs="+", default=DATA, metavar="NAME")
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "evidence.jsonl")
    options = parser.parse_args()
    jobs = [{"data": d, "seed": s, "seconds": options.seconds} for s in range(options.seeds) for d in options.data]
    for row in rows.fill(options.out, jobs, one, options.processes):
        print(f"{row['data']} seed {row['seed']}", flush=True)
    head = f"Made by `./dev sh python -m benchmarks.family.evidence --seconds {options.seconds:g}`. Intervals are 95 %.\n\n"
    options.out.with_suffix(".md").write_text(head + text(rows.read(options.out)) + "\n")
    print(text(rows.read(options.out)))


if __name__ == "__main__":
    main()
