"""A trained model, ready for use: the policies on its frontier, how tables become cases, and the budget it works under.

It needs no torch, unless it was trained with an encoder of the user's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from askwise.core.budget import Budget
from askwise.core.dense import DenseValues
from askwise.core.episode import Cases, Episodes, rollout
from askwise.core.policy import Constant, Greedy, Mixture, Policy
from askwise.core.problem import Problem, Schema
from askwise.data.encode import Encoding
from askwise.data.frames import column, columns_of, import_pandas
from askwise.errors import InputError
from askwise.frontier import Blend, choose, hull

if TYPE_CHECKING:
    from askwise.core.network import Encoder


@dataclass(frozen=True, eq=False)
class Point:
    """One policy of the frontier, and what it came to: cost on the rows of the fit, loss and accuracy on its validation rows."""

    lam: float
    cost: float
    loss: float
    accuracy: float
    error: float  # standard error of the loss
    weights: dict[str, NDArray[Any]] | None  # None: decides at once


@dataclass(frozen=True, eq=False)
class AcquisitionReport:
    """What was bought for each case, and what was said."""

    cost: NDArray[np.float64]
    prediction: NDArray[Any]
    probability: NDArray[np.float64]  # of the prediction
    tests: list[tuple[str, ...]]  # in the order bought
    index: Any = None  # of the frame it was made from

    def __len__(self) -> int:
        return len(self.cost)

    def to_frame(self) -> Any:
        """A pandas DataFrame with the columns cost, prediction, probability and tests."""
        columns = {"cost": self.cost, "prediction": self.prediction, "probability": self.probability, "tests": self.tests}
        return import_pandas().DataFrame(columns, index=self.index)


@dataclass(frozen=True, eq=False)
class Model:
    """What `CostlyClassifier.fit` learns and `askwise.load` reads."""

    schema: Schema
    encoding: Encoding
    loss: NDArray[np.float64]  # K, K: loss[truth, decision], class weights included
    at_once: tuple[float, ...]  # values of the classes when nothing is known
    points: tuple[Point, ...]  # by rising cost, the first decides at once
    trained_for: Budget
    budget: Budget
    known: tuple[str, ...]
    seed: int
    unit: str  # of the prices, for showing
    facts: dict[str, Any]  # settings, versions, metrics, fingerprint of the data
    external: Any = None  # an existing classifier
    encoder: Encoder | None = None  # of the user's own

    # ------------------------------------------------------------------ budgets

    @cached_property
    def blend(self) -> Blend:
        """Which points the budget follows."""
        cost, loss, error = (np.array([getattr(p, name) for p in self.points]) for name in ("cost", "loss", "error"))
        return choose(cost, -loss, error, self.budget)

    @property
    def expected(self) -> dict[str, float]:
        """What the model is expected to come to at its budget."""
        return {name: self.blend.mean([getattr(p, name) for p in self.points]) for name in ("cost", "loss", "accuracy")}

    @property
    def saturation(self) -> Point:
        """The cheapest of the best: more money no longer helps."""
        return self.points[int(hull([p.cost for p in self.points], [-p.loss for p in self.points])[-1])]

    def at(self, budget: Budget) -> Model:
        """The same model under another budget, without training.

        Hard budgets change what is learned, so they must not become
        smaller than the one it was trained for."""
        if not isinstance(budget, Budget):
            raise InputError(f"the budget is {budget!r}; it must be Tradeoff(lam), AverageBudget(b) or HardBudget(b)")
        trained = self.trained_for.hard
        if budget.hard is not None and (trained is None or budget.hard < trained):
            was = "without a hard budget" if trained is None else f"for a hard budget of {float(trained):g}"
            raise InputError(
                f"this model was trained {was}, so it cannot keep to {float(budget.hard):g}; fit again with {budget}"
            )
        if trained is not None and budget.hard is None:
            budget = budget & Budget(hard=trained)
        return replace(self, budget=budget)

    @cached_property
    def policy(self) -> Policy:
        return self._policy(np.float32)

    @cached_property
    def _precise(self) -> Policy:
        """The same in double precision, whose sums do not depend on the batch in any digit that is shown."""
        return self._policy(np.float64)

    def _policy(self, dtype: Any) -> Policy:
        blend = self.blend
        if not blend.share:
            return self.arm(blend.first, dtype)
        return Mixture(self.arm(blend.first, dtype), self.arm(blend.second, dtype), blend.share, self.seed)

    def arm(self, i: int, dtype: Any = np.float32) -> Greedy:
        """The policy of one point."""
        weights = self.points[i].weights
        if weights is None:
            return Greedy(Constant(self.at_once))
        if self.encoder is None:
            return Greedy(DenseValues(weights, dtype))
        from askwise.core.config import TrainConfig
        from askwise.core.train import policy_of

        return policy_of(weights, self.schema, TrainConfig.from_dict(self.facts["config"]), self.encoder)

    # ------------------------------------------------------------------ cases

    def problem(self, X: Any, y: Any = None, known: Any = None, ids: Any = None) -> Problem:
        """Rows of a table as cases. `known`: a mask rows x tests of what these cases know, besides what everyone does."""
        values = self.encoding.transform(X)
        external = None if self.external is None else answers(self.external, X, self.schema, values)
        mask: Any = list(self.known) or None
        if known is not None:
            mask = as_mask(known, len(values), self.schema.tests)
            for name in self.known:
                mask[:, self.schema.tests.index(name)] |= True
            lacks = np.isnan(values)
            for column_index, test in enumerate(self.schema.owner):
                mask[:, test] &= ~lacks[:, column_index]  # what is missing is not known
        built = Problem.build(self.schema, values, y, known=mask, external=external, ids=ids)
        return built.with_loss(self.loss)

    def rollout(self, problem: Problem) -> Episodes:
        return rollout(problem, self.policy, self.budget.cap(self.schema.prices))

    def acquire(self, X: Any, known: Any = None, ids: Any = None) -> AcquisitionReport:
        """Buys and decides, case by case."""
        problem = self.problem(X, known=known, ids=ids)
        done = self.rollout(problem)
        belief = self.belief(problem, done)
        rows = np.arange(len(done.row))
        return AcquisitionReport(
            cost=self.schema.prices.money(done.cost),
            prediction=np.array(self.schema.classes)[done.decision],
            probability=belief[rows, done.decision],
            tests=sequences(done, self.schema, problem.known),
            index=getattr(X, "index", None) if hasattr(X, "columns") else None,
        )

    def belief(self, problem: Problem, done: Episodes, chunk: int = 4096) -> NDArray[np.float64]:
        """N, K: the class probabilities with which each case was decided. With class weights they are those of the weighted
        cases, as is usual."""
        out = np.empty((len(done.row), self.schema.n_classes))
        for i in range(0, len(out), chunk):
            part = slice(i, i + chunk)
            state = Cases(problem, done.row[part], done.mask[part], None).observe()
            q: NDArray[Any] = self._precise.values(state)  # type: ignore[attr-defined]
            out[part] = probabilities(-q[:, : self.schema.n_classes].astype(np.float64), self.loss)
        if problem.external is not None:  # what the existing classifier says is believed
            said = done.decision != out.argmax(1)
            asked = said & (done.mask[:, self.schema.external_needs].all(1) if self.schema.external_needs is not None else False)
            out[asked] = np.eye(self.schema.n_classes)[done.decision[asked]]
        return out

    @property
    def stake(self) -> float:
        """What is at stake in a case on average, see `Problem.stake`."""
        return float(self.facts["stake"])

    @property
    def weighted(self) -> bool:
        """Errors are not all alike, so accuracy is not what it was trained for."""
        return not np.array_equal(self.loss, 1 - np.eye(self.schema.n_classes))


def probabilities(expected_loss: NDArray[np.float64], loss: NDArray[np.float64]) -> NDArray[np.float64]:
    """B, K: the class probabilities p that explain the expected losses in stakes, e = p L, where L are losses scaled to stake 1.

    For 0/1 losses p = 1 - e. Estimates are not exact, so what falls below 0 is cut and the rest made to sum to 1.
    """
    stakes = loss.max(1, keepdims=True)
    scaled = loss / np.where(stakes > 0, stakes, 1)
    K = len(loss)
    usual = np.allclose(scaled, 1 - np.eye(K))
    p = np.maximum(1 - expected_loss if usual else expected_loss @ np.linalg.pinv(scaled), 1e-6)
    made: NDArray[np.float64] = p / p.sum(1, keepdims=True)
    return made


def sequences(done: Episodes, schema: Schema, known: NDArray[np.bool_] | None = None) -> list[tuple[str, ...]]:
    """The names of the tests of each case in the order bought."""
    names = np.array(schema.tests, object)
    bought = done.action >= schema.first_test
    case = np.repeat(np.arange(len(done.length)), done.length)[bought]
    ordered = names[done.action[bought] - schema.first_test]
    ends = np.cumsum(np.bincount(case, minlength=len(done.length)))
    named = [tuple(part) for part in np.split(ordered, ends[:-1])]
    if schema.external_needs is not None:  # who asks the existing classifier buys what it still needs, last
        last = done.action[np.cumsum(done.length) - 1]
        for i in np.flatnonzero(last == schema.n_classes).tolist():
            needed = [t for t, wanted in zip(schema.tests, schema.external_needs, strict=True) if wanted]
            named[i] += tuple(t for t in needed if t not in named[i] and (known is None or not known[i, schema.tests.index(t)]))
    return named


def as_mask(known: Any, n: int, tests: Sequence[str]) -> NDArray[np.bool_]:
    """What each case knows, rows x tests, from an array or a frame of true and false."""
    mask = np.array(known)
    if mask.dtype != bool or mask.shape != (n, len(tests)):
        raise InputError(
            f"what is known must be true and false of shape {(n, len(tests))}; it is {mask.dtype} of shape {mask.shape}"
        )
    return mask


def answers(classifier: Any, X: Any, schema: Schema, values: NDArray[np.float32]) -> NDArray[Any]:
    """What an existing classifier says of each row. Rows that lack something it needs get any class: it is never asked there."""
    names = external_columns(classifier, X)
    table = X[names] if hasattr(X, "columns") else np.column_stack([column(X, name) for name in names])
    assert schema.external_needs is not None
    lacks = np.isnan(values)[:, schema.external_needs[schema.owner]].any(1)
    said = np.full(len(values), schema.classes[0], dtype=np.asarray(schema.classes).dtype)
    if (~lacks).any():
        rows = np.flatnonzero(~lacks)
        said[rows] = classifier.predict(table.iloc[rows] if hasattr(table, "iloc") else table[rows])
    return said


def external_columns(classifier: Any, X: Any) -> list[str]:
    """The columns an existing classifier was fitted on: by name if it knows names, otherwise all of them."""
    named: Sequence[Any] | None = getattr(classifier, "feature_names_in_", None)
    names = columns_of(X)
    if named is None:
        return names
    for name in named:
        if name not in names:
            raise InputError(f"the existing classifier needs the column {name!r}, which is not there")
    return [str(n) for n in named]
