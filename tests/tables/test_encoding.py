"""Tables of every kind, made by hand, as the engine sees them."""

import datetime
import json
import subprocess
import sys
from decimal import Decimal

import numpy as np
import pytest

from askwise.core.cost_spec import CostSpec
from askwise.errors import AskwiseError, InputError, StateError
from askwise.tables.encoding import Encoding, schema_of

NAN = np.nan
pd = pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("pyarrow", reason="pyarrow is not installed")


def encode(values, **how):
    """One column, encoded without scaling, as a list of rows; NaN as None."""
    encoding = Encoding.fit({"c": values}, scaling="none", **how)
    matrix = encoding.transform({"c": values})
    assert matrix.dtype == np.float32
    return encoding, [[None if np.isnan(v) else float(v) for v in row] for row in matrix]


NUMBERS = {
    "ints": np.array([1, 2, 3]),
    "bytes": np.array([1, 2, 3], np.uint8),
    "halves": np.array([1, 2, 3], np.float16),
    "list": [1, 2, 3],
    "objects": np.array([1, 2.0, Decimal(3)], object),
    "Int64": pd.Series([1, 2, 3], dtype="Int64"),
    "Float64": pd.Series([1, 2, 3], dtype="Float64"),
    "durations": np.array([1, 2, 3], "timedelta64[s]"),
    "pandas durations": pd.Series(pd.to_timedelta([1, 2, 3], unit="s")),
    "int64 of pyarrow": pd.Series([1, 2, 3], dtype="int64[pyarrow]"),
    "sparse": pd.Series(pd.arrays.SparseArray([1.0, 2.0, 3.0])),
    "a strange index": pd.Series([1, 2, 3], index=[7, 7, 9]),
}


@pytest.mark.parametrize("values", NUMBERS.values(), ids=NUMBERS)
def test_numbers(values):
    encoding, rows = encode(values)
    assert encoding.parts[0].kind == "number"
    assert encoding.engine_columns_of == {"c": ["c"]}
    assert rows == [[1], [2], [3]]


MISSING = {
    "NaN": np.array([1, NAN]),
    "None": [1, None],
    "objects": np.array([1, pd.NA], object),
    "a float32 among objects": np.array([1, np.float32(NAN)], object),
    "Int64": pd.Series([1, None], dtype="Int64"),
    "Float64": pd.Series([1, None], dtype="Float64"),
    "durations": np.array([1, "NaT"], "timedelta64[s]"),
    "an object Series": pd.Series([1, None], dtype=object),
    "booleans": [True, None],
    "boolean": pd.Series([True, None], dtype="boolean"),
}


@pytest.mark.parametrize("values", MISSING.values(), ids=MISSING)
def test_missing_numbers_stay_missing(values):
    assert encode(values)[1] == [[1], [None]]


@pytest.mark.parametrize(
    "values",
    [
        np.array([True, False]),
        [True, False],
        pd.Series([True, False], dtype="boolean"),
        pd.Series([True, False, None], dtype=object),
        np.array([True, False, None], object),
    ],
)
def test_booleans(values):
    encoding, rows = encode(values)
    assert encoding.parts[0].kind == "boolean"
    assert rows[:2] == [[1], [0]]
    assert rows[2:] == [[None]] * len(rows[2:])
    again = encoding.transform({"c": ["True", "false", 1, 0.0, ""]})
    assert again[:4, 0].tolist() == [1, 0, 1, 0]
    assert np.isnan(again[4, 0])
    with pytest.raises(InputError, match=r"column 'c' holds 'maybe' in row 1 \(counted from 0\); it must be true or false"):
        encoding.transform({"c": ["True", "maybe"]})


WORDS = {
    "list": ["m", "f", "m", None],
    "objects": np.array(["m", "f", "m", NAN], object),
    "words": np.array(["m", "f", "m", ""]),
    "bytes": np.array([b"m", b"f", b"m", b""]),
    "pandas": pd.Series(["m", "f", "m", None]),
    "string": pd.Series(["m", "f", "m", None], dtype="string"),
    "object Series": pd.Series(["m", "f", "m", pd.NaT], dtype=object),
    "string of pyarrow": pd.Series(["m", "f", "m", None], dtype="string[pyarrow]"),
    "Categorical": pd.Categorical(["m", "f", "m", None], categories=["f", "unused", "m"]),
    "a Series of categories": pd.Series(["m", "f", "m", None], dtype="category"),
}


@pytest.mark.parametrize("values", WORDS.values(), ids=WORDS)
def test_categories_become_columns_of_one_test_the_most_frequent_first(values):
    encoding, rows = encode(values)
    assert encoding.parts[0].kind == "category"
    assert encoding.engine_columns_of == {"c": ["c=m", "c=f"]}
    assert rows == [[1, 0], [0, 1], [1, 0], [None, None]]
    assert encoding.transform({"c": ["x", "f"]}).tolist() == [[0, 0], [0, 1]]  # held, but like none that was seen


