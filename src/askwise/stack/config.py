"""Settings of the training of a stack."""

from __future__ import annotations

from dataclasses import dataclass

from askwise.core.parameters import Amount, Count, Share, Size
from askwise.family.config import StateSettings


@dataclass(frozen=True)
class StackDesign:
    """What training, a saved model and every use of it must agree on."""

    breadths: tuple[int, ...] = (1, 3, 8, 10_000)
    """So many of the next tests of the static order compete. With 1 the order is fixed, and only when to stop is learned; with
    the last all tests compete, as hard budgets need where what is left buys either a dear test or cheap ones."""
    by_set_tests: int = 20
    """Up to so many tests a coefficient of the linear model depends on what else is held."""
    value_limit: float = 4.0
    """Linear model and value heads see values no further from 0 than this."""

    def breadths_for(self, tests: int) -> list[int]:
        """Those that differ for so many tests."""
        enough = next(i for i, breadth in enumerate(self.breadths) if breadth >= min(tests, self.breadths[-1]))
        return list(self.breadths[: enough + 1])


DESIGN = StackDesign()


@dataclass(frozen=True)
class StackConfig(StateSettings):
    """Settings of one training run."""

    folds: Size = 5
    """Members, each with its part of the rows left out, where there are few rows."""
    few_rows: Count = 20_000
    """With more rows than this one part is left out, the validation rows, and one member learns from all others."""
    looseness: Amount = 1.0
    """How far the order of a state may be from the static order."""
    loose_share: Share = 0.7
    """Share of states whose order is not the static one."""
    empty_share: Share = 0.04
    """Share of states that hold nothing."""
    states_per_row: Size = 16
    """Sets of tests at which the trees see each row."""
    most_states: Count = 400_000
    """But no more states than this for a member."""
    leaves: Size = 15
    """Leaves of a tree, fewer where there are few rows."""
    more_leaves: Count = 0
    """Trees of so many leaves, and of a number between the two, are tried as well; 0: none."""
    tree_rate: Amount = 0.1
    """Learning rate of the trees."""
    tree_rounds: Size = 200
    """Rounds of boosting, unless held-out states are predicted best long before."""
    most_trees: Size = 1_600
    """Trees of all members together: one decision must stay fast."""
    stages: Count = 8
    """Prefixes of the order that have trees of their own, where one member learns from many rows; 0: none."""
    most_nodes: Count = 1_500_000
    """Nodes of these and of the other trees together: a model must stay a small file."""
    ridge: Amount = 1.0
    """Penalty on the coefficients of the linear model."""

    networks: Size = 2
    """Networks of each member."""
    network_steps: Size = 3_000
    """Gradient steps of the networks, unless held-out states are predicted best long before."""
    network_width: Size = 128
    """Width of their hidden layers."""
    network_depth: Size = 3
    """How many hidden layers they have."""
    network_batch: Size = 128
    """States of each in a step."""
    network_rate: Amount = 2e-3
    """Learning rate of the networks."""
    network_decay: Amount = 1e-2
    """Weight decay of the networks."""
    network_dropout: Share = 0.2
    """Share of hidden units that are left out in each step, where columns are shown as they are."""
    network_bins: Size = 16
    """Quantile bins of a column, where these are shown too."""
    network_frequencies: Size = 8
    """Sines and as many cosines of a column, where these are shown too."""
    network_checks: Size = 12
    """How often held-out states tell whether the networks overfit."""
    network_trial: Size = 6
    """Whether bins and sines are shown is tried with this part of the steps."""

    refined_tests: Count = 8
    """So many tests of the static order may be moved forward, see `order`."""
    refining_rows: Size = 1_000
    """Rows on which orders are compared, at most."""
    own_order_rows: Count = 3_000
    """With at most so many rows, prefixes are measured on each part of these along an order that was found without it."""

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
    value_batch: Size = 176
    """States of each head in a step, those with weighed classes among them."""
    value_tests: Size = 4
    """Tests of each of these that are looked up in a step."""
    value_rate: Amount = 1e-3
    """Learning rate of the value heads."""
    value_width: Size = 128
    """Width of their hidden layers."""
    weight_decay: Amount = 1e-4
    """Of the value heads."""
    weighed_share: Share = 0.3
    """Share of states that are asked about while one class weighs more or less than the others."""
    weighed_classes: Count = 10
    """With more classes than this, value heads do not know how classes weigh against each other."""
    explore_share: Share = 0.15
    """Share of steps at which a visited state is left by any test, so that it is known what follows."""

    calibration_rows: Count = 500
    """Rows that are followed at each tradeoff, at most, to calibrate forecasts; 0: all."""
    calibration_ridge: Amount = 1e-3
    """How strongly the calibration keeps to the forecasts as they are."""

    def cross_fits(self, rows: int) -> bool:
        """Whether, of so many rows, each is learned from by some members and measured by the others."""
        return rows < self.few_rows

    @classmethod
    def quick(cls) -> StackConfig:
        """Settings for trying things out: a fit of a small table in seconds, which is not as good as it could be."""
        return cls(
            folds=2,
            tree_rounds=30,
            leaves=8,
            networks=1,
            network_steps=100,
            network_width=32,
            value_steps=100,
            pool_rows=500,
            pool_states=1_500,
            growths=1,
            calibration_rows=100,
        )

    @classmethod
    def for_size(cls, rows: int, tests: int) -> StackConfig:
        """Settings for a table of this size."""
        few, many = rows < 1_000, rows >= 5_000
        steps = min(max(4 * rows, 200), 2_000)
        network_steps = 1_000 if rows < 1_000 else 3_000 if rows < 10_000 else 6_000 if rows < 20_000 else 15_000
        return cls(
            leaves=8 if few else 15,
            more_leaves=255 if many else 63 if not few else 0,
            states_per_row=20 if few else 16,
            value_steps=steps,
            network_steps=network_steps,
        )

    @property
    def tree_sizes(self) -> list[int]:
        """Leaves of the trees that are tried."""
        least, most = self.leaves, self.more_leaves
        return [least] if most <= least else sorted({least, round((least * most) ** 0.5), most})
