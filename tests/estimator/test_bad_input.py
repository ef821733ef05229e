"""What cannot be used is refused in one sentence that names it: by the classifier as InputError, by the command line with exit
code 2, one line on stderr and nothing on stdout."""

import io
from contextlib import redirect_stderr, redirect_stdout

import numpy as np
import pytest
from tests.support.commands import ok, run
from tests.support.patients import classifier, numbers

from askwise import AverageBudget, HardBudget, Tradeoff
from askwise.cli import main
from askwise.errors import AskwiseError, InputError

pd = pytest.importorskip("pandas", reason="pandas is not installed")

X, CODES = numbers(60)
Y = np.array(["ill", "well"])[CODES]
FRAME = pd.DataFrame(X.round(3), columns=["age", "pressure", "scan"])
COSTS = {"age": 1, "pressure": 2, "scan": 30}


def changed(row, name, value):
    """The frame with one other value."""
    frame = FRAME.astype(object)
    frame.loc[row, name] = value
    return frame


@pytest.fixture(scope="module")
def fitted():
    return classifier(costs=COSTS, budget=Tradeoff("0.01")).fit(FRAME, Y)


# ---------------------------------------------------------------------- the classifier's settings

SETTINGS = [
    ({"costs": {"age": 1, "presure": 2, "scan": 3}}, "the test 'presure', which does not exist; did you mean 'pressure'?"),
    ({"costs": {"age": 1, "scan": 3}}, "test 'pressure' has no cost; give one (0 if it is free)"),
    ({"costs": {**COSTS, "scan": -3}}, "the cost of test 'scan' is -3; it must be a finite number, 0 or more"),
    ({"costs": {**COSTS, "scan": "dear"}}, "the cost of test 'scan' is 'dear'; it must be a finite number"),
    ({"costs": {**COSTS, "scan": np.nan}}, "the cost of test 'scan' is nan"),
    ({"costs": {**COSTS, "scan": None}}, "the cost of test 'scan' is None"),
    ({"costs": [1, 2]}, "there are 2 costs for 3 tests; give one for each"),
    ({"costs": 3}, "3"),
    ({"setup": {"draw": (1, ["age", "presure"])}}, "did you mean 'pressure'?"),
    ({"setup": {"draw": ["age"]}}, "set-up 'draw'"),
    ({"derived": {"scan": ["agee"]}}, "did you mean 'age'?"),
    ({"reveals": {"exam": ["age", "presure"]}}, "did you mean 'pressure'?"),
    ({"reveals": {"scan": ["age"]}}, "'scan' has the name of a column that it does not reveal"),
    ({"loss": [[0, 1]]}, "the loss matrix has shape (1, 2); for 2 classes it must be (2, 2)"),
    ({"loss": "0/1"}, "loss is '0/1'; it must be 'log', 'brier' or a loss matrix"),
    ({"class_weight": {"il": 2}}, "a weight is given for 'il', which is not a class; did you mean 'ill'?"),
    ({"class_weight": "balance"}, "the class weights are 'balance'; did you mean 'balanced'?"),
    (
        {"class_weight": "equal"},
        "the class weights are 'equal'; they must be None, 'balanced' or numbers by class, such as {'ill': 2}",
    ),
    ({"class_weight": [1, 2]}, "the class weights are [1, 2]; they must be None, 'balanced' or numbers by class"),
    ({"class_weight": {"ill": "much"}}, "the weight of class 'ill' is 'much'; it must be a finite number, 0 or more"),
    ({"categorical": ["agee"]}, "column 'agee' is listed as categorical, but does not exist; did you mean 'age'?"),
    ({"scaling": "ones"}, "scaling is 'ones'; did you mean 'one'?"),
    ({"reveals": {"exam": "presure"}}, "did you mean 'pressure'?"),
    ({"known": ["agee"]}, "'agee' is listed as known, but does not exist; did you mean 'age'?"),
    ({"known": [["age"]]}, "known"),
    (
        {"budget": 12},
        "budget is 12; it must be Tradeoff(lam), AverageBudget(b), HardBudget(b), AtLeast(...) or several joined by &",
    ),
    ({"n_restarts": 0}, "n_restarts is 0"),
    ({"n_restarts": 1.5}, "n_restarts is 1.5"),
    ({"time_limit": float("nan")}, "time_limit is nan"),
    ({"time_limit": -1}, "time_limit is -1"),
    ({"time_limit": "soon"}, "time_limit is 'soon'"),
    ({"validation_fraction": 1}, "validation_fraction is 1"),
    ({"validation_fraction": None}, "validation_fraction is None"),
    ({"config": {"width": 3}}, "config"),
    ({"random_state": -1}, "-1"),
]


