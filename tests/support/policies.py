"""Values and settings for tests of policies and methods."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from askwise.core.cases import State
from askwise.core.policy import ValueFunction


@dataclass(frozen=True)
class ValuesOf(ValueFunction):
    """Any function of a state as values."""

    function: Callable[[State], np.ndarray]

    def __call__(self, state: State) -> np.ndarray:
        return self.function(state)


def with_settings(monkeypatch: Any, module: Any, **settings: Any) -> None:
    """The module with other settings, for the time of a test."""
    monkeypatch.setattr(module, "SETTINGS", replace(module.SETTINGS, **settings))
