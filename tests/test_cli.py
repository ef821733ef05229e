"""The command line: every command, its exit code, what goes to stdout and what to stderr."""

import csv
import io
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
from tests.core.naive import NaivePrices

import askwise
from askwise import AverageBudget, HardBudget
from askwise.cli import EXAMPLES, main, parser
from askwise.data.frames import read_table
from patients import COSTS, DERIVED, PRICES, SETUP, classifier, patients

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

COMMANDS = ["fit", "predict", "evaluate", "frontier", "inspect", "datasets", "methods"]


def run(*argv) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command, in this process."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(a) for a in argv])
    return code, out.getvalue(), err.getvalue()


def ok(*argv) -> str:
    code, out, err = run(*argv)
    assert (code, err) == (0, "")
    return out


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Cases, prices, and a model that was fitted on them."""
    here = tmp_path_factory.mktemp("cli")
    X, y = patients(160)
    X.assign(diagnosis=y).to_csv(here / "cases.csv", index=False)
    (here / "prices.csv").write_text("test,cost\n" + "".join(f"{t},{c}\n" for t, c in COSTS.items() if t != "index"))
    lines = "".join(f"{name},{price},{';'.join(tests)}\n" for name, (price, tests) in SETUP.items())
    (here / "setup.csv").write_text("setup,cost,tests\n" + lines)
    (here / "derived.csv").write_text("test,sources\n" + "".join(f"{t},{';'.join(s)}\n" for t, s in DERIVED.items()))
    (here / "loss.csv").write_text("truth,well,ill\nill,20,0\nwell,0,1\n")
    (here / "reveals.csv").write_text("test,columns\nform,smoker;colour;town\n")
    table = read_table(here / "cases.csv").drop(columns="diagnosis")
    classifier(**PRICES, unit="€").fit(table, y).save(here / "m.askwise")
    classifier(**PRICES, budget=HardBudget("1.3")).fit(table, y).save(here / "hard.askwise")
    return here


@pytest.fixture(scope="module")
def fit(folder):
    """What `askwise fit` printed, and the folder it wrote to."""
    argv = ["fit", folder / "cases.csv", "--target", "diagnosis", "--average-budget", "0.7", "--time-limit", "1"]
    argv += ["--costs", folder / "prices.csv", "--setup", folder / "setup.csv", "--derived", folder / "derived.csv"]
    (folder / "fit").mkdir()
    return run(*argv, "--out", folder / "fit" / "ill.askwise", "--unit", "€"), folder / "fit"


# ---------------------------------------------------------------------- fit


def test_fit_writes_model_pictures_and_report(fit):
    (code, out, err), where = fit
    assert code == 0
    assert sorted(p.name for p in where.iterdir()) == ["ill.askwise", "ill.html", "ill.png", "ill.svg"]
    for name in ("ill.askwise", "ill.html", "ill.png", "ill.svg"):
        assert str(where / name) in out
    assert (where / "ill.png").read_bytes().startswith(b"\x89PNG")
    assert ET.parse(where / "ill.svg").getroot().tag.endswith("svg")
    assert "mean cost" in out
    assert "accuracy" in out
    model = askwise.load(where / "ill.askwise")
    assert model.budget == AverageBudget("0.7")
    assert "Traceback" not in err


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
    assert "lambda" not in out
    assert err == "" or "lambda" in err


def test_fit_for_machines(folder, tmp_path):
    code, out, _ = run("fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0", "--json", "--out",
                       tmp_path / "a.askwise", "--costs", folder / "prices.csv", "--derived", folder / "derived.csv",
                       "--setup", folder / "setup.csv")  # fmt: skip
    assert code == 0
    found = json.loads(out)
    assert found["model"] == str(tmp_path / "a.askwise")
    assert all(os.path.exists(f) for f in found["files"])
    prices = NaivePrices({**COSTS, "index": 0}, SETUP, DERIVED)
    assert found["tests"] == {t: pytest.approx(float(prices.cost({t}))) for t in COSTS}
    assert found["classes"] == ["ill", "well"]


def test_the_other_settings_reach_the_model(folder, tmp_path):
    out = tmp_path / "a.askwise"
    code, _, _ = run("fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0", "--quiet", "--out", out,
                     "--reveals", folder / "reveals.csv", "--loss", folder / "loss.csv", "--known", "age, index",
                     "--class-weight", "balanced", "--hard-budget", "2", "--price", "0.1", "--seed", "3")  # fmt: skip
    assert code == 0
    model = askwise.load(out)
    assert model.schema.tests == ("age", "pressure", "form", "index")
    assert model.known == ("age", "index")
    assert str(model.trained_for) == "Tradeoff(0.1) & HardBudget(2)"
    assert model.seed == 3
    ill, well = model.loss[0, 1] / 20, model.loss[1, 0]  # the weights of the classes
    share = (patients(160)[1] == "ill").mean()
    assert ill * share == pytest.approx(well * (1 - share), rel=0.05)


def test_fit_on_a_named_set_measures_on_its_test_rows(tmp_path):
    code, out, _ = run("fit", "--data", "pima", "--time-limit", "0", "--quiet", "--out", tmp_path / "p.askwise")
    assert code == 0
    assert "test cases: mean cost" in out
    first = ok("evaluate", tmp_path / "p.askwise", "--data", "pima", "--json")
    assert json.loads(first)["cost"] == 0  # it had no time to learn
    assert "The most common paths" in (tmp_path / "p.html").read_text()


def test_what_fit_writes_never_takes_the_place_of_something_else(folder, tmp_path):
    cases = tmp_path / "cases.csv"
    cases.write_bytes((folder / "cases.csv").read_bytes())
    argv = ["fit", cases, "--target", "diagnosis", "--time-limit", "0", "--quiet", "--out"]
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
    code, shown, err = run("fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0", "--quiet", "--out", out)
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
        "fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0", "--quiet", "--out", tmp_path / "m.askwise"
    )
    assert code == 1
    assert "disk full" in err
    assert (tmp_path / "m.state").exists()


def test_ctrl_c_leaves_a_state_and_resume_goes_on(folder, tmp_path):
    out = tmp_path / "m.askwise"
    argv = ["fit", folder / "cases.csv", "--target", "diagnosis", "--average-budget", "1", "--out", out]
    # jobs in the background of a script ignore Ctrl-C, and so would what they start
    start = "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); from askwise.cli import main; "
    program = [sys.executable, "-c", start + "sys.exit(main(sys.argv[1:]))", *map(str, argv), "--time-limit", "120"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        first = process.stderr.readline()  # the first line of progress: training has begun
        assert "lambda" in first
        process.send_signal(signal.SIGINT)
        shown, err = process.communicate(timeout=60)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130
    assert shown == ""
    assert "Traceback" not in err
    assert "--resume" in err
    assert (tmp_path / "m.state").exists()
    assert not out.exists()
    assert run(*argv, "--time-limit", "0.5", "--resume", "--quiet")[0] == 0
    assert not (tmp_path / "m.state").exists()
    done = askwise.load(out).facts["records"][-1][0]
    assert done >= int(re.search(r"step (\d+)", first)[1])


def test_resume_needs_a_state_of_the_same_run(folder, tmp_path):
    argv = ["fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0", "--quiet", "--out", tmp_path / "m.askwise"]
    code, out, err = run(*argv, "--resume")
    assert (code, out) == (2, "")
    assert "m.state" in err
    (tmp_path / "m.state").write_bytes(b"nonsense")
    code, out, err = run(*argv, "--resume")
    assert (code, out) == (2, "")
    assert "cut short or damaged" in err
    assert len(err.splitlines()) == 1


def test_resume_of_another_run_is_refused_and_harms_nothing(folder, tmp_path):
    from askwise.store import write_state

    states = []
    table = read_table(folder / "cases.csv")
    X, y = table.drop(columns="diagnosis"), table["diagnosis"].to_numpy()
    classifier(config=None, time_limit=0, random_state=7).fit(X, y, save=states.append)
    write_state(tmp_path / "m.state", *states[-1])
    argv = ["fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0", "--quiet", "--out", tmp_path / "m.askwise"]
    code, out, err = run(*argv, "--resume", "--seed", "8")
    assert (code, out) == (2, "")
    assert "another run: its seed is 7, here it is 8" in err
    assert (tmp_path / "m.state").exists()
    assert run(*argv, "--resume", "--seed", "7")[0] == 0


def test_resume_and_restarts_contradict_each_other(folder, tmp_path):
    """A state is of one run, so nothing would be resumed."""
    from askwise.store import write_state

    write_state(tmp_path / "m.state", {"a": np.zeros(1)}, {})
    code, _, err = run("fit", folder / "cases.csv", "--target", "diagnosis", "--time-limit", "0", "--quiet", "--out",
                       tmp_path / "m.askwise", "--restarts", "2", "--resume")  # fmt: skip
    assert code == 2
    assert "restarts" in err
    assert (tmp_path / "m.state").exists()


# ---------------------------------------------------------------------- use


def test_predict_prints_a_row_per_case(folder):
    rows = list(csv.DictReader(io.StringIO(ok("predict", folder / "m.askwise", folder / "cases.csv"))))
    report = askwise.load(folder / "m.askwise").acquire(read_table(folder / "cases.csv"))
    assert list(rows[0]) == ["cost", "prediction", "probability", "tests"]
    assert [float(r["cost"]) for r in rows] == report.cost.tolist()
    assert [r["prediction"] for r in rows] == report.prediction.tolist()
    assert [float(r["probability"]) for r in rows] == report.probability.tolist()


def test_names_of_tests_can_be_told_apart(tmp_path):
    """Separated by ; as in the files that fit reads: names may hold spaces."""
    X, y = patients(160, holes=False)
    X = X[["age", "pressure"]].rename(columns={"age": "age of patient", "pressure": "blood pressure"})
    classifier(budget=askwise.Tradeoff(0)).fit(X, y).save(tmp_path / "m.askwise")
    X.to_csv(tmp_path / "c.csv", index=False)
    rows = list(csv.DictReader(io.StringIO(ok("predict", tmp_path / "m.askwise", tmp_path / "c.csv"))))
    report = askwise.load(tmp_path / "m.askwise").acquire(X)
    assert any(len(t) > 1 for t in report.tests)
    assert [tuple(t.strip() for t in r["tests"].split(";") if t) for r in rows] == report.tests


def test_predict_writes_a_file(folder, tmp_path):
    code, out, err = run("predict", folder / "m.askwise", folder / "cases.csv", "--out", tmp_path / "d.csv")
    assert (code, out) == (0, "")
    assert "160 cases" in err
    assert (tmp_path / "d.csv").read_text() == ok("predict", folder / "m.askwise", folder / "cases.csv")


def test_predict_for_machines(folder):
    rows = json.loads(ok("predict", folder / "m.askwise", folder / "cases.csv", "--json"))
    report = askwise.load(folder / "m.askwise").acquire(read_table(folder / "cases.csv"))
    assert [r["cost"] for r in rows] == report.cost.tolist()
    assert [tuple(r["tests"]) for r in rows] == report.tests
    assert {type(r["probability"]) for r in rows} == {float}


@pytest.mark.parametrize("names", [[0, 1], [False, True]], ids=str)
def test_classes_keep_their_type_in_json(names, tmp_path):
    X, y = patients(60, holes=False)
    X = X[["age", "pressure"]]
    classifier(time_limit=0).fit(X, np.array(names)[(y == "ill").astype(int)]).save(tmp_path / "m")
    X.to_csv(tmp_path / "c.csv", index=False)
    rows = json.loads(ok("predict", tmp_path / "m", tmp_path / "c.csv", "--json"))
    assert {type(r["prediction"]) for r in rows} == {type(names[0])}


def test_predict_takes_columns_by_name(folder, tmp_path):
    table = pd.read_csv(folder / "cases.csv")
    table[table.columns[::-1]].assign(diary="nothing").to_csv(tmp_path / "c.csv", index=False)
    assert ok("predict", folder / "m.askwise", tmp_path / "c.csv") == ok("predict", folder / "m.askwise", folder / "cases.csv")


def test_predict_takes_new_categories(folder, tmp_path):
    pd.read_csv(folder / "cases.csv").assign(town="Oslo", colour="purple").to_csv(tmp_path / "c.csv", index=False)
    assert len(ok("predict", folder / "m.askwise", tmp_path / "c.csv").splitlines()) == 161


def test_predict_reads_parquet(folder, tmp_path):
    pytest.importorskip("pyarrow")
    pd.read_csv(folder / "cases.csv").to_parquet(tmp_path / "c.parquet")
    assert ok("predict", folder / "m.askwise", tmp_path / "c.parquet") == ok(
        "predict", folder / "m.askwise", folder / "cases.csv"
    )


def test_predict_at_other_budgets(folder):
    def costs(*more):
        return [r["cost"] for r in json.loads(ok("predict", folder / "m.askwise", folder / "cases.csv", "--json", *more))]

    assert set(costs("--average-budget", "0")) == {0.0}
    assert set(costs("--price", "1000")) == {0.0}
    assert np.mean(costs("--price", "0")) >= np.mean(costs("--average-budget", "0.3")) > 0


def test_ids_make_the_draws(folder, tmp_path):
    table = pd.read_csv(folder / "cases.csv").assign(name=[f"case {i}" for i in range(160)])
    table.to_csv(tmp_path / "a.csv", index=False)
    table.iloc[40:60].to_csv(tmp_path / "b.csv", index=False)
    argv = ["--ids", "name", "--average-budget", "0.4", "--json"]
    everyone = json.loads(ok("predict", folder / "m.askwise", tmp_path / "a.csv", *argv))
    some = json.loads(ok("predict", folder / "m.askwise", tmp_path / "b.csv", *argv))
    assert [r["tests"] for r in some] == [r["tests"] for r in everyone[40:60]]


def test_evaluate_measures(folder):
    found = json.loads(ok("evaluate", folder / "hard.askwise", folder / "cases.csv", "--target", "diagnosis", "--json"))
    table = read_table(folder / "cases.csv")
    report = askwise.load(folder / "hard.askwise").acquire(table)
    truth = table["diagnosis"].to_numpy()
    right = report.prediction == truth
    assert found["cases"] == 160
    assert found["cost"] == pytest.approx(report.cost.mean())
    assert found["accuracy"] == pytest.approx(right.mean())
    assert found["balanced_accuracy"] == pytest.approx((right[truth == "ill"].mean() + right[truth == "well"].mean()) / 2)
    assert found["loss"] == pytest.approx(1 - right.mean())
    assert found["budget"] == "HardBudget(1.3)"
    text = ok("evaluate", folder / "hard.askwise", folder / "cases.csv", "--target", "diagnosis")
    assert re.search(rf"accuracy +{found['accuracy']:.4g}", text)


def test_frontier_shows_and_draws(folder, tmp_path):
    rows = json.loads(ok("frontier", folder / "m.askwise", "--json"))
    assert rows[0]["cost"] == 0
    assert [r["cost"] for r in rows] == sorted(r["cost"] for r in rows)
    text = ok("frontier", folder / "m.askwise", "--plot", tmp_path / "c.svg")
    assert len(text.splitlines()) == len(rows) + 2
    assert text.count(">") == 1  # where it works
    assert ET.parse(tmp_path / "c.svg").getroot().tag.endswith("svg")


def test_inspect_tells(folder):
    found = json.loads(ok("inspect", folder / "m.askwise", "--json"))
    assert found["classes"] == ["ill", "well"]
    assert found["unit"] == "€"
    assert found["total_cost"] == pytest.approx(2.9)  # all prices and the laboratory, once
    assert found["trained_for"] == "no budget"
    text = ok("inspect", folder / "m.askwise")
    assert "6 tests" in text
    assert "2.9 €" in text


def test_datasets_and_methods():
    assert re.search("^thyroid ", ok("datasets"), re.MULTILINE)
    everything = json.loads(ok("datasets", "--json"))
    assert {"thyroid", "heart", "pima", "digits"} <= set(everything)
    assert json.loads(ok("datasets", "thyroid", "--json"))["licence"]
    assert "UCI" in ok("datasets", "thyroid")
    assert set(json.loads(ok("methods", "--json"))) >= {"paper", "exact"}
    assert "paper" in ok("methods")


# ---------------------------------------------------------------------- help, codes, speed


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_examples(command, capsys):
    with pytest.raises(SystemExit) as left:
        main([command, "--help"])
    assert left.value.code == 0
    text = capsys.readouterr().out
    assert "examples:" in text
    assert f"  askwise {command}" in text


@pytest.mark.parametrize("command", COMMANDS)
def test_the_examples_are_valid(command):
    lines = [line.split("  (")[0].strip() for line in EXAMPLES[command].splitlines() if line.startswith("  askwise ")]
    assert lines
    for line in lines:
        given = parser().parse_args(shlex.split(line)[1:])
        assert given.call


def test_the_commands_are_listed(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert re.search(rf"^ +{command} ", text, re.MULTILINE)


@pytest.mark.parametrize("argv", [[], ["fitt"], ["fit", "--restarts", "many"], ["predict"], ["predict", "m.askwise"]], ids=str)
def test_wrong_usage_is_2(argv, capsys):
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "usage: askwise" in shown.err


def test_the_version(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"askwise {askwise.__version__}\n"


def test_it_is_also_a_module(folder):
    program = [sys.executable, "-m", "askwise"]
    done = subprocess.run([*program, "inspect", folder / "m.askwise", "--json"], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["unit"] == "€"
    bad = subprocess.run([*program, "inspect", folder / "nothing"], capture_output=True, text=True, check=False)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert len(bad.stderr.splitlines()) == 1


def test_a_reader_that_has_seen_enough_is_no_error(folder):
    read, write = os.pipe()
    os.close(read)  # so that every write fails
    program = [sys.executable, "-m", "askwise", "predict", str(folder / "m.askwise"), str(folder / "cases.csv")]
    done = subprocess.run(program, stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode in (0, 141)


def seconds(*program) -> float:
    """The best of three, in CPU seconds' likeness: a busy machine spoils single runs."""
    best = np.inf
    for _ in range(3):
        began = time.monotonic()
        subprocess.run([sys.executable, *program], check=True, stdout=subprocess.DEVNULL)
        best = min(best, time.monotonic() - began)
    return best


def test_import_and_help_are_fast():
    """0.3 s and 0.5 s on an idle machine; here they are compared to importing NumPy, which takes about 0.1 s of them."""
    numpy = seconds("-c", "import numpy")
    assert seconds("-c", "import askwise") < max(0.3, 3 * numpy)
    assert seconds("-m", "askwise", "--help") < max(0.5, 5 * numpy)


@pytest.mark.parametrize("program", ["import askwise", "import askwise.cli; askwise.cli.parser().format_help()"])
def test_nothing_heavy_is_imported_before_it_is_needed(program):
    heavy = {"torch", "sklearn", "scipy", "pandas", "matplotlib", "safetensors"}
    code = f"import sys; {program}; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
