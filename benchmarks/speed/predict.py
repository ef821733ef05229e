"""How fast a policy is used: buy-or-stop decisions per second, and the time of one decision for one case.

    ./dev sh python -m benchmarks.speed.predict [--out benchmarks/speed/predict.json]

50 tests, width 128, 50,000 cases that buy nearly all of their tests: a policy of the paper and one of the family, both hardly
trained and made to go on.
"""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import numpy as np

from askwise.core.cases import Cases
from askwise.core.episode import rollout
from askwise.core.policy import Greedy, Policy
from askwise.core.problem import Problem, Schema
from askwise.family.config import FamilyConfig
from askwise.family.train import FamilyTrainer
from askwise.paper.numpy_network import DenseValues
from benchmarks.script import arguments, publish


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


def timed(policy: Policy, problem: Problem, repeat: int) -> dict[str, float]:
    seconds, decisions = [], 0
    for _ in range(repeat):
        began = time.perf_counter()
        decisions = int(rollout(problem, policy, None).length.sum())
        seconds.append(time.perf_counter() - began)
    single = []
    for row in range(500):
        cases = Cases.start(problem, np.array([row]), None)
        began = time.perf_counter()
        policy.act(cases.observe())
        single.append(time.perf_counter() - began)
    return {
        "decisions_per_case": decisions / len(problem),
        "decisions_per_second": round(decisions / statistics.median(seconds)),
        "best_decisions_per_second": round(decisions / min(seconds)),
        "one_decision_ms": round(1e3 * statistics.median(single), 3),
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    rng = np.random.default_rng(0)
    schema = Schema.build([f"x{i}" for i in range(50)], [0, 1])
    X = rng.normal(size=(50_000, 50))
    problem = Problem.build(schema, X, (X[:, 0] > 0).astype(int))
    policies = {"paper": papers(schema, rng), "family": familys(problem)}
    result = {"cases": len(problem), **{name: timed(policy, problem, options.repeat) for name, policy in policies.items()}}
    publish(result, options.out)


if __name__ == "__main__":
    main()
