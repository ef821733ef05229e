"""The command line: the commands that use a model, exit codes, what goes to stdout and what to stderr, help and speed."""

import csv
import io
import json
import os
import re
import shlex
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from importlib import import_module

import numpy as np
import pytest
from tests.support.commands import fill, ok, run
from tests.support.patients import classifier, patients

import askwise
from askwise.cli import main
from askwise.cli.parser import EXAMPLES, parsed
from askwise.tables.reading import read_table

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")

COMMANDS = ["fit", "predict", "evaluate", "frontier", "inspect", "datasets", "methods", "bench"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return fill(tmp_path_factory.mktemp("cli"))


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


def test_predict_writes_json(folder):
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
    code, out, err = run("predict", folder / "m.askwise", tmp_path / "c.csv")
    assert (code, len(out.splitlines())) == (0, 161)
    assert [line.split("'")[1] for line in err.splitlines()] == ["colour", "town"]
    assert err.startswith("askwise: no value of column 'colour' in these rows occurred in training")


def test_too_little_memory_is_one_sentence(folder, monkeypatch):
    def full(*_, **__):
        return np.empty(1 << 58, np.uint8)

    monkeypatch.setattr("askwise.facade.Model.acquire", full)
    code, out, err = run("predict", folder / "m.askwise", folder / "cases.csv")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert err.startswith("askwise: the memory of this machine is too small for this; give fewer rows (Unable to allocate ")


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
    assert set(costs("--tradeoff", "1000")) == {0.0}
    assert np.mean(costs("--tradeoff", "0")) >= np.mean(costs("--average-budget", "0.3")) > 0


def test_ids_make_the_draws(folder, tmp_path):
    table = pd.read_csv(folder / "cases.csv").assign(name=[f"case {i}" for i in range(160)])
    table.to_csv(tmp_path / "a.csv", index=False)
    table.iloc[40:60].to_csv(tmp_path / "b.csv", index=False)
    argv = ["--ids", "name", "--average-budget", "0.4", "--json"]
    everyone = json.loads(ok("predict", folder / "m.askwise", tmp_path / "a.csv", *argv))
    some = json.loads(ok("predict", folder / "m.askwise", tmp_path / "b.csv", *argv))
    assert [r["tests"] for r in some] == [r["tests"] for r in everyone[40:60]]


def test_ids_come_first(folder, tmp_path):
    pd.read_csv(folder / "cases.csv").assign(number=np.arange(160) * 7).to_csv(tmp_path / "a.csv", index=False)
    argv = ["predict", folder / "m.askwise", tmp_path / "a.csv", "--ids", "number"]
    rows = list(csv.DictReader(io.StringIO(ok(*argv))))
    assert list(rows[0]) == ["number", "cost", "prediction", "probability", "tests"]
    assert [r["number"] for r in rows] == [str(i * 7) for i in range(160)]
    rows = json.loads(ok(*argv, "--json"))
    assert next(iter(rows[0])) == "number"
    assert [r["number"] for r in rows] == [str(i * 7) for i in range(160)]


def test_json_goes_into_the_file(folder, tmp_path):
    argv = ["predict", folder / "m.askwise", folder / "cases.csv", "--json"]
    code, out, err = run(*argv, "--out", tmp_path / "d.json")
    assert (code, out) == (0, "")
    assert "160 cases" in err
    assert json.loads((tmp_path / "d.json").read_text()) == json.loads(ok(*argv))


def test_a_larger_hard_budget_is_answered_with_the_trained_one(folder):
    code, out, err = run("predict", folder / "hard.askwise", folder / "cases.csv", "--hard-budget", "5")
    assert code == 0
    assert out == ok("predict", folder / "hard.askwise", folder / "cases.csv")
    assert err.startswith("askwise: this model was trained for a hard budget of 1.3 and keeps to it")
    assert len(err.splitlines()) == 1


def test_the_table_puts_first_what_was_learned_for(folder, tmp_path):
    usual = ok("frontier", folder / "m.askwise").splitlines()
    assert usual[0].split() == ["mean", "cost,", "€", "accuracy", "loss", "cases", "kind", "of", "policy"]
    X, y = patients(160)
    fitted = classifier(loss=[[0, 20], [1, 0]]).fit(X, y)
    fitted.save(tmp_path / "m")
    lines = ok("frontier", tmp_path / "m").splitlines()
    assert lines[0].split() == ["mean", "cost", "loss", "/", "scale", "accuracy", "cases", "kind", "of", "policy"]
    assert "learned for the loss / scale" in lines[-1]
    model = fitted.model_
    for line, p in zip(lines[2:-2], model.points, strict=True):
        words, m = re.sub("[>±%]", "", line).split(), p.measure
        shown = [float(v) for v in words[:7]]
        assert " ".join(words[7:]) == ("decides at once" if p is model.points[0] else p.kind)
        figures = [
            m.cost,
            m.cost_error,
            m.loss / model.loss_scale,
            m.loss_error / model.loss_scale,
            m.accuracy,
            m.accuracy_error,
            m.n,
        ]
        shown[4], shown[5] = shown[4] / 100, shown[5] / 100  # told in percent
        assert shown[:2] == pytest.approx(figures[:2], abs=0.0051)  # costs to a hundredth
        assert shown[2:] == pytest.approx(figures[2:], abs=1e-3)
    assert f"loss / scale {model.expected['loss'] / model.loss_scale:.4f}" in ok("inspect", tmp_path / "m")


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


def test_money_has_its_unit_in_summaries(folder, tmp_path):
    argv = ["evaluate", folder / "m.askwise", folder / "cases.csv", "--target", "diagnosis"]
    measures = json.loads(ok(*argv, "--json"))
    assert measures["unit"] == "€"
    assert re.search(rf"^cost +{measures['cost']:.4g} ± [\d.]+ €$", ok(*argv), re.MULTILINE)
    err = run("predict", folder / "m.askwise", folder / "cases.csv", "--out", tmp_path / "d.csv")[2]
    assert re.match(r"160 cases, mean cost [\d.]+ €: ", err)


def test_frontier_shows_and_draws(folder, tmp_path):
    rows = json.loads(ok("frontier", folder / "m.askwise", "--json"))
    assert rows[0]["cost"] == 0
    assert rows[0]["kind"] == "decides at once"
    assert {r["kind"] for r in rows[1:]} == {"adaptive"}  # the paper's algorithm learns no other
    assert json.loads(ok("inspect", folder / "m.askwise", "--json"))["frontier"] == rows
    assert [r["cost"] for r in rows] == sorted(r["cost"] for r in rows)
    text = ok("frontier", folder / "m.askwise", "--plot", tmp_path / "c.svg")
    assert len(text.splitlines()) == len(rows) + 3
    assert text.endswith("measured on cases that the fit kept apart; ± is one standard error\n")
    assert text.count(">") == 2  # where it works, and what that means
    assert ET.parse(tmp_path / "c.svg").getroot().tag.endswith("svg")


def test_inspect_shows_what_a_model_holds(folder):
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
    told = json.loads(ok("methods", "--json"))
    assert set(told) >= {"paper", "exact", "static-gbm"}
    assert all(told.values())
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
        given = parsed(shlex.split(line)[1:])
        assert callable(import_module(f"askwise.cli.{given.command}").run)


def test_the_commands_are_listed(capsys):
    with pytest.raises(SystemExit):
        main(["--help"])
    text = capsys.readouterr().out
    for command in COMMANDS:
        assert re.search(rf"^ +{command} ", text, re.MULTILINE)


@pytest.mark.parametrize("argv", [[], ["fitt"], ["fit", "--restarts", "many"], ["predict"], ["predict", "m.askwise"]], ids=str)
def test_wrong_usage_exits_with_2(argv, capsys):
    with pytest.raises(SystemExit) as left:
        main(argv)
    assert left.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert "usage: askwise" in shown.err


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (
            "fit cases.csv --tradeof 3",
            "askwise fit has no option '--tradeof'; did you mean '--tradeoff'?",
        ),  # not even short for it
        ("fit --data pima --averagebudget=3", "askwise fit has no option '--averagebudget'; did you mean '--average-budget'?"),
        ("bench report rows.jsonl --titel A", "askwise bench report has no option '--titel'; did you mean '--title'?"),
        ("frontier m.askwise --xyz", "askwise frontier has no option '--xyz'; there are '--plot', '--json'"),
        ("frontier m.askwise other", "nothing is expected here: other"),
    ],
)
def test_an_unknown_option_is_answered_with_a_guess(argv, words, capsys):
    with pytest.raises(SystemExit) as left:
        main(argv.split())
    assert left.value.code == 2
    assert capsys.readouterr().err.endswith(f"askwise: error: {words}\n")


