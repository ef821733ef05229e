"""Long work in turns: what takes longer than one step of one case never holds up the others.

It is done beside the event loop, in two threads. Threads share one interpreter, so that alone would not help: while others ask,
long work rests for most of the time, and all of it together gets at most a part of it, `SHARE`.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from starlette.exceptions import HTTPException

WORKERS = 2
SHARE = 5  # long work gets one part in so many of the time, while others ask
PIECE = 0.003  # seconds of work between two rests, about
AROUND = 0.001  # seconds that a work also takes on the event loop: to be received, and its answer to be sent
WAITING = 16  # works of one client that may wait


class Turns:
    """Works wait by client. Next is the client with the fewest works in progress; of these, whoever has waited longest."""

    def __init__(self, others: Callable[[], int]) -> None:
        self._others = others  # how many requests have come so far that are no long work
        self._lock = threading.Lock()
        self._waiting: dict[str, deque[tuple[Future[Any], Callable[..., Any], tuple[Any, ...]]]] = {}
        self._running: Counter[str] = Counter()
        self._threads = 0
        self._thread = threading.local()
        self.received = 0

    async def run(self, client: str, work: Callable[..., Any], *arguments: Any) -> Any:
        """What the work returns, when its turn has come."""
        done: Future[Any] = Future()
        with self._lock:
            queue = self._waiting.setdefault(client, deque())
            if len(queue) >= WAITING:
                words = f"more than {WAITING} requests of one client are waiting; wait for their answers"
                raise HTTPException(429, words, {"retry-after": "1"})
            queue.append((done, work, arguments))
            self.received += 1
            if self._threads < WORKERS:
                self._threads += 1
                threading.Thread(target=self._work, name="long work", daemon=True).start()
        return await asyncio.wrap_future(done)

    def breathe(self) -> None:
        """Long work calls this now and then, to let others go first. Elsewhere it does nothing."""
        since = getattr(self._thread, "since", None)
        if since is not None and (used := time.thread_time() - since) >= PIECE:
            self._rest(used)

    def _rest(self, used: float) -> None:
        if self._others() != self._thread.others:
            time.sleep(used * (SHARE * max(self._threads, 1) - 1))
        self._thread.since, self._thread.others = time.thread_time(), self._others()

    def _work(self) -> None:
        """A thread: works until none is left."""
        self._thread.since, self._thread.others = time.thread_time(), self._others()
        while True:
            with self._lock:
                if not self._waiting:
                    self._threads -= 1
                    return
                client = min(self._waiting, key=lambda name: self._running[name])  # the first of several
                queue = self._waiting.pop(client)
                done, work, arguments = queue.popleft()
                if queue:
                    self._waiting[client] = queue  # now the last in line
                self._running[client] += 1
            try:
                if done.set_running_or_notify_cancel():
                    done.set_result(work(*arguments))
            except BaseException as error:  # whoever asked gets it
                done.set_exception(error)
            self._rest(time.thread_time() - self._thread.since + AROUND)
            with self._lock:
                self._running[client] -= 1
                if not self._running[client]:
                    del self._running[client]
