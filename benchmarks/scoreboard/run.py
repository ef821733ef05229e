"""Every method on every data set, by the area under its frontier.

    ./dev sh python -m benchmarks.scoreboard.run [--data ...] [--methods ...] [--minutes 10] [--seeds ...] [--threads 2]

A method is one of `askwise.methods.names()` with `points(problem, validation, *, seconds, seed, threads)`, which returns the
policies that make its frontier; the paper's algorithm runs on small sets only, and `convolutions` is the family with convolutions
(cifar only, on request). Uneven classes are weighted and judged by expected loss: the score is 1 - loss / stake, which is the
accuracy where mistakes are alike.
One row per data set, method, seed and minutes is appended to results.jsonl as it finishes, each from a process of its own; what
is there is never run again, and it can be killed at any time. The table goes to results.md, the frontiers to frontier_*.svg.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import time
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
import torch

from askwise import methods
from askwise.core.budget import Budget
from askwise.core.episode import some_rows
from askwise.core.network import Convolutional
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.data.named import load
from askwise.evaluate import evaluate
from askwise.frontier import Curve, curve
from askwise.methods import family, paper
from benchmarks import rows
from benchmarks.scoreboard import table

HERE = Path(__file__).parent
LARGE = ("forest", "mnist", "cifar")
UNEVEN = ("nhanes", "ann_thyroid", "thyroid")
DATA = (*LARGE, *UNEVEN, "digits", "miniboone_tiny")
METHODS = ("baseline", "static_gbm", "cascade", "paper", "family")
AT = {"forest": (4.5, 6.5), "mnist": (10, 20, 50)}  # mean costs at which the score is read off the curve
SAMPLES = 200  # of the test cases, drawn with repetition, for the area of each
MOST_ROWS = {"validation": 10_000, "test": 30_000}  # for measuring; the standard error of the score is then 0.003 or less


def convolutions(problem: Problem, validation: Problem, **given: Any) -> list[Policy]:
    """The family with an encoder of the caller's own, for pictures; its steps are slow, and the classifier profits most."""
    side = round(problem.schema.n_tests**0.5)
    encoder = Convolutional.of(side, side, (32, 64, 128), mirror=True)
    return family.points(problem, validation, encoder=encoder, width=256, cases=128, prefix_share=0.6, prefix_power=2, **given)


def points_of(method: str) -> Any:
    if method == "convolutions":
        return convolutions
    return methods.get(method.replace("_", "-")).points


def one(data: str, method: str, seed: int, minutes: float, threads: int = 1) -> rows.Row:
    """One method on one split: trains for about so many minutes, then measures each of its points."""
    torch.set_num_threads(threads)
    weight = "balanced" if data in UNEVEN else None
    parts = load(data, seed, weight)  # where there is no official split, another seed is another split
    began = time.monotonic()
    policies = points_of(method)(parts.train, parts.validation, seconds=60 * minutes, seed=seed, threads=threads)
    took, peak = (time.monotonic() - began) / 60, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    judged = {name: (p := getattr(parts, name)).take(some_rows(len(p), most, 0)) for name, most in MOST_ROWS.items()}
    at_once, total = paper.decide_at_once(parts.train), float(parts.train.schema.prices.money(parts.train.schema.prices.total))
    found_on = {name: [measured(policy, p) for policy in (at_once, *policies)] for name, p in judged.items()}
    validation, test = ([(cost, 1 - loss / parts.train.stake) for cost, loss, _ in of] for of in found_on.values())
    chosen_on = [(cost.mean(), score.mean()) for cost, score in validation]

    def drawn(weights: Any) -> Curve:
        """The curve when each test case counts so often."""
        means = [(np.average(cost, weights=weights), np.average(score, weights=weights)) for cost, score in test]
        (_, mine), (_, new) = chosen_on[0], means[0]
        both = (tuple(zip(*points[1:], strict=True)) for points in (chosen_on, means))
        return curve(next(both), next(both), (mine, new), total)  # type: ignore[arg-type]

    n = len(judged["test"])
    found = drawn(np.ones(n))
    again = np.random.default_rng(0)  # the same cases for all methods
    return {
        "area": found.area, "at": {f"{c:g}": float(np.interp(c, found.cost, found.score)) for c in AT.get(data, ())},
        "total": total, "stake": parts.train.stake, "curve": [found.cost.tolist(), found.score.tolist()],
        "chosen": found.chosen.tolist(), "columns": ["cost", "loss", "accuracy", "balanced accuracy"],
        **{name: [means for _, _, means in of[1:]] for name, of in found_on.items()},
        "resampled": [round(drawn(np.bincount(again.integers(n, size=n), minlength=n)).area, 5) for _ in range(SAMPLES)],
        "minutes_taken": round(took, 2), "memory_mb": round(peak),
        "configuration": {"threads": threads, "class_weight": weight, "most_rows": MOST_ROWS,
                          "versions": {name: version(name) for name in ("numpy", "torch", "lightgbm")}},
        "commit": commit(),
    }  # fmt: skip


def measured(policy: Policy, problem: Problem) -> tuple[Any, Any, list[float]]:
    """Cost and loss of each case, and the means; what was bought is not kept, of pictures it would be much."""
    report = evaluate(policy, problem, Budget())
    means = [report.cost, report.loss, report.accuracy, report.balanced_accuracy]
    return report.cost_per_case, report.episodes.loss, means


def commit() -> str:
    """What the code was: the commit, with a + where files differ from it."""
    said = [subprocess.run(["git", *words], capture_output=True, text=True, cwd=HERE, check=False).stdout
            for words in (["rev-parse", "--short", "HEAD"], ["status", "--porcelain", "--", "../../src"])]  # fmt: skip
    return said[0].strip() + ("+" if said[1].strip() else "")


def jobs_of(data: Sequence[str], methods: Sequence[str], minutes: float, seeds: Sequence[int] | None) -> Iterator[rows.Row]:
    for name in data:
        for method in methods:
            if method == "paper" and name in LARGE:
                continue
            for seed in seeds if seeds is not None else range(1 if name in LARGE else 3):
                yield {"data": name, "method": method, "seed": seed, "minutes": minutes}


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=DATA, metavar="NAME")
    parser.add_argument("--methods", nargs="+", default=METHODS, metavar="NAME")
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--seeds", nargs="+", type=int, help="default: 0 on the large sets, 0 1 2 on the others")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results.jsonl")
    given = parser.parse_args(words)
    given.out.parent.mkdir(parents=True, exist_ok=True)
    for job in jobs_of(given.data, given.methods, given.minutes, given.seeds):
        # a call for each job makes a process for each job, so that the peak of memory is the job's own
        for row in rows.fill(given.out, [job], partial(one, threads=given.threads), 1):
            print(f"{row['data']} {row['method']} seed {row['seed']}: area {row['area']:.4f} in {row['minutes_taken']:.1f} of "
                  f"{row['minutes']:g} min, {row['memory_mb']} MB {row['at'] or ''}", flush=True)  # fmt: skip
    table.write(rows.read(given.out), given.out)


if __name__ == "__main__":
    main()
