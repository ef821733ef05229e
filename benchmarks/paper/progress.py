"""The two figures about the course of training: lambda at an average budget of 10, and lambda = 0 against b = all tests.

    ./dev sh python -m benchmarks.paper.progress [--full] [--processes 1]

Full: the paper's settings for miniboone and five seeds; otherwise those of benchmarks.engine.run, which have the same shape and
a twenty-fifth of the batch, for minutes. miniboone is not at hand: this is miniboone_tiny. In the second figure training never
ends early, so that one sees whether it learns by heart. Rows go to results/progress.jsonl or results/progress_small.jsonl as
they finish; what is there is not run again.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from askwise.core.budget import AverageBudget, Tradeoff
from askwise.paper.config import TrainConfig
from askwise.plots.canvas import empty, legend, save, tidy
from askwise.plots.cost_score import look
from benchmarks import rows
from benchmarks.engine.run import CONFIG, course, draw
from benchmarks.script import arguments

DATA, ALL = "miniboone_tiny", 50
RESULTS = Path(__file__).with_name("results")
BUDGETS = {"average 10": AverageBudget(10), "tradeoff 0": Tradeoff(0), "all tests": AverageBudget(ALL)}
FREE = ("tradeoff 0", "all tests")


def one(setting: str, seed: int, minutes: float, full: bool) -> rows.Row:
    """The course of one training."""
    config = TrainConfig.paper("miniboone") if full else CONFIG
    if setting in FREE:
        config = config.scaled(stop_epochs=0)
    return {"data": DATA, "b": ALL if setting in FREE else 10, **course(DATA, BUDGETS[setting], config, seed, minutes)}


def jobs(full: bool) -> list[rows.Row]:
    """The paper shows one run of the first figure, and the mean of five of the second."""
    runs = {"average 10": (1, 360 if full else 2.5), **dict.fromkeys(FREE, (5, 360) if full else (2, 1.5))}
    return [
        {"setting": setting, "seed": seed, "minutes": minutes, "full": full}
        for setting, (seeds, minutes) in runs.items()
        for seed in range(seeds)
    ]


def averaged(results: Sequence[rows.Row]) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and cost and accuracy at them, averaged over runs, up to where the first of them ends."""
    courses = [np.asarray(row["course"], float) for row in results]
    step = courses[0][:, 0]
    step = step[step <= min(c[-1, 0] for c in courses)]
    return step, np.mean([[np.interp(step, c[:, 0], c[:, i]) for i in (2, 3)] for c in courses], 0)


def top(results: Sequence[rows.Row]) -> dict[str, float]:
    """The best averaged accuracy, after how many steps it came, what it is at the end, and when that is."""
    step, (_, accuracy) = averaged(results)
    best = int(accuracy.argmax())
    return {"accuracy": float(accuracy[best]), "steps": float(step[best]), "last": float(accuracy[-1]), "end": float(step[-1])}


def draw_free(results: Sequence[rows.Row], path: Path) -> None:
    """Cost and accuracy over the steps for both settings."""
    figure = empty(7, 5)
    axes = figure.subplots(2, 1, sharex=True)
    for setting, style in zip(FREE, (look(0), look(3)), strict=True):
        step, values = averaged([row for row in results if row["setting"] == setting])
        for axis, line in zip(axes, values, strict=True):
            axis.plot(
                step, line, color=style["color"], linestyle="-" if setting == FREE[0] else "--", linewidth=1.2, label=setting
            )
    for axis, name in zip(axes, ("cost (training rows)", "accuracy (validation)"), strict=True):
        tidy(axis)
        axis.set_ylabel(name)
    axes[1].set_xlabel("gradient steps")
    legend(axes[1])
    save(figure, path)


def pictures(results: Sequence[rows.Row], name: str) -> None:
    for row in results:
        if row["setting"] == "average 10" and row["seed"] == 0:
            draw(row, RESULTS / f"{name}_b10.svg")
    if {row["setting"] for row in results} >= set(FREE):
        draw_free(results, RESULTS / f"{name}_free.svg")


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args()
    name = "progress" if options.full else "progress_small"
    RESULTS.mkdir(exist_ok=True)
    out = RESULTS / f"{name}.jsonl"
    for row in rows.fill(out, jobs(options.full), one, options.processes):
        print(
            f"{row['setting']} seed {row['seed']}: {row['steps']} steps, test cost {row['cost']:.2f}, "
            f"accuracy {row['accuracy']:.4f}",
            flush=True,
        )
    pictures(rows.read(out), name)


if __name__ == "__main__":
    main()