def test_rare_categories_share_a_column():
    values = list("aaabbcd")
    encoding, rows = encode(values, max_categories=2)
    assert encoding.engine_columns == ["c=a", "c=b", "c=(other)"]
    assert rows[0] == [1, 0, 0]
    assert rows[3] == [0, 1, 0]
    assert rows[5] == rows[6] == [0, 0, 1]
    assert encoding.transform({"c": ["never seen"]}).tolist() == [[0, 0, 1]]


def test_ties_are_broken_by_name_so_that_the_order_of_rows_does_not_matter():
    assert Encoding.fit({"c": list("cabd")}, 2) == Encoding.fit({"c": list("dbac")}, 2)


def test_ordered_categories_are_places_on_a_scale():
    sizes = pd.CategoricalDtype(["small", "middle", "large"], ordered=True)
    encoding, rows = encode(pd.Series(["large", None, "small"], dtype=sizes))
    assert encoding.parts[0].kind == "ordinal"
    assert encoding.engine_columns_of == {"c": ["c"]}
    assert rows == [[2], [None], [0]]
    assert encoding.transform({"c": ["middle", "small"]}).tolist() == [[1], [0]]
    with pytest.raises(
        InputError,
        match=r"column 'c' holds 'larg' in row 1 \(counted from 0\), which is not on its scale; did you mean 'large'\?",
    ):
        encoding.transform({"c": ["small", "larg"]})


def test_intervals_of_pandas_are_a_scale():
    _, rows = encode(pd.cut(pd.Series([1, 5, 9]), 3))
    assert rows == [[0], [1], [2]]


@pytest.mark.parametrize("times", [["1970-01-01T00:01", "NaT", "1970-01-02"]])
def test_times_are_seconds(times):
    array = np.array(times, "datetime64[s]")
    for values in (
        array,
        array.astype("datetime64[ns]"),
        pd.Series(array),
        pd.Series(array).dt.tz_localize("UTC"),
        pd.Series(array).astype("timestamp[us][pyarrow]"),
    ):
        encoding, rows = encode(values)
        assert encoding.parts[0].kind == "time"
        assert rows == [[60], [None], [86400]]
        assert np.isnan(encoding.transform({"c": [None]})).all()
        with pytest.raises(
            InputError, match=r"column 'c' holds 'May' in row 0 \(counted from 0\); it must be a date such as 2024-05-31"
        ):
            encoding.transform({"c": ["May"]})
        with pytest.raises(InputError, match=r"holds 5.0 in row 0 \(counted from 0\); it must be a date"):
            encoding.transform({"c": [5.0]})


def test_days_and_dates_in_words_are_times_too():
    days = [datetime.date(1970, 1, 2), None, datetime.date(1970, 1, 3)]
    for values in (days, pd.Series(days), np.array(days, object), pd.Series(days).astype("date32[pyarrow]")):
        encoding, rows = encode(values)
        assert encoding.parts[0].kind == "time"
        assert rows == [[86400], [None], [172800]]
        words = pd.Series(["1970-01-02", None, "1970-01-01T00:01:00+00:00", " 1970-01-01 00:00:30 "])
        assert encoding.transform({"c": words})[[0, 2, 3]].tolist() == [[86400], [60], [30]]


def test_a_category_that_is_a_day_is_the_same_day_as_a_time():
    encoding, _ = encode(["2024-01-05", "2024-01-06", "2024-01-06 10:30:00"])
    times = np.array(["2024-01-06T10:30", "2024-01-05", "NaT"], "datetime64[ns]")
    for values in (times, times.astype("datetime64[s]"), pd.Series(times), [datetime.date(2024, 1, 5)] * 2):
        found = encoding.transform({"c": values})
        assert found[1].argmax() == encoding.parts[0].categories.index("2024-01-05")
        assert found[:2].sum(1).tolist() == [1, 1]


def test_codes_are_found_however_a_file_writes_them():
    encoding, _ = encode(["007", "012", "A1"])
    for values in ([7, 12], [7.0, 12.0], ["7", "12.0"], ["007", "012"]):
        assert encoding.transform({"c": values}).tolist() == [[1, 0, 0], [0, 1, 0]]
    assert encoding.transform({"c": ["07x", "1e1"]}).tolist() == [[0, 0, 0]] * 2
    several, _ = encode(["7", "007", "12"])
    assert several.parts[0].categories == ("007", "12", "7")
    assert several.transform({"c": ["7", "007", "07"]}).tolist() == [[0, 0, 1], [1, 0, 0], [0, 0, 0]]  # which one is 07?


