"""`CostlyClassifier`: scikit-learn's contract over the engine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from askwise.core.arrays import Array, Doubles
from askwise.core.budget import OPTIONAL_BUDGET, Budget
from askwise.core.cost_spec import CostSpec, listed
from askwise.core.labels import class_codes
from askwise.core.parameters import Either, Instance, Jobs, OneOf, OrNone, Real, Size, Whole, checked_attributes
from askwise.core.scoring import case_losses
from askwise.facade import Model, trained
from askwise.family.config import FamilyConfig
from askwise.model import targeting
from askwise.model.acquisitions import AcquisitionReport
from askwise.model.learn import ALGORITHMS, check, counts_classes, learns_from_all
from askwise.paper.config import TrainConfig
from askwise.reports.notebook import NotebookBox
from askwise.stack.config import StackConfig
from askwise.tables import doubts
from askwise.tables.encoding import SCALING
from askwise.tables.external import features
from askwise.tables.fit_inputs import flat, picture_of, reveals_of, seed_of, table_of, target_of, weights_of
from askwise.tables.gaps import MISSING
from askwise.tables.preparation import Preparation, Prepared
from askwise.training.progress import Progress

if TYPE_CHECKING:
    from askwise.session.session import Session


Called = Callable[[Any], None] | None
SECONDS = Real(at_least=0, infinite=True, noun="a number of seconds")
SEED = Either(Whole(at_most=2**62 - 1), Instance(np.random.RandomState, "a RandomState"))


class CostlyClassifier(NotebookBox, ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """Learns which test to buy next, and when to stop and decide.

    Parameters
    ----------
    costs : dict, pandas.Series or array-like, default=None
        Cost of each test, by name or in the order of the tests. Without it every test costs 1.
    budget : Budget, default=None
        `Tradeoff(lam)`, `AverageBudget(b)`, `HardBudget(b)`, `AtLeast(recall={"ill": 0.97})`, `AtMost(loss=0.1)`,
        `ClassWeights({"ill": 5})`, or several joined by `&`. Without it the whole
        frontier is learned, and the model works at its cheapest point within one standard error of the best validation score.
    reveals : dict, default=None
        {test: columns it yields}. Every other column is a test of its own.
    setup : dict, default=None
        {name: (cost, tests that share it)}: a cost that is paid once, such as a blood draw.
    derived : dict, default=None
        {test: tests it is computed from}. It costs what is unpaid of these.
    decisions : dict, default=None
        {decision: cost} of decisions that are not classes, such as {'specialist': 120}. The loss matrix has a column for each,
        after those of the classes. What they cost counts in every budget.
    loss : array-like of shape (n_classes, n_decisions), DataFrame, dict, 'log' or 'brier', default=None
        `loss[truth, decision]`, classes sorted; a DataFrame or {truth: {decision: loss}} goes by name. 0/1 loss by default.
        'log' and 'brier' judge the class probabilities instead of the class that is named: tests are bought for a risk score.
    class_weight : dict or 'balanced', default=None
        Multiplies the losses of cases of a class. The probabilities stay those of cases as they come.
    known : sequence of str, or bool array of shape (n_rows, n_tests), default=()
        Tests that are free for everyone, or what each case of the fit knows at its start.
    missing : {'blind', 'informative'}, default='blind'
        What a missing value says beside that the test cannot be had. 'blind': nothing. 'informative': which tests a case lacks is
        known from its start, at no cost; for tables where a gap will mean the same in use.
    external : fitted classifier or Recorded, default=None
        One more way to decide. It pays for the tests that it still needs. With a loss of 'log' or 'brier' it needs
        `predict_proba`.
    categorical : sequence of str, default=()
        Columns of numbers that are only names and have no order.
    scaling : {'columns', 'one', 'none'}, default='columns'
        Each column by its mean and deviation, all columns by one mean and deviation, as pixels with a `shape` are, or not at all.
    shape : tuple of int, default=None
        Of pictures: height, width and, if there are several, the number of colours. Columns go row by row and pixel by pixel, or
        X is an array of pictures. A trial says whether convolutions see them better than a plain network.
    patch : int or tuple of int, default=None
        Of pictures: height and width of the patches that are one test each, 'patch 0,0' and so on. By default a pixel is one.
    network : callable, default=None
        Makes an encoder of your own, see `askwise.components.encoders.Encoder`.
    n_restarts : int, default=1
        Trains so many times and keeps the best on validation rows.
    algorithm : {'auto', 'stack', 'family', 'paper'}, default='auto'
        'stack' and 'family': one training for every tradeoff and every budget, by a cross-fitted stack of boosted trees,
        networks and a linear model, or by networks alone. 'paper': the paper's algorithm, which learns for one budget. 'auto':
        the stack for up to 64 tests and 50,000 training rows, else the family.
    config : StackConfig, FamilyConfig or TrainConfig, default=None
        All settings of training. By default they follow from the size of the data.
    validation_fraction : float, default=0.25
        Share of the rows that is kept apart to choose and to measure. The stack learns from all rows where there are fewer than
        20,000, and measures each row by members that have not learned from it.
    time_limit : float, default=None
        Seconds for each training. Without it training is counted in steps, and the result depends on the seed alone.
    unit : str, default=''
        Of the costs, for showing.
    random_state : int, RandomState or None, default=None
        Seed of the split, the training and the draws of a mixture.
    n_jobs : int, default=None
        Processes of this machine that fit the members of a stack; -1: one for each core. By default others help where that is
        faster, on cores that are free. The result is the same.
    threads : int, default=None
        Threads with which the networks of the family and of the paper's algorithm learn. By default, for large networks of the
        family, as many as a trial finds to pay, on cores that are free.
    engine : str, default='local'
        'dask://HOST:PORT' fits the members on the workers of a Dask cluster, 'dask' on one that is started on this machine with
        `n_jobs` workers, for which a script needs `if __name__ == "__main__":`. The result is the same.
    verbose : int, default=0
        Above 0, training tells how it goes.

    Attributes
    ----------
    model_ : askwise.facade.Model
        The trained model, which `save` writes.
    classes_ : ndarray of shape (n_classes,)
        The classes, sorted.
    validation_rows_ : ndarray of int
        The rows that were kept apart for choosing; empty where there were too few.
    out_of_fold_ : askwise.evaluation.Report or None
        What the model comes to on the rows of the fit, each decided by members that had not learned from it; with a time limit,
        on as many of them as there was time for. None where validation rows were kept apart instead.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Names of the columns, where the table had names.

    See Also
    --------
    askwise.load : Reads a saved model.
    askwise.Session : One case, question by question.

    Examples
    --------
    >>> from askwise import AverageBudget, CostlyClassifier
    >>> from askwise.datasets.named import raw
    >>> wine = raw("wine")
    >>> classifier = CostlyClassifier(budget=AverageBudget(3), random_state=0).fit(wine.table, wine.y)
    >>> classifier.predict(wine.table[:2]).tolist()
    ['class_0', 'class_0']
    >>> classifier.acquire(wine.table[:1]).tests  # doctest: +SKIP
    [('color_intensity', 'flavanoids')]
    """

    def __init__(
        self,
        costs: Any = None,
        budget: Annotated[Budget | None, OPTIONAL_BUDGET] = None,
        reveals: Any = None,
        setup: Any = None,
        derived: Any = None,
        decisions: Any = None,
        loss: Any = None,
        class_weight: Any = None,
        known: Any = (),
        missing: Annotated[str, MISSING] = "blind",
        external: Any = None,
        categorical: Any = (),
        scaling: Annotated[str, SCALING] = "columns",
        shape: Any = None,
        patch: Any = None,
        network: Any = None,
        n_restarts: Size = 1,
        algorithm: Annotated[str, OneOf(*ALGORITHMS)] = "auto",
        config: StackConfig | FamilyConfig | TrainConfig | None = None,
        validation_fraction: Annotated[float, Real(at_least=0, below=1, noun="a share")] = 0.25,
        time_limit: Annotated[float | None, OrNone(SECONDS)] = None,
        unit: Annotated[str, Instance(str, "a text such as 'dollars'")] = "",
        random_state: Annotated[Any, OrNone(SEED)] = None,
        n_jobs: Annotated[int | None, Jobs()] = None,
        threads: Annotated[int | None, OrNone(Whole(at_least=1))] = None,
        engine: str = "local",
        verbose: int = 0,
    ) -> None:
        self.costs = costs
        self.budget = budget
        self.reveals = reveals
        self.setup = setup
        self.derived = derived
        self.decisions = decisions
        self.loss = loss
        self.class_weight = class_weight
        self.known = known
        self.missing = missing
        self.external = external
        self.categorical = categorical
        self.scaling = scaling
        self.shape = shape
        self.patch = patch
        self.network = network
        self.n_restarts = n_restarts
        self.algorithm = algorithm
        self.config = config
        self.validation_fraction = validation_fraction
        self.time_limit = time_limit
        self.unit = unit
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.threads = threads
        self.engine = engine
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        return tags

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, *, callback: Called = None, save: Called = None, resume: Any = None
    ) -> CostlyClassifier:
        """Learns from rows.

        Parameters
        ----------
        X : DataFrame, dict of columns or array-like of shape (n_rows, n_columns)
            Numbers, categories, truths or dates; what is missing is NaN, None or NA.
        y : array-like of shape (n_rows,)
            The classes.
        sample_weight : array-like of shape (n_rows,), default=None
            In learning, choosing and measuring a row of weight 3 counts as three such rows, one of weight 0 not at all.
        callback : callable, default=None
            Gets every interim measurement.
        save : callable, default=None
            Gets the state of the training now and then, to store it.
        resume : tuple, default=None
            Such a state, to go on from.

        Returns
        -------
        CostlyClassifier
            Itself.

        Raises
        ------
        AskwiseError
            For rows, costs or settings that cannot be used. The message says what would be right.
        """
        if y is None:
            raise ValueError("This CostlyClassifier estimator requires y to be passed, but the target y is None")
        ready = self.prepare(X, y, sample_weight)
        apart, table = self.validation_fraction == 0 or len(ready.validation_rows) > 0, features(self.external, flat(self, X))
        doubts.tell(doubts.about_fit(table, ready.classes, listed(self.categorical), apart, self.time_limit))
        doubts.tell(doubts.about_budget(self.budget, ready.problem.schema, ready.known, self.unit))
        doubts.tell(doubts.about_gaps(ready.problem, self.missing))
        counted = counts_classes(self.algorithm, ready.problem, self.config, self.network or picture_of(self))
        targeting.check(self.budget or Budget(), ready.problem.schema.classes, counted, self.algorithm)
        self.model_ = self._train(ready, callback, save, resume)
        self.classes_, self.validation_rows_ = ready.classes, ready.validation_rows
        return self

    def prepare(self, X: Any, y: Any, sample_weight: Any = None) -> Prepared:
        """What `fit` begins with: the problems of the rows to learn from and to choose by, and their encoding."""
        checked_attributes(self, type(self).__init__)
        check(self.algorithm, self.config, self.engine)
        table = table_of(self, X, reset=True)
        prepare = Preparation(
            spec=CostSpec(self.costs, self.setup, self.derived, reveals_of(self, table), self.decisions),
            known=self.known,
            missing=self.missing,
            external=self.external,
            loss=self.loss,
            class_weight=self.class_weight,
            scaling="one" if self.shape is not None and self.scaling == "columns" else self.scaling,
            categorical=self.categorical,
            validation_fraction=self.validation_fraction,
            learns_from_all=lambda *sizes: learns_from_all(self.algorithm, self.config, self.network or picture_of(self), *sizes),
        )
        return prepare(table, y, sample_weight, seed_of(self.random_state))

    def _train(self, ready: Prepared, callback: Any, save: Any, resume: Any) -> Model:
        if callback is None and self.verbose:
            callback = Progress(self.time_limit, self.unit, every=True)
        how = {"encoder": self.network, "time_limit": self.time_limit, "callback": callback, "save": save, "resume": resume}
        how |= {"n_jobs": self.n_jobs, "threads": self.threads, "engine": self.engine, "picture": picture_of(self)}
        settings = self.algorithm, self.config, self.n_restarts
        model, self.out_of_fold_ = trained(ready, self.budget or Budget(), *settings, self.unit, self.external, **how)
        return model

    def acquire(self, X: Any, known: Any = None, ids: Any = None) -> AcquisitionReport:
        """Buys and decides, case by case.

        Parameters
        ----------
        X : DataFrame, dict of columns or array-like of shape (n_rows, n_columns)
            The cases. Values of tests that are not bought are never looked at.
        known : sequence of str, or bool array of shape (n_rows, n_tests), default=None
            What these cases know at their start, besides what everyone does.
        ids : array-like of shape (n_rows,), default=None
            Names of the cases: where a mixture of two policies draws one, it draws the same for the same name.

        Returns
        -------
        AcquisitionReport
            For each case the tests in the order in which they are bought, their cost, the decision and its probability.
        """
        check_is_fitted(self)
        return self.model_.acquire(table_of(self, X), known, ids)

    def session(self, known: Any = None, **settings: Any) -> Session:
        """Starts one case, question by question.

        Parameters
        ----------
        known : dict, default=None
            {test: value} of what is known at the start.
        **settings
            As for `askwise.Session`.

        Returns
        -------
        Session
        """
        check_is_fitted(self)
        return self.model_.session(known, **settings)

    def predict(self, X: Any, *, known: Any = None, ids: Any = None) -> Array:
        """Decides each case, with the tests that are bought for it. The parameters are those of `acquire`.

        Returns
        -------
        ndarray of shape (n_rows,)
            The decisions.
        """
        check_is_fitted(self)
        problem = self.model_.problem(table_of(self, X), known=known, ids=ids)
        decided: Array = self.model_.rollout(problem).decision
        return self.model_.names_of(decided) if self.model_.schema.other_decisions else self.classes_[decided]

    def predict_proba(self, X: Any, *, known: Any = None, ids: Any = None) -> Doubles:
        """Class probabilities at the moment of deciding. The parameters are those of `acquire`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            In the order of `classes_`.
        """
        check_is_fitted(self)
        return self.model_.predict_proba(table_of(self, X), known, ids)

    def score(self, X: Any, y: Any, sample_weight: Any = None, *, known: Any = None, ids: Any = None) -> float:
        """How good the answers are, the larger the better; costs do not count. `known` and `ids` are those of `acquire`.

        Returns
        -------
        float
            Accuracy of the decisions. With a loss of 'log' or 'brier', minus the log loss or the Brier score of `predict_proba`;
            class weights do not count.
        """
        check_is_fitted(self)
        rule = self.model_.rule
        answers = (self.predict if rule is None else self.predict_proba)(X, known=known, ids=ids)
        n = len(answers)
        labels = class_codes(target_of(y, n), self.model_.schema.classes, n, "the target")
        each = answers == self.classes_[labels] if rule is None else -case_losses(answers, labels, rule)
        return float(np.average(each, weights=weights_of(sample_weight, n)))

    @property
    def frontier_(self) -> list[dict[str, Any]]:
        """What each amount of money buys, as measured in training: lambda, kind, cost, loss and accuracy of each kept policy."""
        check_is_fitted(self)
        return self.model_.frontier_figures

    def at(self, budget: Budget | None) -> CostlyClassifier:
        """The same classifier under another budget, without training.

        Parameters
        ----------
        budget : Budget or None
            As in the constructor.

        Returns
        -------
        CostlyClassifier
            Another one, fitted.
        """
        check_is_fitted(self)
        other = type(self)(**{**self.get_params(deep=False), "budget": budget})
        other.__dict__.update({k: v for k, v in self.__dict__.items() if k.endswith("_")})
        other.model_ = self.model_.at(budget)
        return other

    def save(self, path: str | Path) -> None:
        """Writes the model into one file, which `askwise.load` reads.

        Parameters
        ----------
        path : str or Path
            Where to; an old file stays until the new one is whole.
        """
        check_is_fitted(self)
        self.model_.save(path)
