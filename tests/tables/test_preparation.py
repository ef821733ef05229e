"""From a table to the problems of a fit: which rows go where, what they hold, and which row an error names."""

import numpy as np
import pandas as pd
import pytest

from askwise.core.cost_spec import CostSpec
from askwise.errors import InputError, RowError
from askwise.tables.external import Recorded
from askwise.tables.preparation import Preparation
from askwise.tables.splits import stratified

Y = np.array(["ill", "well"] * 20)
X = pd.DataFrame({"age": np.arange(40.0), "scan": np.where(Y == "ill", 1.0, 0.0)})


def preparation(**changes) -> Preparation:
    settings = dict(
        spec=CostSpec({"age": 1, "scan": 5}), known=(), external=None, loss=None, class_weight=None, scaling="none",
        categorical=(), validation_fraction=0.25,
    )  # fmt: skip
    return Preparation(**{**settings, **changes})


def test_the_rows_are_those_of_a_stratified_split():
    ready = preparation()(X, Y, None, seed=3)
    train, validation = stratified(Y, (0.75, 0.25), 3)
    assert ready.validation_rows.tolist() == validation.tolist()
    assert ready.problem.X[:, 0].tolist() == train.tolist()  # the age is the number of the row
    assert ready.validation.X[:, 0].tolist() == validation.tolist()
    assert (ready.classes.tolist(), ready.seed, ready.known) == (["ill", "well"], 3, ())
    assert ready.problem.schema.costs.alone.tolist() == [1, 5]


def test_rows_of_weight_0_are_in_neither_part():
    weight = np.where(np.arange(40) < 8, 0.0, 2.0)
    ready = preparation()(X, Y, weight, seed=0)
    rows = [*ready.problem.X[:, 0], *ready.validation.X[:, 0]]
    assert sorted(rows) == list(range(8, 40))
    assert ready.problem.weight is None  # rows that count all count alike


def test_weights_stay_with_their_rows():
    ready = preparation()(X, Y, np.arange(1.0, 41.0), seed=0)
    assert np.allclose(ready.problem.weight, (ready.problem.X[:, 0] + 1) / 40)
    assert np.allclose(ready.validation.weight, (ready.validation.X[:, 0] + 1) / 40)


def test_without_enough_rows_of_a_class_none_are_kept_apart():
    few = np.array(["ill"] + ["well"] * 39)
    ready = preparation()(X, few, None, seed=0)
    assert len(ready.validation_rows) == 0
    assert ready.validation is ready.problem
    assert len(ready.problem) == 40


def test_recorded_answers_stay_with_their_rows():
    answers = np.where(np.arange(40) % 3 == 0, "ill", "well")
    ready = preparation(external=Recorded("doctor"))(X.assign(doctor=answers), Y, None, seed=1)
    for part in (ready.problem, ready.validation):
        assert [part.schema.classes[k] for k in part.external] == answers[part.X[:, 0].astype(int)].tolist()
    assert ready.encoding.columns == ("age", "scan")


@pytest.mark.parametrize("row", [0, 17, 39])
def test_an_error_names_the_row_of_the_whole_table(row):
    answers = np.array(["ill"] * 40, object)
    answers[row] = "perhaps"
    with pytest.raises(RowError, match=rf"'perhaps' in row {row} \(counted from 0\)"):
        preparation(external=Recorded("doctor"))(X.assign(doctor=answers), Y, None, seed=1)
    known = np.zeros((40, 2), bool)
    known[row] = True
    with pytest.raises(RowError, match=rf"in row {row} \(counted from 0\)"):
        preparation(known=known)(X.assign(scan=X["scan"].where(X["age"] != row)), Y, None, seed=1)


def test_one_class_alone_is_refused():
    with pytest.raises(InputError, match="all rows with a weight above 0 are of one class, 'ill'"):
        preparation()(X, Y, (Y == "ill").astype(float), seed=0)


def test_the_encoding_knows_all_rows_that_are_learned_from():
    sizes = []

    def learns_from_all(*numbers):
        sizes.append(numbers)
        return True

    word = np.full(40, "often", object)
    ready = preparation()(X.assign(scan=word), Y, None, seed=3)
    word[ready.validation_rows[0]] = "rare"  # occurs among the rows that are kept apart alone
    table = X.assign(scan=word)
    for settings, known in (({}, False), ({"learns_from_all": learns_from_all}, True)):
        ready = preparation(**settings)(table, Y, None, seed=3)
        assert any("rare" in column for column in ready.problem.schema.columns) == known
        assert ready.problem.schema.columns == ready.validation.schema.columns
    assert sizes == [(30, 10, 2)]
