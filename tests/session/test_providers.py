"""Functions that fetch results, called only for what is bought."""

import asyncio
import threading
import time
from functools import cache

import numpy as np
import pytest
from tests.support.models import answer, family, lacking, paper, table

from askwise import AverageBudget, Provider, Unavailable
from askwise.cli.ask import simulated
from askwise.errors import InputError, ProviderError
from askwise.session.calls import HANGING

ROWS, _ = table(40, seed=9)
VALUES = {"age": 50, "pressure": 0.25, "smoker": True, "colour": "red", "town": "Rom", "index": 2.5}


@cache
def model():
    return family()


class Lab:
    """Providers that count their calls."""

    def __init__(self, made, values=None):
        self.calls, self.made, self.values = [], made, values

    def one(self, test):
        def fetch(case):
            self.calls.append((test, case))
            return self.values[test] if self.values else answer(self.made, ROWS.iloc[case], test)

        return fetch

    def all(self, wrap=lambda f: f, but=()):
        return {test: wrap(self.one(test)) for test in self.made.schema.tests if test not in but}


def test_only_what_is_bought_is_called_and_only_once():
    lab = Lab(model())
    for i in range(20):
        lab.calls.clear()
        done = model().decide(i, lab.all(), case_id=i, refused=lacking(model(), ROWS.iloc[i]))
        report = model().acquire(ROWS.iloc[[i]], ids=[i])
        assert (done.decision, done.tests) == (report.prediction[0], report.tests[0])
        assert done.cost == pytest.approx(report.cost[0])
        assert done.probability == pytest.approx(report.probability[0], abs=1e-4)
        assert lab.calls == [(test, i) for test in done.tests]
        assert done.session.trace()["decision"] == done.decision
        assert not done.unavailable
        assert not done.failures


@pytest.mark.parametrize("made", [family(budget=AverageBudget(1.1)), paper(budget=AverageBudget(1.1)), family(known=["age"])])
def test_the_rows_of_a_table_are_decided_as_predict_decides_them(made):
    report = made.acquire(ROWS)
    done = simulated(made, ROWS, [str(i) for i in range(len(ROWS))])
    assert [d.decision for d in done] == report.prediction.tolist()
    assert [d.tests for d in done] == report.tests
    assert [d.cost for d in done] == pytest.approx(report.cost.tolist())
    assert any(report.tests)


def test_what_a_case_says_is_known_and_what_nobody_says_is_not_asked():
    lab = Lab(model(), VALUES)
    done = model().decide({"age": 44, "name": "Ann", "town": None}, lab.all(but=("age", "town", "colour")))
    assert done.session.known == {"age": 44}
    assert "age" not in done.tests
    assert {"town", "colour"} <= set(done.session.refused)
    assert all(case["name"] == "Ann" for _, case in lab.calls)
    assert model().decide("x", lab.all(), known={"age": 44}).session.known == {"age": 44}


def test_unavailable_is_an_answer():
    def raises(case):
        raise Unavailable

    for nothing in (
        lambda case: Unavailable,
        raises,
        lambda case: None,
        lambda case: float("nan"),
        lambda case: Unavailable("gone"),
    ):
        done = model().decide(1, {**Lab(model(), VALUES).all(), **dict.fromkeys(["age", "pressure"], nothing)}, case_id=1)
        assert not {"age", "pressure", "index"} & set(done.tests)
        assert set(done.unavailable) <= {"age", "pressure"}
        assert not done.failures
    everything = model().decide(1, dict.fromkeys(model().schema.tests, lambda case: Unavailable))
    assert everything.tests == ()
    assert everything.cost == 0


def test_a_late_provider_is_tried_again_and_then_does_without():
    calls = []

    def slow(case):
        calls.append(case)
        time.sleep(0.5)

    began = time.monotonic()
    done = model().decide(1, dict.fromkeys(model().schema.tests, Provider(slow, timeout=0.01, retries=1)), case_id=1)
    assert time.monotonic() - began < 20
    assert done.tests == ()
    assert set(done.failures) == set(done.unavailable) != set()
    assert len(calls) == 2 * len(done.failures)
    assert set(done.failures.values()) == {"no answer in 0.01 s"}


