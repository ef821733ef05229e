"""Every figure says how sure it is and of how many cases it comes; and as many are measured as can be."""

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.support.commands import ok, run
from tests.support.models import made
from tests.support.patients import patients

import askwise
from askwise import Budget, FamilyConfig, HardBudget
from askwise.core.episode import measure, rollout, tally
from askwise.core.measures import Mean, Measure
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import StateError
from askwise.evaluation import Report
from askwise.family import run as family
from askwise.family.config import MeasuringConfig
from askwise.family.frontier import FinalMeasurement
from askwise.family.start import halves
from askwise.methods import family as method
from askwise.model import archives, file
from askwise.reports.model_report import describe

TINY = FamilyConfig(max_steps=40, width=16, bins=4, prefix_batch=32, parallel_cases=16, max_tests=4, interim_measurements=1)
IN_PARTS = MeasuringConfig(first_rows=100, part_rows=150)


def problem(rows=300, seed=0, weight=None) -> Problem:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 4)).astype(np.float32)
    y = np.where(X[:, 0] + 0.3 * X[:, 1] + 0.5 * rng.normal(size=rows) > 0, "yes", "no")
    schema = Schema.build(["near", "far", "x", "z"], ["no", "yes"], {"near": 2, "far": 1, "x": 1, "z": 1})
    return Problem.build(schema, X, y, weight=weight)


# ------------------------------------------------------------------ means and errors


@pytest.mark.parametrize("weighted", [False, True])
def test_means_of_parts_are_those_of_the_whole(weighted):
    rng = np.random.default_rng(0)
    x, w = rng.normal(5, 2, 1000), rng.uniform(0, 3, 1000) if weighted else None
    parts = [Mean.of(x[i : i + 170], None if w is None else w[i : i + 170]) for i in range(0, 1000, 170)]
    joined = parts[0]
    for part in parts[1:]:
        joined = joined + part
    whole = Mean.of(x, w)
    assert (joined.value, joined.error) == pytest.approx((whole.value, whole.error))
    each = np.ones(1000) if w is None else w
    assert whole.value == pytest.approx((each * x).sum() / each.sum())
    assert whole.error == pytest.approx(np.sqrt((each**2 * (x - whole.value) ** 2).sum()) / each.sum())


def test_the_error_of_weighted_rows_is_how_much_their_mean_varies():
    rng = np.random.default_rng(0)
    means, errors = [], []
    for _ in range(400):
        w = rng.choice([1.0, 10.0], 200)
        found = Mean.of((rng.random(200) < np.where(w > 1, 0.9, 0.5)).astype(float), w)
        means.append(found.value)
        errors.append(found.error)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.1)


def test_what_never_varies_has_no_error():
    assert Mean.of(np.full(7, 3)).error == Mean.of(np.full(7, 3), np.arange(7.0)).error == 0
    assert (Mean.of(np.full(7, 3)) + Mean.of(np.full(5, 3))).error == 0


def test_a_report_has_the_errors_of_its_figures(free, others):
    model = free.model_
    report = Report(model.problem(*others), model.rollout(model.problem(*others)))
    found = report.measure
    right = report.episodes.decision == report.truth
    assert (found.cost, found.loss, found.accuracy, found.n) == pytest.approx((report.cost, report.loss, report.accuracy, 90))
    assert found.accuracy_error == pytest.approx(right.std() / 90**0.5)
    assert found.cost_error == pytest.approx(report.cost_per_case.std() / 90**0.5)
    by_class = [right[report.truth == k] for k in np.unique(report.truth)]
    assert report.balanced_accuracy_error == pytest.approx(
        np.sqrt(sum(r.std() ** 2 / len(r) for r in by_class)) / len(by_class)
    )  # fmt: skip


# ------------------------------------------------------------------ on how many rows


@pytest.fixture(scope="module")
def whole():
    """Measured in several parts."""
    return family.run(problem(), problem(1000, 1), HardBudget(3), TINY, measuring=IN_PARTS)


def test_without_a_time_limit_all_rows_kept_apart_are_measured(whole):
    unseen = halves(problem(1000, 1))[1]
    assert {p.measure.n for p in whole.points} == {len(unseen)} == {500}
    for p in whole.points:
        alone = tally(unseen, rollout(unseen, whole.policy(p), p.cap)).measure(unseen.schema.costs)
        assert (p.loss, p.accuracy, p.measure.loss_error) == pytest.approx((alone.loss, alone.accuracy, alone.loss_error))
        if p.cap is not None or p.prefix is not None:
            assert (p.cost, p.measure.cost_error) == pytest.approx((alone.cost, alone.cost_error))


def test_a_run_that_goes_on_measures_the_same(whole):
    states = []
    again = family.run(problem(), problem(1000, 1), HardBudget(3), TINY, save=states.append)
    rest = family.run(problem(), problem(1000, 1), HardBudget(3), TINY, resume=states[0])
    shown = [[(p.prefix, p.cap, p.shown) for p in run.points] for run in (again, rest)]
    assert shown[0] == shown[1]


