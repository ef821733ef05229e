"""Tables that cannot be used, each refused in one sentence that names the column, the value and the row."""

import datetime

import numpy as np
import pytest

from askwise.errors import InputError
from askwise.tables.encoding import Encoding

pd = pytest.importorskip("pandas", reason="pandas is not installed")

BAD = [
    ({"c": [1.0, np.inf]}, r"column 'c' holds inf in row 1 \(counted from 0\); values must be finite, or missing"),
    (
        {"c": [1, 2, 3, "old"]},
        r"column 'c' holds 'old' in row 3 \(counted from 0\), but numbers almost everywhere else; correct it",
    ),
    ({"c": ["1", "2", "x", "4"]}, r"column 'c' holds 'x' in row 2 \(counted from 0\), but numbers almost everywhere else"),
    ({"c": [str(i) for i in range(40)]}, "column 'c' is text, but its values are 40 different numbers such as '0'"),
    ({"c": [1e308, -1e308]}, "column 'c' holds numbers that are too large to be scaled"),
    ({"c": np.array([1j])}, "Complex data not supported: column 'c'"),
    ({"c": [{"a": 1}, 1]}, r"column 'c' holds \{'a': 1\} in row 0 \(counted from 0\); every argument must be a string, a number"),
    ({"c": [datetime.time(9, 30)]}, r"column 'c' holds datetime.time\(9, 30\) in row 0 \(counted from 0\); .* or a date"),
    ({"c": []}, "there are no rows"),
    ({}, "there are no rows"),
    (np.zeros((2, 0)), "there are no columns"),
]


@pytest.mark.parametrize(("X", "message"), BAD)
def test_bad_tables_are_refused_at_training(X, message):
    with pytest.raises(InputError, match=message) as caught:
        Encoding.fit(X)
    assert "\n" not in str(caught.value)


def test_a_sort_of_value_that_no_table_holds_is_a_type_error_for_scikit_learn():
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        Encoding.fit(np.array([[{"foo": "bar"}], [1.0]], object))


def test_codes_that_look_like_numbers_are_welcome():
    assert Encoding.fit({"c": list("1223")}).parts[0].categories == ("2", "1", "3")
    icd = ["250", "V57", "410", "E11", "428"]
    assert Encoding.fit({"c": icd}).parts[0].kind == "category"
    rare = pd.Series(["1", "2", "3", "x"], dtype="category")  # the way out that the message names
    assert Encoding.fit({"c": rare}).parts[0].kind == "category"
    assert Encoding.fit({"c": ["1", "2", "3", "x"]}, categorical=["c"]).parts[0].kind == "category"


@pytest.mark.parametrize(
    "values",
    [
        ["1", "2", "abc"],
        [1, 2, "abc"],
        pd.Series(["1", "2", "abc"]),
        np.array(["1", "2", "abc"]),
        pd.Categorical(["1", "2", "abc"]),
    ],
)
def test_text_in_a_column_that_was_numeric_is_refused(values):
    encoding = Encoding.fit({"age": [1.0, 2.0]})
    with pytest.raises(
        InputError, match=r"column 'age' holds 'abc' in row 2 \(counted from 0\); it must be a number, or missing"
    ):
        encoding.transform({"age": values})
    assert encoding.transform({"age": list(values)[:2]}).shape == (2, 1)  # numbers as text are numbers


def test_an_infinite_value_later_is_refused():
    encoding = Encoding.fit({"age": [1.0, 2.0]})
    for values in ([1.0, -np.inf], ["1", "-inf"]):
        with pytest.raises(InputError, match=r"column 'age' holds -inf in row 1 \(counted from 0\)"):
            encoding.transform({"age": values})


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"scaling": "column"}, r"the scaling is 'column'; did you mean 'columns'\?"),
        ({"max_categories": 0}, "max_categories is 0; it must be a whole number, 1 or more"),
        ({"max_categories": 2.5}, "max_categories is 2.5"),
    ],
)
def test_bad_settings(how, message):
    with pytest.raises(InputError, match=message):
        Encoding.fit({"a": [1, 2]}, **how)
