"""What Dask costs: a plan of 60 small tasks on a local cluster of two workers against the plain pool of two processes.

    ./dev sh python -m benchmarks.bench.speed [--rounds 3] [--seeds 20] [--steps 1500] [--out benchmarks/bench/speed.json]

Both run the whole command, in turns, so that a busy machine slows both: `askwise bench` with its start and, for `dask`, that of
the cluster. `running cluster` is the same with a cluster that was there before. Tasks learn for a fixed number of steps, so that
all do the same work. The ratio of the medians must be at most 1.15.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.script import arguments, publish

LIMIT = 1.15
PROCESSES = 2
DATA = ("wine", "breast_cancer", "heart")


def plan(folder: Path, seeds: int, steps: int) -> Path:
    path = folder / "plan.toml"
    path.write_text(
        f'name = "speed"\nminutes = 1\nseeds = {seeds}\ndata = {json.dumps(DATA)}\n'
        f'methods = [{{name = "random", options = {{steps = {steps}}}}}]\n'
    )
    return path


def seconds(path: Path, engine: str, tasks: int) -> float:
    """Of the whole command, on an empty file of rows."""
    out = path.with_suffix(".jsonl")
    out.unlink(missing_ok=True)
    began = time.perf_counter()
    command = [sys.executable, "-m", "askwise", "bench", str(path), "--processes", str(PROCESSES), "--engine", engine]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    took = time.perf_counter() - began
    done = [json.loads(line)["status"] for line in out.read_text().splitlines()]
    assert done == ["done"] * tasks, "a task was lost or failed"
    return took


def measured(rounds: int, seeds: int, steps: int) -> dict[str, Any]:
    from distributed import LocalCluster

    tasks, seconds_of = seeds * len(DATA), {"local": [], "dask": [], "running cluster": []}  # type: dict[str, list[float]]
    quiet: dict[str, Any] = {"dashboard_address": None, "silence_logs": 50}
    with tempfile.TemporaryDirectory() as folder:
        path = plan(Path(folder), seeds, steps)
        for turn in range(rounds):
            for name in list(seconds_of) if turn % 2 == 0 else list(seconds_of)[::-1]:
                if name == "running cluster":
                    with LocalCluster(n_workers=PROCESSES, threads_per_worker=1, processes=True, **quiet) as cluster:
                        engine = cluster.scheduler_address.replace("tcp://", "dask://")
                        seconds_of[name].append(seconds(path, engine, tasks))
                else:
                    seconds_of[name].append(seconds(path, name, tasks))
                print(f"round {turn}, {name}: {seconds_of[name][-1]:.1f} s", file=sys.stderr, flush=True)
    median = {name: statistics.median(of) for name, of in seconds_of.items()}
    ratio = {name: round(median[name] / median["local"], 3) for name in ("dask", "running cluster")}
    return {
        "tasks": tasks,
        "steps": steps,
        "seconds": {name: [round(s, 1) for s in of] for name, of in seconds_of.items()},
        "ratio": ratio,
        "limit": LIMIT,
        "kept": ratio["dask"] <= LIMIT,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=20, help="tasks for each of three data sets")
    parser.add_argument("--steps", type=int, default=1500, help="of learning in each task")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    result = measured(options.rounds, options.seeds, options.steps)
    publish(result, options.out)


if __name__ == "__main__":  # workers import this module again
    main()
