"""The paper's algorithm on real rows: average budgets asked for, and what came out.

    ./dev sh python -m benchmarks.engine.run [--minutes 4] [--processes 2]

miniboone_tiny at 2, 5 and 10 tests, thyroid at 5, 15 and 30 dollars with balanced class weights, three seeds each. Rows are
appended to results.jsonl as they finish, with the whole course of the run; what is there is not run again. The table goes to
results.md and the course of one run each to progress_*.svg, like the paper's figure of the learning progress.
"""

from __future__ import annotations

from pathlib import Path

from askwise.core.budget import AverageBudget, Budget
from askwise.datasets.named import load
from askwise.evaluation import evaluate
from askwise.paper import run as paper
from askwise.paper.config import TrainConfig
from askwise.paper.select import expected_for, follow, policy_for
from benchmarks import rows
from benchmarks.script import arguments, head, line

HERE = Path(__file__).parent
BUDGETS = {"miniboone_tiny": (2, 5, 10), "thyroid": (5, 15, 30)}
WEIGHTS = {"miniboone_tiny": None, "thyroid": "balanced"}
# The paper's preset for miniboone with a twenty-fifth of the cases, batch and memory and a fifth of the epoch; lambda moves
# every 100 steps, as there. Smaller batches are noisier, so both steps are smaller.
CONFIG = TrainConfig.paper("miniboone").scaled(size=0.04, time=0.2, window_epochs=0.5, lr_start=3e-4, lam_rate=0.05)


def one(data: str, b: float, seed: int, minutes: float) -> rows.Row:
    """One run: what was expected on validation rows, what came out on test rows, and the course."""
    return course(data, AverageBudget(b), CONFIG, seed, minutes)


def course(data: str, budget: Budget, config: TrainConfig, seed: int, minutes: float) -> rows.Row:
    """The same for any budget and any settings."""
    parts = load(data, seed, WEIGHTS[data])  # where there is no official split, another seed is another split
    run = paper.run(parts.train, parts.validation, budget, config, seed, time_limit=60 * minutes)
    test = evaluate(policy_for(run, budget, seed), parts.test, budget)
    expected = expected_for(run, budget)
    points = [[r.step, r.lam, r.train.cost, r.validation.accuracy] for r in run.history[1:]]
    return {
        "expected_cost": expected.cost,
        "expected_accuracy": expected.accuracy,
        "cost": test.cost,
        "loss": test.loss,
        "accuracy": test.accuracy,
        "balanced_accuracy": test.balanced_accuracy,
        "steps": run.history[-1].step,
        "stopped": run.stopped,
        "share": follow(run.points, budget).share,
        "seconds": round(run.seconds, 1),
        "course": [[round(v, 5) for v in point] for point in points],
    }


def table(results: list[rows.Row]) -> str:
    lines = head(
        "data | target | expected cost | test cost | test accuracy | test balanced accuracy | steps | ended by | seconds"
    )
    for data, budgets in BUDGETS.items():
        for b in budgets:
            of = [r for r in results if r["data"] == data and r["b"] == b]
            if of:
                cells = (
                    data,
                    b,
                    rows.spread([r["expected_cost"] for r in of], 2),
                    rows.spread([r["cost"] for r in of], 2),
                    rows.spread([r["accuracy"] for r in of], 4),
                    rows.spread([r["balanced_accuracy"] for r in of], 4),
                    rows.spread([r["steps"] for r in of], 0),
                    ", ".join(sorted({r["stopped"] for r in of})),
                    rows.spread([r["seconds"] for r in of], 0),
                )
                lines.append(line(*cells))
    return "\n".join(lines)


def draw(row: rows.Row, path: Path) -> None:
    """Lambda, cost and accuracy over the steps of one run."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "askwise"  # the same picture is the same file
    from matplotlib import pyplot as plt

    step, lam, cost, accuracy = zip(*row["course"], strict=True)
    figure, axes = plt.subplots(3, 1, sharex=True, figsize=(7, 6), layout="constrained")
    for axis, values, name in zip(
        axes, (lam, cost, accuracy), ("lambda", "cost (training rows)", "accuracy (validation)"), strict=True
    ):
        axis.plot(step, values, linewidth=1)
        axis.set_ylabel(name)
        axis.grid(alpha=0.3)
    axes[1].axhline(row["b"], color="black", linestyle="--", linewidth=1)
    axes[2].set_xlabel("gradient steps")
    figure.suptitle(f"{row['data']}, average budget {row['b']:g}, seed {row['seed']}")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--minutes", type=float, default=4)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=HERE / "results.jsonl")
    options = parser.parse_args()
    jobs = [
        {"data": data, "b": b, "seed": seed, "minutes": options.minutes}
        for seed in range(options.seeds)
        for data, budgets in BUDGETS.items()
        for b in budgets
    ]
    for row in rows.fill(options.out, jobs, one, options.processes):
        print(
            f"{row['data']} b={row['b']} seed {row['seed']}: test cost {row['cost']:.2f}, accuracy {row['accuracy']:.4f}, "
            f"balanced {row['balanced_accuracy']:.4f}, {row['stopped']}",
            flush=True,
        )
    results = rows.read(options.out)
    text = table(results)
    options.out.with_suffix(".md").write_text(
        "Made by `./dev sh python -m benchmarks.engine.run`: mean and deviation over seeds, two processes on two cores.\n\n"
        + text
        + "\n"
    )
    for data, b in (("miniboone_tiny", 10), ("thyroid", 15)):
        for row in results:
            if (row["data"], row["b"], row["seed"]) == (data, b, 0):
                draw(row, options.out.with_name(f"progress_{data}_{b}.svg"))
    print(text)


if __name__ == "__main__":
    main()
