"""The JSON API: the same answers as a session's, a clear 4xx for everything else."""

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from askwise.web.bodies import RIGHT, BatchBody, CaseBody

NEXT = "/api/models/patients/next"


def post(client, path, body, **headers):
    content = body if isinstance(body, (bytes, str)) else json.dumps(body)
    return client.post(path, content=content, headers={"content-type": "application/json", **headers})


def refused(response, *words, status=422):
    assert response.status_code == status, response.text
    sentence = response.json()["error"]
    assert set(response.json()) == {"error"}
    assert "\n" not in sentence
    for word in words:
        assert word in sentence, sentence


def test_a_whole_case_as_a_session_goes_through_it(client, models, frame):
    table, _ = frame
    rows = [i for i in range(40) if not table.iloc[i].isna().any()][:6]
    for name, model in models.items():
        for i in rows:
            row, case = table.iloc[i].to_dict(), {"case_id": f"case {i}", "known": {}, "answers": {}}
            if name == "patients":
                case["known"] = {"age": row["age"]}
            session = model.session(case["known"], case_id=case["case_id"])
            for _ in range(20):
                got, step = post(client, f"/api/models/{name}/next", case).json(), session.next().to_dict()
                assert got.pop("case_id") == case["case_id"]
                assert got["test"] == step["test"]
                assert got["decision"] == step["decision"]
                assert got["cost"] == step["cost"]
                assert got["expected"] == pytest.approx(step["expected"], abs=1e-5)
                if step["decision"] is not None:
                    break
                session.tell(step["test"], row[step["test"]])
                case["answers"][step["test"]] = row[step["test"]]
            trace = post(client, f"/api/models/{name}/trace", case).json()
            assert trace["decision"] == step["decision"]
            assert type(session).replay(model, trace).next().decision == step["decision"]


def test_a_mixture_follows_the_name_of_the_case_and_a_made_up_name_is_sent_back(client, models):
    firsts = {}
    for i in range(30):
        made = post(client, "/api/models/mixed/next", {}).json()
        assert len(made["case_id"]) == 32
        again = [post(client, "/api/models/mixed/next", {"case_id": made["case_id"]}).json() for _ in range(2)]
        assert made == again[0] == again[1]
        firsts.setdefault(made["test"], i)
    assert models["mixed"].blend.share > 0
    assert len(firsts) > 1, "thirty cases all followed one policy"


def test_refusing_stopping_and_a_budget(client, models):
    first = post(client, NEXT, {"case_id": "x"}).json()
    assert first["test"] is not None
    assert first["why"][0]["test"] == first["test"]
    without = post(client, NEXT, {"case_id": "x", "refused": [first["test"]]}).json()
    assert without["test"] != first["test"]
    assert post(client, NEXT, {"case_id": "x", "stop": True}).json()["decision"] in models["patients"].schema.classes
    assert post(client, NEXT, {"case_id": "x", "budget": 0}).json()["test_cost"] in (None, 0)


def test_a_batch_gives_what_single_requests_give_and_goes_on_after_a_bad_case(client):
    cases = [{"case_id": str(i), "answers": {"town": t}} for i, t in enumerate(["Bonn", "Rom", "Köln"] * 5)]
    cases[3] = {"case_id": "bad", "answers": {"toun": "Bonn"}}
    got = post(client, "/api/models/patients/batch", {"cases": cases}).json()["steps"]
    assert len(got) == 15
    assert "did you mean 'town'" in got[3]["error"]
    for case, step in zip(cases, got, strict=True):
        if "error" not in step:
            alone = post(client, NEXT, case).json()
            assert (step["test"], step["decision"], step["case_id"]) == (alone["test"], alone["decision"], alone["case_id"])
    assert post(client, "/api/models/patients/batch", {"cases": []}).json() == {"steps": []}


@pytest.mark.parametrize(("bad", "words"), [
    ({"budget": -1}, "budget is -1; it must be a number, 0 or more, or null"),
    ({"budget": "3"}, 'budget is "3"; it must be a number'),
    ({"zz": 1}, "there is no field 'zz'; there are 'known', "),
    ({"error": "x"}, "there is no field 'error'"),
    (5, "the case is 5; it must be an object with the fields known, "),
    ([], "the case is a list; it must be an object"),
    ({"outside": ["zz"]}, "there is no test 'zz'"),
    ({"budget": 0, "answers": {"pressure": 0.5}}, "send it in known if it cost nothing"),
])  # fmt: skip
def test_a_badly_formed_case_gets_its_own_sentence_and_the_others_go_on(client, make_client, bad, words):
    given = {"cases": [{"stop": True}, bad, {"case_id": 3}]}
    first, wrong, last = post(client, "/api/models/patients/batch", given).json()["steps"]
    assert first["decision"] is not None
    assert words in wrong["error"]
    assert set(wrong) == {"error"}
    assert last["case_id"] == "3"
    assert post(make_client(log_values=True), "/api/models/patients/batch", given).status_code == 200


