"""Pictures of how it ends: recall by class, and calibration."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from tests.support.drawn import random_report, words

from askwise.errors import InputError
from askwise.evaluation import Report
from askwise.model.purchases import usage

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from askwise import plots


def test_recall_is_a_bar_for_each_class_the_largest_first():
    report = random_report()
    axes = plots.recall(report).axes[0]
    truth, right = report.truth, report.episodes.decision == report.truth
    sizes = np.bincount(truth)
    order = np.argsort(-sizes, kind="stable")
    assert [bar.get_width() for bar in axes.patches] == pytest.approx([right[truth == k].mean() for k in order])
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [f"{'xyz'[k]}\n{sizes[k]} cases" for k in order]
    assert len(plots.recall(report, most=2).axes[0].patches) == 2
    with pytest.raises(InputError, match="1 or more"):
        plots.recall(report, most=0)


def test_calibration_has_a_point_for_each_tenth_with_its_number_of_cases():
    report = random_report()
    rng = np.random.default_rng(1)
    belief = rng.dirichlet([1, 1, 1], len(report.truth))
    report = Report(report.problem, replace(report.episodes, belief=belief))
    figure = plots.calibration(report)
    decided = report.episodes.decision
    p = belief[np.arange(len(decided)), decided]
    expected = []
    for i in range(10):
        of = (p >= i / 10) & (p < (i + 1) / 10)
        if of.any():
            expected.append((p[of].mean(), (report.truth[of] == decided[of]).mean()))
            assert f"{of.sum()}" in words(figure)
    np.testing.assert_allclose(figure.axes[0].collections[0].get_offsets(), expected)
    assert figure.axes[0].get_xlabel() == "probability of the class decided for at the end"


def test_numbers_of_cases_never_meet():
    report = random_report()
    p = np.repeat([0.0999, 0.1001, 0.9], 100)  # the first two are neighbours
    belief = np.c_[p, 1 - p, 0 * p]
    figure = plots.calibration(Report(report.problem, replace(report.episodes, decision=0 * report.truth, belief=belief)))
    figure.draw_without_rendering()
    boxes = sorted((text.get_window_extent() for text in figure.axes[0].texts), key=lambda box: box.x0)
    assert len(boxes) == 4
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_without_probabilities_there_is_a_sentence():
    with pytest.raises(InputError, match=r"model.report\(problem\)"):
        plots.calibration(random_report())


def test_a_model_is_drawn_from_what_the_fit_measured(average):
    ends = usage(average.model_).outcomes
    axes = plots.calibration(average).axes[0]
    np.testing.assert_allclose(axes.collections[0].get_offsets(), [(b.probability, b.share) for b in ends.bins])
    assert sorted(bar.get_width() for bar in plots.recall(average).axes[0].patches) == pytest.approx(
        sorted(each.recall for each in ends.classes)
    )
