"""Small tables in two checkouts: the arithmetic of the page, with rows that were made up; and the page is what its rows give."""

import json
import math

import pytest

from askwise.paper.config import TrainConfig
from benchmarks.paper import fits, tables

T_9 = 2.262157  # Student's t: 97.5 % with nine degrees of freedom


def fit(**changes):
    """For a budget of 100: a single network that costs 98 and is the best of its training."""
    usual = {"share": 0.1, "budget": 100.0, "single": True, "cost": 98.0, "test_cost": 90.0, "test_cost_error": 8.0}
    return {**usual, "score": 0.8, "behind": 0.0, "error": 0.02, "doubt": "", **changes}


def row(side, seed, area=0.9, data="wine", revision=None, budgets=None):
    revision = revision or {"before": "aaa", "after": "bbb"}[side]
    of = {"side": side, "revision": revision, "data": data, "seed": seed, "area": area}
    return {**of, "budgets": budgets or [fit(share=share) for share in fits.SHARES]}


def lines_of(page, title):
    """The cells of the table under a title, without its head."""
    _, _, after = page.partition(f"## {title}")
    lines = [line for line in after.partition("\n## ")[0].splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


@pytest.mark.parametrize(
    ("changes", "is_met"),
    [
        ({"cost": 105.0}, True),
        ({"cost": 95.0}, True),
        ({"cost": 105.1}, False),
        ({"cost": 60.0, "behind": 0.02}, True),  # more money does not help
        ({"cost": 60.0, "behind": 0.021}, False),
        ({"cost": 95.0, "behind": 0.5}, True),
        ({"cost": 120.0, "behind": 0.0}, False),
        ({"cost": 100.0, "single": False}, False),
    ],
)
def test_a_budget_is_met_by_a_single_network_near_it_or_below_it_where_more_money_does_not_help(changes, is_met) -> None:
    assert tables.met(fit(**changes)) is is_met


def test_a_budget_is_met_on_test_rows_by_the_cost_there() -> None:
    assert tables.met(fit(cost=98.0, test_cost=90.0, behind=0.1))
    assert not tables.met(fit(cost=98.0, test_cost=90.0, behind=0.1), "test_cost")


def test_areas_are_compared_seed_by_seed_with_students_interval() -> None:
    """Differences -0.02 and 0, five times each: mean -0.01, deviation sqrt(10 / 9) * 0.01."""
    rows = [row("before", seed, 0.8 + 0.01 * seed) for seed in range(10)]
    rows += [row("after", seed, 0.8 + 0.01 * seed - 0.02 * (seed % 2)) for seed in range(10)]
    half = T_9 * 0.01 * math.sqrt(10 / 9) / math.sqrt(10)
    (cells,) = lines_of(tables.page(rows), "Fits without a budget")
    assert cells == ["wine", "10", "0.8450", "0.8350", f"-0.0100 ({-0.01 - half:+.4f} to {-0.01 + half:+.4f})", "yes"]


def test_an_area_is_lower_only_beyond_the_interval_and_one_seed_cannot_tell() -> None:
    rows = [
        row(side, seed, area)
        for side, areas in (("before", (0.9, 0.9)), ("after", (0.8, 0.9)))
        for seed, area in enumerate(areas)
    ]
    (cells,) = lines_of(tables.page(rows), "Fits without a budget")
    assert cells[-1] == "no"
    (cells,) = lines_of(tables.page([row("before", 0, 0.9), row("after", 0, 0.5)]), "Fits without a budget")
    assert cells[1:] == ["1", "0.9000", "0.5000", "-0.4000", "–"]


def test_only_seeds_of_both_sides_and_their_last_commits_count() -> None:
    rows = [
        row("before", 0, 0.7),
        row("before", 1, 0.1),
        row("after", 0, 0.2, revision="old"),
        row("after", 0, 0.8),
        row("after", 2),
    ]
    page = tables.page(rows)
    assert "aaa (before) and bbb (after)" in page
    assert lines_of(page, "Fits without a budget") == [["wine", "1", "0.7000", "0.8000", "+0.1000", "–"]]


def test_shares_of_budgets_and_mean_scores() -> None:
    mixed = [
        fit(single=False, cost=100.0, doubt="lambda has not settled"),
        fit(cost=50.0, behind=0.1),
        fit(test_cost=101.0, behind=0.1),
    ]
    rows = [row("before", 0, budgets=mixed), row("after", 0, budgets=[fit(score=0.85), fit(), fit(test_cost=200.0)])]
    rows += [row(side, 0, data="heart") for side in tables.SIDES]
    page = tables.page(rows)
    heart, wine, every = lines_of(page, "Fits for average budgets: are they met?")
    assert wine == ["wine", "1 of 3", "3 of 3", "1 of 3", "2 of 3", "2 of 3", "3 of 3", "2 of 3", "3 of 3"]
    assert heart == ["heart", *["3 of 3"] * 8]
    assert every == ["all", "4 of 6", "6 of 6", "4 of 6", "5 of 6", "5 of 6", "6 of 6", "5 of 6", "6 of 6"]
    scores = lines_of(page, "Fits for average budgets: mean costs")
    assert scores[3] == ["wine", "100", "100", "98", "90 ± 8", "90 ± 8", "0.8000", "0.8500", "+0.0500", "–"]


def test_lambda_has_settled_by_the_rule_of_the_package() -> None:
    measured = {"loss": 0.1, "accuracy": 0.9, "n": 50, "cost_error": 0.0, "loss_error": 0.0, "accuracy_error": 0.0}

    def doubt(costs):
        records = [
            {"step": 10 * i, "done": 0.0, "lam": 0.1, "train": {**measured, "cost": c}, "validation": {**measured, "cost": c}}
            for i, c in enumerate(costs, 1)
        ]
        return tables.doubt(records, 10.0)

    assert doubt([30.0] * 12 + [10.0] * 4) == ""
    assert "the policy cost 20 on average" in doubt([10.0] * 12 + [20.0] * 4)


def test_the_page_is_what_the_rows_give() -> None:
    page = tables.ROWS.with_suffix(".md")
    shown = page.read_text() if page.exists() else None
    assert shown == (tables.page(tables.read(tables.ROWS)) if tables.ROWS.exists() else None)


def test_fits_give_the_row_that_the_page_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = TrainConfig.for_size
    monkeypatch.setattr(
        TrainConfig, "for_size", classmethod(lambda _, rows, tests: whole(rows, tests).scaled(time=0.1, max_epochs=4))
    )
    result = json.loads(json.dumps(fits.row_of("wine", 0)))
    assert 0.3 < result["area"] <= 1
    assert [fit["budget"] / result["total"] for fit in result["budgets"]] == pytest.approx(fits.SHARES)
    for each in result["budgets"]:
        each["doubt"] = tables.doubt(each.pop("history"), each["budget"])
        assert each["cost"] <= each["budget"] + 1e-9
        assert each["behind"] >= 0
    rows = [{"side": side, "revision": side[0], "data": "wine", "seed": 0, **result} for side in tables.SIDES]
    (cells,) = lines_of(tables.page(rows), "Fits without a budget")
    assert cells[4] == "+0.0000"
