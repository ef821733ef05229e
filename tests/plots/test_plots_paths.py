"""The paths of cases as a picture: boxes, bands, words."""

from collections import Counter

import numpy as np
import pytest
from tests.support.drawn import boxes, random_report, report_of, small_report, words

from askwise import plots
from askwise.core.budget import Budget
from askwise.core.policy import Always
from askwise.core.schema import Schema
from askwise.errors import InputError
from askwise.evaluation import evaluate

pytest.importorskip("matplotlib")


@pytest.fixture
def small():
    return small_report()


def bands(figure):
    """Thickness of every band, and that it is the same at both of its ends."""
    from matplotlib.patches import PathPatch

    found = []
    for band in (p for p in figure.axes[0].patches if isinstance(p, PathPatch)):
        at = band.get_path().vertices
        ends = [np.ptp(at[at[:, 0] == x, 1]) for x in (at[:, 0].min(), at[:, 0].max())]
        assert ends[0] == pytest.approx(ends[1])
        found.append(ends[0])
    return np.array(found)


def column(figure, head):
    """The words under a head of the table, from top to bottom."""
    texts = figure.axes[0].texts
    x, top = next(t.get_position() for t in texts if t.get_text() == head)
    under = [(t.get_position()[1], t.get_text()) for t in texts if t.get_position()[0] == x and t.get_position()[1] > top]
    return [text for _, text in sorted(under)]


def test_paths_by_hand(small):
    figure = plots.paths(small, unit="$")
    heads = ["start", "test 1", "test 2", "test 3", "decision", "cases", "share", "cost ($)", "right"]
    assert [t.get_text() for t in figure.axes[0].texts if t.get_position()[1] < 0.3] == heads
    # b, then no; b, a, then yes; a, b, c, then yes; no at once: the larger branch is always above
    assert column(figure, "cases") == ["3", "1", "1", "1"]
    assert column(figure, "share") == ["50.0%", "16.7%", "16.7%", "16.7%"]
    assert sorted(column(figure, "cost ($)")) == ["0.00", "2.50", "3.50", "7.50"]
    assert column(figure, "right") == ["67%", "100%", "100%", "100%"]
    high = boxes(figure)
    assert set(high) == {"6 cases", "b (4)", "a (1)", "b (1)", "c (1)", "no", "yes"}
    assert len(high["no"]) == 2
    assert high["b (4)"][0] / high["6 cases"][0] == pytest.approx(4 / 6)
    thick = np.sort(bands(figure))  # 4 tests after the start and each other, 4 decisions
    np.testing.assert_allclose(thick / high["6 cases"][0] * 6, [1, 1, 1, 1, 1, 1, 1, 3, 4])
    assert "all paths" in words(figure)


def test_rare_paths_are_summed_up(small):
    figure = plots.paths(small, most=1)
    assert "other paths (3 cases)" in words(figure)
    assert "1 of 4 different paths" in words(figure)
    assert column(figure, "cases") == ["3", "3"]
    assert column(figure, "right") == ["67%", "100%"]
    assert set(boxes(figure)) == {"6 cases", "b (4)", "no"}  # one of those who buy b goes on unseen, but it came there
    np.testing.assert_allclose(np.sort(bands(figure)) / boxes(figure)["6 cases"][0] * 6, [3, 4])


def test_paths_like_a_loop_over_cases():
    from askwise.plots.tree import FURTHER, NOTHING, common

    report = random_report(n=500, tests=4)
    found = common(report, 2)
    naive, paid = Counter(), Counter()
    for i in range(500):
        tests = [report.problem.schema.tests.index(t) for t in report.tests_of(i)]
        padded = [*tests[:2], *[NOTHING] * (2 - len(tests)), FURTHER if len(tests) > 2 else NOTHING]
        naive[*padded, int(report.episodes.decision[i])] += 1
        paid[*padded, int(report.episodes.decision[i])] += report.cost_per_case[i]
    keys = [(*tests, last) for tests, last in zip(found.tests.tolist(), found.last.tolist(), strict=True)]
    assert dict(zip(keys, found.cases.tolist(), strict=True)) == naive
    assert sorted(found.cases, reverse=True) == found.cases.tolist()
    np.testing.assert_allclose(found.cost, [paid[k] / naive[k] for k in keys])


def test_long_paths_are_cut():
    schema = Schema.build([f"t{i}" for i in range(9)], ["no", "yes"])
    report = report_of(schema, [(schema.tests, 1), (schema.tests[:8], 1), (schema.tests[:6], 1)], ["yes", "yes", "no"])
    figure = plots.paths(report)
    assert {"t5 (3)", "… (2)", "more"} <= set(words(figure))
    assert "t6 (2)" not in words(figure)
    assert column(figure, "cases") == ["2", "1"]
    assert column(figure, "cost") == ["8.50", "6.00"]
    assert "all paths; 2 cases bought more than 6 tests (…)" in words(figure)
    assert "… (3)" in words(plots.paths(report, steps=1))


def test_paths_of_cases_that_buy_nothing(small):
    figure = plots.paths(evaluate(Always(1), small.problem, Budget()))
    assert set(boxes(figure)) == {"6 cases", "yes"}
    assert column(figure, "cases") == ["6"]


def test_paths_end_in_the_existing_classifier_and_know_what_is_known():
    schema = Schema.build(["a", "b"], ["no", "yes"], external_needs=["a"])
    figure = plots.paths(report_of(schema, [(["b"], 2), ([], 1)], external=["no", "no"], known=["a"]))
    assert {"existing classifier", "yes", "all paths; 1 test known from the start"} <= set(words(figure))
    assert "right" not in words(figure)  # there are no labels


def test_long_names_and_dollars_fit_and_stay_what_they_are():
    long = "a very long name of a laboratory test that nobody would call by it, number "
    schema = Schema.build([long + "1", long + "2", "$ and $"], ["the one\nclass " * 5, "$x$"])
    report = report_of(schema, [([long + "1", long + "2", "$ and $"], 1)] * 3, ["$x$"] * 3)
    figure = plots.paths(report)
    found = words(figure)
    assert {"$x$", "$ and $ (3)"} <= set(found)
    assert max(map(len, found)) < 40
    page = figure.get_window_extent()
    for text in figure.axes[0].texts:
        where = text.get_window_extent()
        assert page.x0 <= where.x0 < where.x1 <= page.x1
        assert page.y0 <= where.y0 < where.y1 <= page.y1
    assert {"$ and $", "a very long name of…, number 1"} <= set(words(plots.bought(report)))


def test_no_two_words_of_a_path_diagram_overlap():
    figure = plots.paths(random_report(n=400, tests=3), most=20)
    figure.draw_without_rendering()
    spans = [t.get_window_extent() for t in figure.axes[0].texts]
    for i, one in enumerate(spans):
        assert not any(min(one.x1, o.x1) - max(one.x0, o.x0) > 1 and min(one.y1, o.y1) - max(one.y0, o.y0) > 1 for o in spans[:i])


def test_a_diagram_needs_a_path():
    with pytest.raises(InputError, match="0 paths of 6 steps"):
        plots.paths(random_report(n=5), most=0)