def test_a_column_of_strange_categories_is_noticed():
    encoding = Encoding.fit({"a": ["x", "y"], "n": [1, 2], "b": ["x", "y"], "rest": ["x", None]}, max_categories=2)
    X = {"a": ["X", None], "n": [1, 2], "b": ["x", "new"], "rest": [None, None]}
    assert encoding.strange(encoding.transform(X)) == ["a"]
    assert Encoding.fit({"a": ["x", "y"]}, max_categories=1).strange(np.ones((2, 2), np.float32)) == []
    assert encoding.text == ["a", "b", "rest"]


def test_numbers_that_are_names():
    X = {"zip": [10.0, 20.0, 10.0, NAN], "age": [1, 2, 3, 4]}
    encoding = Encoding.fit(X, scaling="none", categorical=["zip"])
    assert encoding.engine_columns_of == {"zip": ["zip=10", "zip=20"], "age": ["age"]}
    # files tell 10 from 10.0 and '10' by chance
    for values in ([10, 20], [10.0, 20.0], ["10", "20"], pd.Series([10, 20], dtype="category")):
        assert encoding.transform({"zip": values, "age": [0, 0]})[:, :2].tolist() == [[1, 0], [0, 1]]
    with pytest.raises(InputError, match=r"column 'zap' is listed as categorical, but does not exist; did you mean 'zip'\?"):
        Encoding.fit(X, categorical=["zap"])


def test_a_column_with_no_value_at_all():
    assert encode([NAN, NAN])[1] == [[None], [None]]
    encoding, rows = encode([None, None])
    assert rows == [[None], [None]]
    assert encoding.transform({"c": ["x"]}).tolist() == [[1]]


def test_each_column_is_scaled_by_its_mean_and_deviation_missing_values_left_out():
    X = {"a": [1.0, 3.0, 5.0], "b": [5.0, NAN, 5.0], "c": [0.1] * 3}
    encoding = Encoding.fit(X)
    a, b, c = encoding.parts
    assert (a.mean, a.deviation) == ((3.0,), (pytest.approx((8 / 3) ** 0.5),))
    assert (b.mean, b.deviation) == ((5.0,), (1.0,))  # a constant column is only centred
    assert encoding.transform(X)[:, 2].tolist() == [0, 0, 0]
    assert (c.mean, c.deviation) == ((0.1,), (1.0,))
    assert np.isnan(encoding.transform(X)[1, 1])


def test_categories_are_scaled_too_but_rare_ones_do_not_become_huge():
    values = ["often"] * 9_999 + ["once"]
    matrix = Encoding.fit({"c": values, "b": [v == "once" for v in values]}).transform({"c": values, "b": [False] * 10_000})
    assert np.abs(matrix).max() <= 10
    assert Encoding.fit({"c": list("aabb")}).transform({"c": ["a", "new"]}).tolist() == [[1, -1], [-1, -1]]


def test_one_scale_for_all_columns_as_for_pixels():
    X = np.array([[0, 255, 255], [0, 0, NAN]])
    encoding = Encoding.fit(X, scaling="one")
    there = X[~np.isnan(X)]
    assert len({(p.mean, p.deviation) for p in encoding.parts}) == 1
    assert (*encoding.parts[0].mean, *encoding.parts[0].deviation) == pytest.approx((there.mean(), there.std()))
    np.testing.assert_allclose(encoding.transform(X), (X - there.mean()) / there.std(), rtol=1e-6)
    assert Encoding.fit(np.ones((2, 2)), scaling="one").transform(np.ones((1, 2))).tolist() == [[0, 0]]


def test_only_the_given_rows_are_looked_at():
    X = pd.DataFrame({"a": [1.0, 3.0, 100.0], "b": ["x", "y", "unseen"]})
    train = np.array([0, 1])
    for table in (X, {"a": X["a"].to_numpy(), "b": X["b"]}):
        assert Encoding.fit(table, rows=train) == Encoding.fit(X.iloc[train])
    assert Encoding.fit(X, rows=train).engine_columns_of["b"] == ["b=x", "b=y"]


def test_a_message_counts_rows_as_the_whole_table_does():
    X = {"a": np.array([1, 2, np.inf, 4]), "b": ["1", "2", "x", "4"]}
    for columns in ({"a": X["a"]}, {"b": X["b"]}):
        with pytest.raises(InputError, match=r"in row 2 \(counted from 0\)[;,]"):
            Encoding.fit(columns, rows=np.array([3, 1, 2, 0]))


def test_names_of_the_engine_are_unique_whatever_the_table_says():
    X = {"s=F": [1, 2], "s": ["F", "(other)"], "t": ["F", "F"]}
    encoding = Encoding.fit(X, 1)
    assert encoding.engine_columns_of == {"s=F": ["s=F"], "s": ["s=(other)", "s=(other)'"], "t": ["t=F"]}
    assert len(set(encoding.engine_columns)) == encoding.transform(X).shape[1]


