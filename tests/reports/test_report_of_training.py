"""What is said of a training."""

from types import SimpleNamespace

import pytest

from askwise.reports.training import gain_of_late


def told(areas, algorithm="family"):
    return gain_of_late(SimpleNamespace(facts={"algorithm": algorithm, "areas": [[i, area] for i, area in enumerate(areas)]}))


@pytest.mark.parametrize(
    ("areas", "words"),
    [
        ([0.8, 0.85, 0.88, 0.9], "rose by 0.050: more time may bring more"),
        ([0.8, 0.9, 0.9, 0.9015], "no more than 0.002: more time would bring little"),
        ([0.8, 0.9, 0.7, 0.6], "no more than 0.002: more time would bring little"),
    ],
)
def test_the_later_half_of_a_training_is_compared_with_the_earlier(areas, words):
    assert told(areas).endswith(words)


@pytest.mark.parametrize(("areas", "algorithm"), [([], "family"), ([0.5, 0.6, 0.7], "family"), ([0.5, 0.6, 0.7, 0.8], "stack")])
def test_nothing_is_said_of_too_few_measurements_and_of_other_algorithms(areas, algorithm):
    assert told(areas, algorithm) == ""