@pytest.mark.parametrize(("settings", "message"), SETTINGS, ids=[str(s) for s, _ in SETTINGS])
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(InputError) as caught:
        classifier(**settings).fit(FRAME, Y)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------------- the classifier's data

TABLES = [
    (changed(7, "age", "old"), "column 'age' holds 'old' in row 7 (counted from 0), but numbers almost everywhere else"),
    (changed(7, "age", np.inf), "column 'age' holds inf in row 7 (counted from 0); values must be finite, or missing"),
    (pd.DataFrame(X, columns=["age", "age", "scan"]), "the column 'age' appears twice"),
    (FRAME[[]], "there are no columns"),
    (FRAME.iloc[:0], "there are no rows"),
]


@pytest.mark.parametrize(("table", "message"), TABLES, ids=[m for _, m in TABLES])
def test_tables_that_cannot_be_learned_from(table, message):
    with pytest.raises(InputError) as caught:
        classifier().fit(table, Y[: len(table)])
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def with_hole(values, row=4, dtype=None):
    values = list(values)
    values[row] = None
    return pd.Series(values, dtype=dtype)


HOLES = {
    "None": with_hole(Y, dtype=object).to_numpy(),
    "NaN among words": np.array([np.nan if i == 4 else v for i, v in enumerate(Y)], object),
    "NaN": np.where(np.arange(60) == 4, np.nan, CODES),
    "pandas str": with_hole(Y),
    "pandas string": with_hole(Y, dtype="string"),
    "pandas object": with_hole(Y, dtype=object),
    "pandas category": with_hole(Y, dtype="category"),
    "pandas Int64": with_hole(CODES, dtype="Int64"),
    "pandas boolean": with_hole(CODES == 1, dtype="boolean"),
    "pd.NA": np.array([pd.NA if i == 4 else v for i, v in enumerate(Y)], object),
}


@pytest.mark.parametrize("y", HOLES.values(), ids=HOLES)
def test_a_target_that_is_missing(y):
    with pytest.raises(InputError, match=r"the target is missing in row 4 \(counted from 0\); remove rows without a target"):
        classifier().fit(FRAME, y)


def test_a_target_that_is_infinite():
    with pytest.raises(ValueError, match="inf"):
        classifier().fit(FRAME, np.where(np.arange(60) == 4, np.inf, CODES))


TARGETS = [
    (["ill"] * 60, "all rows are of one class, 'ill'"),
    (np.arange(60) + 0.5, "continuous"),
    (Y[:50], "there are 50 targets for 60 rows"),
    (np.array([1, "ill"] * 30, object), "target"),
]


@pytest.mark.parametrize(("y", "message"), TARGETS, ids=[m for _, m in TARGETS])
def test_targets_that_cannot_be(y, message):
    with pytest.raises(InputError) as caught:
        classifier().fit(FRAME, y)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


NEW = [
    (FRAME.rename(columns={"pressure": "presure"}), "there is no column 'pressure' in the data; did you mean 'presure'?"),
    (FRAME.drop(columns="scan"), "there is no column 'scan' in the data"),
    (changed(3, "scan", "blurred"), "column 'scan' holds 'blurred' in row 3 (counted from 0); it must be a number, or missing"),
    (FRAME.iloc[:0], "there are no rows"),
]


@pytest.mark.parametrize("method", ["predict", "predict_proba", "acquire"])
@pytest.mark.parametrize(("table", "message"), NEW, ids=[m for _, m in NEW])
def test_new_cases_that_cannot_be_decided(fitted, method, table, message):
    with pytest.raises(InputError) as caught:
        getattr(fitted, method)(table)
    assert message in str(caught.value)


