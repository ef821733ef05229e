"""How time and memory of a family's training grow with rows, tests and classes.

    ./dev sh python -m benchmarks.family.scaling [--out benchmarks/family/scaling.json]

Random tables, each in a process of its own, one thread. A pass is as many steps as it takes to see every row once, half of them
on prefixes and half choosing; besides, the static order, the frontier on all validation rows at five tradeoffs, and the peak of
memory beyond that of the imports. An exponent is the slope of a straight line through the logarithms.
"""

from __future__ import annotations

import json
import multiprocessing
import resource
import time
from pathlib import Path
from typing import Any

import numpy as np

from askwise.components.static_order import elimination_order
from askwise.core.episode import measure
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.family.config import FamilyConfig
from askwise.family.train import FamilyTrainer, Phase
from askwise.plots.canvas import COLOURS, empty, legend, save, tidy
from benchmarks.script import arguments

HERE = Path(__file__).parent
AXES = {
    "rows": [(n, 20, 4) for n in (10_000, 30_000, 100_000, 300_000, 500_000)],
    "tests": [(20_000, f, 4) for f in (10, 30, 100, 300, 800)],
    "classes": [(20_000, 20, k) for k in (2, 5, 10, 30, 100)],
}
WHAT = ("order", "pass", "frontier", "memory_mb")
STEPS = 100  # that are timed


def one(rows: int, tests: int, classes: int) -> dict[str, float]:
    import torch

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    schema = Schema.build([f"x{i}" for i in range(tests)], list(range(classes)))

    def problem_of(n: int) -> Problem:
        X = rng.normal(size=(n, tests)).astype(np.float32)
        return Problem.build(schema, X, ((X[:, 0] + X[:, 1] > 0) + 2 * (X[:, 2] * X[:, 3] > 0)) % classes)

    train, validation = problem_of(rows), problem_of(rows // 4)
    results = {}
    at = time.monotonic()
    order = elimination_order(train)
    results["order"] = time.monotonic() - at
    config = FamilyConfig(width=128, prefix_batch=256, parallel_cases=128, max_tests=20, max_steps=10**9)
    trainer = FamilyTrainer(train, validation, order, config)
    seconds = 0.0
    for phase in (Phase.PREFIXES, Phase.SELECTION):
        if phase != trainer.phase:
            trainer._begin(phase)
        for step in range(STEPS + 10):
            if step == 10:
                at = time.monotonic()
            trainer.advance()
        seconds += (time.monotonic() - at) / STEPS * rows / config.prefix_batch / 2
    results["pass"] = seconds
    at = time.monotonic()
    family = trainer.family(trainer.weights())
    for lam in np.geomspace(trainer.scale.high / 2, trainer.scale.high / 50, 5):
        measure(validation, family.policy(float(lam)), None)
    results["frontier"] = time.monotonic() - at
    results["memory_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - before
    return {"rows": rows, "tests": tests, "classes": classes, **{k: round(v, 3) for k, v in results.items()}}


def exponents(points: list[dict[str, float]], axis: str) -> dict[str, float]:
    x = np.log([p[axis] for p in points])
    return {name: float(np.polyfit(x, np.log([max(p[name], 1e-6) for p in points]), 1)[0]) for name in WHAT}


def text(results: dict[str, list[dict[str, float]]]) -> str:
    lines = []
    for axis, points in results.items():
        lines += [f"\n| {axis} | order, s | pass, s | frontier, s | memory, MB |", "|---|---|---|---|---|"]
        lines += [f"| {p[axis]} | " + " | ".join(f"{p[name]:.4g}" for name in WHAT) + " |" for p in points]
        lines.append("| exponent | " + " | ".join(f"{e:.2f}" for e in exponents(points, axis).values()) + " |")
    return "\n".join(lines)


def draw(results: dict[str, list[dict[str, float]]], path: Path) -> None:
    figure = empty(10, 4)
    for axes, (axis, points) in zip(figure.subplots(1, 3), results.items(), strict=True):
        tidy(axes)
        for colour, name in zip(COLOURS, WHAT, strict=False):
            label = {"order": "order, s", "pass": "pass, s", "frontier": "frontier, s", "memory_mb": "memory, MB"}[name]
            axes.loglog([p[axis] for p in points], [max(p[name], 1e-3) for p in points], color=colour, marker=".", label=label)
        axes.set_xlabel(axis)
    legend(figure.axes[0], loc="upper left")
    save(figure, path)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--out", type=Path, default=HERE / "scaling.json")
    options = parser.parse_args()
    results: dict[str, list[dict[str, Any]]] = {}
    for axis, sizes in AXES.items():
        for size in sizes:
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                results.setdefault(axis, []).append(pool.apply(one, size))
            print(results[axis][-1], flush=True)
    options.out.write_text(json.dumps(results, indent=1) + "\n")
    options.out.with_suffix(".md").write_text(f"Made by `./dev sh python -m benchmarks.family.scaling`.\n{text(results)}\n")
    draw(results, options.out.with_suffix(".svg"))
    print(text(results))


if __name__ == "__main__":
    main()
