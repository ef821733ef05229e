"""Class probabilities from a stack of learners, without torch or LightGBM.

    h = |S| / F,   w_j = softplus(a_j0 + a_j1 h + a_j2 √h)
    p = softmax(log π + Σ_j w_j (z_j - log π))

z_j are the logits of learner j, averaged over its members, and π the class frequencies. The weights need not add up to 1, so
that they also say how sure the learners may be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from askwise.components.numpy_layers import AveragedNetworks
from askwise.core.arrays import Array, Bools
from askwise.family.forward import piecewise_linear, softmax, softplus
from askwise.stack.config import DESIGN
from askwise.stack.trees import TreeArrays

LEARNERS = ("trees", "linear", "networks")


class StackedBelief:
    """p(y | what is held), from the weights of a stack."""

    def __init__(self, weights: Mapping[str, Array], owner: Array, dtype: Any) -> None:
        self.owner, self.dtype = owner, dtype
        self.prior = weights["prior"].astype(dtype)
        self.shift = weights["shift"].astype(dtype)  # log of how much more the learners have seen of each class
        self.learners: list[tuple[Array, Callable[[Any, Any, Any], Any]]] = []
        if "weight.trees" in weights:
            trees = TreeArrays.of(_part(weights, "trees."))
            scores = partial(trees.scores, classes=len(self.prior))
            self.learners.append((weights["weight.trees"].astype(dtype), lambda x, known, mask: scores(x, known)))
        if "weight.linear" in weights:
            linear = Linear(_part(weights, "linear."), len(self.prior), dtype)
            self.learners.append((weights["weight.linear"].astype(dtype), linear))
        if "weight.networks" in weights:
            networks = Networks(_part(weights, "networks."), owner, dtype)
            self.learners.append((weights["weight.networks"].astype(dtype), networks))

    def logits(self, values: Any, mask: Any) -> list[Any]:
        """B, K of each learner, as if classes were as frequent as they are."""
        known = mask[:, self.owner]
        return [learner(values, known, mask) - self.shift for _, learner in self.learners]

    def __call__(self, values: Any, mask: Any) -> Any:
        """B, K."""
        return softmax(self._stacked(self.logits(values, mask), held_share(mask, self.dtype)))

    def _stacked(self, logits: list[Any], held: Any) -> Any:
        z = 0 * logits[0].astype(self.dtype) + self.prior
        for (weight, _), own in zip(self.learners, logits, strict=True):
            z = z + softplus(held @ weight)[:, None] * (own - self.prior)
        return z


def held_share(mask: Any, dtype: Any) -> Any:
    """B, 3: (1, h, √h)."""
    h = mask.sum(1, keepdims=True, dtype=dtype) / mask.shape[1]
    return np.concatenate([0 * h + 1, h, np.sqrt(h)], 1)


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
            for kind, names in (("bins", ("source", "low", "slope")), ("sines", ("source", "rate", "phase")))
        )
        sources = [kind[0] for kind in (self.bins, self.sines) if kind is not None]
        self.owner, self.dtype = np.concatenate([owner, *(owner[source] for source in sources)]), dtype
        # C, E: each output has one column; onnxruntime multiplies by such a matrix faster than it looks columns up
        self.of_column = [(np.arange(len(owner))[:, None] == source).astype(np.float32) for source in sources]

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


class Networks:
    """The mean logits of networks.

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
        self.test = np.concatenate([self.features.owner, test, test])  # of each input

    def __call__(self, values: Any, known: Any, mask: Any) -> Any:
        shown = self.features.columns(np.where(known, values, np.float32(0)))
        return self.mean(np.concatenate([shown, mask, ~mask], 1, dtype=shown.dtype), self._used(mask))

    def _used(self, mask: Any) -> Array | None:
        """The inputs of tests that somebody holds, if these are less than half: the others add nothing to the largest product."""
        if not isinstance(mask, np.ndarray):  # a graph computes the same whatever is held
            return None
        held: Bools = np.logical_or.reduce(mask)
        return np.flatnonzero(held[self.test]) if 2 * np.count_nonzero(held) < len(held) else None


def _part(weights: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
