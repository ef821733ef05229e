"""`askwise serve` as a process: quick to start, without torch, patient with nobody, and gone when it is told to."""

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
        "two models called 'patients'": [model_files[0], tmp_path / "patients.askwise"],
        "there is no file": [tmp_path / "nothing.askwise"],
        "--max-body": [model_files[0], "--max-body", "0"],
        "cannot listen": [model_files[0], "--port", "70000"],
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
    from askwise import Recorded
    from patients import PRICES, classifier

    table, y = frame
    table = table.assign(says=y)
    classifier(**PRICES, external=Recorded("says", ["age"])).fit(table, y).save(tmp_path / "external.askwise")
    assert main(["serve", str(tmp_path / "external.askwise")]) == 2
    assert "existing classifier" in capsys.readouterr().err
