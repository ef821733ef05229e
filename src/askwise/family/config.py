"""Settings of the policy family's training."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from askwise.core.parameters import Amount, Count, OneOf, Real, Settings, Share, Size, Whole

PRECISIONS = ("float32", "bfloat16")
Part = Annotated[float, Real(at_least=0, below=1, noun="a share")]


@dataclass(frozen=True)
class FamilyDesign:
    """What training, a saved model and every use of it must agree on: another value needs another version of model files."""

    knots: int = 16
    """Hat functions on each of the two axes, of the tradeoff and of the budget left."""
    few_tests: int = 64
    """Up to so many tests the value head sees what is affordable after each of them, and its own output of each counts fully."""
    candidates: int = 8
    """So many tests compete: the best of many noisy values would be the luckiest one."""
    tie_margin: float = 1e-4
    """Scaled loss that continuing must save, so that a tie is broken towards deciding."""
    gap_limit: float = 5.0
    """A selector logit counts as at most this far behind the best."""
    gap_offset: float = 4.0
    """A gap of one logit counts softplus(-gap_offset) at first."""
    cost_offset: float = 2.0
    """The share of the cost bound that is still to be paid is softplus(-cost_offset) at first."""
    top_classes: int = 3
    """So many of the largest class probabilities are shown to the value head in falling order."""
    value_width: int = 128
    """Width of the value head's hidden layers."""
    temperature_width: int = 16
    """Width of the hidden layer that gives the temperature."""

    @property
    def conditions(self) -> int:
        """Inputs that say the tradeoff and the budget left: both axes, and whether there is no budget."""
        return 2 * self.knots + 1


DESIGN = FamilyDesign()


@dataclass(frozen=True)
class StateSettings(Settings):
    """Which states are learned from."""

    prefix_power: Amount = 3.0
    """The length of a prefix is u to this power, u uniform on (0, 1), times the number of tests."""
    flip_share: Share = 0.15
    """Each test of a prefix is flipped with at most this probability."""
    random_set_share: Share = 0.1
    """Share of prefixes that are replaced by random sets of tests, for cases that come another way."""
    random_set_share_few: Share = 0.4
    """The same where there are no more tests than compete: of few tests there are few sets."""
    thinned_share: Share = 0.3
    """Where rows lack tests, the share of prefixes that lose tests at random."""

    max_tests: Size = 100
    """Most tests that a case in training buys, unless it starts deeper."""
    capped_share: Share = 0.5
    """Share of cases with a hard budget."""
    only_capped_share: Share = 0.5
    """Share of those that have nothing else to mind: their tradeoff is the least."""
    refusing_share: Share = 0.15
    """Share of cases that refuse some tests."""
    knowing_share: Share = 0.15
    """Share of cases that know some results already."""
    deep_share: Share = 0.25
    """Share of cases that start on a prefix of the order."""


