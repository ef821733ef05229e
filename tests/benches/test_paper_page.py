"""The page about the paper: the numbers by hand, every verdict within reach, and that it says what the rows say."""

import re
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from tests.support.made_rows import row, write
from tests.support.paper_rows import trained

from askwise.bench.plan import read as read_plan
from askwise.bench.task import Task
from benchmarks.paper import claims, claims_of_training, summary
from benchmarks.paper.evidence import COMPARATORS, UNIT, Evidence, planned
from benchmarks.paper.experiments import MOST_ROWS, differences, key
from benchmarks.paper.intervals import Estimate, Quantity
from benchmarks.paper.pooled import Pool, areas
from benchmarks.paper.verdicts import (
    HERE,
    NOT_REPRODUCED,
    NOT_RUN,
    REPRODUCED,
    YET,
    above,
    below,
    counted,
    judged,
    together,
    within,
)

FOLDER = Path(summary.__file__).parent
PLANNED = planned()
LISTED = [training for _, training in PLANNED]
TOTAL = {"miniboone_tiny": 50.0, "nhanes": 275.0, "forest": 54.0, "mnist": 784.0, "cifar": 400.0}


def usual_cost(task: Task) -> float:
    """Budgets are used as far as they help, up to 0.7 of all tests; a tradeoff buys less the larger it is."""
    ((kind, amount),) = task.budget.items()
    return min(0.7 * TOTAL[task.data], 0.98 * amount if kind != "tradeoff" else 0.05 / (amount + 0.001))


def usual_score(task: Task) -> float:
    """Better the more is spent, worse the more is missing, and the seeds differ a little."""
    lost = task.remove * (0.1 if task.imputation else 0.08)
    return 0.5 + 0.4 * (1 - np.exp(-8 * usual_cost(task) / TOTAL[task.data])) - lost + 0.0002 * task.seed


def world(
    other: Callable[[str, str, int], float | None] = lambda data, label, seed: 0.7,
    *,
    cost: Callable[[Task], float] = usual_cost,
    score: Callable[[Task], float] = usual_score,
    without: Callable[[Task], bool] = lambda task: False,
    more: Callable[[Task], dict] = lambda task: {},
) -> Evidence:
    """Rows of all trainings but some, and frontiers with the area that `other` gives, from 0.5 up to it; None: no row."""
    rl = {
        key(t.task.row, differences(t.task)): trained(
            t.task, cost(t.task), score(t.task), total=TOTAL[t.task.data], **more(t.task)
        )
        for t in LISTED
        if not without(t.task)
    }
    frontiers = [
        row(data, label, seed, area, total=total, resampled=[area - 1e-3, area, area + 1e-3], curve=[[0, total], [0.5, area]],
            n_test=10**6)
        for data, total in TOTAL.items()
        for label in ("baseline", "adapt-gbrt", "budget-prune", "random", "oplearn")
        for seed in range(3 if data in ("miniboone_tiny", "nhanes") else 1)
        if (area := other(data, label, seed)) is not None
    ]  # fmt: skip
    return Evidence(PLANNED, rl, tuple(frontiers))


USUAL, NOTHING = world(), Evidence(PLANNED, {}, ())


def verdict(claim: str, evidence: Evidence) -> str:
    return summary.JUDGES[claim](evidence).verdict


# ---------------------------------------------------------------------- numbers by hand


def tradeoff_rows(*points: tuple[float, float, float], seed: int = 0):
    """Of (cost, score on validation rows, score on test rows)."""
    task = next(t.task for t in LISTED if t.task.data == "miniboone_tiny" and "tradeoff" in t.task.budget and t.task.seed == seed)
    return [
        trained(
            task, c, s, total=10.0, test=[[c, 1 - t, t, t, None]], resampled_scores=[t - 0.1, t, t + 0.1], resampled_costs=[c] * 3
        )
        for c, s, t in points
    ]


def test_the_area_of_single_policies_by_hand() -> None:
    pool = Pool(tuple(tradeoff_rows((5, 0.7, 0.8), (6, 0.1, 0.1))))
    # from (0, 0.5) to (5, 0.8), then 0.8 up to 10, the cost of everything; the second is not chosen
    assert pool.prior == (0.5, 0.5)
    assert pool.curve.chosen.tolist() == [0]
    assert pool.curve.area == pytest.approx((5 * 0.65 + 5 * 0.8) / 10)
    assert pool.draws == pytest.approx([(5 * (0.5 + s) / 2 + 5 * s) / 10 for s in (0.7, 0.8, 0.9)])
    assert Pool(pool.rows, "last").curve.area == pytest.approx((5 * 0.6 + 5 * 0.7) / 10)  # 0.7 on all rows


