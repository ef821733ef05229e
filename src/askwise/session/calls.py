"""Calls of functions that fetch results: side by side, in time, tried again; and never more threads than they may have.

A function that hangs keeps its thread: nothing can end it from outside. So the calls that nobody waits for any longer are
counted, all over the process, and when there are too many of them no more are made. Threads do not keep the program from ending.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from numbers import Real
from typing import Any

from askwise.errors import InputError, ProviderError

HANGING = 16  # calls that nobody waits for any longer may go on in so many threads, or in as many as there are workers


class Unavailable(Exception):
    """The answer of a provider that has none; the policy works around the test. It may be returned or raised."""


@dataclass(frozen=True)
class Provider:
    """A function that fetches the result of a test, with what must be known to call it.

    Parameters
    ----------
    function : callable
        From a case to a result; `Unavailable` or None where there is none.
    timeout : float, default=None
        Seconds that a call may take. None: as long as it takes.
    retries : int, default=0
        How often it is tried again.
    wait : float, default=0.0
        Seconds before that.
    batch : bool, default=False
        It is a function of a list of cases, and returns a list of results.
    failures : tuple of exception types, default=(OSError,)
        What may happen to it, beside being late. Anything else is raised.
    """

    function: Callable[[Any], Any]
    timeout: float | None = None
    retries: int = 0
    wait: float = 0.0
    batch: bool = False
    failures: tuple[type[BaseException], ...] = (OSError,)

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"a provider is {self.function!r}; it must be a function of a case")
        if not isinstance(self.retries, int) or self.retries < 0:
            raise InputError(f"retries is {self.retries!r}; it must be a whole number, 0 or more")
        if self.timeout is not None and not (_is_number(self.timeout) and 0 < self.timeout < threading.TIMEOUT_MAX):
            raise InputError(f"timeout is {self.timeout!r}; it must be a number of seconds above 0, or None")
        if not (_is_number(self.wait) and 0 <= self.wait < threading.TIMEOUT_MAX):
            raise InputError(f"wait is {self.wait!r}; it must be a number of seconds, 0 or more")
        listed = isinstance(self.failures, (tuple, list))
        if not listed or not all(isinstance(each, type) and issubclass(each, BaseException) for each in self.failures):
            raise InputError(f"failures is {self.failures!r}; it must be a tuple of exceptions such as (OSError,)")

    @property
    def _is_async(self) -> bool:
        """Whether calling it gives something to wait for."""
        call = getattr(self.function, "__call__", None)  # noqa: B004 - of an object, what is async is its method
        return inspect.iscoroutinefunction(self.function) or inspect.iscoroutinefunction(call)

    def _call(self, argument: Any) -> Any:
        """Calls it, and takes all that it gives."""
        return _listed(self.function(argument)) if self.batch else self.function(argument)

    def _settled(self, raised: BaseException, test: str) -> Any:
        """The answer that an exception means: `Failed`, if it may happen. Otherwise it is raised as it is; but what would end one
        of our loops or tasks, instead of being told to the caller, as an error that says so."""
        if isinstance(raised, Unavailable):
            return raised
        if isinstance(raised, TimeoutError) and not str(raised):
            return Failed(f"no answer in {self.timeout:g} s" if self.timeout else "no answer in time")
        if isinstance(raised, (TimeoutError, *self.failures)):
            return Failed(_words(raised))
        ends = isinstance(raised, (StopIteration, StopAsyncIteration)) or not isinstance(raised, Exception)
        if ends and not isinstance(raised, (KeyboardInterrupt, SystemExit)):
            words = f"the provider of {test!r} raised {_words(raised)}"
            raise ProviderError(f"{words}; it must return a result, or Unavailable if there is none") from raised
        raise raised


def must_be_plain(providers: Iterable[Provider]) -> None:
    """Functions that are async need somebody who waits for them."""
    for provider in providers:
        if provider._is_async:
            name = getattr(provider.function, "__name__", type(provider.function).__name__)
            raise InputError(f"the provider {name!r} is async; use decide_async or decide_many_async")


@dataclass(frozen=True)
class Failed:
    """Instead of a result."""

    reason: str


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")


def _not_called() -> Failed:
    return Failed(f"not called: {len(_late)} earlier calls have not returned yet")


# ---------------------------------------------------------------------- threads

CallOutcome = tuple[bool, Any]  # whether it returned, and what it returned or raised

# the calls of this process that go on although nobody waits for them any longer; adding, discarding and copying are atomic
_late: set[Future[CallOutcome]] = set()


def _give_up(call: Future[CallOutcome]) -> None:
    _late.add(call)
    call.add_done_callback(_late.discard)


def _has_room(running: int, workers: int) -> bool:
    """Whether one more call that may become late may begin."""
    return running + len(_late) < max(workers, HANGING)


def _begin(function: Callable[[Any], Any], argument: Any) -> Future[CallOutcome]:
    """Calls a function in a thread of its own."""
    call: Future[CallOutcome] = Future()
    call.set_running_or_notify_cancel()

    def run() -> None:
        call.set_result(_call_outcome(function, argument))

    threading.Thread(target=run, daemon=True, name="askwise provider").start()
    return call


def _call_outcome(function: Callable[[Any], Any], argument: Any) -> CallOutcome:
    try:
        return True, function(argument)
    except BaseException as error:
        return False, error


def _listed(results: Any) -> Any:
    """What a provider of many cases gave, and all that is in it: it may be made only while it is read."""
    return list(results) if isinstance(results, Iterable) and not isinstance(results, (str, bytes, Mapping)) else results


# ---------------------------------------------------------------------- plain functions


def fetch(provider: Provider, cases: list[Any], workers: int, test: str) -> list[Any]:
    """The results of one provider for some cases."""
    arguments = [cases] if provider.batch else cases
    if provider.timeout is None and (workers < 2 or len(arguments) < 2):
        results = [_here(provider, each, test) for each in arguments]
    else:
        results = _CallQueue(provider, arguments, max(workers, 1), test).run()
    return _spread(results[0], cases) if provider.batch else results


def _here(provider: Provider, argument: Any, test: str) -> Any:
    """One result, without a thread."""
    for attempt in range(provider.retries + 1):
        if attempt and provider.wait:
            time.sleep(provider.wait)
        try:
            return provider._call(argument)
        except BaseException as error:
            answer = provider._settled(error, test)
        if not isinstance(answer, Failed):
            break
    return answer


class _CallQueue:
    """Calls of one provider, so many at a time. Whoever runs it waits for all of them, each as long as it may take."""

    def __init__(self, provider: Provider, arguments: list[Any], workers: int, test: str) -> None:
        self.provider, self.arguments, self.workers, self.test = provider, arguments, workers, test
        self.results: list[Any] = [None] * len(arguments)
        self.ready = deque((i, 0) for i in range(len(arguments)))  # which, and how often it was tried
        self.later: deque[tuple[float, int, int]] = deque()  # the same, not before this moment; by rising time
        self.running: dict[Future[CallOutcome], tuple[int, int, float]] = {}  # the same, with the moment when it is late
        self.blocked = math.inf  # the moment when those that are ready have waited long enough for a thread
        self.error: BaseException | None = None

    def run(self) -> list[Any]:
        try:
            while self.running or ((self.ready or self.later) and self.error is None):
                self._begin()
                self._wait()
        finally:  # Ctrl-C
            for call in self.running:
                _give_up(call)
        if self.error is not None:
            raise self.error
        return self.results

    def _begin(self) -> None:
        now = time.monotonic()
        while self.later and self.later[0][0] <= now:
            self.ready.append(self.later.popleft()[1:])
        timeout = self.provider.timeout
        while self.ready and len(self.running) < self.workers and self.error is None:
            if timeout is not None and not _has_room(len(self.running), self.workers):
                self.blocked = min(self.blocked, now + timeout)
                break
            self.blocked = math.inf
            i, tried = self.ready.popleft()
            call = _begin(self.provider._call, self.arguments[i])
            self.running[call] = i, tried, math.inf if timeout is None else now + timeout
        if now >= self.blocked:
            for i, _ in self.ready:
                self.results[i] = _not_called()
            self.ready.clear()
            self.blocked = math.inf

    def _wait(self) -> None:
        """For the next call that ends, or is late, or may be made again."""
        if not self.running and not self.later and self.blocked == math.inf:
            return
        until = min([self.blocked, *(end for _, _, end in self.running.values()), *(at for at, _, _ in list(self.later)[:1])])
        left = None if until == math.inf else max(until - time.monotonic(), 0.0)
        others = _late.copy() if self.blocked < math.inf else set()
        if self.running or others:
            wait({*self.running, *others}, left, FIRST_COMPLETED)
        else:
            time.sleep(left or 0.0)
        now = time.monotonic()
        for call, (i, tried, end) in list(self.running.items()):
            if call.done():
                self._take(i, tried, *call.result())
            elif now >= end:
                _give_up(call)
                self._take(i, tried, False, TimeoutError())
            else:
                continue
            del self.running[call]

    def _take(self, i: int, tried: int, fine: bool, value: Any) -> None:
        if not fine:
            try:
                value = self.provider._settled(value, self.test)
            except BaseException as error:
                self.error = self.error or error
                return
            if isinstance(value, Failed) and tried < self.provider.retries:
                self.later.append((time.monotonic() + self.provider.wait, i, tried + 1))
                return
        self.results[i] = value


# ---------------------------------------------------------------------- async functions


class CallLimit:
    """How many calls there may be at once."""

    def __init__(self, workers: int) -> None:
        self.workers, self.free, self.threads = workers, asyncio.Semaphore(workers), 0


async def fetch_async(provider: Provider, cases: list[Any], limit: CallLimit, test: str) -> list[Any]:
    """The same without keeping the event loop waiting: plain functions run in threads."""
    arguments = [cases] if provider.batch else cases
    calls = (_try_async(provider, each, limit, test) for each in arguments)
    results = []
    for result in await asyncio.gather(*calls, return_exceptions=True):  # all of them end, also if one raises something
        if isinstance(result, BaseException):
            raise result
        results += result
    return _spread(results[0], cases) if provider.batch else results


async def _try_async(provider: Provider, argument: Any, limit: CallLimit, test: str) -> list[Any]:
    """One result, in a list, since a result may be an exception."""
    async with limit.free:
        for attempt in range(provider.retries + 1):
            if attempt and provider.wait:
                await asyncio.sleep(provider.wait)
            if provider._is_async:
                fine, value = await _awaited(provider, argument)
            elif await _room(provider, limit):
                fine, value = await _in_thread(provider, argument, limit)
            else:
                return [_not_called()]
            answer = value if fine else provider._settled(value, test)
            if not isinstance(answer, Failed):
                break
        return [answer]


async def _awaited(provider: Provider, argument: Any) -> CallOutcome:
    try:
        answer = await asyncio.wait_for(provider.function(argument), provider.timeout)
        return _call_outcome(_listed, answer) if provider.batch else (True, answer)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():  # not by the provider: it is all of this that is to end
            raise
        return False, error
    except BaseException as error:
        return False, error


async def _in_thread(provider: Provider, argument: Any, limit: CallLimit) -> CallOutcome:
    call = _begin(provider._call, argument)
    limit.threads += 1
    try:
        return await asyncio.wait_for(asyncio.wrap_future(call), provider.timeout)
    except TimeoutError as error:  # what the function raises is in the outcome
        return False, error
    finally:
        limit.threads -= 1
        if not call.done():
            _give_up(call)


async def _room(provider: Provider, limit: CallLimit) -> bool:
    """Waits for a thread, as long as for an answer."""
    ends = time.monotonic() + (provider.timeout or 0.0)
    while provider.timeout is not None and not _has_room(limit.threads, limit.workers):
        left = ends - time.monotonic()
        if left <= 0:
            return False
        late = [asyncio.wrap_future(call) for call in _late.copy()]
        await (asyncio.wait(late, timeout=left, return_when=asyncio.FIRST_COMPLETED) if late else asyncio.sleep(0))
        for each in late:  # nobody else waits for these
            each.cancel()
    return True


def _spread(results: Any, cases: list[Any]) -> list[Any]:
    """The results of a provider that takes a list; if it failed, it failed for all."""
    if isinstance(results, (Failed, Unavailable)) or results is Unavailable:
        return [results] * len(cases)
    if not isinstance(results, list):
        what = f"{type(results).__name__!r} for {len(cases)} cases"
        raise InputError(f"a provider gave {what}; it must give a list with a result for each")
    if len(results) != len(cases):
        raise InputError(f"a provider gave {len(results)} results for {len(cases)} cases; it must give one for each")
    return results
