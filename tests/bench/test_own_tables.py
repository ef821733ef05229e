"""The same cases in files that are written differently: every command that reads a table takes them for the same."""

import json
from pathlib import Path

import numpy as np
import pytest
from tests.support.commands import ok, run
from tests.support.models import made
from tests.support.patients import COSTS, patients

from askwise.bench import own_table
from askwise.facade import load
from askwise.tables.reading import read_table

pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("openpyxl", reason="openpyxl is not installed")

LATIN = "'latin.csv' is not UTF-8 and is read as cp1252"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = tmp_path_factory.mktemp("tables")
    X, y = patients(60)
    cases = X.assign(diagnosis=y)
    cases.to_csv(here / "plain.csv", index=False)
    cases.to_csv(here / "comma.csv", index=False, decimal=",")  # "40,9" in quotes
    cases.to_csv(here / "semicolon.csv", index=False, sep=";", decimal=",")
    cases.to_csv(here / "latin.csv", index=False, sep=";", decimal=",", encoding="latin-1")
    cases.to_csv(here / "utf16.csv", index=False, sep="\t", encoding="utf-16")
    with pd.ExcelWriter(here / "book.xlsx") as book:
        cases.to_excel(book, sheet_name="cases", index=False)
        pd.DataFrame({"a": [1]}).to_excel(book, sheet_name="other", index=False)
    made("family").save(here / "m.askwise")
    return here


WAYS = ["comma.csv", "semicolon.csv", "latin.csv", "utf16.csv", "book.xlsx"]


def said(*argv):
    code, out, err = run(*argv)
    assert code == 0, err
    assert err == "" or (len(err.splitlines()) == 1 and LATIN in err)
    return out


@pytest.mark.parametrize("way", WAYS)
def test_commands_that_use_a_model(folder, way):
    model = folder / "m.askwise"
    there, plain = folder / way, folder / "plain.csv"
    assert said("predict", model, there) == ok("predict", model, plain)
    assert said("evaluate", model, there, "--target", "diagnosis") == ok("evaluate", model, plain, "--target", "diagnosis")
    assert said("ask", model, "--json", "--simulate", there) == ok("ask", model, "--json", "--simulate", plain)


@pytest.mark.parametrize("way", WAYS)
def test_fit_learns_from_numbers_not_from_words(folder, way, tmp_path):
    """A column of "40,9" was one category for each value."""

    def learned(file):
        more = ["--time-limit", "0.001", "--quiet", "--json", "--out", tmp_path / "m.askwise"]
        said("fit", folder / file, "--target", "diagnosis", *more)
        return load(tmp_path / "m.askwise").encoding

    encoding = learned(way)
    assert {part.name: part.kind for part in encoding.parts}["pressure"] == "number"
    assert encoding == learned("plain.csv")


def test_what_is_doubtful_of_a_file_is_said_once_by_a_command(folder, tmp_path):
    """Also of a file that a fit looks at before it begins, and reads at its end."""
    cases = ["--target", "diagnosis", "--test", folder / "latin.csv"]
    said("fit", folder / "plain.csv", *cases, "--time-limit", "0.001", "--quiet", "--json", "--out", tmp_path / "m.askwise")


@pytest.mark.parametrize("word", ["Größe", "mäßig", "Gefäß", "créée", "süß"])
def test_latin_1_with_two_accented_letters_in_a_row_is_recognised(tmp_path, word):
    (tmp_path / "latin.csv").write_bytes(f"age;finding\n1;{word}\n2;no\n".encode("latin-1"))
    with pytest.warns(UserWarning, match=f"read as cp1252, usual in Western Europe, with words such as '{word}'"):
        assert list(read_table(tmp_path / "latin.csv")["finding"]) == [word, "no"]


@pytest.mark.parametrize(("word", "encoding"), [("да", "cp1251"), ("ναι", "cp1253"), ("A型", "gbk"), ("血液型A", "shift-jis")])
def test_other_alphabets_need_the_encoding_option(tmp_path, word, encoding):
    (tmp_path / "other.csv").write_bytes(f"age;finding\n1;{word}\n2;no\n".encode(encoding))
    with pytest.raises(ValueError, match="it is not UTF-8, and its encoding cannot be recognised"):
        read_table(tmp_path / "other.csv")


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.filterwarnings("ignore:'latin.csv' is not UTF-8")
def test_a_bench_reads_the_same_rows(folder, way):
    there, plain = (own_table.load(folder, {"file": file, "target": "diagnosis"}, 0, None) for file in (way, "plain.csv"))
    np.testing.assert_array_equal(there.train.X, plain.train.X)
    own_table.check(folder, {"file": way, "target": "diagnosis"})


def test_a_plan_says_how_its_file_is_written(tmp_path):
    (tmp_path / "c.csv").write_text("a;y\n" + "1,234;0\n2,345;1\n" * 20)
    source = {"file": "c.csv", "target": "y", "decimal": ","}
    own_table.check(tmp_path, source)
    assert len(own_table.load(tmp_path, source, 0, None).train) == 24
    with pytest.raises(ValueError, match=r"'c.csv': --sep is 3; it must be text"):
        own_table.check(tmp_path, {**source, "sep": 3})


def test_options_are_for_what_cannot_be_recognised(folder, tmp_path):
    model, other = folder / "m.askwise", tmp_path / "c.csv"
    frame = pd.read_csv(folder / "plain.csv").head(3)
    frame["pressure"] = [1.234, 2.345, 3.456]
    frame["index"] = 1
    frame.to_csv(other, index=False, sep=";", decimal=",", encoding="utf-16-le")
    argv = ["predict", model, other, "--encoding", "utf-16-le", "--sep", ";"]
    code, _, err = run(*argv)
    assert code == 2
    assert "column 'pressure' holds '1,234' in line 2, which is 1234 or 1.234; say which is the decimal mark" in err
    frame.to_csv(tmp_path / "right.csv", index=False)
    assert ok(*argv, "--decimal", ",") == ok("predict", model, tmp_path / "right.csv")
    code, _, err = run("predict", model, folder / "book.xlsx", "--sheet", "other")
    assert code == 2
    assert "there is no column 'age' in the data" in err
    frame.to_parquet(tmp_path / "c.parquet")
    code, _, err = run("predict", model, tmp_path / "c.parquet", "--decimal", ",")
    assert code == 2
    assert "--decimal is only for text and .xlsx files; leave it out for 'c.parquet'" in err


def test_files_of_costs_and_losses_are_read_in_the_same_way(folder, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prices = {test: float(price) for test, price in COSTS.items()}
    lines = "".join(f"{test};{str(price).replace('.', ',')}\n" for test, price in prices.items())
    (tmp_path / "p.csv").write_bytes(("test;cost\n" + lines).encode("utf-16"))
    pd.DataFrame({"test": list(prices), "cost": list(prices.values())}).to_excel("p.xlsx", index=False)
    (tmp_path / "l.csv").write_text("wahr;ill;well\nill;0;2,5\nwell;0,5;0\n", encoding="latin-1")
    for file in ("p.csv", "p.xlsx"):
        argv = ["--costs", file, "--loss", "l.csv", "--time-limit", "0.001", "--quiet", "--json", "--out", "m.askwise"]
        shown = json.loads(said("fit", folder / "plain.csv", "--target", "diagnosis", *argv))
        assert shown["tests"] == prices
    assert load(Path("m.askwise")).loss.tolist() == [[0, 2.5], [0.5, 0]]
