"""How long one waits before anything happens: `import askwise` and `askwise --help`, beside an empty Python and NumPy alone.

    ./dev sh python -m benchmarks.speed.start [--repeat 15] [--out benchmarks/speed/start.json]

Whole processes, which take turns, so that a busy machine slows all of them. The import must leave torch unloaded.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks.script import arguments, publish

SIDES = {
    "empty": [sys.executable, "-c", "pass"],
    "numpy": [sys.executable, "-c", "import numpy"],
    "import": [sys.executable, "-c", "import sys, askwise; sys.exit('torch' in sys.modules)"],
    "help": [str(Path(sys.executable).with_name("askwise")), "--help"],
}
LIMITS = {"import": 0.3, "help": 0.5}  # seconds


def seconds(command: list[str]) -> float:
    began = time.perf_counter()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - began


def summary(times: list[float]) -> dict[str, Any]:
    low, middle, high = statistics.quantiles(times, n=4)
    return {"median_s": round(middle, 3), "quartiles_s": [round(low, 3), round(high, 3)]}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    for command in SIDES.values():
        seconds(command)  # files come into the cache, compiled modules into __pycache__
    times: dict[str, list[float]] = {name: [] for name in SIDES}
    for _ in range(options.repeat):
        for name, command in SIDES.items():
            times[name].append(seconds(command))
    result: dict[str, Any] = {name: summary(of) for name, of in times.items()}
    for name, limit in LIMITS.items():
        result[name] |= {"limit_s": limit, "kept": result[name]["median_s"] < limit}
    result["torch_after_import"] = False  # otherwise `seconds` had raised
    publish(result, options.out)


if __name__ == "__main__":
    main()
