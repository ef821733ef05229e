"""Areas under ROC curves against values worked by hand, scikit-learn's, and resampled cases."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from askwise.core.ranking import auroc, two_class_auroc


@pytest.mark.parametrize(
    ("said", "truth", "area"),
    [
        ([0.1, 0.4, 0.35, 0.8], [0, 0, 1, 1], 0.75),
        ([1, 1, 1, 1], [0, 1, 0, 1], 0.5),
        ([3, 2, 2, 1], [0, 0, 1, 1], 0.125),  # one tie of four pairs
        ([1, 2], [1, 1], None),
    ],
)
def test_auroc_equals_the_one_worked_by_hand(said: list[float], truth: list[int], area: float | None) -> None:
    found = two_class_auroc(said, np.array(truth) == 1)
    assert area is None if found is None else found.value == area


def drawn(classes: int, n: int = 300) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(classes)
    belief = rng.dirichlet(np.ones(classes), n).round(2)  # with ties
    labels = np.array([rng.choice(classes, p=p / p.sum()) for p in belief])
    return belief, labels, rng.integers(1, 4, n).astype(float)


def test_two_classes_are_ranked_as_scikit_learn_ranks_them_with_weights_too() -> None:
    belief, labels, weight = drawn(2)
    assert auroc(belief, labels).value == pytest.approx(roc_auc_score(labels, belief[:, 1]))
    assert auroc(belief, labels, weight).value == pytest.approx(roc_auc_score(labels, belief[:, 1], sample_weight=weight))


def test_several_classes_are_ranked_each_against_all_others() -> None:
    belief, labels, weight = drawn(4)
    each = [roc_auc_score(labels == k, belief[:, k], sample_weight=weight) for k in range(4)]
    assert auroc(belief, labels, weight).value == pytest.approx(np.mean(each))
    there = labels != 2
    without = [roc_auc_score(labels[there] == k, belief[there, k]) for k in (0, 1, 3)]
    assert auroc(belief[there], labels[there]).value == pytest.approx(np.mean(without))
    assert auroc(belief[labels == 2], labels[labels == 2]) is None


@pytest.mark.parametrize("classes", [2, 3])
def test_the_error_of_an_area_is_how_much_it_differs_from_sample_to_sample(classes: int) -> None:
    belief, labels, _ = drawn(classes, 400)
    rng = np.random.default_rng(0)
    again = [auroc(belief[rows], labels[rows]).value for rows in rng.integers(400, size=(400, 400))]
    assert auroc(belief, labels).error == pytest.approx(np.std(again), rel=0.15)


def test_a_row_of_weight_two_counts_as_two_rows() -> None:
    belief, labels, weight = drawn(2, 60)
    twice = np.repeat(np.arange(60), weight.astype(int))
    assert auroc(belief, labels, weight).value == pytest.approx(auroc(belief[twice], labels[twice]).value)
