"""Is one checkout of askwise as fast as another?

    python -m benchmarks.speed.compare OLD NEW [--rounds 15] [--out benchmarks/speed/compare.json]

Each checkout has a process that stays. The two take turns, one call each, and who begins changes from round to round, so that a
busy machine slows both. A ratio is that of NEW to OLD in one round; the median over the rounds counts. Timed are fits of a fixed
number of steps, decisions for a table and for one case, steps of a session, and start-up as whole processes. Only what both
checkouts offer to everybody is used, so that they may differ in everything else. Times are those of the processor, on one
thread.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.script import arguments, publish
from benchmarks.speed.checkouts import Checkout, answer

ROWS, TESTS = 2_000, 20
WORK = ("family_training", "paper_training", "predict", "predict_one_case", "session_steps")
START = {"import": ["-c", "import askwise"], "help": ["-m", "askwise", "--help"]}
WORK_LIMIT, START_LIMIT = 1.03, 1.0  # of the median ratio, to two digits


# ---------------------------------------------------------------------- in the process of a checkout


def works() -> dict[str, Callable[[], object]]:
    """What is timed, ready to be called."""
    import pandas as pd
    import torch

    from askwise import AverageBudget, CostlyClassifier, FamilyConfig, TrainConfig

    torch.set_num_threads(1)
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(ROWS, TESTS)), columns=[f"x{i}" for i in range(TESTS)])
    y = (X.iloc[:, :6].sum(axis=1) + rng.normal(size=ROWS) > 0).astype(int).to_numpy()
    many = pd.concat([X] * 10, ignore_index=True)

    def fit(algorithm: str, steps: int) -> Any:
        config: Any = FamilyConfig(max_steps=steps, width=64)
        if algorithm == "paper":
            config = replace(TrainConfig.for_size(ROWS, TESTS), epoch=100, max_epochs=steps / 100, pretrain_steps=100)
        return CostlyClassifier(algorithm=algorithm, config=config, random_state=0).fit(X, y).model_

    model = fit("family", 200).at(AverageBudget(TESTS / 2))
    rows = [X.iloc[[i]] for i in range(50)]

    def sessions() -> None:
        for row in rows:
            session = model.session()
            while (step := session.next()).test is not None:
                session.tell(step.test, float(row[step.test].iloc[0]), outside=True)

    return {
        "family_training": lambda: fit("family", 300),
        "paper_training": lambda: fit("paper", 100),
        "predict": lambda: model.predict(many),
        "predict_one_case": lambda: [model.predict(row) for row in rows],
        "session_steps": sessions,
    }


# ---------------------------------------------------------------------- in turns


class Starting(Checkout):
    """It can also be started anew."""

    def seconds(self, name: str) -> float:
        """Of one work, or of one start."""
        if name in START:
            process = subprocess.Popen([sys.executable, *START[name]], env=self.environment, stdout=subprocess.DEVNULL)
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            assert process.returncode == 0
            return used.ru_utime + used.ru_stime
        return super().seconds(name)


def compared(old: Starting, new: Starting, rounds: int, names: list[str]) -> dict[str, Any]:
    """By name: seconds of both, and the ratio."""
    seconds: dict[str, list[tuple[float, float]]] = {name: [] for name in names}
    for name in START:
        old.seconds(name), new.seconds(name)  # files come into the cache
    for turn in range(rounds):
        for name, pairs in seconds.items():
            if turn % 2:
                after, before = new.seconds(name), old.seconds(name)
            else:
                before, after = old.seconds(name), new.seconds(name)
            pairs.append((before, after))
            print(f"round {turn + 1} of {rounds}, {name}: {after / before:.3f}", file=sys.stderr, flush=True)
    return {name: summary(pairs, START_LIMIT if name in START else WORK_LIMIT) for name, pairs in seconds.items()}


def summary(pairs: list[tuple[float, float]], limit: float) -> dict[str, Any]:
    before, after = zip(*pairs, strict=True)
    low, ratio, high = statistics.quantiles([new / old for old, new in pairs], n=4)
    return {
        "old_ms": round(1e3 * statistics.median(before), 2),
        "new_ms": round(1e3 * statistics.median(after), 2),
        "ratio": round(ratio, 3),
        "ratio_quartiles": [round(low, 3), round(high, 3)],
        "limit": limit,
        "kept": round(ratio, 2) <= limit,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, metavar="OLD NEW")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--only", nargs="+", choices=[*WORK, *START], default=[*WORK, *START])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        answer(works())
        return
    if len(options.checkouts) != 2:
        parser.error("name two checkouts")
    old, new = (Starting(folder, __file__, "--child") for folder in options.checkouts)
    result = compared(old, new, options.rounds, options.only)
    old.close()
    new.close()
    publish(result, options.out)


if __name__ == "__main__":
    main()