@dataclass(frozen=True)
class FamilyConfig(StateSettings):
    """Settings of one training run. Every schedule is a share of the whole, which is counted in steps or, where there is a time
    limit, in seconds."""

    max_steps: Size = 6_000
    """Gradient steps, where there is no time limit."""
    width: Size = 128
    """Width of the hidden layers."""
    bins: Count = 0
    """Quantile bins per column; 0: values as they are."""
    frequencies: Count = 0
    """Sines, and as many cosines, per column, where there are no bins."""
    encoding_trial_steps: Count = 0
    """Steps after which bins are compared with values as they are, or with frequencies if there are any, on held-out prefixes;
    the better encoding goes on. 0: no trial."""

    picture_trial_steps: Count = 300
    """Of pictures: steps after which convolutions are compared with the plain network on held-out prefixes; the better one goes
    on."""

    prefix_batch: Size = 256
    """States on prefixes of the order in each step; half as many once tests are selected too."""
    parallel_cases: Size = 128
    """Cases in progress in each step, half as many again of the validation rows."""
    prefix_share: Part = 0.35
    """Share of the time that goes to the classifier alone, on prefixes, unless it begins to overfit before."""
    prefix_steps: Count = 0
    """With a time limit, that share grows until it is enough for so many steps, to 0.7 at most: a selector is worth little with a
    classifier that has hardly learned."""
    selector_share: Share = 0.8
    """Share of the time after the prefixes in which the selector learns; in the rest only the value head does."""

    learning_rate: Amount = 1e-3
    """Of the classifier on prefixes; constant over the first half, then falling to 0."""
    finetune_rate: Amount = 1e-4
    """Of the classifier once tests are selected too."""
    selector_rate: Amount = 5e-4
    """Of the selector."""
    value_rate: Amount = 1e-3
    """Of the value head."""
    temperature_rate: Amount = 1e-3
    """Of the network that gives the temperature."""
    weight_decay: Amount = 1e-4
    """Of all networks."""
    gradient_norm: Amount = 1.0
    """Gradients of selector, value head and temperature together are shortened to this length."""
    averaging: Part = 0.999
    """Networks are averaged over about 1 / (1 - this) steps."""
    last_softness: Amount = 0.1
    """The last temperature of the soft choice of the next test; the first is 1."""

    value_choice_share: Share = 0.5
    """Share of training cases that buy the best candidate; the others buy what the selector draws."""
    random_test_share: Share = 0.15
    """Share of held-out cases that buy any test, so that it is known what follows."""
    random_test_share_few: Share = 0.3
    """The same where there are no more tests than compete."""
    stop_share: Share = 0.1
    """Share of cases that end where the policy would decide; the others go on, so that it is known what follows."""
    value_tests: Annotated[int, Whole(at_least=2)] = 4
    """Tests that are looked up in each held-out case, where there are more than compete."""

    overfit_check_steps: Size = 200
    """So often, in steps, it is checked whether the classifier overfits."""
    overfit_rows: Count = 1_000
    """Held-out rows on which that is checked at most; 0: all."""
    overfit_ratio: Amount = 1.05
    """The classifier overfits when its cross-entropy there is this many times the least so far."""
    interim_measurements: Size = 8
    """How often the family is measured on validation rows; the best is kept."""
    measure_rows: Count = 1_000
    """Measure on at most this many validation rows while training; 0: on all."""
    frontier_rows: Count = 0
    """Measure the frontier on at most this many validation rows at the end; 0: on all."""
    calibration_rows: Count = 500
    """Held-out rows that are followed at each tradeoff, at most, to calibrate forecasts; 0: all."""
    calibration_ridge: Amount = 1e-3
    """How strongly the calibration keeps to the forecasts as they are."""

    precision: Annotated[str, OneOf("auto", *PRECISIONS)] = "auto"
    """Arithmetic of the hidden layers in learning. bfloat16 is faster where the processor has it; weights, losses, targets and
    measurements stay float32, and outputs too, but for the selector's where tests are many. "auto": what a trial of some steps
    finds faster when training begins; a run that is resumed keeps to it."""
    trial_size: Count = 60_000
    """Where width times prefix_batch is smaller, neither bfloat16 nor more than one thread is tried: they gain nothing there."""
    trial_steps: Size = 5
    """Steps of each kind in that trial; they change nothing else."""
    clearly_faster: Share = 0.8
    """What is tried is taken where it needs at most this part of the time."""
    device: str | None = None
    """Where the networks learn, in torch's words; None: torch's default."""

    @classmethod
    def for_size(cls, rows: int, tests: int) -> FamilyConfig:
        """Settings for a table of this size: seconds for a small one, minutes for a large one."""
        large = cls(max_steps=40_000, prefix_steps=12_000, finetune_rate=5e-4)
        if tests > 200:  # pictures
            return large.but(width=512, parallel_cases=256, prefix_share=0.25, prefix_power=4.0, max_tests=60)
        if rows > 20_000:
            large = large.but(width=256, bins=16, frequencies=8, encoding_trial_steps=300)
            return large.but(prefix_batch=512, parallel_cases=512, learning_rate=2e-3, max_tests=30)
        steps, width, batch = min(max(4 * rows, 200), 6_000), 64 if rows < 500 else 128, min(max(rows, 64), 256)
        return cls(max_steps=steps, width=width, bins=16, encoding_trial_steps=300, prefix_batch=batch)

    @property
    def as_they_are(self) -> FamilyConfig:
        """Columns are shown as they are."""
        return self.but(encoding_trial_steps=0, bins=0, frequencies=0)

    @property
    def for_convolutions(self) -> FamilyConfig:
        """Steps with convolutions are slow, and the classifier profits most from them."""
        return self.as_they_are.but(
            width=min(self.width, 256),
            parallel_cases=min(self.parallel_cases, 128),
            prefix_share=max(self.prefix_share, 0.6),
            prefix_power=min(self.prefix_power, 2.0),
        )

    @staticmethod
    def rate_factor(progress: float) -> float:
        """min(1, 50 s + 0.01, 2 (1 - s) + 0.01), s: progress in the phase. The rate rises for a moment, since a new optimiser
        takes large steps, stays, and falls over the second half.

        Family: F21
        """
        return min(1.0, 50 * progress + 0.01, 2 * (1 - progress) + 0.01)

    def averaging_weight(self, steps: int, phase: int) -> float:
        """α = max(1 - averaging, 5 / (n + 10)), n = steps in the phase + 40 · phase: a mean over few steps while there are few.

        Family: F22
        """
        return max(1 - self.averaging, 5 / (steps + 40 * phase + 10))

    def softness(self, progress: float) -> float:
        """T_s = last_softness^s, s: progress in the phase.

        Family: F17
        """
        return float(self.last_softness**progress)