def test_the_version(capsys):
    with pytest.raises(SystemExit) as left:
        main(["--version"])
    assert left.value.code == 0
    assert capsys.readouterr().out == f"askwise {askwise.__version__}\n"


def test_it_also_runs_with_python_dash_m(folder):
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


@pytest.mark.parametrize("program", ["import askwise", "import askwise.cli.parser; askwise.cli.parser.parser().format_help()"])
def test_nothing_heavy_is_imported_before_it_is_needed(program):
    heavy = {"torch", "sklearn", "scipy", "pandas", "matplotlib", "safetensors"}
    code = f"import sys; {program}; print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_ids_stay_as_they_are_written_and_give_the_same_draws_to_predict_and_evaluate(folder, tmp_path):
    table = pd.read_csv(folder / "cases.csv")
    table.insert(0, "patient", [f"{i:05}" for i in range(len(table))])
    table.to_csv(tmp_path / "named.csv", index=False)
    out = ok("predict", folder / "m.askwise", tmp_path / "named.csv", "--ids", "patient", "--average-budget", "0.4")
    decided = pd.read_csv(io.StringIO(out), dtype={"patient": str})
    assert decided["patient"].tolist() == table["patient"].tolist()
    found = json.loads(ok("evaluate", folder / "m.askwise", tmp_path / "named.csv", "--target", "diagnosis", "--ids", "patient",
                          "--average-budget", "0.4", "--json"))  # fmt: skip
    assert found["cost"] == pytest.approx(decided["cost"].mean())


def test_a_folder_that_is_not_there_is_named(folder, tmp_path):
    code, _, err = run("predict", folder / "m.askwise", folder / "cases.csv", "--out", tmp_path / "nowhere" / "d.csv")
    assert code == 2
    assert "nowhere' is not a folder" in err


def test_decisions_are_not_written_as_what_their_name_does_not_say(folder, tmp_path):
    code, _, err = run("predict", folder / "m.askwise", folder / "cases.csv", "--out", tmp_path / "d.xlsx")
    assert code == 2
    assert "its name must end in .csv or .parquet" in err
    assert not (tmp_path / "d.xlsx").exists()
