"""Which rows each member learns from, and by whom each row is judged that has not seen it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Ints
from askwise.core.problem import Problem

ALWAYS = -1  # the part of rows that every member learns from


@dataclass(frozen=True, eq=False)
class Folds:
    """Parts of the rows of a problem. Member k of the belief learns from all rows but those of part k. Head k learns from rows
    that are held out for some member, but for those of its own part."""

    belief: Ints  # N: the member that has not seen a row; ALWAYS: none
    head: Ints  # N: the head that has not; ALWAYS: no head learns from this row

    @classmethod
    def across(cls, labels: Ints, n: int, seed: int) -> Folds:
        """Every row is held out once; each class is shared out evenly."""
        rng, fold = np.random.default_rng(seed), np.empty(len(labels), np.int64)
        by_class = np.concatenate([rng.permutation(np.flatnonzero(labels == k)) for k in np.unique(labels)])
        fold[by_class] = (np.arange(len(labels)) + rng.integers(n)) % n  # class after class, so that no part stays empty
        return cls(fold, fold)

    @classmethod
    def apart(cls, learned: int, labels: Ints) -> Folds:
        """One member learns from the first so many rows. The others, whose labels these are, are shared out to two heads."""
        half = np.empty(len(labels), np.int64)
        half[np.argsort(labels, kind="stable")] = np.arange(len(labels)) % 2
        always = np.full(learned, ALWAYS)
        return cls(np.r_[always, np.zeros(len(labels), np.int64)], np.r_[always, half])

    @property
    def members(self) -> int:
        return int(self.belief.max()) + 1

    @property
    def heads(self) -> int:
        return int(self.head.max()) + 1

    def learned(self, member: int) -> Ints:
        """Rows that a member of the belief learns from."""
        return np.flatnonzero(self.belief != member)

    @property
    def held_out(self) -> Ints:
        """Rows that are held out for some member."""
        return np.flatnonzero(self.belief != ALWAYS)

    @property
    def parts(self) -> list[tuple[int, int, Ints]]:
        """Member, head and the rows that neither has seen."""
        pairs = sorted(set(zip(self.belief.tolist(), self.head.tolist(), strict=True)))
        return [(b, h, np.flatnonzero((self.belief == b) & (self.head == h))) for b, h in pairs if b != ALWAYS]


def joined(first: Problem, second: Problem) -> Problem:
    """The rows of both, judged by the loss of the first."""

    def both(name: str, absent: Any) -> Array | None:
        parts = [getattr(p, name) for p in (first, second)]
        if all(part is None for part in parts):
            return None
        return np.concatenate([absent(len(p)) if part is None else part for p, part in zip((first, second), parts, strict=True)])

    def tests(filler: bool) -> Any:
        return lambda n: np.full((n, first.schema.n_tests), filler)

    fields: dict[str, Any] = {
        "X": both("X", None),
        "y": both("y", None),
        "available": both("available", tests(True)),
        "known": both("known", tests(False)),
        "weight": both("weight", np.ones),
        "external": both("external", None),
        "external_belief": both("external_belief", None),
        "ids": both("ids", None) if first.ids is not None and second.ids is not None else None,
    }
    return replace(first, **fields)
