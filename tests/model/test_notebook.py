"""What a person sees of a model, a classifier or a problem at a prompt and in a notebook."""

import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import sklearn
from tests.support.models import family, made
from tests.support.patients import classifier

import askwise
from askwise import AverageBudget, CostlyClassifier
from askwise.evaluation import Report

BAD = "<script>alert('$1$')</script>\n\x1b[2J"


def test_a_model_is_one_line(average, others, tmp_path):
    average.save(tmp_path / "m.askwise")
    model = askwise.load(tmp_path / "m.askwise")
    expected = model.expected
    assert repr(model) == (
        f"Model(6 tests, 2.9 for all; classes ill, well; at {model.budget} cost {expected['cost']:.4g}, "
        f"accuracy {expected['accuracy']:.4f})"
    )
    problem = model.problem(*others)
    assert repr(problem) == "Problem(90 rows, Schema(10 columns, 6 tests, 2 classes))"
    report = Report(problem, model.rollout(problem))
    assert repr(report) == f"Report(90 cases, mean cost {report.cost:.4g})"
    acquired = model.acquire(others[0])
    assert repr(acquired) == f"AcquisitionReport(90 cases, mean cost {acquired.cost.mean():.4g})"


@pytest.mark.parametrize("name", ["family", "a hard budget", "losses", "paper", "several columns"])
def test_however_a_model_was_made_it_is_one_short_line(name):
    model = made(name)
    for shown in (repr(model), *(repr(point) for point in model.points), repr(model.schema)):
        assert "array" not in shown
        assert len(shown) < 200
        assert "\n" not in shown
    assert ("loss" in repr(model)) == (name == "losses")


def strange():
    """A model whose names are hostile, or very many."""
    X = pd.DataFrame({BAD: np.arange(60.0), "x": 1.0 + np.arange(60) % 7})
    return replace(family(X, np.array([f"{BAD}{i}" for i in range(20)])[np.arange(60) % 20]), unit=BAD * 20)


def test_hostile_names_stay_on_one_line():
    shown = repr(strange())
    assert "\n" not in shown
    assert "\x1b" not in shown
    assert len(shown) < 600


def html_of(fitted):
    return fitted._repr_mimebundle_()["text/html"]


def test_a_notebook_draws_the_frontier(average):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    shown = html_of(average)
    assert average._repr_html_() == shown
    assert "<svg" in shown
    assert "mean cost" in shown
    assert f"works at {average.budget}" in shown
    assert shown.count('id="askwise-') > 1  # parts of two outputs of one notebook do not share names
    other = html_of(average.at(AverageBudget("0.2")))
    assert "works at AverageBudget(0.2)" in other
    assert "<svg" in average.model_._repr_html_()
    assert average._repr_mimebundle_()["text/plain"] == repr(average)


def test_before_a_fit_there_is_scikit_learns_box_alone():
    shown = html_of(CostlyClassifier())
    assert "CostlyClassifier" in shown
    assert "askwise-" not in shown
    with sklearn.config_context(display="text"):
        assert "text/html" not in classifier()._repr_mimebundle_()


def test_without_matplotlib_the_numbers_are_there(average, monkeypatch):
    for name in [name for name in sys.modules if name.split(".")[0] == "matplotlib"]:
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    shown = average.model_._repr_html_()
    assert "<svg" not in shown
    assert "mean cost" in shown


def test_names_are_escaped_in_a_notebook():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed")
    shown = strange()._repr_html_()
    assert "<svg" in shown
    assert "<script" not in shown
    assert "&lt;script&gt;" in shown
