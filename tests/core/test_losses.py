"""What mistakes cost, by name: a loss matrix has each class once as a row and as a column, and nothing else."""

import numpy as np
import pandas as pd
import pytest
from tests.support.commands import run
from tests.support.patients import classifier, numbers

from askwise.core.losses import loss_matrix
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import InputError
from askwise.tables.small_files import read_loss

CLASSES = ["ill", "well"]
FRAME = pd.DataFrame([[0.0, 20.0], [1.0, 0.0]], CLASSES, CLASSES)
BY_NAME = {"well": {"well": 0, "ill": 1}, "ill": {"well": 20, "ill": 0}}


@pytest.mark.parametrize("given", [
    [[0, 20], [1, 0]], FRAME, FRAME[["well", "ill"]], FRAME.loc[["well", "ill"]], BY_NAME, pd.DataFrame([[0, 20], [1, 0]]),
], ids=["list", "frame", "columns in another order", "rows in another order", "by name", "a frame without names"])  # fmt: skip
def test_a_loss_matrix_may_be_named_in_any_order(given):
    assert loss_matrix(given, CLASSES, 1.0).tolist() == [[0, 20], [1, 0]]


WRONG = {
    "a column more": (FRAME.assign(defer=0.3), "a column 'defer', which is not a class"),
    "a row more": (pd.concat([FRAME, FRAME.loc[["ill"]].rename({"ill": "defer"})]), "a row 'defer', which is not a class"),
    "another name": (FRAME.rename(columns={"well": "wel"}), "a column 'wel', which is not a class; did you mean 'well'?"),
    "a column less": (FRAME[["ill"]], "no row or no column for the class 'well'"),
    "a row less": (FRAME.loc[["ill"]], "no row or no column for the class 'well'"),
    "a column twice": (FRAME[["ill", "well", "ill"]], "'ill' appears twice"),
    "rows without names": (FRAME.reset_index(drop=True), "a row 0, which is not a class"),
    "a dict with more": ({**BY_NAME, "defer": {"ill": 1, "well": 1}}, "a row 'defer', which is not a class"),
    "a dict with more decisions": ({c: {**row, "defer": 1} for c, row in BY_NAME.items()}, "a column 'defer'"),
    "a dict with a gap": ({**BY_NAME, "ill": {"ill": 0}}, "has no loss for deciding 'well' where 'ill' is true"),
    "a dict of numbers": ({"ill": 1, "well": 2}, "no row or no column for the class"),
    "a gap": (FRAME.replace(20, np.nan), "nan for deciding 'well' where 'ill' is true, which is negative or not finite"),
    "huge": (FRAME.replace(20, 1e300), "1e+300 for deciding 'well' where 'ill' is true, which is too small or too large"),
    "tiny": ([[0, 1e-300], [1, 0]], "1e-300 for deciding 'well'"),
    "as large as no float": ([[0, 10**400], [1, 0]], "the loss matrix must be 2 rows of 2 numbers"),
}


@pytest.mark.parametrize(("given", "words"), WRONG.values(), ids=WRONG)
def test_a_loss_matrix_of_other_names_is_refused(given, words):
    X, y = numbers(20)
    for call in (
        lambda: loss_matrix(given, CLASSES, 1.0),
        lambda: Problem.build(Schema.build(["a"], CLASSES), X[:, :1], np.array(CLASSES)[y], loss=given),
        lambda: classifier(loss=given).fit(X, np.array(CLASSES)[y]),
    ):
        with pytest.raises(InputError) as caught:
            call()
        assert words in str(caught.value)
        assert "\n" not in str(caught.value)


WEIGHTS = {
    "no class": ({"il": 2}, "a weight is given for 'il', which is not a class"),
    "a list": ([1, 2], "the class weights are [1, 2]; they must be None, 'balanced' or numbers by class, such as {'ill': 2}"),
    "as large as no float": ({"ill": 10**400}, "the weight of class 'ill'"),
    "huge": ({"ill": 1e300}, "the weight of class 'ill' is 1e+300"),
    "nan": ({"ill": np.nan}, "the weight of class 'ill' is nan"),
    "text": ({"ill": "2"}, "the weight of class 'ill' is '2'; it must be a finite number"),
    "too large together": ({"ill": 1e14}, "with the class weights, holds 2e+15 for deciding 'well' where 'ill' is true"),
}


@pytest.mark.parametrize(("given", "words"), WEIGHTS.values(), ids=WEIGHTS)
def test_class_weights_that_cannot_be(given, words):
    X, y = numbers(20)
    with pytest.raises(InputError) as caught:
        classifier(class_weight=given, loss=FRAME).fit(X, np.array(CLASSES)[y])
    assert words in str(caught.value)


def test_a_price_twice_in_a_series_is_refused():
    X, y = numbers(20)
    with pytest.raises(InputError, match="'x0' appears twice"):
        classifier(costs=pd.Series([1, 2, 3, 4], ["x0", "x1", "x2", "x0"])).fit(X, y)


FILES = {
    "truth,ill,well,defer\nill,0,20,0.3\nwell,1,0,0.3\n": "has a column 'defer', which is not a class",
    "truth,ill,well\nill,0,20\nwell,1,0\ndefer,1,1\n": "has a row 'defer', which is not a class",
    "truth,ill,well,ill\nill,0,20,1\nwell,1,0,1\n": "'ill' appears twice",
    "truth,ill,well\nill,0,20\nwell,1,0\nill,5,5\n": "'ill' appears twice",
    "truth,ill,well\nill,0,\nwell,1,0\n": "losses must be numbers",
    "truth,ill,well\nill,0,nan\nwell,1,0\n": "nan for deciding 'well' where 'ill' is true",
    "truth,ill,well\nill,0,1e400\nwell,1,0\n": "inf for deciding 'well' where 'ill' is true",
    "truth,ill,wel\nill,0,20\nwell,1,0\n": "has a column 'wel', which is not a class; did you mean 'well'?",
}


def test_so_is_a_file_with_them(tmp_path):
    X, y = numbers(20)
    cases, loss, out = (tmp_path / name for name in ("cases.csv", "loss.csv", "m.askwise"))
    pd.DataFrame(X).add_prefix("x").assign(y=np.array(CLASSES)[y]).to_csv(cases, index=False)
    for text, words in FILES.items():
        loss.write_text(text)
        code, said, err = run("fit", cases, "--target", "y", "--loss", loss, "--time-limit", "0", "--quiet", "--out", out)
        assert (code, said) == (2, "")
        assert words in err
        assert err.count("\n") == 1
    assert not out.exists()
    loss.write_text("truth,1,0\n0,5,0\n1,0,2\n")
    assert read_loss(loss, [0, 1]).tolist() == [[0, 5], [2, 0]]


def test_a_column_twice_in_a_price_list_is_refused(tmp_path):
    (tmp_path / "prices.csv").write_text("test,cost,cost\nx0,1,2\n")
    (tmp_path / "cases.csv").write_text("x0,y\n1,a\n2,b\n")
    argv = ("fit", tmp_path / "cases.csv", "--target", "y", "--costs", tmp_path / "prices.csv", "--out", tmp_path / "m.askwise")
    code, _, err = run(*argv)
    assert code == 2
    assert "the column of 'prices.csv' 'cost' appears twice" in err
