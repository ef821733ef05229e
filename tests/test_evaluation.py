"""Reports against values counted by hand."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askwise.core.budget import Tradeoff
from askwise.core.cases import State
from askwise.core.policy import Choice, Policy
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.core.shares import wilson
from askwise.errors import InputError
from askwise.evaluation import Report, evaluate
from askwise.model.outcomes import outcomes_of
from askwise.reports import by_class


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


# ------------------------------------------------------------------ class by class


class SayTheValue(Policy):
    """Buys the only test, then says the class of that number."""

    def act(self, state: State) -> Choice:
        action = np.where(state.mask[:, 0], state.values[:, 0].astype(int), state.legal.shape[1] - 1)
        return Choice(action, np.ones(len(action), np.float32))


def decided(truth: list[int], decision: list[int], classes: list[str], weight: list[float] | None = None) -> Report:
    """A report of cases of these classes that were decided so."""
    problem = Problem.build(Schema.build(["a"], classes), np.c_[decision], [classes[k] for k in truth], weight=weight)
    return evaluate(SayTheValue(), problem, Tradeoff(0))


def test_recall_and_precision_equal_those_counted_by_hand() -> None:
    report = decided([0, 0, 0, 0, 1, 1], [0, 0, 0, 1, 1, 0], ["ill", "well"])
    assert report.confusion.tolist() == [[3, 1], [1, 1]]
    assert {name: share.value for name, share in report.recall.items()} == {"ill": 3 / 4, "well": 1 / 2}
    assert {name: share.value for name, share in report.precision.items()} == {"ill": 3 / 4, "well": 1 / 2}
    assert report.recall["ill"][2:] == wilson(3 / 4, 4)
    assert report.precision["well"][2:] == wilson(1 / 2, 2)
    assert report.recall["ill"].error == pytest.approx((3 / 4 * 1 / 4 / 4) ** 0.5)


def test_weighted_rows_count_as_their_weights_say() -> None:
    report = decided([0, 0, 1, 1], [0, 1, 1, 1], ["ill", "well"], [3, 1, 0.5, 0])
    assert report.confusion.tolist() == [[3, 1], [0, 0.5]]
    assert report.recall["ill"].value == 3 / 4
    assert report.recall["ill"][2:] == pytest.approx(wilson(3 / 4, 4**2 / (9 + 1)))
    assert report.precision["well"].value == 0.5 / 1.5
    assert report.precision["well"][2:] == pytest.approx(wilson(1 / 3, 1.5**2 / 1.25))
    assert report.balanced_accuracy == (3 / 4 + 1) / 2
    assert by_class.as_json(report)["confusion"] == [[3, 1], [0, 0.5]]
    assert [cell for cell in "\n".join(by_class.tables(report)).split() if cell == "0.5"] == ["0.5", "0.5"]


def test_a_class_without_cases_has_no_recall_and_one_never_decided_for_no_precision() -> None:
    report = decided([0, 0, 1], [0, 2, 0], ["ill", "well", "rare"])
    assert np.isnan(report.recall["rare"]).all()
    assert report.precision["rare"].value == 0
    assert np.isnan(report.precision["well"]).all()
    assert report.balanced_accuracy == (1 / 2 + 0) / 2
    ill, well, rare = json.loads(json.dumps(by_class.as_json(report), allow_nan=False))["by_class"]
    assert (ill["class"], ill["cases"], ill["decisions"], ill["recall"], ill["precision"]) == ("ill", 2, 2, 0.5, 0.5)
    assert ill["recall_interval"] == pytest.approx(wilson(1 / 2, 2))
    assert (well["precision"], well["precision_interval"]) == (None, None)
    assert (rare["recall"], rare["recall_interval"]) == (None, None)
    assert [line.split()[2:4] for line in by_class.tables(report)[-1].splitlines() if line.split()[0] == "rare"] == [["–", "–"]]


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.sampled_from([0.0, 0.5, 1.0, 3.0])), min_size=1, max_size=30),
    st.booleans(),
)
def test_the_matrix_has_all_cases_and_the_shares_are_those_of_its_rows_and_columns(cases, weighted) -> None:
    truth, decision, weight = map(list, zip(*cases, strict=True))
    weight = weight if weighted and any(weight) else None
    report = decided(truth, decision, ["a", "b", "c", "d"], weight)
    assert report.confusion.sum() == pytest.approx(len(cases) if weight is None else sum(weight))
    for by, axis in ((report.recall, 1), (report.precision, 0)):
        total = report.confusion.sum(axis)
        values = np.array([share.value for share in by.values()])
        assert np.isnan(values).tolist() == (total == 0).tolist()
        assert np.nan_to_num(values) * total == pytest.approx(np.diag(report.confusion))
        assert all(0 <= low <= value <= high <= 1 for value, _, low, high in by.values() if not np.isnan(value))
    assert report.accuracy == pytest.approx(np.trace(report.confusion) / report.confusion.sum())
    kept = [each.recall for each in outcomes_of(report).classes if each.cases]
    assert kept == [share.value for share in report.recall.values() if not np.isnan(share.value)]


def test_many_classes_are_listed_without_a_matrix_and_it_is_said() -> None:
    few, many = ([f"class {i}" for i in range(n)] for n in (12, 13))
    assert "confusion matrix: true classes by row" in by_class.tables(decided([0, 1], [0, 1], few))[0]
    sentence, *rest = by_class.tables(decided([0, 1], [0, 1], many))
    assert sentence == "the confusion matrix is not shown, since there are 13 classes; --json has it"
    assert len(rest) == 2
    assert all(name in rest[1] for name in many)
    assert len(by_class.as_json(decided([0, 1], [0, 1], many))["confusion"]) == 13


def test_long_names_are_cut_and_control_characters_are_harmless() -> None:
    report = decided([0, 1], [0, 1], [f"{'a name that is long ' * 9}1", "\x1b[2Jwell\nand good"])
    text = "\n".join(by_class.tables(report))
    assert "\x1b" not in text
    assert "well and good" in text
    assert max(map(len, text.splitlines())) < 150


def test_tables_are_aligned() -> None:
    lines = by_class.tables(decided([0] * 1200 + [1], [0] * 1199 + [1, 1], ["ill", "well"]))
    assert lines[1].splitlines() == [
        "    class      ill    well",
        "    ----------------------",
        "    ill      1,199       1",
        "    well         0       1",
    ]
    assert lines[3].splitlines()[2:] == [
        "    ill            1,200     99.9 %  99.5 to 100.0 %      1,199    100.0 %  99.7 to 100.0 %",
        "    well               1    100.0 %  20.7 to 100.0 %          2     50.0 %  9.5 to 90.5 %",
    ]
