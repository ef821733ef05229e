"""Gradient boosting with LightGBM, in the few ways in which orders, prefixes and cascades use it.

Rows are weighted by what is at stake in them, so that a rare class with a large loss is not overlooked; in the probabilities that
come out the weighting is undone, so that they can be judged by any loss. A missing value is 0, the training mean, as everywhere.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Doubles, Floats, Ints
from askwise.core.problem import Problem
from askwise.errors import AskwiseError


@dataclass(frozen=True)
class BoostingSettings:
    """The settings of every boosted model."""

    least_hessian: float = 0.5  # of a leaf: leaves of a thin class have next to none, and multi-class boosting would blow up
    l2: float = 1.0  # penalty on the values of leaves, for the same reason
    fewest_rounds: int = 10  # however short the time
    most_rounds: int = 3_000  # however long the time


SETTINGS = BoostingSettings()
MOST_RATE = 0.3  # learning rate, however few rounds there are


def lightgbm() -> Any:
    """The library, loaded only where it is needed."""
    try:
        import lightgbm as library
    except ImportError:
        raise AskwiseError("boosted trees need LightGBM, which is not installed; pip install lightgbm") from None
    return library


def loss_scales(problem: Problem) -> Doubles:
    """K: the largest loss of each class, 1 on average over the rows. A class without a stake counts as the one with the least."""
    most = problem.stakes
    most = np.where(most > 0, most, most[most > 0].min(initial=1.0))
    scaled: Doubles = most / most[problem.y].mean()
    return scaled


def row_weights(problem: Problem) -> Doubles:
    """N: how much a row counts in learning: its stake, and how often it is drawn."""
    weights = loss_scales(problem)[problem.y]
    return weights if problem.weight is None else weights * problem.weight / problem.weight.mean()


def column_gain(X: Floats, y: Ints, weight: Doubles, classes: int, rounds: int, seed: int, threads: int) -> Doubles:
    """C: how much each column helped a small model to tell the classes apart. No tree sees all columns, so that those which say
    nearly the same share the gain."""
    data = lightgbm().Dataset(X, y, weight=weight, params={"verbose": -1}, free_raw_data=True)
    tree = {"num_leaves": 31, "learning_rate": 0.15, "feature_fraction": 0.7}
    model = lightgbm().train(_settings(classes, seed, threads, **tree), data, rounds)
    gain: Doubles = model.feature_importance("gain")
    return gain


class Fitted(NamedTuple):
    """A model, its log loss on validation rows, the seconds that one round took, and how much of its rounds the time allowed."""

    model: Any
    log_loss: float
    per_round: float
    reached: float = 1.0
    curve: tuple[float, ...] = ()  # the log loss after each round that there is time for, also after the best


def boost(
    train: tuple[Floats, Ints, Doubles],
    validation: tuple[Floats, Ints, Doubles],
    classes: int,
    *,
    seconds: float,
    seed: int,
    threads: int,
    rounds: int | None = None,
    rate: float | None = None,
    keeps_all: bool = False,
    **tree: Any,
) -> Fitted:
    """A classifier from (X, y, weights), stopped where the validation rows are predicted best, unless it `keeps_all` its rounds.

    It fits into its seconds: the first rounds are timed, and the more rounds there is time for, the smaller the learning rate.
    With a number of `rounds` given there are no more than these, with `rate` as the learning rate, or fewer with a larger one.
    """
    library, began = lightgbm(), time.monotonic()
    X, y, weight = train
    data = library.Dataset(X, y, weight=weight, params={"verbose": -1})
    rate = 0.1 if rounds is None else rate or _rate(rounds)
    model = library.Booster(_settings(classes, seed, threads, learning_rate=rate, **tree), data)
    Xv, yv, wv = validation
    model.add_valid(library.Dataset(Xv, yv, weight=wv, reference=data), "validation")
    built = time.monotonic()
    best, at, done, most, patience = np.inf, 0, 0, rounds or SETTINGS.fewest_rounds, max(20, round(3 / rate))
    reached = 1.0
    curve: list[float] = []
    while done < most:
        stuck = model.update()
        done += 1
        curve.append(now := model.eval_valid()[0][2])
        if now < best - 1e-7:
            best, at = now, done
        if done == 3:
            fits = (seconds - (built - began)) * 3 / max(time.monotonic() - built, 1e-9)
            if rounds is None or fits < rounds:
                most = int(np.clip(fits, min(SETTINGS.fewest_rounds, rounds or SETTINGS.fewest_rounds), SETTINGS.most_rounds))
                reached = 1.0 if rounds is None else most / rounds
                rate = _rate(most) if rounds is None else min(rate / reached, max(rate, MOST_RATE))
                patience = max(20, round(3 / rate))
                model.reset_parameter({"learning_rate": rate})
        if stuck or done - at > patience:
            most, reached = done, 1.0  # more would not help
        elif done >= SETTINGS.fewest_rounds and time.monotonic() - began > 1.2 * seconds:
            break
    per_round = (time.monotonic() - built) / done
    # a copy of the rounds that are kept, without the data
    small = library.Booster(model_str=model.model_to_string(num_iteration=done if keeps_all else max(at, 1)))
    return Fitted(small, float(best), per_round, reached * done / most, tuple(curve))


def _rate(rounds: int) -> float:
    return float(np.clip(40 / rounds, 0.02, MOST_RATE))


@dataclass(frozen=True, eq=False)
class Boosted:
    """p(y | some columns): the mean over one or more models."""

    models: tuple[Any, ...]
    columns: Ints
    scales: Doubles  # K, the weighting that is undone
    threads: int

    def __call__(self, values: Floats) -> Doubles:
        """B, K from B, C."""
        X = np.ascontiguousarray(values[:, self.columns])
        weighted = sum(probabilities(model, X, self.threads) for model in self.models) / len(self.models)
        return unweighted(np.asarray(weighted), self.scales)


@dataclass(frozen=True, eq=False)
class ClassShares:
    """The same probabilities for every case, for where there is nothing to look at."""

    classes: Doubles  # K

    @classmethod
    def of(cls, problem: Problem) -> ClassShares:
        drawn = np.bincount(np.asarray(problem.y), problem.weight, minlength=problem.schema.n_classes)
        return cls(drawn / drawn.sum())

    def __call__(self, values: Floats) -> Doubles:
        return np.tile(self.classes, (len(values), 1))


def probabilities(model: Any, X: Floats, threads: int) -> Doubles:
    """B, K, with the classes weighted as in training."""
    p: Doubles = model.predict(X, num_threads=threads)
    return np.stack([1 - p, p], 1) if p.ndim == 1 else p


def unweighted(p: Doubles, scales: Doubles) -> Doubles:
    """B, K: the probabilities of cases as they come, from those of a model that was trained with its rows weighted by stake."""
    undone = p / scales
    plain: Doubles = undone / undone.sum(1, keepdims=True)
    return plain


def regression(X: Doubles, target: Doubles, seed: int, threads: int) -> Any:
    """A small model of a number. Call its `predict`."""
    settings = {"objective": "l2", "num_leaves": 15, "learning_rate": 0.15, "min_data_in_leaf": max(20, len(X) // 200)}
    data = lightgbm().Dataset(X, target, params={"verbose": -1, "min_data_in_bin": 3})
    return lightgbm().train({**settings, **_always(seed, threads)}, data, 30)


def _settings(classes: int, seed: int, threads: int, **tree: Any) -> dict[str, Any]:
    kind: dict[str, Any] = {"objective": "binary", "metric": "binary_logloss"}
    if classes > 2:
        kind = {"objective": "multiclass", "metric": "multi_logloss", "num_class": classes}
    return {**kind, "min_sum_hessian_in_leaf": SETTINGS.least_hessian, "lambda_l2": SETTINGS.l2, **_always(seed, threads), **tree}


def _always(seed: int, threads: int) -> dict[str, Any]:
    return {"verbose": -1, "num_threads": threads, "seed": seed, "deterministic": True, "force_col_wise": True}
