"""`askwise ask`: a session in a terminal, and the rows of a file."""

import io
import json

import pandas as pd
import pytest
from tests.support.commands import ok, run
from tests.support.models import alike, family, paper, table

import askwise
from askwise import AverageBudget, Session
from askwise.cli.ask import _range

VALUES = {"age": "50", "pressure": "0.25", "smoker": "yes", "colour": "red", "town": "Rom", "index": "2.5"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("ask")
    family().save(here / "m.askwise")
    paper(budget=AverageBudget(1.1)).save(here / "mixed.askwise")
    several = {"costs": {"form": 1, "age": 1, "pressure": 1, "index": 1}, "reveals": {"form": ["smoker", "colour", "town"]}}
    family(*table(), **several).save(here / "form.askwise")
    X, _ = table(30, seed=9)
    X.assign(patient=[f"{i:03}" for i in range(30)]).to_csv(here / "cases.csv", index=False)
    return here


@pytest.fixture
def typed(monkeypatch):
    """What a person types, line by line."""

    def type_(*lines):
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))

    return type_


def answers(model, **more) -> tuple[list[str], Session]:
    """What to type for the case of VALUES, and the session that it is."""
    session, lines = model.session(**more), []
    while (step := session.next()).decision is None:
        lines.append(VALUES[step.test])
        session.tell(step.test, VALUES[step.test])
    return lines, session


def test_a_case_from_the_first_question_to_the_record(folder, typed):
    lines, session = answers(askwise.load(folder / "m.askwise"), case_id="A-17")
    typed(*lines, "")
    said = ok("ask", folder / "m.askwise", "--case-id", "A-17", "--trace", folder / "a17.json")
    trace = json.loads((folder / "a17.json").read_text())
    assert alike(trace, json.loads(json.dumps(session.trace())))
    assert f"decision: {session.next().decision} (probability" in said
    first = trace["events"][0]
    assert f"{first['test']} (costs {first['test_cost']:g} €" in said
    assert len(lines) > 1


def test_what_else_can_be_typed(folder, typed):
    model = askwise.load(folder / "m.askwise")
    first = model.session({"age": "50"}, case_id=1).next().test
    other = next(t for t in ("town", "smoker", "colour") if t != first)
    told = f"{other}={VALUES[other]}"
    typed("?", "why", f"if {VALUES[first]}", "refuse", "undo", f"tell {told}", "undo", f"known {told}", "refuse nothing",
          "tell town", "", "stop", "if 3", "undo", "stop", "")  # fmt: skip
    said = ok("ask", folder / "m.askwise", "--known", "age=50", "--case-id", "1", "--trace", folder / "t.json")
    for words in (
        "answer with a value, or:", f"{first} is expected to save", "probabilities now: ", "would ",
        f"taken back: refuse {first}",
        f"taken back: tell {other}", "there is no test 'nothing'", "there is no open question", "taken back: stop",
        "stopping was requested",
    ):  # fmt: skip
        assert words in said, words
    trace = json.loads((folder / "t.json").read_text())
    assert [e["do"] for e in trace["events"] if e["do"] not in ("ask", "decide")] == [
        "refuse", "undo", "tell", "undo", "tell", "stop", "undo", "stop",
    ]  # fmt: skip
    assert trace["cost"] == 0
    Session.replay(model, trace)


def test_a_wrong_value_is_asked_again_and_one_from_outside_is_insisted_on(folder, typed):
    typed("tell age=999", "tell age=999!", "tell colour=pink", "tell colour='red'", "stop", "")
    said = ok("ask", folder / "m.askwise", "--trace", folder / "t.json")
    assert "but training saw" in said
    assert "or end it with ! if it is right" in said
    assert "'pink', which training did not see" in said
    assert json.loads((folder / "t.json").read_text())["answers"] == {"age": 999, "colour": "red"}


def test_what_is_known_may_lie_outside_too(folder, typed):
    typed("")
    code, _, said = run("ask", folder / "m.askwise", "--known", "age=500")
    assert code == 2
    assert "training saw" in said
    assert "or end it with ! if it is right" in said
    typed("stop", "")
    ok("ask", folder / "form.askwise", "--known", "age=95!", "--known", "form=true; red; Ulm!", "--trace", folder / "t.json")
    known = {"age": 95, "form": {"smoker": True, "colour": "red", "town": "Ulm"}}
    assert json.loads((folder / "t.json").read_text())["known"] == known


def test_a_slip_is_not_taken_for_a_town(folder, typed):
    X, y = table()
    X["town"] = [f"town {i % 40}" for i in range(len(X))]
    X["since"] = pd.Timestamp("2024-01-01") + pd.to_timedelta(range(len(X)), "D")
    model = family(X[["town", "since"]], y, costs={"town": 1, "since": 1})
    assert _range(model.form.fields("since")[0]) == "[2024-01-01 to 2024-07-18]"
    model.save(folder / "towns.askwise")
    typed("tell since", "udno", "tell town=udno", "tell town=Ulm!", "refuse", "stop", "")
    said = ok("ask", folder / "towns.askwise", "--trace", folder / "t.json", "--budget", "1.5")
    assert "is 'udno', which is not one of its common values" in said
    trace = json.loads((folder / "t.json").read_text())
    assert (trace["answers"], trace["budget"]) == ({"town": "Ulm"}, 1.5)


