"""Settings of the training of a stack."""

from __future__ import annotations

from dataclasses import dataclass

from askwise.core.parameters import Amount, Count, Share, Size
from askwise.family.config import StateSettings


@dataclass(frozen=True)
class StackDesign:
    """What training, a saved model and every use of it must agree on."""

    breadths: tuple[int, ...] = (1, 3, 8)
    """So many of the next tests of the static order compete. With 1 the order is fixed, and only when to stop is learned."""
    by_set_tests: int = 20
    """Up to so many tests a coefficient of the linear model depends on what else is held."""
    value_limit: float = 4.0
    """Linear model and value heads see values no further from 0 than this."""


DESIGN = StackDesign()


@dataclass(frozen=True)
class StackConfig(StateSettings):
    """Settings of one training run."""

    folds: Size = 5
    """Members, each with its part of the rows left out, where there are few rows."""
    few_rows: Count = 20_000
    """With more rows than this one part is left out, the validation rows, and one member learns from all others."""
    states_per_row: Size = 8
    """Sets of tests at which the trees see each row."""
    most_states: Count = 150_000
    """But no more states than this for a member."""
    leaves: Size = 63
    """Leaves of a tree, fewer where there are few rows."""
    tree_depth: Size = 9
    """Depth of a tree."""
    tree_rate: Amount = 0.1
    """Learning rate of the trees."""
    tree_rounds: Size = 200
    """Rounds of boosting, unless held-out states are predicted best before."""
    most_trees: Size = 1_500
    """Trees of all members together: one decision must stay fast."""
    ridge: Amount = 1.0
    """Penalty on the coefficients of the linear model."""

    value_steps: Size = 2_000
    """Gradient steps of the value heads."""
    growths: Count = 2
    """How often, evenly spread, states that the present policies visit join the pool."""
    pool_rows: Size = 4_000
    """Rows of the pool, at most."""
    pool_states: Size = 16_000
    """States of the pool at first, about."""
    successors: Size = 10
    """Tests of each pool state whose results are looked up: the next of the order, and any others."""
    value_batch: Size = 128
    """States of each head in a step."""
    value_tests: Size = 4
    """Tests of each of these that are looked up in a step."""
    value_rate: Amount = 1e-3
    """Learning rate of the value heads."""
    value_width: Size = 128
    """Width of their hidden layers."""
    weight_decay: Amount = 1e-4
    """Of the value heads."""
    explore_share: Share = 0.15
    """Share of steps at which a visited state is left by any test, so that it is known what follows."""

    @classmethod
    def for_size(cls, rows: int, tests: int) -> StackConfig:
        """Settings for a table of this size."""
        leaves = 8 if rows < 1_000 else 31 if rows < 5_000 else 63
        steps = min(max(4 * rows, 200), 2_000)
        return cls(leaves=leaves, states_per_row=20 if rows < 1_000 else 8, value_steps=steps)
