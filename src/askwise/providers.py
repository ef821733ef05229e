"""Functions that fetch the results of tests, called only for what the policy buys.

A provider is a function of a case. What it returns is the result of the test: a value or, of a test that reveals several columns,
{column: value}; `Unavailable` or None if there is none. `Provider` says more about it: how long it may take, how often it is
tried, and whether it takes a list of cases at once.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from collections.abc import Callable, Generator, Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from numbers import Real
from typing import Any

from askwise.data.values import missing
from askwise.errors import InputError, did_you_mean
from askwise.model import Model
from askwise.session import Session, next_steps


class Unavailable(Exception):
    """The answer of a provider that has none; the policy works around the test. It may be returned or raised."""


@dataclass(frozen=True)
class Provider:
    """A function with what must be known to call it."""

    function: Callable[[Any], Any]
    timeout: float | None = None  # seconds; None: as long as it takes
    retries: int = 0  # how often it is tried again
    wait: float = 0.0  # seconds before that
    batch: bool = False  # it is a function of a list of cases, and returns a list of results
    failures: tuple[type[BaseException], ...] = (OSError,)  # what may happen to it; also it may be late. Anything else is raised

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"a provider is {self.function!r}; it must be a function of a case")
        if not isinstance(self.retries, int) or self.retries < 0:
            raise InputError(f"retries is {self.retries!r}; it must be a whole number, 0 or more")
        if self.timeout is not None and not (_is_number(self.timeout) and 0 < self.timeout < threading.TIMEOUT_MAX):
            raise InputError(f"timeout is {self.timeout!r}; it must be a number of seconds above 0, or None")
        if not (_is_number(self.wait) and 0 <= self.wait < threading.TIMEOUT_MAX):
            raise InputError(f"wait is {self.wait!r}; it must be a number of seconds, 0 or more")
        if not isinstance(self.failures, (tuple, list)) or not all(_is_exception(each) for each in self.failures):
            raise InputError(f"failures is {self.failures!r}; it must be a tuple of exceptions such as (OSError,)")

    @property
    def _passing(self) -> tuple[type[BaseException], ...]:
        """After which it may be tried again."""
        return (TimeoutError, *self.failures)


@dataclass(frozen=True, eq=False)
class Decided:
    """What was decided about a case, and what it took."""

    session: Session
    decision: Any
    probability: float
    cost: float
    tests: tuple[str, ...]  # bought, in this order
    unavailable: tuple[str, ...]  # asked for in vain
    failures: Mapping[str, str]  # of these, what went wrong with their providers


@dataclass(eq=False)
class _Case:
    case: Any
    session: Session
    key: Hashable
    name: str  # for messages
    failures: dict[str, str] = field(default_factory=dict)
    vain: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class _Failed:
    """Instead of a result."""

    reason: str


Request = tuple[str, list[_Case]]  # a test, and who needs it
Rounds = Generator[list[Request], list[list[Any]], None]


def decide(model: Model, case: Any, providers: Mapping[str, Any], **more: Any) -> Decided:
    """Decides one case; see `decide_many`. `known`, `refused`, `case_id` and `draw` are its own."""
    return decide_many(model, [case], providers, **_of_one(more))[0]


async def decide_async(model: Model, case: Any, providers: Mapping[str, Any], **more: Any) -> Decided:
    """The same, with providers that may be async functions; others run in threads."""
    return (await decide_many_async(model, [case], providers, **_of_one(more)))[0]


def decide_many(
    model: Model, cases: Iterable[Any], providers: Mapping[str, Any], *, workers: int = 1, **more: Any
) -> list[Decided]:
    """Decides cases side by side, with one round of calls for all that need the same test.

    cases: handed to the providers. What a case that is a mapping says of a test without a provider is known to it.
    more: `known`, a list of {test: value}; `refused`, a list of tests each; `case_ids`; `draws`; `budget`, of every case, as in
    `Session`; `timeout` and `retries`, for
    providers that are plain functions; `cache`, a mapping to remember results in, by test and case id; `outside`, whether results
    may lie outside of what training saw. workers: so many calls at once of a provider that takes one case at a time.
    """
    desk = _Desk(model, providers, cases, **more)
    for provider in desk.providers.values():
        if inspect.iscoroutinefunction(provider.function):
            raise InputError(f"the provider {provider.function.__name__!r} is async; use decide_async or decide_many_async")
    rounds = desk.rounds()
    try:
        requests = next(rounds)
        while True:
            requests = rounds.send([_fetch(desk.providers[test], [c.case for c in some], workers) for test, some in requests])
    except StopIteration:
        return desk.decided()


async def decide_many_async(
    model: Model, cases: Iterable[Any], providers: Mapping[str, Any], *, workers: int = 64, **more: Any
) -> list[Decided]:
    """`decide_many` with providers that may be async functions; others run in threads. workers: so many calls at once."""
    desk, door = _Desk(model, providers, cases, **more), asyncio.Semaphore(workers)
    rounds = desk.rounds()
    try:
        requests = next(rounds)
        while True:
            waiting = (_fetch_async(desk.providers[test], [c.case for c in some], door) for test, some in requests)
            requests = rounds.send(list(await asyncio.gather(*waiting)))
    except StopIteration:
        return desk.decided()


def _of_one(more: dict[str, Any]) -> dict[str, Any]:
    for one, many in (("case_id", "case_ids"), ("known", "known"), ("refused", "refused"), ("draw", "draws")):
        if one in more:
            more[many] = [more.pop(one)]
    return more


class _Desk:
    """Sessions, and what they wait for."""

    def __init__(
        self,
        model: Model,
        providers: Mapping[str, Any],
        cases: Iterable[Any],
        *,
        known: Sequence[Mapping[str, Any] | None] | None = None,
        refused: Sequence[Iterable[str]] | None = None,
        case_ids: Sequence[Any] | None = None,
        draws: Sequence[float] | None = None,
        budget: Any = None,
        timeout: float | None = None,
        retries: int = 0,
        cache: MutableMapping[Any, Any] | None = None,
        outside: bool = True,
    ) -> None:
        for test in providers:
            if test not in model.form.tests:
                raise InputError(f"there is a provider for {test!r}, which is not a test; {did_you_mean(test, model.form.tests)}")
        self.providers = {
            test: made if isinstance(made, Provider) else Provider(made, timeout, retries) for test, made in providers.items()
        }
        self.cache, self.outside = cache, outside
        every = list(cases)
        own: dict[str, Any] = {"known": known, "refused": refused, "case_id": case_ids, "draw": draws}
        for what, given in own.items():
            if given is not None and len(given) != len(every):
                raise InputError(f"{what} is given for {len(given)} of {len(every)} cases; give one for each")
        self.cases = [
            self._case(model, i, case, budget=budget, **{name: given[i] for name, given in own.items() if given is not None})
            for i, case in enumerate(every)
        ]

    def _case(
        self, model: Model, i: int, case: Any, known: Mapping[str, Any] | None = None, refused: Iterable[str] = (), **more: Any
    ) -> _Case:
        case_id = more.get("case_id")
        name = f"case {i if case_id is None else case_id!r}"
        said = case if isinstance(case, Mapping) else {}
        there = {test: said[test] for test in model.form.tests if test in said and test not in self.providers}
        there = {test: value for test, value in there.items() if not missing(value)}
        there |= known or {}
        gone = [test for test in model.form.tests if test not in self.providers and test not in there]
        gone += [test for test in refused if test not in gone]
        with _naming(name):
            session = Session(model, there, refused=gone, outside=self.outside, **more)
        key = case if case_id is None else case_id
        if self.cache is not None and not isinstance(key, Hashable):
            raise InputError("a cache needs to know the case again; give a case_id for each case")
        return _Case(case, session, key, name)

    def rounds(self) -> Rounds:
        """Yields what is needed next, and takes the results."""
        active = self.cases
        while active:
            wanted: dict[str, list[_Case]] = {}
            for case, step in zip(active, next_steps([c.session for c in active]), strict=True):
                if step.test is not None:
                    wanted.setdefault(step.test, []).append(case)
            active = [case for some in wanted.values() for case in some]
            fetched = [(test, self._unknown(test, some)) for test, some in wanted.items()]
            fetched = [(test, some) for test, some in fetched if some]
            if fetched:
                for (test, some), results in zip(fetched, (yield fetched), strict=True):
                    for case, result in zip(some, results, strict=True):
                        self._take(case, test, result)

    def _unknown(self, test: str, some: list[_Case]) -> list[_Case]:
        """Those whose results are not in the cache; the others are told."""
        cache = self.cache
        if cache is None:
            return some
        for case in (found := [c for c in some if (test, c.key) in cache]):
            self._take(case, test, cache[test, case.key])
        return [case for case in some if case not in found]

    def _take(self, case: _Case, test: str, result: Any) -> None:
        failed = isinstance(result, _Failed)
        if failed:
            case.failures[test] = result.reason
        if failed or result is Unavailable or isinstance(result, Unavailable) or missing(result):
            case.vain.append(test)
            case.session.refuse(test)
        else:
            with _naming(case.name):
                case.session.tell(test, result)
        if self.cache is not None and not failed:
            self.cache[test, case.key] = result

    def decided(self) -> list[Decided]:
        return [self._decided(case) for case in self.cases]

    def _decided(self, case: _Case) -> Decided:
        step = case.session.next()
        assert step.probability is not None
        return Decided(
            case.session, step.decision, step.probability, step.cost, tuple(case.session.answers), tuple(case.vain), case.failures
        )


@contextmanager
def _naming(case: str) -> Iterator[None]:
    """Says of which case a value makes no sense."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{case}: {error}") from None


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _is_exception(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


# ---------------------------------------------------------------------- calls


def _fetch(provider: Provider, cases: list[Any], workers: int) -> list[Any]:
    """The results of one provider for some cases."""
    if provider.batch:
        return _spread(_try(provider, cases), cases)
    if workers < 2 or len(cases) < 2:
        return [_try(provider, case) for case in cases]
    with ThreadPoolExecutor(min(workers, len(cases))) as pool:
        return list(pool.map(lambda case: _try(provider, case), cases))


def _try(provider: Provider, given: Any) -> Any:
    """One result, after as many attempts as it may take."""
    for attempt in range(provider.retries + 1):
        if attempt and provider.wait:
            time.sleep(provider.wait)
        try:
            return _in_time(provider.function, given, provider.timeout)
        except Unavailable as answer:
            return answer
        except provider._passing as error:
            failed = _Failed(_reason(error, provider))
    return failed


def _in_time(function: Callable[[Any], Any], given: Any, timeout: float | None) -> Any:
    """Calls a function, and waits so long. What is late goes on in its thread, which does not keep the program from ending."""
    if timeout is None:
        return function(given)
    box: list[tuple[bool, Any]] = []

    def call() -> None:
        try:
            box.append((True, function(given)))
        except BaseException as error:
            box.append((False, error))

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    thread.join(timeout)
    if not box:
        raise TimeoutError
    fine, result = box[0]
    if not fine:
        raise result
    return result


async def _fetch_async(provider: Provider, cases: list[Any], door: asyncio.Semaphore) -> list[Any]:
    if provider.batch:
        return _spread(await _try_async(provider, cases, door), cases)
    return list(await asyncio.gather(*(_try_async(provider, case, door) for case in cases)))


async def _try_async(provider: Provider, given: Any, door: asyncio.Semaphore) -> Any:
    async with door:
        if not inspect.iscoroutinefunction(provider.function):
            return await asyncio.to_thread(_try, provider, given)
        for attempt in range(provider.retries + 1):
            if attempt and provider.wait:
                await asyncio.sleep(provider.wait)
            try:
                return await asyncio.wait_for(provider.function(given), provider.timeout)
            except Unavailable as answer:
                return answer
            except provider._passing as error:
                failed = _Failed(_reason(error, provider))
        return failed


def _reason(error: BaseException, provider: Provider) -> str:
    if isinstance(error, TimeoutError) and not str(error):
        return f"no answer in {provider.timeout:g} s" if provider.timeout else "no answer in time"
    return f"{type(error).__name__}: {error}"


def _spread(results: Any, cases: list[Any]) -> list[Any]:
    """The results of a provider that takes a list; if it failed, it failed for all."""
    if isinstance(results, (_Failed, Unavailable)) or results is Unavailable:
        return [results] * len(cases)
    if not isinstance(results, Iterable) or isinstance(results, (str, bytes, Mapping)):
        raise InputError(
            f"a provider gave {type(results).__name__!r} for {len(cases)} cases; it must give a list with a result for each"
        )
    found = list(results)
    if len(found) != len(cases):
        raise InputError(f"a provider gave {len(found)} results for {len(cases)} cases; it must give one for each")
    return found