def test_a_flaky_provider_gets_through_and_a_mistake_is_raised():
    calls = []

    def flaky(value):
        def fetch(case):
            calls.append(case)
            if len(calls) % 3:
                raise ConnectionError("line is busy")
            return value

        return fetch

    providers = {test: flaky(value) for test, value in VALUES.items()}
    done = model().decide(1, providers, retries=2)
    assert not done.failures
    assert len(calls) == 3 * len(done.tests) > 0
    once = model().decide(1, {test: Provider(f) for test, f in providers.items()}, retries=5)  # its own settings count
    assert "ConnectionError: line is busy" in once.failures.values()

    def wrong(case):
        raise KeyError("oops")

    with pytest.raises(KeyError, match="oops"):
        model().decide(1, dict.fromkeys(VALUES, wrong), timeout=5, retries=3)
    fine = model().decide(1, dict.fromkeys(VALUES, Provider(wrong, failures=(KeyError,))))
    assert set(fine.failures.values()) == {"KeyError: 'oops'"}


def test_results_are_remembered_by_case():
    lab, memory = Lab(model()), {}
    first = model().decide(3, lab.all(), case_id="c3", cache=memory)
    n = len(lab.calls)
    again = model().decide(3, lab.all(), case_id="c3", cache=memory)
    assert len(lab.calls) == n > 0
    assert (first.decision, first.tests) == (again.decision, again.tests)
    model().decide(4, lab.all(), case_id="c4", cache=memory)
    assert len(lab.calls) > n
    late = {}
    model().decide(1, dict.fromkeys(VALUES, Provider(lambda case: time.sleep(0.5), timeout=0.01)), cache=late)
    assert late == {}  # what failed may be asked again
    with pytest.raises(InputError, match="give a case_id"):
        model().decide({"age": 1}, lab.all(), cache=memory)


def test_many_cases_call_a_provider_once_in_each_round():
    lab, sizes = Lab(model(), VALUES), []

    def grouped(fetch):
        def many(cases):
            sizes.append(len(cases))
            return [fetch(case) for case in cases]

        return Provider(many, batch=True)

    cases = list(range(30))
    done = model().decide_many(cases, lab.all(grouped), case_ids=cases)
    alone = [model().decide(case, Lab(model(), VALUES).all(), case_id=case) for case in cases]
    assert [(d.decision, d.tests) for d in done] == [(d.decision, d.tests) for d in alone]
    assert max(sizes) == 30
    assert len(sizes) == max(len(d.tests) for d in done)
    with pytest.raises(InputError, match="gave 1 results for 30 cases"):
        model().decide_many(cases, dict.fromkeys(VALUES, Provider(lambda some: [1], batch=True)))
    none = model().decide_many(cases, dict.fromkeys(VALUES, Provider(lambda some: Unavailable, batch=True)))
    assert all(d.tests == () for d in none)


def test_calls_go_side_by_side_where_they_may():
    here, most = [0], [0]
    lock = threading.Lock()

    def slow(value):
        def fetch(case):
            with lock:
                here[0] += 1
                most[0] = max(most[0], here[0])
            time.sleep(0.02)
            with lock:
                here[0] -= 1
            return value

        return fetch

    model().decide_many(range(6), {test: slow(value) for test, value in VALUES.items()}, workers=3)
    assert 1 < most[0] <= 3


