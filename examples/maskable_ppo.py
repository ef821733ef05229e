"""An agent from elsewhere: MaskablePPO of sb3-contrib, trained in `askwise.gym` and measured like every other method.

pip install -c constraints.txt '.[agents]'
python examples/maskable_ppo.py --data breast_cancer --tradeoff 0.01

A plan of `python -m askwise bench`, started beside the folder `examples`, names it as a method: `examples.maskable_ppo`.
"""

import argparse
import math
import time

import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env

from askwise import Budget, HardBudget, Problem, Tradeoff
from askwise.datasets import named
from askwise.errors import InputError
from askwise.evaluation import evaluate
from askwise.gym import AgentPolicy, CostlyEnv


class Until(BaseCallback):
    """Ends training at a moment of the monotonic clock."""

    def __init__(self, end: float) -> None:
        super().__init__()
        self.end = end

    def _on_step(self) -> bool:
        return time.monotonic() < self.end


def train(problem: Problem, budget: Budget, steps: int, seed: int = 0, end: float = math.inf) -> AgentPolicy:
    """A policy that maximises the mean return, -(loss + lam * cost)."""
    envs = make_vec_env(lambda: CostlyEnv(problem, budget), n_envs=16, seed=seed)
    # whole episodes count, so nothing is discounted; a little entropy, or it stops before it has seen what tests tell
    settings = dict(gamma=1.0, n_steps=128, batch_size=256, ent_coef=0.01, learning_rate=1e-3)
    model = MaskablePPO("MlpPolicy", envs, seed=seed, device="cpu", **settings)
    model.learn(steps, Until(end))
    return AgentPolicy(lambda states, masks: model.predict(states, action_masks=masks, deterministic=True)[0], problem.schema)


def fit(problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0) -> AgentPolicy:
    """The same as a method of `askwise bench`. Its rewards know a tradeoff and a hard budget, not an average to be met."""
    if budget.average is not None:
        raise InputError(f"MaskablePPO cannot aim at {budget}; give a tradeoff, a hard budget or both")
    return train(problem, budget, 10**9, seed, time.monotonic() + seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description="Train MaskablePPO on a named data set and measure it on the test rows.")
    parser.add_argument("--data", default="breast_cancer")
    parser.add_argument("--tradeoff", type=float, default=0.01, help="loss per unit of cost")
    parser.add_argument("--hard-budget", type=float, help="the most that any case may cost")
    parser.add_argument("--steps", type=int, default=50_000)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(1)  # the networks are too small for more
    split = named.load(options.data, seed=options.seed)
    budget: Budget = Tradeoff(options.tradeoff)
    if options.hard_budget is not None:
        budget = budget & HardBudget(options.hard_budget)
    report = evaluate(train(split.train, budget, options.steps, options.seed), split.test, budget)
    objective = report.loss + options.tradeoff * report.cost
    print(f"cost {report.cost:.3f}, accuracy {report.accuracy:.3f}, loss + tradeoff x cost {objective:.4f}")


if __name__ == "__main__":
    main()
