"""How fast, and in how much memory, a large Parquet table is decided: 5,000,000 rows x 50 columns.

    ./dev sh python -m benchmarks.bench.scoring [--rows 5000000] [--engines local dask] [--out benchmarks/bench/scoring.json]

The table is written piece by piece, and each engine decides it in a process of its own: `askwise predict --out d.parquet`. Peaks
are those of this process and, for Dask, of its largest worker. For comparison, what the table takes as a frame.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.script import arguments, publish

COLUMNS = 50
PIECE = 100_000  # rows of a row group
# Nothing heavy is imported above, since a new process inherits the peak of the one that started it.
CHILD = """
import json, resource, sys
from askwise import cli
code = cli.main(["predict", *sys.argv[1:]])
peaks = [resource.getrusage(who).ru_maxrss // 1024 for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print(json.dumps({"code": code, "mb": peaks[0], "largest_worker_mb": peaks[1]}))
"""
MAKE = """
import sys
import numpy as np, pyarrow as pa, pyarrow.parquet as pq
path, rows, columns, piece = sys.argv[1], *map(int, sys.argv[2:])
rng, names = np.random.default_rng(0), [f"x{i}" for i in range(columns)]
with pq.ParquetWriter(path, pa.schema([(n, pa.float32()) for n in names]), compression="NONE", use_dictionary=False) as writer:
    for start in range(0, rows, piece):
        X = rng.standard_normal((min(piece, rows - start), columns), np.float32)
        writer.write_table(pa.table(dict(zip(names, X.T))))
"""
FIT = """
import sys
import numpy as np, pandas as pd
from askwise import AverageBudget, CostlyClassifier, FamilyConfig
rng = np.random.default_rng(1)
X = pd.DataFrame(rng.standard_normal((4_000, int(sys.argv[2]))), columns=[f"x{i}" for i in range(int(sys.argv[2]))])
y = (X.iloc[:, :5].sum(axis=1) > 0).astype(int)
config = FamilyConfig(max_steps=400, width=64, interim_measurements=1)
CostlyClassifier(budget=AverageBudget(3), config=config, random_state=0).fit(X, y).save(sys.argv[1])
"""


def measured(rows: int, engines: list[str]) -> dict[str, Any]:
    result: dict[str, Any] = {"rows": rows, "columns": COLUMNS, "frame_mb": round(rows * COLUMNS * 4 / 2**20)}
    with tempfile.TemporaryDirectory() as folder:
        table, model, out = (Path(folder) / name for name in ("t.parquet", "m.askwise", "d.parquet"))
        subprocess.run([sys.executable, "-c", MAKE, table, *map(str, (rows, COLUMNS, PIECE))], check=True)
        subprocess.run([sys.executable, "-c", FIT, model, str(COLUMNS)], check=True)
        result["file_mb"] = round(table.stat().st_size / 2**20)
        for engine in engines:
            began = time.perf_counter()
            command = [sys.executable, "-c", CHILD, model, table, "--out", out, "--engine", engine]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            took = time.perf_counter() - began
            answer = json.loads(done.stdout.splitlines()[-1])
            assert answer.pop("code") == 0, done.stderr
            if engine == "local":
                del answer["largest_worker_mb"]
            result[engine] = {
                "seconds": round(took, 1),
                "rows_per_second": round(rows / took),
                **answer,
                "said": done.stderr.strip().rpartition(":")[0],
            }
            print(f"{engine}: {result[engine]}", file=sys.stderr, flush=True)
    return result


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--engines", nargs="+", default=["local", "dask"])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    result = measured(options.rows, options.engines)
    publish(result, options.out)


if __name__ == "__main__":
    main()
