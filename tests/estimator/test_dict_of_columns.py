"""A dict of columns is a table, as a frame is."""

import numpy as np
import pytest
from tests.support.members import QUICK
from tests.support.patients import PRICES, patients

from askwise import CostlyClassifier
from askwise.errors import InputError


def test_a_dict_of_columns_is_learned_from_and_decided_as_a_frame_is():
    X, y = patients(120)
    columns = {name: X[name].tolist() for name in X.columns}
    frame, plain = (CostlyClassifier(**PRICES, config=QUICK, random_state=0).fit(table, y) for table in (X, columns))
    assert frame.model_.fingerprint == plain.model_.fingerprint
    assert plain.feature_names_in_.tolist() == list(X.columns)
    assert plain.n_features_in_ == X.shape[1]
    assert (plain.predict(columns) == frame.predict(X)).all()
    np.testing.assert_array_equal(plain.predict_proba(columns), frame.predict_proba(X))
    assert plain.acquire(columns).tests == frame.acquire(X).tests
    assert plain.score(columns, y) == frame.score(X, y)


def test_a_dict_of_columns_that_cannot_be_a_table_is_refused():
    with pytest.raises(InputError, match="column 'b' has 1 values for 2 rows"):
        CostlyClassifier().fit({"a": [1.0, 2.0], "b": [1.0]}, [0, 1])
    with pytest.raises(InputError, match="there are no rows"):
        CostlyClassifier().fit({"a": []}, [])
