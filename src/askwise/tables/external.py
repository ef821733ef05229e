"""What an existing classifier says of the rows of a table: one that is fitted and can be asked, or answers that were recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Floats, Ints
from askwise.core.cost_spec import listed
from askwise.core.schema import Schema
from askwise.errors import InputError, RowError, did_you_mean
from askwise.tables.cells import Place, missing
from askwise.tables.frames import TableView
from askwise.tables.stored import StoredTable


@dataclass(frozen=True)
class Recorded:
    """An existing classifier whose answers stand in a column of the table, which is then no feature.

    Parameters
    ----------
    column : str
        The column of its answers.
    needs : sequence of str, default=None
        Tests that it needs, or columns that tests reveal. They are paid for when it is asked. None: all of them.

    Examples
    --------
    >>> from askwise import CostlyClassifier, Recorded
    >>> classifier = CostlyClassifier(external=Recorded("doctor", needs=["age", "scan"]))
    """

    column: str
    needs: Sequence[str] | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise InputError(f"the column of recorded answers is {self.column!r}; it must be the name of a column")
        if self.needs is not None:
            object.__setattr__(self, "needs", tuple(listed(self.needs)))

    def answers(self, X: Any) -> list[Any]:
        """What stands in the column."""
        table = TableView(X)
        if not table.named:
            where = f"the answers of the existing classifier are in the column {self.column!r}"
            raise InputError(f"{where}; give a DataFrame that has it, not an array")
        if self.column not in table.names:
            none = f"there is no column {self.column!r} in the data, where the answers of the existing classifier are"
            raise InputError(f"{none}; {did_you_mean(self.column, table.names)}")
        return list(np.asarray(table[self.column], dtype=object))

    def check(self, answers: Sequence[Any], rows: Ints, classes: Sequence[Any]) -> None:
        """Refuses an answer that is missing or no class. The engine cannot be told that a case has none: only tests can lack."""
        for row in rows.tolist():
            if missing(answers[row]):
                lacks = f"column {self.column!r} lacks the answer of the existing classifier"
                raise RowError(lacks, row, "; fill it in, or remove such rows")
            if answers[row] not in classes:
                then = f", which is not a class; {did_you_mean(answers[row], classes)}"
                raise Place(self.column).holds(answers[row], row, then)


def features(external: Any, X: Any) -> Any:
    """The table without a column of recorded answers."""
    if not isinstance(external, Recorded):
        return X
    if isinstance(X, StoredTable) and external.column in X.columns and len(X.columns) > 1:
        return X.drop(columns=[external.column])
    external.answers(X)  # or it says what is wrong
    table = TableView(X)
    columns = {name: table[name] for name in table.names if name != external.column}
    if not columns:
        raise InputError(f"there are no columns besides {external.column!r}, so nothing can be bought")
    return columns


def needed(external: Any, columns: Sequence[str]) -> list[str] | None:
    """The columns or tests an existing classifier needs, if there is one."""
    if external is None:
        return None
    if isinstance(external, Recorded):
        return list(columns if external.needs is None else external.needs)
    return fitted_on(external, columns)


def fitted_on(classifier: Any, names: Sequence[str]) -> list[str]:
    """The columns an existing classifier was fitted on: by name if it knows names, otherwise all of them."""
    named: Sequence[Any] | None = getattr(classifier, "feature_names_in_", None)
    if named is None:
        return list(names)
    for name in named:
        if name not in names:
            raise InputError(f"the existing classifier needs the column {name!r}, which does not exist")
    return [str(n) for n in named]


def answers(
    external: Any,
    X: Any,
    schema: Schema,
    values: Floats,
    columns: Sequence[str],
    rows: Ints | None = None,
    rule: str | None = None,
) -> Array | None:
    """What an existing classifier, if there is one, says of each row of the table, or of some, whose encoded `values` these are:
    a class or, under a scoring rule, N, K probabilities. Rows that lack something it needs get any: it is never asked there."""
    if external is None:
        return None
    classes = None if rule is None else _class_columns(external, schema, rule)
    assert schema.external_needs is not None
    asked = np.flatnonzero(~np.isnan(values)[:, schema.external_needs[schema.owner]].any(1))
    rows_asked = asked if rows is None else rows[asked]
    if classes is not None:
        belief = np.full((len(values), schema.n_classes), 1 / schema.n_classes)
        if len(asked):
            belief[asked] = 0
            belief[np.ix_(asked, classes)] = external.predict_proba(_rows_for(external, X, columns, rows_asked))
        return belief
    decided = np.full(len(values), schema.classes[0], dtype=object)  # as it is: cut to a shorter word it might become a class
    if isinstance(external, Recorded):
        recorded = external.answers(X)
        external.check(recorded, rows_asked, schema.classes)
        decided[asked] = [recorded[row] for row in rows_asked.tolist()]
    elif len(asked):
        decided[asked] = np.asarray(external.predict(_rows_for(external, X, columns, rows_asked))).tolist()
    return decided


def _class_columns(external: Any, schema: Schema, rule: str) -> Ints:
    """The number of each class of which an existing classifier tells the probability, in its order."""
    if isinstance(external, Recorded):
        only = f"column {external.column!r} holds the classes that an existing classifier named"
        raise InputError(f"{only}, but the loss {rule!r} judges probabilities; leave external= out, or use a loss matrix")
    if not (hasattr(external, "predict_proba") and hasattr(external, "classes_")):
        only = f"the existing classifier, a {type(external).__name__}, has no predict_proba"
        raise InputError(f"{only}, but the loss {rule!r} judges probabilities; give one that has it, or use a loss matrix")
    index = {name: i for i, name in enumerate(schema.classes)}
    for name in np.asarray(external.classes_).tolist():
        if name not in index:
            raise InputError(
                f"the existing classifier knows the class {name!r}, which is not a class; {did_you_mean(name, index)}"
            )
    return np.array([index[name] for name in np.asarray(external.classes_).tolist()], np.int64)


def _rows_for(classifier: Any, X: Any, columns: Sequence[str], rows: Ints) -> Any:
    """Some rows as a fitted classifier wants them: an array in the order of the fit, if it knows no names."""
    view = TableView(X)
    if hasattr(classifier, "feature_names_in_") and hasattr(X, "columns"):
        table = X[fitted_on(classifier, view.names)]
    else:
        table = np.column_stack([np.asarray(view[name]) for name in (columns if hasattr(X, "columns") else view.names)])
    return table.iloc[rows] if hasattr(table, "iloc") else table[rows]
