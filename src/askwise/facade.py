"""`Model`: a learned model with what the other rooms make of it as methods: sessions, decisions, files, exports, descriptions."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from askwise.core.policy import decision_values
from askwise.errors import Doubt, InputError
from askwise.model import file
from askwise.model.model import LearnedModel

if TYPE_CHECKING:
    from askwise.core.budget import Budget
    from askwise.evaluation import Report
    from askwise.model.learn import Learned
    from askwise.session.providers import Decided
    from askwise.session.session import Session
    from askwise.tables.preparation import Prepared


@dataclass(frozen=True, eq=False, repr=False)
class Model(LearnedModel):
    """What `CostlyClassifier.fit` learns and `askwise.load` reads."""

    def __repr__(self) -> str:
        from askwise.reports.model_report import one_line

        return one_line(self)

    def _repr_html_(self) -> str:
        from askwise.reports.model_page import in_notebook

        return in_notebook(self)

    def save(self, path: str | Path) -> None:
        """One file, which `askwise.load` reads."""
        file.save(self, path)

    def export(self, path: str | Path) -> None:
        """For other runtimes, by the ending of the path: .npz for NumPy, .onnx for onnxruntime."""
        from askwise.model.export import export

        export(self, path)

    def session(self, known: Any = None, **settings: Any) -> Session:
        """One case, question by question; see `askwise.Session`."""
        from askwise.session.session import Session

        return Session(self, known, **settings)

    def decide(self, case: Any, providers: Mapping[str, Any], **settings: Any) -> Decided:
        """Decides a case, calling functions only for the tests that are bought; see `askwise.session.providers.decide_many`."""
        from askwise.session.providers import decide

        return decide(self, case, providers, **settings)

    def decide_many(self, cases: Iterable[Any], providers: Mapping[str, Any], **settings: Any) -> list[Decided]:
        """Decides many cases side by side, so that calls can be grouped."""
        from askwise.session.providers import decide_many

        return decide_many(self, cases, providers, **settings)

    async def decide_async(self, case: Any, providers: Mapping[str, Any], **settings: Any) -> Decided:
        """`decide` with providers that may be async functions."""
        from askwise.session.providers import decide_async

        return await decide_async(self, case, providers, **settings)

    async def decide_many_async(self, cases: Iterable[Any], providers: Mapping[str, Any], **settings: Any) -> list[Decided]:
        """`decide_many` with providers that may be async functions."""
        from askwise.session.providers import decide_many_async

        return await decide_many_async(self, cases, providers, **settings)


def load(path: str | Path, *, external: Any = None, network: Any = None) -> Model:
    """Reads a model. Nothing in the file is run.

    Parameters
    ----------
    path : str or Path
        A file that `save` has written.
    external : fitted classifier, default=None
        The one that the model was fitted with, if it was; recorded answers are known already.
    network : callable, default=None
        The `network` that it was fitted with, if it was.

    Returns
    -------
    Model

    Raises
    ------
    AskwiseError
        If the file holds no model, is damaged, or is of a version that is no longer read.
    """
    learned = file.load(path, external=external, encoder=network)
    return Model(**{field.name: getattr(learned, field.name) for field in fields(learned)})


def model_of(ready: Prepared, learned: Learned, budget: Budget, **more: Any) -> Model:
    """A model from what was prepared and learned. more: the unit, and the classifier and encoder that were handed over."""
    problem, result = ready.problem, learned.result
    return Model(
        schema=problem.schema,
        encoding=ready.encoding,
        loss=problem.loss,
        rule=problem.rule,
        at_once=decision_values(problem),
        points=result.points,
        trained_for=budget,
        budget=budget,
        known=ready.known,
        seed=ready.seed,
        facts=learned.facts,
        family=result.shared,
        targeted=result.targeted,
        **more,
    )


def trained(
    ready: Prepared, budget: Budget, algorithm: str, config: Any, restarts: int, unit: str, external: Any, **how: Any
) -> tuple[Model, Report | None]:
    """A model from what was prepared, and what it comes to on rows that it was held out from. how: options of `model.learn`."""
    from askwise.model.learn import learn
    from askwise.model.purchases import followed, measure_usage

    money = replace(budget, targets=(), class_weights=None)  # what is to be reached with it is chosen in the end
    learned = learn(algorithm, ready.problem, ready.validation, money, config, ready.seed, restarts, **how)
    model = model_of(ready, learned, money, unit=unit, external=external, encoder=learned.result.encoder)
    try:
        model = replace(model if budget == money else model.at(budget), trained_for=budget)
    except InputError as error:
        warnings.warn(f"{error}; the model is kept at {money}", Doubt, stacklevel=4)
    held_out = learned.result.held_out
    model = replace(model, facts={**model.facts, "usage": measure_usage(model, ready.validation, held_out)})
    return model, None if held_out is None else followed(model, held_out)
