"""Do two checkouts of askwise learn and decide the same, bit for bit?

    python -m benchmarks.behaviour.compare OLD NEW

For two algorithms and three tables, with the same seed and a fixed number of steps, both checkouts train, save and decide.
Compared are all arrays of the model files (by content: names may change), the points of the frontier, and what is bought, paid
and decided for test cases at several budgets. Run both on one machine: another processor may add up in another order.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np

SETTINGS = [(algorithm, table) for algorithm in ("family", "paper") for table in ("thyroid", "digits", "clinic")]
STEPS = {"family": 400, "paper": 120}


def clinic() -> tuple[Any, Any, dict[str, Any]]:
    """A table with words, a shared set-up, a derived test and missing values."""
    import pandas as pd

    rng = np.random.default_rng(7)
    n = 600
    fever, count, sugar, weight = rng.normal(size=(4, n)).round(2)
    cough = rng.choice(["no", "dry", "wet"], n)
    table = pd.DataFrame(
        {"fever": fever, "cough": cough, "count": count, "sugar": sugar, "weight": weight, "index": sugar * weight}
    )
    y = np.where(fever + count + (cough == "wet") + sugar * weight > 0.5, "ill", "well")
    table[["fever", "sugar", "weight"]] = table[["fever", "sugar", "weight"]].mask(rng.random((n, 3)) < 0.1)
    return (
        table,
        y,
        {
            "costs": {"fever": 1, "cough": 0.5, "count": 4, "sugar": 3, "weight": 1, "index": 0},
            "setup": {"blood draw": (2, ["count", "sugar"])},
            "derived": {"index": ["sugar", "weight"]},
        },
    )


def table_of(name: str) -> tuple[Any, Any, dict[str, Any]]:
    """Columns, target, and the prices as settings of the classifier."""
    if name == "clinic":
        return clinic()
    data = _datasets().raw(name)
    return data.table, data.y, {"costs": data.costs, "setup": data.setup, "derived": data.derived, "reveals": data.reveals}


def _datasets() -> Any:
    import importlib

    for room in ("datasets", "data"):  # it has moved
        try:
            return importlib.import_module(f"askwise.{room}.named")
        except ModuleNotFoundError:
            continue
    raise SystemExit("this checkout has no named data sets")


def probe(algorithm: str, table: str) -> dict[str, Any]:
    """What this checkout learns and decides."""
    from safetensors.numpy import load_file

    from askwise import AverageBudget, CostlyClassifier, FamilyConfig, HardBudget, Tradeoff, TrainConfig

    X, y, prices = table_of(table)
    order = np.random.default_rng(0).permutation(len(X))
    train, test = order[: min(len(X) * 3 // 4, 1_200)], order[-400:]
    names = {field.name for field in fields(FamilyConfig)}
    trial = "encoding_trial_steps" if "encoding_trial_steps" in names else "trial"  # its earlier name
    config: Any = FamilyConfig(**{"max_steps": STEPS["family"], "width": 32, "bins": 8, trial: 50})
    if algorithm == "paper":
        config = replace(TrainConfig.for_size(900, 6), width=32, epoch=60, max_epochs=STEPS["paper"] / 60, pretrain_steps=100)
    frame = X if hasattr(X, "columns") else np.asarray(X)
    rows = (lambda part: frame.iloc[part]) if hasattr(frame, "columns") else (lambda part: frame[part])
    total = 10.0
    fitted = CostlyClassifier(**prices, algorithm=algorithm, config=config, random_state=3, budget=AverageBudget(total / 2))
    fitted.fit(rows(train), y[train])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.askwise"
        fitted.save(path)
        arrays = sorted(_digest(array) for array in load_file(path).values())
    budgets = {"average": AverageBudget(total / 2), "half": AverageBudget(total / 4), "price": Tradeoff(0.02)}
    if algorithm == "family":
        budgets["hard"] = HardBudget(total / 2)
    decided = {}
    for name, budget in budgets.items():
        report = fitted.at(budget).acquire(rows(test))
        decided[name] = [
            _digest(report.cost),
            _digest(report.probability),
            hashlib.sha256(repr((report.prediction.tolist(), report.tests)).encode()).hexdigest(),
        ]
    points = [[point[name] for name in ("lam", "cost", "loss", "accuracy")] for point in fitted.frontier_]
    return {"arrays": arrays, "points": points, "decided": decided}


def _digest(array: Any) -> str:
    whole = np.ascontiguousarray(array)
    return hashlib.sha256(repr((whole.shape, whole.dtype.str)).encode() + whole.tobytes()).hexdigest()


def run(checkout: Path, algorithm: str, table: str) -> dict[str, Any]:
    """The probe in a process of its own that imports that checkout."""
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    environment = {**os.environ, **one_thread, "PYTHONPATH": str(checkout.resolve() / "src")}
    call = [sys.executable, __file__, "--probe", algorithm, table]
    return dict(json.loads(subprocess.run(call, env=environment, check=True, capture_output=True, text=True).stdout))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("checkouts", nargs="*", type=Path, metavar="OLD NEW")
    parser.add_argument("--probe", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.probe:
        print(json.dumps(probe(*options.probe)))
        return 0
    if len(options.checkouts) != 2:
        parser.error("name two checkouts")
    differ = 0
    for algorithm, table in SETTINGS:
        old, new = (run(checkout, algorithm, table) for checkout in options.checkouts)
        unlike = [name for name in old if old[name] != new[name]]
        differ += bool(unlike)
        print(
            f"{algorithm:8} {table:10} {len(old['arrays'])} arrays, {len(old['points'])} points: "
            f"{'the same' if not unlike else 'DIFFERENT: ' + ', '.join(unlike)}",
            flush=True,
        )
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
