"""One training per small problem, of the family or the stack, against exact optima at 10 tradeoffs and 10 hard budgets.

    ./dev sh python -m benchmarks.known_optima.family [--algorithm family] [--fresh] [--seeds 0:20] [--processes 2]

Policies are judged on the rows that they are learned from, against the optimum there. With --fresh there are other problems of
the same kinds, learned from 4,000 of 200,000 rows and judged on all, against the optimum there: who learns chance patterns of his
rows gains nothing by it. Rows are appended to family.jsonl, stack.jsonl or stack_fresh.jsonl as they finish; what is there is not
run again. Tables are written beside them.
"""

from __future__ import annotations

import time
from fractions import Fraction
from pathlib import Path

import numpy as np

from askwise.core.budget import Budget, HardBudget, Tradeoff
from askwise.core.policy import decision_values
from askwise.core.problem import Problem
from askwise.evaluation import Report
from askwise.facade import Model
from askwise.family.conditions import Scale
from askwise.family.config import FamilyConfig
from askwise.methods import exact
from askwise.model.learn import learn
from benchmarks import rows
from benchmarks.known_optima.small_problems import counted, small_problem
from benchmarks.script import arguments, head

HERE = Path(__file__).parent
CONFIG = FamilyConfig(
    max_steps=6_000, width=64, prefix_batch=128, parallel_cases=512, averaging=0.995, value_rate=3e-3, max_tests=8
)
LEARNED, FRESH = 4_000, 200_000  # rows that are learned from, and rows in all
RELATIVE, ABSOLUTE = 0.05, 0.004  # regret that is near enough
HEAD = """Made by `./dev sh python -m benchmarks.known_optima.family --algorithm {algorithm}`: one training per problem. Regret is
(learned - optimum) / (best without spending - optimum), the largest over 10 tradeoffs and over 10 hard budgets. Near enough is at
most 0.05, or 0.004 absolute where hardly anything can be gained.
"""


def one(seed: int, algorithm: str = "family", fresh: bool = False) -> rows.Row:
    """Trains on the problem's rows, which are also its validation rows: the distribution is known, only the optimum is not. The
    family gets them twice, since it halves them."""
    small = small_problem(seed, FRESH if fresh else LEARNED)
    problem, began = small.problem.take(np.arange(LEARNED)), time.monotonic()
    model = fitted(problem, algorithm, seed)
    seconds = time.monotonic() - began
    problem = counted(small.problem) if fresh else problem
    scale, costs = Scale.of(problem), problem.schema.costs
    nothing = float(exact.Exact(problem).nothing().loss)
    budgets: dict[str, list[Budget]] = {
        "tradeoff": [Tradeoff(float(lam)) for lam in np.geomspace(20 * scale.low, 0.7 * scale.high, 10)],
        "hard": [HardBudget(Fraction(int(costs.total * share)) * costs.smallest_unit) for share in np.linspace(0.1, 1, 10)],
    }
    row: rows.Row = {"kind": small.kind, "tests": problem.schema.n_tests, "seconds": round(seconds, 1)}
    for name, group in budgets.items():
        results = [regret_of(model, problem, budget, nothing) for budget in group]
        row[name] = [round(relative, 4) for relative, _ in results]
        row[f"{name}_absolute"] = [round(absolute, 4) for _, absolute in results]
        row[f"{name}_ok"] = near_enough(results)
    row["ok"] = row["tradeoff_ok"] and row["hard_ok"]
    return row


def near_enough(results: list[tuple[float, float]]) -> bool:
    """Whether all regrets, relative and absolute, are."""
    return all(relative <= RELATIVE or absolute <= ABSOLUTE for relative, absolute in results)


def fitted(problem: Problem, algorithm: str, seed: int) -> Model:
    """A model of one training."""
    held_out = problem.take(np.repeat(np.arange(len(problem)), 2)) if algorithm == "family" else problem
    learned = learn(algorithm, problem, held_out, Budget(), CONFIG if algorithm == "family" else None, seed, 1)
    result = learned.result
    return Model(
        problem.schema,
        None,  # type: ignore[arg-type]
        problem.loss,
        decision_values(problem),
        result.points,
        Budget(),
        Budget(),
        (),
        seed,
        "",
        learned.facts,
        family=result.shared,
        targeted=tuple(result.targeted),
    )


def regret_of(model: Model, problem: Problem, budget: Budget, nothing: float) -> tuple[float, float]:
    """Of what one gets who asks for this budget."""
    lam = budget.lam or 0.0
    optimum = exact.solve(problem, budget)
    best = float(optimum.loss) + lam * float(optimum.cost)
    report = Report(problem, model.at(budget).rollout(problem))
    absolute = report.loss + lam * report.cost - best
    return (absolute / (nothing - best) if nothing - best > 1e-9 else absolute), absolute


def table(results: list[rows.Row]) -> str:
    lines = head("seed | kind | tests | largest regret over tradeoffs | over hard budgets | seconds |")
    for r in sorted(results, key=lambda r: r["seed"]):
        cells = []
        for name in ("tradeoff", "hard"):
            worst = int(np.argmax([0 if a <= 0.004 else x for x, a in zip(r[name], r[f"{name}_absolute"], strict=True)]))
            cells.append(f"{r[name][worst]:.4f} ({r[f'{name}_absolute'][worst]:.4f} absolute)")
        lines.append(
            f"| {r['seed']} | {r['kind']} | {r['tests']} | {cells[0]} | {cells[1]} | {r['seconds']} | "
            f"{'' if r['ok'] else 'too far'} |"
        )
    for name, words in (("tradeoff_ok", "tradeoffs"), ("hard_ok", "hard budgets"), ("ok", "both")):
        lines.append(f"\n- {words}: {sum(r[name] for r in results)} of {len(results)} problems near enough everywhere")
    return "\n".join(lines)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", default="0:20", help="first:last+1")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--algorithm", choices=["family", "stack"], default="family")
    parser.add_argument("--fresh", action="store_true", help="judge on rows that are not learned from")
    parser.add_argument("--out", type=Path, help="default: the name of the algorithm")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    out = options.out or HERE / f"{options.algorithm}{'_fresh' if options.fresh else ''}.jsonl"
    how = {} if options.algorithm == "family" else {"algorithm": options.algorithm}
    how |= {"fresh": True} if options.fresh else {}
    for row in rows.fill(out, [{"seed": seed, **how} for seed in range(first, last)], one, options.processes):
        print(
            f"seed {row['seed']:2} {row['kind']} tradeoff {max(row['tradeoff']):.4f} hard {max(row['hard']):.4f} "
            f"{'' if row['ok'] else 'TOO FAR'}",
            flush=True,
        )
    text = table(rows.read(out))
    command = f"{options.algorithm} --fresh" if options.fresh else options.algorithm
    out.with_suffix(".md").write_text(f"{HEAD.format(algorithm=command)}\n{text}\n")
    print(text)


if __name__ == "__main__":
    main()