def test_a_batch_without_cases_is_refused(client):
    for body, words in (
        ({}, "there is no field 'cases'; it must be a list of cases"),
        ({"cases": 3}, "cases is 3; it must be a list of cases"),
        ({"case": []}, "cases"),
        ([], "the body is a list; it must be an object with the fields cases"),
    ):
        refused(post(client, "/api/models/patients/batch", body), words)
    described = client.get("/openapi.json").json()["components"]["schemas"]["BatchBody"]["properties"]["cases"]
    assert described["items"] == {"$ref": "#/components/schemas/CaseBody"}


@pytest.mark.parametrize(("body", "words"), [
    ({"case_id": {"a": 1}}, "case_id is an object; it must be a text of 1 to 200 characters, a whole number below 2^63, or null"),
    ({"outside": 1}, "outside is 1; it must be true, false or a list of names of tests"),
    ({"outside": [1]}, "outside holds 1; it must be true, false or a list"),
    ({"outside": ["zzz"]}, "there is no test 'zzz'"),
    ([1], "the body is a list; it must be an object with the fields known, "),
    ({"refused": [5]}, "refused holds 5; it must be a list of names of tests"),
    ({"known": 3}, "known is 3; it must be an object of values by test"),
    ({"answers": {"pressure": 1000}}, "or send outside: true if it is right"),
    ({"answers": {"pressure": None}}, "give it, or name the test in refused if it is not available"),
    ({"refused": ["town"], "answers": {"town": "Rom"}}, "name it in one field only"),
    ({"known": {"town": "Rom"}, "answers": {"town": "Rom"}}, "name it in one field only"),
    ({"budget": 0.1, "answers": {"pressure": 0.5}}, "send it in known if it cost nothing"),
])  # fmt: skip
def test_errors_speak_of_fields_and_not_of_python(client, body, words):
    refused(post(client, NEXT, body), words)


def test_every_field_has_words_for_what_is_right():
    assert set(RIGHT) == {*CaseBody.model_fields, *BatchBody.model_fields}


def test_models_are_listed_with_what_a_client_needs_to_ask(client, models):
    listed = client.get("/api/models").json()["models"]
    assert [m["name"] for m in listed] == list(models)
    card = client.get("/api/models/patients").json()
    assert card["unit"] == "€"
    assert card["known"] == ["age"]
    assert {t["test"] for t in card["tests"]} == set(models["patients"].schema.tests)
    colour = next(t for t in card["tests"] if t["test"] == "colour")["columns"][0]
    assert set(colour["categories"]) == {"red", "green", "blue"}
    assert set(card["bought"]) == set(models["patients"].schema.tests)
    assert card["bought"]["age"] == 0  # known, so never bought


def test_health_metrics_and_schema(client):
    assert client.get("/health").json()["status"] == "ok"
    before = client.get("/metrics").text
    post(client, NEXT, {"case_id": "x"})
    after = client.get("/metrics").text

    def count(text):
        lines = [line for line in text.splitlines() if line.startswith("askwise_answers_total{")]
        return sum(int(line.split()[-1]) for line in lines)

    assert count(after) == count(before) + 1
    assert 'askwise_requests_total{route="/api/models/{model}/next",method="POST",status="200"}' in after
    assert 'le="+Inf"' in after
    schema = client.get("/openapi.json").json()
    body = schema["paths"]["/api/models/{model}/next"]["post"]["requestBody"]["content"]["application/json"]
    for example in body["examples"].values():  # what the documentation shows works
        assert post(client, NEXT, example["value"]).status_code == 200, example
    assert body["schema"]["$ref"].rsplit("/", 1)[1] in schema["components"]["schemas"]


