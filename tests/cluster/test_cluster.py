"""What bench and predict ask of a cluster, without one: which words name it, and results in the order of the jobs."""

import random

import pytest

from askwise import cluster
from askwise.cluster import in_order
from askwise.errors import InputError


def test_results_come_in_the_order_of_the_jobs_however_they_end() -> None:
    for seed in range(20):
        numbered = list(enumerate("abcdefgh"))
        ended = random.Random(seed).sample(numbered, len(numbered))
        assert list(in_order(ended)) == numbered


def test_a_result_is_given_as_soon_as_all_before_it_have_ended() -> None:
    ended = iter([(1, "b"), (0, "a"), (2, "c")])
    ordered = in_order(ended)
    assert next(ordered) == (0, "a")
    assert next(ordered) == (1, "b")
    assert next(ended) == (2, "c")  # nobody has asked for it yet


@pytest.mark.parametrize("engine", ["local", "dask", "dask://10.0.0.5:8786"])
def test_words_that_name_an_engine(engine: str) -> None:
    assert cluster.checked(engine) == engine


@pytest.mark.parametrize("engine", ["", "spark", "dask://", "dask://host", "tcp://host:1", "dask://a/b:1"])
def test_other_words_are_refused_with_what_would_be_right(engine: str) -> None:
    with pytest.raises(InputError, match="it must be 'local', 'dask' for a cluster on this machine, or dask://HOST:PORT"):
        cluster.checked(engine)


def test_there_is_a_core() -> None:
    assert cluster.cores() >= 1
