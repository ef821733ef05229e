"""Does each comparator do what its authors report, at least in shape?

    ./dev sh python -m benchmarks.comparators.run [--claims ...] [--seeds ...] [--minutes 20] [--threads 1]

Each claim has a measure and a bar that it must reach, see `CLAIMS`. One row per claim and seed is appended to results.jsonl as it
finishes, each from a process of its own; what is there is not run again. The table goes to results.md. `--minutes` is for each
training that is long (gdfs on mnist, opportunistic and adapt-gbrt); the others take a minute or two. Data comes from the folder
named by ASKWISE_DATA.
"""

from __future__ import annotations

import copy
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from askwise import methods
from askwise.bench.run import commit
from askwise.components.cost_trees import LazyTrees
from askwise.components.prefixes import decide
from askwise.components.subset_classifier import Picking
from askwise.core.arrays import Floats
from askwise.core.budget import HardBudget
from askwise.core.cases import State
from askwise.core.episode import measure
from askwise.core.policy import Policy, decide_at_once
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.core.schema import Schema
from askwise.datasets.named import load
from askwise.frontier.choice import best_for
from askwise.frontier.hull import hull
from askwise.frontier.metric import curve
from askwise.methods import adapt_gbrt, budget_prune, gdfs, opportunistic
from askwise.methods.exact import Exact
from askwise.methods.random import Lots
from askwise.tables.splits import Split
from benchmarks import rows
from benchmarks.known_optima.small_problems import small_problem
from benchmarks.script import arguments, head, line

HERE = Path(__file__).parent
FEW = 12  # trees of a forest that is pruned, or used as it is


def area(policies: Sequence[Policy], parts: Split) -> float:
    """The paper's metric, of accuracies."""
    results = [
        [measure(p, policy, None) for policy in (decide_at_once(parts.train), *policies)] for p in (parts.validation, parts.test)
    ]
    prior = results[0][0].accuracy, results[1][0].accuracy
    points = [([m.cost for m in of], [m.accuracy for m in of]) for of in results]
    costs = parts.train.schema.costs
    return curve(points[0], points[1], prior, float(costs.money(costs.total))).area


# ------------------------------------------------------------------ budget-prune


def pruning(seed: int, seconds: float, threads: int) -> rows.Row:
    """A random forest, pruned at many tradeoffs, against the same forest with fewer trees, which is how one gets cheaper without
    pruning; accuracy on test rows at equal cost, averaged over the costs of the pruned ones."""
    parts = load("miniboone_tiny", seed)
    train, test = parts.train, parts.test.take(some_rows(len(parts.test), 5_000, 0))
    every = np.arange(len(train.schema.columns))
    grown = budget_prune.forest(train, every, aware=False, seconds=600, seed=seed, most=FEW)
    whole = grown.policy(train, grown.trees.column >= 0)
    fewer = [decide_at_once(train), *(_first_trees(whole, n) for n in range(1, FEW + 1))]
    cost, right = np.array([[m.cost, m.accuracy] for m in (measure(test, policy, None) for policy in fewer)]).T
    order = np.argsort(cost)
    best = np.maximum.accumulate(right[order])
    pruned = [measure(test, grown.policy(train, s.splits), None) for s in budget_prune.pruned_at_lambdas(train, grown, seed)]
    lead = [m.accuracy - float(np.interp(m.cost, cost[order], best)) for m in pruned if m.cost > 0]
    return {
        "measure": float(np.mean(lead)),
        "largest": max(lead),
        "pruned": [[m.cost, m.accuracy] for m in pruned],
        "unpruned": np.column_stack([cost, right]).tolist(),
    }


def _first_trees(whole: LazyTrees, n: int) -> LazyTrees:
    return replace(whole, trees=replace(whole.trees, roots=whole.trees.roots[:n]))


# ------------------------------------------------------------------ adapt-gbrt


def gate(seed: int, seconds: float, threads: int) -> rows.Row:
    """How much more often than the cheap model the expensive one is right: on the cases that are sent on, less on those kept.
    Over all gates that send between 5 and 95 % on, whether or not they lie on the hull: here the lead of the expensive model is
    small and its cost is that of all tests."""
    parts = load("miniboone_tiny", seed)
    test = parts.test.take(some_rows(len(parts.test), 10_000, 0))
    candidates = adapt_gbrt.candidates(parts.train, parts.validation, seconds=seconds, seed=seed, threads=threads)
    leads = []
    for policy in candidates:
        if isinstance(policy, adapt_gbrt.Gated):
            on, lead = who_is_sent_on(policy, test)
            if 0.05 < on.mean() < 0.95:
                leads.append([float(on.mean()), float(lead[on].mean()), float(lead[~on].mean())])
    sent, kept = (float(np.mean([x[i] for x in leads])) for i in (1, 2)) if leads else (0.0, 0.0)
    return {"measure": sent - kept, "sent": sent, "kept": kept, "gates": leads}


