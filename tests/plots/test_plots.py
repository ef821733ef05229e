"""Pictures, looked at through what they are made of: points, cells, boxes, words."""

import os
import subprocess
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from tests.support.drawn import boxes, random_report, report_of, small_report, words

from askwise import plots
from askwise.core.budget import AverageBudget, Budget, HardBudget
from askwise.core.cost_spec import CostSpec
from askwise.core.policy import Always
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import AskwiseError, InputError
from askwise.evaluation import evaluate
from askwise.frontier.metric import curve

pytest.importorskip("matplotlib")


@pytest.fixture
def small():
    return small_report()


def lines(axes):
    return {line.get_label(): line for line in axes.lines}


# what money buys


def draw_frontier(**more):
    validation, test = ([5, 1, 3, 4], [0.9, 0.6, 0.8, 0.7]), ([5.5, 1.5, 3.5, 4.5], [0.91, 0.61, 0.81, 0.71])
    chosen = curve(validation, test, (0.5, 0.5), 10).chosen
    return plots.frontier(validation, test, chosen, **({"prior": 0.5, "everything": (10, 0.95), "unit": "dollars"} | more))


def test_the_frontier_joins_the_chosen_points_by_their_cost_on_test_cases():
    axes = draw_frontier().axes[0]
    joined = lines(axes)["chosen on validation, test cases"]
    assert joined.get_xydata().tolist() == [[3.5, 0.81], [5.5, 0.91]]  # 1 lies below the line from the prior, 4 below 3
    ends = lines(axes)["_ends"]
    assert ends.get_xydata().tolist() == [[0, 0.5], [3.5, 0.81], [5.5, 0.91], [10, 0.91]]
    of = {c.get_label(): c.get_offsets().tolist() for c in axes.collections}
    assert of["all snapshots, validation cases"] == [[5, 0.9], [1, 0.6], [3, 0.8], [4, 0.7]]
    assert of["all snapshots, test cases"] == [[5.5, 0.91], [1.5, 0.61], [3.5, 0.81], [4.5, 0.71]]


def test_the_frontier_draws_what_the_metric_measures():
    rng = np.random.default_rng(0)
    cost, score = rng.uniform(1, 8, 30), rng.uniform(0.5, 0.9, 30)
    test = cost + rng.normal(0, 0.3, 30), score + rng.normal(0, 0.02, 30)
    found = curve((cost, score), test, (0.5, 0.5), 10)
    figure = plots.frontier((cost, score), test, found.chosen, prior=0.5, everything=(10, None))
    x, y = lines(figure.axes[0])["_ends"].get_data()
    assert np.trapezoid(y, x) / 10 == pytest.approx(found.area)


def test_the_frontier_shows_its_references_and_the_budget():
    figure = draw_frontier(budget=AverageBudget(4), best=(3.9, 0.83), score="balanced accuracy")
    axes = figure.axes[0]
    drawn = lines(axes)
    assert drawn["deciding at once: 0.500"].get_ydata() == [0.5, 0.5]
    assert drawn["all tests: 0.950 for 10 dollars"].get_xydata().tolist() == [[10, 0.95]]
    star = drawn["AverageBudget(4): 0.830 for 3.9 dollars"]
    assert star.get_marker() == "*"
    assert star.get_xydata().tolist() == [[3.9, 0.83]]
    assert list(drawn["_budget"].get_xdata()) == [4, 4]
    assert axes.get_xlabel() == "mean cost per case (dollars)"
    assert axes.get_ylabel() == "balanced accuracy"
    assert axes.get_xlim()[1] > 10
    assert "AverageBudget(4): 0.830 for 3.9 dollars" in words(figure)  # in the legend


def test_a_total_far_away_does_not_squeeze_the_curve():
    figure = draw_frontier(everything=(784, 0.95))
    axes = figure.axes[0]
    assert axes.get_xlim()[1] < 10
    assert "all tests: 0.950 for 784 dollars, right of the picture" in words(figure)
    assert list(lines(axes)["_all tests"].get_ydata()) == [0.95, 0.95]


