"""Which algorithm 'auto' stands for."""

import pytest

from askwise import FamilyConfig, StackConfig, TrainConfig
from askwise.errors import InputError
from askwise.model.learn import STACK_ROWS, STACK_TESTS, check, chosen, learns_from_all


def test_tables_are_for_the_stack_and_all_that_is_larger_for_the_family():
    assert chosen("auto", 10, STACK_TESTS, None, None) == "stack"
    assert chosen("auto", 10, STACK_TESTS + 1, None, None) == "family"
    assert chosen("auto", STACK_ROWS, 1, None, None) == "stack"
    assert chosen("auto", STACK_ROWS + 1, 1, None, None) == "family"


def test_settings_and_networks_decide_before_sizes():
    small, large = (10, 2), (10, STACK_TESTS + 1)
    assert chosen("auto", *small, FamilyConfig(), None) == "family"
    assert chosen("auto", *large, StackConfig(), None) == "stack"
    assert chosen("auto", *small, None, lambda schema, width: None) == "family"
    assert chosen("paper", *small, None, None) == "paper"


def test_settings_of_another_algorithm_are_refused_in_a_sentence():
    check("auto", StackConfig(), "local")
    check("auto", FamilyConfig(), "local")
    with pytest.raises(InputError, match="for algorithm 'auto' it must be a StackConfig or a FamilyConfig"):
        check("auto", TrainConfig(), "local")
    with pytest.raises(InputError, match="for algorithm 'stack' it must be a StackConfig"):
        check("stack", FamilyConfig(), "local")


def test_rows_that_are_kept_apart_are_learned_from_where_members_are_cross_fitted():
    assert learns_from_all("auto", None, None, 100, 20, 3)
    assert not learns_from_all("auto", StackConfig(few_rows=120), None, 100, 20, 3)
    assert learns_from_all("auto", StackConfig(few_rows=121), None, 100, 20, 3)
    assert not learns_from_all("auto", None, None, 15_000, 5_000, 3)
    assert not learns_from_all("auto", None, None, 100, 20, STACK_TESTS + 1)  # that is for the family
    assert not learns_from_all("paper", None, None, 100, 20, 3)
