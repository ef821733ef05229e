"""Boosted trees as plain arrays: scores without LightGBM, for any set of tests.

A node sends a case to its left child, or to the one after it if the value of its column is above the threshold. Who lacks the
value goes where the node says. To know this without a second look-up, values are there twice, with -∞ and with +∞ for what is
unknown, and a node looks at the copy that decides as it wants. A leaf sends every case to itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Array, Bools, Doubles, Floats, Ints

PLACES = 65_536  # (case, tree) pairs that are followed at a time: so few that all arrays of a step stay in the cache


STORED = ("column", "number", "child", "root", "output", "depth")  # the arrays of trees in a file


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
        column, child, root, output = (parts[name].astype(np.int64) for name in ("column", "child", "root", "output"))
        number, leaf = parts["number"], child == np.arange(len(child))
        threshold, value = np.where(leaf, np.float32(np.inf), number), np.where(leaf, number, np.float32(0))
        return cls(column, threshold, child, value, root, output, int(parts["depth"][0]))

    def arrays(self) -> dict[str, Array]:
        """To store them in half the space: a leaf needs no threshold, and only a leaf a value."""
        leaf = self.child == np.arange(len(self.child))
        whole = {"column": self.column, "child": self.child, "root": self.root, "output": self.output}
        stored: dict[str, Array] = {name: value.astype(np.int32) for name, value in whole.items()}
        return {**stored, "number": np.where(leaf, self.value, self.threshold), "depth": np.array([self.depth], np.int32)}

    def part(self, first: int, end: int) -> TreeArrays:
        """Those from one to before another alone."""
        start, stop = np.r_[self.root, len(self.column)][[first, end]].tolist()
        nodes = {name: getattr(self, name)[start:stop] for name in ("column", "threshold", "value")}
        place = {"child": self.child[start:stop] - start, "root": self.root[first:end] - start}
        return self._replace(**nodes, **place, output=self.output[first:end])

    def scores(self, values: Any, known: Any, classes: int, adds: Floats | None = None) -> Any:
        """B, K: the sum of the leaves that a case reaches, for each class. values, known: B, C; adds: as below."""
        both = copies(values, known)
        if not isinstance(both, np.ndarray):  # an ONNX graph has an operation of its own for trees
            return both.tree_scores(self, classes)
        adds = self.adds(classes) if adds is None else adds
        return np.concatenate([self.value.take(leaf) @ adds for leaf in self._leaves(both)])

    def adds(self, classes: int) -> Floats:
        """T, K: 1 where a tree adds to the score of a class."""
        ones: Floats = (self.output[:, None] == np.arange(classes)).astype(np.float32)
        return ones

    def leaves(self, values: Any, known: Any) -> Ints:
        """B, T: the leaf of each tree that a case reaches."""
        return np.concatenate(list(self._leaves(copies(values, known))))

    def _leaves(self, both: Floats) -> Iterator[Ints]:
        """The same, for some cases at a time."""
        step, C = max(1, PLACES // max(len(self.root), 1)), both.shape[1]
        for i in range(0, max(len(both), 1), step):
            part = both[i : i + step]
            case = np.arange(0, part.size, C)[:, None]
            yield self.followed(np.zeros((len(part), 1), np.int64) + self.root, part.reshape(-1), case)

    def followed(self, node: Ints, flat: Floats, start: Ints) -> Ints:
        """The leaves that are reached from these nodes. flat: both copies of the values of all cases; start: where those of the
        case of each node begin in it. NumPy is fastest at `take` from flat arrays."""
        for _ in range(self.depth):
            value = flat.take(self.column.take(node) + start)
            right = value > self.threshold.take(node)
            node = self.child.take(node)
            node += right
        return node


def copies(values: Any, known: Any) -> Any:
    """B, 2 C: values, -∞ where they are unknown; the same with +∞."""
    low, high = np.float32(-np.inf), np.float32(np.inf)
    return np.concatenate([np.where(known, values, low), np.where(known, values, high)], 1)


def joined(members: Sequence[TreeArrays]) -> TreeArrays:
    """The mean of the scores of all members."""
    every = concatenated(members)
    return every._replace(value=(every.value / len(members)).astype(np.float32))


def concatenated(parts: Sequence[TreeArrays]) -> TreeArrays:
    """All trees, one part after the other."""
    starts = np.cumsum([0, *(len(p.column) for p in parts)])[:-1]
    return TreeArrays(
        column=np.concatenate([p.column for p in parts]),
        threshold=np.concatenate([p.threshold for p in parts]),
        child=np.concatenate([p.child + start for p, start in zip(parts, starts, strict=True)]),
        value=np.concatenate([p.value for p in parts]),
        root=np.concatenate([p.root + start for p, start in zip(parts, starts, strict=True)]),
        output=np.concatenate([p.output for p in parts]),
        depth=max(p.depth for p in parts),
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
