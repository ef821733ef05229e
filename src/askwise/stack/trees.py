"""Boosted trees as plain arrays: scores without LightGBM, for any set of tests.

A node sends a case to its left child, or to the one after it if the value of its column is above the threshold. Who lacks the
value goes where the node says. To know this without a second look-up, values are there twice, with -∞ and with +∞ for what is
unknown, and a node looks at the copy that decides as it wants. A leaf sends every case to itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Array, Bools, Doubles, Floats, Ints

PLACES = 65_536  # (case, tree) pairs that are followed at a time: so few that all arrays of a step stay in the cache


class TreeArrays(NamedTuple):
    """T trees with N nodes together."""

    column: Ints  # N: of 2 C copies of the columns
    threshold: Floats  # N: ∞ in leaves
    child: Ints  # N: the left one; of a leaf, itself
    value: Floats  # N: 0 in inner nodes
    root: Ints  # T
    output: Ints  # T: the class to whose score a tree adds
    depth: int

    @classmethod
    def of(cls, parts: Mapping[str, Array]) -> TreeArrays:
        """From arrays that were stored."""
        column, threshold, child, value, root, output = (parts[name] for name in cls._fields[:-1])
        return cls(column, threshold, child, value, root, output, int(parts["depth"][0]))

    def arrays(self) -> dict[str, Array]:
        """To store them."""
        return {**{name: getattr(self, name) for name in self._fields[:-1]}, "depth": np.array([self.depth])}

    def first(self, trees: int) -> TreeArrays:
        """So many of them alone."""
        end = self.root[trees] if trees < len(self.root) else len(self.column)
        nodes = {name: getattr(self, name)[:end] for name in ("column", "threshold", "child", "value")}
        return self._replace(**nodes, root=self.root[:trees], output=self.output[:trees])

    def scores(self, values: Any, known: Any, classes: int) -> Any:
        """B, K: the sum of the leaves that a case reaches, for each class. values, known: B, C."""
        low, high = np.float32(-np.inf), np.float32(np.inf)
        both = np.concatenate([np.where(known, values, low), np.where(known, values, high)], 1)
        if not isinstance(both, np.ndarray):  # an ONNX graph has an operation of its own for trees
            return both.tree_scores(self, classes)
        adds = (self.output[:, None] == np.arange(classes)).astype(np.float32)  # T, K
        step = max(1, PLACES // max(len(self.root), 1))
        return np.concatenate([self._reached(both[i : i + step]) @ adds for i in range(0, max(len(both), 1), step)])

    def _reached(self, both: Floats) -> Floats:
        """B, T: the value of the leaf of each tree that a case reaches. NumPy is fastest at `take` from flat arrays."""
        B, C = both.shape
        flat, case = both.reshape(-1), np.arange(0, B * C, C)[:, None]
        node = np.zeros((B, 1), np.int64) + self.root
        for _ in range(self.depth):
            value = flat.take(self.column.take(node) + case)
            right = value > self.threshold.take(node)
            node = self.child.take(node)
            node += right
        return self.value.take(node)


def joined(members: Sequence[TreeArrays]) -> TreeArrays:
    """The mean of the scores of all members."""
    starts = np.cumsum([0, *(len(m.column) for m in members)])[:-1]
    return TreeArrays(
        column=np.concatenate([m.column for m in members]),
        threshold=np.concatenate([m.threshold for m in members]),
        child=np.concatenate([m.child + start for m, start in zip(members, starts, strict=True)]),
        value=(np.concatenate([m.value for m in members]) / len(members)).astype(np.float32),
        root=np.concatenate([m.root + start for m, start in zip(members, starts, strict=True)]),
        output=np.concatenate([m.output for m in members]),
        depth=max(m.depth for m in members),
    )


def from_lightgbm(model: Any, columns: int, classes: int) -> TreeArrays:
    """Those of a LightGBM model of B, C values. A model of two classes has one score, that of the second class."""
    nodes: list[tuple[int, float, int, float]] = []  # column, threshold, child, value
    roots, outputs, depth = [], [], 0
    for i, tree in enumerate(model.dump_model()["tree_info"]):
        roots.append(len(nodes))
        outputs.append(1 if classes == 2 else i % classes)
        depth = max(depth, _add(tree["tree_structure"], nodes, columns))
    column, threshold, child, value = zip(*nodes, strict=True)
    return TreeArrays(
        np.array(column, np.int64),
        _no_larger(np.array(threshold)),
        np.array(child, np.int64),
        np.array(value, np.float32),
        np.array(roots, np.int64),
        np.array(outputs, np.int64),
        depth,
    )


def _add(tree: dict[str, Any], nodes: list[tuple[int, float, int, float]], columns: int) -> int:
    """Appends the nodes of a tree, level by level, and returns its depth."""
    level, depth = [(tree, len(nodes))], -1
    nodes.append((0, np.inf, 0, 0.0))
    while level:
        below = []
        for node, place in level:
            if "leaf_value" in node:
                nodes[place] = (0, np.inf, place, node["leaf_value"])
                continue
            left = len(nodes)
            # without missing values in training, LightGBM takes one for 0
            goes_left = node["default_left"] if node["missing_type"] == "NaN" else node["threshold"] >= 0
            nodes[place] = (node["split_feature"] + (0 if goes_left else columns), node["threshold"], left, 0.0)
            nodes += [(0, np.inf, 0, 0.0)] * 2
            below += [(node["left_child"], left), (node["right_child"], left + 1)]
        level, depth = below, depth + 1
    return depth


def _no_larger(threshold: Doubles) -> Floats:
    """The largest float32 that is no larger: a float32 is above it exactly if it is above the threshold."""
    with np.errstate(over="ignore"):  # LightGBM's largest threshold tells only who lacks a value
        rounded = threshold.astype(np.float32)
    above: Bools = rounded > threshold
    rounded[above] = np.nextafter(rounded[above], np.float32(-np.inf))
    return rounded
