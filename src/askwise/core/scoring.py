"""Scoring rules: what is lost when the belief itself is the answer, and not a class.

    log:    s(p, y) = -log max(p_y, 10⁻⁶)              in nats
    brier:  s(p, y) = Σ_k (p_k - [y = k])²             from 0 to 2

A case of class y loses v_y s(p, y), where v_y is its class weight. The probabilities stay those of cases as they come: weights
say what matters, not what is likely. The class that is named is the one that the 0/1 loss with the same weights would name.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from askwise.core.arrays import Array, Doubles, Ints

RULES = {"log": "log loss", "brier": "Brier score"}  # by the word that asks for each, what it is called
FLOOR = 1e-6  # no probability counts as less, so that no case loses more than 13.8 nats


def case_losses(belief: Array, labels: Ints, rule: str) -> Doubles:
    """N: s(p, y), of beliefs N, K and classes N."""
    p = np.asarray(belief, np.float64)
    of_class = p[np.arange(len(p)), labels]
    if rule == "log":
        return -np.log(np.maximum(of_class, FLOOR))
    squares: Doubles = (p**2).sum(1) - 2 * of_class + 1
    return np.maximum(squares, 0)


def belief_loss(belief: Any, stakes: Array, rule: str) -> Any:
    """B, 1: Σ_y p_y v_y s(p, y), what answering with these beliefs (B, K) is expected to lose. stakes: K, v.

    Family: F9
    """
    if rule == "log":
        each = -np.log(np.maximum(belief, np.asarray(FLOOR, belief.dtype)))
    else:
        each = (belief * belief).sum(1, keepdims=True) - 2 * belief + 1
    return (belief * each) @ stakes[:, None]


def expected_losses(belief: Any, loss: Array, rule: str | None) -> Any:
    """B, K: what deciding for each class is expected to lose, of beliefs B, K. loss: K, K.

    Σ_y p_y ℓ(y, k) or, under a scoring rule, where ℓ(y, k) = v_y [y ≠ k], what the belief loses, and for all but the class with
    the least Σ_y p_y ℓ(y, k) a little more, so that this is the one that is named.

    Family: F9
    """
    named = belief @ loss
    if rule is None:
        return named
    return named - named.min(1, keepdims=True) + belief_loss(belief, loss.max(1), rule)


def largest(loss: Array, rule: str | None) -> float:
    """The most that one case can lose. loss: K, K."""
    worst = {None: 1.0, "log": -float(np.log(FLOOR)), "brier": 2.0}[rule]
    return worst * float(loss.max())
