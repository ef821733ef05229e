"""Sheets of .xlsx files."""

import datetime
import io
import zipfile

import numpy as np
import pytest

from askwise.errors import InputError
from askwise.tables import excel
from askwise.tables.read_options import ReadOptions
from askwise.tables.reading import line_of, read_cells, read_header, read_table

pytest.importorskip("pandas", reason="pandas is not installed")
openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")

DAY = datetime.datetime(2024, 5, 31)


def book(path, **sheets):
    made = openpyxl.Workbook()
    made.remove(made.active)
    for name, rows in sheets.items():
        sheet = made.create_sheet(name)
        for row in rows:
            sheet.append(row)
    made.save(path)
    return path


def test_a_sheet_is_a_table(tmp_path):
    path = book(
        tmp_path / "cases.xlsx",
        first=[["name", "age ", "day", "well", "temp"], ["ann", 34, DAY, True, "40,9"], [], ["bob", None, DAY, False, "36,5"]],
        second=[["a"], [1]],
    )
    frame = read_table(path)
    assert list(frame.columns) == read_header(path) == ["name", "age", "day", "well", "temp"]
    assert frame["name"].tolist() == ["ann", "bob"]
    assert frame["age"].tolist()[0] == 34
    assert np.isnan(frame["age"].tolist()[1])
    assert frame["day"].dtype.kind == "M"
    assert frame["well"].tolist() == [True, False]
    assert frame["temp"].tolist() == [40.9, 36.5]
    assert line_of(path, 1) == 4
    assert read_table(path, options=ReadOptions(sheet="second")).to_dict("list") == {"a": [1]}
    assert read_cells(path)[1] == ["ann", "34", "2024-05-31", "True", "40,9"]
    with pytest.raises(InputError, match=r"'cases.xlsx' has no sheet 'secnd'; did you mean 'second'\?"):
        read_table(path, options=ReadOptions(sheet="secnd"))
    with pytest.raises(InputError, match=r"--sep is only for text files; leave it out for 'cases.xlsx'"):
        read_table(path, options=ReadOptions(sep=";"))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "its sheet is empty"),
        ([["a", "b"]], "'cases.xlsx' has no rows"),
        ([["a", "a"], [1, 2]], "the column 'a' appears twice"),
        ([["a", None, "c"], [1, 2, 3]], "column 2 of 'cases.xlsx' has no name; the first row of the sheet must name all columns"),
        ([["a"], [1, 2]], "a row of 2 values for 1 names of columns"),
        (
            [["a", "b"], [1, "=A2+1"]],
            "holds the formula '=A2.1' without its value in row 2 of column 'b'; open the file in a spreadsheet program",
        ),
        ([["a", "b"], ["1,234", 1]], "column 'a' holds '1,234' in row 2, which is 1234 or 1.234; say which is the decimal mark"),
    ],
)
def test_a_bad_sheet_is_refused_in_one_sentence(tmp_path, rows, message):
    with pytest.raises(InputError, match=message) as caught:
        read_table(book(tmp_path / "cases.xlsx", only=rows))
    assert "\n" not in str(caught.value)


def changed(path, part, data):
    """The same file with other bytes in a part."""
    whole = io.BytesIO()
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as new:
        for info in old.infolist():
            new.writestr(info.filename, data if info.filename == part else old.read(info))
    path.write_bytes(whole.getvalue())
    return path


SHEET = "xl/worksheets/sheet1.xml"
OPEN = b'<worksheet xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"><sheetData>'


@pytest.mark.parametrize(
    ("part", "data", "message"),
    [
        (SHEET, b" " * 2_000_001, r"too large once it is unpacked \(at most 2 MB\); save the sheet as .csv"),
        ("xl/styles.xml", b" " * 1_000_001, "too large once it is unpacked"),
        (
            SHEET,
            OPEN + b'<row r="999999999"><c r="A999999999"><v>1</v></c></row></sheetData></worksheet>',
            "has more than 1,048,576",
        ),
        (
            SHEET,
            OPEN + b'<row r="1"><c r="A1" t="s"><v>77</v></c></row></sheetData></worksheet>',
            "damaged, or not an .xlsx file",
        ),
        (SHEET, b"<worksheet", "damaged, or not an .xlsx file"),
        ("xl/workbook.xml", b"no xml", "damaged, or not an .xlsx file"),
    ],
)
def test_hostile_files_are_refused_before_they_are_unpacked(tmp_path, part, data, message, monkeypatch):
    monkeypatch.setattr(excel, "MOST_BYTES", 2_000_000)
    monkeypatch.setattr(excel, "MOST_BYTES_BESIDE", 1_000_000)
    path = changed(book(tmp_path / "cases.xlsx", only=[["a"], [1]]), part, data)
    with pytest.raises(InputError, match=message) as caught:
        read_table(path)
    assert "\n" not in str(caught.value)


def test_wide_rows_of_nothing_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(excel, "MOST_CELLS", 100_000)
    rows = b'<row r="1"><c r="A1"><v>1</v></c></row>'
    rows += b"".join(b'<row r="%d"><c r="XFD%d"><v>1</v></c></row>' % (i, i) for i in range(2, 20))
    path = changed(book(tmp_path / "cases.xlsx", only=[["a"], [1]]), SHEET, OPEN + rows + b"</sheetData></worksheet>")
    with pytest.raises(InputError, match="has more than"):
        read_table(path)


def test_what_is_no_workbook(tmp_path):
    (tmp_path / "cases.xlsx").write_bytes(b"\xd0\xcf\x11\xe0 an old file, or one with a password")
    with pytest.raises(
        InputError, match=r"it is not an .xlsx file, or it is protected by a password; open it in a spreadsheet program"
    ):
        read_table(tmp_path / "cases.xlsx")


def test_without_openpyxl_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openpyxl", None)
    (tmp_path / "cases.xlsx").write_bytes(b"PK")
    with pytest.raises(InputError, match=r"reading .xlsx files needs openpyxl; install 'askwise\[excel\]'"):
        read_table(tmp_path / "cases.xlsx")
