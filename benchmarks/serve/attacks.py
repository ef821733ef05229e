"""What honest clients notice of attacks: their rate and latency while each attack runs, next to the same clients undisturbed.

    ./dev sh python -m benchmarks.serve.attacks [--seconds 20] [--only NAME] [--out benchmarks/serve/attacks.md]

8 clients ask for the next test of cases of a model of 50 tests, with and without the attack in turns, so that whatever else the
machine does meets both alike. The attack comes from a process of its own, all on this machine: the service sees one address and
cannot tell the good from the bad by it. `--rate` is 0, so that nothing is kept off by the limit of requests per second.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import tempfile
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from askwise.facade import load
from askwise.web.view import most_events
from benchmarks.script import arguments
from benchmarks.serve.client import quantile, request
from benchmarks.serve.load import bodies, fitted
from benchmarks.serve.process import serving

CLIENTS, ROUNDS = 8, 4
LIMITS = {"rate": 0.6, "p99": 5.0}
HOST = "127.0.0.1"


class Target(NamedTuple):
    """Whom an attack is directed at."""

    port: int
    model: str
    test: str  # one of the model's
    events: int  # that the page takes


Attack = Callable[[Target, float], Awaitable[None]]  # until when

# ---------------------------------------------------------------------- attacks


async def _repeat(port: int, until: float, message: Callable[[int], bytes], pause: float = 0.0) -> None:
    """One client that sends a request, takes whatever comes, and sends the next; if it is shut out, it comes again."""
    i = 0
    while time.perf_counter() < until:
        with suppress(OSError, asyncio.IncompleteReadError, ValueError):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                while time.perf_counter() < until:
                    writer.write(message(i))
                    i += 1
                    await _answer(reader)
                    await asyncio.sleep(pause)
            finally:
                writer.close()
        await asyncio.sleep(0.01)


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """The head of an answer, after its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    at = head.lower().index(b"content-length: ") + 16
    await reader.readexactly(int(head[at : head.index(b"\r", at)]))
    return head


async def _hold(port: int, until: float, first: bytes, drip: bytes) -> None:
    """A connection that is kept as long as possible, and made again a second after it was closed."""
    while time.perf_counter() < until:
        with suppress(OSError):
            reader, writer = await asyncio.open_connection(HOST, port)
            try:
                writer.write(first)
                while not reader.at_eof() and time.perf_counter() < until:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(reader.read(1000), min(3.0, max(until - time.perf_counter(), 0.01)))
                    writer.write(drip)
            finally:
                writer.close()
        await asyncio.sleep(1.0)


def form(path: str, fields: dict[str, str], more: str = "") -> bytes:
    body = urlencode(fields).encode()
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/x-www-form-urlencoded\r\n{more}"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


async def amounts(at: Target, until: float) -> None:
    """4 clients start cases with a budget of 10^999999999."""
    message = form(f"/m/{at.model}/start", {"budget": "1e999999999"})
    await asyncio.gather(*(_repeat(at.port, until, lambda _: message) for _ in range(4)))


async def origins(at: Target, until: float) -> None:
    """4 clients send forms of pages of another site."""
    message = form(f"/m/{at.model}/start", {"case_id": "x"}, "Origin: https://elsewhere.example\r\n")
    await asyncio.gather(*(_repeat(at.port, until, lambda _: message) for _ in range(4)))


async def trickles(at: Target, until: float) -> None:
    """256 connections announce a body and send a byte of it every 3 s."""
    head = b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000000\r\n\r\n"
    await asyncio.gather(*(_hold(at.port, until, head, b"x") for _ in range(256)))


async def silence(at: Target, until: float) -> None:
    """1,100 connections say nothing."""
    await asyncio.gather(*(_hold(at.port, until, b"", b"") for _ in range(1100)))


async def methods(at: Target, until: float) -> None:
    """4 clients use a new method of 12,000 letters in every request."""

    def message(i: int) -> bytes:
        return b"M%dX" % i + b"X" * 12_000 + b" /health HTTP/1.1\r\nHost: localhost\r\n\r\n"

    await asyncio.gather(*(_repeat(at.port, until, message) for _ in range(4)))


