"""The plane of cost and score: which points are worth having.

A score is anything where more is better: accuracy, or minus the expected loss.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from askwise.core.arrays import Ints


def hull(cost: ArrayLike, score: ArrayLike) -> Ints:
    """Indices of the points on the upper convex hull, by rising cost, up to the cheapest point of the best score.

    Between two of them, mixing gives every point of the line; no point lies above.
    """
    c, s = np.asarray(cost, float), np.asarray(score, float)
    kept: list[int] = []
    for i in np.lexsort((-s, c)).tolist():
        if kept and s[i] <= s[kept[-1]]:
            continue  # costs as much or more and is no better
        # turn back while the last kept point lies on or below the line from the one before it to this one
        while len(kept) > 1 and (s[kept[-1]] - s[kept[-2]]) * (c[i] - c[kept[-2]]) <= (s[i] - s[kept[-2]]) * (
            c[kept[-1]] - c[kept[-2]]
        ):
            kept.pop()
        kept.append(i)
    return np.array(kept, np.int64)


def staircase(cost: ArrayLike, score: ArrayLike) -> Ints:
    """Indices of the points that are better than all that cost as much or less, by rising cost: without mixing, each is the best
    that some amount of money buys."""
    c, s = np.asarray(cost, float), np.asarray(score, float)
    order = np.lexsort((-s, c))
    best_before = np.maximum.accumulate(np.concatenate([[-np.inf], s[order][:-1]]))
    return order[s[order] > best_before].astype(np.int64)


def useful(cost: ArrayLike, score: ArrayLike, most: ArrayLike, slack: ArrayLike = 0.0) -> Ints:
    """Indices of the points that some budget could follow, in the order given. `most`: what no case pays more than at each of
    them, infinity where nothing is known. A hard budget allows the points up to some `most`, and follows those on the hull of
    these; where all points are allowed, those of the staircase, so that an average budget finds one that costs as much.
    `slack`: by how much each score may lie below these, since it may yet turn out better; of points that are alike one is
    enough."""
    c, s, m, room = (np.asarray(v, float) for v in (cost, score, most, np.broadcast_to(slack, np.shape(cost))))
    keep, kept = np.zeros(len(c), bool), set[tuple[float, float]]()
    for limit in np.unique(m):
        among = np.flatnonzero(m <= limit)
        on = among[(staircase if len(among) == len(c) else hull)(c[among], s[among])]
        keep[on] |= m[on] == limit
        near = (m == limit) & (room > 0) & (s >= np.interp(c, c[on], s[on]) - room)
        for i in np.flatnonzero(near).tolist():
            keep[i] |= (c[i], s[i]) not in kept
            kept.add((c[i], s[i]))
    return np.flatnonzero(keep)
