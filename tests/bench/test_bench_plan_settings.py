"""Settings of a plan, one by one: what is allowed, and in which form it goes on."""

import pytest

from askwise.bench.plan_settings import MOST_ROWS, NAMES, PlanSettings, amount, joined
from askwise.errors import InputError


@pytest.mark.parametrize(
    ("setting", "value", "plain"),
    [
        ("seeds", 3, [0, 1, 2]),
        ("seeds", [4, 1], [4, 1]),
        ("minutes", 2, 2.0),
        ("remove", 0.5, [0.5]),
        ("remove", [0, 0.25], [0.0, 0.25]),
        ("budgets", [{"hard": [1, 2.0]}, "frontier"], ({"hard": 1}, {"hard": 2}, None)),
        ("budgets", [{"hard": 4, "average": [1, 2]}], ({"average": 1, "hard": 4}, {"average": 2, "hard": 4})),
        ("most_rows", {"train": 5}, {**MOST_ROWS, "train": 5}),
        ("accuracy_at", [1, 2.5], [1.0, 2.5]),
        ("class_weight", "balanced", "balanced"),
    ],
)
def test_a_setting_in_the_form_in_which_tasks_take_it(setting: str, value: object, plain: object) -> None:
    assert getattr(joined({setting: value}), setting) == plain


def test_without_settings_there_are_defaults() -> None:
    assert joined({}) == PlanSettings(most_rows=MOST_ROWS)


def test_later_levels_win_and_limits_of_rows_for_each_part_by_itself() -> None:
    settings = joined({"minutes": 1, "most_rows": {"train": 7, "test": 8}}, {}, {"minutes": 2, "most_rows": {"test": 9}})
    assert settings.minutes == 2
    assert settings.most_rows == {"train": 7, "validation": 10_000, "test": 9}


@pytest.mark.parametrize("seeds", [True, 0, -1, 1.5, [], [0, 0], [-1], [True], "2", None])
def test_seeds_that_are_not_different_whole_numbers_are_refused(seeds: object) -> None:
    with pytest.raises(InputError, match=r"`seeds` is .*; it must be a number of seeds, or a list of different whole numbers"):
        joined({"seeds": seeds})


def test_one_name_becomes_a_list_and_whole_amounts_have_no_decimals() -> None:
    assert (NAMES.plain("age"), NAMES.plain(["age", "sex"])) == (["age"], ["age", "sex"])
    assert not NAMES.allows(["age", 3])
    assert [repr(amount(value, "it")) for value in (5, 5.0, 2.5)] == ["5", "5", "2.5"]
