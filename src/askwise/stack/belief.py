"""Class probabilities from a stack of learners, without torch or LightGBM.

    h = |S| / F,   w_j = softplus(a_j0 + a_j1 h + a_j2 √h)
    p = softmax(log π + Σ_j w_j (z_j - log π))

z_j are the logits of learner j, averaged over its members, and π the class frequencies. The weights need not add up to 1, so
that they also say how sure the learners may be.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from askwise.core.arrays import Array
from askwise.family.forward import softmax, softplus
from askwise.stack.config import DESIGN
from askwise.stack.trees import TreeArrays

LEARNERS = ("trees", "linear")
Scores = Callable[[Any, Any], Any]  # values and known, both B, C -> B, K


class StackedBelief:
    """p(y | what is held), from the weights of a stack. `tree_scores`: another way to the scores of its trees."""

    def __init__(self, weights: Mapping[str, Array], owner: Array, dtype: Any, tree_scores: Scores | None = None) -> None:
        self.owner, self.dtype = owner, dtype
        self.prior = weights["prior"].astype(dtype)
        self.shift = weights["shift"].astype(dtype)  # log of how much more the learners have seen of each class
        self.learners: list[tuple[Array, Callable[[Any, Any, Any], Any]]] = []
        if "weight.trees" in weights:
            scores = tree_scores or self._trees(TreeArrays.of(_part(weights, "trees.")))
            self.learners.append((weights["weight.trees"].astype(dtype), lambda x, known, mask: scores(x, known)))
        if "weight.linear" in weights:
            linear = Linear(_part(weights, "linear."), len(self.prior), dtype)
            self.learners.append((weights["weight.linear"].astype(dtype), linear))

    def _trees(self, trees: TreeArrays) -> Scores:
        return lambda x, known: trees.scores(x, known, len(self.prior))

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


def _part(weights: Mapping[str, Array], prefix: str) -> dict[str, Array]:
    return {name.removeprefix(prefix): value for name, value in weights.items() if name.startswith(prefix)}
