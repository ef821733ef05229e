"""Targets and class weights as parts of a budget, and figures from counts, worked out by hand."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest

from askwise import AtLeast, AtMost, AverageBudget, Budget, ClassWeights, HardBudget, Tradeoff
from askwise.core.target import Target
from askwise.errors import InputError

COUNTS = np.array([[60.0, 15.0, 5.0], [4.0, 6.0, 0.0], [1.0, 0.0, 9.0]])  # 80 of a, 10 of b, 10 of c
CLASSES, LOSS = ("a", "b", "c"), 1 - np.eye(3)


@pytest.mark.parametrize(
    ("target", "value", "cases"),
    [
        (Target("accuracy", 0.5), 0.75, 100),
        (Target("recall", 0.5, "a"), 0.75, 80),
        (Target("recall", 0.5, "b"), 0.6, 10),
        (Target("specificity", 0.5, "b"), 75 / 90, 90),
        (Target("specificity", 0.5, "a"), 15 / 20, 20),
        (Target("loss", 0.5), 0.25, 100),
    ],
)
def test_figures_from_counts(target, value, cases):
    figure = target.measured(COUNTS, CLASSES, LOSS)
    assert figure.value == pytest.approx(value)
    assert figure.cases == cases
    assert figure.most == 1
    assert figure.two_valued


def test_weighted_rows_are_worth_as_many_cases_as_those_of_their_class():
    """Ten rows of weight 9 are worth 10 cases, whatever the others weigh."""
    weight, label = np.repeat([1.0, 9.0, 0.5, 2.0], [80, 10, 3, 7]), np.repeat([0, 1, 2, 2], [80, 10, 3, 7])
    sums, squares = (np.bincount(label, w) for w in (weight, weight**2))
    counts, cases = np.zeros((3, 4)), sums**2 / squares
    counts[[0, 1, 2], [0, 1, 2]] = 0.7 * sums  # scaled however

    def of(*classes):
        own = weight[np.isin(label, classes)]
        return pytest.approx(own.sum() ** 2 / (own**2).sum())

    names, loss = ("x", "y", "z"), 1.0 - np.eye(3, 4)
    assert Target("recall", 0.5, "y").measured(counts, names, loss, cases).cases == pytest.approx(10)
    assert Target("recall", 0.5, "z").measured(counts, names, loss, cases).cases == of(2)
    assert Target("specificity", 0.5, "y").measured(counts, names, loss, cases).cases == of(0, 2)
    assert Target("accuracy", 0.5).measured(counts, names, loss, cases).cases == of(0, 1, 2)
    assert Target("loss", 0.5).measured(counts, names, loss, cases).cases == of(0, 1, 2)


def test_losses_of_several_sizes():
    figure = Target("loss", 1.0).measured(COUNTS, CLASSES, np.array([[0, 1, 1], [4, 0, 1], [4, 1, 0.0]]))
    assert figure == (pytest.approx((15 + 5 + 16 + 4) / 100), 100, 4, False)


def test_classes_are_found_by_name_whatever_their_type():
    assert Target("recall", 0.9, 1).class_of((0, 1)) == 1
    assert Target("recall", 0.9, "1").class_of((0, 1)) == 1  # as a command line says it
    with pytest.raises(InputError, match=re.escape("names the class 'il', which does not exist; did you mean 'ill'")):
        Target("recall", 0.9, "il").class_of(("healthy", "ill"))


def test_targets_are_joined_with_budgets():
    budget = AtLeast(recall={"ill": 0.97}, specificity=0.5, confidence=0.9) & AverageBudget(12) & HardBudget(40)
    assert budget.targets == (Target("recall", 0.97, "ill", 0.9), Target("specificity", 0.5, "ill", 0.9))
    assert (budget.average, budget.hard, budget.confidence) == (12, 40, None)
    again = "AverageBudget(12) & HardBudget(40) & AtLeast(recall={'ill': 0.97}, confidence=0.9)"
    assert str(budget) == f"{again} & AtLeast(specificity={{'ill': 0.5}}, confidence=0.9)"
    assert AtLeast(accuracy=0.9) & AtLeast(accuracy=0.9) == AtLeast(accuracy=0.9)


@pytest.mark.parametrize(
    "budget",
    [
        AtLeast(accuracy=0.9),
        AtMost(loss=0.1, confidence=0.95) & HardBudget("0.1"),
        AtLeast(recall={np.int64(3): 0.5, np.int64(4): 1}),
        ClassWeights({np.str_("ill"): 5}) & Tradeoff(0.1),
        ClassWeights({True: 2}) & AtLeast(recall={True: 0.5}),
    ],
)
def test_a_budget_is_the_same_after_it_was_written(budget):
    assert Budget.from_dict(json.loads(json.dumps(budget.to_dict()))) == budget


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: AtLeast(), "AtLeast() says nothing"),
        (lambda: AtLeast(recall=0.9), "recall=0.9 does not say of which class"),
        (lambda: AtLeast(specificity=0.9), "specificity=0.9 does not say of which class"),
        (lambda: AtLeast(accuracy=1.2), "accuracy is 1.2"),
        (lambda: AtLeast(accuracy=0), "accuracy is 0"),
        (lambda: AtLeast(recall={"ill": "much"}), "the recall of 'ill' is 'much'"),
        (lambda: AtMost(loss=-1), "loss is -1"),
        (lambda: AtMost(loss=0.1, confidence=1), "confidence is 1"),
        (lambda: ClassWeights({}), "needs a number for each class"),
        (lambda: ClassWeights({"ill": 0}), "the weight of 'ill' is 0"),
        (lambda: ClassWeights({"ill": 1e-300}), "the weight of 'ill' is 1e-300; it must be a number from 0.001 to 1000"),
        (lambda: AtLeast(accuracy=0.9) & Tradeoff(1), "a tradeoff and a target contradict each other"),
        (lambda: Tradeoff(1) & AtMost(loss=1), "a tradeoff and a target contradict each other"),
        (lambda: AtLeast(accuracy=0.9) & AtLeast(accuracy=0.8), "sets the same target twice"),
        (lambda: ClassWeights({"ill": 2}) & ClassWeights({"ill": 3}), "sets the same limit twice"),
        (lambda: AtLeast(accuracy=0.9) & 40, "AtLeast(accuracy=0.9) is joined with 40; join it with another budget"),
    ],
)
def test_what_cannot_be_meant_is_one_sentence(make, why):
    with pytest.raises(InputError, match=re.escape(why)):
        make()
