"""What each part of the CPU preset does on forest, on validation rows: a tenth of its steps, with one part as it is in the paper.

    ./dev sh python -m benchmarks.paper.preset

The value that the network expects at the start beside the one that comes out shows whether buying is overestimated. Rows are
appended to results/preset.jsonl as they finish; what is there is not run again. The table goes to results/preset.md.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np

from askwise.core.budget import Tradeoff
from askwise.core.cases import Cases
from askwise.core.episode import measure
from askwise.core.sampling import some_rows
from askwise.datasets.named import load
from askwise.paper.config import TrainConfig
from askwise.paper.train import Trainer
from benchmarks import rows
from benchmarks.script import arguments, head, line

RESULTS = Path(__file__).with_name("results")
LAM = 0.002
SHORT: dict[str, Any] = {"epoch": 30, "pretrain_steps": 5_000}
PAPER = TrainConfig.paper("forest")
VARIANTS: dict[str, dict[str, Any]] = {
    "the preset": {},
    "the paper's masks in pretraining": {"pretrain_power": PAPER.pretrain_power},
    "a high learning rate": {"lr_start": 1e-3},
    "the paper's learning rate": {"lr_start": PAPER.lr_start},
    "small batches": {"batch_steps": 500, "parallel_cases": 500, "memory_episodes": 2_000, "epoch": 75},
    "an old memory": {"parallel_cases": 40, "memory_episodes": 1_600},  # the paper's share of fresh episodes in a batch
    "a fast target network": {"rho": PAPER.rho},
    "long exploration": {"explore_epochs": 40},
    "no pretraining": {"pretrain_steps": 0},
    "float32": {"precision": "float32"},
    "all classes": {"all_classes": True},  # which the paper lacks
}


def one(variant: str, seed: int) -> rows.Row:
    """One training, and its last network on validation rows."""
    parts = load("forest", seed)
    config = TrainConfig.cpu("forest").but(**{**SHORT, **VARIANTS[variant]})
    began = time.process_time()
    trainer = Trainer(parts.train, parts.validation, Tradeoff(LAM), config, seed)
    for _ in trainer:
        pass
    seconds = time.process_time() - began
    where = some_rows(len(parts.validation), 20_000, seed)
    start = trainer.policy().values(Cases.start(parts.validation, where, None).observe())
    assert start is not None
    result = measure(parts.validation, trainer.policy(), None, where)
    return {
        "expected": float(np.max(start, 1).mean()),
        "realised": -(result.loss + LAM * result.cost),
        "cost": result.cost,
        "accuracy": result.accuracy,
        "steps": trainer.step,
        "seconds": round(seconds, 1),
    }


def table(results: list[rows.Row]) -> str:
    lines = head("variant | expected value | what came out | cost | accuracy | steps | CPU seconds")
    for variant in VARIANTS:
        of = [row for row in results if row["variant"] == variant]
        digits = (("expected", 3), ("realised", 3), ("cost", 1), ("accuracy", 4), ("steps", 0), ("seconds", 0))
        if of:
            lines.append(line(variant, *(rows.spread([row[name] for row in of], d) for name, d in digits)))
    return "\n".join(lines)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=1)
    options = parser.parse_args()
    RESULTS.mkdir(exist_ok=True)
    out = RESULTS / "preset.jsonl"
    jobs = [{"variant": variant, "seed": seed} for seed in range(options.seeds) for variant in VARIANTS]
    for row in rows.fill(out, jobs, one, options.processes):
        print(line(*row.values()), flush=True)
    text = f"Made by `./dev sh python -m benchmarks.paper.preset`, forest, a tradeoff of {LAM:g}, validation rows.\n\n"
    out.with_suffix(".md").write_text(f"{text}{table(rows.read(out))}\n")


if __name__ == "__main__":
    main()
