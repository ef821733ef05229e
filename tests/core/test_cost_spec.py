"""What is said about tests and their costs, in one object: its forms, and what is refused before any column is known."""

import numpy as np
import pandas as pd
import pytest

from askwise.core.cost_spec import CostSpec
from askwise.core.costs import CostFunction
from askwise.core.schema import Schema
from askwise.errors import InputError

TESTS = ["age", "sugar", "index"]


@pytest.mark.parametrize(
    ("costs", "by_test"),
    [
        ({"age": 1, "sugar": "2.5"}, {"age": 1, "sugar": "2.5"}),
        (pd.Series({"sugar": 2, "age": 1}), {"sugar": 2, "age": 1}),
        ([1, 2, 3], {"age": 1, "sugar": 2, "index": 3}),
        (np.array([1, 2, 3]), {"age": 1, "sugar": 2, "index": 3}),
        (None, {"age": 1, "sugar": 1}),  # the index is derived
    ],
    ids=["dict", "series", "list", "array", "none"],
)
def test_costs_come_by_name_or_in_the_order_of_the_tests(costs, by_test):
    assert CostSpec(costs, derived={"index": ["age"]}).by_test(TESTS) == by_test


def test_a_single_name_needs_no_brackets_and_none_is_nothing():
    short = CostSpec({"age": 1}, {"draw": (2, "sugar")}, {"index": "age"}, {"form": "smoker"})
    assert short == CostSpec({"age": 1}, {"draw": (2, ["sugar"])}, {"index": ["age"]}, {"form": ["smoker"]})
    assert CostSpec(None, None, None, None) == CostSpec() == CostSpec.of(None)
    assert CostSpec.of(short) is short


def test_what_is_left_out_of_a_table_may_still_have_a_cost():
    spec = CostSpec({"age": 1, "name": 0}, {"draw": (2, ["age"])})
    assert spec.without(["name", "id"]) == CostSpec({"age": 1}, {"draw": (2, ["age"])})
    assert CostSpec([1, 2]).without(["name"]) == CostSpec([1, 2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"costs": 3}, "costs are 3; they must be costs by the name of the test, or one cost for each test"),
        ({"costs": "dear"}, "costs are 'dear'; they must be"),
        ({"costs": pd.Series([1, 2], index=["a", "a"])}, "the test of the costs 'a' appears twice"),
        ({"setup": ["draw"]}, "setup is ['draw']; it must be like {'draw': (2, ['sugar'])}"),
        ({"setup": {"draw": 2}}, "set-up 'draw' is 2; it must be a pair (cost, tests that share it)"),
        ({"setup": {"draw": (2, [])}}, "set-up 'draw' has no tests; name those that share it"),
        ({"setup": {"draw": (2, 5)}}, "set-up 'draw' names 5; it must be a list of names"),
        ({"derived": "index"}, "derived is 'index'; it must be like {'index': ['weight']}"),
        ({"derived": {"index": []}}, "derived test 'index' is computed from nothing; name the tests it is computed from"),
        ({"reveals": {"form": ()}}, "test 'form' reveals nothing; name its columns or remove it"),
        ({"reveals": {"form": None}}, "test 'form' names None; it must be a list of names"),
    ],
    ids=str,
)
def test_a_wrong_shape_is_refused_in_one_sentence(arguments, message):
    with pytest.raises(InputError) as caught:
        CostSpec(**arguments)
    assert message in str(caught.value)


def test_one_object_reaches_the_cost_function_through_the_schema():
    spec = CostSpec({"form": 1, "sugar": 2}, {"draw": (3, ["sugar"])}, {"index": ["sugar"]}, {"form": ["age", "smoker"]})
    schema = Schema.build(["age", "smoker", "sugar", "index"], [0, 1], spec)
    direct = CostFunction.build(schema.tests, spec)
    assert schema.tests == ("form", "sugar", "index")
    assert schema.costs.alone.tolist() == direct.alone.tolist() == [1, 5, 5]