@pytest.mark.parametrize(("seconds", "rows"), [([0.0], 100), ([1e6], 500), ([1e6, 1e6, 0.0], 400)])
def test_the_rows_are_as_many_as_the_time_allows(whole, seconds, rows):
    held_out, unseen = halves(problem(1000, 1))
    last = FinalMeasurement(whole.shared, TINY.max_tests, problem(), held_out, unseen, 0, None, IN_PARTS)
    last.begin(100, 500)
    left = iter([*seconds, *[seconds[-1]] * 9])
    assert {p.measure.n for p in last.finish(lambda: next(left)).kept} == {rows}


def test_a_fit_with_a_time_limit_measures_all_its_points_on_the_same_rows_and_ends():
    run = family.run(problem(), problem(6_000, 1), Budget(), TINY, time_limit=1.5)
    assert run.seconds < 15  # on a machine that has other things to do
    assert {p.measure.n for p in run.points} == {run.points[0].measure.n}
    assert run.points[0].measure.n >= MeasuringConfig().fewest_rows


def test_more_money_helps_nobody_under_its_hard_budget_only():
    model = made("family")
    assert "nothing dearer was better than " in describe(model)
    assert "per case while no case may cost more than 1.9 €: accuracy" in describe(model.at(HardBudget("1.9")))


@pytest.mark.parametrize(
    "damage",
    [{"cap": 2**70}, {"cap": -1}, {"cap": 1.5}, {"n": "many"}, {"n": True}, {"n": None}, {"prefix": 99}, {"loss_error": None}],
)
def test_a_file_whose_points_are_not_counted_in_whole_numbers_is_refused(tmp_path, damage):
    path = tmp_path / "m.askwise"
    made("family").save(path)
    arrays, card = archives.read(path, file.MODEL)
    card["points"][-1] |= damage
    archives.write(path, file.MODEL, arrays, card)
    with pytest.raises(StateError, match="damaged"):
        askwise.load(path)


def test_a_measure_needs_all_its_figures():
    figures = Measure(1.0, 0.2, 0.8, 10, 0.0, 0.1, 0.05).to_dict()
    assert Measure.from_dict({**figures, "lam": 3.0}) == Measure(1.0, 0.2, 0.8, 10, 0.0, 0.1, 0.05)
    for name in figures:
        with pytest.raises(KeyError, match=name):
            Measure.from_dict({other: value for other, value in figures.items() if other != name})


# ------------------------------------------------------------------ where people read


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fitted")
    X, y = patients(160, seed=0)
    X.assign(diagnosis=y).to_csv(folder / "cases.csv", index=False)
    given = ["--target", "diagnosis", "--time-limit", "0", "--quiet", "--out", folder / "m.askwise"]
    code, said, _ = run("fit", folder / "cases.csv", *given)
    assert code == 0
    return folder, said


def test_the_command_line_says_how_many_cases_and_how_sure(fitted):
    folder, said = fitted
    model = askwise.load(folder / "m.askwise")
    found = model.measured
    assert found.n == 160  # all of them
    words = f"{100 * found.accuracy:.1f} ± {100 * found.accuracy_error:.1f} %"
    assert f"is right in {words} of cases" in said
    assert f", accuracy {words}\n" in said  # the same figure wherever it is told
    assert ". Measured on 160 cases, each held out in turn." in said
    rows = [line for line in said.splitlines() if line.count("±") == 3 and "  160  " in line]
    assert len(rows) == len(model.frontier)
    results = next(line for line in said.splitlines() if line.startswith("on 160 cases, each held out in turn"))
    assert results.count(" ± ") == 6
    told = ok("evaluate", folder / "m.askwise", folder / "cases.csv", "--target", "diagnosis")
    assert "cases                160" in told
    assert told.count(" ± ") == 7
    machine = json.loads(ok("evaluate", folder / "m.askwise", folder / "cases.csv", "--target", "diagnosis", "--json"))
    names = ("cost", "loss", "accuracy", "balanced_accuracy")
    assert all(machine[f"{name}_error"] >= 0 for name in names)
    for point in json.loads(ok("frontier", folder / "m.askwise", "--json")):
        assert point["n"] == 160
        assert {"cost_error", "loss_error", "accuracy_error"} <= set(point)


def test_the_report_and_its_picture_say_so_too(fitted):
    folder, _ = fitted
    page = (folder / "m.html").read_text()
    assert "on 160 cases, each held out in turn" in page
    assert "160 cases" in page[page.index("<svg") :]  # in the picture
    assert page.count("±") > 8


def test_errors_of_the_policies_of_a_method_are_used_to_choose():
    rows = problem(200)
    found = measure(rows, method.fit(rows, problem(200, 1), HardBudget(2), seconds=0, steps=20), 2)
    assert found.n == 200
    assert replace(found, n=150).mixed(found, 0.5).n == 150
