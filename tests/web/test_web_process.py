"""`askwise serve` as a process: quick to start, without torch, patient with nobody, and gone when it is told to."""

import contextlib
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
from tests.web.process import Process

from askwise.cli import main

JSON = {"content-type": "application/json"}


def ask(served, body="{}"):
    return httpx.post(f"{served.url}/api/models/patients/next", content=body, headers=JSON)


def test_it_answers_and_does_not_import_torch(served):
    assert ask(served).json()["test"]
    maps = Path(f"/proc/{served.process.pid}/maps").read_text()
    assert "numpy" in maps
    for heavy in ("torch", "lightgbm", "sklearn", "pandas"):
        assert f"/{heavy}/" not in maps


def test_what_it_imports_is_what_it_needs(model_files):
    """Also modules without a library of their own."""
    program = (
        "import sys; from pathlib import Path; from askwise.web.server import create_app, load_models; "
        f"create_app(load_models([Path({str(model_files[0])!r})])); "
        "print([m for m in ('torch', 'pandas', 'sklearn', 'lightgbm', 'matplotlib', 'onnxruntime') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, text=True).stdout == "[]\n"


def test_answers_are_sent_at_once(served):
    """Not held back until the client has acknowledged the head, which takes 40 ms."""
    with httpx.Client() as client:
        client.get(f"{served.url}/health")
        took = []
        for _ in range(20):
            began = time.perf_counter()
            client.get(f"{served.url}/health")
            took.append(time.perf_counter() - began)
    assert min(took) < 0.03


def test_many_at_once_get_what_each_would_get_alone(served):
    """They are computed together, and nobody gets the answer of another."""
    from concurrent.futures import ThreadPoolExecutor

    bodies = [
        json.dumps({"case_id": f"c{i}", "answers": {"town": ["Bonn", "Rom"][i % 2]}, "stop": i % 5 == 0}) for i in range(40)
    ]
    alone = [ask(served, body).json() for body in bodies]
    with ThreadPoolExecutor(8) as many:
        together = list(many.map(lambda body: ask(served, body).json(), bodies))
    for one, other in zip(alone, together, strict=True):
        assert (one["case_id"], one["test"], one["decision"]) == (other["case_id"], other["test"], other["decision"])


def test_ten_megabytes_are_refused_and_heard(served):
    ten = b'{"case_id": "' + b"x" * (10 << 20) + b'"}'
    for body in (ten, iter([ten[:5_000_000], ten[5_000_000:]])):  # the second without a length
        response = httpx.post(f"{served.url}/api/models/patients/next", content=body, headers=JSON)
        assert response.status_code == 413
    assert ask(served).status_code == 200


def conversation(served, *pieces, pause=0.3, most=8.0):
    """Sends pieces slowly; what comes back until the other side closes."""
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", served.port)) as sock:
        sock.settimeout(most)
        for piece in pieces:
            try:
                sock.sendall(piece)
            except OSError:
                break
            time.sleep(pause)
        back = b""
        while part := sock.recv(65536):
            back += part
    return back, time.monotonic() - began


def test_slow_clients_are_told_so_and_let_go(served):
    head = b"POST /api/models/patients/next HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    slow_body = conversation(served, head + b"Content-Length: 50\r\n\r\n", b"{", b" ")
    slow_chunks = conversation(served, head + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n{\r\n", b"1\r\n \r\n")
    slow_head = conversation(served, b"GET /health HTTP/1.1\r\n", b"Host: local", b"host\r\n")
    for back, seconds in (slow_body, slow_chunks, slow_head):
        assert back.startswith(b"HTTP/1.1 408"), back
        assert b"in time" in back or b"within 1.5 s" in back
        assert seconds < 6
    silent, seconds = conversation(served)
    assert seconds < 6
    assert silent.startswith(b"HTTP/1.1 408")


def test_a_body_that_is_announced_and_never_comes_is_let_go_whatever_the_method(served):
    from concurrent.futures import ThreadPoolExecutor

    length, chunked = b"Content-Length: 1000000\r\n\r\n", b"Transfer-Encoding: chunked\r\n\r\n"
    here, foreign = b"Host: localhost\r\n", b"Origin: http://elsewhere.example\r\n"
    sent = [
        *((method + b" /health HTTP/1.1\r\n" + here + length, b"408") for method in (b"GET", b"HEAD", b"OPTIONS", b"DELETE")),
        (b"GET /health HTTP/1.1\r\n" + here + chunked, b"408"),
        # what is refused by its head is told so, and let go as well
        (b"POST /m/patients/start HTTP/1.1\r\nHost: elsewhere.example\r\n" + length, b"421"),
        (b"POST /m/patients/start HTTP/1.1\r\n" + here + foreign + length, b"403"),
        (b"POST /m/patients/start HTTP/1.1\r\n" + here + foreign + b"Expect: 100-continue\r\n" + length, b"403"),
    ]
    with ThreadPoolExecutor(len(sent)) as many:
        answers = list(many.map(lambda head: conversation(served, head[0], b"1", b"1"), sent))
    for (head, status), (back, seconds) in zip(sent, answers, strict=True):
        assert back.startswith(b"HTTP/1.1 " + status), (head, back)
        assert b"connection: close" in back.lower()
        assert seconds < 6


def test_a_small_body_of_a_get_is_read_and_the_connection_goes_on(served):
    with httpx.Client() as client:
        for _ in range(3):
            assert client.request("GET", f"{served.url}/health", content=b"{}").status_code == 200
            assert client.post(f"{served.url}/m/patients/start", content=b"x" * 50_000).status_code == 415


def test_neither_silence_nor_trickles_keep_anyone_out_and_files_never_run_out(model_files):
    """At 40 times the limit of connections, with hardly more file descriptors than that limit needs."""
    import resource

    process = Process(model_files[0], "--rate", "0", "--max-connections", "10", "--max-connections-per-client", "9")
    held = []
    try:
        pid = process.process.pid
        resource.prlimit(pid, resource.RLIMIT_NOFILE, (140, 140))
        with httpx.Client(timeout=5) as established:
            ask = f"{process.url}/api/models/patients/next"
            assert established.post(ask, json={}).status_code == 200
            for i in range(400):
                sock = socket.create_connection(("127.0.0.1", process.port), 5)
                held.append(sock)
                if i % 2:
                    with contextlib.suppress(OSError):
                        sock.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\nx")
                if i % 50 == 0:
                    assert established.post(ask, json={}).status_code == 200
            assert httpx.post(ask, json={}, timeout=5).status_code == 200  # a new one
            assert established.post(ask, json={}).status_code == 200
            assert len(list(Path(f"/proc/{pid}/fd").iterdir())) < 60
            metrics = established.get(f"{process.url}/metrics").text
        assert 'connections_closed_total{reason="crowded"}' in metrics
        assert int(metrics.split("\naskwise_connections ")[1].split()[0]) <= 10
    finally:
        for sock in held:
            sock.close()
        _, log = process.stop()
    said = [json.loads(line) for line in log.splitlines()]  # every line
    assert not [e for e in said if e["event"] == "failure"]
    assert len([e for e in said if e["event"] == "crowded"]) < 5


def test_others_are_answered_while_slow_clients_wait(served):
    with socket.create_connection(("127.0.0.1", served.port)) as sock:
        sock.sendall(b"POST /api/models/patients/next HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
                     b"Content-Type: application/json\r\n\r\n{")  # fmt: skip
        assert ask(served).status_code == 200


def test_nonsense_is_a_400_and_the_service_stays(served):
    for text in (b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n", b"X" * 70_000):
        back, _ = conversation(served, text, pause=0)
        assert back.startswith(b"HTTP/1.1 4"), back
    assert ask(served).status_code == 200


def test_it_stops_in_good_order(model_files):
    process = Process(model_files[0], "--log-values")
    with httpx.Client() as client:  # keeps its connection open
        assert client.post(f"{process.url}/api/models/patients/next", json={"case_id": "A-17"}).status_code == 200
        began = time.monotonic()
        code, log = process.stop()
    assert code == 0
    assert time.monotonic() - began < 8
    said = [json.loads(line) for line in log.splitlines()]
    assert said[-1]["event"] == "stopped"
    assert next(e for e in said if e["event"] == "request")["values"]["case_id"] == "A-17"


def test_the_command_line_refuses_in_one_sentence(model_files, capsys, tmp_path):
    (tmp_path / "patients.askwise").write_bytes(model_files[0].read_bytes())
    wrong = {
        "set a token": [model_files[0], "--host", "0.0.0.0"],
        "two models are called 'patients'": [model_files[0], tmp_path / "patients.askwise"],
        "there is no file": [tmp_path / "nothing.askwise"],
        "--max-body": [model_files[0], "--max-body", "0"],
        "cannot listen": [model_files[0], "--port", "70000"],
        "--trusted-proxy is 'proxy'": [model_files[0], "--trusted-proxy", "proxy", "--token", "x"],
        "through a proxy; set a token": [model_files[0], "--trusted-proxy", "127.0.0.1"],
        "file descriptors": [model_files[0], "--max-connections", "100000000"],
    }
    for words, argv in wrong.items():
        assert main(["serve", *map(str, argv)]) == 2, words
        error = capsys.readouterr().err
        assert words in error
        assert len(error.splitlines()) == 1


def test_a_port_in_use_is_a_sentence(served, model_files, capsys):
    assert main(["serve", str(model_files[0]), "--port", str(served.port)]) == 2
    assert "cannot listen" in capsys.readouterr().err


def test_a_token_from_the_environment(model_files):
    process = Process(model_files[0], "--host", "0.0.0.0", ASKWISE_TOKEN="a-long-secret")
    try:
        url = f"http://127.0.0.1:{process.port}/api/models"
        assert httpx.get(url).status_code == 401
        assert httpx.get(url, headers={"authorization": "Bearer a-long-secret"}).status_code == 200
        assert "a-long-secret" not in "".join(process.process.args)
    finally:
        code, log = process.stop()
    assert "a-long-secret" not in log
    assert code == 0


def test_a_model_that_no_session_can_use_is_refused_at_the_start(frame, tmp_path, capsys):
    from tests.support.patients import PRICES, classifier

    from askwise import Recorded

    table, y = frame
    table = table.assign(says=y)
    classifier(**PRICES, external=Recorded("says", ["age"])).fit(table, y).save(tmp_path / "external.askwise")
    assert main(["serve", str(tmp_path / "external.askwise")]) == 2
    assert "existing classifier" in capsys.readouterr().err
