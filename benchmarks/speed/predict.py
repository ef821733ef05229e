"""How fast a policy is used: buy-or-stop decisions per second, and the time of one decision for one case.

    ./dev sh python -m benchmarks.speed.predict [--out benchmarks/speed/predict.json]

A policy of the paper and one of the family: 50 tests, width 128, 50,000 cases that buy nearly all of their tests. Stacks for a
table of 5,000 rows x 50 tests and one of 15,000 rows x 20 tests with 4 classes, in NumPy and in onnxruntime: 1,000 cases that buy
everything. Networks are hardly trained and made to go on. One decision is that of a case with half of its tests.

One thread, and seconds of its own: those in which other work had the core are not counted.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from askwise.core.cases import Cases
from askwise.core.episode import rollout
from askwise.core.policy import Greedy, Policy
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.family.config import FamilyConfig
from askwise.family.train import FamilyTrainer
from askwise.paper.numpy_network import DenseValues
from benchmarks.script import arguments, publish
from benchmarks.speed.stacks import OnnxPolicy, stacks

TABLES = ((5_000, 50, 2), (15_000, 20, 4))  # rows, tests, classes


def papers(schema: Schema, rng: np.random.Generator) -> Policy:
    sizes = [100, 128, 128, 128, 1 + schema.n_actions]
    weights = {}
    for i, name in enumerate(("encoder.0", "encoder.2", "encoder.4", "head")):
        weights[f"{name}.weight"] = (rng.normal(size=(sizes[i + 1], sizes[i])) / sizes[i] ** 0.5).astype(np.float32)
        weights[f"{name}.bias"] = np.zeros(sizes[i + 1], np.float32)
    weights["head.bias"][1 + schema.first_test :] = 0.6  # tests look a little better than classes, so that many are bought
    return Greedy(DenseValues(weights))


def familys(problem: Problem) -> Policy:
    trainer = FamilyTrainer(problem, problem, np.arange(problem.schema.n_tests), FamilyConfig(max_steps=20))
    while not trainer.finished:
        trainer.advance()
    weights = trainer.weights()
    weights["value_head.4.bias"][problem.schema.n_tests] = -1  # going on is always worth it
    return trainer.family(weights).policy(0.01)


def timed(policy: Policy, problem: Problem, cases: int, repeat: int) -> dict[str, float]:
    seconds, decisions = [], 0
    for _ in range(repeat):
        began = time.process_time()
        decisions = int(rollout(problem, policy, None, np.arange(cases)).length.sum())
        seconds.append(time.process_time() - began)
    half, single = np.arange(problem.schema.n_tests) % 2 == 0, []
    for row in range(500):
        one = Cases(problem, np.array([row]), np.random.default_rng(row).permutation(half)[None], None)
        began = time.process_time()
        policy.act(one.observe())
        single.append(time.process_time() - began)
    return {
        "decisions_per_case": decisions / cases,
        "decisions_per_second": round(decisions / statistics.median(seconds)),
        "best_decisions_per_second": round(decisions / min(seconds)),
        "one_decision_ms": round(1e3 * statistics.median(single), 3),
        "best_one_decision_ms": round(1e3 * min(single), 3),
    }


def timed_stack(table: tuple[int, int, int], rich: bool, repeat: int) -> dict[str, Any]:
    model, problem = stacks(*table, rich)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.askwise"
        model.save(file)
        onnx = OnnxPolicy(model, file.with_suffix(".onnx"))
        return {
            **dict(zip(("rows", "tests", "classes"), table, strict=True)),
            "bins_and_sines": rich,
            "trees": len(model.family.weights["trees.root"]),
            "model_file_mb": round(file.stat().st_size / 1e6, 1),
            "numpy": timed(model.policy, problem, 1_000, repeat),
            "onnxruntime": timed(onnx, problem, 1_000, repeat),
        }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    schema = Schema.build([f"x{i}" for i in range(50)], [0, 1])
    X = rng.normal(size=(50_000, 50))
    problem = Problem.build(schema, X, (X[:, 0] > 0).astype(int))
    policies = {"paper": papers(schema, rng), "family": familys(problem)}
    result = {name: timed(policy, problem, len(problem), options.repeat) for name, policy in policies.items()}
    stack = [timed_stack(table, rich, options.repeat) for table in TABLES for rich in (False, True)]
    publish({"cases": len(problem), **result, "stack": stack}, options.out)


if __name__ == "__main__":
    main()