def test_unequal_sorts_of_tables_are_told_apart(fitted):
    with pytest.warns(UserWarning, match="feature names"):
        assert fitted.predict(FRAME.to_numpy()).tolist() == fitted.predict(FRAME).tolist()
    with pytest.raises(ValueError, match="2 features"), pytest.warns(UserWarning, match="feature names"):
        fitted.predict(FRAME.to_numpy()[:, :2])


def test_what_was_known_must_fit(fitted):
    with pytest.raises(InputError, match=r"shape \(60, 3\)"):
        fitted.acquire(FRAME, known=np.zeros((60, 2), bool))
    mask = np.zeros((60, 3), bool)
    mask[5, 1] = True
    with pytest.raises(InputError, match=r"'pressure' is marked as known in row 5 \(counted from 0\), but its value is missing"):
        fitted.acquire(changed(5, "pressure", None), known=mask)


@pytest.mark.parametrize("number", ["1e400", "-1", "nan", "inf", "1,5", "", None])
@pytest.mark.parametrize("kind", [Tradeoff, AverageBudget, HardBudget])
def test_budgets_that_cannot_be(kind, number):
    with pytest.raises(InputError, match="it must be a finite number, 0 or more"):
        kind(number)


def test_budgets_that_contradict_each_other():
    with pytest.raises(InputError, match="contradict each other"):
        Tradeoff(1) & AverageBudget(1)
    with pytest.raises(InputError, match="sets the same limit twice"):
        HardBudget(1) & HardBudget(2)


# ---------------------------------------------------------------------- the command line


@pytest.fixture(scope="module")
def folder(tmp_path_factory, fitted):
    """Good files, and many bad ones."""
    here = tmp_path_factory.mktemp("bad")
    fitted.save(here / "m.askwise")
    good = FRAME.assign(diagnosis=Y)
    good.to_csv(here / "cases.csv", index=False)
    files = {
        "onlyill": good.assign(diagnosis="ill"), "hole": good.assign(diagnosis=with_hole(Y)),
        "continuous": good.assign(diagnosis=X[:, 0]), "text": changed(7, "age", "old").assign(diagnosis=Y),
        "presure": good.rename(columns={"pressure": "presure"}), "justtarget": good[["diagnosis"]],
        "other": good.assign(diagnosis="unknown"), "holes": good.assign(name=with_hole(Y), cost=1),
    }  # fmt: skip
    for name, frame in files.items():
        frame.to_csv(here / f"{name}.csv", index=False)
    texts = {
        "twice": "age,age,diagnosis\n1,2,ill\n3,4,well\n", "ragged": "age,diagnosis\n1,ill\n3,4,5,well\n", "empty": "",
        "headonly": "age,diagnosis\n", "semicolons": "age;diagnosis\n1;ill\n",
        "thousands": "age;pressure;scan;diagnosis\n1,234;1;1;ill\n2,345;2;2;well\n",
        # price lists
        "p": "test,cost\nage,1\npressure,2\nscan,3\n", "p-lacks": "test,cost\nage,1\nscan,3\n",
        "p-negative": "test,cost\nage,-1\npressure,2\nscan,3\n", "p-text": "test,cost\nage,dear\npressure,2\nscan,3\n",
        "p-typo": "test,cost\nage,1\npresure,2\nscan,3\n", "p-columns": "test,price\nage,1\n",
        "p-twice": "test,cost\nage,1\nage,9\npressure,2\nscan,3\n", "p-comma": "test,cost\nage,1,5\npressure,2\nscan,3\n",
        "p-short": "test,cost\nage\npressure,2\nscan,3\n", "p-semicolons": "test;cost\nage;1\n",
        "p-thousands": 'test,cost\nage,"1,234"\npressure,2\nscan,3\n',
        # other settings
        "s-short": "setup,cost,tests\ndraw,1\n", "s-typo": "setup,cost,tests\ndraw,1,age;presure\n",
        "s-twice": "setup,cost,tests\ndraw,1,age\ndraw,2,scan\n",
        "d-typo": "test,sources\nscan,agee\n", "d-short": "test,sources\nscan\n",
        "r-typo": "test,columns\nexam,age;presure\n", "r-short": "test,columns\nexam\n",
        "l-empty": "", "l-short": ",ill,well\nill,0,1\nwell,1\n", "l-long": ",ill,well\nill,0,1,2\nwell,1,0\n",
        "l-text": ",ill,well\nill,0,bad\nwell,1,0\n", "l-lacks": ",ill\nill,0\n", "l-negative": ",ill,well\nill,0,-1\nwell,1,0\n",
    }  # fmt: skip
    for name, text in texts.items():
        (here / f"{name}.csv").write_text(text)
    (here / "p-latin.csv").write_bytes("test,cost\nage,1\npressure,2\nscän,3\n".encode("latin-1"))
    (here / "latin.csv").write_bytes("age,diagnosis\n1,müde\n2,wach\n".encode("latin-1"))
    (here / "cyrillic.csv").write_bytes("age,diagnosis\n1,жар\n2,нет\n".encode("cp1251"))
    (here / "p-cyrillic.csv").write_bytes("test,cost\nжар,1\n".encode("cp1251"))
    (here / "notatable.ods").write_bytes(b"PK")
    (here / "fake.askwise").write_text("no model")
    (here / "notatable.xlsx").write_bytes(b"PK")
    return here


