"""Policies and values for tests."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from askwise.core.cases import State
from askwise.core.policy import ValueFunction


@dataclass(frozen=True)
class ValuesOf(ValueFunction):
    """Any function of a state as values."""

    function: Callable[[State], np.ndarray]

    def __call__(self, state: State) -> np.ndarray:
        return self.function(state)
