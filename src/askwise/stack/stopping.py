"""How long the learners of a member learn: as long as those of the other members should, by the rows that these held out.

A member that stopped where its own held-out rows are predicted best would look better on them than on new cases, and with few
rows it would stop at random.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from askwise.core.arrays import Arrays, Doubles, Floats
from askwise.stack.trees import STORED, TreeArrays

CURVES = ("trees.curve", "networks.curve")  # log losses on held-out states: after each round, and at each check


def stopped(members: Sequence[Arrays]) -> list[Arrays]:
    """The learners as they are used, from those that know all their rounds and checks. Where there is one member alone, it has
    held out so many rows that these tell it too."""
    ends = [stops([member[name] for member in members]) for name in CURVES]
    return [at(member, rounds, check) for member, rounds, check in zip(members, *ends, strict=True)]


def stops(curves: Sequence[Floats]) -> list[int]:
    """For each member the place at which the others lose least on average. A curve that ends before goes on as it ended."""
    longest = max(map(len, curves))
    padded: Doubles = np.stack([np.pad(curve.astype(float), (0, longest - len(curve)), "edge") for curve in curves])
    others = padded if len(padded) == 1 else padded.sum(0) - padded
    return [min(int(lost.argmin()), len(curve) - 1) for lost, curve in zip(others, curves, strict=True)]


def at(learners: Arrays, rounds: int, check: int) -> Arrays:
    """The trees after so many more rounds than the first, and the networks at this check."""
    trees = TreeArrays.of({name: learners[f"trees.{name}"] for name in STORED})
    kept = trees.part(0, (rounds + 1) * (len(trees.root) // len(learners["trees.curve"])))
    others = {name: value for name, value in learners.items() if not name.startswith("trees.") and name not in CURVES}
    networks = {name: value[check] for name, value in others.items() if is_layer(name)}
    return {**{f"trees.{name}": value for name, value in kept.arrays().items()}, **others, **networks}


def is_layer(name: str) -> bool:
    """Whether an array of a member is a layer of its networks."""
    return name.startswith("networks.") and name.endswith((".weight", ".bias"))
