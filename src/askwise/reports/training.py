"""What is said of a training: the rows that it learned from, and what more time may bring."""

from __future__ import annotations

from askwise.model.model import LearnedModel

HARDLY = 0.002  # of the area: measured on few rows and at few tradeoffs, smaller differences are none


def rows_used(model: LearnedModel) -> str:
    """What the rows of the fit were used for, in a sentence; empty where nobody counted."""
    drawn = model.facts.get("drawn")
    if drawn is None:
        return ""
    learned, chosen = model.facts["rows"]
    often = (
        f"each {drawn / learned:.1f} times on average" if drawn >= learned else f"{100 * drawn / learned:.3g} % of them at most"
    )
    apart = f"; {chosen:,} others were kept apart, to choose and to measure by" if chosen else ""
    return f"learned from {learned:,} rows in {drawn:,} draws, {often}{apart}"


def gain_of_late(model: LearnedModel) -> str:
    """What the later half of a training on many rows or tests brought, in a sentence; empty where too little was measured."""
    areas = [area for _, area in model.facts.get("areas", [])]
    half = len(areas) // 2
    if model.facts.get("algorithm") != "family" or half < 2:
        return ""
    gain = max(areas[half:]) - max(areas[:half])
    words = "over the later half of the interim measurements the area under the curve rose by"
    if gain <= HARDLY:
        return f"{words} no more than {HARDLY:g}: more time would bring little"
    return f"{words} {gain:.3f}: more time may bring more"