def test_areas_by_seed() -> None:
    several = areas([*tradeoff_rows((5, 0.7, 0.8)), *tradeoff_rows((5, 0.7, 0.6), seed=1)])
    assert several.by_seed == pytest.approx({0: 0.725, 1: 0.575})
    assert areas([row(area=0.25), row(area=0.75, seed=1)]).by_seed == {0: 0.25, 1: 0.75}
    assert areas([]).estimate is None


def test_intervals_by_hand() -> None:
    estimate = Quantity({0: 1.0, 1: 2.0, 2: 3.0}).estimate
    assert estimate.mean == 2
    assert estimate.high - 2 == pytest.approx(4.302653 / np.sqrt(3))  # Student's t with two degrees of freedom
    one = Quantity({0: 1.0}, {0: list(range(101))}).estimate
    assert (one.mean, one.low, one.high, one.seeds) == (1, 2.5, 97.5, 1)
    assert np.isinf(Quantity({0: 1.0}).estimate.high)
    assert one.shown(1, "+") == "+1.0 (+2.5 to +97.5)"


def test_differences_are_taken_seed_by_seed() -> None:
    first, second = Quantity({0: 1.0, 1: 2.0, 2: 9.0}, {0: [1, 2]}), Quantity({0: 0.5, 1: 1.5, 3: 4.0}, {0: [0.5, 1.5]})
    difference = first.minus(second)
    assert difference.by_seed == {0: 0.5, 1: 0.5}
    assert difference.estimate.low == difference.estimate.high == 0.5
    assert difference.draws == {0: [0.5, 0.5]}
    assert first.minus(Quantity({0: 1.0}, {0: [1, 2, 3]})).draws == {}  # other draws


def test_the_mean_of_a_curve_up_to_a_cost() -> None:
    assert claims.mean_up_to([0, 10, 40], [0.5, 0.7, 1.0], 20) == pytest.approx((10 * 0.6 + 10 * 0.75) / 20)


def test_courses_are_averaged_up_to_where_the_first_ends() -> None:
    long = {"course": [[s, 0, s / 100, 0, 0, a] for s, a in zip((100, 200, 300), (0.2, 0.4, 0.9), strict=True)]}
    short = {"course": [[s, 0, s / 100, 0, 0, a] for s, a in zip((100, 200), (0.4, 0.8), strict=True)]}
    step, columns = claims_of_training.averaged([long, short])
    assert step.tolist() == [100, 200]
    assert columns[1].tolist() == [1, 2]
    assert np.allclose(columns[4], [0.3, 0.6])


# ---------------------------------------------------------------------- rules


@pytest.mark.parametrize(
    ("rule", "low", "high", "expected"),
    [
        (above(), 0.1, 0.2, REPRODUCED), (above(), -0.1, 0.2, None), (above(), -0.2, -0.1, NOT_REPRODUCED),
        (above(-0.01), -0.005, 0.1, REPRODUCED), (above(-0.01), -0.03, -0.02, NOT_REPRODUCED),
        (below(), -0.2, -0.1, REPRODUCED), (below(), -0.1, 0.1, None), (below(), 0.1, 0.2, NOT_REPRODUCED),
        (within(0.1), -0.05, 0.05, REPRODUCED), (within(0.1), 0.05, 0.15, None), (within(0.1), 0.11, 0.2, NOT_REPRODUCED),
        (within(0.1), -0.2, -0.11, NOT_REPRODUCED),
    ],
)  # fmt: skip
def test_rules(rule, low, high, expected) -> None:
    estimate = Estimate((low + high) / 2, low, high, 3)
    assert rule(estimate) == expected
    assert judged(estimate, rule, complete=True, whole=True) == (expected or HERE)
    assert judged(estimate, rule, complete=True, whole=False) == (expected or YET)
    assert judged(estimate, rule, complete=False, whole=False) == YET
    assert judged(None, rule, complete=False, whole=False) == NOT_RUN