def _replay(at: Target, events: int) -> bytes:
    state = {"case_id": "a", "draw": 0.5, "events": [{"do": "refuse", "test": at.test}, {"do": "undo"}] * (events // 2)}
    return form(f"/m/{at.model}", {"state": json.dumps(state), "do": "show"})


async def replays(at: Target, until: float) -> None:
    """4 clients send the page cases of 500 events, each refused or undone."""
    message = _replay(at, 500)
    await asyncio.gather(*(_repeat(at.port, until, lambda _: message) for _ in range(4)))


async def longest(at: Target, until: float) -> None:
    """4 clients send the page cases of as many such events as it takes."""
    message = _replay(at, at.events)
    await asyncio.gather(*(_repeat(at.port, until, lambda _: message) for _ in range(4)))


async def batches(at: Target, until: float) -> None:
    """4 clients send batches of 1,000 cases."""
    message = request(f"/api/models/{at.model}/batch", json.dumps({"cases": [{"case_id": str(i)} for i in range(1000)]}))
    await asyncio.gather(*(_repeat(at.port, until, lambda _: message) for _ in range(4)))


ATTACKS: dict[str, Attack] = {a.__name__: a for a in (amounts, origins, trickles, silence, methods, replays, longest, batches)}


async def attack(kind: str, at: Target, seconds: float) -> None:
    """One attack. It ends in time, also where nothing is answered."""
    with suppress(TimeoutError):
        await asyncio.wait_for(ATTACKS[kind](at, time.perf_counter() + seconds), seconds)


def _process(kind: str, at: Target, seconds: float) -> None:
    asyncio.run(attack(kind, at, seconds))


# ---------------------------------------------------------------------- honest clients


@dataclass
class Seen:
    """What the honest clients saw in one of the two conditions."""

    times: list[float] = field(default_factory=list)
    seconds: float = 0.0
    failed: int = 0

    @property
    def rate(self) -> float:
        return len(self.times) / self.seconds if self.seconds else 0.0

    @property
    def p99(self) -> float:
        return 1e3 * quantile(self.times, 0.99) if self.times else float("inf")


async def _ask(port: int, requests: list[bytes], until: float, observed: Seen) -> None:
    """One client. An answer that does not come counts as one that came at the end, and as a failure."""
    i, began = 0, 0.0
    while time.perf_counter() < until:
        try:
            reader, writer = await asyncio.open_connection(HOST, port)
        except OSError:
            observed.failed += 1
            await asyncio.sleep(0.05)
            continue
        try:
            while (began := time.perf_counter()) < until:
                writer.write(requests[i % len(requests)])
                i += 1
                head = await asyncio.wait_for(_answer(reader), until - began + 5)
                if head.startswith(b"HTTP/1.1 200"):
                    observed.times.append(time.perf_counter() - began)
                else:
                    observed.failed += 1
        except (OSError, asyncio.IncompleteReadError, TimeoutError):
            observed.failed += 1
            observed.times.append(time.perf_counter() - began)
        finally:
            writer.close()


async def turn(port: int, requests: list[bytes], seconds: float, observed: Seen) -> None:
    """All honest clients, for a while."""
    began = time.perf_counter()
    shifted = [requests[k:] + requests[:k] for k in range(CLIENTS)]
    await asyncio.gather(*(_ask(port, own, began + seconds, observed) for own in shifted))
    observed.seconds += time.perf_counter() - began


def measured(kind: str, at: Target, requests: list[bytes], seconds: float, rounds: int) -> tuple[Seen, Seen]:
    """What honest clients saw without and with an attack, in turns."""
    quiet, attacked = Seen(), Seen()
    asyncio.run(turn(at.port, requests, min(seconds / rounds, 0.5), Seen()))  # warm
    for _ in range(rounds):
        asyncio.run(turn(at.port, requests, seconds / rounds, quiet))
        # it begins a little before and ends a little after
        enemy = multiprocessing.get_context("spawn").Process(target=_process, args=(kind, at, seconds / rounds + 1.0))
        enemy.start()
        time.sleep(0.5)
        asyncio.run(turn(at.port, requests, seconds / rounds, attacked))
        enemy.join(10)
        if enemy.is_alive():
            enemy.kill()
            enemy.join()
    return quiet, attacked


def row(kind: str, quiet: Seen, attacked: Seen) -> str:
    rate, p99 = attacked.rate / quiet.rate, attacked.p99 / quiet.p99
    kept = rate >= LIMITS["rate"] and p99 < LIMITS["p99"] and not attacked.failed
    words = (ATTACKS[kind].__doc__ or "").rstrip(".")
    return (
        f"| {words} | {quiet.rate:.0f} | {attacked.rate:.0f} | {rate:.2f} | {quiet.p99:.1f} | {attacked.p99:.1f} | {p99:.2f} | "
        f"{attacked.failed} | {'yes' if kept else 'no'} |"
    )


HEAD = """| attack | per second, undisturbed | attacked | share | p99 in ms, undisturbed | attacked | times | failed | kept |
|---|---|---|---|---|---|---|---|---|"""


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seconds", type=float, default=20.0, help="of each attack, and as long without it")
    parser.add_argument("--only", nargs="+", choices=ATTACKS, default=list(ATTACKS), metavar="NAME", help=", ".join(ATTACKS))
    parser.add_argument("--model", type=Path, help="a model called fifty.askwise; without it one is fitted")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    lines = [HEAD]
    with tempfile.TemporaryDirectory() as folder:
        model = options.model or Path(folder) / "fifty.askwise"
        if options.model is None:
            fitted(model)
        requests = [request(f"/api/models/{model.stem}/next", body) for body in bodies(model, 400)]
        loaded = load(model)
        print(HEAD, flush=True)
        for kind in options.only:
            with serving(model) as (port, _):  # a new one for each
                at = Target(port, model.stem, loaded.schema.tests[0], most_events(loaded))
                lines.append(row(kind, *measured(kind, at, requests, options.seconds, ROUNDS)))
            print(lines[-1], flush=True)
    if options.out:
        words = (
            "8 honest clients, while each attack runs and undisturbed, in turns. Kept: no answer failed, at least "
            f"{LIMITS['rate']:.0%} of the rate, and a p99 below {LIMITS['p99']:g} times the undisturbed one.\n\n"
            "    ./dev sh python -m benchmarks.serve.attacks --out benchmarks/serve/attacks.md\n"
        )
        options.out.write_text("\n".join(["# Attacks on the service", "", words, *lines]) + "\n")


if __name__ == "__main__":
    main()
