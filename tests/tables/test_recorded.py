"""An existing classifier whose answers are a column of the table: priced and believed like one that can be asked."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from tests.support.commands import ok, run
from tests.support.patients import classifier, numbers

import askwise
from askwise import Recorded, Tradeoff
from askwise.errors import InputError, StateError
from askwise.model import archives, file

pd = pytest.importorskip("pandas", reason="pandas is not installed")

COSTS = {"a": "0.7", "b": 2, "c": "0.1"}
NEEDS = ["b", "a"]


def table(n=120, seed=0):
    X, y = numbers(n, seed)
    frame = pd.DataFrame(X, columns=list(COSTS))
    frame.loc[::5, "a"] = np.nan
    return frame, np.array(["ill", "well"])[y]


@pytest.fixture(scope="module")
def oracle():
    X, y = table()
    whole = X["a"].notna()
    return LogisticRegression().fit(X.loc[whole, NEEDS], y[whole])


def record(oracle, X):
    """The table with what it says, where it can say anything."""
    whole = X["a"].notna()
    said = pd.Series([None] * len(X), dtype=object)
    said[whole] = oracle.predict(X.loc[whole, NEEDS])
    return X.assign(oracle=said)


@pytest.fixture(scope="module")
def fitted(oracle):
    X, y = table()
    settings = {"costs": COSTS, "budget": Tradeoff(0), "random_state": 1}
    asked = classifier(**settings, external=oracle).fit(X, y)
    return asked, classifier(**settings, external=Recorded("oracle", NEEDS)).fit(record(oracle, X), y)


def test_it_is_the_same_as_asking(fitted, oracle):
    asked, recorded = fitted
    X, y = table(90, seed=5)
    mine, theirs = recorded.acquire(record(oracle, X)), asked.acquire(X)
    done = recorded.model_.rollout(recorded.model_.problem(record(oracle, X)))
    assert (done.action == 2).any(), "it was never asked, so nothing is tested"
    assert mine.tests == theirs.tests
    assert mine.cost.tolist() == theirs.cost.tolist()
    assert mine.prediction.tolist() == theirs.prediction.tolist()
    assert recorded.score(record(oracle, X), y) == asked.score(X, y)


def test_the_column_is_no_feature(fitted):
    _, recorded = fitted
    assert recorded.model_.schema.tests == ("a", "b", "c")
    assert recorded.model_.encoding.columns == ("a", "b", "c")


@pytest.mark.parametrize(
    ("needs", "reveals", "expected"),
    [
        (None, None, ["a", "b", "c"]),
        ("b", None, ["b"]),
        (["a"], {"exam": ["a", "b"]}, ["exam"]),
        (["exam", "c"], {"exam": ["a", "b"]}, ["exam", "c"]),
        ([], None, []),
    ],
    ids=str,
)
def test_what_it_needs(oracle, needs, reveals, expected):
    X, y = table()
    X = record(oracle, X.dropna().reset_index(drop=True))
    y = y[table()[0]["a"].notna()]
    schema = classifier(external=Recorded("oracle", needs), reveals=reveals, time_limit=0).fit(X, y).model_.schema
    assert [t for t, has in zip(schema.tests, schema.external_needs, strict=True) if has] == expected


def test_answers_may_be_numbers_and_categories():
    """A column of whole numbers with a gap is one of floats in pandas."""
    X, y = table()
    said = pd.Series(np.where(X["a"].isna(), np.nan, 1.0))
    model = classifier(external=Recorded("o"), time_limit=0).fit(X.assign(o=said), (y == "ill").astype(int)).model_
    assert model.problem(X.assign(o=said)).external[1] == 1
    words = X.assign(o=pd.Categorical(["well"] * len(X)))
    model = classifier(external=Recorded("o"), time_limit=0).fit(words, y).model_
    assert set(model.problem(words).external.tolist()) == {0, 1}  # 0 where it is never asked


BAD = [
    (lambda X: X.drop(columns="oracle"), "there is no column 'oracle' in the data, where the answers"),
    (lambda X: X.rename(columns={"oracle": "orakle"}), "did you mean 'orakle'?"),
    (lambda X: X.assign(oracle=X["oracle"].where(X.index != 7)),
     "column 'oracle' lacks the answer of the existing classifier in row 7 (counted from 0); fill it in"),
    (lambda X: X.assign(oracle=X["oracle"].where(X.index != 7, "il")),
     "column 'oracle' holds 'il' in row 7 (counted from 0), which is not a class; did you mean 'ill'?"),
]  # fmt: skip


@pytest.mark.parametrize(("change", "message"), BAD, ids=[m for _, m in BAD])
def test_answers_that_cannot_be(fitted, oracle, change, message):
    X, y = table()
    for use in (lambda X: classifier(external=Recorded("oracle", NEEDS)).fit(X, y), fitted[1].predict, fitted[1].model_.acquire):
        with pytest.raises(InputError) as caught:
            use(change(record(oracle, X)))
        assert message in str(caught.value)


def test_an_array_has_no_such_column():
    X, y = numbers()
    with pytest.raises(InputError, match="in the column 'oracle'; give a DataFrame that has it, not an array"):
        classifier(external=Recorded("oracle")).fit(X, y)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Recorded(3), "the column of recorded answers is 3"),
        (lambda: Recorded("oracle", ["aa"]), "needs the test 'aa', which does not exist; did you mean 'a'?"),
    ],
)
def test_what_it_is_said_to_be_is_checked(oracle, make, message):
    X, y = table()
    with pytest.raises(InputError) as caught:
        classifier(external=make()).fit(record(oracle, X), y)
    assert message in str(caught.value)


def test_with_nothing_beside_it_there_is_nothing_to_buy(oracle):
    X, y = table()
    with pytest.raises(InputError, match="there are no columns"):
        classifier(external=Recorded("oracle")).fit(record(oracle, X)[["oracle"]], y)


def test_it_can_be_cloned(fitted, oracle):
    copy = clone(fitted[1])
    assert copy.external == Recorded("oracle", NEEDS)
    X, y = table()
    assert cross_val_score(copy, record(oracle, X), y, cv=2).mean() > 0.6


def test_a_model_file_remembers_it(fitted, oracle, tmp_path):
    _, recorded = fitted
    recorded.save(tmp_path / "m")
    model = askwise.load(tmp_path / "m")
    X = record(oracle, table(90, seed=5)[0])
    assert model.acquire(X).tests == recorded.acquire(X).tests
    assert model.predict(X).tolist() == recorded.predict(X).tolist()
    assert model.external.column == "oracle"
    assert set(model.external.needs) == set(NEEDS)
    with pytest.raises(StateError, match="from the column 'oracle'; leave external= out"):
        askwise.load(tmp_path / "m", external=oracle)


@pytest.mark.parametrize("word", [3, ["oracle"], True, {}])
def test_a_file_that_says_nonsense_about_it_is_refused(fitted, tmp_path, word):
    fitted[1].save(tmp_path / "m")
    arrays, card = archives.read(tmp_path / "m", file.MODEL)
    archives.write(tmp_path / "m", file.MODEL, arrays, {**card, "external_column": word})
    with pytest.raises(StateError):
        askwise.load(tmp_path / "m")
    del arrays["external_needs"]
    archives.write(tmp_path / "m", file.MODEL, arrays, card)
    with pytest.raises(StateError, match="recorded answers have a column, and need some tests"):
        askwise.load(tmp_path / "m")


# ---------------------------------------------------------------------- the command line


@pytest.fixture(scope="module")
def folder(tmp_path_factory, oracle):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    here = tmp_path_factory.mktemp("recorded")
    X, y = table()
    record(oracle, X).assign(diagnosis=y).to_csv(here / "cases.csv", index=False)
    X.assign(diagnosis=y).to_csv(here / "without.csv", index=False)
    argv = ["fit", here / "cases.csv", "--target", "diagnosis", "--time-limit", "1s", "--tradeoff", "0.0001", "--quiet"]
    assert run(*argv, "--external", "oracle", "--external-needs", "b, a", "--out", here / "m.askwise")[0] == 0
    return here


def test_fit_predict_and_evaluate_by_column(folder, oracle):
    model = askwise.load(folder / "m.askwise")
    assert model.external == Recorded("oracle", ("a", "b"))
    assert model.schema.tests == ("a", "b", "c")
    rows = json.loads(ok("predict", folder / "m.askwise", folder / "cases.csv", "--json"))
    X = record(oracle, table()[0])
    assert [r["prediction"] for r in rows] == model.predict(X).tolist()
    found = json.loads(ok("evaluate", folder / "m.askwise", folder / "cases.csv", "--target", "diagnosis", "--json"))
    assert found["cost"] == pytest.approx(np.mean([r["cost"] for r in rows]))
    assert json.loads(ok("inspect", folder / "m.askwise", "--json"))["external"] == "oracle"
    assert "the column 'oracle'" in ok("inspect", folder / "m.askwise")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("predict m.askwise without.csv", "there is no column 'oracle' in the data"),
        ("evaluate m.askwise without.csv --target diagnosis", "there is no column 'oracle' in the data"),
        ("fit cases.csv --target diagnosis --external orcale", "did you mean 'oracle'?"),
        ("fit cases.csv --target diagnosis --external oracle --external-needs d", "needs the test 'd', which does not exist"),
        ("fit cases.csv --target diagnosis --external-needs a", "name the column of its answers: --external COLUMN"),
    ],
)
def test_what_the_command_line_says(folder, monkeypatch, line, message):
    monkeypatch.chdir(folder)
    code, out, err = run(*line.split())
    assert (code, out) == (2, "")
    assert message in err
    assert len(err.splitlines()) == 1
