"""`askwise fit`: what it reads, what it writes, and how it goes on after an interruption."""

import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET

import numpy as np
import pytest
from tests.support.commands import fill, ok, run
from tests.support.naive import NaiveCosts
from tests.support.patients import COSTS, DERIVED, QUICK_FAMILY, SETUP, classifier, patients

import askwise
from askwise import AverageBudget
from askwise.datasets import named
from askwise.model.file import read_state
from askwise.tables.reading import read_table

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("cli"))


@pytest.fixture(scope="module")
def fit(folder):
    """What `askwise fit` printed, and the folder it wrote to."""
    argv = ["fit", folder / "cases.csv", "--target", "diagnosis", "--average-budget", "0.7", "--time-limit", "1"]
    argv += ["--costs", folder / "prices.csv", "--setup", folder / "setup.csv", "--derived", folder / "derived.csv"]
    (folder / "fit").mkdir()
    return run(*argv, "--out", folder / "fit" / "ill.askwise", "--unit", "€"), folder / "fit"


def test_fit_writes_model_pictures_and_report(fit):
    (code, out, err), where = fit
    assert code == 0
    assert sorted(p.name for p in where.iterdir()) == ["ill.askwise", "ill.html", "ill.md", "ill.png", "ill.svg"]
    for name in ("ill.askwise", "ill.html", "ill.md", "ill.png", "ill.svg"):
        assert str(where / name) in out
    assert (where / "ill.png").read_bytes().startswith(b"\x89PNG")
    assert ET.parse(where / "ill.svg").getroot().tag.endswith("svg")
    assert "mean cost" in out
    assert "accuracy" in out
    model = askwise.load(where / "ill.askwise")
    assert model.budget == AverageBudget("0.7")
    assert "Traceback" not in err


