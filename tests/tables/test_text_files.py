"""Text files as programs of many countries write them: separators, decimal marks, encodings."""

import gzip

import numpy as np
import pytest

from askwise.errors import Doubt, InputError
from askwise.tables import notation
from askwise.tables.encoding import Encoding
from askwise.tables.read_options import ReadOptions
from askwise.tables.reading import line_of, read_cells, read_header, read_table

pd = pytest.importorskip("pandas", reason="pandas is not installed")

HEADER, ROWS = ["name", "temp", "n"], [("müde", 40.9, 1), ("wach", 36.75, 2)]


def written(sep, mark):
    cells = [HEADER, *([name, str(temp).replace(".", mark), str(n)] for name, temp, n in ROWS)]
    quoted = [[f'"{cell}"' if sep in cell else cell for cell in row] for row in cells]
    return "".join(sep.join(row) + "\n" for row in quoted)


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".tsv"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(("sep", "mark"), [(",", "."), (",", ","), (";", ","), (";", "."), ("\t", ","), ("\t", "."), ("|", ",")])
def test_all_of_them_are_the_same_table(tmp_path, sep, mark, encoding, ending):
    data = written(sep, mark).encode(encoding)
    path = tmp_path / f"cases{ending}"
    path.write_bytes(gzip.compress(data) if ending.endswith("gz") else data)
    frame = read_table(path)
    assert list(frame.columns) == read_header(path) == HEADER
    assert list(frame.itertuples(index=False, name=None)) == ROWS
    assert frame.dtypes["temp"].kind == "f"
    assert read_cells(path)[0] == HEADER


def test_western_europe_is_recognised_and_said(tmp_path):
    path = tmp_path / "cases.csv"
    path.write_bytes(written(";", ",").encode("latin-1"))
    with pytest.warns(Doubt, match=r"'cases.csv' is not UTF-8 and is read as cp1252, .* such as 'müde'; .* with --encoding"):
        assert list(read_table(path).itertuples(index=False, name=None)) == ROWS
    assert read_table(path, options=ReadOptions(encoding="latin-1"))["name"].tolist() == ["müde", "wach"]  # and nothing is said
    late = "name;n\n" + "a;1\n" * 100_000 + "müde;2\n"
    path.write_bytes(late.encode("latin-1"))  # far behind what it is recognised from
    with pytest.warns(Doubt, match="'müde'"):
        assert read_table(path)["name"].tolist()[-1] == "müde"


@pytest.mark.parametrize(("text", "encoding"), [("жар", "cp1251"), ("πυρετός", "iso8859-7"), ("発熱", "shift-jis")])
def test_other_encodings_are_asked_for(tmp_path, text, encoding):
    (tmp_path / "cases.csv").write_bytes(f"name,n\n{text},1\n".encode(encoding))
    with pytest.raises(
        InputError, match=r"'cases.csv' .* is not UTF-8, and its encoding cannot be recognised; give it with --enc"
    ):
        read_table(tmp_path / "cases.csv")
    assert read_table(tmp_path / "cases.csv", options=ReadOptions(encoding=encoding))["name"].tolist() == [text]


def test_utf_16_without_a_mark_is_asked_for(tmp_path):
    (tmp_path / "cases.csv").write_bytes("name,n\nmüde,1\n".encode("utf-16-le"))
    with pytest.raises(InputError, match=r"zero bytes, .* UTF-16 without a mark at its start; give its encoding with --encoding"):
        read_table(tmp_path / "cases.csv")
    assert read_table(tmp_path / "cases.csv", options=ReadOptions(encoding="utf-16-le"))["name"].tolist() == ["müde"]


def read(tmp_path, text, **how):
    (tmp_path / "cases.csv").write_text(text)
    return read_table(tmp_path / "cases.csv", options=ReadOptions(**how))


def test_marks_between_thousands(tmp_path):
    assert read(tmp_path, "a;b\n1.234,5;1.000\n2,25;2.000\n").to_dict("list") == {"a": [1234.5, 2.25], "b": [1000, 2000]}
    assert read(tmp_path, 'a,b\n"1,234.5",1\n"12,000",2\n').to_dict("list") == {"a": [1234.5, 12000], "b": [1, 2]}
    assert read(tmp_path, "a;b\n1 234,5;1\n22 000,0;2\n")["a"].tolist() == [1234.5, 22000]
    # each column shows its own mark
    assert read(tmp_path, 'a,b\n"40,9",0.5\n"1,234",1.25\n').to_dict("list") == {"a": [40.9, 1.234], "b": [0.5, 1.25]}