FIT = "fit cases.csv --target diagnosis --quiet --time-limit 0 --out out.askwise"
BAD = {
    # cases
    "fit --quiet": "give either a file of cases or --data NAME",
    "fit cases.csv --data thyroid": "give either a file of cases or --data NAME",
    "fit cases.csv": "name the column of 'cases.csv' that holds the class: --target COLUMN",
    "fit cases.csv --target diagnoses": "'cases.csv' has no column 'diagnoses'; did you mean 'diagnosis'?",
    "fit nothing.csv --target diagnosis": "there is no file",
    "fit notatable.xlsx --target diagnosis": "'notatable.xlsx' cannot be read as a table: it is not an .xlsx file",
    "fit notatable.ods --target diagnosis": "unknown format",
    "fit onlyill.csv --target diagnosis": "all rows are of one class, 'ill'",
    "fit hole.csv --target diagnosis": "the target 'diagnosis' is missing in line 6 of 'hole.csv'; remove such rows",
    "fit continuous.csv --target diagnosis": "continuous",
    "fit text.csv --target diagnosis": "column 'age' holds 'old' in line 9 of 'text.csv', but numbers almost everywhere else",
    "fit twice.csv --target diagnosis": "the column 'age' appears twice",
    "fit ragged.csv --target diagnosis": "'ragged.csv'",
    "fit empty.csv --target diagnosis": "'empty.csv'",
    "fit headonly.csv --target diagnosis": "'headonly.csv' has no rows",
    "fit semicolons.csv --target diagnosis --sep ,": "the one column 'age;diagnosis'; say what separates its columns with --sep",
    "fit semicolons.csv --target diagnosis": "all rows are of one class, 'ill'",
    "fit cyrillic.csv --target diagnosis": "'cyrillic.csv' cannot be read as a table: it is not UTF-8, and its encoding",
    "fit latin.csv --target diagnosis --encoding utf-8": "'latin.csv' cannot be read as utf-8 (invalid start byte); give its",
    "fit cases.csv --target diagnosis --encoding utf-9": "--encoding is 'utf-9', which is unknown; it must be like utf-8",
    "fit cases.csv --target diagnosis --sep ::": "--sep is '::'; it must be one character",
    "fit cases.csv --target diagnosis --decimal ;": "--decimal is ';'; it must be . or ,",
    "fit cases.csv --target diagnosis --sheet A": "--sheet is only for .xlsx files; leave it out for 'cases.csv'",
    "fit --data thyroid --sep ;": "--sep is only for files; leave it out for 'thyroid'",
    "fit thousands.csv --target diagnosis": "column 'age' holds '1,234' in line 2, which is 1234 or 1.234; say which is",
    "predict m.askwise semicolons.csv --sep |": "say what separates its columns with --sep",
    "predict m.askwise thousands.csv": "column 'age' holds '1,234' in line 2, which is 1234 or 1.234; say which is the",
    "evaluate m.askwise thousands.csv --target diagnosis": "say which is the decimal mark: --decimal . or --decimal ,",
    "ask m.askwise --simulate thousands.csv": "say which is the decimal mark: --decimal . or --decimal ,",
    "fit justtarget.csv --target diagnosis": "there are no columns",
    "fit --data thyroidd": "there is no data set 'thyroidd'; did you mean 'thyroid'?",
    # prices
    f"{FIT} --costs nothing.csv": "there is no file",
    f"{FIT} --costs p-lacks.csv": "test 'pressure' has no cost; give one (0 if it is free)",
    f"{FIT} --costs p-negative.csv": "the cost of test 'age' is '-1'; it must be a finite number, 0 or more",
    f"{FIT} --costs p-text.csv": "the cost of test 'age' is 'dear'; it must be a finite number",
    f"{FIT} --costs p-typo.csv": "did you mean 'pressure'?",
    f"{FIT} --costs p-columns.csv": "'p-columns.csv' has no column 'cost'; it must have the columns test, cost",
    f"{FIT} --costs p-twice.csv": "'age'",
    f"{FIT} --costs p-comma.csv": "'p-comma.csv'",
    f"{FIT} --costs p-short.csv": "age",
    f"{FIT} --costs p-semicolons.csv": "test 'pressure' has no cost",
    f"{FIT} --costs p-thousands.csv": "the cost of 'age' in 'p-thousands.csv' is '1,234', which is 1234 or 1.234; write it",
    f"{FIT} --costs p-latin.csv": "'scän'",
    f"{FIT} --costs p-cyrillic.csv": "'p-cyrillic.csv' cannot be read as a table: it is not UTF-8",
    # other settings
    f"{FIT} --setup s-short.csv": "'s-short.csv'",
    f"{FIT} --setup s-typo.csv": "did you mean 'pressure'?",
    f"{FIT} --setup s-twice.csv": "'draw'",
    f"{FIT} --derived d-typo.csv": "did you mean 'age'?",
    f"{FIT} --derived d-short.csv": "'d-short.csv'",
    f"{FIT} --reveals r-typo.csv": "did you mean 'pressure'?",
    f"{FIT} --reveals r-short.csv": "'r-short.csv'",
    f"{FIT} --loss l-empty.csv": "'l-empty.csv'",
    f"{FIT} --loss l-short.csv": "'l-short.csv'",
    f"{FIT} --loss l-long.csv": "'l-long.csv'",
    f"{FIT} --loss l-text.csv": "'l-text.csv'",
    f"{FIT} --loss l-lacks.csv": "no row or no column for the class 'well'",
    f"{FIT} --loss l-negative.csv": "negative",
    f"{FIT} --known agee": "did you mean 'age'?",
    f"{FIT} --categorical agee": "column 'agee' is listed as categorical, but does not exist; did you mean 'age'?",
    f"{FIT} --ignore agee": "--ignore names the column 'agee', which does not exist; did you mean 'age'?",
    f"{FIT} --ignore age,pressure,scan": "there are no columns",
    f"{FIT} --ids nam": "--ids names the column 'nam', which does not exist",
    f"{FIT} --seed -1": "-1",
    f"{FIT} --restarts 0": "restarts",
    f"{FIT} --time-limit nan": "nan",
    f"{FIT} --time-limit -3": "-3",
    f"{FIT} --time-limit 5d": "the time limit is '5d'; it must be like 90 or 90s for seconds, 5m for minutes, or 1h for hours",
    # budgets
    f"{FIT} --tradeoff 0.1 --average-budget 2": "a tradeoff and an average budget contradict each other",
    f"{FIT} --average-budget much": "the average budget is 'much'; it must be a finite number, 0 or more",
    f"{FIT} --hard-budget -1": "the hard budget is '-1'",
    f"{FIT} --tradeoff 1e400": "the tradeoff is '1e400'",
    "predict m.askwise cases.csv --tradeoff 0.1 --average-budget 2": "contradict each other",
    "predict m.askwise cases.csv --hard-budget 3": "so it cannot keep to 3; fit again with HardBudget(3)",
    "evaluate m.askwise cases.csv --target diagnosis --hard-budget 3": "trained without a hard budget",
    # use
    "predict nothing.askwise cases.csv": "there is no file",
    "predict fake.askwise cases.csv": "cannot be read",
    "predict cases.csv cases.csv": "'cases.csv' is not a model; name a file that askwise has written",
    "predict m.askwise nothing.csv": "there is no file",
    "predict m.askwise presure.csv": "there is no column 'pressure' in the data; did you mean 'presure'?",
    "predict m.askwise text.csv": "column 'age' holds 'old' in line 9 of 'text.csv'; it must be a number, or missing",
    "predict m.askwise cases.csv --ids nam": "there is no column 'nam'",
    "predict m.askwise holes.csv --ids name": "column 'name' names the cases, but is empty in line 6 of 'holes.csv'; fill it in",
    "predict m.askwise holes.csv --ids cost": "the column 'cost' has the name of a column of the output; rename it",
    "predict m.askwise cases.csv --out cases.csv": "the decisions cannot be written to 'cases.csv': that file is also an input",
    "predict m.askwise cases.csv --out m.askwise": "that file is also an input",
    "evaluate m.askwise": "give either a file of cases or --data NAME",
    "evaluate m.askwise cases.csv": "--target COLUMN",
    "evaluate m.askwise other.csv --target diagnosis": "the target is 'unknown' in line 2 of 'other.csv', which is not a class",
    "evaluate m.askwise --data thyroid": "there is no column 'pressure' in the data",
    "frontier m.askwise --plot curve.doc": "end it in .png or .svg",
    "inspect fake.askwise": "cannot be read",
    "datasets thyroidd": "did you mean 'thyroid'?",
}


