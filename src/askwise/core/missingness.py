"""Rows with missing values, made complete for learning, so that missingness tells nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist

import numpy as np

from askwise.core.arrays import Bools, Doubles, Floats
from askwise.core.problem import Problem


def filled(problem: Problem, seed: int = 0, copied: Callable[[Floats], Floats] = np.copy) -> Problem:
    """The same rows as if they were complete: what a row lacks it takes, test by test, from another row of its class, by lot.

    Neither of the simpler ways would do where gaps go with the class. Filled with their mean, gaps are known by this very value;
    and if rows are learned from only as far as they go, then to hold a test is to be one of those who have it. Here each class
    keeps its share of the rows and its values, whatever is held. What two tests say together is learned from rows that have both,
    and else as if they had nothing to do with each other.

    A test that no row of a class has is taken from any row; one that no row has at all stays 0 for all. `copied`: makes the copy
    that is filled.
    """
    if problem.available is None:
        return problem
    rng, schema, y = np.random.default_rng(seed), problem.schema, np.asarray(problem.labelled().y)
    X = copied(problem.X)
    for test in np.flatnonzero(~problem.available.all(0)).tolist():
        has, columns = problem.available[:, test], np.flatnonzero(schema.owner == test)
        for k in range(schema.n_classes):
            lacks = np.flatnonzero(~has & (y == k))
            givers = np.flatnonzero(has & (y == k))
            givers = givers if len(givers) else np.flatnonzero(has)
            if len(lacks) and len(givers):
                X[np.ix_(lacks, columns)] = problem.X[np.ix_(rng.choice(givers, len(lacks)), columns)]
    return replace(problem, X=X, available=None)


def go_with_class(problem: Problem) -> bool:
    """Whether gaps would teach the class to someone who is not told of them. Who is told learns from rows as they are."""
    return not problem.schema.tells_gaps and bool(lacked_by_class(problem).any())


def lacked_by_class(problem: Problem, unlikely: float = 1e-3) -> Bools:
    """F: which tests rows of some class lack more often than chance explains: a chi-squared test for each test that has gaps.
    `unlikely`: the probability of an error, for all tests together."""
    if problem.available is None:
        return np.zeros(problem.schema.n_tests, bool)
    y, K = np.asarray(problem.labelled().y), problem.schema.n_classes
    rows = np.bincount(y, minlength=K)[:, None]
    gaps = np.stack([np.bincount(y, ~has, K) for has in problem.available.T], 1)  # K, F
    share = gaps.sum(0) / rows.sum()
    has_gaps = (share > 0) & (share < 1)
    expected = rows * share
    with np.errstate(divide="ignore", invalid="ignore"):
        off = np.where(rows > 0, (gaps - expected) ** 2 / (expected * (1 - share)), 0).sum(0)
    threshold = chi_squared(int((rows > 0).sum()) - 1, unlikely / max(int(has_gaps.sum()), 1))
    lacked: Bools = has_gaps & (off > threshold)
    return lacked


def chi_squared(freedom: int, chance: float) -> float:
    """What a sum of so many squared normal variables exceeds with this chance, after Wilson and Hilferty."""
    if freedom < 1:
        return math.inf
    spread = 2 / (9 * freedom)
    return float(freedom * (1 - spread + NormalDist().inv_cdf(1 - chance) * spread**0.5) ** 3)


def lacking(problem: Problem) -> Doubles:
    """F: the share of rows that lack each test."""
    if problem.available is None:
        return np.zeros(problem.schema.n_tests)
    share: Doubles = 1 - problem.mean(problem.available)
    return share


def lost(share: Doubles, n: int, rng: np.random.Generator) -> Bools:
    """n, F: tests that cases in training cannot have: as often as rows lack them, but by lot, whatever the class."""
    if not share.any():
        return np.zeros((n, len(share)), bool)
    return rng.random((n, len(share))) < share
