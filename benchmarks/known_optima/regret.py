"""How far the paper's algorithm stays from the exact optimum on one small problem."""

from __future__ import annotations

import time
from typing import Any

from askwise.methods import exact
from askwise.paper import run as paper
from askwise.paper.config import TrainConfig
from askwise.paper.select import expected_for
from benchmarks.known_optima.small_problems import SmallProblem, small_problem

SETTINGS = ("lambda", "hard", "average")
# A run of the paper's shape for tables of a few tests: small batches, a short epoch, larger steps.
CONFIG = TrainConfig(
    width=64,
    epoch=100,
    parallel_cases=200,
    batch_steps=2_000,
    memory_episodes=4_000,
    max_epochs=60,
    lr_start=1e-3,
    lr_min=1e-5,
    pretrain_steps=1_500,
    pretrain_batch=512,
    window_epochs=0.25,
    shrink_epochs=10,
    stop_epochs=10,
    cost_unit=None,
    hard_tradeoff=1e-3,
    mixture="always",  # the optimum under an average budget may be one
)


def regret(small: SmallProblem, setting: str, config: TrainConfig = CONFIG, seed: int = 0) -> dict[str, Any]:
    """Trains on the problem's rows, which are also its validation rows: the distribution is known, only the optimum is not.

    Regret is (learned objective - optimum) / (best without spending - optimum). An average budget is judged by the policy's
    expected cost and loss.
    """
    budget, problem = small.budgets[setting], small.problem
    began = time.monotonic()
    optimum = exact.solve(problem, budget)
    nothing = exact.Exact(problem).nothing()
    lam = budget.lam or 0.0
    run = paper.run(problem, problem, budget, config, seed)
    learned = expected_for(run, budget, config.mixture)

    def objective(loss: float, cost: float) -> float:
        return loss + lam * cost

    best = objective(float(optimum.loss), float(optimum.cost))
    absolute = objective(learned.loss, learned.cost) - best
    span = float(nothing.loss) - best
    row = {
        "seed": small.seed,
        "kind": small.kind,
        "tests": problem.schema.n_tests,
        "setting": setting,
        "budget": str(budget),
        "optimum_cost": float(optimum.cost),
        "optimum_loss": float(optimum.loss),
        "cost": learned.cost,
        "loss": learned.loss,
        "regret": absolute / span if span > 1e-9 else absolute,
        "absolute": absolute,
        "steps": run.history[-1].step,
        "stopped": run.stopped,
        "seconds": round(time.monotonic() - began, 1),
    }
    row["ok"] = bool(row["regret"] <= 0.03 or absolute <= 0.004)
    if budget.average is not None:
        b = float(budget.average)
        enough = min(b, float(exact.Exact(problem).solve(exact.Fraction(0), None).cost))
        row["cost_ok"] = bool(learned.cost <= 1.02 * b and learned.cost >= 0.95 * enough)
        row["ok"] = row["ok"] and row["cost_ok"]
    return row


def regret_of(seed: int, setting: str) -> dict[str, Any]:
    """One row of the table."""
    return regret(small_problem(seed), setting)