@pytest.mark.parametrize(("number", "sep"), [("1,234", ";"), ("1.234", ";"), ('"1,234"', ",")])
def test_what_nobody_can_tell_is_asked_for(tmp_path, number, sep):
    text = f"a{sep}b\n\n{number}{sep}1\n{number}{sep}\n"
    with pytest.raises(
        InputError, match=r"column 'a' holds '1.234' in line 3, which is .* or .*; say which .*: --decimal \. or --"
    ):
        read(tmp_path, text)
    assert read(tmp_path, text, decimal=",")["a"][0] == (1.234 if "," in number else 1234)
    assert read(tmp_path, text, decimal=".")["a"][0] == (1.234 if "." in number else 1234)


def test_a_given_decimal_mark_must_fit(tmp_path):
    with pytest.raises(
        InputError, match=r"column 'a' holds '0.5' in line 2, which is not a number with the decimal mark ','; correct"
    ):
        read(tmp_path, "a;b\n0.5;1\n", decimal=",")


def test_a_decimal_comma_far_behind_is_no_text(tmp_path):
    """The first rows do not show the mark, and pandas would make words of the whole column."""
    frame = read(tmp_path, "a;b\n" + "1;2\n" * 3000 + "40,9;2\n")
    assert frame["a"].tolist()[-2:] == [1, 40.9]


def test_a_word_among_decimal_commas_is_named_wherever_it_is(tmp_path):
    text = "temp;ill\n" + "40,9;a\n36,5;b\n" * 600 + "high;a\n"
    frame = read(tmp_path, text)
    with pytest.raises(
        InputError, match=r"column 'temp' holds 'high' in row 1200 \(counted from 0\), but numbers almost everywhere else"
    ):
        Encoding.fit(frame)
    numbers = Encoding.fit({"temp": [36.5, 40.9]})
    with pytest.raises(
        InputError, match=r"column 'temp' holds 'high' in row 1200 \(counted from 0\); it must be a number, or missing"
    ):
        numbers.transform(frame)
    assert line_of(tmp_path / "cases.csv", 1200) == 1202


def test_columns_that_are_names_stay_as_they_are_written(tmp_path):
    (tmp_path / "cases.csv").write_text("code;n\n1,2;1\n1,234;2\n")
    assert read_table(tmp_path / "cases.csv", as_written=["code"])["code"].tolist() == ["1,2", "1,234"]


def test_lines_are_those_of_the_file(tmp_path):
    (tmp_path / "cases.csv").write_text('a,b\n1,"two\nlines"\n\n\n2,x\n3,y\n')
    assert [line_of(tmp_path / "cases.csv", row) for row in range(3)] == [2, 6, 7]
    assert len(read_table(tmp_path / "cases.csv")) == 3


@pytest.mark.parametrize("values", [["40,9", "36,5"], ["1.234,5", "2"], ["1,234", "1"], ["1 234", "2"]])
def test_numbers_as_text_in_a_frame_are_never_categories(values):
    with pytest.raises(
        InputError,
        match=r"column 'c' holds '.*' in row 0 \(counted from 0\), .*make it a number.*, or make it a categorical column",
    ):
        Encoding.fit({"c": values * 4})
    assert Encoding.fit({"c": values * 4}, categorical=["c"]).parts[0].kind == "category"
    with pytest.raises(InputError, match=r"column 'c' holds '.*' in row 0 \(counted from 0\), .*make it a number"):
        Encoding.fit({"c": [1.0, 2.0]}).transform({"c": values})


@pytest.mark.parametrize(
    ("text", "point", "comma"),
    [
        ("12", "12", "12"), ("-1.5", "-1.5", None), ("+,5", None, "+.5"), ("1,234", "1234", "1.234"), ("1.234", "1.234", "1234"),
        ("0,123", None, "0.123"), ("0123,4", None, "0123.4"), ("1,234,567.8", "1234567.8", None), ("1’234,5", None, "1234.5"),
        ("1e-5", "1e-5", "1e-5"), ("2,5E3", None, "2.5E3"), ("1,23,456", None, None), ("", None, None), ("-", None, None),
        ("12 mg", None, None), ("3.4.5", None, None), (" 7 ", "7", "7"),
    ],
)  # fmt: skip
def test_how_numbers_are_written(text, point, comma):
    assert (notation.plain(text, "."), notation.plain(text, ",")) == (point, comma)


def test_recognising_a_file_leaves_large_ones_fast(tmp_path):
    """Only columns of text are looked at again, each different text once."""
    rows = np.arange(50_000)
    pd.DataFrame({"a": rows / 7, "b": rows % 3}).to_csv(tmp_path / "cases.csv", index=False)
    frame = read_table(tmp_path / "cases.csv")
    assert [str(kind) for kind in frame.dtypes] == ["float64", "int64"]
