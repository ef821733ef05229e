"""What a session takes as an answer, and what it says of anything else."""

import json
from datetime import UTC, datetime

import numpy as np
import pandas as pd
import pytest
from tests.support.models import alike, family, made, table
from tests.support.patients import PRICES

from askwise import Session
from askwise.errors import InputError
from askwise.tables.encoding import Encoding, schema_of
from askwise.tables.forms import Form


@pytest.mark.parametrize(
    ("test", "value", "words"),
    [
        ("age", "old", "the value of test 'age' is 'old'; it must be a number"),
        ("age", True, "it must be a number"),
        ("age", [1], "it must be a number"),
        ("age", "inf", "it must be a number"),
        ("age", 10**400, "it must be a number"),
        pytest.param("age", 10**5000, "thousands of digits", id="huge"),
        ("age", 1e300, "too large"),
        ("age", 150, r"is 150, but training saw 2\d to 8\d; correct it, or use outside=True"),
        ("age", -1, "but training saw"),
        ("age", None, "has no value; give it, or refuse the test"),
        ("age", float("nan"), "has no value"),
        ("age", "  ", "has no value"),
        ("age", {"agee": 3}, "does not reveal the column 'agee'; did you mean 'age'"),
        ("age", {}, "has no value for its column 'age'"),
        ("smoker", "maybe", "it must be true or false"),
        ("smoker", 2, "it must be true or false"),
        ("colour", "pink", "is 'pink', which training did not see; there are 'blue', 'green', 'red'|'pink'"),
        ("colour", ["red"], "it must be a word"),
        ("blood", 1, "there is no test 'blood'; "),
        (7, 1, "there is no test 7"),
    ],
)  # fmt: skip
def test_a_wrong_value_is_refused_in_a_sentence_and_changes_nothing(test, value, words):
    session = made("family").session(case_id=1)
    step = session.next()
    with pytest.raises(InputError, match=words) as error:
        session.tell(test, value)
    assert len(str(error.value)) < 300
    assert session.next() is step
    assert session.answers == {}


def test_a_real_patient_may_lie_outside():
    session = made("family").session()
    session.tell("age", 101, outside=True)
    session.tell("colour", "pink", outside=True)
    assert session.answers == {"age": 101, "colour": "pink"}
    assert made("family").session({"age": 101}, outside=["age"]).known == {"age": 101}
    with pytest.raises(InputError, match="training saw"):
        made("family").session({"age": 101}, outside=["town"])


def test_what_the_session_says_of_outside_holds_for_what_is_told_later():
    model = made("family")
    for outside in (True, ["age"], "age"):
        session = model.session(outside=outside)
        session.tell("age", 101)
        assert session.what_if("town", "Rom").cost == pytest.approx(0.4)
        again = Session.replay(model, json.loads(json.dumps(session.trace())))
        again.undo()
        again.tell("age", 102)
        with pytest.raises(InputError, match="training saw"):
            model.session(outside=outside).tell("age", 103, outside=False)
    with pytest.raises(InputError, match="training did not see"):
        model.session(outside=["age"]).tell("colour", "pink")
    with pytest.raises(InputError, match="there is no test 'agee'; did you mean 'age'"):
        model.session(outside=["agee"])
    with pytest.raises(InputError, match="outside is 1; it must be True, False or the names of tests"):
        model.session(outside=1)


def test_a_word_that_was_rare_or_never_there_is_insisted_on():
    X, y = table()
    X["town"] = [f"town {i % 40}" for i in range(len(X))]
    session = family(X, y, **PRICES).session()
    assert session.model.form.fields("town")[0].others
    for slip in ("tell x 3", "udno", "town 39"):
        with pytest.raises(InputError, match=rf"is '{slip}', which is not one of its common values; .*'town 0', .*outside=True"):
            session.tell("town", slip)
    session.tell("town", "Ulm", outside=True)
    assert session.answers == {"town": "Ulm"}


@pytest.mark.parametrize("draw", [2, -5, float("nan"), "x", [0.5]])
def test_a_draw_is_from_0_to_1(draw):
    with pytest.raises(InputError, match=r"draw is .*; it must be a number from 0 to 1"):
        made("a mixture").session(draw=draw)


