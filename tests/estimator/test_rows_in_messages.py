"""Whoever made a mistake in a file is told its line; in Python rows are counted from 0, and it is said."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from tests.support.commands import run
from tests.support.models import family, table
from tests.support.patients import classifier, patients

from askwise.errors import InputError, RowError
from askwise.tables.reading import read_table


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model; cases with a wrong value in the case of row 7 and a missing class in that of row 4, in several kinds of files."""
    here = tmp_path_factory.mktemp("rows")
    X, y = table(40)
    X = X[["age", "pressure", "town"]]
    family(X, y, seed=1).save(here / "m.askwise")
    X.assign(y=y).to_csv(here / "good.csv", index=False)
    wrong = X.assign(pressure=X["pressure"].astype(object), name=[f"n{i}" for i in range(40)], y=y.astype(object))
    wrong.loc[7, "pressure"], wrong.loc[4, "y"], wrong.loc[5, "name"] = "high", None, None
    wrong.to_csv(here / "plain.csv", index=False)
    text = (here / "plain.csv").read_text().splitlines()
    text.insert(3, "")  # lines that are no rows, and a value of two lines
    text[1] = text[1].replace("n0", '"n\n0"')
    (here / "odd.csv").write_text("\n".join(text) + "\n")
    wrong.astype({"pressure": str}).to_parquet(here / "wrong.parquet", index=False)
    (here / "parts").mkdir()
    for i, part in enumerate((wrong[:5], wrong[5:])):
        part.astype({"pressure": str}).to_parquet(here / "parts" / f"{i}.parquet", index=False)
    return here


FIT = ["--target", "y", "--time-limit", "0", "--quiet", "--out", "out.askwise"]
HIGH = "column 'pressure' holds 'high' in {}; it must be a number, or missing"


@pytest.mark.parametrize(("argv", "words"), [
    (["fit", "plain.csv", *FIT], "the target 'y' is missing in line 6 of 'plain.csv'; remove such rows"),
    (["fit", "odd.csv", *FIT], "the target 'y' is missing in line 8 of 'odd.csv'"),
    (["fit", "wrong.parquet", *FIT], "the target 'y' is missing in row 5 of 'wrong.parquet'"),
    (["predict", "m.askwise", "plain.csv"], HIGH.format("line 9 of 'plain.csv'")),
    (["predict", "m.askwise", "odd.csv"], HIGH.format("line 11 of 'odd.csv'")),
    (["predict", "m.askwise", "wrong.parquet"], HIGH.format("row 8 of 'wrong.parquet'")),
    (["predict", "m.askwise", "parts", "--out", "d.csv"], HIGH.format("row 3 of '1.parquet'")),
    (["predict", "m.askwise", "plain.csv", "--ids", "name"],
     "column 'name' names the cases, but is empty in line 7 of 'plain.csv'"),
    (["ask", "m.askwise", "--simulate", "plain.csv"], HIGH.format("line 9 of 'plain.csv'")),
    (["evaluate", "m.askwise", "good.csv", "--target", "town"],
     "column 'town' is a test of this model, so it cannot be the target; "
     "name the column that holds the class, with values such as 'ill' or 'well': --target COLUMN"),
    (["report", "m.askwise", "--test", "good.csv", "--target", "town", "--out", "r"], "column 'town' is a test of this model"),
    (["evaluate", "m.askwise", "plain.csv", "--target", "name"], "the target 'name' is missing in line 7 of 'plain.csv'"),
    *((["fit", "good.csv", *FIT, option, "y"], f"{option} names the column 'y', which is the target; leave it out there")
      for option in ("--known", "--categorical", "--ignore", "--ids", "--external")),
    (["fit", "good.csv", *FIT, "--costs", "prices.csv"],
     "'prices.csv' has a cost for 'y', which is the target; remove that line"),
    (["fit", "good.csv", *FIT, "--costs", "ragged.csv"], "line 4 of 'ragged.csv' has 3 fields (age, 1, 5); it must have 2"),
])  # fmt: skip
def test_a_file_is_told_where(folder: Path, argv: list[str], words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    Path("prices.csv").write_text("test,cost\nage,1\npressure,1\ntown,1\ny,1\n")
    Path("ragged.csv").write_text("test,cost\n\npressure,2\nage,1,5\n")
    code, out, err = run(*argv)
    assert (code, out) == (2, "")
    assert words in err
    assert "counted from 0" not in err


def test_a_wrong_value_of_a_fit_is_found_in_the_file(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    X, y = patients(60, holes=False)
    X["age"] = X["age"].astype(str).mask(np.arange(60) == 33, "old")
    X.assign(y=y).to_csv("c.csv", index=False)
    assert "column 'age' holds 'old' in line 35 of 'c.csv', but numbers almost everywhere" in run("fit", "c.csv", *FIT)[2]


@pytest.mark.parametrize("row", range(6))
def test_in_python_rows_are_counted_from_0_and_it_is_said(row: int) -> None:
    """Whichever part of the rows it falls into."""
    X, y = patients(60, holes=False)
    X["age"] = X["age"].astype(float)
    X.loc[row, "age"] = 1e300
    with pytest.raises(RowError, match=rf"column 'age' holds .* in row {row} \(counted from 0\)") as said:
        classifier(scaling="none").fit(X[["age", "pressure"]], y)
    assert said.value.row == row


def test_an_error_about_a_row_survives_the_way_from_a_worker() -> None:
    import pickle

    error = pickle.loads(pickle.dumps(RowError("column 'a' holds 'x'", 3, "; it must be a number")))
    assert (error.row, str(error)) == (3, "column 'a' holds 'x' in row 3 (counted from 0); it must be a number")
    assert str(error.at("line 5 of 'c.csv'")) == "column 'a' holds 'x' in line 5 of 'c.csv'; it must be a number"
    assert isinstance(error, InputError)


def test_a_bench_names_the_line(tmp_path: Path) -> None:
    from askwise.bench import own_table

    frame = pd.DataFrame({"a": np.arange(40.0), "y": ["u", "v"] * 20})
    frame.loc[9, "y"] = None
    frame.to_csv(tmp_path / "c.csv", index=False)
    with pytest.raises(InputError, match=r"the target 'y' is missing in line 11 of 'c.csv'; remove such rows"):
        own_table.load(tmp_path, {"file": "c.csv", "target": "y"}, 0, None)
    assert len(read_table(tmp_path / "c.csv")) == 40


@pytest.mark.parametrize(("column", "argv"), [
    ("pressure", ["predict", "m.askwise"]),
    ("y", ["evaluate", "m.askwise", "--target", "y"]),
])  # fmt: skip
def test_of_a_long_value_the_beginning_is_enough(folder: Path, tmp_path: Path, column: str, argv: list[str]) -> None:
    cases = pd.read_csv(folder / "good.csv").astype(object)
    cases.loc[3, column] = "x" * 100_000
    cases.to_csv(tmp_path / "long.csv", index=False)
    code, _, err = run(argv[0], folder / argv[1], tmp_path / "long.csv", *argv[2:])
    assert code == 2
    assert f"'{'x' * 50}" in err
    assert len(err) < 500
