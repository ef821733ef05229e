"""Classes of every sort: those that a file can keep come back as they were; all others are refused before anything is learned."""

from datetime import date, datetime
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from tests.support.commands import run
from tests.support.patients import classifier, numbers

import askwise
from askwise.bench import own_table
from askwise.errors import InputError

X, CODES = numbers(40)


def two(a, b, dtype=None):
    """A target of two classes."""
    made = np.empty(len(CODES), dtype or object)
    made[:] = [b if code else a for code in CODES]
    return made


KEPT = {
    "texts": two("no", "yes", "<U3"),
    "texts as objects": two("no", "ünd\u2028 \"'"),
    "pandas' texts": pd.Series(two("no", "yes"), dtype="string"),
    "pyarrow's texts": pd.Series(two("no", "yes"), dtype="string[pyarrow]"),
    "NumPy's texts of any length": two("no", "yes").astype(np.dtypes.StringDType()),
    "categories": pd.Series(pd.Categorical(two("no", "yes"))),
    "categories of numbers": pd.Series(pd.Categorical(two(3, 17))),
    "whole numbers": two(3, 17, np.int64),
    "small whole numbers": two(-3, 17, np.int8),
    "large whole numbers": two(0, 2**63 - 1, np.uint64),
    "whole numbers as objects": two(3, 2**60),
    "whole numbers of NumPy as objects": two(np.int16(3), np.int16(4)),
    "the other way round": two(3, 17, ">i4"),
    "nullable whole numbers": pd.Series(CODES, dtype="Int64"),
    "truths": two(False, True, bool),
    "truths as objects": two(False, True),
    "nullable truths": pd.Series(CODES == 1, dtype="boolean"),
    "numbers": two(1.0, 2.0, np.float64),
    "short numbers": two(1.0, 2.0, np.float16),
    "numbers as objects": two(1.0, 2),
    "a list": two("no", "yes").tolist(),
}


@pytest.mark.parametrize("name", KEPT)
def test_classes_come_back_as_they_were(name, tmp_path):
    fitted = classifier(time_limit=0).fit(X, KEPT[name])
    fitted.save(tmp_path / "m")
    model = askwise.load(tmp_path / "m")
    before, after = fitted.model_.schema.classes, model.schema.classes
    assert after == before
    assert [type(c) for c in after] == [type(c) for c in before]
    assert type(after[0]) in (str, int, float, bool)
    assert fitted.score(X, KEPT[name]) == (fitted.predict(X) == np.asarray(KEPT[name])).mean()
    assert model.predict(X).tolist() == fitted.predict(X).tolist()
    assert set(fitted.predict(X).tolist()) <= set(np.asarray(KEPT[name]).tolist())


REFUSED = {
    "times": (two("2020-01-01", "2021-01-01", "datetime64[s]"), "datetime64[s]"),
    "pandas' times": (pd.Series(two("2020-01-01", "2021-01-01", "datetime64[ns]")), "datetime64[ns]"),
    "times of a zone": (pd.Series(two(pd.Timestamp(0, tz="UTC"), pd.Timestamp(1e9, tz="UTC"))), "Timestamp"),
    "durations": (two(1, 2, "timedelta64[s]"), "timedelta64[s]"),
    "days": (two(date(2020, 1, 1), date(2021, 1, 1)), "datetime.date"),
    "times as objects": (two(datetime(2020, 1, 1), datetime(2021, 1, 1)), "datetime.datetime"),
    "months": (pd.Series(pd.PeriodIndex(two("2020-01", "2020-02"), freq="M")), "Period"),
    "intervals": (pd.Series(pd.IntervalIndex.from_breaks([0, 1, 2])[CODES]), "Interval"),
    "categories of times": (pd.Series(pd.Categorical(two(pd.Timestamp(0), pd.Timestamp(10**18)))), "datetime64"),
    "bytes": (two(b"no", b"yes", "S3"), "S3"),
    "bytes as objects": (two(b"no", b"yes"), "bytes"),
    "complex numbers": (two(1j, 2j, complex), "complex"),
    "long numbers": (two(1, 2, np.longdouble), "float128"),
    "decimals": (two(Decimal(1), Decimal(2)), "decimal.Decimal"),
    "ratios": (two(Fraction(1), Fraction(2)), "fractions.Fraction"),
    "records": (np.array([(c,) for c in CODES], [("a", int)]), "a class must be a text"),
    "functions": (two(len, max), "builtin_function_or_method"),
    "whole numbers of 64 bits": (two(0, 2**64 - 1, np.uint64), "must be below 2 ** 63"),
    "numbers beyond 64 bits": (two(1, 2**70), "numbers of at most 64 bits"),
    "texts and numbers": (two("no", 1), "classes must be all texts"),
    "truths and numbers": (two(True, 7), "classes must be all texts"),
    "long texts": (two("no", "y" * 1001), "1001 characters; a class may have 1000"),
    "a text with a zero": (two("no", "no\0"), "none of them the character 0"),
}
TUPLES = np.empty(len(CODES), object)
TUPLES[:] = [(int(code), 1) for code in CODES]
REFUSED["tuples"] = (TUPLES, "tuple")


@pytest.mark.parametrize("name", REFUSED)
def test_classes_that_no_file_keeps_are_refused_before_training(name):
    y, words = REFUSED[name]
    trained = []
    with pytest.raises(InputError) as caught:
        classifier().fit(X, y, callback=trained.append)
    assert trained == []
    assert "the target" in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_so_are_those_of_a_file(tmp_path):
    frame = pd.DataFrame(X[:, :2], columns=["a", "b"]).assign(y=two("2020-01-01", "2021-01-01", "datetime64[ns]"))
    frame.to_parquet(tmp_path / "cases.parquet")
    argv = ("fit", tmp_path / "cases.parquet", "--target", "y", "--out", tmp_path / "m.askwise", "--quiet", "--time-limit", "0")
    code, out, err = run(*argv)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "datetime64" in err
    assert [p.name for p in tmp_path.iterdir()] == ["cases.parquet"]
    with pytest.raises(InputError, match="the target 'y' holds values of type datetime64"):
        own_table.load(tmp_path, {"file": "cases.parquet", "target": "y"}, 0, None)


def changed(labels, value):
    other = np.array(labels, object)
    other[3] = value
    return other


@pytest.mark.parametrize("value", [None, float("nan"), pd.NA])
def test_a_score_needs_every_label(value):
    sentence = r"^the target is missing in row 3 \(counted from 0\); remove rows without a target$"
    for labels in (two("no", "yes"), two(0, 1)):
        fitted = classifier(time_limit=0).fit(X, labels)
        with pytest.raises(InputError, match=sentence):
            fitted.score(X, changed(labels, value))
        with pytest.raises(InputError, match=r"^there are 39 targets for 40 rows$"):
            fitted.score(X, labels[1:])


def test_a_score_names_a_label_that_is_no_class_and_the_classes():
    fitted = classifier(time_limit=0).fit(X, two("no", "yes"))
    sentence = r"^the target is 'perhaps' in row 3 \(counted from 0\), which is not a class; there are 'no', 'yes'$"
    with pytest.raises(InputError, match=sentence):
        fitted.score(X, changed(two("no", "yes"), "perhaps"))
    with pytest.raises(InputError, match=r"^the target is 0 in row 0 .*; there are 'no', 'yes'$"):
        fitted.score(X, CODES * 0)
