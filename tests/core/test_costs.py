"""cost(S): worked by hand, against a naive twin, and every way of writing a price list wrongly."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.naive import MONEY, NaiveCosts

from askwise.core.budget import HardBudget
from askwise.core.cost_spec import CostSpec
from askwise.core.costs import CostFunction
from askwise.errors import InputError

TESTS = ["age", "TSH", "T3", "TT4", "T4U", "FTI"]


def thyroid() -> CostFunction:
    # TSH alone is 22.78: 20.68 of its own and 2.10 for the blood draw that it shares
    return CostFunction.build(
        TESTS,
        CostSpec(
            {"age": 1.00, "TSH": 20.68, "T3": 9.31, "TT4": 12.41, "T4U": 9.31},
            setup={"blood": (2.10, ["TSH", "T3", "TT4", "T4U"])},
            derived={"FTI": ["TT4", "T4U"]},
        ),
    )


def mask(tests, names):
    return np.array([[t in names for t in tests]])


def cost(prices, tests, names, known=()):
    return int(prices.cost(mask(tests, names), mask(tests, known))[0]) * prices.smallest_unit


def price(prices, tests, test, held, known=()):
    paid = prices.paid(mask(tests, {*held, *known}), mask(tests, known))
    return int(prices.marginal(paid)[0, tests.index(test)]) * prices.smallest_unit


# ------------------------------------------------------------------ by hand


@pytest.mark.parametrize(
    ("bought", "expected"),
    [
        ([], "0"),
        (["age"], "1"),
        (["TSH"], "22.78"),
        (["TSH", "T3"], "32.09"),  # 20.68 + 9.31 + one draw
        (["FTI"], "23.82"),  # 2.10 + 12.41 + 9.31
        (["FTI", "TT4"], "23.82"),  # TT4 was carried out for FTI
        (["FTI", "TT4", "T4U"], "23.82"),
        (TESTS, "54.81"),  # 1 + 20.68 + 9.31 + 12.41 + 9.31 + 2.10
    ],
)
def test_cost_of_a_set_by_hand(bought, expected):
    assert cost(thyroid(), TESTS, bought) == Fraction(expected)


@pytest.mark.parametrize(
    ("test", "held", "known", "expected"),
    [
        ("TSH", [], [], "22.78"),
        ("TSH", ["T3"], [], "20.68"),  # the blood is drawn already
        ("TSH", ["age"], [], "22.78"),
        ("FTI", [], [], "23.82"),
        ("FTI", ["TT4"], [], "9.31"),  # only T4U is unpaid
        ("FTI", ["TSH"], [], "21.72"),  # both, but no draw
        ("TT4", ["FTI"], [], "0"),
        ("T3", ["FTI"], [], "9.31"),  # FTI needed the draw
        ("FTI", [], ["TT4", "T4U"], "0"),  # nothing to carry out, so no draw either
        ("FTI", [], ["TT4"], "11.41"),  # T4U and the draw
        ("T3", [], ["TSH"], "11.41"),  # a value known from before draws no blood today
        ("T3", ["FTI"], ["TT4", "T4U"], "11.41"),  # FTI was free, so no blood was drawn for it
        ("TT4", [], ["FTI"], "14.51"),  # knowing the result is not knowing what it was computed from
    ],
)
def test_cost_of_the_next_test_equals_the_one_worked_by_hand(test, held, known, expected):
    assert price(thyroid(), TESTS, test, held, known) == Fraction(expected)


def test_total_and_alone_by_hand():
    prices = thyroid()
    assert prices.total * prices.smallest_unit == Fraction("54.81")
    alone = ["1", "22.78", "11.41", "14.51", "11.41", "23.82"]
    assert [int(u) * prices.smallest_unit for u in prices.alone] == [Fraction(p) for p in alone]
    assert prices.money(prices.total) == 54.81


def test_a_derived_test_may_have_a_fee():
    costs = CostFunction.build(["a", "b"], CostSpec({"a": 1, "b": 0.5}, derived={"b": ["a"]}))
    assert cost(costs, ["a", "b"], ["b"]) == Fraction("1.5")
    assert price(costs, ["a", "b"], "b", ["a"]) == Fraction("0.5")


def test_a_known_value_need_not_be_computed_from_its_sources():
    # c from b, b from a. Who knows b computes c from it and has no use for a.
    tests = ["a", "b", "c"]
    costs = CostFunction.build(tests, CostSpec({"a": 5}, setup={"visit": (2, ["a"])}, derived={"b": ["a"], "c": ["b"]}))
    assert price(costs, tests, "c", []) == 7
    assert price(costs, tests, "c", [], known=["b"]) == 0
    assert cost(costs, tests, ["b", "c"], known=["b"]) == 0


def test_a_set_up_that_no_test_needs_alone_is_paid_per_set_up():
    # one test in two set-ups pays both, a second test only what is new
    costs = CostFunction.build(["a", "b"], CostSpec({"a": 1, "b": 1}, setup={"travel": (3, ["a", "b"]), "room": (0.2, ["a"])}))
    assert price(costs, ["a", "b"], "a", []) == Fraction("4.2")
    assert price(costs, ["a", "b"], "a", ["b"]) == Fraction("1.2")
    assert price(costs, ["a", "b"], "b", ["a"]) == 1


# ------------------------------------------------------------------ exactness


def test_ten_times_a_fifth_fits_a_budget_of_two():
    tests = [f"t{i}" for i in range(10)]
    costs = CostFunction.build(tests, dict.fromkeys(tests, 0.2))
    assert sum([np.float32(0.2)] * 10) > 2  # why floats will not do
    assert cost(costs, tests, tests) == 2
    assert HardBudget(2.0).cap(costs) == costs.total


@pytest.mark.parametrize("written", [0.1, "0.1", np.float32(0.1), np.float64(0.1), Decimal("0.1"), Fraction(1, 10)])
def test_a_price_means_its_shortest_decimal(written):
    costs = CostFunction.build(["a"], CostSpec({"a": written}, setup={"s": (written, ["a"])}))
    assert cost(costs, ["a"], ["a"]) == Fraction(1, 5)


def test_rounding_noise_of_a_sum_is_not_meant():
    assert cost(CostFunction.build(["a"], {"a": 0.1 + 0.2}), ["a"], ["a"]) == Fraction(3, 10)


def test_thirds_are_exact_too():
    tests = ["a", "b", "c"]
    assert cost(CostFunction.build(tests, dict.fromkeys(tests, Fraction(1, 3))), tests, tests) == 1


# ------------------------------------------------------------------ properties, against the naive twin


@st.composite
def structures(draw):
    """Tests, costs, set-ups, derived tests (also of derived tests), what is known, and an order of buying."""
    tests = [f"t{i}" for i in range(draw(st.integers(1, 6)))]
    derived = {}
    for i, test in enumerate(tests[1:], start=1):
        if draw(st.booleans()):
            derived[test] = draw(st.lists(st.sampled_from(tests[:i]), min_size=1, max_size=3, unique=True))
    costs = {t: draw(st.sampled_from(MONEY)) for t in tests if t not in derived or draw(st.booleans())}
    plain = [t for t in tests if t not in derived]
    setup = {
        f"s{g}": (draw(st.sampled_from(MONEY)), draw(st.lists(st.sampled_from(plain), min_size=1, unique=True)))
        for g in range(draw(st.integers(0, 2)))
    }
    known = draw(st.sets(st.sampled_from(tests)))
    order = draw(st.permutations([t for t in tests if t not in known]))
    return tests, (costs, setup, derived), known, order[: draw(st.integers(0, len(order)))]


@settings(max_examples=300)
@given(structures())
def test_total_and_marginal_costs_equal_the_naive_twin(structure):
    tests, lists, known, order = structure
    costs, naive = CostFunction.build(tests, CostSpec(*lists)), NaiveCosts(*lists)
    for n in range(len(order) + 1):
        held = set(order[:n])
        assert cost(costs, tests, held, known) == naive.cost(held, known)
        for test in set(tests) - held - known:
            assert price(costs, tests, test, held, known) == naive.price(test, held, known)


@given(structures())
def test_marginal_costs_along_any_order_add_up_to_the_cost_of_the_set(structure):
    tests, lists, known, order = structure
    costs = CostFunction.build(tests, CostSpec(*lists))
    for way in (order, order[::-1], sorted(order)):
        paid = sum((price(costs, tests, test, way[:i], known) for i, test in enumerate(way)), Fraction(0))
        assert paid == cost(costs, tests, order, known)


@given(structures())
def test_more_tests_never_cost_less(structure):
    tests, lists, known, order = structure
    cost_function = CostFunction.build(tests, CostSpec(*lists))
    costs = [cost(cost_function, tests, order[:n], known) for n in range(len(order) + 1)]
    assert costs == sorted(costs)
    assert costs[0] == 0


@given(structures())
def test_knowing_more_never_costs_more(structure):
    tests, lists, known, order = structure
    costs = CostFunction.build(tests, CostSpec(*lists))
    assert cost(costs, tests, order, known) <= cost(costs, tests, order)


@given(structures())
def test_bill_of_several_tests_is_the_difference_of_costs(structure):
    tests, lists, known, order = structure
    costs = CostFunction.build(tests, CostSpec(*lists))
    held, more = order[::2], order
    paid = costs.paid(mask(tests, {*held, *known}), mask(tests, known))
    bill = int(costs.bill(paid, mask(tests, more))[0]) * costs.smallest_unit
    assert bill == cost(costs, tests, more, known) - cost(costs, tests, held, known)


@given(structures())
def test_rows_do_not_influence_each_other(structure):
    tests, lists, known, order = structure
    costs = CostFunction.build(tests, CostSpec(*lists))
    held = np.concatenate([mask(tests, {*order[:n], *known}) for n in range(len(order) + 1)])
    knows = np.repeat(mask(tests, known), len(held), 0)
    together = costs.marginal(costs.paid(held, knows))
    one_by_one = [costs.marginal(costs.paid(held[i : i + 1], knows[i : i + 1]))[0] for i in range(len(held))]
    assert (together == one_by_one).all()


# ------------------------------------------------------------------ wrong price lists

AB = ["a", "bee"]
ONES = {"a": 1, "bee": 1}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((AB, {"a": -1, "bee": 1}), ["'a'", "-1", "0 or more"]),
        ((AB, {"a": float("nan"), "bee": 1}), ["'a'", "nan"]),
        ((AB, {"a": 1, "bee": np.float32("inf")}), ["'bee'", "inf"]),
        ((AB, {"a": 1, "bee": "cheap"}), ["'bee'", "'cheap'", "number"]),
        ((AB, {"a": 1, "bee": None}), ["'bee'", "None"]),
        ((AB, {"a": 1, "bee": "1/0"}), ["'bee'", "1/0"]),
        ((AB, {"a": 1}), ["'bee'", "no cost"]),
        ((AB, {**ONES, "be": 1}), ["list of costs", "'be'", "did you mean 'bee'"]),
        ((AB, {**ONES, "zzz": 1}), ["list of costs", "'zzz'", "there are 'a', 'bee'"]),
        ((AB, {"a": "1.5e-12", "bee": 1e15}), ["costs", "round"]),
        ((AB, {"a": 1e-20, "bee": 1}), ["'a'", "1e-20", "1e-12 to 1e15"]),
        ((["a"], {"a": "1.23456789012e-12"}), ["costs", "round"]),
        ((AB, ONES, {"draw": ("1e400", ["a"])}), ["'draw'", "1e400", "1e-12 to 1e15"]),
        ((AB, ONES, {"draw": (-2, ["a"])}), ["'draw'", "-2"]),
        ((AB, ONES, {"draw": (float("nan"), ["a"])}), ["'draw'", "nan"]),
        ((AB, ONES, {"draw": (1, ["a", "be"])}), ["'draw'", "'be'", "did you mean 'bee'"]),
        ((AB, ONES, {"draw": (1, [])}), ["'draw'", "no tests"]),
        ((AB, ONES, {"draw": 2.1}), ["'draw'", "2.1"]),
        ((AB, ONES, {"draw": (1, ["a", "a"])}), ["'draw'", "'a'", "twice"]),
        ((AB, ONES, {"draw": (1, ["a", "bee"])}, {"bee": ["a"]}), ["'draw'", "'bee'", "derived"]),
        ((AB, ONES, None, {"be": ["a"]}), ["derived", "'be'", "did you mean 'bee'"]),
        ((AB, ONES, None, {"a": ["be"]}), ["'a'", "'be'", "did you mean 'bee'"]),
        ((AB, ONES, None, {"a": []}), ["'a'", "nothing"]),
        ((AB, ONES, None, {"a": ["a"]}), ["'a'", "circle"]),
        ((AB, ONES, None, {"a": ["bee"], "bee": ["a"]}), ["circle"]),
        ((["a", "b", "c"], {}, None, {"a": ["b"], "b": ["c"], "c": ["a"]}), ["circle"]),
    ],
)
def test_a_wrong_list_of_costs_is_refused_in_one_sentence(arguments, words):
    with pytest.raises(InputError) as caught:
        CostFunction.build(arguments[0], CostSpec(*arguments[1:]))
    message = str(caught.value)
    assert "\n" not in message
    assert [w for w in words if w not in message] == [], message


@pytest.mark.parametrize("most", [7, 2**24 // 30, 2**40])
def test_sums_of_plain_costs_are_exact_however_large(most: int) -> None:
    rng = np.random.default_rng(0)
    own = rng.integers(most // 2, most, 60)
    costs, mask = CostFunction.build([f"t{i}" for i in range(60)], own.tolist()), rng.random((40, 60)) < 0.7
    known = rng.random(mask.shape) < 0.1
    assert costs.cost(mask).tolist() == [sum(own[held].tolist()) for held in mask]
    assert costs.cost(mask, known).tolist() == [sum(own[held].tolist()) for held in mask & ~known]