def test_async_providers():
    started = []

    def prompt(test, value):
        async def fetch(case):
            started.append((test, case))
            await asyncio.sleep(0.001)
            return value

        return fetch

    providers = {test: prompt(test, value) for test, value in VALUES.items()}
    providers["town"] = lambda case: VALUES["town"]  # a plain function may be among them
    done = asyncio.run(model().decide_async(1, providers, case_id=1))
    assert done.tests == model().decide(1, Lab(model(), VALUES).all(), case_id=1).tests
    assert [test for test, _ in started] == [test for test in done.tests if test != "town"]
    many = asyncio.run(model().decide_many_async(range(5), providers, case_ids=range(5)))
    assert len(many) == 5

    async def stuck(case):
        await asyncio.sleep(9)

    late = asyncio.run(model().decide_async(1, dict.fromkeys(VALUES, stuck), timeout=0.01, retries=1))
    assert set(late.failures.values()) == {"no answer in 0.01 s"}
    with pytest.raises(InputError, match="'stuck' is async; use decide_async"):
        model().decide(1, dict.fromkeys(VALUES, stuck))


def test_what_cannot_be_used_is_refused():
    for wrong, words in [
        ({"TSH": len}, "provider for 'TSH', which is not a test"),
        ({"age": 5}, "the provider for 'age' is 5; it must be a function of a case"),
    ]:
        with pytest.raises(InputError, match=words):
            model().decide(1, wrong)
    with pytest.raises(InputError, match="a provider is 5"):
        Provider(5)
    with pytest.raises(InputError, match="retries is -1"):
        Provider(len, retries=-1)
    with pytest.raises(InputError, match="timeout is 0"):
        Provider(len, timeout=0)
    with pytest.raises(InputError, match="case_id is given for 1 of 2 cases"):
        model().decide_many([1, 2], {}, case_ids=[1])
    with pytest.raises(InputError, match="has no value for its column"):
        model().decide(1, dict.fromkeys(VALUES, lambda case: {}), outside=False)
    assert np.isfinite(model().decide(1, {}).probability)


@pytest.mark.parametrize(("settings", "words"), [
    ({"timeout": "5"}, "timeout is '5'; it must be a number of seconds above 0"),
    ({"timeout": float("nan")}, "timeout is nan"),
    ({"timeout": float("inf")}, "timeout is inf"),
    ({"wait": -1}, "wait is -1; it must be a number of seconds, 0 or more"),
    ({"wait": "1"}, "wait is '1'"),
    ({"failures": "x"}, "failures is 'x'; it must be a tuple of exceptions"),
    ({"failures": OSError}, "it must be a tuple of exceptions"),
    ({"failures": ("x",)}, "it must be a tuple of exceptions"),
])  # fmt: skip
def test_settings_that_make_no_sense_are_refused(settings, words):
    with pytest.raises(InputError, match=words):
        Provider(len, **settings)


@pytest.mark.parametrize("given", [None, 5, {0: 1, 1: 2}, "ab"])
def test_a_provider_of_many_cases_must_give_a_list(given):
    provider = Provider(lambda cases: given, batch=True)
    with pytest.raises(InputError, match=f"a provider gave {type(given).__name__!r} for 2 cases; it must give a list"):
        model().decide_many([0, 1], dict.fromkeys(VALUES, provider))


def test_an_error_says_of_which_case():
    def fetch(test):
        return lambda case: [] if case == 2 else VALUES[test]

    providers, memory = {test: fetch(test) for test in VALUES}, {}
    with pytest.raises(InputError, match=r"^case 'C': the value of test '\w+' is \[\]; it must be"):
        model().decide_many([0, 1, 2], providers, case_ids=["A", "B", "C"], cache=memory)
    assert memory
    assert "C" not in {case for _, case in memory}
    with pytest.raises(InputError, match=r"^case 2: the value of test "):
        model().decide_many([0, 1, 2], providers)
    with pytest.raises(InputError, match=r"^case 1: there is no test 'agee'"):
        model().decide_many([0, 1], providers, known=[{}, {"agee": 1}])


# ------------------------------------------------------------------ whatever is raised


class Rude(BaseException):
    """Not an Exception, and none of Python's own."""


def raising(error):
    def fetch(case):
        raise error

    return fetch


def raising_async(error):
    async def fetch(case):
        raise error

    return fetch


ENDING = [StopIteration("done"), StopAsyncIteration(), GeneratorExit(), asyncio.CancelledError(), Rude("no")]
any_ending = pytest.mark.parametrize("error", ENDING, ids=lambda error: type(error).__name__)


