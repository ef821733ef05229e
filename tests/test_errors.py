"""Guesses at what was meant: only where a name is close."""

import pytest

from askwise.errors import closest, did_you_mean


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("presure", "pressure"),
        ("thyriod", "thyroid"),
        ("orcale", "oracle"),
        ("blood_count", "blood count"),
        ("AGE", "age"),
        ("aa", "a"),
        ("sxe", "sex"),
        ("--tradeof", "--tradeoff"),
    ],
)
def test_a_close_name_is_guessed(name, known):
    assert closest(name, ["nothing like it", known, "sugar"]) == known


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("target", "age"),
        ("age", "target"),
        ("outcome", "income"),
        ("diagnosis", "dialysis"),
        ("y", "x"),
        ("%", "#"),
        ("patch 7,7", "patch 3,0"),
        ("x12", "x1"),
    ],
)
def test_a_name_that_is_far_off_is_not(name, known):
    assert closest(name, [known, "sugar"]) is None
    assert did_you_mean(name, [known, "sugar"]) == f"there are {known!r}, 'sugar'"


def test_a_number_is_told_from_its_digits():
    assert did_you_mean("1", [0, 1]) == "did you mean 1?"
    assert did_you_mean(1, ["0", "1"]) == "did you mean '1'?"


def test_what_there_is_may_be_cut():
    assert did_you_mean("xyz", range(20), most=3) == "there are 0, 1, 2, ..."