def test_the_end_of_the_input_decides(folder, typed):
    typed()
    said = ok("ask", folder / "m.askwise", "--budget", "3")
    assert "decision: " in said
    assert "stopping was requested" in said


def test_a_test_of_several_columns_is_typed_in_one_line(folder, typed):
    typed("tell form=true; red", "tell form=true; red; Rom", "stop", "")
    said = ok("ask", folder / "form.askwise", "--trace", folder / "t.json")
    assert "type them in this order, separated by ;: smoker; colour; town" in said
    assert json.loads((folder / "t.json").read_text())["answers"] == {"form": {"smoker": True, "colour": "red", "town": "Rom"}}


@pytest.mark.parametrize("more", [[], ["--ids", "patient"]])
@pytest.mark.parametrize("name", ["m", "mixed"])
def test_the_rows_of_a_file_are_decided_as_predict_decides_them(folder, name, more):
    mine = json.loads(ok("ask", folder / f"{name}.askwise", "--simulate", folder / "cases.csv", "--json", *more))
    theirs = json.loads(ok("predict", folder / f"{name}.askwise", folder / "cases.csv", "--json", *more))
    assert [(r["prediction"], r["tests"]) for r in mine] == [(r["prediction"], r["tests"]) for r in theirs]
    assert [r["cost"] for r in mine] == pytest.approx([r["cost"] for r in theirs])
    assert any(r["tests"] for r in mine)
    if more:
        assert [r["case"] for r in mine] == [r["patient"] for r in theirs]


def test_rows_in_words_with_a_budget_and_their_records(folder):
    said = ok("ask", folder / "m.askwise", "--simulate", folder / "cases.csv", "--budget", "1", "--trace", folder / "all.json")
    lines = said.splitlines()
    assert len(lines) == 31
    assert lines[-1].startswith("30 cases, mean cost ")
    traces = json.loads((folder / "all.json").read_text())
    assert all(trace["cost"] <= 1 for trace in traces)
    model = askwise.load(folder / "m.askwise")
    assert [Session.replay(model, t).next().decision for t in traces] == [t["decision"] for t in traces]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--known", "age"], "it must be TEST=VALUE"),
        (["--known", "agee=3"], "did you mean 'age'"),
        (["--json"], "add --simulate"),
        (["--budget", "much"], "the budget of the session is 'much'"),
        (["--simulate", "none.csv"], "no file"),
        (["--simulate", "x.csv", "--case-id", "3"], "--case-id is for one case"),
        (["--trace", "nowhere/t.json"], "is not a folder"),
    ],
)
def test_what_cannot_be_used_is_refused(folder, argv, words, typed):
    typed()
    code, _, said = run("ask", folder / "m.askwise", *argv)
    assert code == 2
    assert words in said
    assert said.count("\n") == 1


def test_the_decision_says_what_was_paid_of_what(folder, typed):
    def decided(*more):
        typed("stop", "")
        return ok("ask", folder / "m.askwise", *more)

    assert ", paid nothing, where all tests cost 2.9 €; stopping" in decided()
    assert ", paid nothing of the 2 € that this case may cost; stopping" in decided("--budget", "2")
    assert ", paid nothing of the 1.5 € that this case may cost; stopping" in decided("--hard-budget", "1.5")


def test_a_mixture_says_which_policy_was_drawn(folder, typed):
    model = askwise.load(folder / "mixed.askwise")
    low, high = (f"{point.cost:.4g} €" for point in model.followed)
    lines = set()
    for name in range(12):
        typed("stop", "")
        line = ok("ask", folder / "mixed.askwise", "--case-id", name).splitlines()[1]
        session = model.session(case_id=name)
        assert line == session.drawn
        part = 100 * (model.blend.share if session.second else 1 - model.blend.share)
        own = ("dearer", high) if session.second else ("cheaper", low)
        assert line.startswith("AverageBudget(1.1) mixes two policies; this case has drawn the ")
        assert f"drawn the {own[0]} one, which costs {own[1]} on average and which {part:.0f} % of cases follow" in line
        lines.add(line)
    assert len(lines) == 2
    assert askwise.load(folder / "m.askwise").session().drawn == ""


def test_only_an_older_record_is_written_over(folder, tmp_path, typed, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("m.askwise", "cases.csv"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "mine.json").write_text('{"format": "mine"}')
    (tmp_path / "empty.json").touch()
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for argv, words in (
        (["--trace", "m.askwise"], "the record cannot be written to 'm.askwise': that file is also an input; name another file"),
        (["--trace", "cases.csv", "--simulate", "cases.csv"], "'cases.csv': that file is also an input; name another file"),
        (["--trace", "notes.txt"], "'notes.txt': that file exists and is not a record of sessions; name another file"),
        (["--trace", "mine.json"], "'mine.json': that file exists and is not a record of sessions"),
    ):
        typed()
        code, out, said = run("ask", "m.askwise", *argv)
        assert (code, out) == (2, "")
        assert words in said
        assert before == {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    for name in ("1", "2"):
        typed()
        ok("ask", "m.askwise", "--case-id", name, "--trace", "empty.json")
        assert json.loads((tmp_path / "empty.json").read_text())["case_id"] == name
    ok("ask", "m.askwise", "--simulate", "cases.csv", "--trace", "empty.json")
    ok("ask", "m.askwise", "--simulate", "cases.csv", "--trace", "empty.json")
    assert len(json.loads((tmp_path / "empty.json").read_text())) == 30