BAD = {
    "not JSON": (b"{", "not JSON"),
    "no object": (b"[1]", "the body"),
    "nothing": (b"", "not JSON"),
    "not UTF-8": (b'{"case_id": "\xff"}', "not JSON"),
    "half a sign": (b'{"case_id": "\\ud800"}', "not JSON"),
    "deep": (b'{"known": {"age": ' + b"[" * 5000 + b"]" * 5000 + b"}}", "not JSON"),
    "NaN": (b'{"answers": {"pressure": NaN}}', "pressure"),
    "infinite": (b'{"answers": {"pressure": Infinity}}', "pressure"),
    "too large": (b'{"answers": {"pressure": 1e400}}', "pressure"),
    "huge": (b'{"answers": {"pressure": 1' + b"0" * 4000 + b"}}", "pressure"),
    "more digits than Python reads": (b'{"answers": {"pressure": 1' + b"0" * 9000 + b"}}", ""),
    "a list": (b'{"answers": {"pressure": [1]}}', "pressure"),
    "nothing told": (b'{"answers": {"pressure": null}}', "pressure"),
    "a word for a number": (b'{"answers": {"pressure": "high"}}', "pressure", "number"),
    "outside": (b'{"answers": {"pressure": 1000}}', "training saw"),
    "unknown category": (b'{"answers": {"colour": "mauve"}}', "mauve", "red"),
    "unknown test": (b'{"answers": {"presure": 1}}', "did you mean 'pressure'"),
    "unknown field": (b'{"anwsers": {}}', "anwsers"),
    "refused twice over": (b'{"refused": ["nose"]}', "nose"),
    "told and refused": (b'{"refused": ["town"], "answers": {"town": "Rom"}}', "town"),
    "a negative budget": (b'{"budget": -1}', "budget"),
    "an infinite budget": (b'{"budget": Infinity}', "budget"),
    "a budget beyond measure": (b'{"budget": 1e300}', "budget", "1e-12 to 1e15"),
    "a budget with a huge exponent": (b'{"budget": 1e999999999}', "budget"),
    "a budget of many digits": (b'{"budget": ' + b"9" * 4000 + b"}", "budget"),
    "no number as budget": (b'{"budget": "much"}', "budget"),
    "a long name": (b'{"case_id": "' + b"x" * 300 + b'"}', "case_id"),
    "a truth as a name": (b'{"case_id": true}', "case_id"),
    "dearer than its budget": (b'{"budget": 0.1, "answers": {"pressure": 0.5}}', "pressure"),
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
def test_what_cannot_be_used_gets_one_sentence(client, body):
    refused(post(client, NEXT, body[0]), *body[1:])


def test_outside_values_are_taken_when_the_request_says_so(client):
    assert post(client, NEXT, {"answers": {"pressure": 1000}, "outside": True}).status_code == 200
    assert post(client, NEXT, {"answers": {"pressure": 1000}, "outside": ["pressure"]}).status_code == 200
    refused(post(client, NEXT, {"answers": {"pressure": 1000}, "outside": ["town"]}), "training saw")


def test_addresses_that_do_not_exist(client):
    refused(client.get("/api/models/patient"), "did you mean 'patients'", status=404)
    refused(post(client, "/api/models/nose/next", {}), "patients", status=404)
    refused(client.get(NEXT), "GET", status=405)
    refused(client.get("/api/nothing"), "nothing", status=404)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20) | st.sampled_from([1e308, -1e308, 10**400]),
    lambda some: st.lists(some, max_size=3) | st.dictionaries(st.text(max_size=8), some, max_size=3),
    max_leaves=6,
)
names = st.sampled_from(["age", "pressure", "smoker", "colour", "town", "index", "nose"]) | st.text(max_size=6)
answers = st.dictionaries(names, values | st.sampled_from(["red", "Rom", True, 0.5, 40]), max_size=5)
fuzzed = st.fixed_dictionaries({}, optional={
    "known": answers | values, "answers": answers | values, "refused": st.lists(names, max_size=3) | values,
    "outside": st.booleans() | st.lists(names, max_size=3), "case_id": st.text(max_size=9) | st.integers() | values,
    "budget": st.floats() | values, "stop": st.booleans() | values, "extra": st.nothing(),
})  # fmt: skip


@settings(max_examples=250)
@given(body=fuzzed | values, path=st.sampled_from(["next", "trace", "batch"]))
def test_fuzzed_bodies_get_an_answer_or_a_sentence(client, body, path):
    whole = {"cases": [body]} if path == "batch" else body
    response = post(client, f"/api/models/patients/{path}", json.dumps(whole))
    if response.status_code == 200:
        said = response.json()["steps"][0] if path == "batch" else response.json()
        assert "error" in said or said["case_id"]
        assert all(math.isfinite(p["probability"]) for p in said.get("probabilities", []))
    else:
        refused(response)


@settings(max_examples=150)
@given(body=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_fuzzed_bytes_get_a_sentence(client, body):
    response = post(client, NEXT, body)
    assert response.status_code in (200, 422)
    if response.status_code == 422:
        refused(response)