def test_the_upper_end_is_enlarged_where_a_little_money_buys_most():
    points = [0, 1, 3, 6, 10], [0.5, 0.9, 0.92, 0.94, 0.95]
    given = {"chosen": range(5), "prior": 0.5, "everything": (10, 0.95)}
    figure = plots.frontier(points, **given)
    (room,) = figure.axes[0].child_axes
    assert lines(room)["the best of all policies"].get_xydata().tolist() == [list(pair) for pair in zip(*points, strict=True)]
    assert room.get_ylim()[0] > 0.8
    assert len([text for text in words(figure) if text.startswith("all tests")]) == 1  # in the legend
    hidden = {"same tests for everybody": ([7.0], [0.6])}  # where the enlarged part would be
    for more in ({"others": hidden}, {"points_validation": ([0, 2, 5, 8, 10], [0.5, 0.6, 0.7, 0.8, 0.95])}):
        assert not plots.frontier(**({"points_validation": points} | given | more)).axes[0].child_axes


def test_without_a_score_all_tests_are_a_line_at_their_cost():
    assert list(lines(draw_frontier(everything=(10, None)).axes[0])["all tests cost 10 dollars"].get_xdata()) == [10, 10]


def test_snapshots_far_below_are_counted_and_not_drawn_to_scale():
    points = [1, 2, 3], [0.8, 0.9, 0.1]
    figure = plots.frontier(points, points, [0, 1], prior=0.7, everything=(5, 0.95))
    assert "all snapshots, test cases (1 lie below)" in words(figure)
    assert figure.axes[0].get_ylim()[0] > 0.5


def test_a_frontier_without_any_point_still_has_its_references():
    figure = plots.frontier(([], []), ([], []), [], prior=0.5, everything=(10, 0.9), budget=HardBudget(3))
    assert {"deciding at once: 0.500", "all tests: 0.900 for 10"} <= set(words(figure))


def test_points_of_different_snapshots_are_refused():
    with pytest.raises(InputError, match="2 points on validation and 1 on test"):
        plots.frontier(([1, 2], [0, 1]), ([1], [0]), [0], prior=0.5, everything=(10, 0.9))


# how training went


def record(step, lam=0.0, cost=0.0, accuracy=0.5):
    train, validation = (SimpleNamespace(cost=cost + d, loss=1 - accuracy, accuracy=accuracy + d / 100) for d in (0, 1))
    return SimpleNamespace(step=step, lam=lam, train=train, validation=validation)


def test_progress_has_lambda_cost_and_score_over_steps():
    records = [record(0), record(100, 0.1, 9, 0.6), record(200, 0.2, 7, 0.7)]
    figure = plots.progress(records, AverageBudget(8) & HardBudget(20), unit="dollars", chosen=[0, 2])
    price, cost, quality = figure.axes
    assert price.lines[0].get_xydata().tolist() == [[100, 0.1], [200, 0.2]]
    assert lines(cost)["training cases"].get_xydata().tolist() == [[100, 9], [200, 7]]
    assert lines(cost)["validation cases"].get_xydata().tolist() == [[100, 10], [200, 8]]
    target = lines(cost)["average budget 8"]
    assert (list(target.get_ydata()), target.get_linestyle()) == ([8, 8], "--")
    assert lines(quality)["validation cases"].get_xydata().tolist() == [[100, 0.61], [200, 0.71]]
    assert list(lines(quality)["deciding at once"].get_ydata()) == [0.51, 0.51]
    assert lines(quality)["chosen"].get_xydata().tolist() == [[200, 0.71]]  # record 0 is a line already
    assert (cost.get_ylabel(), quality.get_ylabel(), quality.get_xlabel()) == (
        "mean cost (dollars)",
        "accuracy",
        "gradient steps",
    )


def test_progress_can_show_losses_and_a_hard_budget():
    figure = plots.progress([record(100, 0, 9, 0.6)], HardBudget("2.5"), score="loss")
    assert lines(figure.axes[2])["validation cases"].get_ydata().tolist() == [0.4]
    assert "hard budget 2.5" in words(figure)


