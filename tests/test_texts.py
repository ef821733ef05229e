"""Names from data: no terminal obeys them, no spreadsheet runs them, and lists of them can be split again."""

import csv
import io
import json
import os
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.commands import run
from tests.support.models import family
from tests.support.patients import patients

from askwise import plots
from askwise.cli import main
from askwise.errors import InputError
from askwise.evaluation import Report
from askwise.tables.reading import read_table
from askwise.texts import cell, from_cell, joined, printable, split

NASTY = "\x1b[2J\x1b]0;owned\x07"  # clears a terminal and renames its window
WORDS = st.text(st.characters(codec="utf-8") | st.sampled_from("=+-@'\t\r\\;"), max_size=8)


@given(WORDS)
def test_cells_can_be_read_again_and_hold_no_formula(text: str) -> None:
    assert from_cell(cell(text)) == text
    assert cell(text)[:1] not in tuple("=+-@\t\r") or float(cell(text)) == float(text)


@pytest.mark.parametrize(("text", "written"), [
    ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"), ("@SUM(1)", "'@SUM(1)"), ("+1+1", "'+1+1"), ("-", "'-"), ("\tx", "'\tx"),
    ("-5", "-5"), ("+2.5e3", "+2.5e3"), ("ill", "ill"), ("'quoted'", "'quoted'"), ("'=x", "''=x"), ("", ""),
])  # fmt: skip
def test_only_what_looks_like_a_formula_is_marked(text: str, written: str) -> None:
    assert cell(text) == written


@given(st.lists(WORDS.filter(bool), max_size=4))
def test_lists_can_be_split_again(names: list[str]) -> None:
    assert split(joined(names)) == names


def test_other_backslashes_are_kept() -> None:
    assert split(r"C:\x;a\;b;c\\") == ["C:\\x", "a;b", "c\\"]


