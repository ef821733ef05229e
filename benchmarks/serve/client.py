"""A client that is faster than the server: plain sockets, requests made before the clock starts.

    python -m benchmarks.serve.client PORT CLIENTS SECONDS REQUESTS   (JSON {path: [bodies]} on stdin; JSON on stdout)

It takes turns between the paths, a slice of the time each, so that whatever else the machine does meets all of them alike.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time

SLICES = 6  # turns of each path


async def one(port: int, requests: list[bytes], until: float, most: int, times: list[float]) -> None:
    """One client: a request, its answer, the next request."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    i = 0
    while time.perf_counter() < until and len(times) < most:
        began = time.perf_counter()
        writer.write(requests[i % len(requests)])
        i += 1
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 200"):
            raise RuntimeError(head.decode())
        at = head.lower().index(b"content-length: ") + 16
        await reader.readexactly(int(head[at : head.index(b"\r", at)]))
        times.append(time.perf_counter() - began)
    writer.close()
    await writer.wait_closed()


async def turn(port: int, requests: list[bytes], clients: int, seconds: float, most: int) -> tuple[list[float], float]:
    times: list[float] = []
    began = time.perf_counter()
    shifted = [requests[k % len(requests) :] + requests[: k % len(requests)] for k in range(clients)]
    await asyncio.gather(*(one(port, own, began + seconds, most, times) for own in shifted))
    return times, time.perf_counter() - began


def request(path: str, body: str) -> bytes:
    data = body.encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
    return head.encode() + data


def quantile(times: list[float], q: float) -> float:
    return sorted(times)[min(int(q * len(times)), len(times) - 1)]


def measure(port: int, clients: int, seconds: float, most: int, bodies: dict[str, list[str]]) -> dict[str, dict[str, float]]:
    """By path: answers per second and latency in ms."""
    requests = {path: [request(path, body) for body in part] for path, part in bodies.items()}
    times: dict[str, list[float]] = {path: [] for path in bodies}
    spent = dict.fromkeys(bodies, 0.0)
    for path in bodies:  # warm
        asyncio.run(turn(port, requests[path], clients, 0.2, most))
    for _ in range(SLICES):
        for path in bodies:
            part, took = asyncio.run(turn(port, requests[path], clients, seconds / SLICES, max(most // SLICES, 1)))
            times[path] += part
            spent[path] += took
    return {
        path: {
            "requests": len(times[path]),
            "per_second": round(len(times[path]) / spent[path], 1),
            "p50_ms": round(1e3 * quantile(times[path], 0.5), 3),
            "p99_ms": round(1e3 * quantile(times[path], 0.99), 3),
        }
        for path in bodies
    }


if __name__ == "__main__":
    port, clients, seconds, most = (float(word) for word in sys.argv[1:])
    print(json.dumps(measure(int(port), int(clients), seconds, int(most), json.load(sys.stdin))))
