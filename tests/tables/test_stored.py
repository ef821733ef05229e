"""Tables that stay in their files: a fit has the same numbers as if they had been read, and says what it would have said."""

import gc
import os
import tempfile
from dataclasses import replace

import numpy as np
import pytest
from tests.support.patients import COSTS, DERIVED, QUICK_FAMILY, SETUP, patients

from askwise import CostlyClassifier, Recorded
from askwise.core.missingness import filled
from askwise.core.problem import Problem
from askwise.errors import InputError, RowError, WriteError
from askwise.files import copied
from askwise.tables import parquet, stored
from askwise.tables.reading import read_table
from askwise.tables.stored import StoredTable, pieces, table_at

pd = pytest.importorskip("pandas", reason="pandas is not installed")
ROWS = 500


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch):
    monkeypatch.setattr(parquet, "BATCH", 64)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """Numbers, words, truths, categories, dates, gaps, answers of somebody, and a class that only three cases have."""
    X, y = patients(ROWS, seed=3)
    y = y.astype(object)
    y[[5, 200, 480]] = "rare"
    when = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(ROWS) % 40, unit="D")
    table = X.assign(when=when, doctor=np.where(np.arange(ROWS) % 3 == 0, "ill", y), y=y)
    path = tmp_path_factory.mktemp("stored") / "cases.parquet"
    table.to_parquet(path, row_group_size=150)
    return path


def prepared(table, **settings):
    """What a fit of the table begins with."""
    classifier = CostlyClassifier(
        {**COSTS, "when": 1}, setup=SETUP, derived=DERIVED, algorithm="family", random_state=1, **settings
    )
    without = ["y"] if "external" in settings else ["y", "doctor"]
    return classifier.prepare(table.drop(columns=without), table["y"])


def same(one: Problem, other: Problem) -> None:
    """To the last bit."""
    for name in ("X", "y", "available", "known", "loss", "weight", "external", "external_belief"):
        ours, theirs = getattr(one, name), getattr(other, name)
        assert (ours is None) == (theirs is None), name
        assert ours is None or (ours.dtype == theirs.dtype and np.array_equal(ours, theirs)), name
    assert one.fingerprint == other.fingerprint
    assert one.schema.tests == other.schema.tests


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"missing": "informative"},
        {"class_weight": "balanced", "known": ["age", "town"]},
        {"external": Recorded("doctor", needs=["age"]), "categorical": ["age"]},
        {"loss": "log", "scaling": "one"},
        {"validation_fraction": 0.0},
    ],
    ids=str,
)
def test_a_fit_begins_with_what_it_begins_with_when_the_table_is_read(settings, file):
    ours, theirs = (prepared(table, **settings) for table in (StoredTable(file), read_table(file)))
    same(ours.problem, theirs.problem)
    same(ours.validation, theirs.validation)
    assert ours.encoding == theirs.encoding
    assert ours.validation_rows.tolist() == theirs.validation_rows.tolist()
    assert ours.classes.tolist() == ["ill", "rare", "well"]


def test_weights_of_rows_count_as_ever(file):
    weight = np.random.default_rng(0).integers(0, 3, ROWS)
    both = []
    for table in (StoredTable(file), read_table(file)):
        X = table.drop(columns=["y", "doctor"])
        both.append(CostlyClassifier(algorithm="family", class_weight="balanced", random_state=0).prepare(X, table["y"], weight))
    same(both[0].problem, both[1].problem)
    same(both[0].validation, both[1].validation)


def test_a_part_in_which_nothing_is_missing_is_joined_to_those_with_gaps(tmp_path):
    X = np.random.default_rng(0).normal(size=(256, 3))
    X[200:, 1] = np.nan  # in the last piece alone
    pd.DataFrame(X, columns=list("abc")).assign(y=X[:, 0] > 0).to_parquet(tmp_path / "t.parquet")
    both = []
    for table in (StoredTable(tmp_path / "t.parquet"), read_table(tmp_path / "t.parquet")):
        both.append(CostlyClassifier(algorithm="family", random_state=0).prepare(table.drop(columns=["y"]), table["y"]))
    same(both[0].problem, both[1].problem)
    assert not both[0].problem.available.all()


