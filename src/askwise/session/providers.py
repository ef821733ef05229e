"""Functions that fetch the results of tests, called only for what the policy buys.

A provider is a function of a case. What it returns is the result of the test: a value or, of a test that reveals several columns,
{column: value}; `Unavailable` or None if there is none. `Provider` says more about it: how long it may take, how often it is
tried, and whether it takes a list of cases at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Hashable, Iterable, Iterator, Mapping, MutableMapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from askwise.errors import InputError, did_you_mean
from askwise.model.model import LearnedModel
from askwise.session.calls import CallLimit, Failed, Provider, Unavailable, fetch, fetch_async, must_be_plain
from askwise.session.session import Session
from askwise.tables.cells import missing

__all__ = ["Decided", "Provider", "Unavailable", "decide", "decide_async", "decide_many", "decide_many_async"]


@dataclass(frozen=True, eq=False)
class Decided:
    """What was decided about a case, and what it took."""

    session: Session
    decision: Any
    probability: float | None
    cost: float
    tests: tuple[str, ...]  # bought, in this order
    unavailable: tuple[str, ...]  # asked for in vain
    failures: Mapping[str, str]  # of these, what went wrong with their providers


@dataclass(eq=False)
class _OpenCase:
    case: Any
    session: Session
    key: Hashable
    name: str  # for messages
    failures: dict[str, str] = field(default_factory=dict)
    vain: list[str] = field(default_factory=list)

    def decided(self) -> Decided:
        step, bought, vain = self.session.next(), tuple(self.session.answers), tuple(self.vain)
        return Decided(self.session, step.decision, step.probability, step.cost, bought, vain, self.failures)


Request = tuple[str, list[_OpenCase]]  # a test, and who needs it


def decide(model: LearnedModel, case: Any, providers: Mapping[str, Any], **more: Any) -> Decided:
    """Decides one case; see `decide_many`. `known`, `refused`, `case_id` and `draw` are its own."""
    return decide_many(model, [case], providers, **_of_one(more))[0]


async def decide_async(model: LearnedModel, case: Any, providers: Mapping[str, Any], **more: Any) -> Decided:
    """The same, with providers that may be async functions; others run in threads."""
    return (await decide_many_async(model, [case], providers, **_of_one(more)))[0]


def decide_many(
    model: LearnedModel, cases: Iterable[Any], providers: Mapping[str, Any], *, workers: int = 1, **more: Any
) -> list[Decided]:
    """Decides cases side by side, with one round of calls for all that need the same test.

    cases: handed to the providers. What a case that is a mapping says of a test without a provider is known to it.
    more: `known`, a list of {test: value}; `refused`, a list of tests each; `case_ids`; `draws`; `budget`, of every case, as in
    `Session`; `timeout` and `retries`, for
    providers that are plain functions; `cache`, a mapping to remember results in, by test and case id; `outside`, whether results
    may lie outside of what training saw. workers: so many calls at once of a provider that takes one case at a time.
    """
    work = _OpenCases(model, providers, cases, workers, **more)
    must_be_plain(work.providers.values())
    while requests := work.requests():
        work.take(requests, [fetch(work.providers[test], [c.case for c in needy], workers, test) for test, needy in requests])
    return work.decided()


async def decide_many_async(
    model: LearnedModel, cases: Iterable[Any], providers: Mapping[str, Any], *, workers: int = 64, **more: Any
) -> list[Decided]:
    """`decide_many` with providers that may be async functions; others run in threads. workers: so many calls at once."""
    work, limit = _OpenCases(model, providers, cases, workers, **more), CallLimit(workers)
    while requests := work.requests():
        waiting = (fetch_async(work.providers[test], [c.case for c in needy], limit, test) for test, needy in requests)
        results = await asyncio.gather(*waiting, return_exceptions=True)  # all calls end, also if one raises something
        for error in (each for each in results if isinstance(each, BaseException)):
            raise error
        work.take(requests, results)
    return work.decided()


def _of_one(more: dict[str, Any]) -> dict[str, Any]:
    for one, many in (("case_id", "case_ids"), ("known", "known"), ("refused", "refused"), ("draw", "draws")):
        if one in more:
            more[many] = [more.pop(one)]
    return more


class _OpenCases:
    """Sessions, and what they wait for."""

    def __init__(
        self,
        model: LearnedModel,
        providers: Mapping[str, Any],
        cases: Iterable[Any],
        workers: int,
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
        if not isinstance(workers, int) or workers < 1:
            raise InputError(f"workers is {workers!r}; it must be a whole number, 1 or more")
        self.providers: dict[str, Provider] = {}
        for test, provider in providers.items():
            if test not in model.form.tests:
                raise InputError(f"there is a provider for {test!r}, which is not a test; {did_you_mean(test, model.form.tests)}")
            if not isinstance(provider, Provider) and not callable(provider):
                raise InputError(f"the provider for {test!r} is {provider!r}; it must be a function of a case")
            self.providers[test] = provider if isinstance(provider, Provider) else Provider(provider, timeout, retries)
        self.cache, self.outside = cache, outside
        every = list(cases)
        own: dict[str, Any] = {"known": known, "refused": refused, "case_id": case_ids, "draw": draws}
        for what, values in own.items():
            if values is not None and len(values) != len(every):
                raise InputError(f"{what} is given for {len(values)} of {len(every)} cases; give one for each")
        self.cases = [
            self._case(model, i, case, {"budget": budget, **{k: values[i] for k, values in own.items() if values is not None}})
            for i, case in enumerate(every)
        ]
        self.active = self.cases  # those that are not decided yet

    def _case(self, model: LearnedModel, i: int, case: Any, own: dict[str, Any]) -> _OpenCase:
        """One case, with the arguments of a `Session` that are its own."""
        case_id, known, refused = own.get("case_id"), own.pop("known", None), own.pop("refused", ())
        name = f"case {i if case_id is None else case_id!r}"
        fields = case if isinstance(case, Mapping) else {}
        without = [test for test in model.form.tests if test not in self.providers]
        there = {test: fields[test] for test in without if test in fields and not missing(fields[test])}
        there |= known or {}
        gone = [test for test in without if test not in there]
        gone += [test for test in refused if test not in gone]
        with _naming(name):
            session = Session(model, there, refused=gone, outside=self.outside, **own)
        key = case if case_id is None else case_id
        if self.cache is not None and not isinstance(key, Hashable):
            raise InputError("a cache needs to know the case again; give a case_id for each case")
        return _OpenCase(case, session, key, name)

    def requests(self) -> list[Request]:
        """What must be fetched next; nothing, if everything is decided. What is in the cache is told on the way."""
        while self.active:
            wanted: dict[str, list[_OpenCase]] = {}
            for case, step in zip(self.active, Session.next_many([c.session for c in self.active]), strict=True):
                if step.test is not None:
                    wanted.setdefault(step.test, []).append(case)
            self.active = [case for cases in wanted.values() for case in cases]
            if self.cache is not None:
                wanted = {test: self._unknown(test, cases, self.cache) for test, cases in wanted.items()}
            if requests := [(test, cases) for test, cases in wanted.items() if cases]:
                return requests
        return []

    def _unknown(self, test: str, cases: list[_OpenCase], cache: MutableMapping[Any, Any]) -> list[_OpenCase]:
        """Those whose results are not in the cache; the others are told."""
        for case in (cached := [c for c in cases if (test, c.key) in cache]):
            self._take(case, test, cache[test, case.key])
        return [case for case in cases if case not in cached]

    def take(self, requests: list[Request], results: list[Any]) -> None:
        """What was fetched."""
        for (test, cases), values in zip(requests, results, strict=True):
            for case, value in zip(cases, values, strict=True):
                self._take(case, test, value)

    def _take(self, case: _OpenCase, test: str, result: Any) -> None:
        failed = isinstance(result, Failed)
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
        return [case.decided() for case in self.cases]


@contextmanager
def _naming(case: str) -> Iterator[None]:
    """Says of which case a value makes no sense."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{case}: {error}") from None
