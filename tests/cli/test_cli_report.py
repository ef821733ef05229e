"""The report of a model: the same from a fit on one's own file, on named data, and by `askwise report`."""

import json

import pytest
from tests.support.commands import fill, ok, run
from tests.support.patients import patients

import askwise

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
ALL = ["What each amount of money buys", "Which tests are bought", "The most common paths", "How it ends"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = fill(tmp_path_factory.mktemp("report"))
    X, y = patients(90, seed=1)
    X.assign(diagnosis=y).to_csv(here / "new.csv", index=False)
    X.drop(columns="age").assign(diagnosis=y).to_csv(here / "lacking.csv", index=False)
    X.assign(diagnosis="dead").to_csv(here / "strange.csv", index=False)
    return here


QUICK = ["--algorithm", "family", "--time-limit", "0", "--quiet"]


def fitted(folder, out, *more):
    return run("fit", folder / "cases.csv", "--target", "diagnosis", *QUICK, "--out", out, *more)


def headings(page):
    return [words for words in [*ALL, "Results"] if f">{words}</h2>" in page]


def test_a_fit_on_ones_own_file_reports_all_that_one_on_named_data_does(folder, tmp_path):
    code, said, _ = fitted(folder, tmp_path / "m.askwise")
    assert code == 0
    assert "\non 40 validation cases, which the fit kept apart and chose by: mean cost " in said
    page = (tmp_path / "m.html").read_text()
    assert headings(page) == [*ALL, "Results"]
    assert page.count("<svg") == 5
    assert ">40 validation cases, which the fit kept apart and chose by</th>" in page
    code, said, _ = run("fit", "--data", "heart", *QUICK, "--out", tmp_path / "named.askwise")
    assert code == 0
    assert headings((tmp_path / "named.html").read_text()) == [*ALL, "Results"]
    assert " test cases: mean cost " in said
    assert "validation cases, which the fit kept apart and chose by: mean cost " in said
    ok("report", tmp_path / "named.askwise", "--data", "heart", "--out", tmp_path / "again")
    assert " test cases</th>" in (tmp_path / "again" / "named.html").read_text()


def test_a_stack_reports_all_rows_out_of_fold_and_compares_kinds_of_policies(folder, tmp_path):
    argv = ["fit", folder / "cases.csv", "--target", "diagnosis", "--algorithm", "stack", "--time-limit", "20", "--quiet"]
    code, said, _ = run(*argv, "--out", tmp_path / "m.askwise")
    assert code == 0
    assert "\non 160 cases, each held out in turn: mean cost " in said
    assert said.startswith("All tests cost 6; this policy costs ") or said.startswith("All tests cost 6 (")
    assert (
        "Accuracy of each kind of policy, by the money per case on average. Measured on 160 cases, each held out in turn" in said
    )
    page = (tmp_path / "m.html").read_text()
    assert headings(page) == [*ALL, "Results"]
    assert ">Which kind of policy</h2>" in page


def test_a_fit_says_what_it_measured_on_for_machines(folder, tmp_path):
    own = json.loads(fitted(folder, tmp_path / "m.askwise", "--json")[1])
    assert own["test"] is None
    assert own["validation"]["cases"] == 40
    other = json.loads(fitted(folder, tmp_path / "m.askwise", "--json", "--test", folder / "new.csv")[1])
    assert other["validation"] == own["validation"]
    assert other["test"] == json.loads(
        ok("evaluate", tmp_path / "m.askwise", folder / "new.csv", "--target", "diagnosis", "--json")
    )


def test_too_few_rows_to_keep_some_apart_are_said_to_be_trained_on(folder, tmp_path):
    lines = (folder / "cases.csv").read_text().splitlines()
    few = [lines[0], *[x for x in lines if x.endswith("ill")][:3], *[x for x in lines if x.endswith("well")][:1]]
    (tmp_path / "few.csv").write_text("\n".join(few))
    _, said, _ = run("fit", tmp_path / "few.csv", "--target", "diagnosis", *QUICK, "--out", tmp_path / "m.askwise")
    assert "on 4 cases that it was trained on, since there were too few to keep some apart: " in said


@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("lacking.csv", "--test 'lacking.csv' has no column 'age', which the cases to learn from have; there are 'pressure'"),
        ("strange.csv", "--test 'strange.csv' has the class 'dead' in column 'diagnosis', which the cases to learn from do not "
                        "have; there are 'ill', 'well'"),
        ("nothing.csv", "there is no file "),
    ],
)  # fmt: skip
def test_another_file_that_does_not_fit_is_refused_before_training(folder, tmp_path, file, words):
    code, said, err = fitted(folder, tmp_path / "m.askwise", "--test", folder / file)
    assert (code, said) == (2, "")
    assert words in err
    assert list(tmp_path.iterdir()) == []


