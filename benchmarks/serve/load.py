"""How much one process of the service takes: decisions per second and latency, next to an echo of the same server in turns.

    ./dev sh python -m benchmarks.serve.load [--seconds 10] [--requests 200000] [--out benchmarks/serve/load.json]

A model of 50 tests, cases that know what the policy has asked for so far (from nothing to everything), and 1, 8 and 64 clients in
a process of their own. Then the memory of the server over many requests, and the time from its start to a first answer.
Needs psutil.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import numpy as np
import psutil

from benchmarks.script import arguments, publish
from benchmarks.serve.process import serving

NEXT, ECHO = "/api/models/fifty/next", "/api/echo"
LIMITS = {"share_of_echo": 0.5, "p99_of_echo_at_8": 3.0, "growth": 0.02, "start_s": 2.0}


def fitted(path: Path) -> None:
    """A family over 50 tests of equal cost, of which a few tell a class."""
    from dataclasses import replace

    from askwise import CostlyClassifier, FamilyConfig, Tradeoff

    rng = np.random.default_rng(0)
    X = rng.normal(size=(2000, 50)).round(3)
    y = np.where(X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * X[:, 3] > 0, "yes", "no")
    config = FamilyConfig(max_steps=300)
    model = CostlyClassifier(config=config, random_state=0, unit="€").fit(X, y).model_
    # only the point that asks differently from case to case and buys most: it has most to compute
    adaptive = max((p for p in model.points if p.prefix is None), key=lambda p: p.cost)
    replace(model, points=(model.points[0], adaptive), budget=Tradeoff(0)).save(path)


def bodies(path: Path, n: int) -> list[str]:
    """Cases on their way: what was asked is answered, up to a random point."""
    from askwise.facade import load

    model, rng, bodies = load(path), np.random.default_rng(1), []
    while len(bodies) < n:
        session = model.session(case_id=f"case {len(bodies)}")
        while (test := session.next().test) is not None:
            bodies.append(json.dumps({"case_id": session.case_id, "answers": session.answers}))
            session.tell(test, round(float(np.clip(rng.normal(), -2, 2)), 3))
        bodies.append(json.dumps({"case_id": session.case_id, "answers": session.answers}))
    return bodies[:n]


def measured(port: int, clients: int, seconds: float, most: int, sent: dict[str, list[str]]) -> dict[str, Any]:
    command = [sys.executable, "-m", "benchmarks.serve.client", str(port), str(clients), str(seconds), str(most)]
    done = subprocess.run(command, input=json.dumps(sent), capture_output=True, text=True, check=True)
    results: dict[str, Any] = json.loads(done.stdout)
    return results


def load(model: Path, seconds: float) -> list[dict[str, Any]]:
    sent, rows = bodies(model, 400), []
    with serving(model, "--echo") as (port, _):
        for clients in (1, 8, 64):
            results = measured(port, clients, seconds, 10**9, {NEXT: sent, ECHO: sent})
            decisions, echo = results[NEXT], results[ECHO]
            rows.append(
                {
                    "clients": clients,
                    "decisions": decisions,
                    "echo": echo,
                    "share_of_echo": round(decisions["per_second"] / echo["per_second"], 3),
                    "p99_of_echo": round(decisions["p99_ms"] / echo["p99_ms"], 3),
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    return rows


def memory(model: Path, requests: int, parts: int = 10) -> dict[str, Any]:
    """The memory of the server after each tenth of the requests; flat means that it does not grow after the first."""
    sent = bodies(model, 400)
    with serving(model) as (port, process):
        watched, mebibytes = psutil.Process(process.pid), []
        for _ in range(parts):
            measured(port, 8, 3600, requests // parts, {NEXT: sent})
            mebibytes.append(round(watched.memory_info().rss / 2**20, 2))
            print(f"memory {mebibytes[-1]} MiB", flush=True)
    return {"requests": requests, "MiB": mebibytes, "growth": round(mebibytes[-1] / mebibytes[0] - 1, 4)}


def start(model: Path, repeat: int = 5) -> dict[str, Any]:
    """Seconds from starting the process to its first answer, and whether it has imported torch."""
    seconds, torch = [], True
    for _ in range(repeat):
        began = time.perf_counter()
        with serving(model) as (port, process):
            question = urllib.request.Request(f"http://127.0.0.1:{port}{NEXT}", b"{}", {"content-type": "application/json"})
            with urllib.request.urlopen(question) as answer:
                assert json.load(answer)["case_id"]
            seconds.append(time.perf_counter() - began)
            torch = "/torch/" in Path(f"/proc/{process.pid}/maps").read_text()
    return {"median_s": round(statistics.median(seconds), 3), "all_s": [round(s, 3) for s in seconds], "torch": torch}


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=10.0, help="for each number of clients and each of the two addresses")
    parser.add_argument("--requests", type=int, default=200_000, help="of the test of memory; 0 leaves it out")
    parser.add_argument("--model", type=Path, help="a model called fifty.askwise; without it one is fitted")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or Path(folder) / "fifty.askwise"
        if options.model is None:
            fitted(model)
        began = start(model)
        print(json.dumps(began), flush=True)
        rows = load(model, options.seconds)
        grown = memory(model, options.requests) if options.requests else None
    kept = {
        "share_of_echo": all(row["share_of_echo"] >= LIMITS["share_of_echo"] for row in rows),
        "p99_of_echo_at_8": rows[1]["p99_of_echo"] <= LIMITS["p99_of_echo_at_8"],
        "memory_is_flat": None if grown is None else grown["growth"] <= LIMITS["growth"],
        "start": began["median_s"] <= LIMITS["start_s"] and not began["torch"],
    }
    result = {"start": began, "load": rows, "memory": grown, "limits": LIMITS, "kept": kept}
    publish(result, options.out)


if __name__ == "__main__":
    main()
