"""Pictures take a model or a fitted classifier, and show what the fit measured."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from tests.support.drawn import words
from tests.support.patients import PRICES, QUICK_FAMILY, classifier

from askwise import AverageBudget, CostlyClassifier
from askwise.errors import InputError
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
    line = next(each for each in axes.lines if each.get_label() == "chosen on validation cases")
    assert line.get_xdata().tolist() == [p.cost for p in family.model_.frontier]
    assert line.get_ydata().tolist() == [p.accuracy for p in family.model_.frontier]
    assert axes.get_xlabel() == "mean cost per case (€)"


def test_a_frontier_can_be_measured_on_test_cases(family, others):
    figure = plots.frontier(family, family.model_.problem(*others))
    assert any("test cases" in text for text in words(figure))
    with pytest.raises(InputError, match="no target"):
        plots.frontier(family, family.model_.problem(others[0]))
    with pytest.raises(InputError, match=r"model.problem\(X, y\)"):
        plots.frontier(family, others[0])


def test_what_is_bought_and_paths_are_those_that_were_recorded(family):
    model = family.model_.at(AverageBudget(1))
    found = usage(model)
    (axes,) = plots.bought(model).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert {name.removesuffix(" (known)") for name in names} == set(model.schema.tests)
    assert "age (known)" in names
    shares = [found.bought[name.removesuffix(" (known)")] for name in names]
    assert shares == sorted(shares, reverse=True)
    assert np.asarray(axes.collections[0].get_array()).ravel().tolist() == shares
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
        plots.bought(family, by="truth")
    forgotten = replace(family.model_, facts={k: v for k, v in family.model_.facts.items() if k != "usage"})
    for draw in (plots.bought, plots.paths):
        with pytest.raises(InputError, match="not recorded"):
            draw(forgotten)
