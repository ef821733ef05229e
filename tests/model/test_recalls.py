"""What each recall of a class costs: by hand, and as `at` would follow it."""

from dataclasses import replace

import pytest
from tests.support.counted import counted, point
from tests.support.models import family, paper

from askwise import AtLeast, AtMost, ClassWeights, HardBudget
from askwise.core.shares import wilson
from askwise.model.recalls import ASKED, for_machines, measured_targets, recall_budget, recalls
from askwise.reports.reached import recalls_words
from askwise.web.recall_view import recall_words


def test_recalls_by_hand():
    ill, well = recalls(counted())
    assert (ill.name, ill.cases, ill.most) == ("ill", 20, 0.9)  # the rarer first; who calls everybody ill loses too much
    cost = {step.asked: step.measure.cost for step in ill.steps}
    assert cost == {0.1: 0.5, 0.2: 0.5, 0.3: 0.5, 0.4: 0.5, 0.5: 1, 0.6: 1, 0.7: 1, 0.75: 1.5, 0.8: 1.5, 0.85: 2, 0.9: 2}
    last = ill.steps[-1]
    assert last.recall == (0.9, 20, *wilson(0.9, 20))
    assert last.specificity == (pytest.approx(68 / 80), 80, *wilson(68 / 80, 80))
    assert last.measure.accuracy == pytest.approx(0.86)
    assert (well.name, well.most, {step.measure.cost for step in well.steps}) == ("well", 1, {0.0})  # nobody is ill
    assert [step.asked for step in well.steps] == list(ASKED)


@pytest.mark.parametrize("limits", [None, HardBudget(1.2), AtLeast(accuracy=0.8)], ids=str)
def test_a_recall_is_what_its_budget_follows(limits):
    model = counted(limits)
    for each in recalls(model):
        for step in each.steps:
            assert model.at(recall_budget(model, each.name, step)).measured == step.measure
    assert recalls(model) is recalls(model)


def test_the_most_that_can_be_had_can_be_written_down():
    """Two of three would be rounded up."""
    from dataclasses import replace

    import numpy as np

    model = counted()
    first, second = model.targeted[0], replace(model.targeted[4], counts=np.array([[2.0, 1], [0, 9]]))
    rare = replace(model, targeted=(replace(first, counts=np.array([[0.0, 3], [0, 9]])), second))
    assert recalls(rare)[0].most == 0.6666
    assert rare.at(AtLeast(recall={"ill": 0.6666})).measured == second.measure


@pytest.mark.parametrize("made", [family, paper])
def test_nothing_is_told_where_cases_were_not_counted(made):
    facts = for_machines(made())
    assert facts == {"targets": [], "class_weights": [], "by_class": [], "recalls": []}


def test_what_was_measured_of_targets():
    model = counted(AtLeast(recall={"ill": 0.8}, specificity=0.5) & AtLeast(accuracy=0.2) & AtMost(loss=0.9))
    found = {target.figure: measured for target, measured in measured_targets(model)}
    assert model.measured.cost == 1.5
    assert found["recall"] == (0.8, 20, *wilson(0.8, 20))
    assert found["specificity"] == (0.875, 80, *wilson(0.875, 80))
    assert found["accuracy"] == (pytest.approx(0.86), 100, *wilson(0.86, 100))
    assert found["loss"][:2] == (pytest.approx(0.14), 100)
    assert found["loss"][3] - found["loss"][2] == pytest.approx(2 * 1.96 * 0.03, rel=1e-3)


def test_class_weights_are_told_with_what_each_class_comes_to():
    facts = for_machines(counted(ClassWeights({"ill": 3}) & AtLeast(accuracy=0.85)))
    assert facts["class_weights"] == [{"class": "ill", "weight": 3.0}]
    assert [each["class"] for each in facts["by_class"]] == ["ill", "well"]
    assert facts["by_class"][0]["recall"]["cases"] == 20
    assert facts["by_class"][0]["recall"] == facts["by_class"][1]["specificity"]


def test_classes_are_named_as_they_are_however_they_were_asked_for():
    model = counted()
    model = replace(model, schema=replace(model.schema, classes=(3, 7)))  # a command line has texts only
    facts = for_machines(model.at(ClassWeights({"3": 3}) & AtLeast(recall={"3": 0.5}) & AtLeast(accuracy=0.5)))
    assert facts["class_weights"] == [{"class": 3, "weight": 3.0}]
    assert [target["of"] for target in facts["targets"]] == [3, None]
    assert [each["class"] for each in facts["by_class"]] == [3, 7]


def test_a_class_that_is_not_found_without_more_loss_has_the_best_that_can_be_had():
    """Of 20 ill and 80 well, every policy that finds any ill calls more of the well ill than that."""
    measured = ((0.0, 0, 0), (1.0, 8, 20), (1.5, 8, 16), (2.0, 16, 30), (0.1, 20, 80), (2.5, 18, 60))
    model = replace(counted(), targeted=tuple(point(*each) for each in measured))
    ill = recalls(model)[0]
    assert (ill.name, ill.trades, ill.most) == ("ill", True, 0.9)  # calling everybody ill is no use
    told = {step.asked: (step.measure.cost, step.beside) for step in ill.steps}
    assert told[0.4] == (1.5, 0.8)
    assert told[0.5] == told[0.8] == (2.0, 0.625)
    assert told[0.9] == (2.5, 0.25)
    for step in ill.steps:
        assert model.at(recall_budget(model, "ill", step)).measured == step.measure
    shown = recall_words(model)[0][-1]
    assert shown["asked"].startswith("90")
    assert shown["budget"] == "AtLeast(recall={'ill': 0.9}) & AtLeast(specificity={'ill': 0.25})"
    assert "No case of ill is found where" in shown["end"]
    assert "No case of ill is found so" in recalls_words(model)
    nothing = replace(counted(), targeted=(point(0.0, 0, 0), point(0.1, 20, 80)))
    assert [each.name for each in recalls(nothing)] == ["well"]
