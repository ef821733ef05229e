"""Training beyond memory: `askwise fit` on Parquet files of up to 5,000,000 rows x 50 columns.

    ./dev sh python -m benchmarks.speed.large_fit [--time-limit 120] [--out benchmarks/speed/large_fit.json]

A table has 44 columns of numbers, four of words, one of whole numbers and one of truths, and three classes, the rarest with one
row in 500. Five columns have gaps that go with the class, the hardest case for memory; the largest table is fitted without any,
too. Each fit is a process of its own. Memory is what it holds beyond what it held with all libraries loaded, sampled 50 times a
second: `own` is its own, `file` are pages of files, which the system takes back where others need memory. A step is a gradient
step of the classifier on prefixes: 512 rows, drawn from all. Medians of steps are told on the clock and of computing, since other
work may share the cores; so are the seconds of `reading`, which is all that is done before the training.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.script import arguments, publish

COLUMNS = 50
PIECE = 100_000  # rows of a row group
LIMIT_MB = 2048
WARM = 0.1  # share of the steps that is not timed
# Nothing heavy is imported above, since a new process inherits the peak of the one that started it.


def make(path: Path, rows: int, gaps: bool) -> None:
    """Writes a table piece by piece. What lacks a value goes with the class, which is the hardest case for memory."""
    import numpy as np
    import pyarrow as pa
    from pyarrow import parquet

    rng, words = np.random.default_rng(0), np.array(["red", "green", "blue", "grey", "brown"])
    writer: Any = None
    for start in range(0, rows, PIECE):
        n = min(PIECE, rows - start)
        X = rng.standard_normal((n, 44), np.float32)
        codes = rng.integers(0, 5, (n, 4))
        score = X[:, :6].sum(1) + (codes[:, 0] == 1) * 2 + (X[:, 6] * X[:, 7] > 0)
        y = np.where(rng.random(n) < 0.002, "rare", np.where(score > 1, "ill", "well"))
        X[y == "rare", 8] += 3
        if gaps:
            for column in range(5):
                X[rng.random(n) < np.where(y == "ill", 0.1, 0.02), 10 + column] = np.nan
        columns: dict[str, Any] = {f"x{i}": X[:, i] for i in range(44)}
        columns |= {f"word{i}": words[codes[:, i]] for i in range(4)}
        columns |= {"whole": rng.integers(0, 100, n), "truth": X[:, 9] > 0, "y": y}
        table = pa.table(columns)
        writer = writer or parquet.ParquetWriter(path, table.schema)
        writer.write_table(table)
    writer.close()


def held() -> dict[str, float]:
    """Megabytes that this process holds: its own, and pages of files."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line)
    sizes = {name: int(status[name].split()[0]) / 1024 for name in ("RssAnon", "RssFile", "RssShmem")}
    return {"own": sizes["RssAnon"] + sizes["RssShmem"], "file": sizes["RssFile"]}


class Watch(threading.Thread):
    """Looks at what this process holds, until it is stopped."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.first, self.most, self.over = held(), {"own": 0.0, "file": 0.0, "together": 0.0}, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.02):
            now = {name: value - self.first[name] for name, value in held().items()}
            now["together"] = now["own"] + now["file"]
            self.most = {name: max(self.most[name], value) for name, value in now.items()}


def child(table: Path, limit: float) -> dict[str, Any]:
    """Fits, and tells what that took."""
    import lightgbm  # noqa: F401
    import matplotlib.figure  # noqa: F401
    import numpy as np
    import pandas  # noqa: F401
    import torch
    from pyarrow import parquet  # noqa: F401

    import askwise
    import askwise.family.run
    from askwise import cli, estimator
    from askwise.family.train import FamilyTrainer, Phase

    torch.set_num_threads(1)
    steps: list[tuple[int, float, float]] = []
    advance, learn, begun = FamilyTrainer.advance, estimator.learn, list[float]()

    def timed(self: FamilyTrainer) -> None:
        at, used = time.perf_counter(), time.thread_time()
        advance(self)
        steps.append((int(self.phase), time.perf_counter() - at, time.thread_time() - used))

    def learning(*settings: Any, **options: Any) -> Any:
        begun.extend([time.perf_counter(), time.process_time()])
        peak.update(before_training={name: round(value) for name, value in watch.most.items()})
        return learn(*settings, **options)

    FamilyTrainer.advance, estimator.learn = timed, learning  # type: ignore[method-assign]
    peak: dict[str, Any] = {}
    watch, model = Watch(), table.with_suffix(".askwise")
    watch.start()
    at, used = time.perf_counter(), time.process_time()
    code = cli.main(["fit", str(table), "--target", "y", "--time-limit", str(limit), "--quiet", "--out", str(model)])
    took = time.perf_counter() - at
    watch.over.set()
    watch.join()
    assert code == 0
    timed_steps = [step for step in steps if step[0] == Phase.PREFIXES][int(WARM * len(steps)) :]
    on_clock, computing = (float(np.median([step[i] for step in timed_steps])) for i in (1, 2))
    facts = askwise.load(model).facts
    return {
        "seconds_of_reading": round(begun[0] - at, 1),
        "of_computing": round(begun[1] - used, 1),
        "seconds_of_all": round(took, 1),
        "steps": len(steps),
        "steps_timed": len(timed_steps),
        "steps_per_second": round(1 / on_clock, 1),
        "steps_per_second_of_computing": round(1 / computing, 1),
        "rows_learned_from": facts["rows"][0],
        "rows_chosen_by": facts["rows"][1],
        "rows_drawn": facts.get("drawn"),
        "mb": {name: round(value) for name, value in watch.most.items()} | peak,
    }


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000, 5_000_000])
    parser.add_argument("--time-limit", type=float, default=120)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(options.child, options.time_limit)))
        return
    result: dict[str, Any] = {"columns": COLUMNS, "time_limit": options.time_limit, "limit_mb": LIMIT_MB, "fits": []}
    for rows, gaps in [*((rows, True) for rows in options.rows), (max(options.rows), False)]:
        with tempfile.TemporaryDirectory() as folder:
            table = Path(folder) / "cases.parquet"
            make(table, rows, gaps)
            command = [sys.executable, "-m", "benchmarks.speed.large_fit", "--child", str(table)]
            command += ["--time-limit", str(options.time_limit)]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            size = round(table.stat().st_size / 2**20)
        row = {"rows": rows, "gaps": gaps, "file_mb": size, **json.loads(output.splitlines()[-1])}
        row["kept"] = row["mb"]["own"] <= LIMIT_MB
        result["fits"].append(row)
        print(row, file=sys.stderr, flush=True)
    publish(result, options.out)


if __name__ == "__main__":
    main()