@any_ending
@pytest.mark.parametrize("more", [{}, {"timeout": 5}, {"workers": 3}, {"workers": 3, "timeout": 5}], ids=str)
def test_what_ends_loops_and_tasks_is_an_error_of_the_provider(error, more):
    words = rf"the provider of '\w+' raised {type(error).__name__}.*; it must return a result, or Unavailable"
    with pytest.raises(ProviderError, match=words) as found:
        model().decide_many(range(4), dict.fromkeys(VALUES, raising(error)), **more)
    assert type(found.value.__cause__) is type(error)
    many = dict.fromkeys(VALUES, Provider(raising(error), batch=True))
    with pytest.raises(ProviderError, match=words):
        model().decide_many(range(4), many, **more)
    with pytest.raises(ProviderError, match=words):
        asyncio.run(model().decide_many_async(range(4), dict.fromkeys(VALUES, raising(error)), **more))
    if not isinstance(
        error, (StopIteration, StopAsyncIteration)
    ):  # of these Python makes a RuntimeError, which is raised as it is
        with pytest.raises(ProviderError, match=words):
            asyncio.run(model().decide_many_async(range(4), dict.fromkeys(VALUES, raising_async(error)), **more))
    allowed = dict.fromkeys(VALUES, Provider(raising(error), more.get("timeout"), failures=(BaseException,)))
    for done in (*model().decide_many(range(2), allowed), *asyncio.run(model().decide_many_async(range(2), allowed))):
        assert all(reason.startswith(type(error).__name__) for reason in done.failures.values())
        assert done.decision in ("ill", "well")
        assert done.failures


def test_results_that_are_made_while_they_are_read_are_errors_of_the_provider_too():
    def halfway(cases):
        yield 1
        raise Rude

    for more in ({}, {"timeout": 5}):
        with pytest.raises(ProviderError, match="raised Rude"):
            model().decide_many(range(3), dict.fromkeys(VALUES, Provider(halfway, batch=True)), **more)


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit])
def test_the_wish_to_end_the_program_is_not_held_up(error):
    for more in ({}, {"timeout": 5}, {"workers": 2}):
        with pytest.raises(error):
            model().decide_many(range(2), dict.fromkeys(VALUES, raising(error())), **more)


def test_a_task_that_is_cancelled_ends_and_is_no_failure():
    async def stuck(case):
        started.set()
        await asyncio.sleep(60)

    async def main(providers):
        task = asyncio.create_task(model().decide_async(1, providers))
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    started = asyncio.Event()
    asyncio.run(main(dict.fromkeys(VALUES, Provider(stuck, failures=(BaseException,)))))


# ------------------------------------------------------------------ threads


class Hanging:
    """A provider that does not come back until it is let go; it counts who is in it."""

    def __init__(self, value=None):
        self.go, self.lock, self.here, self.most, self.calls, self.value = threading.Event(), threading.Lock(), 0, 0, 0, value

    def __call__(self, case):
        with self.lock:
            self.here, self.calls = self.here + 1, self.calls + 1
            self.most = max(self.most, self.here)
        self.go.wait(30)
        with self.lock:
            self.here -= 1
        return self.value


def all_back():
    """Waits for whatever is late, also of other tests."""
    for thread in threading.enumerate():
        if thread.name == "askwise provider":
            thread.join(30)


@pytest.fixture
def hanging():
    all_back()
    made = Hanging()
    yield made
    made.go.set()
    all_back()