def test_control_characters_are_shown_as_escapes() -> None:
    assert printable(f"€ {NASTY}\n\u202egpj.exe") == r"€ \x1b[2J\x1b]0;owned\x07\n\u202egpj.exe"
    assert printable("naïve 日本 👩\u200d🔬") == "naïve 日本 👩\u200d🔬"


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model and cases whose every name is an attack; its names have ; in them too."""
    here = tmp_path_factory.mktemp(f"nasty{NASTY[:4]}")
    X, y = patients(120, holes=False)
    X = X[["age", "pressure", "town"]].rename(columns={"age": f"=age;{NASTY}", "pressure": "blood;\\pressure"})
    X["town"] = X["town"].astype(str) + NASTY
    model = family(X, np.where(y == "ill", "=cmd|' /C calc'!A0", f"well{NASTY}"), seed=1)
    object.__setattr__(model, "unit", f"€{NASTY}")
    model.save(here / "m.askwise")
    X.assign(**{"=id": [f"=id{i}" for i in range(len(X))]}).to_csv(here / "c.csv", index=False)
    return here


def test_decisions_in_csv_hold_no_formulas_and_can_be_read_again(nasty: Path) -> None:
    code, text, err = run("predict", nasty / "m.askwise", nasty / "c.csv", "--ids", "=id", "--out", nasty / "d.csv")
    assert (code, text) == (0, "")
    assert "\x1b" not in err
    rows = list(csv.reader(io.StringIO((nasty / "d.csv").read_text())))
    assert rows[0][:2] == ["'=id", "cost"]
    for row in rows:
        for word in row:
            assert word[:1] not in tuple("=+-@\t\r")
    exact = json.loads(run("predict", nasty / "m.askwise", nasty / "c.csv", "--ids", "=id", "--json")[1])
    assert any(len(case["tests"]) > 1 for case in exact)
    for row, case in zip(rows[1:], exact, strict=True):
        told = dict(zip(map(from_cell, rows[0]), row, strict=True))
        assert from_cell(told["=id"]) == case["=id"]
        assert from_cell(told["prediction"]) == case["prediction"]
        assert [from_cell(name) for name in split(told["tests"])] == case["tests"]


def test_decisions_in_parquet_are_not_changed(nasty: Path) -> None:
    assert run("predict", nasty / "m.askwise", nasty / "c.csv", "--ids", "=id", "--out", nasty / "d.parquet")[0] == 0
    exact = json.loads(run("predict", nasty / "m.askwise", nasty / "c.csv", "--ids", "=id", "--json")[1])
    frame = read_table(nasty / "d.parquet")
    assert frame["=id"].tolist() == [case["=id"] for case in exact]
    assert frame["prediction"].tolist() == [case["prediction"] for case in exact]
    assert [split(tests) for tests in frame["tests"]] == [case["tests"] for case in exact]


def test_commands_show_no_control_characters(nasty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builtins.input", lambda prompt: print(prompt) or "why")
    for argv in (
        ["inspect", nasty / "m.askwise"],
        ["frontier", nasty / "m.askwise"],
        ["ask", nasty / "m.askwise", "--simulate", nasty / "c.csv"],
        ["export", nasty / "m.askwise", "--out", nasty / f"m{NASTY[:4]}.npz"],
        ["predict", nasty / "m.askwise", nasty / "c.csv", "--out", nasty / f"d{NASTY[:4]}.csv"],
        ["predict", nasty / "m.askwise", nasty / f"none{NASTY}.csv"],
        ["evaluate", nasty / "m.askwise", nasty / "c.csv", "--target", NASTY],
    ):
        _, out, err = run(*argv)
        assert out + err
        assert "\x1b" not in out + err
        assert "\x07" not in out + err
    assert r"€\x1b[2J" in run("inspect", nasty / "m.askwise")[1]


def test_a_question_shows_no_control_characters(nasty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answers = iter(["why", "if 3", "stop", ""])
    monkeypatch.setattr("builtins.input", lambda prompt: asked.append(prompt) or next(answers))
    code, out, _ = run("ask", nasty / "m.askwise")
    assert code == 0
    assert "\x1b" not in "".join(asked) + out


def test_wrong_usage_shows_no_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["predict", "m.askwise", "c.csv", f"--{NASTY}"])
    assert r"\x1b[2J" in capsys.readouterr().err


def test_decisions_on_a_terminal_are_escaped_and_in_a_pipe_exact(nasty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    argv = ("predict", nasty / "m.askwise", nasty / "c.csv")
    assert NASTY in run(*argv)[1]

    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setattr(sys, "stdout", Terminal())
    assert main([str(a) for a in argv]) == 0
    assert r"\x1b[2J" in sys.stdout.getvalue()
    assert "\x1b" not in sys.stdout.getvalue()


def test_pictures_with_strange_names_are_valid(nasty: Path) -> None:
    import askwise

    model = askwise.load(nasty / "m.askwise")
    cases = read_table(nasty / "c.csv", as_written=model.encoding.text)
    problem = model.problem(cases, np.resize(np.array(model.schema.classes, object), len(cases)))
    report = Report(problem, model.rollout(problem))
    for figure in (plots.bought(report), plots.paths(report, unit=model.unit)):
        ET.fromstring(plots.inline(figure))


def test_names_with_a_separator_are_written_with_a_backslash(tmp_path: Path) -> None:
    from askwise.cli.options import names

    assert names(r"blood\;pressure; age", ";") == ["blood;pressure", "age"]
    assert names(r"smith\, j,age") == ["smith, j", "age"]
    with pytest.raises(InputError, match=r"\\x1b"):
        read_table(tmp_path / f"a{NASTY}.csv")


def test_frames_are_not_escaped() -> None:
    X, y = patients(60, holes=False)
    model = family(X[["age", "pressure"]].rename(columns={"age": "=a;b"}), y)
    frame = model.acquire(X[["age", "pressure"]].rename(columns={"age": "=a;b"})).to_frame()
    assert {name for tests in frame["tests"] for name in tests} <= {"=a;b", "pressure"}
    assert isinstance(frame, pd.DataFrame)


def test_names_of_files_need_not_be_unicode(tmp_path: Path) -> None:
    model = tmp_path / os.fsdecode(b"m\xff.askwise")
    family().save(model)
    code, _, err = run("report", model, "--out", tmp_path / os.fsdecode(b"r\xff"))
    assert (code, err) == (0, "")
    assert "\\udcff" in next(tmp_path.rglob("*.html")).read_text(encoding="utf-8")


def test_a_service_answers_in_unicode_whatever_a_model_is_called(tmp_path: Path) -> None:
    from askwise.web.api import to_json
    from askwise.web.page import error
    from askwise.web.settings import load_models

    assert json.loads(to_json({"unit": "\udcff"}).body) == {"unit": "\udcff"}
    assert b"\\udcff" in error(404, "\udcff").body
    model = tmp_path / os.fsdecode(b"m\xff.askwise")
    family().save(model)
    with pytest.raises(InputError, match="is not Unicode text; rename it"):
        load_models([model])