def test_only_an_older_model_and_what_is_beside_it_is_replaced(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("mine")
    (tmp_path / "keep.html").write_text("mine")
    (tmp_path / "run.state").write_text("not a state of a training run")
    argv = ["fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0.001", "--quiet", "--out"]
    for out, words in (
        ("notes.txt", "the model cannot be written to 'notes.txt': that file exists and is not a model; name another file"),
        ("keep.askwise", "would write over 'keep.html', which is not from a fit with --out 'keep.askwise'; move it"),
        ("run.askwise", "would write over 'run.state'"),
    ):
        code, said, err = run(*argv, out)
        assert (code, said) == (2, "")
        assert words in err
        assert sorted(p.name for p in tmp_path.iterdir()) == ["keep.html", "notes.txt", "run.state"]
    for _ in range(2):
        assert run(*argv, "m.askwise")[0] == 0
        assert (tmp_path / "m.html").exists()


def test_text_files_and_parquet_mean_the_same(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    code, days = rng.choice(["007", "012", "100", "1.10"], 400), np.sort(rng.integers(0, 20, 400))
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(days, unit="D")
    cases = pd.DataFrame({"code": code, "when": when, "y": np.where(np.isin(code, ["007", "1.10"]) & (days > 9), "ill", "well")})
    cases.to_csv("t.csv", index=False)
    cases.to_parquet("t.parquet")
    cases.assign(when=when.date).to_parquet("days.parquet")
    cases.assign(code="no. " + cases["code"]).to_csv("other.csv", index=False)
    for table in ("t.csv", "t.parquet", "days.parquet"):
        more = ["--categorical", "code", "--target", "y", "--tradeoff", "0.0001", "--time-limit", "1", "--quiet"]
        code, _, err = run("fit", table, *more, "--out", "m.askwise")
        assert code == 0
        if table == "t.csv":
            assert err.startswith(
                "askwise: column 'when' holds dates as text, such as '2024-01-01': each counts as a category of its"
            )
            assert err.count("\n") == 1
        else:
            assert err == ""
        encoding = askwise.load("m.askwise").encoding
        assert {part.name: part.kind for part in encoding.parts} == {
            "code": "category",
            "when": "category" if table == "t.csv" else "time",
        }
        found = [json.loads(ok("evaluate", "m.askwise", name, "--target", "y", "--json"))
                 for name in ("t.csv", "t.parquet", "days.parquet")]  # fmt: skip
        assert found == found[:1] * 3
        decided = {ok("predict", "m.askwise", name) for name in ("t.csv", "t.parquet", "days.parquet")}
        assert len(decided) == 1
        rows = [encoding.transform(read_table(name, as_written=encoding.text)) for name in ("t.csv", "t.parquet", "days.parquet")]
        assert np.array_equal(rows[0], rows[1])
        assert np.array_equal(rows[0], rows[2])
        assert encoding.strange(rows[0]) == []
        ok("ask", "m.askwise", "--simulate", "t.csv")
        code, _, err = run("evaluate", "m.askwise", "other.csv", "--target", "y")
        assert code == 0
        assert err == ("askwise: no value of column 'code' in these rows occurred in training, so the column tells nothing here; "
                       "check that the values are written as in training\n")  # fmt: skip
    assert askwise.load("m.askwise").session({"code": 7, "when": "2024-01-03"}).known["code"] == "007"


def test_the_report_opens_offline(fit):
    _, where = fit
    page = (where / "ill.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "mean cost" in page
    assert "<svg" in page
    # names of XML namespaces are never fetched; everything else would be, or looks as if
    rest = re.sub(r"""\sxmlns(:\w+)?=["'][^"']*["']""", "", page)
    assert re.findall(r"https?://[^\s\"'<>]*", rest) == []
    assert re.findall(r"""(?:src|href)=["'](?!#|data:)[^"']*""", rest) == []
    assert re.findall(r"url\((?!#|['\"]#)", rest) == []


def test_progress_goes_to_stderr(fit):
    (_, out, err), _ = fit
    assert "held-out" not in out
    found = r"right in \d+\.\d % of held-out cases at a mean cost of \d+\.\d\d €"
    assert re.search(rf"^\d+ s( of about \d+ s)?: {found}$", err, re.MULTILINE)


def test_fit_writes_json(folder, tmp_path):
    code, out, _ = run("fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0.001", "--json", "--out",
                       tmp_path / "a.askwise", "--costs", folder / "prices.csv", "--derived", folder / "derived.csv",
                       "--setup", folder / "setup.csv")  # fmt: skip
    assert code == 0
    found = json.loads(out)
    assert found["model"] == str(tmp_path / "a.askwise")
    assert all(os.path.exists(f) for f in found["files"])
    prices = NaiveCosts({**COSTS, "index": 0}, SETUP, DERIVED)
    assert found["tests"] == {t: pytest.approx(float(prices.cost({t}))) for t in COSTS}
    assert found["classes"] == ["ill", "well"]


def test_the_other_settings_reach_the_model(folder, tmp_path):
    out = tmp_path / "a.askwise"
    code, _, _ = run("fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0.001", "--quiet", "--out", out,
                     "--reveals", folder / "reveals.csv", "--loss", folder / "loss.csv", "--known", "age, index",
                     "--class-weight", "balanced", "--hard-budget", "2", "--tradeoff", "0.1", "--seed", "3")  # fmt: skip
    assert code == 0
    model = askwise.load(out)
    assert model.schema.tests == ("age", "pressure", "form", "index")
    assert model.known == ("age", "index")
    assert str(model.trained_for) == "Tradeoff(0.1) & HardBudget(2)"
    assert model.seed == 3
    ill, well = model.loss[0, 1] / 20, model.loss[1, 0]  # the weights of the classes
    share = (patients(160)[1] == "ill").mean()
    assert ill * share == pytest.approx(well * (1 - share), rel=0.05)


@pytest.fixture
def coded(folder, tmp_path):
    """Cases with names, codes and notes, and prices that know of them too."""
    table = read_table(folder / "cases.csv")
    n = np.arange(len(table))
    table = table.assign(name=[f"case {i}" for i in n], ward=n % 3, notes=[f"words {i}" for i in n])
    table.to_csv(tmp_path / "coded.csv", index=False)
    (tmp_path / "p.csv").write_text((folder / "prices.csv").read_text() + "index,1\nward,2\nnotes,3\n")
    return ["fit", tmp_path / "coded.csv", "--target", "diagnosis", "--costs", tmp_path / "p.csv", "--time-limit", "0.001",
            "--quiet", "--out", tmp_path / "m.askwise", "--ids", "name", "--ignore", "notes"]  # fmt: skip


def test_columns_that_are_no_tests_and_codes_that_are_no_numbers(coded, tmp_path):
    ok(*coded)
    model = askwise.load(tmp_path / "m.askwise")
    assert model.schema.tests == (*COSTS, "ward")
    assert {part.name: part.kind for part in model.encoding.parts}["ward"] == "number"
    ok(*coded, "--categorical", "ward,smoker")
    model = askwise.load(tmp_path / "m.askwise")
    assert {part.name: part.kind for part in model.encoding.parts}["ward"] == "category"
    assert model.schema.tests == (*COSTS, "ward")


@pytest.mark.parametrize(("text", "seconds"), [("90", 90), ("90s", 90), ("5m", 300), ("1h", 3600), ("0.5h", 1800), (".5", 0.5)])
def test_times_as_people_write_them(folder, tmp_path, monkeypatch, text, seconds):
    from askwise.estimator import CostlyClassifier

    class Enough(Exception):
        pass

    def fit(self, *_, **__):
        assert self.time_limit == seconds
        raise Enough

    monkeypatch.setattr(CostlyClassifier, "fit", fit)
    with pytest.raises(Enough):
        run("fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", text, "--out", tmp_path / "m.askwise")


def test_classes_are_weighed_only_by_those_who_say_nothing_else(tmp_path):
    names = sorted(set(named.raw("thyroid").y.tolist()))
    K, out = len(names), tmp_path / "t.askwise"
    lines = [f"{a}," + ",".join(str(3 * (a != b)) for b in names) for a in names]
    (tmp_path / "loss.csv").write_text("\n".join(["truth," + ",".join(names), *lines]))
    argv = ["fit", "--data", "thyroid", "--time-limit", "0.001", "--quiet", "--out", out]

    def loss(*more):
        ok(*argv, *more)
        return askwise.load(out).loss

    usual = loss()
    assert len(set(usual.max(1).tolist())) == K
    assert loss("--class-weight", "none").tolist() == (1 - np.eye(K)).tolist()
    assert loss("--loss", tmp_path / "loss.csv").tolist() == (3 * (1 - np.eye(K))).tolist()
    assert loss("--loss", tmp_path / "loss.csv", "--class-weight", "balanced") == pytest.approx(3 * usual)


def test_pixels_are_scaled_alike(tmp_path):
    ok("fit", "--data", "digits", "--time-limit", "0.001", "--quiet", "--out", tmp_path / "d.askwise")
    parts = askwise.load(tmp_path / "d.askwise").encoding.parts
    assert len({(part.mean, part.deviation) for part in parts}) == 1


def test_fit_on_a_named_set_measures_on_its_test_rows(tmp_path):
    code, out, _ = run("fit", "--data", "pima", "--time-limit", "0.001", "--quiet", "--out", tmp_path / "p.askwise")
    assert code == 0
    assert "test cases: mean cost" in out
    first = ok("evaluate", tmp_path / "p.askwise", "--data", "pima", "--json")
    assert json.loads(first)["accuracy"] > 0.6
    assert "The most common paths" in (tmp_path / "p.html").read_text()


def test_what_fit_writes_never_takes_the_place_of_something_else(folder, tmp_path):
    cases = tmp_path / "cases.csv"
    cases.write_bytes((folder / "cases.csv").read_bytes())
    argv = ["fit", cases, "--target", "diagnosis", "--time-limit", "0.001", "--quiet", "--out"]
    assert run(*argv, cases)[0] == 2
    assert cases.read_bytes() == (folder / "cases.csv").read_bytes()
    for ending in ("png", "svg", "html", "state"):  # the pictures would be written over the model
        assert run(*argv, tmp_path / f"m.{ending}")[0] == 2


def test_where_it_cannot_write_it_says_so_before_it_trains(folder, tmp_path, monkeypatch):
    from askwise.estimator import CostlyClassifier

    def never(*_, **__):
        raise AssertionError("it trained")

    monkeypatch.setattr(CostlyClassifier, "fit", never)
    for out in (tmp_path / "nowhere" / "m.askwise", tmp_path):
        code, shown, err = run("fit", folder / "cases.csv", "--target", "diagnosis", "--out", out)
        assert code in (1, 2)
        assert shown == ""
        assert len(err.splitlines()) == 1
        assert str(out.parent if out != tmp_path else out) in err


def test_without_matplotlib_it_does_not_train_in_vain(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    out = tmp_path / "m.askwise"
    code, shown, err = run("fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0.001", "--quiet", "--out", out)
    assert "matplotlib" in shown + err
    if code == 0:
        assert "mean cost" in shown, "the table needs no pictures"
    else:
        assert not out.exists(), "it could have said so before training"


def test_what_was_learned_survives_a_failure_to_save_it(folder, tmp_path, monkeypatch):
    from askwise.estimator import CostlyClassifier

    def full(*_):
        raise OSError("disk full")

    monkeypatch.setattr(CostlyClassifier, "save", full)
    code, _, err = run(
        "fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0.001", "--quiet", "--out", tmp_path / "m.askwise"
    )
    assert code == 1
    assert "disk full" in err
    assert (tmp_path / "m.state").exists()


def test_ctrl_c_leaves_a_state_and_resume_goes_on(folder, tmp_path):
    out = tmp_path / "m.askwise"
    argv = ["fit", folder / "cases.csv", "--target", "diagnosis", "--average-budget", "1", "--out", out, "--algorithm", "paper"]
    # jobs in the background of a script ignore Ctrl-C, and so would what they start
    start = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from askwise.cli import main; "
    program = [sys.executable, "-c", start + "sys.exit(main(sys.argv[1:]))", *map(str, argv), "--time-limit", "120"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        first = process.stderr.readline()  # the first line of progress: training has begun
        assert "right in" in first
        process.send_signal(signal.SIGINT)
        shown, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert shown == ""
    assert "Traceback" not in err
    assert "--resume" in err
    interrupted_at = read_state(tmp_path / "m.state")[1]["step"]
    assert interrupted_at > 0
    assert not out.exists()
    assert run(*argv, "--time-limit", "0.5", "--resume", "--quiet")[0] == 0
    assert not (tmp_path / "m.state").exists()
    done = askwise.load(out).facts["records"][-1][0]
    assert done >= interrupted_at


def quick_fit(folder, tmp_path):
    """The command for a fit that takes no time."""
    out = tmp_path / "m.askwise"
    return ["fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0.001", "--quiet", "--out", out]


def test_resume_needs_a_state_of_the_same_run(folder, tmp_path):
    argv = quick_fit(folder, tmp_path)
    code, out, err = run(*argv, "--resume")
    assert (code, out) == (2, "")
    assert "m.state" in err
    (tmp_path / "m.state").write_bytes(b"nonsense")
    code, out, err = run(*argv, "--resume")
    assert (code, out) == (2, "")
    assert "cut short or damaged" in err
    assert len(err.splitlines()) == 1


def test_resume_of_another_run_is_refused_and_harms_nothing(folder, tmp_path):
    from askwise.model.file import write_state

    states = []
    table = read_table(folder / "cases.csv")
    X, y = table.drop(columns="diagnosis"), table["diagnosis"].to_numpy()
    classifier(config=None, time_limit=0, random_state=7).fit(X, y, save=states.append)
    write_state(tmp_path / "m.state", *states[-1])
    argv = quick_fit(folder, tmp_path)
    code, out, err = run(*argv, "--resume", "--seed", "7")
    assert (code, out) == (2, "")
    assert "another run: its algorithm is paper, here it is stack" in err
    argv += ["--algorithm", "paper"]
    code, out, err = run(*argv, "--resume", "--seed", "8")
    assert (code, out) == (2, "")
    assert "another run: its seed is 7, here it is 8" in err
    assert (tmp_path / "m.state").exists()
    arrays, facts = states[-1]
    write_state(tmp_path / "m.state", arrays, {**facts, "seconds": 1000.0})
    assert run(*argv, "--resume", "--seed", "7")[0] == 0
    assert askwise.load(tmp_path / "m.askwise").facts["seconds"] >= 1000, "the earlier parts count too"


def test_resume_and_restarts_contradict_each_other(folder, tmp_path):
    """A state is of one run, so nothing would be resumed."""
    from askwise.model.file import write_state

    write_state(tmp_path / "m.state", {"a": np.zeros(1)}, {})
    code, _, err = run("fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0.001", "--quiet", "--out",
                       tmp_path / "m.askwise", "--restarts", "2", "--resume")  # fmt: skip
    assert code == 2
    assert "restarts" in err
    assert (tmp_path / "m.state").exists()


def test_a_large_parquet_file_is_fitted_in_parts_with_the_same_result(tmp_path, monkeypatch):
    from dataclasses import replace

    from askwise.tables import parquet, stored

    monkeypatch.chdir(tmp_path)
    X, y = patients(400, seed=2)
    X.assign(patient=[f"p{i}" for i in range(400)], y=y).to_parquet("cases.parquet", row_group_size=90)
    monkeypatch.setattr(parquet, "BATCH", 50)
    monkeypatch.setattr("askwise.family.config.FamilyConfig.for_size", lambda *_: QUICK_FAMILY)
    argv = ["fit", "cases.parquet", "--target", "y", "--ids", "patient", "--algorithm", "family", "--quiet", "--out"]
    whole = ok(*argv, "whole.askwise").replace("whole.", "NAME.")
    assert "learned from 300 rows in " in whole
    assert "; 100 others were kept apart, to choose and to measure by" in whole
    assert "100 validation cases, which the fit kept apart and chose by" in whole
    monkeypatch.setattr(stored, "SETTINGS", replace(stored.SETTINGS, cells=100))
    without_seconds = re.compile(r"trained [\d.]+ s")
    in_parts = ok(*argv, "parts.askwise").replace("parts.", "NAME.")
    assert without_seconds.sub("", in_parts) == without_seconds.sub("", whole)
    monkeypatch.setattr(stored, "SETTINGS", replace(stored.SETTINGS, shown_rows=40))
    assert "40 of 100 validation cases, which the fit kept apart and chose by" in ok(*argv, "parts.askwise")
    X.assign(y=np.where(np.arange(400) == 170, None, y)).to_parquet("bad.parquet")
    code, _, err = run("fit", "bad.parquet", "--target", "y")
    assert code == 2
    assert "the target 'y' is missing in row 171 of 'bad.parquet'; remove such rows" in err