def test_the_progress_of_a_family_is_its_area():
    figure = plots.areas([(10, 0.8), (20, 0.9)])
    (line,) = figure.axes[0].lines
    assert line.get_xydata().tolist() == [[10, 0.8], [20, 0.9]]
    assert "area" in figure.axes[0].get_ylabel()


def test_progress_before_anything_was_learned(tmp_path):
    for records in ([], [record(0)]):
        plots.save(plots.progress(records, Budget()), tmp_path / "p.svg")


# which tests are bought, and when


def cells(axes):
    return np.ma.filled(axes.collections[0].get_array(), np.nan)


def names(axis):
    return [t.get_text() for t in axis.get_ticklabels()]


def test_bought_by_hand(small):
    figure = plots.bought(small)
    often, when = figure.axes
    assert names(often.yaxis) == ["b", "a", "c", "d"]  # 5, 2, 1 and 0 of 6 cases
    assert names(often.xaxis) == ["no\nn = 3", "yes\nn = 3"]
    np.testing.assert_allclose(cells(often), [[2 / 3, 1], [0, 2 / 3], [0, 1 / 3], [0, 0]])
    np.testing.assert_allclose(cells(when), [[1, 4 / 3], [np.nan, 1.5], [np.nan, 3], [np.nan, np.nan]])
    assert [t.get_text() for t in often.texts] == ["67", "100", "·", "67", "·", "33", "·", "·"]
    assert [t.get_text() for t in when.texts] == ["1.0", "1.3", "1.5", "3.0"]
    assert often.get_ylim()[0] > often.get_ylim()[1]  # the first test on top


def test_bought_by_decision(small):
    often, _ = plots.bought(small, by="decision").axes
    assert names(often.xaxis) == ["no\nn = 4", "yes\nn = 2"]
    np.testing.assert_allclose(cells(often)[0], [3 / 4, 1])
    assert often.get_xlabel() == "decision"


def test_bought_without_labels_goes_by_decision():
    schema = Schema.build(["a", "b"], ["no", "yes"])
    often, _ = plots.bought(report_of(schema, [(["b"], 1), ([], 1)])).axes
    assert names(often.xaxis) == ["yes\nn = 2"]  # one class only
    assert cells(often).tolist() == [[0.5], [0]]


def test_bought_like_a_loop_over_cases():
    report = random_report(known=["t3"])
    often, when = plots.bought(report).axes
    row = {name.split(" ")[0]: i for i, name in enumerate(names(often.yaxis))}
    for k in range(3):
        mine = [report.tests_of(i) for i in np.flatnonzero(report.truth == k)]
        for t in report.problem.schema.tests:
            where = [tests.index(t) + 1 for tests in mine if t in tests]
            assert cells(often)[row[t], k] == pytest.approx(len(where) / len(mine))
            assert cells(when)[row[t], k] == pytest.approx(np.mean(where) if where else np.nan, nan_ok=True)
    assert [report.bought[name.split(" ")[0]] for name in names(often.yaxis)] == sorted(report.bought.values(), reverse=True)


def test_known_and_free_tests_say_so():
    schema = Schema.build(["a", "b", "c"], ["no", "yes"], [1, 1, 0])
    known = [[True, True, False], [True, False, False]]
    often, _ = plots.bought(report_of(schema, [(["c"], 0), (["b"], 1)], ["no", "yes"], known=known)).axes
    assert names(often.yaxis) == ["b (known for 50 %)", "c (free)", "a (known)"]
    assert cells(often).tolist() == [[0, 1], [1, 0], [0, 0]]  # what is known is not bought


def test_what_the_existing_classifier_needs_is_bought_when_it_is_asked():
    schema = Schema.build(["a", "b", "c"], ["no", "yes"], external_needs=["a", "b"])
    report = report_of(schema, [(["c", "a"], 2), ([], 2)], ["no", "no"], external=["no", "yes"], known=["c"])
    often, when = plots.bought(report).axes
    assert names(often.yaxis) == ["a", "b", "c (known)"]
    assert cells(often).tolist() == [[1], [1], [0]]
    assert cells(when)[:2].tolist() == [[1], [1.5]]  # b is bought second by the first case, first by the second


