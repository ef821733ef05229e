"""Rows as benchmarks.paper.train writes them, made by hand: of a training that is planned, with the figures one wants."""

from askwise.bench.task import Task
from benchmarks.paper.experiments import differences


def trained(task: Task, cost: float, score: float, *, total: float = 50.0, **more):
    """The row of a training whose chosen, mixed and last networks all have this cost and score, on all rows."""
    figures = [cost, 1 - score, score, score, None]
    at_once = [0.0, 0.5, 0.5, 0.5, None]
    same = {"validation": figures, "test": figures, "most": cost}
    row = {
        **task.row, "status": "done", "began": "2026-01-01T00:00:00+00:00", "versions": {}, "settings": differences(task),
        "cpu_seconds": 36.0, "steps": 1000, "states": 10**6, "share_of_steps": 0.01,
        "share_of_states": 0.002, "stopped": "end of the schedule", "doubt": "",
        "n_train": 1995, "n_validation": 1000, "n_test": 1000, "total": total,
        "obtainable": min(total, task.budget.get("hard", total)), "loss_scale": 1.0,
        "columns": ["cost", "loss", "accuracy", "balanced accuracy", "auroc"], "validation": [figures], "test": [figures],
        "cost": cost, "loss": 1 - score, "accuracy": score, "balanced_accuracy": score, "auroc": None, "score": score,
        "score_interval": [score, score], "cost_interval": [cost, cost], "most": cost,
        "at_once": {"validation": at_once, "test": at_once, "most": 0.0}, "last": same, "mixture": same,
        "course": [[100 * i, 0.01, cost, cost, 1 - score, score] for i in range(1, 11)],
        "quarters": [[0.02, 0.01, cost, 1.0, 2], *([0.01, 0.01 / 2**i, cost, 1 / i, 0] for i in (1, 2, 3))],
    }  # fmt: skip
    if task.seed == 0:
        row |= {"resampled_scores": [score - 0.001, score, score + 0.001], "resampled_costs": [cost, cost, cost]}
    return {**row, **more}
