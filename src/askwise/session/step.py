"""What comes next for one case, and why: a test or the decision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Option:
    """A test that could be next."""

    test: str
    cost: float
    gain: float | None  # expected loss that going on with it saves against deciding now, less its cost; None: not estimated


@dataclass(frozen=True, slots=True)
class Expected:
    """What is expected of a case if the policy is followed to the end."""

    cost: float  # still to be paid
    total: float  # paid at the end
    loss: float  # of the decision at the end
    accuracy: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """The next test (`decision` is None) or the decision (`test` is None)."""

    test: str | None = None
    test_cost: float | None = None  # what the test costs now
    shared: float | None = None  # the part of it that is set-ups, which other tests share
    includes: tuple[str, ...] = ()  # of a derived test: those that are carried out and paid for it
    decision: Any = None
    probability: float | None = None  # of the decision; None where it is not a class
    decision_cost: float | None = None  # what the decision costs
    probabilities: dict[Any, float]  # of all classes, by what is known now
    losses: dict[Any, float]  # expected of each decision, if it were taken now; decisions that are not classes come last
    why: tuple[Option, ...]  # the chosen test and the best others; of a decision: the best of what is not bought
    reason: str  # the same in words
    expected: Expected
    cost: float  # paid so far, with the decision
    left: float | None  # of the budget

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        e = self.expected
        return {
            "test": self.test,
            "test_cost": self.test_cost,
            "shared": self.shared,
            "includes": list(self.includes),
            "decision": self.decision,
            "probability": self.probability,
            "decision_cost": self.decision_cost,
            "other_decisions": [
                {"decision": name, "loss": loss} for name, loss in self.losses.items() if name not in self.probabilities
            ],
            "probabilities": [
                {"class": name, "probability": p, "loss": self.losses[name]} for name, p in self.probabilities.items()
            ],
            "why": [{"test": o.test, "cost": o.cost, "gain": o.gain} for o in self.why],
            "reason": self.reason,
            "expected": {"cost": e.cost, "total": e.total, "loss": e.loss, "accuracy": e.accuracy},
            "cost": self.cost,
            "left": self.left,
        }
