"""What a hostile page or client tries, answered in this process: foreign forms, odd names, endless labels, work without end."""

import asyncio
import io
import json
import subprocess
import sys
import threading
import time

import pytest
from tests.web.test_web_page import heading, hidden

from askwise.errors import InputError
from askwise.web import connections, request_guard, view
from askwise.web.clients import digits, forwarded
from askwise.web.logs import Log, Metrics
from askwise.web.settings import Limits, ServiceSettings, checked_proxies, checked_token, is_trusted
from askwise.web.turns import WAITING, Turns

NEXT = "/api/models/patients/next"
START = "/m/patients/start"
FOREIGN = [
    {"origin": "https://elsewhere.example"},
    {"origin": "null"},
    {"origin": "http://testserver.elsewhere.example"},
    {"origin": "http://testserver:81"},
    {"origin": "testserver"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site", "origin": "http://testserver"},
]
OURS = [
    {},
    {"origin": "http://testserver"},
    {"origin": "https://testserver"},  # behind a proxy that speaks TLS
    {"sec-fetch-site": "same-origin", "origin": "null"},
    {"sec-fetch-site": "none"},
]


@pytest.mark.parametrize("headers", FOREIGN, ids=str)
def test_pages_of_other_sites_cannot_send_anything(client, make_client, headers):
    response = client.post(START, data={"case_id": "A-17"}, headers=headers)
    assert response.status_code == 403
    assert "another site" in response.text
    assert len(response.text.splitlines()) == 1
    api = client.post(NEXT, json={}, headers=headers)
    assert api.status_code == 403
    assert "another site" in api.json()["error"]
    assert make_client(token="secret").post("/login", data={"token": "secret"}, headers=headers).status_code == 403
    assert client.get("/health", headers=headers).status_code == 200  # changes nothing


@pytest.mark.parametrize("headers", OURS, ids=str)
def test_our_own_pages_and_programs_can(client, headers):
    assert client.post(START, data={"case_id": "A-17"}, headers=headers).status_code == 200
    assert client.post(NEXT, json={}, headers=headers).status_code == 200


def test_only_names_of_this_machine_open_a_service_of_this_machine(make_client):
    client = make_client(local=True)
    for host in ("localhost:80@evil.com", "localhost:evil", "localhost:", "localhost:80:80", "localhost.evil.com", "a@localhost",
                 "localhost:٣", "[::1", "[::1]:8000/", "", " localhost"):  # fmt: skip
        assert client.get("/health", headers={"host": host.encode()}).status_code == 421, host


@pytest.mark.parametrize("at", ["²", "٣", "①", "+5", " 5", "5\n", "1_0", "0x1"])
def test_only_plain_digits_are_a_position_of_the_slider(client, at):
    assert client.get("/m/patients/model", params={"at": at}).status_code == 404
    assert digits(at) is None


def test_the_metrics_and_the_log_do_not_grow_with_what_is_sent(make_client):
    client = make_client()
    size = []
    for round_ in range(2):
        for i in range(30):
            assert client.request(f"M{round_}X{i}" + "Y" * 500, "/health").status_code == 405
            assert client.request(f"M{round_}X{i}", f"/nothing/{round_}/{i}").status_code in (404, 405)
            assert client.post(f"/nothing/{round_}/{i}", data={}, headers=FOREIGN[0]).status_code == 403
        size.append(len([line for line in client.get("/metrics").text.splitlines() if line.startswith("askwise_requests_total")]))
    text = client.get("/metrics").text
    assert size[1] <= size[0] + 1  # the first look at /metrics itself
    assert 'method="other"' in text
    assert 'route="refused",method="POST",status="403"' in text
    assert "XYY" not in text + client.lines.getvalue()
    assert "Y" * 30 not in text + client.lines.getvalue()
    assert "Y" * 30 not in client.request("Z" + "Y" * 500, "/health").text


def secure(client, **headers):
    response = client.post("/login", data={"token": "secret"}, headers=headers, follow_redirects=False)
    assert response.status_code == 303
    return "secure" in response.headers["set-cookie"].lower()


def test_the_cookie_is_secure_behind_a_trusted_proxy_that_speaks_tls(make_client):
    trusted = make_client(token="secret", proxies=checked_proxies(["10.0.0.0/8", "127.0.0.1"]))
    assert secure(trusted, **{"x-forwarded-proto": "https"})
    assert not secure(trusted, **{"x-forwarded-proto": "http"})
    assert not secure(trusted)
    for proxies in ([], ["10.0.0.5"]):  # anyone could say so
        assert not secure(make_client(token="secret", proxies=checked_proxies(proxies)), **{"x-forwarded-proto": "https"})


def test_the_client_behind_a_trusted_proxy_is_the_one_that_is_limited(make_client):
    client = make_client({"rate": 1}, token="secret", proxies=checked_proxies(["127.0.0.1"]))
    for i in range(8):  # each has its own bucket; what stands before the address that our proxy saw is made up
        said = {"x-forwarded-for": f"6.6.6.6, 192.0.2.{i}, 127.0.0.1"}
        assert client.get("/health", headers=said).status_code == 200
    same = [client.get("/health", headers={"x-forwarded-for": f"192.0.2.{i}, 192.0.2.99"}).status_code for i in range(8)]
    assert 429 in same
    assert '"client": "192.0.2.99"' in client.lines.getvalue()
    assert client.get("/health", headers={"x-forwarded-for": "nonsense"}).status_code in (200, 429)
    alone = make_client({"rate": 1})
    assert 429 in [alone.get("/health", headers={"x-forwarded-for": f"192.0.2.{i}"}).status_code for i in range(8)]


def test_a_trusted_proxy_is_recognised_by_a_socket_that_takes_both_sorts_of_addresses():
    proxies = checked_proxies(["10.0.0.5", "2001:db8::/32"])
    scope = {"client": ("::ffff:10.0.0.5", 80), "scheme": "http"}  # as of --host ::
    forwarded(scope, {b"x-forwarded-proto": b"https", b"x-forwarded-for": b"6.6.6.6, ::ffff:192.0.2.7, 2001:db8::1"}, proxies)
    assert (scope["scheme"], scope["client"][0]) == ("https", "192.0.2.7")
    assert not is_trusted("::ffff:10.0.0.6", proxies)


def test_a_trusted_proxy_is_an_address_and_needs_a_token():
    for wrong in ("proxy.example", "10.0.0", ""):
        with pytest.raises(InputError, match="--trusted-proxy"):
            checked_proxies([wrong])
    with pytest.raises(InputError, match="token"):
        checked_token("127.0.0.1", None, checked_proxies(["127.0.0.1"]))


# ---------------------------------------------------------------------- long work


def test_a_case_holds_as_many_events_as_a_real_one_needs(client, models):
    page = client.post(START, data={"known.0.0": "63", "case_id": "A-17"}).text
    test, state = heading(page), json.loads(hidden(page))
    most = view.most_events(models["patients"])
    assert 4 * models["patients"].schema.n_tests <= most < 100
    pair = [{"do": "refuse", "test": test}, {"do": "undo"}]
    answers = []
    for pairs in (most // 2, most // 2 + 1, 250):
        sent = {"state": json.dumps({**state, "events": pair * pairs}), "do": "show"}
        answers.append(client.post("/m/patients", data=sent))
    assert [a.status_code for a in answers] == [200, 422, 422]
    assert heading(answers[0].text) == test
    assert f"more than {most} steps" in answers[1].text


def test_long_work_is_not_done_on_the_event_loop(client, models, monkeypatch):
    places = []
    next_steps = view.Session.next

    def watched(self):
        places.append(threading.current_thread() is threading.main_thread())
        return next_steps(self)

    state = view.carried(models["patients"].session(case_id="a"))
    monkeypatch.setattr(view.Session, "next", watched)
    assert client.post("/m/patients", data={"state": state, "do": "show"}).status_code == 200
    assert client.post("/m/patients/record.json", data={"state": state}).status_code == 200
    assert places
    assert not any(places)


def test_clients_take_turns_and_none_waits_for_all_works_of_another():
    order, others = [], [0]
    turns = Turns(lambda: others[0])
    began, go_on = threading.Barrier(3), threading.Event()

    def first():
        began.wait(10)
        go_on.wait(10)

    async def all_of_them():
        busy = [asyncio.create_task(turns.run("greedy", first)) for _ in range(2)]  # both threads
        await asyncio.to_thread(began.wait, 10)
        works = [asyncio.create_task(turns.run("greedy", order.append, "greedy")) for _ in range(WAITING)]
        await asyncio.sleep(0)
        from starlette.exceptions import HTTPException

        with pytest.raises(HTTPException, match="429"):
            await turns.run("greedy", order.append, "too many")
        works.append(asyncio.create_task(turns.run("modest", order.append, "modest")))
        await asyncio.sleep(0)
        go_on.set()
        await asyncio.gather(*busy, *works)

    asyncio.run(all_of_them())
    assert len(order) == WAITING + 1
    assert order.index("modest") <= 2
    with pytest.raises(ZeroDivisionError):
        asyncio.run(turns.run("modest", lambda: 1 // 0))


def test_long_work_rests_while_others_ask_and_only_then(monkeypatch):
    slept, others = [], [0]
    monkeypatch.setattr(time, "sleep", slept.append)
    turns = Turns(lambda: others[0])

    def work(busy):
        for _ in range(5):
            until = time.thread_time() + 0.004
            while time.thread_time() < until:
                pass
            others[0] += busy
            turns.breathe()

    asyncio.run(turns.run("a", work, 0))
    assert not slept
    asyncio.run(turns.run("a", work, 1))
    assert sum(slept) >= 4 * 5 * 0.004
    turns.breathe()  # not long work: nothing happens


# ---------------------------------------------------------------------- connections and the log


class Wire:
    """A transport that keeps what it is given."""

    def __init__(self) -> None:
        self.closed, self.said = False, b""

    def write(self, data):
        self.said += data

    def abort(self):
        self.closed = True


class Guest:
    """As much of a connection as a crowd needs."""

    gone = False

    def __init__(self, address="a"):
        self.address, self.transport = address, Wire()

    def say(self, no):
        self.transport.write(str(no.status).encode())


@pytest.fixture
def crowd(make_client):
    def make(most=4, each=3, proxies=()):
        from askwise.web.logs import Log, Metrics

        limits = Limits(max_connections=most, max_connections_per_client=each)
        import io

        return connections.Crowd(limits, checked_proxies(list(proxies)), Metrics(), Log(io.StringIO()))

    return make


def arrive(crowd, *addresses):
    guests = [Guest(address) for address in addresses]
    for guest in guests:
        crowd.enter(guest)
    return guests


def test_the_silent_go_first_then_the_quiet_and_never_who_is_being_answered(crowd):
    crowd = crowd(most=4, each=4)
    busy, quiet, silent, newer = arrive(crowd, *"abcd")
    for guest in (busy, quiet):
        crowd.answering(guest)
    crowd.waiting(quiet)
    arrive(crowd, "e")
    assert [g.gone for g in (busy, quiet, silent, newer)] == [False, False, True, False]
    assert silent.transport.said == b"503"
    crowd.answering(newer)
    for guest in list(crowd.fresh):
        crowd.answering(guest)
    arrive(crowd, "f")
    assert quiet.gone
    assert not quiet.transport.said  # there was nothing to answer
    for guest in list(crowd.fresh):
        crowd.answering(guest)
    (last,) = arrive(crowd, "g")  # all others are being answered
    assert last.gone
    assert last.transport.closed
    assert crowd.metrics.connections == 4
    for guest in (busy, newer, last):
        crowd.leave(guest)
    assert crowd.metrics.connections == 2


def test_one_client_cannot_have_all_connections_unless_it_is_our_proxy(crowd):
    here = crowd(most=10, each=3)
    (other,) = arrive(here, "b")
    mine = arrive(here, *"aaaaa")
    assert [g.gone for g in mine] == [True, True, False, False, False]
    assert not other.gone
    assert here.by_client == {"a": 3, "b": 1}
    proxy = crowd(most=10, each=3, proxies=["10.0.0.1"])
    assert not any(g.gone for g in arrive(proxy, *["10.0.0.1"] * 9))
    for guest in mine:
        here.leave(guest)
    assert here.by_client == {"b": 1}


def test_a_crowd_is_a_line_of_the_log_not_a_line_for_each(crowd):
    crowd = crowd(most=2)
    arrive(crowd, *[str(i) for i in range(50)])
    lines = [json.loads(line) for line in crowd.log.stream.getvalue().splitlines()]
    assert [line["event"] for line in lines] == ["crowded"]
    assert crowd.metrics.closed == {"crowded": 48}


def test_more_connections_than_file_descriptors_are_refused_at_the_start(monkeypatch):
    import resource

    given = []
    monkeypatch.setattr(resource, "setrlimit", lambda _, pair: given.append(pair))
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1024, 4096))
    connections.enough_files(Limits())
    assert not given
    connections.enough_files(Limits(max_connections=2000))
    assert given[0][0] > 2000
    with pytest.raises(InputError, match=r"--max-connections is 5000, .* allows 4096; give at most"):
        connections.enough_files(Limits(max_connections=5000))


def test_whatever_goes_wrong_the_log_is_json():
    program = """
import asyncio, logging, threading, warnings
from askwise.web.logs import Log
from askwise.web.server import only_json
only_json(Log())
async def main():
    loop = asyncio.get_running_loop()
    loop.call_exception_handler({"message": "socket.accept() out of system resource", "exception": OSError(24, "files")})
    loop.call_exception_handler({"message": "no exception"})
    logging.getLogger("uvicorn.error").warning("Invalid HTTP request received.")
    logging.getLogger("elsewhere").error("two\\nlines")
    warnings.warn("careful")
    thread = threading.Thread(target=lambda: 1 // 0)
    thread.start()
    thread.join()
asyncio.run(main())
1 // 0
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert len(lines) == 7
    assert [line["kind"] for line in lines if line["event"] == "failure"] == ["OSError", "ZeroDivisionError", "ZeroDivisionError"]


def test_a_refusal_waits_a_moment_while_others_ask_and_only_then(monkeypatch):
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    monkeypatch.setattr(request_guard.asyncio, "sleep", sleep)
    metrics, sent = Metrics(), []

    async def nothing_here(scope, receive, send):
        await send({"type": "http.response.start", "status": 404, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    async def send(message):
        sent.append(message)

    guard = request_guard.RequestGuard(nothing_here, ServiceSettings(), Log(stream=io.StringIO()), metrics)
    scope = {"type": "http", "method": "GET", "path": "/x", "headers": [(b"host", b"localhost")], "client": ("127.0.0.1", 1)}
    asyncio.run(guard({**scope}, None, send))
    assert waited == []
    metrics.in_progress = 1  # somebody else is being answered
    asyncio.run(guard({**scope}, None, send))
    assert waited == [request_guard.PAUSE]
    assert [m["status"] for m in sent if m["type"] == "http.response.start"] == [404, 404]
