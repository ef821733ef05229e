"""`askwise serve --workers N`: one port, one set of limits, and a worker that dies is replaced."""

import contextlib
import json
import os
import signal
import socket
import time
from pathlib import Path

import httpx
import pytest
from tests.web.process import Process

from askwise.cli import main
from askwise.web.clients import Rate
from askwise.web.logs import Log, Metrics
from askwise.web.settings import Limits
from askwise.web.workers import Shared, SharedRate, _forked

WORKERS = 2


def children(process: Process) -> set[int]:
    pid = process.process.pid
    return {int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def until(holds, most: float = 10.0) -> None:
    ends = time.monotonic() + most
    while not holds():
        assert time.monotonic() < ends
        time.sleep(0.05)


def events(log: str, *names: str) -> list[dict]:
    return [event for line in log.splitlines() if (event := json.loads(line))["event"] in names]


@pytest.fixture
def several(model_files):
    process = Process(model_files[0], "--workers", WORKERS, "--rate", "0")
    until(lambda: len(children(process)) == WORKERS)
    yield process
    if process.process.poll() is None:
        process.stop()


def test_any_worker_answers_any_request_and_all_are_counted(several):
    case, asked = {"case_id": "A-17", "answers": {}}, 0
    first = httpx.post(f"{several.url}/api/models/patients/next", json=case).json()
    for _ in range(20):  # each over a connection of its own, so that both workers meet the case
        assert httpx.post(f"{several.url}/api/models/patients/next", json=case).json() == first
        asked += 1
    route = 'askwise_requests_total{route="/api/models/{model}/next",method="POST",status="200"} '
    until(lambda: f"{route}{asked + 1}\n" in httpx.get(f"{several.url}/metrics").text)


def test_a_worker_that_dies_is_replaced_and_nothing_that_was_counted_is_lost(several):
    for _ in range(10):
        httpx.post(f"{several.url}/api/models/patients/next", json={})
    time.sleep(2.2)  # until the workers have told each other
    before = children(several)
    for victim in sorted(before):
        os.kill(victim, signal.SIGKILL)
    until(lambda: len(children(several) - before) == WORKERS)
    assert httpx.post(f"{several.url}/api/models/patients/next", json={}).status_code == 200
    until(lambda: 'method="POST",status="200"} 11\n' in httpx.get(f"{several.url}/metrics").text)
    code, log = several.stop()
    assert code == 0
    assert {event["process"] for event in events(log, "worker died")} == before
    assert not events(log, "failure")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_they_stop_in_good_order(several, number):
    with httpx.Client() as client:  # keeps its connection open
        assert client.post(f"{several.url}/api/models/patients/next", json={}).status_code == 200
        workers, began = children(several), time.monotonic()
        several.process.send_signal(number)
        several.process.wait(20)
    code, log = several.stop()
    assert code == 0
    assert time.monotonic() - began < 8
    assert json.loads(log.splitlines()[-1])["event"] == "stopped"
    assert not events(log, "worker died", "failure")
    assert not any(Path(f"/proc/{worker}").exists() for worker in workers)


def test_workers_end_when_their_parent_is_gone(several):
    workers = children(several)
    several.process.kill()
    several.process.wait(20)
    until(lambda: not any(Path(f"/proc/{worker}").exists() for worker in workers))
    several.stop()


def test_the_rate_of_a_client_holds_for_all_workers_together(model_files):
    process = Process(model_files[0], "--workers", WORKERS, "--rate", "1")
    try:
        until(lambda: len(children(process)) == WORKERS)
        began, statuses = time.monotonic(), [httpx.get(f"{process.url}/api/models").status_code for _ in range(30)]
        assert 2 <= statuses.count(200) <= 2 + (time.monotonic() - began) + 1  # two at once, then one a second
        assert set(statuses) == {200, 429}
    finally:
        process.stop()


def test_there_are_no_more_connections_than_one_process_would_have(model_files):
    limits = "--max-connections", "10", "--max-connections-per-client", "8"
    process = Process(model_files[0], "--workers", WORKERS, "--rate", "0", *limits)
    held = []
    try:
        until(lambda: len(children(process)) == WORKERS)
        for _ in range(60):  # silent ones
            held.append(socket.create_connection(("127.0.0.1", process.port), 5))
        time.sleep(0.5)

        def is_open(sock: socket.socket) -> bool:
            sock.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                with contextlib.suppress(ConnectionResetError):
                    sock.recv(1000)
                return False
            return True

        assert 1 <= sum(map(is_open, held)) <= 8
        for _ in range(10):  # they keep nobody out
            assert httpx.get(f"{process.url}/health").status_code == 200
    finally:
        for sock in held:
            sock.close()
        process.stop()


def test_shared_buckets_are_those_of_one_process():
    with Shared() as shared:
        one, *both = Rate(2.0), SharedRate(2.0, shared), SharedRate(2.0, shared)
        for i, now in enumerate([0.0, 0.0, 0.0, 0.1, 0.1, 0.2, 0.9, 1.5, 1.5, 9.0, 9.0, 9.0, 9.0, 9.0]):
            for client in ("10.0.0.1", "10.0.0.2"):
                assert both[i % 2].wait(client, now) == pytest.approx(one.wait(client, now))
        assert SharedRate(0.0, shared).wait("10.0.0.1", 9.0) == 0
        folder = shared.folder
    assert not folder.exists()


def test_each_worker_has_its_part_of_the_connections():
    part = Limits(max_connections=11, max_connections_per_client=7).part(3)
    assert (part.max_connections, part.max_connections_per_client) == (3, 2)


def test_counters_add_up():
    one, other = Metrics(), Metrics()
    for metrics in (one, other, other):
        metrics.request("/a", "GET", 200, 0.002)
        metrics.answer("m", "ask")
        metrics.closed["late"] += 1
    one.others = lambda: [json.loads(json.dumps(other.counters()))]
    text = one.text()
    assert 'requests_total{route="/a",method="GET",status="200"} 3' in text
    assert 'answers_total{model="m",kind="ask"} 3' in text
    assert 'request_seconds_count{route="/a"} 3' in text
    assert 'connections_closed_total{reason="late"} 3' in text
    assert one.requests["/a", "GET", 200] == 1  # its own are still its own


@pytest.mark.parametrize("n", [0, -1, 257])
def test_how_many_there_may_be(model_files, capsys, n):
    assert main(["serve", str(model_files[0]), "--workers", str(n)]) == 2
    assert f"--workers is {n}; it must be from 1 to 256" in capsys.readouterr().err


def test_connections_must_suffice_for_all(model_files, capsys):
    assert main(["serve", str(model_files[0]), "--workers", "4", "--max-connections-per-client", "3"]) == 2
    assert "--max-connections-per-client is 3, which 4 workers share; it must be 4 or more" in capsys.readouterr().err


def test_a_worker_that_fails_says_where_before_it_ends(tmp_path):
    def work(worker: int) -> None:
        raise KeyError("the value of a case")

    with open(tmp_path / "log", "w") as stream:
        status = os.waitpid(_forked(work, 1, Log(stream)), 0)[1]
    assert os.waitstatus_to_exitcode(status) == 1
    (failed,) = events((tmp_path / "log").read_text(), "failure")
    assert (failed["kind"], failed["where"]) == ("KeyError", "worker 1")
    assert "of a case" not in str(failed)
