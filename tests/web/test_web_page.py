"""The page without a browser: what its forms send and get."""

import html
import json
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.models import family, table

from askwise.session.next_steps import next_steps
from askwise.web import view

CASE = {"pressure": "0.4", "smoker": "true", "colour": "red", "town": "Bonn", "index": "2.5"}


def hidden(page, name="state"):
    return html.unescape(re.search(rf'name="{name}" value="([^"]*)"', page)[1])


def heading(page):
    return html.unescape(re.search(r"<h1[^>]*>(.*?)</h1>", page, re.S)[1])


def send(client, fields, name="patients", status=200):
    response = client.post(f"/m/{name}", data=fields)
    assert response.status_code == status, response.text
    return response.text


@pytest.fixture
def started(client):
    response = client.post("/m/patients/start", data={"known.0.0": "63", "case_id": "A-17"})
    assert response.status_code == 200
    return response.text


def test_a_case_goes_as_its_session_goes(client, models, started):
    session, page = models["patients"].session({"age": 63}, case_id="A-17"), started
    for _ in range(9):
        step = session.next()
        if step.decision is not None:
            break
        assert heading(page) == step.test
        assert f"{step.test_cost:.2f}\u00a0€" in page
        session.tell(step.test, CASE[step.test])
        page = send(client, {"state": hidden(page), "test": step.test, "value.0": CASE[step.test], "do": "tell"})
    assert heading(page) == step.decision
    assert view.percent(step.probability) in page
    record = client.post("/m/patients/record.json", data={"state": hidden(page)})
    assert record.headers["content-disposition"] == 'attachment; filename="A-17.json"'
    assert record.json()["answers"] == session.trace()["answers"]
    assert type(session).replay(models["patients"], record.json()).next().decision == step.decision


def test_what_is_missing_can_be_said_at_the_start(make_client):
    model = family(table()[0], table()[1], missing="informative")
    client, n = make_client(of={"m": model}), model.schema.offered.index("pressure")
    start = client.get("/m/m").text
    assert re.findall(r'name="missing\.(\d+)"', start) == [str(model.schema.offered.index(t)) for t in model.form.tells]
    assert "what is missing" not in re.sub(r"<p.*?</p>", "", start)
    page = client.post("/m/m/start", data={f"missing.{n}": "1", "case_id": "A-17"}).text
    step = model.session(refused=["pressure"], case_id="A-17").next()
    assert heading(page).startswith(step.test or "Decision")
    assert view.revived(model, hidden(page)).refused == ["pressure"]
    wrong = client.post("/m/m/start", data={f"missing.{n}": "1", "budget": "x"})
    assert wrong.status_code == 422
    assert f'name="missing.{n}" value="1" checked' in wrong.text


def test_refuse_undo_stop_and_choose(client, started):
    first, state = heading(started), hidden(started)
    assert 'value="undo"' not in started
    refused = send(client, {"state": state, "test": first, "do": "refuse"})
    assert heading(refused) != first
    undone = send(client, {"state": hidden(refused), "do": "undo"})
    assert heading(undone) == first
    assert json.loads(hidden(undone))["events"][-1] == {"do": "undo"}  # the record keeps it
    stopped = send(client, {"state": state, "do": "stop"})
    assert "decided on request" in stopped
    assert heading(send(client, {"state": hidden(stopped), "do": "undo"})) == first
    other = next(test for test in CASE if test != first)
    chosen = send(client, {"state": state, "do": "choose", "other": other})
    assert heading(chosen) == other
    told = send(client, {"state": hidden(chosen), "test": other, "value.0": CASE[other], "do": "tell", "free": "1"})
    assert "free" in told


def test_a_click_asks_one_question_however_many_were_answered(client, models, monkeypatch):
    from askwise.session import session

    calls = []
    monkeypatch.setattr(session, "next_steps", lambda cases: calls.append(len(cases)) or next_steps(cases))
    page = client.post("/m/patients/start", data={"case_id": "A-17"}).text
    for n, (test, value) in enumerate(CASE.items()):
        before = len(calls)
        page = send(client, {"state": hidden(page), "test": test, "value.0": value, "do": "tell"})
        assert calls[before:] == [1]
        once = models["patients"].session(case_id="A-17", answers=dict(list(CASE.items())[: n + 1])).next()
        assert heading(page) == (once.test or once.decision)
    before = len(calls)
    record = client.post("/m/patients/record.json", data={"state": hidden(page)}).json()
    assert len(calls[before:]) == len(CASE) + 1  # the record says what was asked before each answer
    did = [event["do"] for event in record["events"]]
    assert did[1::2] == ["tell"] * len(CASE)
    assert set(did[::2]) <= {"ask", "decide"}