def test_shares_and_several_verdicts() -> None:
    assert counted(0.8, 0.8, complete=True, any_rows=True) == REPRODUCED
    assert counted(0.79, 0.8, complete=True, any_rows=True) == NOT_REPRODUCED
    assert counted(0.79, 0.8, complete=False, any_rows=True) == YET
    assert counted(0.0, 0.8, complete=False, any_rows=False) == NOT_RUN
    assert together([REPRODUCED, REPRODUCED]) == REPRODUCED
    assert together([REPRODUCED, NOT_REPRODUCED, YET]) == NOT_REPRODUCED
    assert together([REPRODUCED, HERE]) == HERE
    assert together([REPRODUCED, NOT_RUN]) == together([HERE, YET]) == YET
    assert together([NOT_RUN, NOT_RUN]) == NOT_RUN


@pytest.mark.parametrize("claim", summary.JUDGES)
def test_without_rows_nothing_is_said(claim) -> None:
    assert verdict(claim, NOTHING) == NOT_RUN


def unlike(task: Task) -> float:
    """Seeds that differ by much."""
    return usual_score(task) + 0.03 * (task.seed - 1)


def shifted(by: float, when: Callable[[Task], bool]) -> Callable[[Task], float]:
    return lambda task: usual_score(task) + (by if when(task) else 0.0)


def ending(accuracy: float) -> Callable[[Task], dict]:
    """Where the budget of 20 ends in the trainings of figure 8, with a tradeoff of 0 at about 0.9."""

    def more(task: Task) -> dict:
        end = (accuracy if task.budget == {"average": 20} else 0.9) + 0.001 * task.seed
        return {"course": [[100 * i, 0, 30, 30, 0.1, end] for i in range(1, 11)]}

    return more


def moving(last: float, crossings: int) -> Callable[[Task], dict]:
    """How much lambda moves in the last quarter, and how often the budget is crossed at first."""

    def more(task: Task) -> dict:
        cost, binds = usual_cost(task), usual_cost(task) > 0.9 * task.budget.get("average", 0)
        return {"quarters": [[0.02, 0.01, cost, 1, crossings], *([[0.01 * binds, last, 0.98 * cost, 1, 0]] * 3)]}

    return more


def dear(task: Task) -> float:
    """All of it is spent."""
    ((kind, amount),) = task.budget.items()
    return min(amount, TOTAL[task.data]) if kind != "tradeoff" else usual_cost(task) if amount else TOTAL[task.data]


def no_pixels(task: Task) -> float:
    """It learned that no pixel is worth its price."""
    return 0.0 if task.data == "cifar" else usual_cost(task)


def per_state(*slowest: str) -> Callable[[Task], dict]:
    return lambda task: {"cpu_seconds": 36.0 * (1 + 10 * (task.data in slowest) + 100 * (task.data == slowest[-1]))}


