"""What a model bought and decided, case by case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Doubles
from askwise.tables.frames import import_pandas


@dataclass(frozen=True, eq=False)
class AcquisitionReport:
    """What was bought for each case, and what was decided."""

    cost: Doubles
    prediction: Array
    probability: Doubles  # of the prediction
    tests: list[tuple[str, ...]]  # in the order bought
    index: Any = None  # of the frame it was made from
    belief: dict[Any, Doubles] | None = None  # by class, where class probabilities are the answer

    def __len__(self) -> int:
        return len(self.cost)

    def __repr__(self) -> str:
        return f"AcquisitionReport({len(self)} cases, mean cost {np.mean(self.cost):.4g})"

    def to_frame(self) -> Any:
        """A pandas DataFrame with the columns cost, prediction, probability and tests; where class probabilities are the answer,
        also those of all classes, such as `probability ill`."""
        each = {f"probability {name}": p for name, p in (self.belief or {}).items()}
        columns = {"cost": self.cost, "prediction": self.prediction, "probability": self.probability, **each, "tests": self.tests}
        return import_pandas().DataFrame(columns, index=self.index)