@dataclass(frozen=True)
class MeasuringConfig(Settings):
    """How a family is measured, while it is trained and at the end, and how a time limit is shared out."""

    interim_lams: Size = 8
    """Tradeoffs at which an interim measurement is made."""
    equal_areas: Amount = 0.002
    """Areas that differ by no more are as good as equal, and the later weights, which are better trained, are kept."""
    final_lams: Size = 24
    """Tradeoffs of the frontier, besides the prefixes of the order."""
    caps: Size = 24
    """Hard budgets that are measured, evenly from the cheapest test to everything."""
    test_caps: Size = 12
    """Hard budgets besides, such that just buy some test."""
    few_amounts: Count = 48
    """Where tests can add up to no more different amounts than this, all of them are hard budgets, and no others."""
    cap_lams: Count = 4
    """Tradeoffs at which each hard budget is measured, besides 0."""
    first_rows: Size = 1_000
    """Rows on which everything is measured at the end; what a budget could follow is measured on the others too."""
    fewest_rows: Size = 300
    """As many of them however short the time."""
    part_rows: Size = 2_000
    """Rows that are measured at a time, as long as there is time."""
    least_part_rows: Size = 50
    """So few that it is not worth while."""
    safety: Amount = 1.5
    """Times the seconds that a part is expected to take are kept for it."""
    cost_rows: Size = 3_000
    """Mean costs are measured on so many more rows of each kind: budgets are to be met."""
    held_out_weight: Size = 4
    """Times that a row counts in a mean cost if it was not learned from."""
    fills: Count = 24
    """Tradeoffs besides, where neighbours that an average budget would follow are far apart."""
    forecasts: Size = 10
    """Tradeoffs, and as many hard budgets, at which forecasts are calibrated."""

    order_time: Part = 0.12
    """Share of a time limit for the static order."""
    trial_time: Part = 0.04
    """Share of a time limit for which each encoding may be tried."""
    same_mirrored: Share = 0.9
    """Pictures in a mirror are learned from where they tell at least this share of what they tell as they are."""
    clearly_better: Amount = 0.95
    """Bins are taken rather than plain values when the cross-entropy is less than this part."""
    interim_time: Part = 0.1
    """Share of a time limit that may go to interim measurements."""
    final_time: Part = 0.35
    """Share of a time limit that may go to the measurements at the end, if they take that much."""
    final_work: Size = 18
    """What it takes to measure everything at the end, in interim measurements on as many rows."""
    rest_work: Size = 5
    """The same for what is still measured after the first rows."""
    pace_steps: Size = 50
    """Steps by which the pace is known."""
    selection_steps: Amount = 5.0
    """A step of the second phase takes about as long as so many on prefixes (benchmarks/speed/family_step.md)."""
    final_steps: Amount = 10.0
    """The same for a step of the last phase."""
    most_prefix_time: Part = 0.7
    """Most of a time limit that goes to the classifier alone, however slow it is."""