def test_the_model_is_the_same_and_says_what_its_rows_were_used_for(file, tmp_path):
    models = []
    for table in (StoredTable(file), read_table(file)):
        classifier = CostlyClassifier(config=QUICK_FAMILY, random_state=0)
        models.append(classifier.fit(table.drop(columns=["y", "doctor"]), table["y"]))
    first, second = models
    new = patients(100, seed=9)[0].assign(when=pd.Timestamp("2024-01-05"))
    assert first.acquire(new).to_frame().equals(second.acquire(new).to_frame())
    assert first.feature_names_in_.tolist() == second.feature_names_in_.tolist()
    facts = first.model_.facts
    assert facts["rows"] == [375, 125]
    assert facts["drawn"] >= 64 * 200 * 0.35  # a batch in each step on prefixes


def test_encoded_rows_are_in_a_file_without_a_name(file, monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ready = prepared(StoredTable(file))
    assert list(tmp_path.iterdir()) == []
    assert isinstance(ready.problem.X.base, np.memmap)
    values = ready.problem.X.copy()
    other = filled(ready.problem, 0, copied)
    gc.collect()
    assert np.array_equal(ready.problem.X, values)  # it is there as long as it is needed
    assert isinstance(other.X.base, np.memmap)
    assert np.array_equal(other.X, filled(replace(ready.problem, X=values), 0).X)
    assert not np.array_equal(other.X, values)
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_is_told_in_a_sentence(file, monkeypatch):
    class Full:
        def __enter__(self):
            return self

        def __exit__(self, *_):
            return None

        def write(self, _):
            raise OSError(28, os.strerror(28))

    monkeypatch.setattr(tempfile, "TemporaryFile", lambda **_: Full())
    with pytest.raises(WriteError, match=r"where encoded rows are kept, is full; name a folder with more room in .* TMPDIR"):
        prepared(StoredTable(file))


@pytest.mark.parametrize("row", [0, 63, 64, 333, ROWS - 1])
def test_an_error_names_the_row_of_the_table(row, file, tmp_path):
    table = read_table(file)
    table.loc[row, "doctor"] = "perhaps"
    table.to_parquet(tmp_path / "bad.parquet")
    with pytest.raises(RowError, match=rf"column 'doctor' holds 'perhaps' in row {row} \(counted from 0\), which is not a class"):
        prepared(StoredTable(tmp_path / "bad.parquet"), external=Recorded("doctor", needs=["age"]))
    table = read_table(file).assign(pressure=1.0)
    table.loc[row, "pressure"] = 1e300  # too large for what is computed with, which is told of a row, too
    table.to_parquet(tmp_path / "worse.parquet")
    said = []
    for each in (StoredTable(tmp_path / "worse.parquet"), read_table(tmp_path / "worse.parquet")):
        with pytest.raises(InputError, match="column 'pressure' holds") as error:
            prepared(each, scaling="none")
        said.append(str(error.value))
    assert said[0] == said[1]


def test_it_is_looked_at_like_a_frame(file):
    table, frame = StoredTable(file), read_table(file)
    assert (len(table), table.shape, list(table.columns)) == (len(frame), frame.shape, list(frame.columns))
    assert table["age"].equals(frame["age"])
    rest = table.drop(columns=["age"])
    assert "age" not in rest.columns
    with pytest.raises(InputError, match="there is no column 'age'"):
        rest["age"]
    rows = np.array([0, 1, 63, 64, 200, ROWS - 1])
    assert rest.take(rows).equals(frame.drop(columns=["age"]).iloc[rows].reset_index(drop=True))
    parts = list(pieces(table, rows))
    assert np.concatenate([piece.first + piece.rows for piece in parts]).tolist() == rows.tolist()
    assert max(len(piece.table) for piece in parts) == 64


def test_only_a_large_parquet_file_stays_where_it_is(file, monkeypatch, tmp_path):
    assert isinstance(table_at(file), pd.DataFrame)
    monkeypatch.setattr(stored, "SETTINGS", replace(stored.SETTINGS, cells=100))
    assert isinstance(table_at(file), StoredTable)
    read_table(file).to_csv(tmp_path / "cases.csv", index=False)
    assert isinstance(table_at(tmp_path / "cases.csv"), pd.DataFrame)
    with pytest.raises(InputError, match="there is no file"):
        table_at(tmp_path / "none.parquet")
    pd.DataFrame({"a": [], "y": []}).to_parquet(tmp_path / "empty.parquet")
    with pytest.raises(InputError, match=r"the file 'empty.parquet' has no rows"):
        StoredTable(tmp_path / "empty.parquet")
