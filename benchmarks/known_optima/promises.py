"""Exact optima with a decision that is no class, and with recall and specificity to be reached.

    ./dev sh python -m benchmarks.known_optima.promises [--what defer recall] [--seeds 0:20] [--processes 2]

One training of the stack for each problem, from 4,000 of 200,000 rows; it is judged on all, against the optimum there.

`defer`: a decision costs something and is hardly ever wrong. Regret at 10 tradeoffs, as in `family`.

`recall`: the cheapest policy with a recall and a specificity of the first class that are both so much of the way from deciding by
lot to what all tests reach. The optimum is a mixture of policies, each of which is optimal for some weights of the classes:

    max over μ ≥ 0 of min over policies of   cost + μ₁ (r - recall) + μ₂ (s - specificity)

found by cutting planes, with the exact optimum at the weights in each step. Regret is that of the same sum at the best μ, where
missing a target costs as much as it is worth to reach it: (learned - optimum) / (best without spending - optimum).

Rows are appended to promises.jsonl as they finish; what is there is not run again. The table is written to promises.md.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog

from askwise.core.arrays import Doubles
from askwise.core.budget import AtLeast, Tradeoff
from askwise.core.episode import Episodes, rollout
from askwise.core.problem import Problem
from askwise.core.shares import confusion
from askwise.errors import InputError
from askwise.family.conditions import Scale
from askwise.methods import exact
from benchmarks import rows
from benchmarks.known_optima.family import ABSOLUTE, FRESH, LEARNED, fitted, near_enough, regret_of
from benchmarks.known_optima.small_problems import counted, small_problem
from benchmarks.script import arguments, head, line

HERE = Path(__file__).parent
WHAT = ("defer", "recall")
SHARES = (0.3, 0.5, 0.7, 0.9)  # of the way from deciding by lot to what all tests reach
PRECISE, STEPS = 1e-3, 40  # of the optimum: as a part of what all tests cost; and of its cutting planes, at most


class Met(NamedTuple):
    """What a policy comes to."""

    cost: float
    recall: float
    specificity: float

    def priced(self, mu: Doubles, asked: Sequence[float]) -> float:
        return self.cost + float(mu @ (np.array(asked) - self[1:]))


class Optimum(NamedTuple):
    """The least cost at which both are reached, and what each is worth there."""

    cost: float
    mu: Doubles


def met(problem: Problem, done: Episodes, of: int = 0) -> Met:
    weight = np.ones(len(problem)) if problem.weight is None else problem.weight
    counts = confusion(problem.labels[done.row], done.decision, problem.loss.shape, weight[done.row])
    others = np.delete(counts, of, 0)
    paid = problem.schema.costs.money(done.cost.astype(float))
    cost = float((weight[done.row] * paid).sum() / weight.sum())
    return Met(cost, float(counts[of, of] / counts[of].sum()), float(1 - others[:, of].sum() / others.sum()))


def followed(problem: Problem, solution: exact.ExactSolution) -> Met:
    return met(problem, rollout(problem, solution.policy, None))


def weighed(problem: Problem, mu: Doubles, of: int = 0) -> Problem:
    """The problem in which missing a case of the class, and taking another for one, lose what the targets are worth."""
    weight = np.ones(len(problem)) if problem.weight is None else problem.weight
    share = float(weight[problem.labels == of].sum() / weight.sum())
    K = problem.schema.n_classes
    loss = np.zeros((K, K))
    loss[of], loss[:, of] = mu[0] / share, mu[1] / (1 - share)
    loss[of, of] = 0.0
    return problem.with_loss(np.round(loss, 4))


def least_cost(problem: Problem, asked: Sequence[float]) -> Optimum:
    """By cutting planes: each policy bounds, at every μ, what the best one comes to."""
    costs = problem.schema.costs
    everything = float(costs.money(costs.total))
    first = weighed(problem, np.array([1.0, 1.0]))
    beliefs = exact.Exact(first)
    cuts = [followed(problem, solution) for solution in (beliefs.nothing(), beliefs.solve(Fraction(0), None))]
    limit = 100 * everything
    for _ in range(STEPS):
        # t, μ₁, μ₂: the largest t that no cut forbids
        rows_of = [[1.0, *(np.array(cut[1:]) - asked)] for cut in cuts]
        bounds = [(None, None), (0.0, limit), (0.0, limit)]
        t, *best = linprog([-1.0, 0.0, 0.0], rows_of, [cut.cost for cut in cuts], bounds=bounds).x
        mu = np.array(best)
        if not mu.any():
            return Optimum(0.0, mu)
        cut = followed(problem, exact.Exact(weighed(problem, mu)).solve(Fraction(1), None))
        if cut.priced(mu, asked) > t - PRECISE * everything:
            return Optimum(float(cut.priced(mu, asked)), mu)
        cuts.append(cut)
    raise InputError(f"the optimum at {asked} was not found in {STEPS} steps")


def one(what: str, seed: int) -> rows.Row:
    began, defers = time.monotonic(), what == "defer"
    whole = small_problem(seed, FRESH, defers).problem
    model, problem = fitted(whole.take(np.arange(LEARNED)), "stack", seed), counted(whole)
    seconds = round(time.monotonic() - began, 1)
    if defers:
        nothing, scale = float(exact.Exact(problem).nothing().loss), Scale.of(problem)
        lams = np.geomspace(20 * scale.low, 0.7 * scale.high, 10).tolist()
        results = [regret_of(model, problem, Tradeoff(lam), nothing) for lam in lams]
        asked = [[lam] for lam in lams]
    else:
        every = followed(problem, exact.Exact(weighed(problem, np.ones(2))).solve(Fraction(0), None))
        results, asked = [], []
        for share in SHARES:
            r, s = (round(0.5 + share * (figure - 0.5), 3) for figure in every[1:])
            if min(r, s) <= 0.5:  # all tests tell nothing
                continue
            optimum = least_cost(problem, (r, s))
            try:
                there = model.at(AtLeast(recall={0: r}, specificity={0: s}))
                learned = met(problem, there.rollout(problem))
            except InputError:  # held-out rows do not promise it: all tests are the best there is
                learned = every
            at_once = followed(problem, exact.Exact(weighed(problem, optimum.mu)).nothing()).priced(optimum.mu, (r, s))
            absolute, span = learned.priced(optimum.mu, (r, s)) - optimum.cost, at_once - optimum.cost
            everything = float(problem.schema.costs.money(problem.schema.costs.total))
            results.append((absolute / span if span > 1e-9 else absolute, absolute / everything))
            asked.append([r, s, *(round(x, 4) for x in learned), round(optimum.cost, 4), *np.round(optimum.mu, 3).tolist()])
    ok = near_enough(results)
    figures = {"relative": [round(r, 4) for r, _ in results], "absolute": [round(a, 4) for _, a in results]}
    return {"tests": problem.schema.n_tests, "asked": asked, **figures, "ok": ok, "seconds": seconds}


def table(results: list[rows.Row]) -> str:
    lines = head("what | seed | tests | largest regret | seconds | ")
    for r in sorted(results, key=lambda r: (r["what"], r["seed"])):
        far = [0 if a <= ABSOLUTE else x for x, a in zip(r["relative"], r["absolute"], strict=True)]
        worst = int(np.argmax(far)) if far else None
        cell = "" if worst is None else f"{r['relative'][worst]:.4f} ({r['absolute'][worst]:.4f} absolute)"
        lines.append(line(r["what"], r["seed"], r["tests"], cell, r["seconds"], "" if r["ok"] else "too far"))
    for what in WHAT:
        of = [r for r in results if r["what"] == what]
        lines.append(f"\n- {what}: {sum(r['ok'] for r in of)} of {len(of)} problems near enough everywhere")
    return "\n".join(lines)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--what", nargs="+", choices=WHAT, default=[*WHAT])
    parser.add_argument("--seeds", default="0:20", help="first:last+1")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "promises.jsonl")
    options = parser.parse_args()
    jobs = [{"what": what, "seed": seed} for seed in range(*map(int, options.seeds.split(":"))) for what in options.what]
    for row in rows.fill(options.out, jobs, one, options.processes):
        print(row["what"], row["seed"], row["relative"], "" if row["ok"] else "TOO FAR", flush=True)
    text = table(rows.read(options.out))
    options.out.with_suffix(".md").write_text(f"Made by `./dev sh python -m benchmarks.known_optima.promises`.\n\n{text}\n")
    print(text)


if __name__ == "__main__":
    main()