def test_values_may_come_as_text_or_from_numpy():
    told = {
        "age": np.int64(50),
        "smoker": "No",
        "pressure": " 0.25 ",
        "colour": np.str_("red"),
        "town": "Rom",
        "index": np.float32(2.5),
    }
    session = made("family").session(answers=told)
    plain = {"age": 50, "smoker": False, "pressure": 0.25, "colour": "red", "town": "Rom", "index": 2.5}
    assert session.answers == plain
    assert json.loads(json.dumps(session.trace()))["answers"] == plain
    assert alike(made("family").session(answers=plain).next().to_dict(), session.next().to_dict())


def test_a_test_of_several_columns_wants_all_of_them():
    session = made("several columns").session()
    whole = {"smoker": True, "colour": "red", "town": "Rom"}
    with pytest.raises(
        InputError, match="reveals 3 columns, and its value is 'red'; there must be a value for each: 'smoker', 'colour'"
    ):
        session.tell("form", "red")
    with pytest.raises(InputError, match="has no value for its column 'town'"):
        session.tell("form", {"smoker": True, "colour": "red"})
    with pytest.raises(InputError, match="the value of column 'town' of test 'form' is 'Oslo'"):
        session.tell("form", {**whole, "town": "Oslo"})
    session.tell("form", whole)
    assert session.answers == {"form": whole}
    assert [field.column for field in session.model.form.fields("form")] == ["smoker", "colour", "town"]


def test_one_value_is_encoded_as_a_row_of_a_table_is():
    X = pd.DataFrame({
        "when": pd.to_datetime(["2020-01-01", "2021-06-01 12:30", "2022-03-04"], format="ISO8601"), "n": [1.5, 2.25, -3.0],
        "yes": [True, False, True],
        "size": pd.Categorical(["s", "l", "m"], ["s", "m", "l"], ordered=True), "who": ["a", "b", "a"],
    })  # fmt: skip
    encoding = Encoding.from_dict(json.loads(json.dumps(Encoding.fit(X).to_dict())))
    schema = schema_of(encoding, [0, 1])
    form, rows = Form(schema, encoding), encoding.transform(X)
    for i in range(3):
        for test in X:
            value = X[test].iloc[i]
            given = [value, str(value)] if test == "when" else [value]
            for one in given:
                found = np.atleast_1d(np.float32(form.read(test, one).encoded))
                assert np.array_equal(found, rows[i, form.columns[form.index(test)]]), (test, one)
    when, n, yes, size, who = (form.fields(test)[0] for test in X)
    assert (when.low, when.high) == ("2020-01-01T00:00:00", "2022-03-04T00:00:00")
    assert (n.low, n.high, n.whole) == (-3.0, 2.25, False)
    assert (yes.kind, size.categories, set(who.categories)) == ("boolean", ("s", "m", "l"), {"a", "b"})
    aware = datetime(2021, 6, 1, 12, 30, tzinfo=UTC)
    assert form.read("when", aware) == form.read("when", "2021-06-01T14:30+02:00")
    with pytest.raises(InputError, match="it must be a date"):
        form.read("when", 5)
    with pytest.raises(InputError, match="there are 's', 'm', 'l'"):
        form.read("size", "xl", outside=True)


def test_a_file_that_tells_no_ranges_is_still_read_and_nothing_is_outside():
    state = Encoding.fit(pd.DataFrame({"n": [1.0, 2.0]})).to_dict()
    for part in state["columns"]:
        for name in ("low", "high", "whole"):
            del part[name]
    old = Encoding.from_dict(state)
    assert old.parts[0].low is None
    assert Form(schema_of(old, [0, 1]), old).read("n", 99).value == 99


def test_what_is_told_twice_or_undone_too_often_is_refused():
    session = made("family").session({"age": 50})
    for call in (lambda: session.tell("age", 51), lambda: session.refuse("age")):
        with pytest.raises(InputError, match="'age' already has a value"):
            call()
    with pytest.raises(InputError, match="nothing to undo"):
        session.undo()
    with pytest.raises(InputError, match="known is 'list'"):
        made("family").session([1])
    with pytest.raises(InputError, match="budget of the session is -1"):
        made("family").session(budget=-1)
    with pytest.raises(InputError, match="case id has 2000 characters"):
        made("family").session(case_id="x" * 2000)
