"""Reading files, and looking at frames, arrays, dicts and lists in one way."""

import gzip
import subprocess
import sys

import numpy as np
import pytest

from askwise.errors import InputError
from askwise.tables.frames import TableView
from askwise.tables.reading import read_cells, read_header, read_table

pd = pytest.importorskip("pandas", reason="pandas is not installed")


class Duck:
    """A frame of somebody else's: it has columns, and nothing more."""

    columns = ("a", "b")

    def __getitem__(self, name):
        return {"a": [1, 2], "b": ["x", None]}[name]

    def __len__(self):
        return 2


@pytest.mark.parametrize(
    "X", [{"a": [1, 2], "b": ["x", None]}, pd.DataFrame({"a": [1, 2], "b": ["x", None]}), Duck()], ids=["dict", "pandas", "duck"]
)
def test_frames_of_all_sorts_look_alike(X):
    assert TableView(X).names == ["a", "b"]
    assert np.asarray(TableView(X)["a"]).tolist() == [1, 2]
    assert len(TableView(X)) == 2
    assert np.asarray(TableView(X, np.array([1]))["a"]).tolist() == [2]


def test_the_columns_of_arrays_and_lists_are_numbered():
    assert TableView(np.zeros((2, 3))).names == ["x0", "x1", "x2"]
    mixed = [[1, "m"], [2.5, "f"]]
    assert TableView(mixed)["x0"].tolist() == [1, 2.5]  # not '1' and '2.5'
    assert TableView(mixed)["x1"].tolist() == ["m", "f"]


def test_a_pyarrow_table_is_a_frame():
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    assert TableView(pa.table({"a": [1, None], "b": ["x", "y"]}))["b"].tolist() == ["x", "y"]


def test_names_that_are_not_words_become_words():
    frame = pd.DataFrame([[1, 2]], columns=[10, "column_names"])  # the second must not be taken for an attribute
    assert TableView(frame).names == ["10", "column_names"]
    assert TableView(frame)["10"].tolist() == [1]


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([[1, 2], [3]], "differ in length"),
        (np.zeros(3), r"shape \(3,\); it must be rows x columns"),
        (np.zeros((1, 2, 3)), "must be rows x columns"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "the column 'a' appears twice"),
    ],
)
def test_what_is_no_table_is_refused(X, message):
    with pytest.raises(InputError, match=message):
        TableView(X)


def test_a_sparse_matrix_is_refused():
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(InputError, match=r"sparse matrix; make it an array with its method toarray\(\)"):
        TableView(sparse.eye(3).tocsr())


def test_a_wrong_name_or_length_is_refused():
    with pytest.raises(InputError, match=r"there is no column 'agee'; did you mean 'age'\?"):
        TableView({"age": [1], "sex": ["f"]})["agee"]
    with pytest.raises(InputError, match="column 'b' has 1 values for 2 rows"):
        TableView({"a": [1, 2], "b": [1]})["b"]


TEXT = "name , age,ill\nann, 34,True\nbob,?,False\n"


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv", ".CSV"])
def test_text_files(tmp_path, ending):
    path = tmp_path / f"cases{ending}"
    data = TEXT.replace(",", "\t") if ending == ".tsv" else TEXT
    path.write_bytes(gzip.compress(data.encode()) if ending.endswith("gz") else data.encode("utf-8-sig"))
    frame = read_table(path)
    assert read_header(path) == list(frame.columns)
    assert list(frame.columns) == ["name", "age", "ill"]
    assert frame["name"].tolist() == ["ann", "bob"]
    assert frame["age"].tolist()[0] == 34
    assert np.isnan(frame["age"].tolist()[1])  # '?' is missing
    assert frame["ill"].dtype == bool


def test_columns_of_names_stay_as_they_are_written(tmp_path):
    (tmp_path / "cases.csv").write_text("code , n,mixed\n007,007,1\n?,8,x\n1.10,9,007\n")
    frame = read_table(tmp_path / "cases.csv", as_written=["code", "not there"])
    assert frame["code"].tolist()[::2] == ["007", "1.10"]
    assert frame["code"].isna().tolist() == [False, True, False]
    assert frame["n"].tolist() == [7, 8, 9]
    assert frame["mixed"].tolist() == ["1", "x", "007"]


