"""Which algorithm 'auto' stands for."""

import numpy as np
import pytest

from askwise import FamilyConfig, StackConfig, TrainConfig
from askwise.core.problem import Problem, Schema
from askwise.errors import InputError
from askwise.model.learn import STACK_ROWS, STACK_TESTS, check, chosen


def problem_of(rows, tests):
    schema = Schema.build([f"x{i}" for i in range(tests)], [0, 1])
    return Problem.build(schema, np.zeros((rows, tests)), np.arange(rows) % 2)


def test_tables_are_for_the_stack_and_all_that_is_larger_for_the_family():
    assert chosen("auto", problem_of(10, STACK_TESTS), None, None) == "stack"
    assert chosen("auto", problem_of(10, STACK_TESTS + 1), None, None) == "family"
    assert chosen("auto", problem_of(STACK_ROWS, 1), None, None) == "stack"
    assert chosen("auto", problem_of(STACK_ROWS + 1, 1), None, None) == "family"


def test_settings_and_networks_decide_before_sizes():
    small, large = problem_of(10, 2), problem_of(10, STACK_TESTS + 1)
    assert chosen("auto", small, FamilyConfig(), None) == "family"
    assert chosen("auto", large, StackConfig(), None) == "stack"
    assert chosen("auto", small, None, lambda schema, width: None) == "family"
    assert chosen("paper", small, None, None) == "paper"


def test_settings_of_another_algorithm_are_refused_in_a_sentence():
    check("auto", StackConfig(), "local")
    check("auto", FamilyConfig(), "local")
    with pytest.raises(InputError, match="for algorithm 'auto' it must be a StackConfig or a FamilyConfig"):
        check("auto", TrainConfig(), "local")
    with pytest.raises(InputError, match="for algorithm 'stack' it must be a StackConfig"):
        check("stack", FamilyConfig(), "local")