def test_at_most_forty_tests_are_shown_and_the_others_counted():
    schema = Schema.build([f"pixel {i}" for i in range(784)], [0, 1])
    plans = [([f"pixel {i}" for i in range(50) if i < 30 or case == 0], case % 2) for case in range(4)]
    figure = plots.bought(report_of(schema, plans, [0, 1, 0, 1]))
    assert cells(figure.axes[0]).shape == (40, 2)
    assert "744 more tests not shown, each bought for at most 25 % of cases" in words(figure)
    few = plots.bought(report_of(schema, [(["pixel 5"], 0)], [0]), most=1)
    assert "783 more tests not shown, never bought" in words(few)


def test_a_heat_map_needs_a_test(small):
    with pytest.raises(InputError, match="0 tests cannot be drawn"):
        plots.bought(small, most=0)


def test_one_test_and_one_case(tmp_path):
    report = report_of(Schema.build(["only"], ["no", "yes"]), [(["only"], 1)], ["yes"])
    figure = plots.bought(report)
    assert [cells(axes).tolist() for axes in figure.axes] == [[[1]], [[1]]]
    plots.save(figure, tmp_path / "one.svg")
    assert set(boxes(plots.paths(report))) == {"1 case", "only (1)", "yes"}
    assert plots.pixels(report, (1, 1)).axes[0].images[0].get_array().tolist() == [[1]]


def test_nothing_bought_is_said(small):
    figure = plots.bought(evaluate(Always(1), small.problem, Budget()))
    assert "nothing was bought for any of 6 cases" in words(figure)
    assert not cells(figure.axes[0]).any()
    assert np.isnan(cells(figure.axes[1])).all()


def test_many_classes_get_a_colour_scale_and_fewer_labels():
    classes = [f"class {i}" for i in range(60)]
    schema = Schema.build(["a"], classes)
    figure = plots.bought(report_of(schema, [(["a"], i) for i in range(60)], classes))
    assert cells(figure.axes[0]).shape == (1, 60)
    assert not figure.axes[0].texts
    assert names(figure.axes[0].xaxis)[:2] == ["class 0 (n = 1)", "class 2 (n = 1)"]


def test_almost_never_is_not_never():
    schema = Schema.build(["a"], ["no", "yes"])
    report = report_of(schema, [(["a"] if i else [], 0) for i in range(300)], ["no"] * 300)
    assert plots.bought(report).axes[0].texts[0].get_text() == ">99"


# pixels


def test_pixels_by_hand():
    schema = Schema.build(["a", "b", "c", "d", "e", "f"], ["no", "yes"], CostSpec(reveals={"pair": ["e", "f"]}))
    report = report_of(schema, [(["b", "pair"], 0), (["pair"], 1)], ["no", "no"])
    figure = plots.pixels(report, (2, 3), example=0)
    often, when, case = (axes.images[-1].get_array() for axes in figure.axes[:3])
    np.testing.assert_allclose(often.filled(0), [[0, 0.5, 0], [0, 1, 1]])
    np.testing.assert_allclose(when.filled(0), [[0, 1, 0], [0, 1.5, 1.5]])
    np.testing.assert_allclose(case.filled(0), [[0, 1, 0], [0, 2, 2]])
    assert [t.get_text() for t in figure.axes[2].texts] == ["1", "2", "2"]
    assert figure.axes[2].get_title() == "case 0, 2 tests bought: no (right)"
    assert "2 cases; 3 pixels of 6 never bought (grey)" in words(figure)
    assert plots.pixels(report, (2, 3), example=1).axes[2].get_title() == "case 1, 1 test bought: yes (wrong: no)"


