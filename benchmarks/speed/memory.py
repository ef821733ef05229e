"""How much memory a large table takes: fitting, predicting and acquiring on 1,000,000 rows x 50 columns.

    ./dev sh python -m benchmarks.speed.memory [--rows 1000000] [--out benchmarks/speed/memory.json]

Every figure is the peak of a process of its own, minus the peak of one that does the same with 1,000 rows (which is the program
and its libraries), in parts of the data: 1 is the data itself, and no more than 3 is wanted. The data is a float32 array, a
float64 frame, or a CSV file, for which it is the frame that the file becomes. Models that predict were fitted on few rows
before; how much they buy is noted, because decisions that are kept take memory too.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks.script import arguments, publish

COLUMNS = 50
FEW = 1_000
LIMIT = 3.0
WORK = {"array": ("fit", "predict", "acquire"), "frame": ("fit", "predict", "acquire"), "csv": ("read", "fit", "acquire")}
SECONDS = 5.0  # of training: longer training takes no more memory
# Nothing heavy is imported above, since a new process inherits the peak of the one that started it.


def table(rows: int, kind: str) -> Any:
    """Normal numbers, made piece by piece, so that making them takes no more than they do."""
    import numpy as np

    X = np.empty((rows, COLUMNS), np.float32 if kind == "array" else np.float64)
    rng = np.random.default_rng(0)
    for i in range(0, rows, 10_000):
        X[i : i + 10_000] = rng.standard_normal((min(10_000, rows - i), COLUMNS), np.float32)
    if kind == "array":
        return X
    import pandas as pd

    return pd.DataFrame(X, columns=[f"x{i}" for i in range(COLUMNS)], copy=False)


def target(X: Any) -> Any:
    """Ten columns matter, so that several are worth buying."""
    first = X[:, :10] if not hasattr(X, "iloc") else X.iloc[:, :10]
    return (first.sum(axis=1) > 0).astype("int8")


def child(rows: int, kind: str, work: str, folder: Path) -> dict[str, Any]:
    """Does one thing and tells the peak of this process, in bytes."""
    import pandas as pd  # noqa: F401
    import torch  # noqa: F401

    from askwise import AverageBudget, CostlyClassifier, cli, load
    from askwise.tables.reading import read_table

    file, model, result = folder / f"{rows}.csv", folder / "model.askwise", {}
    if work == "model":
        few = table(2_000, "frame")
        CostlyClassifier(budget=AverageBudget(5), algorithm="paper", time_limit=2 * SECONDS, random_state=0).fit(
            few, target(few)
        ).save(model)
    elif work == "write":
        X = table(rows, "frame")
        X.assign(y=target(X)).to_csv(file, index=False, float_format="%.6g")
    elif kind == "csv":
        if work == "read":
            result["rows"] = len(read_table(file))
        elif work == "fit":
            words = f"--target y --average-budget 5 --algorithm paper --time-limit {SECONDS} --quiet --out".split()
            result["exit"] = cli.main(["fit", str(file), *words, str(folder / "fitted.askwise")])
        else:
            result["exit"] = cli.main(["predict", str(model), str(file), "--out", str(folder / "decisions.csv")])
    else:
        X = table(rows, kind)
        if work == "fit":
            CostlyClassifier(budget=AverageBudget(5), algorithm="paper", time_limit=SECONDS, random_state=0).fit(X, target(X))
        elif work == "predict":
            load(model).predict(X)
        else:
            result["tests_per_case"] = sum(map(len, load(model).acquire(X).tests)) / rows
    return {**result, "peak": 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss}


def peak(rows: int, kind: str, work: str, folder: Path) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.speed.memory", "--rows", str(rows), "--child", kind, work, str(folder)]
    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    result: dict[str, Any] = json.loads(output.splitlines()[-1])
    return result


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        kind, work, folder = options.child
        print(json.dumps(child(options.rows, kind, work, Path(folder))))
        return
    result: dict[str, Any] = {"rows": options.rows, "columns": COLUMNS, "limit": LIMIT}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        peak(FEW, "frame", "model", folder)
        for rows in (FEW, options.rows):
            peak(rows, "frame", "write", folder)
        result["csv_file_mb"] = round((folder / f"{options.rows}.csv").stat().st_size / 1e6)
        for kind, works in WORK.items():
            size = (options.rows - FEW) * COLUMNS * (4 if kind == "array" else 8)
            result[kind] = {"data_mb": round(size / 1e6)}
            for work in works:
                most = peak(options.rows, kind, work, folder)
                ratio = (most.pop("peak") - peak(FEW, kind, work, folder)["peak"]) / size
                result[kind][work] = {"ratio": round(ratio, 2), "kept": ratio <= LIMIT, **most}
                print(kind, work, result[kind][work], file=sys.stderr, flush=True)
    publish(result, options.out)


if __name__ == "__main__":
    main()
