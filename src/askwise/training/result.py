"""What a training hands out: an interim measurement now and then, and in the end what it came to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, Generic, TypeVar

from askwise.core.measures import Measure
from askwise.core.policy import Policy
from askwise.evaluation import Report
from askwise.frontier.point import Point
from askwise.training.checkpoint_checks import figures, number

Shared = TypeVar("Shared")
VALIDATION = "validation cases"  # what figures come from, unless a training says otherwise


@dataclass(frozen=True)
class InterimMeasurement:
    """What was measured at one moment of a training."""

    step: int
    done: float  # share of the training that was over
    lam: float  # of the policy that was measured; of a family, that of the least loss
    train: Measure | None  # on rows that are learned from; a family is not measured there
    validation: Measure
    area: float | None = None  # of a family: under the validation hull of the score, 1 - loss / loss_scale

    @property
    def cost(self) -> float:
        """Over training and validation rows together: costs need no labels, and the more rows, the surer the mean. But rows
        that were learned by heart need fewer tests than new ones, so it is never below the validation rows' own."""
        if self.train is None:
            return self.validation.cost
        n, m = self.train.n, self.validation.n
        return max((n * self.train.cost + m * self.validation.cost) / (n + m), self.validation.cost)

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> InterimMeasurement:
        """The inverse of `to_dict`; what cannot be is refused."""
        return cls(
            number(facts, "step", whole=True),
            number(facts, "done"),
            number(facts, "lam"),
            figures(facts["train"]) if "train" in facts else None,
            figures(facts["validation"]),
            number(facts, "area") if "area" in facts else None,
        )


@dataclass(frozen=True, eq=False)
class TrainingResult(Generic[Shared]):
    """A finished training, of either algorithm."""

    points: tuple[Point, ...]  # all that some budget could follow, by rising cost; the first decides at once
    measured: tuple[Point, ...]  # all that were measured under no other hard budget than that of the training
    history: tuple[InterimMeasurement, ...]
    stopped: str  # why it ended
    seconds: float  # earlier parts of a resumed training included
    score: float  # on validation rows: the best of several trainings has the highest
    policy: Callable[[Point], Policy]  # that of a point
    shared: Shared  # what all points have in common: a family. None where each has weights of its own
    doubt: str = ""  # why the result should not be trusted, in one sentence
    # what a point comes to on all rows that were held out for some members, under a limit in units. None: on validation rows
    held_out: Callable[[Point, int | None], Report] | None = None
    measured_on: str = VALIDATION
    drawn: int | None = None  # how many rows were drawn to learn from, each as often as it was. None: nobody counted
    encoder: Any = None  # what sees the columns of a case; None: the usual layers
    targeted: tuple[Point, ...] = ()  # measured class by class, under several class weights; the first decides at once
