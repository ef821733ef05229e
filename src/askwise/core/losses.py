"""What mistakes cost, and how much rows and classes count, made into arrays or refused in one sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from askwise.core.arrays import Doubles, Ints
from askwise.core.costs import AMOUNTS, LEAST, MOST, exact
from askwise.core.parameters import check_distinct
from askwise.core.scoring import RULES
from askwise.errors import InputError, closest, did_you_mean, quoted


def scoring_rule(loss: Any) -> str | None:
    """The scoring rule that a word asks for; None for anything else, which is a loss matrix."""
    if not isinstance(loss, str):
        return None
    if loss not in RULES:
        raise InputError(f"loss is {loss!r}; it must be 'log', 'brier' or a loss matrix, loss[truth, decision]")
    return loss


def loss_matrix(loss: Any, classes: Sequence[Any], class_weight: Doubles | float, others: Sequence[Any] = ()) -> Doubles:
    """K, D: loss[truth, decision], each row times the weight of its class. others: decisions that are not classes."""
    K, decisions = len(classes), [*classes, *others]
    D = len(decisions)
    if loss is None and others:
        raise InputError(f"nothing says what the decision {others[0]!r} loses; give a loss matrix that has a column for it")
    if isinstance(loss, Mapping) or hasattr(loss, "columns"):
        loss = by_class(loss, classes, "the loss matrix", others)
    try:
        losses = 1.0 - np.eye(K) if loss is None else np.array(loss, np.float64)
    except (ValueError, TypeError, OverflowError):
        raise InputError(f"the loss matrix must be {K} rows of {D} numbers, loss[truth, decision]") from None
    if losses.shape != (K, D):
        also = f" and the decisions {', '.join(map(quoted, others))}" if others else ""
        right = f"for {K} classes{also} it must be {(K, D)}, loss[truth, decision]"
        raise InputError(f"the loss matrix has shape {losses.shape}; {right}")
    _amounts(losses, classes, decisions, "the loss matrix")
    losses *= np.reshape(class_weight, (-1, 1))
    if not losses.any():
        raise InputError("the loss matrix, with the class weights, is all zeros, so no decision matters")
    _amounts(losses, classes, decisions, "the loss matrix, with the class weights,")
    return losses


def _amounts(losses: Doubles, classes: Sequence[Any], decisions: Sequence[Any], what: str) -> None:
    """Refuses a loss that cannot be computed with, and says which one it is."""
    usual = (losses >= float(LEAST)) & (losses <= float(MOST))
    for truth, decision in np.argwhere(~usual & (losses != 0)).tolist():
        value = losses[truth, decision]
        fault = "too small or too large" if value > 0 and np.isfinite(value) else "negative or not finite"
        raise InputError(
            f"{what} holds {value:g} for deciding {decisions[decision]!r} where {classes[truth]!r} is true, which is "
            f"{fault}; losses must be finite numbers, 0 or {AMOUNTS}"
        )


def by_class(loss: Any, classes: Sequence[Any], what: str, others: Sequence[Any] = ()) -> Any:
    """A frame, or {truth: {decision: value}}, as rows in the order of the classes and columns in that of the decisions: classes
    and then others. It has each of them once, and nothing else."""
    decisions = [*classes, *others]
    if isinstance(loss, Mapping):
        rows = {truth: dict(row) if isinstance(row, Mapping) else {} for truth, row in loss.items()}
        names = {"row": list(rows), "column": list(dict.fromkeys(name for row in rows.values() for name in row))}
    else:
        names = {"row": list(getattr(loss, "index", range(len(loss)))), "column": list(loss.columns)}
        if [*names.values()] == [[*range(len(classes))], [*range(len(decisions))]]:  # not named, so in order
            return np.asarray(loss)
        cells = zip(names["row"], np.asarray(loss).tolist(), strict=True)
        rows = {truth: dict(zip(names["column"], row, strict=True)) for truth, row in cells}
    for kind, expected in (("row", classes), ("column", decisions)):
        there = names[kind]
        for name in there:
            if name not in expected:
                neither = "not a class" if expected is classes or not others else "neither a class nor one of the other decisions"
                raise InputError(f"{what} has a {kind} {name!r}, which is {neither}; {did_you_mean(name, expected)}")
        check_distinct(there, f"{kind} of {what}")
        for name in expected:
            if name in there:
                continue
            if name in classes:
                raise InputError(f"{what} has no row or no column for the class {name!r}; it needs both for every class")
            raise InputError(f"{what} has no column for the decision {name!r}; add it")
    for truth in classes:
        for decision in decisions:
            if decision not in rows[truth]:
                raise InputError(f"{what} has no loss for deciding {decision!r} where {truth!r} is true; add it")
    return [[rows[truth][decision] for decision in decisions] for truth in classes]


def external_probabilities(external: Any, n: int, K: int, rule: str) -> Doubles:
    """N, K: what an existing classifier believes, where beliefs are judged."""
    right = f"for the loss {rule!r} it must give {n} rows of {K} class probabilities"
    try:
        belief = np.asarray(external, np.float64)
    except (ValueError, TypeError):
        raise InputError(f"the existing classifier says classes, not how probable they are; {right}") from None
    if belief.shape != (n, K):
        raise InputError(f"the answers of the existing classifier have shape {belief.shape}; {right}")
    if not (np.isfinite(belief).all() and (belief >= 0).all() and np.allclose(belief.sum(1), 1, atol=1e-3)):
        raise InputError(f"the probabilities of the existing classifier are not 0 or more with a sum of 1 in each row; {right}")
    return belief


def row_weights(weight: Any, labels: Ints | None, K: int, n: int) -> Doubles:
    """N: how often rows are drawn, as given or balanced over the classes."""
    if isinstance(weight, str):
        balanced: Doubles = _balanced(weight, labels, K)[labels]
        return balanced
    right = f"the row weights must be {n} finite numbers, 0 or more, not all 0"
    try:
        weights = np.asarray(weight, np.float64)
    except (ValueError, TypeError):
        raise InputError(right) from None
    if weights.shape != (n,) or not np.isfinite(weights.sum()) or (weights < 0).any() or not weights.any():
        raise InputError(right)
    return weights


def class_weights(
    class_weight: Mapping[Any, Any] | str, labels: Ints | None, classes: Sequence[Any], weight: Doubles | None = None
) -> Doubles:
    """K: by class, 1 for those not named, or balanced, over rows that count as much as their weights say."""
    if isinstance(class_weight, str) and class_weight == "balanced":
        return _balanced(class_weight, labels, len(classes), weight)
    if isinstance(class_weight, str) or not hasattr(class_weight, "items"):
        guess = "did you mean 'balanced'?" if closest(class_weight, ["balanced"]) else ""
        right = guess or f"they must be None, 'balanced' or numbers by class, such as {{{classes[0]!r}: 2}}"
        raise InputError(f"the class weights are {quoted(class_weight)}; {right}")
    for name, value in class_weight.items():
        if name not in classes:
            raise InputError(f"a weight is given for {name!r}, which is not a class; {did_you_mean(name, classes)}")
        if not isinstance(value, (int, float, np.number)):
            raise InputError(f"the weight of class {name!r} is {quoted(value)}; it must be a finite number, 0 or more")
        exact(value, f"the weight of class {name!r}")
    return np.array([class_weight.get(c, 1.0) for c in classes], np.float64)


def _balanced(word: str, labels: Ints | None, K: int, weight: Doubles | None = None) -> Doubles:
    if word != "balanced":
        raise InputError(f"weights are {word!r}; they must be numbers or 'balanced'")
    if labels is None:
        raise InputError("'balanced' weights need a target")
    counts = np.bincount(labels, weight, minlength=K)
    # a class without rows is as one with a single row
    weights: Doubles = counts.sum() / (K * np.where(counts > 0, counts, counts.sum() / len(labels)))
    return weights
