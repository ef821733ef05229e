"""How well beliefs rank the cases: the area under the ROC curve, with its standard error."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from askwise.core.arrays import Array, Bools, Doubles, Ints


class Auroc(NamedTuple):
    """An area under the ROC curve."""

    value: float
    influence: Doubles  # N: how much each case moves it; their sum is 0

    @property
    def error(self) -> float:
        """Its standard error, as DeLong has it, but for n in the place of n - 1."""
        return float(np.sqrt((self.influence**2).sum()))


def two_class_auroc(ratings: ArrayLike, second: Bools, weight: Doubles | None = None) -> Auroc | None:
    """How often a case of the second class is rated above one of the first, ties counting half; None where one class is absent.

    ratings: N; second: N, who is of the second class; weight: N, how much each case counts.
    """
    _, place = np.unique(np.asarray(ratings, float), return_inverse=True)
    counts = np.ones(len(place)) if weight is None else weight
    ones, others = counts * second, counts * ~second
    n1, n0 = float(ones.sum()), float(others.sum())
    if not n1 or not n0:
        return None
    there1, there0 = (np.bincount(place, each, minlength=int(place.max()) + 1) for each in (ones, others))
    below = (np.cumsum(there0) - there0 / 2)[place] / n0  # N: the share of the first class that is rated below
    above = 1 - (np.cumsum(there1) - there1 / 2)[place] / n1
    value = float(ones @ below / n1)
    return Auroc(value, ones / n1 * (below - value) + others / n0 * (above - value))


def auroc(belief: Array, labels: Ints, weight: Doubles | None = None) -> Auroc | None:
    """Of two classes that of the second; of more the mean over the classes, each against all others. A class that no case is of,
    or every case, is left out; None where this leaves none.

    belief: N, K; labels: N; weight: N.
    """
    classes = [1] if belief.shape[1] == 2 else range(belief.shape[1])
    each = [two_class_auroc(belief[:, k], labels == k, weight) for k in classes]
    there = [one for one in each if one is not None]
    if not there:
        return None
    influence: Doubles = np.mean([one.influence for one in there], 0)
    return Auroc(float(np.mean([one.value for one in there])), influence)
