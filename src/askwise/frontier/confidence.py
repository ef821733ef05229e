"""Bounds that hold with a probability: what a mean of all cases is at most, from the mean of those that were measured.

    mean + z s / √n,   z the quantile of the normal distribution

A budget is met by the dearest policy whose bound is within it. Policies are looked at from the cheapest on, up to the first
whose bound is not within it, as in fixed sequence testing: were their order fixed beforehand, let i be the first policy that
really costs more than b. Only if the bound of i is below its mean is i, or a dearer one, chosen, and the probability of that is
at most 1 - confidence, however many policies there are.

The order is not fixed beforehand: "cheapest" is by the means of the same rows, and so is which policies are looked at. Policies
that cost nearly the same may change places with the draw of the rows, and which of them is first is then no accident, so that the
proof does not hold to the letter; nor is a quantile of the normal distribution exact for few rows. `tests/test_frontier.py`
simulates both: at a confidence of 0.95 about 5 % are beyond the budget where dearer policies pay for the same cases and some
more, and up to 9 % where each pays for cases of its own.
"""

from __future__ import annotations

from statistics import NormalDist


def upper_bound(mean: float, error: float, confidence: float | None) -> float:
    """What a mean is at most, with this probability. None: what is expected."""
    return mean if confidence is None else mean + NormalDist().inv_cdf(confidence) * error