@pytest.mark.parametrize("line", BAD)
def test_bad_commands_are_answered_in_one_line(line, folder, monkeypatch):
    monkeypatch.chdir(folder)
    before = {p.name: p.stat().st_mtime_ns for p in folder.iterdir()}
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(line.split())
    assert err.getvalue().startswith("askwise: ")
    assert len(err.getvalue().splitlines()) == 1
    assert BAD[line] in err.getvalue()
    assert code == 2
    assert out.getvalue() == ""
    assert {p.name: p.stat().st_mtime_ns for p in folder.iterdir()} == before, "nothing may be written"


def test_lists_of_costs_are_read_as_spreadsheets_write_them(folder, tmp_path, monkeypatch):
    """With a mark at the start, blanks after commas and an empty line at the end."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "p.csv").write_text("\ufefftest, cost\nage, 1\npressure, 2\nscan, 0.5\n\n", encoding="utf-8")
    (tmp_path / "s.csv").write_text("\ufeffsetup,cost,tests\ndraw,1,age; pressure\n", encoding="utf-8")
    (tmp_path / "l.csv").write_text("\ufefftruth,ill,well\nill,0,5\nwell,1,0\n\n", encoding="utf-8")
    argv = f"fit {folder}/cases.csv --target diagnosis --quiet --time-limit 0.001 --costs p.csv --setup s.csv --loss l.csv --json"
    assert '"age": 2.0, "pressure": 3.0, "scan": 0.5' in ok(*argv.split())


def test_many_classes_are_no_reason_for_noise(tmp_path, monkeypatch):
    """scikit-learn would warn, which is nothing for a user of the command line."""
    monkeypatch.chdir(tmp_path)
    FRAME.assign(diagnosis=np.arange(60) % 32).to_csv("many.csv", index=False)
    code, _, err = run("fit", "many.csv", "--target", "diagnosis", "--quiet", "--time-limit", "0.001")
    assert code == 0
    assert [line.split(",")[0] for line in err.splitlines()] == [
        "askwise: there are too few rows of some class to keep some of each apart; collect more of it",
        "askwise: the target has 32 different whole numbers",
    ]


def test_every_error_is_of_the_family():
    assert issubclass(InputError, AskwiseError)
    assert issubclass(AskwiseError, ValueError), "as scikit-learn's callers expect"
