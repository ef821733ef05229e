"""Times a gradient step of the family, phase by phase, at the sizes of forest and of mnist: beside the matrix products that it
consists of, and beside another checkout.

    python -m benchmarks.speed.family_step --old CHECKOUT --precision bfloat16 --out benchmarks/speed/family_step.json

Rows are made: 100,000 of 10 numbers and 44 truths, 7 classes and 256 wide for forest; 20,100 of 784 numbers, 10 classes and 512
wide for mnist. The products are those that the step itself asks torch for, in its forward and backward passes, recorded by their
shapes and types and repeated on numbers that are already there: no activations, no optimiser, no draws. Step, products and
the other checkout take turns, one group of steps each, and who begins changes from round to round. A ratio is that of one round;
medians and quartiles over the rounds count. Times are those of the processor, on one thread.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.utils._python_dispatch import TorchDispatchMode

from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.family.config import FamilyConfig
from askwise.family.train import FamilyTrainer, Phase
from benchmarks.script import arguments, publish
from benchmarks.speed.checkouts import ROOT, Checkout, answer

STEPS = {"forest": 10, "mnist": 4}  # timed at a time; an even number, since values are learned in every second step of a phase
PHASES = tuple(phase.name.lower() for phase in Phase)
WORK = tuple(f"{size}/{phase}" for size in STEPS for phase in PHASES)


# ---------------------------------------------------------------------- the step


@cache
def problem_like(size: str) -> Problem:
    """Rows of that size, whose class some of the columns tell."""
    rng = np.random.default_rng(0)
    if size == "forest":
        X = np.concatenate([rng.normal(size=(100_000, 10)), rng.random((100_000, 44)) < 0.1], 1, dtype=np.float32)
        K, told = 7, X[:, :10]
    else:
        X = rng.normal(size=(20_100, 784)).astype(np.float32)
        K, told = 10, X[:, 300:340]
    y = (told @ rng.normal(size=(told.shape[1], K))).argmax(1)
    return Problem.build(Schema.build([f"x{i}" for i in range(X.shape[1])], list(range(K))), X, y)


def trainer(size: str, precision: str) -> FamilyTrainer:
    """As training would begin, with the encoding that forest takes."""
    problem = problem_like(size)
    config = FamilyConfig.for_size(len(problem), problem.schema.n_tests).but(
        bins=0, encoding_trial_steps=0, overfit_check_steps=10**6
    )
    if "precision" in FamilyConfig.__dataclass_fields__:  # which an older checkout does not have
        config = config.but(precision=precision)
    held_out = problem.take(slice(0, 5_000))
    return FamilyTrainer(problem, held_out, np.arange(problem.schema.n_tests), config)


def in_phase(ready: FamilyTrainer, phase: Phase) -> None:
    """Goes on to a phase, and a few steps into it."""
    while ready.phase < phase:
        ready.done = ready._end()
        ready.advance()
    for _ in range(8):
        ready.advance()
    if ready.step % 2:
        ready.advance()


class Products(TorchDispatchMode):
    """Notes the shapes and types of all matrix products that are carried out within it."""

    NAMES = ("mm", "addmm", "bmm", "linear", "_mkl_linear")

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[tuple[Any, list[Any]]] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket.__name__ in self.NAMES:
            self.calls.append((func, [_like(a) if isinstance(a, torch.Tensor) else a for a in args]))
        return func(*args, **(kwargs or {}))

    def repeated(self) -> Callable[[], None]:
        @torch.no_grad()
        def once() -> None:
            for func, args in self.calls:
                func(*args)

        return once


def _like(tensor: torch.Tensor) -> torch.Tensor:
    """Other numbers in the same shape, order and type."""
    like = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    return like.normal_() if tensor.is_floating_point() else like


def works(sizes: list[str], precision: str) -> dict[str, Callable[[], None]]:
    """By name, a group of steps; and under `name products` the products of it."""
    torch.set_num_threads(1)
    ready: dict[str, Callable[[], None]] = {}
    for size in sizes:
        for phase in Phase:
            t = trainer(size, precision)
            in_phase(t, phase)
            with Products() as products:
                for _ in range(STEPS[size]):
                    t.advance()

            def steps(t: FamilyTrainer = t, n: int = STEPS[size]) -> None:
                for _ in range(n):
                    t.advance()

            ready[f"{size}/{phase.name.lower()}"] = steps
            ready[f"{size}/{phase.name.lower()} products"] = products.repeated()
    return ready


# ---------------------------------------------------------------------- in turns


def in_turns(sides: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """Seconds of each side, round by round."""
    seconds: dict[str, list[float]] = {name: [] for name in sides}
    for turn in range(rounds):
        for name in sorted(sides, reverse=turn % 2 == 1):
            seconds[name].append(sides[name]())
    return seconds


def quartiles(values: list[float], digits: int = 3) -> list[float]:
    """First quartile, median, third."""
    return [round(value, digits) for value in statistics.quantiles(values, n=4)]


def summary(seconds: dict[str, list[float]], steps: int) -> dict[str, Any]:
    """Milliseconds a step, the ratio of step and products, and how much faster it is than the other checkout."""
    told: dict[str, Any] = {f"{name}_ms": quartiles([1e3 * s / steps for s in each]) for name, each in seconds.items()}
    step = seconds["step"]
    told["step_to_products"] = quartiles([a / b for a, b in zip(step, seconds["products"], strict=True)])
    if "old" in seconds:
        told["old_step_to_products"] = quartiles([a / b for a, b in zip(seconds["old"], seconds["old_products"], strict=True)])
        told["times_as_fast_as_old"] = quartiles([b / a for a, b in zip(step, seconds["old"], strict=True)])
    return told


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--old", type=Path, help="another checkout to compare with")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--sizes", nargs="+", choices=[*STEPS], default=[*STEPS])
    parser.add_argument("--precision", default="float32", help="of this checkout; an older one may know only float32")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        answer(works(options.sizes, options.precision))
        return
    asked = ["--child", "--sizes", *options.sizes, "--precision"]
    new = Checkout(ROOT, __file__, *asked, options.precision)
    old = None if options.old is None else Checkout(options.old, __file__, *asked, "float32")
    result: dict[str, Any] = {"precision": options.precision, "torch": torch.__version__, "rounds": options.rounds}
    for name in (f"{size}/{phase}" for size in options.sizes for phase in PHASES):
        sides = {"step": lambda n=name: new.seconds(n), "products": lambda n=name: new.seconds(f"{n} products")}
        if old is not None:
            sides |= {"old": lambda n=name: old.seconds(n), "old_products": lambda n=name: old.seconds(f"{n} products")}
        result[name] = summary(in_turns(sides, options.rounds), STEPS[name.split("/")[0]])
        print(name, result[name], file=sys.stderr, flush=True)
    for side in (new, old):
        if side is not None:
            side.close()
    publish(result, options.out)


if __name__ == "__main__":
    main()
