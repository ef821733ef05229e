"""Beliefs of members that have not learned from a row: what weights, order and values of a stack are learned from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from askwise.core.arrays import Arrays, Bools, Doubles, Floats, Ints
from askwise.core.problem import Problem
from askwise.stack.belief import LEARNERS, StackedBelief, held_share
from askwise.stack.folds import Folds
from askwise.stack.weights import fit_weights, weights_of_all


@dataclass(frozen=True, eq=False)
class HeldOutBeliefs:
    """Of the members that there are so far."""

    problem: Problem
    folds: Folds
    common: Arrays  # of all members: class frequencies, and weights of the learners once these are learned
    members: Sequence[Arrays]

    def __call__(self, row: Ints, mask: Bools) -> Floats:
        """B, K: by members that have not seen the rows."""
        belief = np.empty((len(row), self.problem.schema.n_classes), np.float32)
        for k in range(self.folds.members):
            which = np.flatnonzero(self.folds.belief[row] == k)
            if len(which):
                believe = StackedBelief({**self.common, **self.members[k]}, self.problem.schema.owner, np.float32)
                belief[which] = believe(*self.inputs(row[which], mask[which]))
        return belief

    def inputs(self, row: Ints, mask: Bools) -> tuple[Floats, Bools]:
        """Values, 0 where they are not known, and the mask."""
        return np.where(self.problem.schema.by_column(mask), self.problem.X[row], np.float32(0)), mask

    def logits(self, row: Ints, mask: Bools) -> dict[str, Doubles]:
        """B, K of each learner that there is, by members that have not seen the rows."""
        alike = {f"weight.{name}": np.zeros(3) for name in self.learners}
        logits = [np.empty((len(row), self.problem.schema.n_classes)) for _ in alike]
        for k in range(self.folds.members):
            which = self.folds.belief[row] == k
            belief = StackedBelief({**self.common, **self.members[k], **alike}, self.problem.schema.owner, np.float64)
            for own, z in zip(logits, belief.logits(*self.inputs(row[which], mask[which])), strict=True):
                own[which] = z
        return dict(zip(self.learners, logits, strict=True))

    @property
    def learners(self) -> list[str]:
        """Of every member."""
        return [name for name in LEARNERS if any(array.startswith(f"{name}.") for array in self.members[0])]

    def fitted_weights(self, row: Ints, mask: Bools) -> tuple[Arrays, list[Arrays]]:
        """How much each learner counts, learned on these states; and the same for each member, learned without its own part of
        them, as these weights too look better on the rows that they were learned from. A single member has a part so large that
        this does not matter."""
        logits, held, prior, shift = self.logits(row, mask), self._described(mask), self.common["prior"], self.common["shift"]
        labels, weight = self.problem.labels[row], self._weight(row)
        fitted = fit_weights(logits, prior, held, labels, weight, shift)
        if "stages" in logits.keys() - fitted.keys():  # then no weight depends on what these know
            del logits["stages"]
            fitted = fit_weights(logits, prior, held_share(mask, float), labels, weight, shift)
        own = [fitted for _ in range(self.folds.members)]
        if self.folds.members > 1:
            rest = [np.flatnonzero(self.folds.belief[row] != k) for k in range(self.folds.members)]
            own = [
                weights_of_all({n: logits[n][r] for n in fitted}, prior, held[r], labels[r], weight[r], shift, fitted)[1]
                for r in rest
            ]
        return _named(fitted), [_named({n: w.astype(np.float32) for n, w in each.items()}) for each in own]

    def _described(self, mask: Bools) -> Doubles:
        """B, 3 or 4: what weights depend on. Trees for prefixes are there where there is one member."""
        alike = {f"weight.{name}": np.zeros(3) for name in self.learners}
        belief = StackedBelief({**self.common, **self.members[0], **alike}, self.problem.schema.owner, np.float64)
        described: Doubles = belief.described(mask)
        return described

    def comparison(self, rows: int, rng: np.random.Generator, without: int | None = None) -> Callable[[Bools], Doubles]:
        """By which sets of tests (F) are compared: what is lost in each of so many rows when they are held. without: a head,
        whose part of the rows has no say."""
        among = self.folds.held_out
        if without is not None:
            among = among[self.folds.head[among] != without]
        return partial(self.log_losses, np.sort(rng.permutation(among)[:rows]))

    def log_losses(self, rows: Ints, held: Bools) -> Doubles:
        """Of each row when these tests (F) are held, times its weight; classes count by what is at stake in them."""
        mask, labels = np.tile(held, (len(rows), 1)), self.problem.labels[rows]
        if self.problem.available is not None:
            mask &= self.problem.available[rows]
        p = self(rows, mask) * np.exp(self.common["shift"])
        own: Doubles = p[np.arange(len(rows)), labels] / p.sum(1)
        nats: Doubles = -self._weight(rows) * np.log(np.maximum(own, 1e-9))
        return nats

    def _weight(self, row: Ints) -> Doubles:
        """Of each: what is at stake, and how often it is drawn."""
        stakes: Doubles = np.exp(self.common["shift"])[self.problem.labels[row]]
        return stakes if self.problem.weight is None else stakes * self.problem.weight[row]


def _named(weights: Arrays) -> Arrays:
    return {f"weight.{name}": value for name, value in weights.items()}
