"""What a report says of targets and of what each recall costs."""

import pytest
from tests.support.counted import counted
from tests.support.models import family, table

from askwise import AtLeast, AtMost, ClassWeights
from askwise.reports.model_page import write_report
from askwise.reports.model_report import MeasuredOn
from askwise.reports.reached import recalls_table, recalls_words, targets_table


def test_each_policy_is_told_once_with_the_most_that_can_be_asked_of_it():
    assert [row[:4] for row in recalls_table(counted()).rows] == [
        ("ill (20)", "40.0 %", "0.5 ± 0.02", "40.0 %"),
        ("ill (20)", "70.0 %", "1 ± 0.02", "70.0 %"),
        ("ill (20)", "80.0 %", "1.5 ± 0.02", "80.0 %"),
        ("ill (20)", "90.0 %", "2 ± 0.02", "90.0 %"),
        ("well (80)", "100.0 %", "0 ± 0.02", "100.0 %"),
    ]
    assert recalls_table(counted()).rows[2][4:] == ("58.4 % to 91.9 %", "87.5 %", "86.0 ± 3.0 %")
    assert recalls_words(counted()).endswith("A recall of ill above 90 % cannot be had; so much costs 2 € per case.")
    assert recalls_table(family()) is None


def test_targets_and_classes_that_weigh_are_listed_with_what_was_measured():
    assert targets_table(counted()) is None
    rows = targets_table(counted(AtLeast(recall={"ill": 0.8}) & AtMost(loss=0.3))).rows
    assert rows[0] == ("AtLeast(recall={'ill': 0.8})", "80.0 %", "58.4 % to 91.9 %", "20")
    assert rows[1] == ("AtMost(loss=0.3)", "0.1400", "0.0812 to 0.1988", "100")
    weighed = targets_table(counted(ClassWeights({"ill": 2}))).rows
    assert [row[0] for row in weighed] == ["recall of ill", "specificity of ill", "recall of well", "specificity of well"]


def test_a_report_says_whether_cases_bear_targets_out(tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    model = counted(AtLeast(recall={"ill": 0.8}))
    on = MeasuredOn(model.report(model.problem(*table(50))), "50 cases", "test")
    for path in write_report(model, tmp_path / "m.askwise", [on])[2:]:
        text = path.read_text()
        for words in (
            "What has to be reached",
            "What each recall costs",
            "On 50 cases: recall of",
            "of at least 0.8: these come to",
        ):
            assert words in text
