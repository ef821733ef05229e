"""Members of a stack as jobs: what they depend on, how long they may take, and how they are fitted one after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from askwise.components.packing import from_file, packed, to_bytes, unpacked
from askwise.components.torch_state import own_torch
from askwise.core.arrays import Arrays
from askwise.stack.config import StackConfig
from askwise.stack.folds import Folds
from askwise.stack.learners import NO_LIMIT, choose_leaves, fit_member
from askwise.stack.networks import choose_features
from askwise.stack.states import StateMaker
from askwise.stack.stopping import is_layer
from askwise.stack.trees import TreeArrays, joined
from askwise.training.checkpoint import part

TREE_TRIAL = 0.6  # of the time of the trials


@dataclass(frozen=True, eq=False)
class MemberTask:
    """All that the learners of the members depend on."""

    maker: StateMaker
    folds: Folds
    config: StackConfig
    seed: int
    threads: int = 1  # of each
    features: Arrays | None = None  # how networks see columns; None: not yet tried, as the size of the trees in the settings

    def tried(self, seconds: float) -> MemberTask:
        """The same with the features and the size of the trees that are best for the first member, by short trainings."""
        ends = time.monotonic() + min(seconds, NO_LIMIT)
        rows = self.folds.learned(0), (self.folds.belief == 0).nonzero()[0]
        with own_torch(self.seed, self.threads):
            of_trees = min(TREE_TRIAL * seconds, NO_LIMIT)
            leaves = choose_leaves(self.maker, *rows, self.config, self.seed, self.threads, of_trees)
            features = choose_features(self.maker, *rows, self.config, self.seed, ends - time.monotonic())
        return self.with_trial(features, leaves)

    def with_trial(self, features: Arrays, leaves: int) -> MemberTask:
        """The same with what a trial came to."""
        return replace(self, features=features, config=self.config.but(leaves=leaves, more_leaves=0))

    def fit(self, k: int, seconds: float) -> Arrays:
        """The learners of member k."""
        learned, held_out, seed = self.folds.learned(k), (self.folds.belief == k).nonzero()[0], 1_000 * self.seed + k
        assert self.features is not None
        facts = self.features, self.config, self.folds.members, seed, self.threads, seconds
        with own_torch(seed, self.threads):  # the last bits depend on the number of threads
            return fit_member(self.maker, learned, held_out, *facts)

    def pack(self) -> bytes:
        """For other processes. Names of classes and cases do not matter there."""
        problem, sampler = self.maker.problem, self.maker.sampler
        nameless = replace(problem, schema=replace(problem.schema, classes=tuple(range(problem.schema.n_classes))))
        arrays, facts = packed({"rows": nameless})
        arrays |= {"belief": self.folds.belief, "rank": sampler.rank, "lacking": sampler.lacking}
        arrays |= {f"features/{name}": value for name, value in (self.features or {}).items()}
        own = {"config": self.config.to_dict(), "seed": self.seed, "threads": self.threads}
        return to_bytes(arrays, {**facts, **own})

    @classmethod
    def unpack(cls, path: Path) -> MemberTask:
        arrays, facts = from_file(path)
        problem, config = unpacked(arrays, facts)["rows"], StackConfig.from_dict(facts["config"])
        maker = StateMaker.of(problem, np.argsort(arrays["rank"]), config, arrays["lacking"])
        folds = Folds(arrays["belief"], arrays["belief"])
        features = part(arrays, "features/")
        return cls(maker, folds, config, facts["seed"], facts["threads"], features)


def together(members: Sequence[Arrays], learners: Sequence[str]) -> Arrays:
    """These learners of all members as those of one stack."""
    parts: Arrays = {}
    if "trees" in learners:
        trees = joined([TreeArrays.of(part(m, "trees.")) for m in members])
        parts |= {f"trees.{name}": value for name, value in trees.arrays().items()}
    if "linear" in learners:
        names = [name for name in members[0] if name.startswith("linear.")]
        parts |= {name: np.mean([m[name] for m in members], 0) for name in names}
    if "networks" in learners:
        layers = {name for name in members[0] if is_layer(name)}
        parts |= {name: value for name, value in members[0].items() if name.startswith("networks.")}
        parts |= {name: np.concatenate([m[name] for m in members]) for name in layers}
    if "stages" in learners:  # there is one member alone
        parts |= {name: value for name, value in members[0].items() if name.startswith("stages.")}
    return parts


class MemberTime:
    """Seconds for each member, where all that are left have so many together."""

    def __init__(self, total: Callable[[], float] = lambda: math.inf) -> None:
        self.total = total  # asked when the first of them begins
        self.ends: float | None = None

    def __call__(self, left: int, at_once: int) -> float:
        """left: members that nobody has begun yet."""
        if self.ends is None:
            self.ends = time.monotonic() + self.total()
        return min(max(self.ends - time.monotonic(), 0.0) / math.ceil(left / at_once), NO_LIMIT)


class MemberFitting(Protocol):
    """A way to fit members."""

    def __call__(self, task: MemberTask, missing: Sequence[int]) -> dict[int, Arrays]:
        """Those of the missing members that are ready after a moment, or after one was fitted here: one, several, or none yet."""

    def close(self) -> None:
        """Nothing goes on after this."""


class OneByOne:
    """In this process alone."""

    def __init__(self, seconds: MemberTime) -> None:
        self.seconds = seconds

    def __call__(self, task: MemberTask, missing: Sequence[int]) -> dict[int, Arrays]:
        return {missing[0]: task.fit(missing[0], self.seconds(len(missing), 1))}

    def close(self) -> None:
        pass
