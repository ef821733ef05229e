"""Settings of the policy family's training."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from askwise.errors import InputError
from askwise.paper.config import check_names, check_numbers


@dataclass(frozen=True)
class FamilyConfig:
    """Settings of one training run. Every schedule is a share of the whole, which is counted in steps or, where there is a time
    limit, in seconds."""

    max_steps: int = 6_000
    """Gradient steps, where there is no time limit."""
    width: int = 128
    """Width of the hidden layers."""
    bins: int = 0
    """Quantile bins per column; 0: values as they are."""
    waves: int = 0
    """Sines, and as many cosines, per column, where there are no bins."""
    trial: int = 0
    """Steps after which bins are compared with values as they are, with waves if there are any, on held-out prefixes; the better
    one goes on. 0: no trial."""
    batch: int = 256
    """States on prefixes of the order in each step; half as many once tests are chosen too."""
    cases: int = 128
    """Cases in progress in each step, half as many again of the validation rows."""
    prefix_share: float = 0.35
    """Share of the time that goes to the classifier alone, on prefixes, unless it begins to overfit before."""
    prefix_steps: int = 0
    """With a time limit, that share grows until it is enough for so many steps, to 0.7 at most: to choose among tests is worth
    little with a classifier that has hardly learned."""
    prefix_power: float = 3.0
    """The length of a prefix is u to this power, u uniform on (0, 1), times the number of tests."""
    learning_rate: float = 1e-3
    """Of the classifier on prefixes; constant over the first half, then falling to 0."""
    later_rate: float = 1e-4
    """Of the classifier once tests are chosen too."""
    choose_rate: float = 5e-4
    """Of the network that chooses tests."""
    judge_rate: float = 1e-3
    """Of the network that judges them."""
    weight_decay: float = 1e-4
    """Of all networks."""
    averaging: float = 0.999
    """Networks are averaged over about 1 / (1 - this) steps."""
    longest: int = 100
    """Most tests that a case in training buys, unless it starts deeper."""
    snapshots: int = 8
    """How often the family is measured on validation rows; the best is kept."""
    measure_rows: int = 1_000
    """Measure on at most this many validation rows while training; 0: on all."""
    frontier_rows: int = 0
    """Measure the frontier on at most this many validation rows at the end; 0: on all."""

    def __post_init__(self) -> None:
        check_numbers(self)
        for name in ("prefix_share", "averaging"):
            if not getattr(self, name) < 1:
                raise InputError(f"setting {name!r} is {getattr(self, name)!r}; it must be less than 1")
        for name in ("max_steps", "width", "batch", "cases", "longest", "snapshots"):
            if not getattr(self, name):
                raise InputError(f"setting {name!r} is 0; it must be at least 1")

    @classmethod
    def for_size(cls, rows: int, tests: int) -> FamilyConfig:
        """Settings for a table of this size: seconds for a small one, minutes for a large one."""
        if tests > 200:  # pictures
            return cls(
                max_steps=40_000,
                width=512,
                cases=256,
                prefix_share=0.25,
                prefix_steps=12_000,
                prefix_power=4.0,
                later_rate=5e-4,
                longest=60,
            )
        if rows > 20_000:
            return cls(
                max_steps=40_000,
                width=256,
                bins=16,
                waves=8,
                trial=300,
                batch=512,
                cases=512,
                learning_rate=2e-3,
                later_rate=5e-4,
                prefix_steps=12_000,
                longest=30,
            )
        return cls(
            max_steps=min(max(4 * rows, 200), 6_000),
            width=64 if rows < 500 else 128,
            bins=16,
            trial=300,
            batch=min(max(rows, 64), 256),
        )

    @classmethod
    def from_dict(cls, settings: dict[str, Any]) -> FamilyConfig:
        """The inverse of `to_dict`; an unknown name is an error."""
        check_names(cls, settings)
        return cls(**settings)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)

    def but(self, **changes: Any) -> FamilyConfig:
        """The same with some settings changed."""
        return replace(self, **changes)
