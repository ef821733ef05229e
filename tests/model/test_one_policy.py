"""Average budgets without a lottery, and with a confidence, in every way in."""

import json

import numpy as np
import pytest
from tests.support.commands import fill, ok, run
from tests.support.patients import PRICES, classifier, patients

import askwise
from askwise import AverageBudget, HardBudget, load
from askwise.reports.model_report import describe, lottery
from askwise.reports.promises import BROKEN, CHANCE, KEPT, borne_out

pytest.importorskip("pandas", reason="pandas is not installed")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    here = fill(tmp_path_factory.mktemp("one_policy"))
    X, y = patients(240)
    stack = classifier(**PRICES, algorithm="stack", config=askwise.StackConfig.quick(), random_state=0).fit(X, y)
    stack.save(here / "stack.askwise")
    return here


@pytest.fixture(scope="module")
def model(folder):
    return load(folder / "stack.askwise")


def budgets(model):
    return np.linspace(0, 1.2 * model.saturation.cost, 25).round(3).tolist()


def test_without_mixing_nothing_is_drawn_and_more_money_promises_no_less(model):
    X, _ = patients(120, 1)
    expected = []
    for b in budgets(model):
        there = model.at(AverageBudget(b, mixing=False))
        assert there.blend.drawn == 0
        assert lottery(there) == ""
        assert there.expected["cost"] <= b + 1e-9
        expected.append(there.expected["loss"])
        ids = [f"case {i}" for i in range(len(X))]
        others = [f"other {i}" for i in range(len(X))]
        assert there.acquire(X, ids=ids).tests == there.acquire(X, ids=others).tests  # like cases are treated alike
    assert expected == sorted(expected, reverse=True)


def test_a_policy_between_two_is_one_policy_and_is_kept_by_files(model, tmp_path):
    X, _ = patients(120, 1)
    between = [model.at(AverageBudget(b, mixing=False)) for b in budgets(model)]
    single = [there for there in between if there.blend.single]
    assert single, "no budget lies between two policies that are joined"
    for there in single:
        first, second = there.followed
        low, high = there.frontier[there.blend.first], there.frontier[there.blend.second]
        assert first is second
        assert low.cost < first.cost < high.cost
        assert first.cost == pytest.approx(float(there.budget.average))
        assert min(low.lam, high.lam) <= first.lam <= max(low.lam, high.lam)
    there = single[0]
    there.save(tmp_path / "m.askwise")
    again = load(tmp_path / "m.askwise")
    assert again.budget == there.budget
    assert again.acquire(X).tests == there.acquire(X).tests


def test_a_confidence_costs_a_little_and_goes_with_a_hard_budget(model):
    X, _ = patients(120, 1)
    for b in budgets(model)[1:]:
        plain, sure, surer = (model.at(AverageBudget(b, confidence=c)) for c in (None, 0.8, 0.99))
        assert surer.expected["cost"] <= sure.expected["cost"] + 1e-9
        assert sure.expected["cost"] <= max(plain.expected["cost"], b) + 1e-9
        if not surer.blend.share:
            point = surer.followed[0]
            assert point.cost + 2.32 * point.measure.cost_error <= b + 1e-9
    both = model.at(AverageBudget(1, confidence=0.9) & HardBudget(2))
    assert (both.acquire(X).cost <= 2).all()


def test_where_a_policy_is_drawn_it_is_said_with_both_costs_and_the_share(model):
    mixed = next(there for b in budgets(model)[1:] if (there := model.at(AverageBudget(b, mixing=True))).blend.drawn)
    cheap, dear = (f"{point.cost:.4g}" for point in mixed.followed)
    words = lottery(mixed)
    assert words in describe(mixed).splitlines()
    assert all(part in words for part in ("by lot", cheap, dear))
    assert "by lot" not in describe(model)
    assert mixed.session(case_id="a").drawn.startswith(str(mixed.budget))


def test_the_command_line_says_how_an_average_budget_is_met(folder):
    cases = folder / "cases.csv"
    on_cases = ("evaluate", folder / "stack.askwise", cases, "--target", "diagnosis")
    plain = ok(*on_cases, "--average-budget", "1", "--no-mixing", "--confidence", "0.9", "--hard-budget", "2")
    assert "cases cost at most 1 on average, with a probability of 0.9: these cost " in plain
    assert "no case costs more than 2: the dearest costs " in plain
    assert "by lot" not in plain
    promises = json.loads(ok(*on_cases, "--average-budget", "1", "--hard-budget", "2", "--json"))["promises"]
    assert [promise["verdict"] for promise in promises] in (["kept", "kept"], [CHANCE, "kept"])
    assert json.loads(ok(*on_cases, "--json"))["promises"] == []
    ok("predict", folder / "stack.askwise", cases, "--average-budget", "1", "--mixing")
    for more, words in (
        (("--confidence", "0.9"), "--confidence is about an average budget or a target; give --average-budget or --at-least too"),
        (("--no-mixing",), "--no-mixing is about an average budget; give --average-budget too"),
        (("--average-budget", "1", "--confidence", "95"), "confidence is 95.0; it must be a probability from 0.5 to below 1"),
    ):
        code, _, err = run("predict", folder / "stack.askwise", cases, *more)
        assert code != 0
        assert words in err


def test_given_cases_bear_a_promise_out_or_not(model):
    X, y = patients(120, 1)
    cheap = model.at(AverageBudget("0.01", mixing=False) & HardBudget(1))
    dear = model.at(None) if model.expected["cost"] else model.at(AverageBudget(model.saturation.cost))
    report = dear.report(dear.problem(X, y))
    assert report.cost > 0.01
    assert [promise.verdict for promise in borne_out(cheap, report)] == [
        BROKEN,
        KEPT if report.cost_per_case.max() <= 1 else BROKEN,
    ]
    slightly = model.at(AverageBudget(report.cost - report.measure.cost_error, mixing=False))
    assert [promise.verdict for promise in borne_out(slightly, report)] == [CHANCE]
    assert borne_out(model.at(None), report) == []