CASES = {
    ("miniboone", REPRODUCED): lambda: USUAL,
    ("miniboone", NOT_REPRODUCED): partial(world, lambda d, label, s: 0.95),
    ("miniboone", HERE): partial(world, lambda d, label, s: 0.85 + 0.05 * (s - 1)),
    ("miniboone", YET): partial(world, without=lambda t: t.data == "miniboone_tiny" and t.budget == {"tradeoff": 0}),
    ("diabetes", REPRODUCED): lambda: USUAL,
    ("diabetes", NOT_REPRODUCED): partial(world, lambda d, label, s: 0.95),
    ("forest", REPRODUCED): lambda: USUAL,
    ("forest", NOT_REPRODUCED): partial(world, lambda d, label, s: 0.95),
    ("mnist", REPRODUCED): partial(world, lambda d, label, s: 0.51),
    ("mnist", NOT_REPRODUCED): partial(world, lambda d, label, s: 0.95),
    ("prior_art", REPRODUCED): partial(world, lambda d, label, s: 0.51),
    ("prior_art", NOT_REPRODUCED): partial(world, lambda d, label, s: 0.95 if d == "forest" else 0.51),
    ("others_below_baseline", REPRODUCED): partial(world, lambda d, label, s: 0.8 if label == "baseline" else 0.7),
    ("others_below_baseline", NOT_REPRODUCED): partial(world, lambda d, label, s: 0.6 if label == "baseline" else 0.7),
    ("bprune_diabetes", REPRODUCED): partial(world, lambda d, label, s: 0.8 if label == "baseline" else 0.7),
    ("bprune_diabetes", NOT_REPRODUCED): partial(world, lambda d, label, s: 0.75 if label == "baseline" else 0.7),
    ("cifar_below", REPRODUCED): partial(world, lambda d, label, s: 0.95),
    ("cifar_below", NOT_REPRODUCED): partial(world, lambda d, label, s: 0.51),
    ("cifar_few", REPRODUCED): lambda: USUAL,
    ("cifar_few", NOT_REPRODUCED): partial(world, lambda d, label, s: 0.95, score=lambda t: 0.4),
    ("budgets_met", REPRODUCED): lambda: USUAL,
    ("budgets_met", NOT_REPRODUCED): partial(world, cost=lambda t: 1.2 * usual_cost(t)),
    ("budgets_met", YET): partial(world, without=lambda t: t.seed == 2),
    ("largest_unused", REPRODUCED): lambda: USUAL,
    ("largest_unused", NOT_REPRODUCED): partial(world, cost=dear),
    ("runs_alike", REPRODUCED): partial(world, score=lambda t: unlike(t) if t.data == "nhanes" else usual_score(t)),
    ("runs_alike", NOT_REPRODUCED): partial(world, score=unlike),
    ("targets_like_tradeoffs", REPRODUCED): lambda: USUAL,
    ("targets_like_tradeoffs", NOT_REPRODUCED): partial(world, score=shifted(-0.1, lambda t: "average" in t.budget)),
    ("lambda_settles", REPRODUCED): partial(world, more=moving(0.001, 3)),
    ("lambda_settles", NOT_REPRODUCED): partial(world, more=moving(0.009, 3)),
    ("overfitting", REPRODUCED): partial(world, more=ending(0.92)),
    ("overfitting", NOT_REPRODUCED): partial(world, more=ending(0.88)),
    ("hard_oplearn", REPRODUCED): lambda: USUAL,
    ("hard_oplearn", NOT_REPRODUCED): partial(world, lambda d, label, s: 0.95),
    ("hard_baseline", REPRODUCED): lambda: USUAL,
    ("hard_baseline", NOT_REPRODUCED): partial(world, lambda d, label, s: 0.95),
    ("hard_lambda", REPRODUCED): partial(world, score=shifted(-0.1, lambda t: "hard" in t.budget)),
    ("hard_lambda", NOT_REPRODUCED): partial(world, score=shifted(0.1, lambda t: "hard" in t.budget)),
    ("never_above", REPRODUCED): lambda: USUAL,
    ("never_above", NOT_REPRODUCED): partial(world, more=lambda t: {"most": 3.0} if t.budget == {"hard": 2} else {}),
    ("never_above", YET): partial(world, without=lambda t: t.budget == {"hard": 2}),
    ("hard_stops", REPRODUCED): partial(world, cost=lambda t: 0.7 * usual_cost(t)),
    ("hard_stops", NOT_REPRODUCED): partial(world, cost=dear),
    ("mdp_much", REPRODUCED): lambda: USUAL,
    ("mdp_much", NOT_REPRODUCED): partial(world, score=shifted(-0.1, lambda t: t.remove == 0.9 and not t.imputation)),
    ("mdp_little", REPRODUCED): lambda: USUAL,
    ("mdp_little", NOT_REPRODUCED): partial(world, score=shifted(-0.1, lambda t: t.remove == 0.5 and not t.imputation)),
    ("more_missing", REPRODUCED): lambda: USUAL,
    ("more_missing", NOT_REPRODUCED): partial(world, score=shifted(0.2, lambda t: t.remove == 0.9)),
    **{(claim, HERE): partial(world, cost=no_pixels) for claim in ("cifar_below", "cifar_few")},
    ("run_times", REPRODUCED): partial(world, more=per_state("cifar", "mnist")),
    ("run_times", NOT_REPRODUCED): partial(world, more=per_state("mnist", "cifar")),
    ("run_times", YET): partial(world, without=lambda t: t.data == "mnist"),
}  # fmt: skip


@pytest.mark.parametrize(("claim", "expected"), CASES)
def test_every_verdict_can_be_reached(claim, expected) -> None:
    assert verdict(claim, CASES[claim, expected]()) == expected


def test_all_claims_can_be_reproduced_and_refuted() -> None:
    for claim in summary.JUDGES:
        assert {(claim, REPRODUCED), (claim, NOT_REPRODUCED)} <= set(CASES)


