"""What is probably not what was meant is learned from, and said: in one sentence with what to do, on stderr and as a warning."""

import warnings

import numpy as np
import pytest
from tests.support.commands import run
from tests.support.patients import classifier

from askwise import HardBudget
from askwise.core.schema import Schema
from askwise.errors import Doubt
from askwise.tables.doubts import about_budget, about_columns

pd = pytest.importorskip("pandas", reason="pandas is not installed")

N = 60
RNG = np.random.default_rng(0)
GOOD = pd.DataFrame({"age": RNG.integers(20, 90, N), "pressure": RNG.normal(size=N), "town": RNG.choice(["Bonn", "Rom"], N)})
Y = np.where(GOOD["pressure"] > 0, "ill", "well")
DAYS = pd.date_range("2024-01-01", periods=N)

COLUMNS = {
    "names": ([f"P-{i:03}" for i in RNG.permutation(N)], r"another value in nearly every row, .*leave it out \(.*--ignore odd\)"),
    "notes": ([f"came on day {i}, a cough" for i in range(N - 3)] + ["nothing"] * 3, "probably names the cases or holds notes"),
    "row numbers": (RNG.permutation(N) + 1, r"counts the rows, so it says nothing about new cases; leave it out .*--ignore odd"),
    "dates": (DAYS.strftime("%Y-%m-%d"), "holds dates as text, such as '2024-01-01'.* or give a number instead"),
    "German dates": (DAYS.strftime("%d.%m.%Y"), "holds dates as text, such as '01.01.2024'"),
    "American times": (DAYS.strftime("%m/%d/%Y 14:30"), "holds dates as text, such as '01/01/2024 14:30'"),
    "units": ([f"{i % 17} mg" for i in range(N)], "most of its values are numbers, because of values such as '0 mg'.*plain"),
    "bounds": (["<5", "7", "9", "12"] * 15, "because of values such as '<5'"),
    "n/a": (["5.5", "7", "n/a", "12"] * 15, r"such as 'n/a': .* leave what is missing empty, or .*--categorical odd\)"),
    "dashes": (["40,9", "37,2", "-"] * 20, "such as '-'"),
    "decimals": (["1.5", "2.5"] * 30, "such as '1.5'"),
    "percent": ([f"{i % 9} %" for i in range(N)], "such as '0 %'"),
}  # fmt: skip


@pytest.mark.parametrize(
    ("costs", "known", "hard", "cheapest"),
    [
        ({"age": 2, "pressure": 3, "town": 2}, (), 1, 2),
        ({"age": 0, "pressure": 3, "town": 2}, (), 1.5, 2),
        ({"age": 0, "pressure": 3, "town": 2}, ("town",), 2, 3),
        ({"age": 2, "pressure": 3, "town": 2}, (), 2, None),
        ({"age": 2, "pressure": 3, "town": 2}, (), 0, None),
        ({"age": 0, "pressure": 0, "town": 0}, (), 1, None),
    ],
)
def test_a_hard_budget_that_buys_nothing(costs, known, hard, cheapest):
    schema = Schema.build(["age", "pressure", "town"], ["ill", "well"], costs)
    sentences = list(about_budget(HardBudget(hard), schema, known, "€"))
    assert len(sentences) == (cheapest is not None)
    if cheapest is not None:
        assert sentences[0].startswith(
            f"the hard budget is {hard:g}, but the cheapest test costs {cheapest} €, so nothing that costs"
        )
        assert sentences[0].endswith(f"give at least {cheapest}")


def test_a_fit_says_that_its_hard_budget_buys_nothing():
    with pytest.warns(
        Doubt, match=r"the hard budget is 0\.5, but the cheapest test costs 1, so nothing that costs can be bought"
    ):
        classifier(budget=HardBudget("0.5"), time_limit=0.001).fit(GOOD, Y)


@pytest.mark.parametrize("kind", COLUMNS)
def test_odd_columns(kind):
    values, message = COLUMNS[kind]
    with pytest.warns(Doubt, match=f"column 'odd' .*{message}") as said:
        classifier(time_limit=0.001).fit(GOOD.assign(odd=values), Y)
    assert len(said) == 1, [str(s.message) for s in said]
    assert "\n" not in str(said[0].message)
    assert list(about_columns(GOOD.assign(odd=values), categorical=["odd"])) == []  # who says so knows better


