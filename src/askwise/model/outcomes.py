"""How it ended: how often cases of each class are decided rightly, what they buy, and how far probabilities can be trusted."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Doubles
from askwise.core.shares import wilson
from askwise.evaluation import Report

BINS = 10
MOST_CLASSES = 12  # of more than these it is not kept what each of them buys
MOST_SHARES = 4000  # nor where that would be more numbers than this


class ClassOutcome(NamedTuple):
    """What became of the cases of one class."""

    cases: float
    recall: float  # share of them that was decided rightly
    error: float  # its standard error
    bought: tuple[float, ...] | None = None  # F: share of them that bought each test; None: not kept


class Bin(NamedTuple):
    """Cases that had about the same probability."""

    cases: float
    probability: float  # mean
    share: float  # of them for which it came true

    @property
    def place(self) -> int:
        """Which of the tenths it is, from 0."""
        return _place(self.probability)

    @property
    def interval(self) -> tuple[float, float]:
        """Of the share, as wide as one standard error to either side."""
        return wilson(self.share, self.cases, 1)


@dataclass(frozen=True)
class Outcomes:
    """Of some cases, under one budget."""

    classes: tuple[ClassOutcome, ...]  # in the order of the schema
    bins: tuple[Bin, ...]  # by rising probability; empty where probabilities are not known
    about: int | None  # the class whose probability the bins tell; None: the class that was decided for

    @property
    def cases(self) -> int:
        return round(sum(each.cases for each in self.classes))

    @property
    def calibration_error(self) -> float:
        """How far the share of a bin is from the mean probability, on average over cases."""
        total = sum(b.cases for b in self.bins)
        return sum(b.cases * abs(b.share - b.probability) for b in self.bins) / total if total else 0.0

    def mixed(self, other: Outcomes, share: float) -> Outcomes:
        """What comes of following the other in this share of the cases."""
        if not share:
            return self
        both = 1 - share, share
        classes = tuple(_mixed_class(pair, both) for pair in zip(self.classes, other.classes, strict=True))
        by_place: dict[int, list[Bin]] = {}
        for outcomes, part in zip((self, other), both, strict=True):
            for each in outcomes.bins:
                by_place.setdefault(each.place, []).append(each._replace(cases=part * each.cases))
        return Outcomes(classes, tuple(_joined(by_place[i]) for i in sorted(by_place)), self.about)

    def to_facts(self) -> dict[str, Any]:
        """In words that fit into JSON."""
        bought = [[round(s, 5) for s in each.bought] for each in self.classes if each.bought is not None]
        return {
            "recall": [[each.cases, round(each.recall, 8), round(each.error, 8)] for each in self.classes],
            "bins": [[each.cases, round(each.probability, 5), round(each.share, 5)] for each in self.bins],
            "about": self.about,
            "by_class": bought or None,
        }

    @classmethod
    def from_facts(cls, facts: dict[str, Any]) -> Outcomes:
        """The inverse of `to_facts`."""
        bought = facts["by_class"] or [None] * len(facts["recall"])
        classes = tuple(
            ClassOutcome(cases, recall, error, None if own is None else tuple(own))
            for (cases, recall, error), own in zip(facts["recall"], bought, strict=True)
        )
        return cls(classes, tuple(Bin(*each) for each in facts["bins"]), facts["about"])


def outcomes_of(report: Report) -> Outcomes:
    """What became of cases whose classes are known."""
    schema, truth = report.problem.schema, report.truth
    kept = schema.n_classes <= MOST_CLASSES and schema.n_classes * schema.n_tests <= MOST_SHARES
    bought, classes = report.bought_mask, []
    for k, recall in enumerate(report.recall.values()):
        of = truth == k
        if math.isnan(recall.value):
            classes.append(ClassOutcome(0, 0.0, 0.0, (0.0,) * schema.n_tests if kept else None))
            continue
        shares = tuple(np.asarray(report.problem.mean(bought[of], np.flatnonzero(of))).tolist()) if kept else None
        classes.append(ClassOutcome(int(of.sum()), recall.value, recall.error, shares))
    about = int(np.argmin([each.cases for each in classes])) if schema.n_classes == 2 else None
    return Outcomes(tuple(classes), () if report.belief is None else _bins(report, report.belief, about), about)


def _bins(report: Report, belief: Doubles, about: int | None) -> tuple[Bin, ...]:
    decision = report.episodes.decision
    named = decision if about is None else np.full(len(decision), about)
    of_class = named < belief.shape[1]  # where something else is decided, nothing is said that could be right
    weight = (np.ones(len(named)) if report.problem.weight is None else report.problem.weight)[of_class]
    belief, truth, named = belief[of_class], report.truth[of_class], named[of_class]
    probability, true = belief[np.arange(len(named)), named], truth == named
    place = np.array([_place(p) for p in probability.tolist()], np.int64)
    bins = []
    for i in np.unique(place[weight > 0]).tolist():
        of = place == i
        mean = [float(np.average(values[of], weights=weight[of])) for values in (probability, true)]
        bins.append(Bin(int(of.sum()), mean[0], mean[1]))
    return tuple(bins)


def _place(probability: float) -> int:
    return min(int(probability * BINS), BINS - 1)


def _mixed_class(pair: tuple[ClassOutcome, ClassOutcome], both: tuple[float, float]) -> ClassOutcome:
    """Of the same cases, so that errors add up rather than average out."""
    first, second = pair

    def mean(a: float, b: float) -> float:
        return both[0] * a + both[1] * b

    bought = None
    if first.bought is not None and second.bought is not None:
        bought = tuple(map(mean, first.bought, second.bought))
    return ClassOutcome(first.cases, mean(first.recall, second.recall), mean(first.error, second.error), bought)


def _joined(bins: list[Bin]) -> Bin:
    cases = sum(b.cases for b in bins)
    probability, share = (sum(b.cases * b[i] for b in bins) / cases if cases else bins[0][i] for i in (1, 2))
    return Bin(cases, probability, share)