def who_is_sent_on(policy: adapt_gbrt.Gated, test: Problem) -> tuple[Any, Any]:
    """N: whether the gate sends a complete row on, and 1, 0 or -1: the expensive model is right and the cheap one wrong, both or
    neither is, or the reverse."""
    on = policy.gate.total(policy.gate.leaves(test.X))[:, 0] > 0
    cheap = adapt_gbrt.cheap_probabilities(policy.cheap.total(policy.cheap.leaves(test.X)))
    right = [decide(p, policy.loss) == test.y for p in (policy.expensive(test.X), adapt_gbrt.unweighted(cheap, policy.scales))]
    return on, right[0].astype(float) - right[1]


# ------------------------------------------------------------------ opportunistic


@dataclass(frozen=True, eq=False)
class AnyOrder(opportunistic.Opportunistic):
    """The same class probabilities, but tests in a random order of each case's own."""

    def choose(self, state: State, values: Floats) -> Any:
        return super().choose(state, Lots(0)(state).astype(np.float32))


def order(seed: int, seconds: float, threads: int) -> rows.Row:
    """The area of the method less that of the same networks with tests in random order; beside it the method `random`."""
    parts = load("digits", seed)
    ours = opportunistic.points(parts.train, parts.validation, seconds=seconds, seed=seed, threads=threads)
    lots = [AnyOrder(**vars(policy)) for policy in ours]  # type: ignore[arg-type]
    by_itself = methods.get("random").points(parts.train, parts.validation, seconds=seconds, seed=seed, threads=threads)
    areas = {name: area(of, parts) for name, of in (("area", ours), ("any order", lots), ("random", by_itself))}
    return {"measure": areas["area"] - max(areas["any order"], areas["random"]), **areas}


# ------------------------------------------------------------------ gdfs


def pixels(seed: int, seconds: float, threads: int) -> rows.Row:
    """Accuracy on mnist's test rows with so many pixels; networks 512 wide."""
    parts = load("mnist", seed)
    points = gdfs.points(parts.train, parts.validation, seconds=seconds, seed=seed, threads=threads)
    last = [policy for policy in points if isinstance(policy, Picking)][-1]
    at = {n: measure(parts.test, replace(last, most=n), None).accuracy for n in (10, 20, 50)}
    return {"measure": min(at[10] - 0.85, at[20] - 0.93), "at 10": at[10], "at 20": at[20], "at 50": at[50]}


# ------------------------------------------------------------------ aaco


def pair(n: int, seed: int) -> Problem:
    """d and e tell the class together and nothing alone. Each of a, b and c is right eight times in ten, the others are noise."""
    rng = np.random.default_rng([seed, n])
    X = rng.choice([-1.0, 1.0], size=(n, 8))
    truth = X[:, 3] * X[:, 4]
    X[:, :3] = np.where(rng.random((n, 3)) < 0.8, truth[:, None], -truth[:, None])
    return Problem.build(Schema.build(list("abcdefgh"), [0, 1]), X, (truth > 0).astype(int))


def xor(seed: int, seconds: float, threads: int, steps: int = 1_500) -> rows.Row:
    """Accuracy of aaco when two of eight tests may be bought, less that of its greedy twin, which has the same classifier and the
    same neighbours but plans of one test: it begins with a test that tells something by itself, and then it is too late. Beside
    it gdfs and dime, after as many steps. They need not fail: a soft pick shows gdfs both tests of the pair at once."""
    train, validation, test = (pair(n, seed) for n in (800, 200, 400))
    budget = HardBudget(2)
    planned = methods.get("aaco").points(train, validation, seconds=seconds, seed=seed, threads=threads, steps=steps)
    short = copy.copy(planned[0].reference_rows)
    short.candidates, short.kept = short.candidates[: test.schema.n_tests + 1], OrderedDict()
    greedy = [replace(policy, reference_rows=short) for policy in planned]
    policies = {"aaco": best_for(planned, validation, budget, seed), "greedy": best_for(greedy, validation, budget, seed)}
    for name in ("gdfs", "dime"):
        policies[name] = methods.get(name).fit(train, validation, budget, seconds=seconds, seed=seed, steps=steps)
    cap = budget.cap(test.schema.costs)
    results = {name: measure(test, policy, cap).accuracy for name, policy in policies.items()}
    return {"measure": results["aaco"] - results["greedy"], **results}


# ------------------------------------------------------------------ exact


def bound(seed: int, seconds: float, threads: int, limit: float = 5.0) -> rows.Row:
    """The least distance of any point of any method above the exact frontier, in loss, on the rows that all have learned from.
    Beside it the mean distance of each method's own hull, in parts of what can be gained."""
    small = small_problem(seed, rows=1_000)
    problem = small.problem
    corners = Exact(problem).corners()
    cost, loss = (np.array([float(getattr(c, name)) for c in corners]) for name in ("cost", "loss"))
    least, of = np.inf, {}
    for name in methods.names():
        policies = methods.get(name).points(problem, problem, seconds=limit, seed=seed, threads=threads)
        results = [measure(problem, policy, None) for policy in policies]
        least = min(least, min(m.loss - float(np.interp(m.cost, cost, loss)) for m in results))
        of[name] = _above(cost, loss, sorted((m.cost, m.loss) for m in results))
    return {"measure": least + 1e-9, "kind": small.kind, "above": of}