def test_ordinary_columns_are_left_in_peace():
    ordinary = {
        "codes": ["250", "V57", "410", "E11", "428"] * 12, "digits": ["1", "2", "07"] * 20, "ranges": ["0-5", "6-10", "11+"] * 20,
        "places": ["1st", "2nd", "3rd"] * 20, "town": ["Bonn", "Köln", "Rom"] * 20, "whole": np.arange(N) % 7,
        "halves": np.arange(N) / 2, "truth": [True, False] * 30, "when": DAYS, "gaps": [None, "x", "y"] * 20,
        "nothing": [None] * N, "years": np.arange(N) * 2,
        "names": pd.Categorical([f"P{i}" for i in range(N)]), "holes": np.r_[np.nan, np.arange(N - 1)],
        "objects": pd.Series([1, 2.5, None] * 20, dtype=object),
    }  # fmt: skip
    assert list(about_columns(ordinary)) == []
    assert list(about_columns({"few": ["a", "b", "c"]})) == []


TARGETS = {
    "a quantity": (np.arange(N) % 40 + 18, "the target has 40 different whole numbers, from 18 to 57: it is probably a quantity"),
    "whole floats": (
        np.arange(N) % 40 + 18.0,
        "40 different whole numbers, from 18 to 57: .*; put the numbers into groups first",
    ),
    "names": ([f"P-{i}" for i in range(N)], "the target has 60 different values in 60 rows, .*; is another column the class?"),
}


@pytest.mark.parametrize("kind", TARGETS)
@pytest.mark.filterwarnings("ignore:there are too few rows")
def test_odd_targets(kind):
    y, message = TARGETS[kind]
    with pytest.warns(Doubt, match=message):
        classifier(time_limit=0.001).fit(GOOD, y)


def test_ten_digits_are_classes_and_good_tables_are_left_in_peace():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        classifier(time_limit=0.001).fit(GOOD, np.arange(N) % 10)


def test_few_rows():
    with pytest.warns(Doubt, match="there are only 11 rows, .*; collect some hundred, and do not rely on the accuracy") as said:
        classifier(time_limit=0.001).fit(GOOD[:11], ["ill", "well"] * 5 + ["ill"])
    assert len(said) == 1
    with pytest.warns(Doubt, match="there are only 4 rows, .*, which is measured on the very rows that were learned from"):
        classifier(time_limit=0.001).fit(GOOD[:4], ["ill", "well"] * 2)
    with pytest.warns(Doubt, match="there are too few rows of some class to keep some of each apart"):
        classifier(time_limit=0.001).fit(GOOD, ["ill"] + ["well"] * (N - 1))


def test_no_time():
    with pytest.warns(Doubt, match="the time limit is 0, so training ends where it begins.*; leave the limit out") as said:
        classifier(time_limit=0).fit(GOOD, Y)
    assert len(said) == 1


def test_the_command_line_says_each_once_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    odd = GOOD.assign(patient=[f"P-{i}" for i in range(N)], visit=DAYS.strftime("%d.%m.%Y"), dose=["5 mg", "7 mg"] * 30)
    odd[:11].assign(diagnosis=np.resize(["ill", "well"], 11)).to_csv("cases.csv", index=False)
    argv = ["fit", "cases.csv", "--target", "diagnosis", "--quiet", "--out", "m.askwise"]
    code, _, err = run(*argv, "--time-limit", "0")
    assert code == 0
    begins = [
        "there are only 11 rows",
        "column 'patient' is text with",
        "column 'visit' holds dates",
        "column 'dose' is text, alth",
    ]
    lines = err.splitlines()
    assert len(lines) == 5
    for line, begin in zip(lines, [*begins, "the time limit is 0"], strict=True):
        assert line.startswith(f"askwise: {begin}")
    more = ["--time-limit", "0.001", "--ids", "patient", "--ignore", "visit", "--categorical", "dose"]
    code, _, err = run(*argv, *more)  # what the sentences say
    assert (code, len(err.splitlines())) == (0, 1)