@pytest.mark.parametrize("workers", [1, 4, 20])
def test_functions_that_hang_keep_a_bounded_number_of_threads(hanging, workers):
    before = threading.active_count()
    stuck = dict.fromkeys(VALUES, Provider(hanging, timeout=0.02))
    done = model().decide_many(range(60), stuck, workers=workers)
    done += [model().decide(1, stuck) for _ in range(3)]  # the bound is not of one call
    assert threading.active_count() - before <= max(workers, HANGING)
    assert hanging.most == hanging.calls <= max(workers, HANGING)
    reasons = {reason for d in done for reason in d.failures.values()}
    assert "no answer in 0.02 s" in reasons
    assert any(reason.startswith("not called: ") and reason.endswith(" have not returned yet") for reason in reasons)
    assert all(set(d.failures) == set(d.unavailable) and d.tests == () for d in done)
    hanging.go.set()
    all_back()
    assert model().decide(1, Lab(model(), VALUES).all(), timeout=30).tests  # and then all is well again


def test_functions_that_hang_keep_a_bounded_number_of_threads_beside_an_event_loop(hanging):
    before = threading.active_count()
    stuck = dict.fromkeys(VALUES, Provider(hanging, timeout=0.02))
    done = asyncio.run(model().decide_many_async(range(60), stuck, workers=8))
    assert threading.active_count() - before <= HANGING
    assert hanging.calls <= HANGING
    assert {reason.split(":")[0] for d in done for reason in d.failures.values()} == {"no answer in 0.02 s", "not called"}


def test_a_thread_that_comes_back_is_used_again(hanging):
    """More late calls than may go on; as soon as they are back, others are made."""
    stuck = dict.fromkeys(VALUES, Provider(hanging, timeout=0.01))
    model().decide_many(range(HANGING + 4), stuck, workers=2)
    assert hanging.here == HANGING
    threading.Timer(0.05, hanging.go.set).start()
    done = model().decide(1, {test: Provider(lambda case, v=v: v, timeout=30) for test, v in VALUES.items()})
    assert done.tests
    assert not done.failures


class Meeting:
    """A provider whose calls all wait until so many of them are there at the same time."""

    def __init__(self, n, value):
        self.barrier, self.value = threading.Barrier(n), value

    def __call__(self, case):
        self.barrier.wait(30)
        return self.value


@pytest.mark.parametrize("timeout", [None, 60])
def test_plain_functions_are_as_parallel_as_workers_says(timeout):
    n = 40
    providers = {test: Provider(Meeting(n, value), timeout) for test, value in VALUES.items()}
    alike = {"known": [{}] * n, "case_ids": ["the same"] * n}  # so that all need the same tests
    many = model().decide_many(range(n), providers, workers=n, **alike)
    beside = asyncio.run(model().decide_many_async(range(n), providers, workers=n, **alike))
    assert [d.tests for d in many] == [d.tests for d in beside]
    assert many[0].tests
    assert not any(d.failures for d in (*many, *beside))


@pytest.mark.parametrize("workers", [1, 7])
def test_async_functions_are_as_parallel_as_workers_says_and_no_more(workers):
    here, most, full = 0, 0, asyncio.Event()

    def asks(value):
        async def fetch(case):
            nonlocal here, most
            here += 1
            most = max(most, here)
            if here == workers:
                full.set()
            await asyncio.wait_for(full.wait(), 30)
            await asyncio.sleep(0)
            here -= 1
            return value

        return fetch

    done = model().decide_many_async(range(21), {t: asks(v) for t, v in VALUES.items()}, workers=workers, case_ids=["a"] * 21)
    assert all(d.tests for d in asyncio.run(done))
    assert most == workers


def test_an_object_whose_call_is_async_is_async():
    class Client:
        async def __call__(self, case):
            return VALUES["age"]

    with pytest.raises(InputError, match="is async; use decide_async"):
        model().decide(1, {"age": Client()})
    assert asyncio.run(model().decide_async(1, {"age": Client()})).session.answers in ({}, {"age": 50})


@pytest.mark.parametrize("workers", [0, -1, 2.5, None])
def test_workers_are_counted(workers):
    with pytest.raises(InputError, match=f"workers is {workers}; it must be a whole number, 1 or more"):
        model().decide_many([1], {}, workers=workers)
    with pytest.raises(InputError, match=f"workers is {workers}; it must be a whole number, 1 or more"):
        asyncio.run(model().decide_many_async([1], {}, workers=workers))
