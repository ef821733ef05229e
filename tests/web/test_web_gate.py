"""Who may ask, how much, how fast, and what every answer carries."""

import json

import pytest

from askwise.errors import InputError
from askwise.web.request_guard import Rate, cookie_for
from askwise.web.settings import Limits, checked_token, is_loopback

NEXT = "/api/models/patients/next"
JSON = {"content-type": "application/json"}
PAGES = ["/", "/m/patients", "/m/patients/model", "/docs", "/login", "/static/askwise.js", "/health", "/nothing", "/api/models"]


@pytest.mark.parametrize("path", PAGES)
def test_every_answer_carries_the_headers_that_protect_it(client, path):
    headers = client.get(path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "same-origin"  # nothing to others; with "no-referrer" our own forms had no Origin
    assert not [name for name in headers if name.startswith("access-control")]
    assert headers["cache-control"] == ("no-store" if not path.startswith("/static") else "public, max-age=86400, immutable")


@pytest.mark.parametrize("path", PAGES)
def test_no_page_asks_for_anything_from_elsewhere(client, path):
    text = client.get(path).text.replace("http://www.w3.org/2000/svg", "")
    assert "://" not in text
    assert "<style" not in text
    assert ' style="' not in text
    assert "<script>" not in text
    assert not [word for word in ("onclick", "onload", "onsubmit", "javascript:") if word in text]


def test_no_cors(client):
    response = client.options(NEXT, headers={"origin": "https://elsewhere.example", "access-control-request-method": "POST"})
    assert response.status_code == 405
    assert not [name for name in response.headers if name.startswith("access-control")]


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "", "application/json; charset=latin-1"])
def test_only_json_is_taken_by_the_api(client, kind):
    response = client.post(NEXT, content="{}", headers={"content-type": kind})
    assert response.status_code == 415
    assert "application/json" in response.json()["error"]
    assert client.post(NEXT, content="{}", headers={"content-type": "application/json; charset=utf-8"}).status_code == 200
    assert client.post(NEXT, content="{}", headers={**JSON, "content-encoding": "gzip"}).status_code == 415


def test_only_forms_are_taken_by_the_page(client):
    assert client.post("/m/patients/start", content="{}", headers=JSON).status_code == 415


def test_large_bodies_are_refused_whether_their_size_is_told_or_not(client, make_client):
    ten = b'{"case_id": "' + b"x" * (10 << 20) + b'"}'

    async def pieces():
        for i in range(0, len(ten), 65536):
            yield ten[i : i + 65536]

    for body in (ten, pieces()):
        response = client.post(NEXT, content=body, headers=JSON)
        assert response.status_code == 413
        assert "1048576 bytes" in response.json()["error"]
    small = make_client({"max_body": 100, "max_cases": 2})
    assert small.post(NEXT, content=json.dumps({"case_id": "x" * 20}), headers=JSON).status_code == 200
    assert small.post(NEXT, content=json.dumps({"case_id": "x" * 120}), headers=JSON).status_code == 413
    many = small.post("/api/models/patients/batch", content=json.dumps({"cases": [{}] * 3}), headers=JSON)
    assert many.status_code == 422
    assert "one request may hold 2" in many.json()["error"]


def test_one_client_cannot_ask_faster_than_its_rate(make_client):
    client = make_client({"rate": 5})
    answers = [client.get("/api/models") for _ in range(30)]
    assert answers[0].status_code == 200
    late = [a for a in answers if a.status_code == 429]
    assert 10 < len(late) < 30
    assert int(late[0].headers["retry-after"]) >= 1
    assert "wait" in late[0].json()["error"]


def test_the_bucket_fills_again_and_clients_do_not_share_it():
    rate = Rate(2.0, clients=2)
    assert [bool(rate.wait("a", 0.0)) for _ in range(5)] == [False] * 4 + [True]
    assert rate.wait("a", 0.0) == pytest.approx(0.5)
    assert not rate.wait("b", 0.0)
    assert not rate.wait("a", 0.5)
    assert not rate.wait("c", 1.0)
    assert len(rate.buckets) == 2  # bounded, whatever comes
    assert not any(Rate(0).wait("a", 0.0) for _ in range(100))


