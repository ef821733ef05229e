"""Pictures take a model or a fitted classifier, and show what the fit measured."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.support.drawn import words
from tests.support.patients import PRICES, QUICK_FAMILY, classifier

from askwise import AverageBudget, CostlyClassifier, HardBudget
from askwise.core.episode import rollout
from askwise.errors import InputError
from askwise.evaluation import Report
from askwise.frontier.point import SAME_TESTS
from askwise.model.alternatives import all_tests, alternatives
from askwise.model.purchases import usage

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from askwise import plots


@pytest.fixture(scope="module")
def family(frame):
    return classifier(**PRICES, unit="€", known=["age"], algorithm="family", config=QUICK_FAMILY).fit(*frame)


def drawn(figure):
    """The same picture has the same bytes."""
    return plots.inline(figure)


@pytest.mark.parametrize("name", ["frontier", "bought", "paths", "progress"])
def test_a_classifier_and_its_model_look_the_same(family, average, name):
    draw = getattr(plots, name)
    for fitted in (family, average):
        assert drawn(draw(fitted)) == drawn(draw(fitted.model_))


def test_a_frontier_goes_through_the_points_of_the_model(family):
    axes = plots.frontier(family).axes[0]
    cases = family.model_.expected["n"]
    line = next(each for each in axes.lines if each.get_label() == f"the best of all policies, {cases} held-out cases")
    assert line.get_xdata().tolist() == [p.cost for p in family.model_.frontier]
    assert line.get_ydata().tolist() == [p.accuracy for p in family.model_.frontier]
    assert axes.get_xlabel() == "mean cost per case (€)"


def test_a_frontier_can_be_measured_on_test_cases(family, others):
    model, problem = family.model_, family.model_.problem(*others)
    figure = plots.frontier(family, problem)
    assert "the same policies on 90 test cases" in words(figure)
    (again,) = [c for c in figure.axes[0].containers if c.get_label() == "the same policies on 90 test cases"]
    one_by_one = [Report(problem, rollout(problem, model.arm(p), model.limit(p))) for p in model.frontier]
    np.testing.assert_allclose(again.lines[0].get_xdata(), [report.cost for report in one_by_one])
    np.testing.assert_allclose(again.lines[0].get_ydata(), [report.accuracy for report in one_by_one])
    with pytest.raises(InputError, match="no target"):
        plots.frontier(family, family.model_.problem(others[0]))
    with pytest.raises(InputError, match=r"model.problem\(X, y\)"):
        plots.frontier(family, others[0])


def test_what_is_bought_and_paths_are_those_that_were_recorded(family):
    model = family.model_.at(AverageBudget(1))
    found = usage(model)
    (axes,) = plots.bought(model).axes
    assert [label.get_text().split()[0] for label in axes.get_xticklabels()] == ["ill", "well"]
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert {name.removesuffix(" (known)") for name in names} == set(model.schema.tests)
    assert "age (known)" in names
    shares = [found.bought[name.removesuffix(" (known)")] for name in names]
    assert shares == sorted(shares, reverse=True)
    index = [model.schema.tests.index(name.removesuffix(" (known)")) for name in names]
    by_class = np.array([each.bought for each in found.outcomes.classes])[:, index]
    assert np.array_equal(np.asarray(axes.collections[0].get_array()), by_class.T)
    sizes = np.array([each.cases for each in found.outcomes.classes])
    np.testing.assert_allclose(sizes @ by_class / sizes.sum(), shares, atol=1e-3)
    said = " ".join(words(plots.paths(model)))
    for tests, share in found.paths:
        assert all(test in said for test in tests[:6])
        assert f"{round(share * found.rows):,}" in said
    assert "that the fit kept apart" in said


def test_paths_that_are_not_kept_are_summed_up(family):
    model = family.model_
    kept = {"rows": 100, "hard": "None", "points": [{"bought": [0.5] * 6, "paths": [[[1], 0.5], [[0, 1, 2, 3, 4, 5], 0.2]]}]}
    kept["points"] *= len(model.frontier)
    some = replace(model, facts={**model.facts, "usage": kept})
    said = words(plots.paths(some, steps=3))
    assert "other paths (30 cases)" in said
    assert "–" in said  # what these cost is not known
    assert any(text.startswith("…") for text in said)


def test_pixels_of_a_model(family):
    schema = family.model_.schema
    axes = plots.pixels(family, (2, 5)).axes[0]
    often = np.array(list(usage(family.model_).bought.values()))[schema.owner].reshape(2, 5)
    assert np.ma.filled(axes.images[0].get_array(), 0).tolist() == often.tolist()
    with pytest.raises(InputError, match="keeps no cases"):
        plots.pixels(family, (2, 5), example=0)


def test_several_models_in_one_plane(family, average):
    both = plots.frontiers({"mine": family, "theirs": average.model_, "points": ([0, 1], [0.5, 0.6])}, total=3).axes[0]
    assert [line.get_label() for line in both.lines] == ["mine", "theirs", "points"]
    assert list(both.lines[0].get_xdata()) == [p.cost for p in family.model_.frontier]
    assert plots.frontiers({"mine": family}).axes[0].get_xlim() == (0, 2.9)
    with pytest.raises(InputError, match="total is missing"):
        plots.frontiers({"points": ([0, 1], [0.5, 0.6])})
    point = plots.targets({"mine": family}, [1]).axes[0].lines[-1]
    assert list(point.get_xdata()) == [family.model_.expected["cost"]]


def test_what_cannot_be_drawn_is_said(family):
    with pytest.raises(NotFittedError):
        plots.frontier(CostlyClassifier())
    with pytest.raises(InputError, match="chosen is missing"):
        plots.frontier(([0, 1], [0.5, 0.6]))
    with pytest.raises(InputError, match="give a Report of cases"):
        plots.bought(family, by="decision")
    forgotten = replace(family.model_, facts={k: v for k, v in family.model_.facts.items() if k != "usage"})
    for draw in (plots.bought, plots.paths):
        with pytest.raises(InputError, match="not recorded"):
            draw(forgotten)


def test_the_band_is_one_standard_error_and_says_of_how_many_cases(family):
    model, axes = family.model_, plots.frontier(family).axes[0]
    (band,) = [each for each in axes.collections if each.get_label() == "± one standard error"]
    corners = {(round(x, 9), round(y, 9)) for x, y in band.get_paths()[0].vertices}
    for p in model.frontier:
        for side in (-1, 1):
            assert (round(p.cost, 9), round(p.accuracy + side * p.measure.accuracy_error, 9)) in corners


def test_the_same_tests_for_everybody_stand_in_the_same_plane(family):
    model, axes = family.model_, plots.frontier(family).axes[0]
    plain = [each.measure for each in alternatives(model) if each.kind == SAME_TESTS]
    (squares,) = [each for each in axes.collections if each.get_label().startswith(SAME_TESTS)]
    assert sorted(map(tuple, squares.get_offsets())) == sorted((m.cost, m.accuracy) for m in plain)
    everything = all_tests(model)
    (diamond,) = [line for line in axes.lines if line.get_marker() == "D"]
    assert diamond.get_xydata().tolist() == [[everything.cost, everything.accuracy]]
    under_a_hard_budget = words(plots.frontier(model.at(HardBudget(1))))
    assert SAME_TESTS not in under_a_hard_budget  # others were not measured under it


def test_a_picture_of_one_kind_alone_has_nothing_beside_it(average):
    assert not any(SAME_TESTS in text for text in words(plots.frontier(average)))
