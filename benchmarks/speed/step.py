"""Times one gradient step and one environment step at the paper's sizes, each beside the matrix products it cannot do without.

    ./dev sh python -m benchmarks.speed.step [--threads 2] [--repeat 30] [--out benchmarks/speed/step.json]

Paper's sizes: 50 tests, 2 classes, width 128, 50,000 steps of whole episodes in a batch, 1,000 parallel cases. The two sides of
each comparison take turns, so that a busy machine slows both.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from askwise.core.budget import AverageBudget
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.paper.config import TrainConfig
from askwise.paper.train import Trainer
from benchmarks.script import arguments, publish


def trainer() -> Trainer:
    """Ready to learn, its memory filled by a random agent; pretraining is left out, it does not change the sizes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 50))
    y = (X[:, :5].sum(1) > 0).astype(int)
    schema = Schema.build([f"x{i}" for i in range(50)], [0, 1])
    problem = Problem.build(schema, X, y)
    ready = Trainer(problem, problem.take(np.arange(1_000)), AverageBudget(10), TrainConfig(pretrain_steps=0))
    ready.advance()
    assert not ready.pretraining
    return ready


def products(ready: Trainer, states: torch.Tensor) -> Callable[[], None]:
    """Target forward, forward, backward and Adam on states that are already there, and nothing else."""
    network, target = copy.deepcopy(ready.network), copy.deepcopy(ready.target)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-4, fused=True)

    def once() -> None:
        with torch.no_grad():
            target(states)
        optimiser.zero_grad()
        network(states).square().mean().backward()
        optimiser.step()

    return once


def in_turns(repeat: int, **sides: Callable[[], None]) -> dict[str, list[float]]:
    """Seconds of each side, one after the other, `repeat` times, after three times for warming up."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for i in range(repeat + 3):
        for name, call in sides.items():
            began = time.perf_counter()
            call()
            if i >= 3:
                seconds[name].append(time.perf_counter() - began)
    return seconds


def summary(ours: list[float], reference: list[float]) -> dict[str, Any]:
    ratios = sorted(a / b for a, b in zip(ours, reference, strict=True))
    return {
        "ours_ms": round(1e3 * statistics.median(ours), 2),
        "products_ms": round(1e3 * statistics.median(reference), 2),
        "ratio": round(statistics.median(ratios), 3),
        "ratio_quartiles": [round(ratios[len(ratios) // 4], 3), round(ratios[3 * len(ratios) // 4], 3)],
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeat", type=int, default=30)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    ready = trainer()
    S = ready.config.batch_steps
    gradient = in_turns(
        options.repeat,
        ours=lambda: ready._learn(ready.memory.sample(S, ready.rng)),
        products=products(ready, torch.randn(S, 100)),
    )
    states = torch.randn(ready.config.parallel_cases, 100)

    def forward() -> None:
        with torch.inference_mode():
            ready.network(states)

    environment = in_turns(4 * options.repeat, ours=ready._act, products=forward)
    per_episode = ready.memory.row.itemsize + ready.memory.length.itemsize
    result = {
        "threads": options.threads,
        "torch": torch.__version__,
        "gradient_step": summary(gradient["ours"], gradient["products"]),
        "environment_step": summary(environment["ours"], environment["products"]),
        "bytes_per_stored_step": ready.memory.bytes_per_step,
        "bytes_per_stored_episode_besides": per_episode,
    }
    publish(result, options.out)


if __name__ == "__main__":
    main()