def test_a_token_opens_everything_but_health(make_client):
    client = make_client(token="a-long-secret")
    assert client.get("/health").status_code == 200
    for given in ({}, {"authorization": "Bearer wrong"}, {"authorization": "Basic a-long-secret"}, {"authorization": "Bearer"}):
        for path in ("/api/models", "/metrics"):
            response = client.get(path, headers=given)
            assert response.status_code == 401
            assert response.headers["www-authenticate"] == "Bearer"
            assert "Bearer TOKEN" in response.json()["error"]
    right = {"authorization": "Bearer a-long-secret"}
    assert client.get("/api/models", headers=right).status_code == 200
    assert client.get("/openapi.json", headers=right).json()["security"] == [{"token": []}]


def test_a_person_logs_in_with_the_token_and_the_cookie_does_not_open_the_api(make_client):
    client = make_client(token="a-long-secret")
    away = client.get("/", follow_redirects=False)
    assert (away.status_code, away.headers["location"]) == (303, "/login")
    assert client.post("/login", data={"token": "wrong"}).status_code == 403
    response = client.post("/login", data={"token": "a-long-secret"}, follow_redirects=False)
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert "a-long-secret" not in cookie
    assert client.get("/m/patients", follow_redirects=False).status_code == 200
    assert client.get("/api/models").status_code == 401
    client.cookies.set("askwise", cookie_for("another"))
    client.cookies.delete("askwise")
    assert client.get("/", follow_redirects=False).status_code == 303


def test_a_service_of_this_machine_answers_under_no_other_name(make_client):
    client = make_client(local=True)
    assert client.get("/health", headers={"host": "rebound.example"}).status_code == 421
    for host in ("localhost:8000", "127.0.0.1:8000", "[::1]:8000", "localhost", "LOCALHOST:1"):
        assert client.get("/health", headers={"host": host}).status_code == 200, host


def test_whoever_opens_it_to_others_needs_a_token():
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert is_loopback("localhost")
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("example.org")
    assert checked_token("127.0.0.1", None) is None
    assert checked_token("0.0.0.0", "secret") == "secret"
    with pytest.raises(InputError, match="set a token"):
        checked_token("0.0.0.0", None)
    for token in ("", "two words", "schlüssel"):
        with pytest.raises(InputError, match="token"):
            checked_token("127.0.0.1", token)


@pytest.mark.parametrize("wrong", [{"max_body": 0}, {"rate": -1}, {"rate": float("nan")}, {"time_limit": 0}, {"max_cases": -5}])
def test_limits_that_make_no_sense_are_refused(wrong):
    with pytest.raises(InputError, match=next(iter(wrong)).replace("_", "-")):
        Limits(**wrong)


def lines(client):
    return [json.loads(line) for line in client.lines.getvalue().splitlines()]


def test_the_log_is_json_and_holds_no_values_unless_asked(make_client):
    secret = {"case_id": "Mr Miller", "answers": {"pressure": 1.375}}
    for values in (False, True):
        client = make_client(log_values=values)
        client.post(NEXT, json=secret)
        client.post(NEXT, json={"answers": {"pressure": "secret word"}})
        client.post("/m/patients/start", data={"case_id": "Mr Miller"})
        text = client.lines.getvalue()
        said = lines(client)
        assert [(e["event"], e["method"], e["status"]) for e in said] == [
            ("request", "POST", 200), ("request", "POST", 422), ("request", "POST", 200),
        ]  # fmt: skip
        assert ("Miller" in text) == values
        assert ("1.375" in text) == values


def test_our_own_mistakes_are_a_500_without_details_and_the_service_goes_on(make_client, monkeypatch):
    client = make_client()
    from askwise.web import api

    def fails(*_):
        raise RuntimeError("with the value 1.375")

    with monkeypatch.context() as patched:
        patched.setattr(api, "answer_of", fails)
        response = client.post(NEXT, json={})
    assert response.status_code == 500
    assert "1.375" not in response.text + client.lines.getvalue()
    failure = next(e for e in lines(client) if e["event"] == "failure")
    assert failure["kind"] == "RuntimeError"
    assert any("fails" in place for place in failure["place"])
    assert client.post(NEXT, json={}).status_code == 200
