"""A model whose cases were counted class by class, with figures that can be worked out by hand."""

from dataclasses import replace

import numpy as np
from tests.support.models import family

from askwise.core.measures import Measure
from askwise.frontier.point import Point

# cost; of 20 ill, those that are found; of 80 well, those that are called ill
MEASURED = ((0.0, 0, 0), (0.5, 8, 4), (1.0, 14, 8), (1.5, 16, 10), (2.0, 18, 12), (0.1, 20, 80), (2.5, 18, 9))


def point(cost: float, found: int, called: int) -> Point:
    counts = np.array([[found, 20 - found], [called, 80 - called]], float)
    right = np.trace(counts) / 100
    return Point(0.01, Measure(cost, 1 - right, right, 100, 0.02, 0.03, 0.03), prefix=0, counts=counts, believed=counts)


def counted(budget=None):
    """Classes 'ill' and 'well'. Deciding at once loses 20 of 100; calling everybody ill, for 0.1, loses 80."""
    points = tuple(point(*each) for each in MEASURED)
    model = replace(family(), targeted=points)
    return model if budget is None else model.at(budget)
