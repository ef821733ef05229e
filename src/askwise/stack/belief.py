"""Class probabilities from a stack of learners, without torch or LightGBM.

    h = |S| / F,   c = |P| / |S|,   w_j = softplus(a_j0 + a_j1 h + a_j2 √h + a_j3 c)
    p = softmax(log π + Σ_j w_j (z_j - log π))

z_j are the logits of learner j, averaged over its members, and π the class frequencies. P is the longest prefix of the order
that is held and has trees of its own; where no prefix has, there is no a_j3. The weights need not add up to 1, so that they also
say how sure the learners may be.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from askwise.components.numpy_layers import AveragedNetworks
from askwise.core.arrays import Array, Bools, Floats, Ints
from askwise.family.forward import piecewise_linear, softmax, softplus
from askwise.stack.config import DESIGN
from askwise.stack.trees import TreeArrays, copies

LEARNERS = ("trees", "linear", "networks", "stages")
BINS, SINES = ("source", "low", "slope"), ("source", "rate", "phase")  # what is known of each
Groups = Sequence[tuple[int, slice]]  # tests, and which cases have just got each


class StackedBelief:
    """p(y | what is held), from the weights of a stack."""

    def __init__(self, weights: Mapping[str, Array], owner: Array, dtype: Any) -> None:
        self.owner, self.dtype = owner, dtype
        self.prior = weights["prior"].astype(dtype)
        self.shift = weights["shift"].astype(dtype)  # log of how much more the learners have seen of each class
        self.learners: list[tuple[Array, Callable[[Any, Any, Any], Any]]] = []
        if "weight.trees" in weights:
            trees = TreeScores(TreeArrays.of(_part(weights, "trees.")), owner, len(self.prior))
            self.learners.append((weights["weight.trees"].astype(dtype), trees))
        if "weight.linear" in weights:
            linear = Linear(_part(weights, "linear."), len(self.prior), dtype)
            self.learners.append((weights["weight.linear"].astype(dtype), linear))
        if "weight.networks" in weights:
            networks = Networks(_part(weights, "networks."), owner, dtype)
            self.learners.append((weights["weight.networks"].astype(dtype), networks))
        self.stages: StageScores | None = None
        if "weight.stages" in weights:
            nothing = weights["prior"] + weights["shift"]  # what a learner says that knows nothing
            self.stages = StageScores(_part(weights, "stages."), owner, nothing)
            self.learners.append((weights["weight.stages"].astype(dtype), self.stages))

    def logits(self, values: Any, mask: Any) -> list[Any]:
        """B, K of each learner, as if classes were as frequent as they are."""
        known = mask[:, self.owner]
        return [learner(values, known, mask) - self.shift for _, learner in self.learners]

    def __call__(self, values: Any, mask: Any) -> Any:
        """B, K."""
        return self.stacked(self.logits(values, mask), mask)

    def stacked(self, logits: list[Any], mask: Any) -> Any:
        """B, K: what the logits of the learners come to."""
        z, held = 0 * logits[0].astype(self.dtype) + self.prior, self.described(mask)
        for (weight, _), own in zip(self.learners, logits, strict=True):
            z = z + softplus(held @ weight)[:, None] * (own - self.prior)
        return softmax(z)

    def described(self, mask: Any) -> Any:
        """B, 3 or 4: what weights depend on."""
        held = held_share(mask, self.dtype)
        if self.stages is None:
            return held
        return np.concatenate([held, self.stages.covered(mask, self.dtype)], 1)


def held_share(mask: Any, dtype: Any) -> Any:
    """B, 3: (1, h, √h)."""
    h = mask.sum(1, keepdims=True, dtype=dtype) / mask.shape[1]
    return np.concatenate([0 * h + 1, h, np.sqrt(h)], 1)


class Growing(ABC):
    """A learner that can go on from what it has computed of a case, once the case has one more test."""

    def __call__(self, values: Any, known: Any, mask: Any) -> Any:
        """B, K: logits."""
        return self.read(self.begin(values, known, mask))

    @abstractmethod
    def begin(self, values: Any, known: Any, mask: Any) -> Any:
        """B, ...: what it goes on from."""

    @abstractmethod
    def grown(self, kept: Array, groups: Groups, values: Floats, known: Bools) -> Array:
        """The same with one more test each: all cases of a group have got the same one. It may write into `kept`."""

    @abstractmethod
    def read(self, kept: Any) -> Any:
        """B, K: logits."""


class TreeScores(Growing):
    """The scores of trees. What is kept are the leaves, B, T."""

    def __init__(self, trees: TreeArrays, owner: Array, classes: int) -> None:
        self.trees, self.owner, self.classes = trees, owner, classes
        self.adds = trees.adds(classes)

    def __call__(self, values: Any, known: Any, mask: Any) -> Any:
        return self.trees.scores(values, known, self.classes, self.adds)

    def begin(self, values: Any, known: Any, mask: Any) -> Ints:
        return self.trees.leaves(values, known)

    def grown(self, kept: Array, groups: Groups, values: Floats, known: Bools) -> Array:
        T, both, leaf = kept.shape[1], copies(values, known), kept.reshape(-1)
        pairs = []  # of a case and a tree, whose path passes the test
        for test, part in groups:
            passed, own = self.passed[test // 8].take(kept[part]), np.uint8(1 << test % 8)
            pairs.append(np.flatnonzero(passed & own) + part.start * T)
        pair = np.concatenate(pairs)
        case, tree = np.divmod(pair, T)
        leaf[pair] = self.trees.followed(self.trees.root.take(tree), both.reshape(-1), case * both.shape[1])
        return kept

    def read(self, kept: Any) -> Any:
        return self.trees.value.take(kept) @ self.adds

    @cached_property
    def passed(self) -> Array:
        """F / 8, N: the tests at which nodes look on the way to a node, as bits."""
        trees, tests = self.trees, int(self.owner.max()) + 1
        own = np.zeros((-(-tests // 8), len(trees.column)), np.uint8)
        test, node = self.owner[trees.column % len(self.owner)], np.arange(len(trees.column))
        own[test // 8, node] = 1 << test % 8
        passed, level = np.zeros_like(own), trees.root
        for _ in range(trees.depth):
            level = level[trees.child[level] != level]
            left = trees.child[level]
            passed[:, left] = passed[:, left + 1] = passed[:, level] | own[:, level]
            level = np.concatenate([left, left + 1])
        return passed


class StageScores(Growing):
    """The scores of trees that are learned for one prefix of the order each, of the longest of them that is held. What is kept is
    which one that is, and its scores: a test outside the prefixes changes nothing. B, 1 + K."""

    def __init__(self, weights: Mapping[str, Array], owner: Array, nothing: Array) -> None:
        """nothing: K, the scores where none of the prefixes is held."""
        self.sets, self.nothing = weights["sets"].astype(np.float32), nothing.astype(np.float32)  # G, F, each within the next; K
        self.of_columns, self.owner = self.sets[:, owner], owner
        self.prefixes = np.r_[np.zeros((1, self.sets.shape[1]), bool), self.sets > 0]  # 1 + G, F; the first is where none is held
        self.score = self.scored  # or what remembers it
        trees, ends = TreeArrays.of(weights), np.r_[0, weights["trees"].cumsum()].tolist()
        self.trees = [trees.part(first, end) for first, end in pairwise(ends)]

    def begin(self, values: Any, known: Any, mask: Any) -> Any:
        stage = self._stage(known, self.of_columns)
        if not isinstance(values, np.ndarray):  # a graph computes them all, and keeps what holds
            z = 0 * stage[:, None] + self.nothing
            for g, trees in enumerate(self.trees):
                z = np.where((stage == g + 1)[:, None], trees.scores(values, known, len(self.nothing)), z)
            return np.concatenate([stage[:, None], z], 1)
        return np.concatenate([stage[:, None], self._scores(stage, values)], 1)

    def grown(self, kept: Array, groups: Groups, values: Floats, known: Bools) -> Array:
        stage = self._stage(known, self.of_columns)
        changed = np.flatnonzero(stage != kept[:, 0])
        if len(changed):
            kept[changed, 0], kept[changed, 1:] = stage[changed], self._scores(stage[changed], values[changed])
        return kept

    def read(self, kept: Any) -> Any:
        return kept[:, 1:]

    def covered(self, mask: Any, dtype: Any) -> Any:
        """B, 1: the share of what is held that the trees know, 0 where none of the prefixes is held."""
        size = np.r_[np.float32(0), self.sets.sum(1)]
        stage = self._stage(mask, self.sets)[:, None]
        known = sum((size[g] * (stage == g) for g in range(1, len(size))), 0 * stage)
        return known.astype(dtype) / np.maximum(mask.sum(1, keepdims=True, dtype=dtype), 1)

    def _stage(self, held: Any, sets: Floats) -> Any:
        """B: the number of the longest prefix that is held, from 1; 0 where none is."""
        with np.errstate(invalid="ignore"):  # some BLAS kernels raise the flag for numbers that are all 0 or 1
            lacking = (~held).astype(np.float32) @ sets.T
        return ((lacking < 0.5) * np.arange(1, len(sets) + 1, dtype=np.float32)).max(1)

    def _scores(self, stage: Array, values: Floats) -> Floats:
        """B, K. Cases that hold the same prefix need what it tells alone."""
        mask = self.prefixes[stage.astype(np.int64)]
        return self.score(np.where(mask[:, self.owner], values, np.float32(0)), mask)

    def scored(self, values: Floats, mask: Bools) -> Floats:
        """B, K, of cases that hold one of the prefixes and nothing else, or nothing."""
        z, known = np.tile(self.nothing, (len(values), 1)), mask[:, self.owner]
        stage = self._stage(mask, self.sets)
        for g, trees in enumerate(self.trees):
            of = np.flatnonzero(stage == g + 1)
            if len(of):
                z[of] = trees.scores(values[of], known[of], len(self.nothing))
        return z


class Linear:
    """z_k = b_k + Σ_c x_c (w_ck + Σ_f v_fck m_f) + Σ_f u_fk m_f: linear in what is held; for few tests, each coefficient also
    depends on what else is held."""

    def __init__(self, weights: Mapping[str, Array], classes: int, dtype: Any) -> None:
        self.main, self.bias = weights["main"].astype(dtype), weights["bias"].astype(dtype)  # C + F, K; K
        self.by_set = None
        if "by_set" in weights:  # F, C * K
            self.by_set = weights["by_set"].astype(dtype)
            self.column = np.repeat(np.arange(self.by_set.shape[1] // classes), classes)
            self.adds = (np.arange(self.by_set.shape[1])[:, None] % classes == np.arange(classes)).astype(dtype)

    def __call__(self, values: Any, known: Any, mask: Any) -> Any:
        x = np.where(known, values, np.float32(0)).clip(-DESIGN.value_limit, DESIGN.value_limit)
        held = mask.astype(self.main.dtype)
        z = np.concatenate([x, held], 1, dtype=self.main.dtype) @ self.main + self.bias
        if self.by_set is not None:
            z = z + ((held @ self.by_set) * x[:, self.column]) @ self.adds
        return z


class ColumnFeatures:
    """How columns are shown to networks: x no further from 0 than a limit and, where there are any, quantile bins (F5) and sines
    (F6) of it, each only where the column is held; and the mask."""

    def __init__(self, weights: Mapping[str, Array], owner: Array, dtype: Any) -> None:
        self.bins, self.sines = (
            tuple(weights[f"{kind}.{name}"] for name in names) if f"{kind}.source" in weights else None
            for kind, names in (("bins", BINS), ("sines", SINES))
        )
        self.n = len(owner)
        sources = [kind[0] for kind in (self.bins, self.sines) if kind is not None]
        self.owner, self.dtype = np.concatenate([owner, *(owner[source] for source in sources)]), dtype
        # C, E: each output has one column; onnxruntime multiplies by such a matrix faster than it looks columns up
        self.of_column = [(np.arange(len(owner))[:, None] == source).astype(np.float32) for source in sources]

    def of(self, test: int) -> tuple[Array, ColumnFeatures]:
        """The columns of a test, and their features alone."""
        columns, parts = np.flatnonzero(self.owner[: self.n] == test), dict[str, Array]()
        for kind, names, own in (("bins", BINS, self.bins), ("sines", SINES, self.sines)):
            if own is not None:
                which = np.isin(own[0], columns)
                among = np.searchsorted(columns, own[0][which]), *(part[which] for part in own[1:])
                parts |= {f"{kind}.{name}": part for name, part in zip(names, among, strict=True)}
        return columns, ColumnFeatures(parts, self.owner[columns], self.dtype)

    def columns(self, values: Any) -> Any:
        """B, E."""
        parts, of_column = [values.clip(-DESIGN.value_limit, DESIGN.value_limit)], iter(self.of_column)
        if self.bins is not None:
            _, low, slope = self.bins
            parts.append(piecewise_linear(values @ next(of_column), low, slope))
        if self.sines is not None:
            _, rate, phase = self.sines
            parts.append(np.sin((values @ next(of_column)) * rate + phase))
        return np.concatenate(parts, 1, dtype=self.dtype)

    def masked(self, columns: Any, mask: Any) -> Any:
        """B, E + F."""
        held = mask.astype(self.dtype)
        return np.concatenate([columns * held[:, self.owner], held], 1)


class Networks(Growing):
    """The mean logits of networks. What is kept is their first layer.

    W_E (f(x) ⊙ m) + W_F m = W_E f(x) + W_F m - G (1 - m),   G_t = Σ_{e of test t} W_e f_e(0),   x = 0 where nothing is held:
    so the many features of columns need no mask.
    """

    def __init__(self, weights: Mapping[str, Array], owner: Array, dtype: Any) -> None:
        self.features = ColumnFeatures(weights, owner, dtype)
        layers = {name: value for name, value in weights.items() if name[0].isdigit()}
        test = np.arange(layers["0.weight"].shape[1] - len(self.features.owner))
        of_nothing = self.features.columns(np.zeros((1, len(owner)), np.float32))  # f(0)
        of_test = (self.features.owner == test[:, None]) * of_nothing  # F, E
        unheld = -(of_test @ layers["0.weight"][:, : of_test.shape[1]])  # M, F, W
        self.mean = AveragedNetworks({**layers, "0.weight": np.concatenate([layers["0.weight"], unheld], 1)}, dtype)
        self.tests, self.test = len(test), np.concatenate([self.features.owner, test, test])  # of each input
        self.of_test: dict[int, tuple[Array, ColumnFeatures, Array]] = {}

    def begin(self, values: Any, known: Any, mask: Any) -> Any:
        shown = self.features.columns(np.where(known, values, np.float32(0)))
        return self.mean.begun(np.concatenate([shown, mask, ~mask], 1, dtype=shown.dtype), self._used(mask))

    def grown(self, kept: Array, groups: Groups, values: Floats, known: Bools) -> Array:
        for test, part in groups:
            columns, features, matrix = self._of(test)
            shown = features.columns(values[part].take(columns, 1))
            kept[part] += np.concatenate([shown, np.ones_like(shown[:, :1])], 1) @ matrix
        return kept

    def read(self, kept: Any) -> Any:
        return self.mean.after(kept)

    def _of(self, test: int) -> tuple[Array, ColumnFeatures, Array]:
        """The columns of a test, their features, and the matrix of these and of the test's place in the mask."""
        if test not in self.of_test:
            inputs = np.flatnonzero(self.test[: -self.tests] == test)
            self.of_test[test] = *self.features.of(test), self.mean.first[0][inputs]
        return self.of_test[test]

    def _used(self, mask: Any) -> Array | None:
        """The inputs of tests that somebody holds, if these are less than half: the others add nothing to the largest product."""
        if not isinstance(mask, np.ndarray):  # a graph computes the same whatever is held
            return None
        held: Bools = np.logical_or.reduce(mask)
        return np.flatnonzero(held[self.test]) if 2 * np.count_nonzero(held) < len(held) else None


def _part(weights: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
