"""Beliefs along a rollout: a case that has one more test than before needs only what that test changes.

    a tree:    the leaf stays, unless a node on the way to it looks at the test
    networks:  W [f(x) ⊙ m, m] grows by W_t [f_t(x_t), 1]   t: the test

So trees are followed where they may lead elsewhere, and the largest product of the networks has the few rows of one test.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from askwise.core.arrays import Array, Bools, Floats, Ints
from askwise.stack.belief import Growing, StackedBelief

LEAST_CASES = 32  # of a rollout; with fewer it takes longer to find out what changes than to compute everything


class GrowingBelief:
    """p(y | what is held) of n cases, whose tests only become more. What each learner needs to go on is kept by case."""

    def __init__(self, belief: StackedBelief, n: int) -> None:
        self.belief = belief
        self.mask = np.zeros((n, int(belief.owner.max()) + 1), bool)  # what was held when something was last computed
        self.begun = np.zeros(n, bool)
        self.kept: dict[int, Array] = {}  # by the number of the learner: n, ...

    def __call__(self, values: Floats, mask: Bools, place: Ints) -> Array:
        """B, K. place: B, the number of each case."""
        belief = self.belief
        known, new, begun = mask[:, belief.owner], mask & ~self.mask[place], self.begun[place]
        many = new.sum(1)
        anew, one = np.flatnonzero((many > 1) | ~begun), np.flatnonzero((many == 1) & begun)
        test = new[one].argmax(1)
        one, test = one[np.argsort(test, kind="stable")], np.sort(test)
        logits = []
        for i, (_, learner) in enumerate(belief.learners):
            if not isinstance(learner, Growing):
                logits.append(learner(values, known, mask) - belief.shift)
                continue
            if len(anew):
                kept = learner.begin(values[anew], known[anew], mask[anew])
                if i not in self.kept:
                    self.kept[i] = np.empty((len(self.begun), kept.shape[1]), kept.dtype)
                self.kept[i][place[anew]] = kept
            if len(one):
                self.kept[i][place[one]] = learner.grown(self.kept[i][place[one]], _groups(test), values[one], known[one])
            logits.append(learner.read(self.kept[i][place]) - belief.shift)
        self.mask[place], self.begun[place] = mask, True
        believed: Array = belief.stacked(logits, mask)
        return believed


def _groups(test: Ints) -> Sequence[tuple[int, slice]]:
    """Where the cases of each test are, in the order of the tests."""
    start = np.flatnonzero(np.diff(test, prepend=-1))
    return [(int(test[a]), slice(a, b)) for a, b in pairwise([*start.tolist(), len(test)])]
