"""Missing values of training data, filled by guessing: what the paper compares its own way of learning from them with.

`mean`: each column's mean. `mice`: chained equations with linear regression; again and again each test is regressed on all
others, over the rows that have it, and predicted where it is lacking. Both are fitted on the training rows alone, and what comes
out is regarded as complete.

A test of several columns is lacking as a whole and predicted as a whole: its columns say nothing about each other. So a category
gets shares rather than one of its values; like every other value they stay within what was seen in training.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from askwise.core.arrays import Bools, Doubles, Ints
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.errors import InputError, did_you_mean

KINDS = ("mean", "mice")


@dataclass(frozen=True)
class ImputationSettings:
    """The settings of chained equations."""

    rounds: int = 10  # in which all tests are predicted once more
    most_rows: int = 20_000  # from which the regressions are learned


SETTINGS = ImputationSettings()


def impute(kind: str, train: Problem, *others: Problem, seed: int = 0) -> list[Problem]:
    """The training rows, and others such as validation rows, completed by what the training rows say. Not for test rows: what a
    case lacks cannot be bought for it."""
    if kind not in KINDS:
        raise InputError(f"there is no imputation {kind!r}; {did_you_mean(kind, KINDS)}")
    guess = _Guess(train, SETTINGS.most_rows if kind == "mice" else 0, SETTINGS.rounds if kind == "mice" else 0, seed)
    return [guess(problem) for problem in (train, *others)]


def remove(problem: Problem, share: float, seed: int = 0) -> Problem:
    """The same rows without a share of their values, whole tests at a time, completely at random. What a case knows it keeps.

    Paper: section 4.8, missing features
    """
    if not 0 <= share <= 1:
        raise InputError(f"the share to remove is {share!r}; it must be between 0 and 1")
    stays = np.random.default_rng(seed).random((len(problem), problem.schema.n_tests)) >= share
    if problem.available is not None:
        stays &= problem.available
    if problem.known is not None:
        stays |= problem.known
    X = np.where(problem.schema.by_column(stays), problem.X, np.float32(0))
    return replace(problem, X=X, available=None if stays.all() else stays)


class _Guess:
    """Means, and regressions that make them better one after the other."""

    def __init__(self, train: Problem, rows: int, rounds: int, seed: int) -> None:
        there = train.schema.by_column(_available(train))
        n = np.maximum(there.sum(0), 1)
        self.mean = np.where(there, train.X, 0).sum(0, dtype=np.float64) / n
        lowest, highest = np.where(there, train.X, np.inf).min(0), np.where(there, train.X, -np.inf).max(0)
        self.low, self.high = (np.where(there.any(0), end, 0) for end in (lowest, highest))
        self.steps: list[tuple[int, Any]] = []  # a test, and the model of its columns
        if train.available is not None:
            self._learn(train.take(some_rows(len(train), rows, seed)), rounds)

    def _learn(self, train: Problem, rounds: int) -> None:
        from sklearn.linear_model import LinearRegression

        there, owner = _available(train), train.schema.owner
        gaps = (~there).sum(0)
        lacking = [f for f in np.argsort(gaps, kind="stable").tolist() if 0 < gaps[f] < len(train)]  # those with few gaps first
        X = self._start(train)
        for f in lacking * rounds if train.schema.n_tests > 1 else ():
            own, has = owner == f, there[:, f]
            self.steps.append((f, LinearRegression().fit(X[np.ix_(has, ~own)], X[np.ix_(has, own)])))
            self._step(*self.steps[-1], X, ~has, owner)

    def _start(self, problem: Problem) -> Doubles:
        return np.where(problem.schema.by_column(_available(problem)), problem.X.astype(np.float64), self.mean)

    def _step(self, test: int, model: Any, X: Doubles, lacks: Bools, owner: Ints) -> None:
        own = owner == test
        if lacks.any():
            guessed = model.predict(X[np.ix_(lacks, ~own)])
            X[np.ix_(lacks, own)] = np.clip(guessed, self.low[own], self.high[own])

    def __call__(self, problem: Problem) -> Problem:
        """The same rows, complete."""
        if problem.available is None:
            return problem
        X = self._start(problem)
        for test, model in self.steps:
            self._step(test, model, X, ~problem.available[:, test], problem.schema.owner)
        return replace(problem, X=X.astype(np.float32), available=None)


def _available(problem: Problem) -> Bools:
    return np.ones((len(problem), problem.schema.n_tests), bool) if problem.available is None else problem.available
