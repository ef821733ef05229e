"""Trains the paper's algorithm for all figures, as experiments.toml says, and appends a row as each training finishes.

    ./dev sh python -m benchmarks.paper.runs [--only NAME ...] [--processes 1] [--hours H] [--settings paper] [--list]

What has a row is not run again. Each training is a process of one thread. It can be killed at any moment, and goes on from its
checkpoint when this is called again. NAME is that of a group or of a data set; with both kinds, it must be of both. Without
--settings it is the CPU preset, with `--settings paper` the paper's own, for those who have a GPU; their rows say so and are
never mixed.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

from askwise.bench.rows import Row, alone, append, read
from askwise.bench.task import Task
from benchmarks.paper.experiments import HERE, INTERRUPTED, SETTINGS, Training, differences, key, trainings
from benchmarks.script import arguments

SAVE_EVERY = 150.0  # seconds
ROWS = HERE / "results" / "rl.jsonl"
ENDED = (INTERRUPTED, -signal.SIGINT, -signal.SIGTERM)  # somebody wanted it so


def todo(listed: Sequence[Training], rows: Sequence[Row]) -> list[Training]:
    """Those that have no row yet, each once. A row of a preset that has changed since does not count."""
    done = {key(row, row["settings"]) for row in rows if row["status"] == "done"}
    by_key = {key(training.task.row, differences(training.task)): training for training in reversed(listed)}
    return [training for where, training in reversed(by_key.items()) if where not in done]


def picked(listed: Sequence[Training], names: set[str]) -> list[Training]:
    """Those of the named groups and data sets; where both are named, of both."""
    groups, sets = names & {t.name for t in listed}, names & {t.task.data for t in listed}
    return [t for t in listed if (not groups or t.name in groups) and (not sets or t.task.data in sets)]


def checkpoint_of(task: Task, out: Path) -> Path:
    folder = out.parent / "checkpoints"
    folder.mkdir(exist_ok=True)
    return folder / f"{hashlib.sha256(key(task.row, differences(task)).encode()).hexdigest()[:16]}.safetensors"


def trained(task: Task, out: Path, seconds: float | None = None, save_every: float = SAVE_EVERY) -> Row | None:
    """The row of a training; None if it was stopped from outside or time is over, so that it can go on later."""
    command = [sys.executable, "-m", "benchmarks.paper.train", str(checkpoint_of(task, out).resolve()), str(save_every)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    try:
        ended = subprocess.run(
            command,
            input=json.dumps(asdict(task)),
            capture_output=True,
            text=True,
            timeout=seconds,
            env=environment,
            cwd=HERE.parents[1],
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None
    if ended.returncode in ENDED:
        return None
    if ended.returncode:
        why = (ended.stderr.strip().splitlines() or ["no reason given"])[-1]
        return {**task.row, "settings": differences(task), "status": "failed", "why": f"it ended with {ended.returncode}: {why}"}
    return json.loads(ended.stdout.splitlines()[-1])


def fill(
    listed: Sequence[Training], out: Path, processes: int = 1, hours: float | None = None, save_every: float = SAVE_EVERY
) -> None:
    """Runs what has no row yet, in that order, until the time is over."""
    out.parent.mkdir(parents=True, exist_ok=True)
    end = None if hours is None else time.monotonic() + 3600 * hours
    writing, stop = threading.Lock(), threading.Event()

    def work(training: Training) -> None:
        left = None if end is None else end - time.monotonic()
        if stop.is_set() or (left is not None and left <= 0):
            return
        row = trained(training.task, out, left, save_every)
        if row is None:
            stop.set()
            return
        with writing:
            append(out, row)
            checkpoint_of(training.task, out).unlink(missing_ok=True)
            print(said(training, row), flush=True)

    with alone(out), ThreadPoolExecutor(processes) as pool:
        try:
            list(pool.map(work, todo(listed, read(out))))
        except KeyboardInterrupt:
            stop.set()


def said(training: Training, row: Row) -> str:
    """A line for the screen."""
    if row["status"] != "done":
        return f"{training.name}: {training.task}: {row['status']}, {row['why']}"
    return (
        f"{training.name}: {training.task}: cost {row['cost']:.2f}, score {row['score']:.4f}, {row['steps']} steps, "
        f"{row['cpu_seconds'] / 60:.1f} CPU minutes, {row['stopped']}{', ' + row['doubt'] if row['doubt'] else ''}"
    )


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", help="groups or data sets")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--hours", type=float, help="stop then")
    parser.add_argument("--settings", choices=SETTINGS, default="cpu")
    parser.add_argument("--list", action="store_true", help="show what has no row yet")
    parser.add_argument("--out", type=Path, default=ROWS)
    options = parser.parse_args()
    listed = trainings(options.settings)
    names = {name for training in listed for name in (training.name, training.task.data)}
    if unknown := set(options.only or ()) - names:
        parser.error(f"there is no {', '.join(sorted(unknown))}; there are {', '.join(sorted(names))}")
    listed = picked(listed, set(options.only or ()))
    if options.list:
        left = todo(listed, read(options.out))
        print(
            *(f"{training.name}: {training.task}" for training in left), f"{len(left)} of {len(todo(listed, []))} to do", sep="\n"
        )
    else:
        fill(listed, options.out, options.processes, options.hours)


if __name__ == "__main__":
    main()
