"""Bounds that hold with a probability: what a mean of all cases is at most, from the mean of those that were measured.

    mean + z s / √n,   z the quantile of the normal distribution

A budget is met by the dearest policy whose bound is within it. Policies are looked at from the cheapest on, up to the first
whose bound is not within it, so that no correction for choosing among them is needed (fixed sequence testing): let i be the first
policy that really costs more than b. Only if the bound of i is below its mean is i, or a dearer one, chosen, and the probability
of that is at most 1 - confidence, however many policies there are.
"""

from __future__ import annotations

from statistics import NormalDist


def upper_bound(mean: float, error: float, confidence: float | None) -> float:
    """What a mean is at most, with this probability. None: what is expected."""
    return mean if confidence is None else mean + NormalDist().inv_cdf(confidence) * error