def test_a_bad_value_is_refused_beside_its_field_and_can_be_insisted_on(client, started):
    fields = {"state": hidden(started), "test": "pressure", "do": "tell"}
    for text in ("<script>alert(1)</script>", "", "1e999", "nan"):
        page = send(client, {**fields, "value.0": text}, status=422)
        assert 'role="alert"' in page
        assert heading(page) == "pressure"
        assert "<script>alert" not in page
        assert "outside=True" not in page
        assert "refuse(" not in page
    far = send(client, {**fields, "value.0": "1000"}, status=422)
    assert "tick the box below" in far
    assert 'value="1000"' in far
    insisted = send(client, {**fields, "value.0": "1000", "outside": "1"})
    assert "1000" in insisted


def test_a_start_that_cannot_be_used_is_shown_again_with_what_was_typed(client):
    for fields, words in (({"known.0.0": "old"}, "age"), ({"budget": "-3"}, "budget"), ({"known.3.0": "mauve"}, "mauve")):
        response = client.post("/m/patients/start", data={"case_id": "A-17", **fields})
        assert response.status_code == 422
        assert words in response.text
        assert 'value="A-17"' in response.text


TAMPERED = [
    "",
    "{",
    "[]",
    "null",
    '{"case_id": 1}',
    '{"case_id": "a", "draw": 1e400}',
    '{"case_id": "a", "draw": 0.5, "known": {"nose": 1}}',
    '{"case_id": "a", "draw": 0.5, "events": [{"do": "fly"}]}',
    '{"case_id": "a", "draw": 0.5, "events": [{"do": "undo"}]}',
    '{"case_id": "a", "draw": 0.5, "events": [' + '{"do": "stop"},' * 600 + '{"do": "undo"}]}',
]


@pytest.mark.parametrize("state", TAMPERED, ids=range(len(TAMPERED)))
def test_a_state_that_was_tampered_with_is_a_sentence(client, state):
    page = send(client, {"state": state, "do": "stop"}, status=422)
    assert heading(page) == "That did not work"


names = st.sampled_from(["state", "test", "do", "other", "value.0", "free", "outside"]) | st.text(max_size=5)
texts = st.sampled_from(["tell", "refuse", "undo", "choose", "pressure", ""]) | st.text(max_size=20)


@settings(max_examples=60)
@given(fields=st.dictionaries(names, texts, min_size=1), good=st.booleans())
def test_fuzzed_forms_get_a_page(client, models, fields, good):
    if good:
        fields["state"] = view.carried(models["patients"].session(case_id="a"))
    response = client.post("/m/patients", data=fields)
    assert response.status_code in (200, 422)
    assert "<h1" in response.text


def test_the_slider_shows_what_a_budget_comes_to(client, models):
    model = models["patients"]
    for at in (0, 37, 100):
        page = client.get(f"/m/patients/model?at={at}").text
        expected = view.at_average(model, round(model.saturation.cost * at / 100, 6)).expected
        assert view.money(expected["cost"], "€", True) in page
        assert view.percent(round(expected["accuracy"], 6)) in page
        assert f'value="{at}"' in page
    for wrong in ("101", "-1", "x", "1e9", "0" * 50):
        assert client.get(f"/m/patients/model?at={wrong}").status_code == 404


def test_a_model_without_recorded_purchases_says_so(models):
    from dataclasses import replace

    unrecorded = replace(models["patients"], facts={k: v for k, v in models["patients"].facts.items() if k != "usage"})
    assert view.model_view(unrecorded, None)["used"] is None
    assert view.model_view(models["patients"], 100)["used"]


def test_amounts_and_shares_in_words():
    assert view.money(22.78, "$") == "$22.78"
    assert view.money(1234.5, "€") == "1,234.50\u00a0€"
    assert view.money(3, "minutes") == "3\u00a0minutes"
    assert view.money(0.125, "") == "0.125"
    assert view.money(1 / 3, "minutes", True) == "0.33\u00a0minutes"
    assert view.money(None, "$") == "–"
    assert view.percent(0.5) == "50\u00a0%"
    assert view.percent(0.99999) == "over 99.9\u00a0%"
    assert view.percent(1.0) == "100\u00a0%"
    assert view.ticks(0, 23.2) == [0, 5, 10, 15, 20]


def test_the_documentation_names_every_address_and_field(client):
    page, schema = client.get("/docs").text, client.get("/openapi.json").json()
    for path in schema["paths"]:
        assert html.escape(path) in page
    for name, part in schema["components"]["schemas"].items():
        assert f'id="{name}"' in page
        for field in part.get("properties", {}):
            assert f"<code>{field}</code>" in page