def test_a_budget_is_met_near_it_or_below_it_where_more_does_not_help() -> None:
    tasks = [t.task for t in LISTED if t.task.data == "miniboone_tiny" and t.task.seed == 0]
    ten, twenty = (next(task for task in tasks if task.budget.get("average") == b) for b in (10, 20))

    def is_met(cost, score, other_cost, other_score) -> bool:
        mine = trained(ten, cost, score)
        return claims.met(mine, "chosen", [mine, trained(twenty, other_cost, other_score)])

    assert is_met(9.5, 0.8, 20, 0.9)
    assert is_met(10.5, 0.8, 20, 0.9)
    assert not is_met(10.6, 0.8, 20, 0.8)
    assert not is_met(6, 0.8, 20, 0.9)  # twice the money is better, so the rest of the 10 should have been spent
    assert is_met(6, 0.8, 20, 0.812)  # a standard error of 1,000 rows is 0.0126
    assert not is_met(6, 0.8, 9, 0.814)


def test_rows_of_other_settings_do_not_count() -> None:
    task = LISTED[0].task
    where = key(task.row, differences(task) | {"width": 7})
    evidence = Evidence(PLANNED, {where: trained(task, 1, 0.8)}, ())
    assert evidence.rows == []
    assert "1 row of other settings is not counted" in summary.text(evidence)


# ---------------------------------------------------------------------- plans and page


def test_plans_of_comparators_measure_on_the_same_rows() -> None:
    for name in COMPARATORS:
        for task in read_plan(FOLDER / f"{name}.toml").tasks:
            ours = next(t.task for t in LISTED if t.task.data == task.data and t.task.most_rows == MOST_ROWS)
            assert (task.most_rows, task.class_weight, task.budget) == (ours.most_rows, ours.class_weight, None)
    of = {(t.data, t.label) for name in COMPARATORS for t in read_plan(FOLDER / f"{name}.toml").tasks}
    assert of >= {(data, label) for data in UNIT for label in ("baseline", "budget-prune")}
    assert of >= {("miniboone_tiny", "adapt-gbrt"), ("mnist", "random"), ("cifar", "random")}


def test_every_claim_has_words_a_rule_and_a_figure() -> None:
    assert [claim["id"] for claim in summary.CLAIMS] == list(summary.JUDGES)
    for claim in summary.CLAIMS:
        assert claim["title"]
        assert claim["sentence"]
        assert claim["rule"]
        assert claim["figure"] in summary.FIGURES
        assert not re.search(r"\d", claim["reason"] + claim["takes"]), "numbers come from rows"


def test_the_page_is_filled_from_rows(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(summary, "HERE", tmp_path)
    monkeypatch.setattr(summary, "RESULTS", tmp_path / "results")
    (tmp_path / "results").mkdir()
    write(tmp_path / "results" / "rl.jsonl", *USUAL.rl.values())
    write(tmp_path / "results" / "comparators.jsonl", *USUAL.others)
    page = tmp_path / "README.md"
    page.write_text(f"before\n\n{summary.BEGIN}\noutdated\n{summary.END}\nafter\n")
    monkeypatch.setattr("sys.argv", ["summary"])
    summary.main()
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "outdated" not in text
    assert f"{len(dict(PLANNED))} of {len(dict(PLANNED))} trainings" in text
    assert "| 9 | No case costs more than a hard budget | reproduced |" in text
    assert "- mnist, the paper's algorithm (CPU preset): 2 trainings, 1 seed, 1,995 rows to learn from" in text
    assert "0.954 / " in text
    linked = re.findall(r"\]\(results/([^)]+)\)", text)
    assert sorted(linked) == sorted(p.name for p in (tmp_path / "results").glob("*.svg"))
    assert len(linked) == 16
    summary.main()
    assert page.read_text() == text


def test_the_readme_says_what_the_rows_say() -> None:
    page = (FOLDER / "README.md").read_text()
    assert summary.filled(page) == page, "run ./dev sh python -m benchmarks.paper.summary"
    assert sorted(re.findall(r"\]\(results/([^)]+)\)", page)) == sorted(p.name for p in (FOLDER / "results").glob("*.svg"))
    for name in re.findall(r"`(\w+\.(?:toml|py))`", page):
        assert (FOLDER / name).is_file()