def test_pixels_of_large_pictures_and_of_nothing(tmp_path):
    schema = Schema.build([f"p{i}" for i in range(784)], range(10))
    problem = Problem.build(schema, np.zeros((5, 784)), range(5))
    figure = plots.pixels(evaluate(Always(0), problem, Budget()), (28, 28), example=0)
    assert figure.axes[0].images[0].get_array().shape == (28, 28)
    assert "5 cases; 784 pixels of 784 never bought (grey)" in words(figure)
    plots.save(figure, tmp_path / "nothing.png")


def test_pixels_need_a_shape_that_fits(small):
    with pytest.raises(InputError, match=r"\(3, 3\), but there are 4 columns"):
        plots.pixels(small, (3, 3))
    with pytest.raises(InputError, match="no case 6; the report has cases 0 to 5"):
        plots.pixels(small, (2, 2), example=6)


# files


ALL = """
import numpy as np
from types import SimpleNamespace as NS
from askwise import plots
from askwise.core.budget import AverageBudget, Budget
from askwise.core.policy import random_policy
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.evaluation import evaluate
rng = np.random.default_rng(0)
problem = Problem.build(Schema.build(list("abcdef"), ["x", "y"]), rng.normal(size=(50, 6)), rng.choice(["x", "y"], 50))
report = evaluate(random_policy(rng), problem, Budget())
m = NS(cost=1.0, loss=0.5, accuracy=0.5)
figures = {
    "frontier": plots.frontier(([1, 2], [0.5, 0.6]), ([1, 2], [0.5, 0.6]), [0, 1], prior=0.5, everything=(6, 0.9), best=(1, 0.5)),
    "progress": plots.progress([NS(step=s, lam=0.1, train=m, validation=m) for s in (0, 1, 2)], AverageBudget(2)),
    "bought": plots.bought(report), "paths": plots.paths(report, 3), "pixels": plots.pixels(report, (2, 3), example=0),
}
"""


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_the_same_picture_is_the_same_file(tmp_path, ending):
    program = f"{ALL}\nimport sys\nfor name, figure in figures.items(): plots.save(figure, f'{{sys.argv[1]}}/{{name}}.{ending}')"
    program += "\nassert 'matplotlib.pyplot' not in sys.modules"
    for seed in "12":  # another process, with another order of hashes
        (tmp_path / seed).mkdir()
        run = [sys.executable, "-W", "error", "-c", program, str(tmp_path / seed)]
        subprocess.run(run, check=True, env=os.environ | {"PYTHONHASHSEED": seed})
    for name in ("frontier", "progress", "bought", "paths", "pixels"):
        one, other = ((tmp_path / seed / f"{name}.{ending}").read_bytes() for seed in "12")
        assert one == other, name
        assert one.startswith(b"\x89PNG" if ending == "png" else b"<?xml")


@pytest.mark.parametrize("ending", ["png", "svg"])
def test_saving_twice_gives_the_same_bytes_and_leaves_nothing_behind(tmp_path, small, ending):
    import matplotlib

    before = dict(matplotlib.rcParams)
    for draw in (plots.bought, plots.paths):
        figure, path = draw(small), tmp_path / f"picture.{ending}"
        assert plots.save(figure, str(path)) == path
        once = path.read_bytes()
        plots.save(figure, path)
        assert path.read_bytes() == once
        assert [p.name for p in tmp_path.iterdir()] == [path.name]
    assert dict(matplotlib.rcParams) == before


def test_a_failed_save_keeps_the_old_file(tmp_path, small, monkeypatch):
    path = tmp_path / "picture.png"
    path.write_bytes(b"old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        plots.save(plots.paths(small), path)
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == {"picture.png": b"old"}


def test_an_unknown_ending_is_refused(tmp_path, small):
    with pytest.raises(InputError, match=r"'picture.jpg' has no ending for a picture; .* \.png or \.svg"):
        plots.save(plots.paths(small), tmp_path / "picture.jpg")


def test_importing_it_does_not_import_matplotlib():
    program = "import sys, askwise.plots; sys.exit(any(m in sys.modules for m in ('matplotlib', 'torch')))"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_without_matplotlib_there_is_a_sentence(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(AskwiseError, match=r"need matplotlib.* pip install 'askwise\[plot\]'"):
        plots.pixels(small, (2, 2))
