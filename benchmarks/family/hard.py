"""Hard budgets: one family model against the paper's algorithm, trained for each budget.

    ./dev sh python -m benchmarks.family.hard [--seconds 120] [--seeds 1] [--processes 2]
    ./dev sh python -m benchmarks.family.hard --data forest mnist --seconds 1800

digits and miniboone_tiny, five budgets. The family is trained once, the paper's algorithm, scaled down, once for each budget and
as long each time. Test accuracy over b, as steps, since no case may borrow from another. Rows are appended to hard.jsonl; what
is there is not run again. The table is written to hard.md, the curves to hard_*.svg. On forest and mnist, where the paper's
algorithm needs days, only the family is trained; an average budget of the same amount is beside it.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from askwise import AverageBudget, HardBudget
from askwise.core.problem import Problem
from askwise.facade import Model
from askwise.plots.canvas import BLUE, RED, empty, legend, save, tidy
from benchmarks import rows
from benchmarks.family.evidence import fitted
from benchmarks.script import arguments

HERE = Path(__file__).parent
BUDGETS = {"digits": (3, 5, 8, 12, 20), "miniboone_tiny": (1, 2, 4, 8, 16)}
LARGE = {"forest": (5, 7), "mnist": (10, 20, 50)}


def one(data: str, method: str, b: float, seed: int, seconds: float) -> rows.Row:
    """One training; the family's is measured at all budgets, and at whole numbers between, for the curve."""
    if method == "paper":
        model, _, _, new = fitted(data, seed, seconds, algorithm="paper", budget=HardBudget(b))
        return spent(model, new, b)
    model, _, _, new = fitted(data, seed, seconds)
    if data in LARGE:
        both = [(c, *(spent(model.at(kind(c)), new, c) for kind in (HardBudget, AverageBudget))) for c in LARGE[data]]
        return {"of": [{"b": float(c), **most, "average": mean} for c, most, mean in both]}
    every = sorted({*BUDGETS[data], *range(1, max(BUDGETS[data]) + 1)})
    return {"of": [{"b": float(c), **spent(model.at(HardBudget(c)), new, c)} for c in every]}


def spent(model: Model, new: Problem, b: float) -> rows.Row:
    done = model.rollout(new)
    cost = new.schema.costs.money(done.cost.astype(float))
    return {
        "accuracy": float((done.decision == new.y).mean()),
        "cost": float(cost.mean()),
        "most": float(cost.max()),
        "over": int((cost > b).sum()),
    }


def measured(results: list[rows.Row], data: str, method: str) -> dict[float, list[rows.Row]]:
    """By budget, over seeds."""
    by_budget: dict[float, list[rows.Row]] = {}
    for row in results:
        if (row["data"], row["method"]) == (data, method):
            for part in row.get("of", [row]):
                by_budget.setdefault(float(part["b"]), []).append(part)
    return dict(sorted(by_budget.items()))


def text(results: list[rows.Row]) -> str:
    took = sorted({row["seconds"] for row in results if row["data"] in BUDGETS})
    lines = [
        f"Seconds for each training: {', '.join(f'{s:g}' for s in took)}.",
        "",
        "| data | b | family | mean cost | the paper's | mean cost | cases over b |",
        "|---|---|---|---|---|---|---|",
    ]
    for data, budgets in BUDGETS.items():
        ours, others = (measured(results, data, method) for method in ("family", "paper"))
        for b in map(float, budgets):
            if b in ours and b in others:
                cells = [
                    rows.spread([r[name] for r in of[b]], digits)
                    for of in (ours, others)
                    for name, digits in (("accuracy", 4), ("cost", 2))
                ]
                over = sum(r["over"] for of in (ours, others) for r in of[b])
                lines.append(f"| {data} | {b:g} | {' | '.join(cells)} | {over} |")
    return "\n".join(lines) + large(results)


def large(results: list[rows.Row]) -> str:
    lines = [
        "",
        "",
        "| data | minutes | b | at most b | mean cost | cases over b | b on average | mean cost |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in results:
        for part in row["of"] if row["data"] in LARGE else ():
            most, mean = (f"{of['accuracy']:.4f} | {of['cost']:.2f}" for of in (part, part["average"]))
            lines.append(f"| {row['data']} | {row['seconds'] / 60:g} | {part['b']:g} | {most} | {part['over']} | {mean} |")
    return "\n".join(lines) if len(lines) > 4 else ""


def draw(results: list[rows.Row], data: str, path: Path) -> None:
    figure = empty(6, 4)
    axes = figure.add_subplot()
    tidy(axes)
    for method, colour, marker in (("family", BLUE, ""), ("paper", RED, "o")):
        by_budget = measured(results, data, method)
        score = [float(np.mean([r["accuracy"] for r in of])) for of in by_budget.values()]
        name = "family, one training" if method == "family" else "the paper's, a training for each"
        style = {"drawstyle": "steps-post"} if method == "family" else {"linestyle": ""}
        axes.plot(list(by_budget), score, color=colour, marker=marker, label=name, **style)
    axes.set_xlabel("hard budget b")
    axes.set_ylabel("accuracy, test cases")
    axes.set_title(data)
    legend(figure, loc="outside lower center", ncols=2)
    save(figure, path)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--data", nargs="+", choices=[*BUDGETS, *LARGE], default=[*BUDGETS])
    parser.add_argument("--seconds", type=float, default=120)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "hard.jsonl")
    options = parser.parse_args()
    jobs = [
        {"data": data, "method": method, "b": b, "seed": seed, "seconds": options.seconds}
        for seed in range(options.seeds)
        for data in options.data
        for method, b in [("family", 0), *(("paper", b) for b in BUDGETS.get(data, ()))]
    ]
    for row in rows.fill(options.out, jobs, one, options.processes):
        print(f"{row['data']} {row['method']} {row['b']} seed {row['seed']}", flush=True)
    results = rows.read(options.out)
    options.out.with_suffix(".md").write_text(f"Made by `./dev sh python -m benchmarks.family.hard`.\n\n{text(results)}\n")
    for data in BUDGETS:
        draw(results, data, options.out.with_name(f"hard_{data}.svg"))
    print(text(results))


if __name__ == "__main__":
    main()