def test_the_cases_of_another_file_are_measured_on(folder, tmp_path):
    _, said, _ = fitted(folder, tmp_path / "m.askwise", "--test", folder / "new.csv")
    assert "\non 90 cases of new.csv: mean cost " in said
    page = (tmp_path / "m.html").read_text()
    assert headings(page) == [*ALL, "Results"]
    assert ">90 cases of new.csv</th>" in page
    assert "test cases" in page  # the frontier is drawn on them too


def test_a_model_has_a_report_of_its_own(folder, tmp_path):
    said = ok("report", folder / "m.askwise", "--out", tmp_path / "new" / "folder")
    names = ["m.png", "m.svg", "m.html", "m.md"]
    assert said.split() == [str(tmp_path / "new" / "folder" / name) for name in names]
    page = (tmp_path / "new" / "folder" / "m.html").read_text()
    assert headings(page) == ALL  # a model keeps what was bought, but no cases
    with_cases = ["--test", folder / "new.csv", "--target", "diagnosis", "--average-budget", "0.5"]
    for _ in range(2):  # an older report is replaced
        ok("report", folder / "m.askwise", *with_cases, "--out", tmp_path / "two")
    page = (tmp_path / "two" / "m.html").read_text()
    assert headings(page) == [*ALL, "Results"]
    assert "Works at AverageBudget(0.5)" in page
    model = askwise.load(folder / "m.askwise").at(askwise.AverageBudget("0.5"))
    found = json.loads(ok("evaluate", folder / "m.askwise", folder / "new.csv", *with_cases[2:], "--json"))
    assert f">{found['cost']:.4g} ± {found['cost_error']:.2g}</td>" in page
    assert f">{100 * found['accuracy']:.1f} ± {100 * found['accuracy_error']:.1f} %</td>" in page
    assert model.budget == askwise.AverageBudget("0.5")


def test_what_a_report_cannot_do_is_said(folder, tmp_path):
    (tmp_path / "file").write_text("mine")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "m.html").write_text("mine")
    for argv, words in (
        (["rows.jsonl", "--out", tmp_path], "askwise bench report"),
        ([folder / "m.askwise", "--out", tmp_path / "file"], "that is a file; name a folder"),
        (
            [folder / "m.askwise", "--out", tmp_path / "mine"],
            "which does not come from a report; move it, or name another folder",
        ),
        ([folder / "m.askwise", "--target", "y", "--out", tmp_path / "x"], "name their file: --test FILE"),
        ([folder / "m.askwise", "--test", folder / "new.csv", "--out", tmp_path / "x"], "--target COLUMN"),
        ([folder / "m.askwise", "--test", folder / "lacking.csv", "--target", "diagnosis", "--out", tmp_path / "x"], "'age'"),
        ([folder / "m.askwise", "--test", folder / "strange.csv", "--target", "diagnosis", "--out", tmp_path / "x"], "'dead'"),
    ):
        code, said, err = run("report", *argv)
        assert (code, said) == (2, "")
        assert words in err
        assert err.count("\n") == 1
    assert not (tmp_path / "x").exists()


def test_a_bench_has_its_report_under_its_own_name(capsys, tmp_path):
    with pytest.raises(SystemExit) as ended:
        run("bench", "report", "--help")
    assert ended.value.code == 0
    code, _, err = run("bench", tmp_path / "report")  # a plan may still be called anything
    assert code == 2
    assert "report" in err
