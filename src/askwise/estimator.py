"""`CostlyClassifier`: scikit-learn's contract over the engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html import escape
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from askwise.core.arrays import Array, Doubles, Ints
from askwise.core.budget import OPTIONAL_BUDGET, Budget
from askwise.core.cost_spec import CostSpec, listed
from askwise.core.parameters import Choice, Either, Instance, OrNone, Real, Size, Whole, checked_attributes
from askwise.core.policy import class_values
from askwise.core.problem import Problem, Schema
from askwise.errors import InputError, RowError
from askwise.facade import Model
from askwise.family.config import FamilyConfig
from askwise.model.acquisitions import AcquisitionReport
from askwise.model.learn import check, learn
from askwise.model.purchases import measure_usage
from askwise.paper.config import TrainConfig
from askwise.tables import doubts
from askwise.tables.encoding import SCALING, Encoding
from askwise.tables.external import answers, features, needed
from askwise.tables.fit_inputs import known_of, seed_of, target_of, weights_of
from askwise.tables.frames import _array, columns_of
from askwise.tables.splits import schema_of, stratified
from askwise.training.progress import Progress

if TYPE_CHECKING:
    from askwise.session.session import Session


SECONDS = Real(at_least=0, infinite=True, noun="a number of seconds")
SEED = Either(Whole(at_most=2**62 - 1), Instance(np.random.RandomState, "a RandomState"))


class Prepared(NamedTuple):
    """What training begins with."""

    problem: Problem  # rows to learn from
    validation: Problem  # rows to choose by
    encoding: Encoding
    known: tuple[str, ...]  # what everyone knows
    seed: int
    classes: Array
    validation_rows: Ints  # which rows were kept apart; none where there are too few


class CostlyClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns which test to buy next, and when to stop and decide.

    Parameters
    ----------
    costs : dict, pandas Series or array, optional
        Price of each test, by name or in the order of the tests. Without it every column costs 1.
    budget : Budget, optional
        `Tradeoff(lam)`, `AverageBudget(b)`, `HardBudget(b)` or `AverageBudget(b) & HardBudget(h)`. Without it the whole frontier
        is learned, and the model works at its cheapest point within one standard error of the best validation score.
    reveals : dict, optional
        {test: columns it yields}; every other column is a test of its own.
    setup : dict, optional
        {name: (price, tests that share it)}.
    derived : dict, optional
        {test: tests it is computed from}.
    loss : array of shape (n_classes, n_classes), frame or dict, optional
        loss[truth, decision], classes sorted; as a frame, or {truth: {decision: loss}}, by name. 0/1 loss by default.
    class_weight : dict or 'balanced', optional
        Multiplies the losses of cases of a class.
    known : sequence of names, or boolean mask of shape (n_rows, n_tests)
        Tests that are free for everyone, or what each case of the fit knows at its start.
    external : fitted classifier or Recorded, optional
        One more way to decide; it pays for the tests it still needs. `Recorded(column, needs=None)`: its answers are in a column.
    categorical : sequence of names
        Columns of numbers that are only names, and have no order.
    scaling : {'columns', 'one', 'none'}
        Each column by its mean and deviation, all by one mean and deviation (as for pixels), or not at all.
    network : callable, optional
        Makes an encoder of your own, see `askwise.components.encoders.Encoder`.
    n_restarts : int
        Trains so many times and keeps the best on validation rows.
    algorithm : {'family', 'paper'}
        One training for every price and every budget, or the paper's, which learns for one budget.
    config : FamilyConfig or TrainConfig, optional
        All settings of training; by default they follow from the size of the data.
    validation_fraction : float
        Share of the rows that is kept for choosing.
    time_limit : float, optional
        Seconds for each training. Without it training is counted in steps and the result depends on the seed alone.
    unit : str
        Of the prices, for showing.
    random_state : int, RandomState or None
    verbose : int
    """

    def __init__(
        self,
        costs: Any = None,
        budget: Annotated[Budget | None, OPTIONAL_BUDGET] = None,
        reveals: Any = None,
        setup: Any = None,
        derived: Any = None,
        loss: Any = None,
        class_weight: Any = None,
        known: Any = (),
        external: Any = None,
        categorical: Any = (),
        scaling: Annotated[str, SCALING] = "columns",
        network: Any = None,
        n_restarts: Size = 1,
        algorithm: Annotated[str, Choice("family", "paper")] = "family",
        config: FamilyConfig | TrainConfig | None = None,
        validation_fraction: Annotated[float, Real(at_least=0, below=1, noun="a share")] = 0.25,
        time_limit: Annotated[float | None, OrNone(SECONDS)] = None,
        unit: Annotated[str, Instance(str, "a text such as 'dollars'")] = "",
        random_state: Annotated[Any, OrNone(SEED)] = None,
        verbose: int = 0,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.reveals = reveals
        self.setup = setup
        self.derived = derived
        self.loss = loss
        self.class_weight = class_weight
        self.known = known
        self.external = external
        self.categorical = categorical
        self.scaling = scaling
        self.network = network
        self.n_restarts = n_restarts
        self.algorithm = algorithm
        self.config = config
        self.validation_fraction = validation_fraction
        self.time_limit = time_limit
        self.unit = unit
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    def _repr_html_inner(self) -> Any:
        """What a notebook shows: scikit-learn's box or, once it is fitted, its settings and what money buys."""
        if not hasattr(self, "model_"):
            return super()._repr_html_inner()
        return f"<pre>{escape(repr(self))}</pre>" + self.model_._repr_html_()

    def _repr_mimebundle_(self, **how: Any) -> Any:
        shown = super()._repr_mimebundle_(**how)
        return {**shown, "text/html": self._repr_html_inner()} if "text/html" in shown else shown

    # ------------------------------------------------------------------ learning

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, callback: Callable[[Any], None] | None = None, **run: Any
    ) -> CostlyClassifier:
        """Learns from rows. In learning, choosing and measuring a row of weight 3 counts as three such rows, one of weight 0 not
        at all. `callback` gets every interim measurement; `run` goes to the method's `run` (save, resume, ...)."""
        if y is None:
            raise ValueError("This CostlyClassifier estimator requires y to be passed, but the target y is None")
        ready = self._prepared(X, y, sample_weight)
        apart = self.validation_fraction == 0 or len(ready.validation_rows) > 0
        features_alone = features(self.external, X)
        doubts.tell(doubts.about_fit(features_alone, ready.classes, listed(self.categorical), apart, self.time_limit))
        self.model_ = self._train(ready, callback, run)
        self.classes_, self.validation_rows_ = ready.classes, ready.validation_rows
        return self

    def _prepared(self, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
        self._check_settings()
        X = self._check(X, reset=True)
        y = target_of(y, len(X))
        weight = weights_of(sample_weight, len(y))
        counted = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
        if weight is not None and np.ptp(weight[counted]) == 0:  # rows that count all count alike
            weight = None
        classes = np.unique(y[counted])
        if len(classes) < 2:
            those = "rows" if len(counted) == len(y) else "rows with a weight above 0"
            raise InputError(f"all {those} are of one class, {classes.tolist()[0]!r}; learning needs rows of two classes or more")
        seed = seed_of(self.random_state)
        train, validation = (counted[rows] for rows in self._rows(y[counted], seed))
        encoding = Encoding.fit(
            features(self.external, X), scaling=self.scaling, categorical=listed(self.categorical), rows=train
        )
        schema = self._schema(encoding, classes)
        external = None
        if self.external is not None:
            external = answers(self.external, X, schema, encoding.transform(X), encoding.columns)
        everyone, masked = known_of(self.known, (len(X), schema.n_tests))

        def part(rows: Ints) -> Problem:
            mask = (list(everyone) or None) if masked is None else masked[rows]
            more: dict[str, Any] = {"weight": None if weight is None else weight[rows]}
            more |= {"external": None if external is None else external[rows], "known": mask, "loss": self.loss}
            encoded = encoding.transform(X, rows=rows)
            try:
                return Problem.build(schema, encoded, y[rows], class_weight=self.class_weight, **more)
            except RowError as error:
                raise error.among(rows) from None

        problem = part(train).trainable()
        chosen_from = part(validation).with_loss(problem.loss) if len(validation) else problem
        return Prepared(problem, chosen_from, encoding, everyone, seed, classes, validation)

    def _check_settings(self) -> None:
        checked_attributes(self, type(self).__init__)
        check(self.algorithm, self.config)

    def _rows(self, y: Array, seed: int) -> tuple[Ints, Ints]:
        train, validation = stratified(y, (1 - self.validation_fraction, self.validation_fraction), seed)
        if len(np.unique(y[validation])) < 2 or len(np.unique(y[train])) < len(np.unique(y)):
            return np.arange(len(y)), np.arange(0)  # too few rows to keep some of every class apart
        return train, validation

    def _schema(self, encoding: Encoding, classes: Array) -> Schema:
        spec = CostSpec(self.costs, self.setup, self.derived, self.reveals)
        return schema_of(encoding, classes.tolist(), spec, needed(self.external, encoding.columns))

    def _train(self, ready: Prepared, callback: Any, more: dict[str, Any]) -> Model:
        problem, validation, seed = ready.problem, ready.validation, ready.seed
        budget = self.budget or Budget()
        if callback is None and self.verbose:
            callback = Progress(self.time_limit, self.unit, every=True)
        learned = learn(
            self.algorithm,
            problem,
            validation,
            budget,
            self.config,
            seed,
            self.n_restarts,
            encoder=self.network,
            time_limit=self.time_limit,
            callback=callback,
            **more,
        )
        model = Model(
            schema=problem.schema,
            encoding=ready.encoding,
            loss=problem.loss,
            at_once=class_values(problem),
            points=learned.result.points,
            trained_for=budget,
            budget=budget,
            known=ready.known,
            seed=seed,
            unit=self.unit,
            facts=learned.facts,
            external=self.external,
            encoder=self.network,
            family=learned.result.shared,
        )
        return replace(model, facts={**model.facts, "usage": measure_usage(model, validation)})

    # ------------------------------------------------------------------ use

    def acquire(self, X: Any, known: Any = None, ids: Any = None) -> AcquisitionReport:
        """What is bought for each case, what it costs and what is said. `ids` name the cases, for draws that stay the same."""
        check_is_fitted(self)
        return self.model_.acquire(self._check(X), known, ids)

    def session(self, known: Any = None, **more: Any) -> Session:
        """One case, question by question; see `askwise.Session`."""
        check_is_fitted(self)
        return self.model_.session(known, **more)

    def predict(self, X: Any, *, known: Any = None, ids: Any = None) -> Array:
        """The decisions; `known` and `ids` as in `acquire`."""
        check_is_fitted(self)
        problem = self.model_.problem(self._check(X), known=known, ids=ids)
        decided: Array = self.classes_[self.model_.rollout(problem).decision]
        return decided

    def predict_proba(self, X: Any, *, known: Any = None, ids: Any = None) -> Doubles:
        """Class probabilities at the moment of deciding; `known` and `ids` as in `acquire`."""
        check_is_fitted(self)
        return self.model_.predict_proba(self._check(X), known, ids)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, known: Any = None, ids: Any = None) -> float:
        """Accuracy; `known` and `ids` as in `acquire`."""
        said = self.predict(X, known=known, ids=ids)
        return float(accuracy_score(y, said, sample_weight=weights_of(sample_weight, len(said))))

    @property
    def frontier_(self) -> list[dict[str, float]]:
        """What each amount of money buys, as measured in training: price, mean cost, loss and accuracy of every kept policy."""
        check_is_fitted(self)
        return [point.shown for point in self.model_.frontier]

    def at(self, budget: Budget | None) -> CostlyClassifier:
        """The same classifier under another budget, without training."""
        check_is_fitted(self)
        other = type(self)(**{**self.get_params(deep=False), "budget": budget})
        other.__dict__.update({k: v for k, v in self.__dict__.items() if k.endswith("_")})
        other.model_ = self.model_.at(budget)
        return other

    def save(self, path: Any) -> None:
        """One file, which `askwise.load` reads."""
        check_is_fitted(self)
        self.model_.save(path)

    def _check(self, X: Any, reset: bool = False) -> Any:
        """Frames go by name and may hold anything; arrays are checked as scikit-learn does."""
        if hasattr(X, "columns"):
            columns_of(X)
            validate_data(self, X, reset=reset, skip_check_array=True) if reset else None
            if len(X) == 0:
                raise InputError("there are no rows")
            return X
        if isinstance(X, list):
            X = _array(X)  # where NumPy would make words of numbers
        array = check_array(X, dtype=None, ensure_all_finite="allow-nan" if _floats(X) else False, estimator=self)
        validate_data(self, array, reset=reset, skip_check_array=True)
        return array


def _floats(X: Any) -> bool:
    return getattr(np.asarray(X), "dtype", np.dtype(object)).kind in "fiub" if not hasattr(X, "tocsr") else True