def _above(cost: Any, loss: Any, results: list[tuple[float, float]]) -> float:
    """The mean over costs of how far the lower hull of the points found lies above the exact frontier."""
    on = [results[i] for i in hull([c for c, _ in results], [-x for _, x in results]).tolist()]
    grid = np.linspace(0, max(cost[-1], 1e-9), 101)
    ours = np.interp(grid, [c for c, _ in on], [x for _, x in on])
    gained = np.maximum(loss[0] - loss[-1], 1e-12)
    return float((ours - np.interp(grid, cost, loss)).mean() / gained)


@dataclass(frozen=True)
class Claim:
    says: str
    call: Callable[..., rows.Row]
    bar: float  # the measure must exceed it
    seeds: tuple[int, ...]


CLAIMS = {
    "budget-prune": Claim("pruned, a forest is more accurate than unpruned at equal cost", pruning, 0.0, (0, 1, 2)),
    "adapt-gbrt": Claim("the expensive model's lead is larger on cases sent on than on those kept", gate, 0.0, (0, 1, 2)),
    "opportunistic": Claim("beats random order by 0.03 area (digits)", order, 0.03, (0, 1, 2)),
    "gdfs": Claim("mnist: 85 % at 10 pixels, 93 % at 20", pixels, 0.0, (0,)),
    "aaco": Claim("solves the pair problem, where its greedy twin fails", xor, 0.1, (0, 1, 2)),
    "exact": Claim("no point of any method lies below the exact frontier", bound, 0.0, (0, 1, 2, 3, 4)),
}


def one(claim: str, seed: int, minutes: float, threads: int = 1) -> rows.Row:
    torch.set_num_threads(threads)
    began = time.monotonic()
    results = CLAIMS[claim].call(seed, 60 * minutes, threads)
    took = round((time.monotonic() - began) / 60, 2)
    holds = bool(results["measure"] > CLAIMS[claim].bar)
    return {**results, "holds": holds, "minutes_taken": took, "threads": threads, "commit": commit()}


SHOWN = ("pruned", "unpruned", "gates", "above")  # too long for the table


def table(results: list[rows.Row]) -> str:
    lines = head("method | claim | seed | measure | more than | | minutes |")
    for name, claim in CLAIMS.items():
        for r in sorted((r for r in results if r["claim"] == name), key=lambda r: r["seed"]):
            inner = ("claim", "seed", "minutes", "measure", "holds", "minutes_taken", "threads", "commit", *SHOWN)
            more = ", ".join(f"{k} {v:.3f}" if isinstance(v, float) else f"{k} {v}" for k, v in r.items() if k not in inner)
            cells = (
                name,
                claim.says,
                r["seed"],
                f"{r['measure']:.4f}",
                claim.bar,
                more,
                r["minutes_taken"],
                "holds" if r["holds"] else "DOES NOT HOLD",
            )
            lines.append(line(*cells))
    above = [r["above"] for r in results if r["claim"] == "exact"]
    if above:
        lines += [
            "",
            "How far each method's frontier lies above the exact one on the rows it learned from, in parts of what can "
            f"be gained; mean over {len(above)} small problems, after seconds of training, so no ranking:",
            "",
        ]
        mean = {name: float(np.mean([a[name] for a in above if name in a])) for name in above[0]}
        lines += [f"- {name} {value:.3f}" for name, value in sorted(mean.items(), key=lambda pair: pair[1])]
    return "\n".join(lines)


def main(words: Sequence[str] | None = None) -> None:
    parser = arguments(__doc__)
    parser.add_argument("--claims", nargs="+", default=list(CLAIMS), choices=list(CLAIMS), metavar="NAME")
    parser.add_argument("--seeds", nargs="+", type=int, help="default: those of each claim")
    parser.add_argument("--minutes", type=float, default=20, help="for each long training")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=HERE / "results.jsonl")
    options = parser.parse_args(words)
    options.out.parent.mkdir(parents=True, exist_ok=True)
    for name in options.claims:
        for seed in options.seeds or CLAIMS[name].seeds:
            job = {"claim": name, "seed": seed, "minutes": options.minutes}
            for row in rows.fill(options.out, [job], partial(one, threads=options.threads), 1):
                print(
                    f"{name} seed {seed}: {row['measure']:.4f}, bar {CLAIMS[name].bar}, "
                    f"{'holds' if row['holds'] else 'DOES NOT HOLD'}, {row['minutes_taken']:g} min",
                    flush=True,
                )
    words = "Made by `./dev sh python -m benchmarks.comparators.run`; what each measure is, is said there.\n\n"
    options.out.with_suffix(".md").write_text(words + table(rows.read(options.out)) + "\n")


if __name__ == "__main__":
    main()