def test_parquet(tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": pd.Categorical(["x", "y"])})
    frame.to_parquet(tmp_path / "cases.parquet")
    assert read_header(tmp_path / "cases.parquet") == list(frame.columns)
    back = read_table(str(tmp_path / "cases.parquet"))
    assert list(back.columns) == ["a", "b"]
    assert back["b"].dtype == "category"
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 but not really")
    with pytest.raises(InputError, match=r"'bad.parquet' cannot be read as a table"):
        read_table(tmp_path / "bad.parquet")


@pytest.mark.parametrize("lacks", [b'"name"', b'"pandas_type"', b'"columns"'])
def test_a_parquet_file_whose_description_is_damaged_is_refused_in_a_sentence(lacks, tmp_path):
    import pyarrow
    from pyarrow.parquet import write_table

    from askwise.tables.parquet import frames

    whole = pyarrow.Table.from_pandas(pd.DataFrame({"a": [1.0, 2.0]}, index=[5, 9]))
    said = {b"pandas": whole.schema.metadata[b"pandas"].replace(lacks, lacks.upper())}
    write_table(whole.replace_schema_metadata(said), tmp_path / "bad.parquet")
    for read in (read_table, read_header, read_cells):
        with pytest.raises(InputError, match=r"'bad.parquet' cannot be read as a table: it is damaged"):
            read(tmp_path / "bad.parquet")
    with pytest.raises(InputError, match=r"'bad.parquet' cannot be read as a table: it is damaged"):
        list(frames(tmp_path / "bad.parquet", ["a"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,a\n1,2,3\n", "the column 'a' appears twice"),
        ("a,b,a \n1,2,3\n", "the column 'a' appears twice"),
        (",b\n0,1\n", r"column 1 of 'cases.csv' has no name; .*index=False"),
        ("a,b\n", "'cases.csv' has no rows"),
        ("", "'cases.csv' cannot be read as a table"),
        ("a,b\n1,2\n1,2,3\n", "cannot be read as a table: .*line 3"),
        ("a,b\n1,2,3\n4,5,6\n", "cannot be read as a table: .*Expected 2 fields in line 2, saw 3"),
        ("a, x;b\n1,5;2\n", "could be separated by ',' or ';'; say which with --sep"),
        (b"a,b\n\xff\xfe,1\n", "cannot be read as a table"),
    ],
)
def test_a_bad_file_is_refused_in_one_sentence(tmp_path, text, message):
    (tmp_path / "cases.csv").write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InputError, match=message) as caught:
        read_table(tmp_path / "cases.csv")
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_or_of_an_unknown_sort(tmp_path):
    with pytest.raises(InputError, match=r"there is no file '.*cases.csv'"):
        read_table(tmp_path / "cases.csv")
    with pytest.raises(
        InputError, match=r"'cases.xls' has an unknown format; its name must end in .csv, .csv.gz, .tsv, .xlsx, .parquet"
    ):
        read_table(tmp_path / "cases.xls")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path / "folder.csv")
    with pytest.raises(InputError, match="is a folder"):
        read_table(tmp_path)
    (tmp_path / "cases.csv.gz").write_bytes(b"not compressed")
    with pytest.raises(InputError, match="cannot be read"):
        read_table(tmp_path / "cases.csv.gz")


def test_arrays_and_dicts_work_without_pandas(tmp_path):
    program = """
import sys
sys.modules["pandas"] = None  # importing it now fails
from askwise.tables.encoding import Encoding
from askwise.tables.reading import read_table
from askwise.datasets.named import load
from askwise.errors import InputError

encoding = Encoding.fit({"age": [30, None], "sex": ["f", "m"]})
assert encoding.transform([[30, "f"]]).shape == (1, 3)
assert len(load("heart").train) == 178
try:
    read_table(sys.argv[1])
except InputError as error:
    assert "need pandas; install" in str(error), error
else:
    raise AssertionError
"""
    (tmp_path / "cases.csv").write_text(TEXT)
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path / "cases.csv")], check=False).returncode == 0
