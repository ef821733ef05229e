"""Entropy, by hand."""

import math

import numpy as np
import pytest

from askwise.core.information import entropy


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_entropy_of_even_odds_of_certainty_and_of_a_quarter(dtype):
    p = np.array([[0.5, 0.5], [1, 0], [0.25, 0.75]], dtype)
    h = entropy(p)
    assert h.dtype == dtype
    assert h.ravel().tolist() == pytest.approx([math.log(2), 0, 0.5623351], abs=1e-6)
    assert p.tolist() == [[0.5, 0.5], [1, 0], [0.25, 0.75]]
