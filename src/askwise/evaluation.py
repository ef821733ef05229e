"""What a policy comes to on rows whose labels are known: one row per case, and the usual summaries."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Array, Bools, Doubles, Ints
from askwise.core.budget import Budget
from askwise.core.episode import Episodes, by_row, rollout, tally
from askwise.core.measures import Mean, Measure
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.core.ranking import auroc
from askwise.core.scoring import case_losses
from askwise.core.shares import Share, confusion, shares
from askwise.errors import InputError


class Estimate(NamedTuple):
    """A figure and its standard error."""

    value: float
    error: float


@dataclass(frozen=True, eq=False)
class Report:
    """What was bought, paid, said and true, case by case."""

    problem: Problem
    episodes: Episodes

    def __repr__(self) -> str:
        return f"Report({len(self.episodes.row)} cases, mean cost {self.cost:.4g})"

    @cached_property
    def truth(self) -> Ints:
        if self.problem.y is None:
            raise InputError("these rows have no target, so accuracy and loss cannot be measured")
        return self.problem.y

    def _mean(self, values: Array) -> Any:
        """Over the cases, each of which counts as much as its row."""
        return self.problem.mean(values, self.episodes.row)

    @property
    def cost_per_case(self) -> Doubles:
        """In money."""
        money: Doubles = self.problem.schema.costs.money(self.episodes.cost)
        return money

    @property
    def cost(self) -> float:
        """Mean cost."""
        return float(self._mean(self.cost_per_case))

    @property
    def loss(self) -> float:
        """Mean loss."""
        return float(self._mean(self.episodes.loss))

    @property
    def accuracy(self) -> float:
        """The share of all cases for which the right class was decided."""
        return float(self._mean(self.episodes.decision == self.truth))

    @property
    def balanced_accuracy(self) -> float:
        """Mean of the recall of the classes that occur."""
        return float(np.mean([share.value for share in self._occurring]))

    @property
    def balanced_accuracy_error(self) -> float:
        """Its standard error: classes are measured on different cases."""
        errors = [share.error for share in self._occurring]
        return math.hypot(*errors) / len(errors)

    @property
    def _occurring(self) -> list[Share]:
        """The recall of the classes that occur."""
        return [share for share in self.recall.values() if not math.isnan(share.value)]

    @cached_property
    def confusion(self) -> Doubles:
        """K, D: for how many cases of each class (row) each decision (column) was made. Weighted rows count as often as their
        weights say."""
        schema = self.problem.schema
        return confusion(self.truth, self.episodes.decision, (schema.n_classes, schema.n_decisions), self._weights)

    @cached_property
    def recall(self) -> dict[Any, Share]:
        """By class: the share of its cases that were decided rightly; NaN for a class without cases."""
        return self._right_by(self.truth)

    @cached_property
    def precision(self) -> dict[Any, Share]:
        """By class: the share of the decisions for it that were right; NaN for a class that was never decided for."""
        return self._right_by(self.episodes.decision)

    @cached_property
    def other_decisions(self) -> dict[str, Share]:
        """By decision that is not a class: the share of all cases for which it was made."""
        schema, all_alike = self.problem.schema, np.zeros(len(self.truth), np.int64)
        numbers = range(schema.n_classes, schema.n_decisions)
        each = [shares(self.episodes.decision == d, all_alike, 1, self._weights)[0] for d in numbers]
        return dict(zip(schema.other_decisions, each, strict=True))

    @cached_property
    def classified_accuracy(self) -> Share:
        """The share of right decisions among the cases for which a class was decided."""
        right, others = self.episodes.decision == self.truth, self.episodes.decision >= self.problem.schema.n_classes
        return shares(right, others.astype(np.int64), 2, self._weights)[0]

    def _right_by(self, group: Ints) -> dict[Any, Share]:
        right, schema = self.episodes.decision == self.truth, self.problem.schema
        of = shares(right, group, schema.n_decisions, self._weights)[: schema.n_classes]
        return dict(zip(schema.classes, of, strict=True))

    @property
    def belief(self) -> Doubles | None:
        """N, K: the class probabilities with which each case was decided; None where they are not known."""
        return self.episodes.belief

    @property
    def log_loss(self) -> Estimate | None:
        """Mean of -log p of the true class, in nats; None where beliefs are not known. Class weights do not count, rows do."""
        return self._scored("log")

    @property
    def brier_score(self) -> Estimate | None:
        """Mean of the squared distance of the belief from the truth, summed over all classes: from 0 to 2."""
        return self._scored("brier")

    def _scored(self, rule: str) -> Estimate | None:
        if self.belief is None:
            return None
        mean = Mean.of(case_losses(self.belief, self.truth, rule), self._weights)
        return Estimate(mean.value, mean.error)

    @cached_property
    def auroc(self) -> Estimate | None:
        """Area under the ROC curve: of two classes that of the second, of more the mean of each against all others; None where
        beliefs are not known, or all cases are of one class."""
        area = None if self.belief is None else auroc(self.belief, self.truth, self._weights)
        return None if area is None else Estimate(area.value, area.error)

    @property
    def _weights(self) -> Doubles | None:
        weight = None if self.problem.weight is None else self.problem.weight[self.episodes.row]
        return weight if weight is not None and weight.any() else None  # of rows none of which counts, all count alike

    @cached_property
    def measure(self) -> Measure:
        """The means with their standard errors."""
        return tally(self.problem, self.episodes).measure(self.problem.schema.costs)

    @property
    def known(self) -> Bools | None:
        """N, F: what each case knew from the start; None: nothing."""
        return None if self.problem.known is None else self.problem.known[self.episodes.row]

    @property
    def bought_mask(self) -> Bools:
        """N, F: what each case bought."""
        return self.episodes.mask if self.known is None else self.episodes.mask & ~self.known

    @property
    def bought(self) -> dict[str, float]:
        """How often each test was bought, by name."""
        return dict(zip(self.problem.schema.tests, self._mean(self.bought_mask).tolist(), strict=True))

    def tests_of(self, case: int) -> list[str]:
        """The tests of one case in the order bought, those bought for the existing classifier last."""
        return list(self.sequences[case])

    @cached_property
    def sequences(self) -> list[tuple[str, ...]]:
        """The same of every case."""
        done, schema = self.episodes, self.problem.schema
        bought = done.action >= schema.first_test
        ordered = iter(np.array(schema.tests, object)[done.action[bought] - schema.first_test])
        one: dict[tuple[str, ...], tuple[str, ...]] = {}  # many cases buy the same, and share a tuple
        each = (tuple(islice(ordered, n)) for n in (done.length - 1).tolist())  # all actions but the last buy a test
        plain = [one.setdefault(tests, tests) for tests in each]
        if schema.external_needs is None:
            return plain
        return [
            (*chosen, *(t for t, has in zip(schema.tests, row, strict=True) if has and t not in chosen))
            for chosen, row in zip(plain, self.bought_mask, strict=True)
        ]


def mixed(first: Report, second: Report, takes_second: Bools) -> Report:
    """What comes of following the second for some of the cases, which are the same in both."""
    parts = [(first, ~takes_second), (second, takes_second)]
    done = by_row([report.episodes.take(np.flatnonzero(who)) for report, who in parts if who.any()])
    return Report(first.problem, done)


def evaluate(policy: Policy, problem: Problem, budget: Budget) -> Report:
    """Rolls the policy out over all rows, under the budget's hard part."""
    return Report(problem, rollout(problem, policy, budget.cap(problem.schema.costs), beliefs=True))
