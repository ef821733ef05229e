"""The main job: train on the built-in thyroid data, show what each amount of money buys, save the run."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from askwise.core.budget import AverageBudget, Budget
from askwise.core.config import TrainConfig
from askwise.errors import AskwiseError

if TYPE_CHECKING:
    from askwise.data.prepare import Split
    from askwise.methods.paper import Record, Run

# The paper's preset for its smaller tables, made to fit into a minute.
CONFIG = TrainConfig.paper("miniboone").scaled(size=0.04, time=0.1, window_epochs=0.5, lr_start=3e-4, price_rate=0.05)


class Point(NamedTuple):
    """A policy that some amount of money would choose, on test rows."""

    cost: float
    accuracy: float
    balanced: float


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="askwise", description=__doc__)
    parser.add_argument("--average-budget", default="15", metavar="B", help="dollars per case on average (default 15)")
    parser.add_argument("--seconds", type=float, default=60, help="time for training (default 60)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("out"), help="folder for what is made (default out)")
    given = parser.parse_args(argv)
    try:
        budget = AverageBudget(given.average_budget)
        work(budget, given.seconds, given.seed, given.out)
    except AskwiseError as error:
        print(f"askwise: {error}", file=sys.stderr)
        return 2
    return 0


def work(budget: Budget, seconds: float, seed: int, out: Path) -> None:
    """Trains, then shows and saves."""
    from askwise.data.named import load
    from askwise.evaluate import evaluate
    from askwise.methods import paper
    from askwise.store import write_state

    out.mkdir(parents=True, exist_ok=True)
    data = load("thyroid", class_weight="balanced")
    schema = data.train.schema
    print(f"thyroid: {len(data.train)} cases to learn from, {schema.n_tests} tests, "
          f"{schema.prices.money(schema.prices.total):.2f} dollars for all of them; {budget}")  # fmt: skip

    def watch(record: Record) -> None:
        if record.step % (5 * CONFIG.epoch) == 0:
            print(f"  step {record.step:5}  lambda {record.lam:.4f}  cost {record.train.cost:6.2f}  "
                  f"validation loss {record.validation.loss:.3f}", flush=True)  # fmt: skip

    run = paper.run(data.train, data.validation, budget, CONFIG, seed, time_limit=seconds, watch=watch,
                    save=lambda state: write_state(out / "thyroid.state", *state))  # fmt: skip
    print(f"trained for {run.seconds:.0f} s ({run.stopped})\n")

    points = frontier(run, data)
    print("what money buys (policies on the validation frontier, measured on test cases):")
    print("   cost  accuracy  balanced accuracy")
    for point in points:
        print(f"{point.cost:7.2f}  {point.accuracy:8.3f}  {point.balanced:8.3f}")
    report = evaluate(run.policy, data.test, budget)
    print(f"\nat {budget}: mean cost {report.cost:.2f}, accuracy {report.accuracy:.3f}, "
          f"balanced accuracy {report.balanced_accuracy:.3f} on {len(data.test)} test cases")  # fmt: skip
    often = sorted(((share, test) for test, share in report.bought.items() if share >= 0.01), reverse=True)
    print("bought: " + ", ".join(f"{test} {share:.0%}" for share, test in often))
    draw(points, Point(report.cost, report.accuracy, report.balanced_accuracy), budget, out / "thyroid.svg")
    print(f"\nsaved: {out / 'thyroid.state'} (the run with its networks), {out / 'thyroid.svg'} (the curve)")


def frontier(run: Run, data: Split) -> list[Point]:
    """Every kept policy on the test rows, by cost."""
    from askwise.core.policy import Policy
    from askwise.core.train import policy_of
    from askwise.evaluate import evaluate
    from askwise.methods.paper import decide_at_once

    policies: list[Policy] = [decide_at_once(data.train)]
    policies += [policy_of(weights, data.train.schema, CONFIG) for weights in run.history.weights.values()]
    reports = [evaluate(policy, data.test, Budget()) for policy in policies]
    return sorted(Point(r.cost, r.accuracy, r.balanced_accuracy) for r in reports)


def draw(points: list[Point], chosen: Point, budget: Budget, path: Path) -> None:
    """The curve as a picture."""
    try:
        import matplotlib
    except ImportError:
        return
    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    figure, axis = plt.subplots(figsize=(6, 4), layout="constrained")
    axis.plot([p.cost for p in points], [p.balanced for p in points], marker="o", label="policies on the frontier")
    axis.plot(chosen.cost, chosen.balanced, marker="*", markersize=14, linestyle="", label=str(budget))
    axis.set_xlabel("mean cost per case (dollars)")
    axis.set_ylabel("balanced accuracy on test cases")
    axis.grid(alpha=0.3)
    axis.legend()
    figure.savefig(path)
    plt.close(figure)


if __name__ == "__main__":
    sys.exit(main())
