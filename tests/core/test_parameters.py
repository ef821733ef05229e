"""Constraints of parameters: hand-written messages, and no value outside of a constraint passes."""

import math
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Annotated, get_type_hints

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from askwise.core.parameters import (
    Either,
    Instance,
    OneOf,
    OrNone,
    Real,
    Share,
    Size,
    Whole,
    check_names,
    check_settings,
    checked,
    checked_attributes,
    constraints,
)
from askwise.errors import InputError, StateError
from askwise.family.config import FamilyConfig
from askwise.paper.config import TrainConfig

WHOLE_FROM_1 = "it must be a whole number, 1 or more"
SECONDS = Real(above=0, noun="a number of seconds")
SCALING = OneOf("columns", "one", "none")
MESSAGES = [
    (Whole(), -1, "x is -1; it must be a whole number, 0 or more"),
    (Whole(at_least=1), 0, f"x is 0; {WHOLE_FROM_1}"),
    (Whole(at_least=1), 1.5, f"x is 1.5; {WHOLE_FROM_1}"),
    (Whole(at_least=1), 2.0, f"x is 2.0; {WHOLE_FROM_1}"),
    (Whole(at_least=1), True, f"x is True; {WHOLE_FROM_1}"),
    (Whole(at_least=1), None, f"x is None; {WHOLE_FROM_1}"),
    (Whole(at_least=1), "3", f"x is '3'; {WHOLE_FROM_1}"),
    (Whole(at_most=9), 10, "x is 10; it must be a whole number from 0 to 9"),
    (Whole(at_most=9), 10**9000, "x is a number of thousands of digits; it must be a whole number from 0 to 9"),
    (Real(), "1", "x is '1'; it must be a finite number"),
    (Real(), math.inf, "x is inf; it must be a finite number"),
    (Real(), 10**400, f"x is 1{'0' * 59}...; it must be a finite number"),
    (Real(infinite=True, noun="a number"), math.nan, "x is nan; it must be a number"),
    (Real(at_least=0), -0.5, "x is -0.5; it must be a finite number, 0 or more"),
    (Real(at_least=0), False, "x is False; it must be a finite number, 0 or more"),
    (Real(at_least=0, at_most=1), 1.01, "x is 1.01; it must be a finite number from 0 to 1"),
    (Real(at_least=0, below=1), 1, "x is 1; it must be a finite number from 0 to below 1"),
    (SECONDS, 0, "x is 0; it must be a number of seconds above 0"),
    (Real(above=0, below=1), 1, "x is 1; it must be a finite number above 0 and below 1"),
    (Real(above=0, at_most=1), 2, "x is 2; it must be a finite number above 0 and at most 1"),
    (Real(at_most=1), 2, "x is 2; it must be a finite number, at most 1"),
    (Real(below=1), 1, "x is 1; it must be a finite number below 1"),
    (SCALING, "colums", "x is 'colums'; did you mean 'columns'?"),
    (SCALING, "robust", "x is 'robust'; it must be 'columns', 'one' or 'none'"),
    (SCALING, 3, "x is 3; it must be 'columns', 'one' or 'none'"),
    (SCALING, ["one"], "x is ['one']; did you mean 'one'?"),
    (Instance(str, "a text"), 3, "x is 3; it must be a text"),
    (Instance((list, tuple), "a list"), "ab", "x is 'ab'; it must be a list"),
    (OrNone(SECONDS), -1, "x is -1; it must be a number of seconds above 0, or None"),
    (OrNone(SCALING), "on", "x is 'on'; did you mean 'one'?"),
    (OrNone(SCALING), 3, "x is 3; it must be 'columns', 'one' or 'none', or None"),
    (Either(Whole(), Instance(list, "a list")), -1, "x is -1; it must be a whole number, 0 or more, or a list"),
]


@pytest.mark.parametrize(("constraint", "value", "message"), MESSAGES, ids=[message[:60] for _, _, message in MESSAGES])
def test_an_error_names_the_parameter_the_value_and_what_is_right(constraint, value, message):
    with pytest.raises(InputError) as caught:
        checked(value, constraint, "x")
    assert str(caught.value) == message


PLAIN = [
    (Whole(), np.int64(3), 3),
    (Whole(), 10**400, 10**400),
    (Real(), np.float32(0.5), 0.5),
    (Real(), 3, 3.0),
    (Real(), Fraction(1, 4), 0.25),
    (Real(infinite=True), math.inf, math.inf),
    (SCALING, "none", "none"),
    (OrNone(Whole()), None, None),
    (OrNone(Whole()), np.uint8(3), 3),
    (Either(Instance(str, "a text"), Whole()), np.int8(3), 3),
]


