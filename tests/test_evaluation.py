"""Reports against values counted by hand."""

import numpy as np
import pytest

from askwise.core.budget import Tradeoff
from askwise.core.cases import State
from askwise.core.policy import Choice, Policy
from askwise.core.problem import Problem, Schema
from askwise.errors import InputError
from askwise.evaluation import evaluate


class BuyFirstThenSayItsValue(Policy):
    """Buys b, then says class 1 where b is positive."""

    def act(self, state: State) -> Choice:
        held = state.mask[:, 1]
        action = np.where(held, (state.values[:, 1] > 0).astype(int), 3)
        return Choice(action, np.ones(len(action), np.float32))


def test_a_report_equals_the_one_worked_by_hand() -> None:
    schema = Schema.build(["a", "b"], ["no", "yes"], [1, 2.5])
    problem = Problem.build(schema, [[0, 1], [0, -1], [0, 2], [0, 3]], ["yes", "no", "no", "yes"], loss=[[0, 1], [4, 0]])
    report = evaluate(BuyFirstThenSayItsValue(), problem, Tradeoff(0))
    assert report.cost == 2.5
    assert report.accuracy == 0.75
    assert report.balanced_accuracy == (0.5 + 1) / 2
    assert report.loss == 1 / 4
    assert report.bought == {"a": 0.0, "b": 1.0}
    assert report.tests_of(2) == ["b"]


def test_without_labels_there_is_no_accuracy() -> None:
    schema = Schema.build(["a", "b"], ["no", "yes"])
    report = evaluate(BuyFirstThenSayItsValue(), Problem.build(schema, [[0, 1]]), Tradeoff(0))
    assert report.cost == 1
    with pytest.raises(InputError, match="no target"):
        _ = report.accuracy


class BuyFirstThenAsk(Policy):
    """Buys b, then asks the existing classifier."""

    def act(self, state: State) -> Choice:
        action = np.where(state.mask[:, 1], 2, 4)
        return Choice(action, np.ones(len(action), np.float32))


def test_tests_bought_for_the_existing_classifier_are_listed_last() -> None:
    schema = Schema.build(["a", "b", "c"], ["no", "yes"], [1, 2.5, 4], external_needs=["a", "b"])
    rows = [[0, 1, 0], [0, 2, 0]]
    known = [[False, False, False], [True, False, True]]
    problem = Problem.build(schema, rows, external=["yes", "no"], known=known)
    report = evaluate(BuyFirstThenAsk(), problem, Tradeoff(0))
    assert [report.tests_of(i) for i in range(2)] == [["b", "a"], ["b"]]
    assert report.cost_per_case.tolist() == [3.5, 2.5]