def everything():
    return pd.DataFrame(
        {
            "number": [0.1, NAN, 1e-17],
            "int": pd.array([1, None, 3], dtype="Int64"),
            "yes": [True, False, True],
            "word": ["é", None, "b"],
            "size": pd.Categorical(["S", "L", "S"], categories=["S", "L"], ordered=True),
            "when": pd.to_datetime(["2020-01-01", None, "2020-03-01"]),
            "nothing": [None] * 3,
        }
    )


@pytest.mark.parametrize("scaling", ["columns", "one", "none"])
def test_it_goes_through_json_unchanged(scaling):
    X = everything()
    encoding = Encoding.fit(X, scaling=scaling)
    again = Encoding.from_dict(json.loads(json.dumps(encoding.to_dict(), allow_nan=False)))
    assert again == encoding
    np.testing.assert_array_equal(again.transform(X), encoding.transform(X))


@pytest.mark.parametrize(
    "damage",
    [
        lambda s: s.clear(),
        lambda s: s.update(columns=3),
        lambda s: s["columns"][0].pop("kind"),
        lambda s: s["columns"][0].update(kind="spell"),
        lambda s: s["columns"][0].update(mean=[]),
        lambda s: s["columns"][0].update(mean=["x"]),
        lambda s: s["columns"][0].update(deviation=[0.0]),
        lambda s: s["columns"][0].update(mean=[float("inf")]),
        lambda s: s["columns"][3].update(categories=["a"]),
        lambda s: s["columns"].append(s["columns"][0]),
        lambda s: s["columns"].clear(),
    ],
)
def test_a_damaged_encoding_is_refused(damage):
    state = Encoding.fit(everything()).to_dict()
    damage(state)
    with pytest.raises(StateError, match="the encoding of the columns is damaged"):
        Encoding.from_dict(state)


def test_columns_are_taken_by_name_in_any_order_and_others_ignored():
    X = everything()
    encoding = Encoding.fit(X)
    np.testing.assert_array_equal(encoding.transform(X[X.columns[::-1]].assign(more=1)), encoding.transform(X))
    assert encoding.columns == tuple(X.columns)


def test_an_array_is_taken_by_position():
    X = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    encoding = Encoding.fit(X)
    np.testing.assert_array_equal(encoding.transform(X.to_numpy()), encoding.transform(X))
    with pytest.raises(InputError, match="the data has 3 columns; it must have 2, as in training"):
        encoding.transform(np.zeros((1, 3)))


def test_a_column_that_is_not_there():
    encoding = Encoding.fit({"age": [1, 2], "sex": ["f", "m"]})
    with pytest.raises(InputError, match=r"there is no column 'age' in the data; did you mean 'agee'\?"):
        encoding.transform({"agee": [1], "sex": ["f"]})


def test_a_schema_in_which_columns_stay_tests():
    encoding = Encoding.fit({"sex": ["f", "m"], "systolic": [1, 2], "diastolic": [3, 4]})
    schema = schema_of(
        encoding, ["ill", "well"], CostSpec({"sex": 0, "pressure": "2.5"}, reveals={"pressure": ["systolic", "diastolic"]})
    )
    assert schema.tests == ("sex", "pressure")
    assert schema.columns == ("sex=f", "sex=m", "systolic", "diastolic")
    assert schema.owner.tolist() == [0, 0, 1, 1]
    assert schema_of(encoding, ["ill", "well"]).tests == ("sex", "systolic", "diastolic")
    assert schema_of(encoding, ["a", "b"], CostSpec(reveals={"sex": ["sex", "systolic"]})).tests == ("sex", "diastolic")
    with pytest.raises(
        AskwiseError, match=r"a test reveals the column 'sistolic', which does not exist; did you mean 'systolic'"
    ):
        schema_of(encoding, ["ill", "well"], CostSpec(reveals={"pressure": ["sistolic"]}))
    with pytest.raises(AskwiseError, match="'sex' has the name of a column that it does not reveal"):
        schema_of(encoding, ["ill", "well"], CostSpec(reveals={"sex": ["systolic"]}))


def test_a_million_rows_take_little_more_than_themselves():
    # in a process of its own, since the most memory it ever had is counted; getrusage would count that of its parent too
    program = """
from pathlib import Path
import numpy as np
from askwise.tables.encoding import Encoding

X = np.zeros((1_000_000, 50))
X += np.arange(50)
X[::3] += 1
train = np.arange(0, 1_000_000, 2)
matrix = Encoding.fit(X, rows=train).transform(X)
peak = 1024 * int(next(line for line in Path("/proc/self/status").open() if line.startswith("VmHWM")).split()[1])
assert matrix.shape == X.shape
assert X.nbytes + matrix.nbytes < peak < 1.25 * (X.nbytes + matrix.nbytes) + 2**26, peak
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
