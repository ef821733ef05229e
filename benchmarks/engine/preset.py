"""The paper's preset for miniboone, unscaled, for 200 gradient steps on miniboone_tiny: it runs, and a step takes so long.

./dev sh python -m benchmarks.engine.preset [--threads 2] [--steps 200]
"""

from __future__ import annotations

import time
from pathlib import Path

import torch

from askwise.core.budget import AverageBudget
from askwise.datasets.named import load
from askwise.paper.config import TrainConfig
from askwise.paper.train import Trainer
from benchmarks.script import arguments, publish


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--out", type=Path, default=Path(__file__).with_name("preset.json"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    parts = load("miniboone_tiny")
    config = TrainConfig.paper("miniboone")
    trainer = Trainer(parts.train, parts.validation, AverageBudget(10), config)
    clock = [time.monotonic()]
    while trainer.pretraining:
        trainer.advance()
    clock.append(time.monotonic())
    windows = []
    while trainer.step < options.steps:
        snapshot = trainer.advance()
        if snapshot is not None:
            windows.append(
                {
                    "step": snapshot.step,
                    "lambda": snapshot.lam,
                    "cost": snapshot.train.cost,
                    "validation_accuracy": snapshot.validation.accuracy,
                }
            )
    clock.append(time.monotonic())
    result = {
        "config": config.to_dict(),
        "threads": options.threads,
        "pretraining_steps": trainer.pretrained,
        "pretraining_seconds": round(clock[1] - clock[0], 1),
        "steps": options.steps,
        "seconds_per_step": round((clock[2] - clock[1]) / options.steps, 3),
        "windows": windows,
    }
    publish(result, options.out)


if __name__ == "__main__":
    main()
