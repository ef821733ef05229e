"""What the service tells its operator: one line of JSON per event, and counters in Prometheus' text format.

Values of cases are in neither, unless `log_values` asks for them: not in paths, since every value comes in a body, and not in
messages of errors, of which only the kind and the place are written.
"""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
import time
import traceback
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, TextIO

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Log:
    """Lines of JSON on a stream."""

    def __init__(self, stream: TextIO | None = None, values: bool = False) -> None:
        self.stream, self.values = stream, values

    def write(self, event: str, **facts: Any) -> None:
        moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        line = json.dumps({"time": moment, "event": event, **facts}, ensure_ascii=False, default=str)
        print(f"{line}\n", end="", file=self.stream or sys.stderr, flush=True)  # at once: workers share a stream

    def failure(self, error: BaseException, **facts: Any) -> None:
        """A mistake of ours: what kind and where; the message may hold values, so it is written only when these are."""
        frames = traceback.extract_tb(error.__traceback__)
        place = [f"{os.path.basename(f.filename)}:{f.lineno} {f.name}" for f in frames[-5:]]
        more = {"message": str(error)} if self.values else {}
        self.write("failure", kind=type(error).__name__, place=place, **more, **facts)


class Forward(logging.Handler):
    """Hands what the server itself has to say to our log."""

    def __init__(self, log: Log) -> None:
        super().__init__(logging.INFO)
        self.log = log

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.log.failure(record.exc_info[1], where=record.name)
        else:
            self.log.write("server", level=record.levelname.lower(), message=record.getMessage())


class Metrics:
    """Counts since the start. Labels come from fixed sets (routes, models), so that nobody can make them grow."""

    def __init__(self) -> None:
        self.started_at = time.time()
        self.in_progress = 0  # requests
        self.received = 0  # requests so far
        self.connections = 0  # open now
        self.memory = 0  # bytes
        self.requests: Counter[tuple[str, str, int]] = Counter()
        self.seconds: dict[str, list[float]] = {}  # by route: counts by bucket, then the rest, then the sum
        self.answers: Counter[tuple[str, str]] = Counter()
        self.closed: Counter[str] = Counter()  # connections that the service closed, by reason
        self._lock = threading.Lock()  # answers are also counted beside the event loop
        self.others: Callable[[], list[dict[str, Any]]] = list  # counters of other workers

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        self.requests[route, method, status] += 1
        times = self.seconds.setdefault(route, [0.0] * (len(BUCKETS) + 2))
        times[bisect_left(BUCKETS, seconds)] += 1
        times[-1] += seconds

    def answer(self, model: str, kind: str, n: int = 1) -> None:
        with self._lock:
            self.answers[model, kind] += n

    def counters(self) -> dict[str, Any]:
        """All of them, for JSON."""
        with self._lock:
            answers = dict(self.answers)
        counts: dict[str, Mapping[Any, int]] = {"requests": self.requests, "answers": answers, "closed": self.closed}
        gauges = {"connections": self.connections, "in_progress": self.in_progress, "memory": resident()}
        listed = {name: [[key, n] for key, n in kind.items()] for name, kind in counts.items()}
        return {**listed, "seconds": self.seconds, "gauges": gauges}

    def add(self, counters: dict[str, Any]) -> None:
        """Counts what somebody else has counted too."""
        counts: dict[str, Counter[Any]] = {"requests": self.requests, "answers": self.answers, "closed": self.closed}
        for name, kind in counts.items():
            for key, n in counters[name]:
                kind[tuple(key) if isinstance(key, list) else key] += n
        for route, times in counters["seconds"].items():
            own = self.seconds.get(route, [0.0] * len(times))
            self.seconds[route] = [a + b for a, b in zip(own, times, strict=True)]
        self.connections += counters["gauges"].get("connections", 0)
        self.in_progress += counters["gauges"].get("in_progress", 0)
        self.memory += counters["gauges"].get("memory", 0)

    def text(self) -> str:
        """Of all workers."""
        whole = Metrics()
        whole.started_at = self.started_at
        own = self.counters()
        for counters in (own, *self.others()):
            whole.add(counters)
        return whole._text()

    def _text(self) -> str:
        lines: list[str] = []

        def metric(name: str, kind: str, words: str, rows: Iterable[tuple[str, Mapping[str, Any], float]]) -> None:
            lines.extend((f"# HELP askwise_{name} {words}", f"# TYPE askwise_{name} {kind}"))
            for end, labels, value in rows:
                number = f"{value:g}" if value != int(value) else str(int(value))
                lines.append(f"askwise_{name}{end}{_labels(labels)} {number}")

        requests = [("", {"route": path, "method": how, "status": status}, n) for (path, how, status), n in self.requests.items()]
        seconds = [row for route, times in self.seconds.items() for row in _histogram(route, times)]
        answers = [("", {"model": model, "kind": kind}, n) for (model, kind), n in self.answers.items()]
        closed = [("", {"reason": reason}, n) for reason, n in self.closed.items()]
        metric("requests_total", "counter", "Requests by route, method and status.", requests)
        metric("request_seconds", "histogram", "Time from the first byte of a request to the end of its answer.", seconds)
        metric("answers_total", "counter", "Cases answered, by model: a question or a decision.", answers)
        metric("connections_closed_total", "counter", "Connections that the service closed, by reason.", closed)
        for name, words, value in (
            ("connections", "Connections open now.", self.connections),
            ("requests_in_progress", "Requests being answered now.", self.in_progress),
            ("start_time_seconds", "When the service started, in seconds since 1970.", round(self.started_at, 3)),
            ("resident_memory_bytes", "Memory in use.", self.memory),
        ):
            metric(name, "gauge", words, [("", {}, value)])
        return "\n".join(lines) + "\n"


def _histogram(route: str, times: list[float]) -> list[tuple[str, dict[str, Any], float]]:
    rows, below = [], 0.0
    for most, n in zip((*BUCKETS, "+Inf"), times[:-1], strict=True):
        below += n
        rows.append(("_bucket", {"route": route, "le": most}, below))
    return [*rows, ("_sum", {"route": route}, times[-1]), ("_count", {"route": route}, below)]


def _labels(labels: Mapping[str, Any]) -> str:
    def escaped(value: Any) -> str:
        return str(value).replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")

    return "{" + ",".join(f'{name}="{escaped(value)}"' for name, value in labels.items()) + "}" if labels else ""


def resident() -> int:
    """Bytes of memory in use; 0 where the system does not tell."""
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return 0
