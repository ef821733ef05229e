"""What must hold for the learners and heads of a stack that come from a file, be it a model or a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np

from askwise.core.arrays import Array, Arrays, Bools
from askwise.core.schema import Schema
from askwise.errors import must
from askwise.stack.belief import LEARNERS
from askwise.stack.inference import head_sizes
from askwise.stack.trees import STORED, TreeArrays

MOST_DEPTH = 64  # of trees


def check_stack(weights: Arrays, schema: Schema) -> None:
    """A whole stack."""
    for name in ("prior", "shift"):
        must(weights[name].shape == (schema.n_classes,), "the class frequencies fit the classes")
    learners = [name for name in LEARNERS if f"weight.{name}" in weights]
    needed = {(4 if "stages" in learners else 3,)}
    must({weights[f"weight.{name}"].shape for name in learners} == needed, "each learner has its weights")
    check_learners(weights, schema, learners)
    sizes = [head_sizes(schema, weighs) for weighs in (False, True)]
    inputs = [inputs for inputs, _ in sizes if weights["heads.0.weight"].shape[1] == inputs]
    must(bool(inputs), "the networks fit the tests and classes")
    check_layers(weights, "heads.", inputs[0], sizes[0][1])


def check_learners(weights: Arrays, schema: Schema, learners: Sequence[str]) -> None:
    """These learners of a stack or of a member."""
    F, K, C = schema.n_tests, schema.n_classes, len(schema.columns)
    if "trees" in learners:
        _check_trees(_part(weights, "trees."), C, K)
    if "stages" in learners:
        _check_stages(_part(weights, "stages."), F, C, K)
    if "linear" in learners:
        must(weights["linear.main"].shape == (C + F, K) and weights["linear.bias"].shape == (K,), "the linear model fits")
        must("linear.by_set" not in weights or weights["linear.by_set"].shape == (F, C * K), "the linear model fits its sets")
    if "networks" in learners:
        shown = check_features(
            {name.removeprefix("networks."): value for name, value in weights.items() if name.startswith("networks.")}, C
        )
        check_layers(weights, "networks.", C + shown + F, K)


def _part(weights: Arrays, prefix: str) -> Arrays:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}


def _check_stages(parts: Arrays, tests: int, columns: int, classes: int) -> None:
    """Trees for prefixes, each of which goes on from the one before."""
    sets, trees = parts["sets"], parts["trees"]
    must(sets.dtype == np.uint8 and sets.ndim == 2 and sets.shape[1] == tests and bool((sets < 2).all()), "prefixes are tests")
    must(bool((np.diff(np.r_[np.zeros((1, tests), int), sets.astype(int)], axis=0) >= 0).all()), "prefixes go on from each other")
    must(trees.dtype == np.int32 and trees.shape == (len(sets),) and bool((trees > 0).all()), "each prefix has its trees")
    must(int(trees.sum(dtype=np.int64)) == len(parts["root"]), "each prefix has its trees")
    _check_trees(parts, columns, classes)
    start, inner = parts["root"], np.flatnonzero(parts["child"] != np.arange(len(parts["child"])))
    tree, left = np.searchsorted(start, np.arange(len(parts["child"])), "right"), parts["child"][inner]
    apart = start[0] == 0 and bool((np.diff(start) > 0).all())
    apart &= bool((tree[left] == tree[inner]).all() and (tree[left + 1] == tree[inner]).all())
    must(apart, "trees come one after the other")


def _check_trees(parts: Arrays, columns: int, classes: int) -> None:
    """Whatever the trees say, each look-up stays within their arrays."""
    must(all(parts[name].dtype == np.int32 for name in STORED if name != "number"), "trees are made of whole numbers")
    must(all(parts[name].ndim == 1 for name in STORED) and parts["depth"].shape == (1,), "the arrays of the trees fit")
    must(len({parts[name].shape for name in ("column", "number", "child")}) == 1, "the arrays of the trees fit")
    trees = TreeArrays.of(parts)
    n, index = len(trees.column), (trees.column, trees.child, trees.root, trees.output)
    must(len(trees.root) == len(trees.output) > 0, "the arrays of the trees fit")
    most = (2 * columns - 1, n - 2, n - 1, classes - 1)  # the right child is the one after the left
    inside = all(bool((x >= 0).all()) for x in index) and all(
        int(x.max()) <= m + (x is trees.child) for x, m in zip(index, most, strict=True)
    )
    must(inside, "the trees stay within their nodes")
    must(0 <= trees.depth <= MOST_DEPTH, f"trees have at most {MOST_DEPTH} levels")
    leaf = trees.child == np.arange(n)
    must(bool((trees.child < n - 1)[~leaf].all()), "leaves end a tree")
    must(_are_trees(trees, leaf), "each node belongs to one tree, none of which is deeper than is said")


def _are_trees(trees: TreeArrays, leaf: Bools) -> bool:
    """Whether each node is reached once from the roots, level by level."""
    level, reached = trees.root, [trees.root]
    for _ in range(trees.depth):
        inner = level[~leaf[level]]
        level = np.concatenate([trees.child[inner], trees.child[inner] + 1])
        reached.append(level)
        if sum(map(len, reached)) > len(leaf):
            return False
    return bool(leaf[level].all()) and np.array_equal(np.sort(np.concatenate(reached)), np.arange(len(leaf)))


def check_features(parts: Arrays, columns: int) -> int:
    """How networks see columns; returns how many bins and sines there are."""
    shown = [parts[f"{kind}.source"] for kind in ("bins", "sines") if f"{kind}.source" in parts]
    must(
        all(x.dtype.kind == "i" and bool(((x >= 0) & (x < columns)).all()) for x in shown), "networks look at columns that exist"
    )
    of_features = {name: value for name, value in parts.items() if name.startswith(("bins.", "sines."))}
    fit = all(value.shape == parts[f"{name.split('.')[0]}.source"].shape == (value.size,) for name, value in of_features.items())
    must(fit, "the features of the networks fit")
    return sum(map(len, shown))


def check_layers(weights: Arrays, name: str, inputs: int, outputs: int) -> None:
    """Networks side by side: each layer fits the one before it."""
    layers = [key for key in weights if key.startswith(name) and key.removeprefix(name)[0].isdigit()]
    depth = len(layers) // 2
    must(
        1 < depth < MOST_DEPTH and set(layers) == {f"{name}{i}.{p}" for i in range(depth) for p in ("weight", "bias")},
        "layers are complete",
    )
    shapes = [weights[f"{name}{i}.weight"].shape for i in range(depth)]
    must(all(a[2] == b[1] for a, b in pairwise(shapes)) and len({shape[0] for shape in shapes}) == 1, "layers fit each other")
    must((shapes[0][1], shapes[-1][2]) == (inputs, outputs), "the networks fit the tests and classes")
    biases = [weights[f"{name}{i}.bias"].shape for i in range(depth)]
    must(biases == [(shape[0], 1, shape[2]) for shape in shapes], "layers fit their biases")


def check_numbers(weights: Mapping[str, Array]) -> None:
    """All weights are finite."""
    for value in weights.values():
        must(value.dtype.kind in "fiu" and bool(np.isfinite(value).all()), "weights are numbers")
