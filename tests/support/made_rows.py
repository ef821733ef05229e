"""Rows as `askwise bench` writes them, made by hand."""

import json
from pathlib import Path


def row(data="toy", method="tree", seed=0, area=0.8, budget=None, *, task=None, **more):
    """A row of a frontier from (0, area) to (10, area), or of a policy for a budget."""
    told = {
        "data": data, "method": method, "label": method, "seed": seed, "minutes": 1.0, "budget": budget, "remove": 0.0,
        "imputation": None, "options": {}, **(task or {}),
    }  # fmt: skip
    found = {
        "task": told, "class_weight": None, "most_rows": {"train": 0, "validation": 10000, "test": 30000}, "threads": 1,
        "source": None, "status": "done", "began": f"2026-01-0{seed + 1}T00:00:00+00:00", "minutes_taken": 0.5 + seed,
        "memory_mb": 100 + seed, "versions": {"python": "3.12.1", "askwise": "0.1.0"}, "plan": "first", "commit": "abc1234",
        "n_train": 60, "n_test": 20, "total": 10.0, "loss_scale": 1.0,
        "columns": ["cost", "loss", "accuracy", "balanced accuracy", "auroc"],
        "validation": [[2.0, 0.3, 0.7, 0.6, None], [4.0, 0.2, 0.8, 0.7, None]],
        "test": [[2.1, 0.33, 0.67, 0.57, None], [4.1, 0.22, 0.78, 0.68, None]],
    }  # fmt: skip
    if budget is None:
        found |= {
            "area": area, "curve": [[0.0, 10.0], [area, area]], "chosen": [0, 1], "resampled": [area - 0.01, area + 0.01],
            "accuracy_at": {"2": area - 0.1}, "cost_at": {"0.75": 3.0, "0.99": None},
        }  # fmt: skip
    else:
        found |= {
            "cost": 4.0, "cost_interval": [3.5, 4.5], "loss": 0.25, "accuracy": 0.75, "balanced_accuracy": 0.7, "auroc": None,
            "score": 0.75, "score_interval": [0.7, 0.8], "most": 9.0,
        }  # fmt: skip
    return {**found, **more}


def write(path: Path, *rows) -> Path:
    """Each a row, or a line as it is."""
    path.write_text("".join((r if isinstance(r, str) else json.dumps(r)) + "\n" for r in rows))
    return path
