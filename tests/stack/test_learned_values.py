"""What a stack has learned from, it can be told."""

import pytest
from tests.support import members as support
from tests.support.patients import PRICES, patients

from askwise import CostlyClassifier
from askwise.errors import InputError

FEW = support.QUICK.but(value_steps=10, folds=2)


def fitted(config):
    """One of the rows that are kept apart lives in a town of its own, and is older than all others."""
    X, y = patients(80, holes=False)
    settings = dict(**PRICES, algorithm="stack", config=config, random_state=0)
    row = CostlyClassifier(**settings).prepare(X, y).validation_rows[0]
    X.loc[row, "town"], X.loc[row, "age"] = "Ulm", 119
    classifier = CostlyClassifier(**settings).fit(X, y)
    assert row in classifier.validation_rows_
    return classifier, X.loc[[row]]


def test_values_of_validation_rows_can_be_told_where_members_are_cross_fitted():
    classifier, row = fitted(FEW)
    session = classifier.session()
    session.tell("town", "Ulm")
    session.tell("age", 119)
    assert session.next() is not None
    assert classifier.predict(row)[0] in ("ill", "well")


def test_values_that_nothing_was_learned_from_are_refused():
    """With many rows, those that are kept apart only measure."""
    classifier, _ = fitted(FEW.but(few_rows=10))
    with pytest.raises(InputError, match="Ulm"):
        classifier.session().tell("town", "Ulm")
    with pytest.raises(InputError, match="119"):
        classifier.session().tell("age", 119)