@pytest.mark.parametrize(
    ("constraint", "value", "plain"), PLAIN, ids=[f"{type(constraint).__name__} {value!r}" for constraint, value, _ in PLAIN]
)
def test_what_is_allowed_comes_back_as_a_value_of_python(constraint, value, plain):
    result = checked(value, constraint, "x")
    assert result == plain
    assert type(result) is type(plain)


ANYTHING = st.one_of(
    *(st.none(), st.booleans(), st.integers(), st.floats(), st.fractions(), st.complex_numbers()),
    *(st.text(max_size=5), st.binary(max_size=3), st.lists(st.integers(), max_size=2)),
    *(st.integers(-5, 5).map(np.int64), st.floats(width=32).map(np.float32)),
)
ENDS = st.one_of(st.none(), st.integers(-5, 5))


@given(ANYTHING, st.integers(-5, 5), ENDS)
def test_no_value_outside_of_a_range_of_whole_numbers_passes(value, low, high):
    right = (
        isinstance(value, (int, np.integer)) and not isinstance(value, bool) and value >= low and (high is None or value <= high)
    )
    assert Whole(low, high).allows(value) == right


@given(ANYTHING, ENDS, ENDS, ENDS, ENDS, st.booleans())
def test_no_value_outside_of_a_range_of_numbers_passes(value, at_least, at_most, above, below, infinite):
    right = isinstance(value, (int, float, Fraction, np.number)) and not isinstance(value, bool) and value == value
    right = right and (infinite or abs(value) != math.inf)
    right = right and not any([
        at_least is not None and value < at_least, at_most is not None and value > at_most,
        above is not None and value <= above, below is not None and value >= below,
    ])  # fmt: skip
    assert Real(at_least, at_most, above, below, infinite).allows(value) == right


@given(ANYTHING, st.lists(st.text(max_size=5), min_size=1, max_size=4))
def test_no_other_word_passes_for_a_choice(value, options):
    assert OneOf(*options).allows(value) == any(type(value) is str and value == option for option in options)
    assert all(OneOf(*options).allows(option) for option in options)


@given(ANYTHING)
def test_an_alternative_allows_what_any_of_its_constraints_allows(value):
    one, other = Whole(at_least=2), OneOf("a", "b")
    assert Either(one, other).allows(value) == (one.allows(value) or other.allows(value))
    assert OrNone(one).allows(value) == (value is None or one.allows(value))


@dataclass(frozen=True)
class Oven:
    degrees: Size = 200
    filled: Share = 0.5
    name: str = "oven"

    def __post_init__(self):
        check_settings(self)


def test_a_dataclass_checks_the_fields_that_have_a_constraint():
    assert Oven(np.int64(3), 1, 5) == Oven(3, 1.0, 5)
    assert (type(Oven(np.int64(3)).degrees), type(Oven(filled=1).filled)) == (int, float)
    with pytest.raises(InputError, match="setting 'degrees' is 0; it must be a whole number, 1 or more"):
        Oven(0)
    with pytest.raises(InputError, match=r"setting 'filled' is 1\.5; it must be a share from 0 to 1"):
        Oven(filled=1.5)


def test_attributes_are_checked_as_the_arguments_of_a_function_are_declared():
    def bake(degrees: Annotated[int, Whole(at_most=300)], name: str) -> None: ...

    oven = Oven(310)
    assert list(constraints(bake)) == ["degrees"]
    with pytest.raises(InputError, match="--degrees is 310; it must be a whole number from 0 to 300"):
        checked_attributes(oven, bake, "--{}".format)
    assert checked_attributes(Oven(290), bake) == {"degrees": 290}


def test_a_damaged_file_has_errors_of_its_own_kind():
    with pytest.raises(StateError, match="the width is -1"):
        checked(-1, Whole(), "the width", StateError)


def test_a_setting_that_does_not_exist_is_refused_with_a_guess():
    check_names(["degrees"], ["degrees", "filled"])
    with pytest.raises(InputError, match="there is no setting 'degree'; did you mean 'degrees'"):
        check_names(["filled", "degree"], ["degrees", "filled"])


@pytest.mark.parametrize("config", [TrainConfig, FamilyConfig])
def test_every_number_among_the_settings_of_training_has_a_constraint(config):
    kinds = get_type_hints(config)
    assert [f.name for f in fields(config) if kinds[f.name] in (int, float) and f.name not in constraints(config)] == []
