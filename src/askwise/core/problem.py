"""The rows that are decided or learned from, and how decisions are judged.

Variants of the problem are data here and in `schema`, not flags elsewhere: missing values are `Problem.available`, features
known before the start `Problem.known`, misclassification costs and class weights `Problem.loss`, probabilities as the
goal `Problem.rule`, weights of rows `Problem.weight`, an existing classifier `Problem.external`.

Shapes: N rows, C columns, F tests, K classes, D decisions: the classes and then others, such as sending a case to a specialist;
A = D (+ 1) + F actions: decisions first, then the existing classifier, then tests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from askwise.core.arrays import Array, Bools, Doubles, Floats, Ints
from askwise.core.labels import class_codes
from askwise.core.losses import class_weights, external_probabilities, loss_matrix, row_weights, scoring_rule
from askwise.core.rows import known_mask, value_table
from askwise.core.sampling import hash_cases
from askwise.core.schema import Schema
from askwise.core.scoring import belief_loss, case_losses
from askwise.errors import InputError

NEVER_LOSS = 1e30  # of what must not be decided


@dataclass(frozen=True, eq=False)
class Problem:
    """Rows of cases. X holds 0 where a value is missing; `available` says which tests a row can be sold."""

    schema: Schema
    X: Floats  # N, C
    y: Ints | None  # N, classes as 0..K-1; None when only decisions are wanted
    available: Bools | None  # N, F; None: every row has every test
    known: Bools | None  # N, F; None: no case knows anything at the start
    loss: Doubles  # K, D: loss[truth, decision]
    weight: Doubles | None  # N: how often a row is drawn in training, and how much it counts in every mean; None: all alike
    external: Ints | None  # N: what the existing classifier says
    ids: Array | None  # N: names of the cases, for draws that do not depend on the batch
    rule: str | None = None  # the scoring rule by which beliefs are judged, see `scoring`; None: decisions are, by `loss`
    external_belief: Doubles | None = None  # N, K: under a scoring rule, the probabilities of the existing classifier

    @classmethod
    def build(
        cls,
        schema: Schema,
        X: ArrayLike,
        y: ArrayLike | None = None,
        *,
        known: ArrayLike | Sequence[str] | None = None,
        loss: ArrayLike | str | None = None,
        class_weight: Mapping[Any, float] | str | None = None,
        weight: ArrayLike | str | None = None,
        external: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> Problem:
        """Checks everything once, so that nothing below needs to.

        Parameters
        ----------
        schema : Schema
        X : array-like of shape (N, C)
            Numbers, scaled, NaN where missing. A test with a missing column cannot be bought for that row, nor can one that
            is computed from it.
        y : array-like of shape (N,), default=None
            Values from `schema.classes`.
        known : sequence of str, or bool array of shape (N, F), default=None
            Tests free for everyone, or what each row knows.
        loss : array-like of shape (K, D), 'log' or 'brier', default=None
            `loss[truth, decision]`; 0/1 by default. A word is a scoring rule: what is lost is a matter of the class
            probabilities, not of the class that is named.
        class_weight : dict or 'balanced', default=None
            Multiplies the losses of cases of a class, so that costs are still averaged over the cases as they come.
        weight : array-like of shape (N,) or 'balanced', default=None
            How much each row counts, as if it were there so many times.
        external : array-like of shape (N,) or (N, K), default=None
            What the existing classifier says of each row: its class or, under a scoring rule, its class probabilities.
        ids : array-like of shape (N,), default=None
            Names of the cases.

        Returns
        -------
        Problem
        """
        K, data = schema.n_classes, value_table(X, schema.columns)
        n, available = len(data), schema.present(data)
        labels = None if y is None else class_codes(y, schema.classes, n, "the target")
        mask = None if known is None else known_mask(known, schema.tests, available, n)
        if available is not None:
            held = np.zeros_like(available) if mask is None else mask
            can = schema.costs.obtainable(available, held) | held
            data = np.where(np.isnan(data) | schema.by_column(available & ~can), np.float32(0), data)
            available = can
        if external is not None and schema.external_needs is None:
            raise InputError("answers of an existing classifier are given, but the schema does not say which tests it needs")
        if external is None and schema.external_needs is not None:
            raise InputError("the schema has an existing classifier, but its answers for these rows are not given")
        rule = scoring_rule(loss)
        believed = None if external is None or rule is None else external_probabilities(external, n, K, rule)
        named = external if believed is None else np.array(schema.classes, object)[believed.argmax(1)]
        answers = None if named is None else class_codes(named, schema.classes, n, "the existing classifier")
        names = None if ids is None else np.asarray(ids)
        if names is not None and names.shape != (n,):
            raise InputError(f"the case ids have shape {names.shape}; there must be one for each of {n} rows")
        unjudged = cls(schema, data, labels, available, mask, np.zeros((0, 0)), None, answers, names, rule, believed)
        return unjudged.judged(loss, class_weight, weight)

    def judged(
        self, loss: ArrayLike | str | None, class_weight: Mapping[Any, float] | str | None, weight: ArrayLike | str | None
    ) -> Problem:
        """The same rows with other losses and weights, which are as for `build`; the scoring rule stays."""
        schema, rule = self.schema, self.rule
        draws = None if weight is None else row_weights(weight, self.y, schema.n_classes, len(self))
        weights = 1.0 if class_weight is None else class_weights(class_weight, self.y, schema.classes, draws)
        if rule is not None and schema.other_decisions:
            other = f"{schema.other_decisions[0]!r} is a decision that is not a class"
            raise InputError(f"the loss {rule!r} judges class probabilities, and {other}; use a loss matrix")
        losses = loss_matrix(None if rule else loss, schema.classes, weights, schema.other_decisions)
        return replace(self, loss=losses, weight=draws)

    @classmethod
    def joined(cls, parts: Sequence[Problem], X: Floats) -> Problem:
        """The rows of all parts, one after the other. Their values are in X, and all else is as in the first."""

        def together(name: str) -> Any:
            there = [getattr(part, name) for part in parts]
            return None if there[0] is None else np.concatenate(there)

        rest = {name: together(name) for name in ("y", "known", "weight", "external", "ids", "external_belief")}
        available = None
        if any(part.available is not None for part in parts):  # a part may lack nothing
            available, first = np.ones((len(X), parts[0].schema.n_tests), bool), 0
            for part in parts:
                last = first + len(part.labels)
                if part.available is not None:
                    available[first:last] = part.available
                first = last
        return replace(parts[0], X=X, available=available, **rest)

    @classmethod
    def of_states(cls, schema: Schema, X: Floats, available: Bools | None, known: Bools | None, loss: Doubles) -> Problem:
        """Cases as they stand now, checked already, for policies that draw nothing: no names need to be hashed."""
        problem = cls(schema, X, None, available, known, loss, weight=None, external=None, ids=None)
        vars(problem)["keys"] = np.zeros(len(X), np.uint64)
        return problem

    def __len__(self) -> int:
        return len(self.X)

    def __repr__(self) -> str:
        return f"Problem({len(self)} rows, {self.schema!r})"

    def take(self, rows: Array | slice) -> Problem:
        """The same problem on some of the rows."""
        picked: dict[str, Any] = {
            name: None if getattr(self, name) is None else getattr(self, name)[rows]
            for name in ("X", "y", "available", "known", "weight", "external", "ids", "external_belief")
        }
        return replace(self, **picked)

    def with_loss(self, loss: Doubles) -> Problem:
        """The same rows judged by another loss, for instance a validation set by the training set's class weights."""
        return replace(self, loss=loss)

    def labelled(self) -> Problem:
        """Itself, if its classes are known."""
        if self.y is None:
            raise InputError("there is no target to learn from")
        return self

    @property
    def labels(self) -> Ints:
        """N: the classes of the rows, which must be known."""
        return np.asarray(self.labelled().y)

    def trainable(self) -> Problem:
        """Itself, if a policy can be learned from it."""
        present = np.unique(self.labels)
        if len(present) < 2:
            raise InputError(
                f"all rows are of one class, {self.schema.classes[present[0]]!r}; learning needs rows of two classes or more"
            )
        return self

    def mean(self, values: Array, rows: Ints | None = None) -> Any:
        """Of values of all rows or, where these are given, of some: each row counts as much as its weight says."""
        weight = self.weight if rows is None or self.weight is None else self.weight[rows]
        if weight is None or not weight.any():  # of rows none of which counts, all count alike
            return values.mean(0)
        return np.average(values, 0, weight)

    @cached_property
    def stakes(self) -> Doubles:
        """K: the largest loss of a case of each class."""
        stakes: Doubles = self.loss.max(1)
        return stakes

    @cached_property
    def free_loss(self) -> Doubles:
        """K, D: the losses, where a decision that costs something loses more than anything: for policies that do not weigh
        what decisions cost."""
        free: Doubles = np.where(self.schema.decision_cost > 0, NEVER_LOSS, self.loss)
        return free

    def belief_losses(self, belief: Array, rows: Ints) -> Doubles:
        """B: under a scoring rule, what is lost when these (B, K) are the answers for these rows."""
        assert self.rule is not None
        labels = self.labels[rows]
        lost: Doubles = self.stakes[labels] * case_losses(belief, labels, self.rule)
        return lost

    @cached_property
    def external_losses(self) -> Doubles:
        """N: what is lost when the existing classifier is asked."""
        assert self.external is not None
        if self.external_belief is not None:
            return self.belief_losses(self.external_belief, np.arange(len(self)))
        lost: Doubles = self.loss[self.labels, self.external]
        return lost

    @cached_property
    def prior_loss(self) -> float:
        """Mean loss of the best decision that costs nothing; under a scoring rule, of the class shares as belief."""
        if self.rule is not None:
            return float(belief_loss(self.shares[None], self.stakes, self.rule)[0, 0])
        return float(self.mean(self.loss[self.labels])[self.schema.decision_cost == 0].min())

    @cached_property
    def shares(self) -> Doubles:
        """K: the shares of the classes."""
        shares: Doubles = self.mean(np.eye(self.schema.n_classes)[self.labels])
        return shares

    @cached_property
    def loss_scale(self) -> float:
        """What losses are divided by: the mean stake or, under a scoring rule, what the class shares lose as belief."""
        if self.rule is None or self.y is None:
            return self.mean_stake
        return self.prior_loss or self.mean_stake  # 0 where all rows are of one class

    @cached_property
    def mean_stake(self) -> float:
        """What is at stake in a case, on average: its largest loss. 1 for 0/1 losses, also with balanced class weights."""
        return float(self.stakes.mean() if self.y is None else self.mean(self.stakes[self.y]))

    @cached_property
    def reward_scale(self) -> Doubles | None:
        """N: what rewards of a row are multiplied with, to make up for how often it is drawn; None where all stakes are alike.

        Rows are drawn in proportion to what is at stake in them. The objective stays the same, but a rare class with a large loss
        is seen often with an ordinary loss, rather than hardly ever with a large one.
        """
        if self.y is None or np.ptp(self.stakes) == 0:
            return None
        stakes = np.where(self.stakes > 0, self.stakes, self.mean_stake)  # rows without a stake are never drawn
        scale: Doubles = self.mean_stake / stakes[self.y]
        return scale

    def draw(self, n: int, rng: np.random.Generator, by_stake: bool = True) -> Ints:
        """n rows with replacement, each in proportion to its weight and, if asked for, its stake."""
        below = self._drawn_below if by_stake else self._weighed_below
        if below is None:
            return rng.integers(len(self), size=n)
        return np.searchsorted(below, rng.random(n), "right").clip(max=len(self) - 1)

    @cached_property
    def _drawn_below(self) -> Doubles | None:
        if self.reward_scale is None or self.y is None:
            return self._weighed_below
        return _below(self.stakes[self.y] * (1 if self.weight is None else self.weight))

    @cached_property
    def _weighed_below(self) -> Doubles | None:
        return None if self.weight is None else _below(self.weight)

    @cached_property
    def fingerprint(self) -> str:
        """Short, and different for different rows, losses or costs."""
        costs = self.schema.costs
        digest = hashlib.sha256(repr((self.schema.columns, self.schema.tests, self.schema.classes, costs.smallest_unit)).encode())
        parts = (self.X, self.y, self.available, self.known, self.loss, self.weight, self.external, self.schema.owner)
        digest.update((self.rule or "").encode())
        for part in (*parts, self.schema.external_needs, costs.own, costs.setup, costs.member, costs.sources):
            digest.update(b"-" if part is None else np.ascontiguousarray(part).data)  # without a copy
        if self.external_belief is not None:
            digest.update(np.ascontiguousarray(self.external_belief).data)
        return digest.hexdigest()[:16]

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """N: what a draw for a case depends on: its id or, without ids, the values of its row."""
        return hash_cases(self.X if self.ids is None else self.ids)


def _below(share: Doubles) -> Doubles:
    """N: how much of the whole the rows up to each have together."""
    below: Doubles = np.cumsum(share) / share.sum()
    return below
