"""Every hyperparameter of the paper's appendix, with the values its authors' programme adds where the paper is silent."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

from askwise.core.parameters import Amount, Count, Flag, OneOf, OrNone, Real, Settings, Share, Size
from askwise.errors import InputError, did_you_mean
from askwise.frontier.choice import MIXTURES

_PAPER: dict[str, dict[str, Any]] = {
    "mnist": {"width": 512, "epoch": 10_000, "memory_episodes": 10_000, "lr_pretrain": 2e-5, "lr_start": 1e-5},
    "cifar": {"width": 512, "epoch": 10_000, "memory_episodes": 10_000, "lr_pretrain": 2e-5, "lr_start": 1e-5},
    "forest": {"width": 256, "epoch": 10_000},
    "miniboone": {"width": 128, "epoch": 1_000},
    "diabetes": {"width": 128, "epoch": 100},
}

# What a core can pay: batches large enough that most of a step is matrix products, and a memory of nearly fresh episodes. Where
# the memory is old, hardly any stored action is still the greedy one, Retrace cuts its traces, and values are overestimated.
# Pretraining sees more tests at a time than in the paper: states of which much is known teach most of what a policy needs.
_CPU: dict[str, Any] = {
    "batch_steps": 2_000,
    "parallel_cases": 1_000,
    "memory_episodes": 4_000,
    "rho": 0.05,
    "lr_start": 1e-3,
    "lr_min": 5e-6,
    "explore_epochs": 40,
    "shrink_epochs": 14,
    "pretrain_power": 1.0,
    "window_epochs": 0.5,
    "measure_rows": 5_000,
    "lam_rate_min": 0.01,
    "precision": "bfloat16",
}
# Large sets: what pretraining has learned must survive, so rates are lower
_CPU_LARGE: dict[str, Any] = {"rho": 0.01, "lr_start": 3e-4, "explore_epochs": 8, "window_epochs": 1}
# Pictures: a policy that still buys hundreds of pixels takes longer to be measured than to learn
_CPU_PICTURES: dict[str, Any] = {**_CPU_LARGE, "epoch": 80, "lr_pretrain": 3e-4, "pretrain_batch": 512} | {
    "measure_rows": 1_000,
    "window_epochs": 2,
}
_CPU_BY_NAME: dict[str, dict[str, Any]] = {
    "mnist": _CPU_PICTURES,
    "cifar": _CPU_PICTURES,
    "forest": {**_CPU_LARGE, "epoch": 300, "pretrain_steps": 50_000, "pretrain_batch": 1_024},
    "miniboone": {"epoch": 20, "pretrain_steps": 4_000, "pretrain_batch": 512},
    "diabetes": {"epoch": 40, "pretrain_steps": 4_000, "pretrain_batch": 512},
}


@dataclass(frozen=True)
class TrainConfig(Settings):
    """Settings of one training run. The defaults are the paper's for its smaller tables; times are counted in gradient steps.

    Paper: table A.1 (a)
    """

    width: Size = 128
    """Width of each hidden layer (model size)."""
    epoch: Size = 1_000
    """ep_len: the unit of time from which the schedules below are derived."""
    parallel_cases: Size = 1_000
    """|E|: cases that take one step each per gradient step."""
    max_epochs: Amount = 100
    """Training ends after this many epochs at the latest."""
    gamma: Share = 1.0
    """Discount factor; 1 recovers the objectives as stated."""
    retrace: Share = 1.0
    """Retrace's own lambda: 0 gives one-step targets, 1 whole episodes."""
    rho: Share = 0.1
    """Share of the network in each update of the target network (the authors' programme used 0.01)."""
    batch_steps: Size = 50_000
    """|B|: steps in a batch of whole episodes."""
    memory_episodes: Size = 40_000
    """|M|: episodes remembered; a random agent fills all of them first."""
    epsilon_start: Share = 1.0
    """Share of random actions at the start."""
    epsilon_end: Share = 0.1
    """Share of random actions at the end of the exploration phase and after it."""
    eta_start: Share = 0.5
    """How random the target policy π is at the start."""
    eta_end: Share = 0.0
    """How random the target policy π is after the exploration phase."""
    explore_epochs: Amount = 2
    """ε_steps: length of the exploration phase, over which both fall linearly."""
    lr_pretrain: Amount = 1e-3
    """Learning rate of the classifier's pretraining."""
    lr_start: Amount = 5e-4
    """Initial learning rate."""
    lr_min: Amount = 5e-7
    """Smallest learning rate."""
    lr_scale: Share = 0.5
    """Factor on the learning rate, and on the step of lambda, each time they shrink."""
    shrink_epochs: Annotated[float, Real(above=0)] = 10
    """How often they shrink."""
    gradient_norm: Amount = 1.0
    """Gradients longer than this are shortened to it."""
    pretrain_steps: Count = 10_000
    """Steps of pretraining at most; it ends early when the validation error no longer falls. 0: none."""
    pretrain_batch: Size = 1_024
    """States in a batch of pretraining."""
    pretrain_power: Amount = 3.0
    """The mask probability of a pretraining state is u to this power, u uniform on (0, 1)."""
    lam_rate: Amount = 0.1
    """Step of the ascent in lambda (average budgets), at the start."""
    lam_rate_min: Amount = 1e-4
    """Smallest step of lambda. The paper has one and prints no value; this is lr_min / lr_start of `lam_rate`."""
    lam_momentum: Share = 0.1
    """Momentum of the ascent in lambda."""
    lam_clip: Flag = False
    """Let no cost over the budget count for more than the budget itself. Policies that begin by buying everything otherwise drive
    lambda up far faster than it can come down, since no policy costs less than nothing."""
    cost_unit: Annotated[float | None, OrNone(Real(above=0))] = 1.0
    """The cost that counts as 1 where lambda moves: its step is `lam_rate` / cost_unit for each share of all costs that is over
    the budget, and it never exceeds loss / cost_unit. The paper's costs are near 1. None: the mean cost of a test for the step,
    the cheapest test for the largest lambda."""
    hard_tradeoff: Amount = 0.0
    """Loss that all tests together are worth under a hard budget, where costs do not count. The paper: 0. A little breaks ties
    towards stopping."""
    window_epochs: Amount = 0.1
    """How often the policy is measured, lambda moves and a snapshot is handed out."""
    stop_epochs: Amount = 0
    """Training ends early when this many epochs brought nothing and it has settled, oscillates or overfits; 0: never."""
    measure_rows: Count = 0
    """Measure on at most this many training and validation rows; 0: on all."""
    all_classes: Flag = False
    """Fit the class outputs in every visited state, since what each class would have cost there is known, not only where one
    was said. Otherwise a class is learned mainly from the rows that could not go on, and gaps tell the class."""
    fill_gaps: Flag = False
    """Learn from rows whose gaps are filled, where gaps go with the class: otherwise the policy learns who lacks a test, not
    what the test tells. The paper assumes that they never do. Measured is always on the rows as they are."""
    mixture: Annotated[str, OneOf(*MIXTURES)] = "never"
    """Whether an average budget between two snapshots blends them by lot. The paper returns the best single network that meets
    the budget."""
    precision: Annotated[str, OneOf("float32", "bfloat16")] = "float32"
    """Arithmetic of the hidden layers in learning. bfloat16 is faster where the processor has it; weights, outputs, targets and
    measurements stay float32."""
    estimate_missing: Flag = False
    """Let targets also count tests that a row lacks: the variation the paper tried and rejected (section 2.6)."""
    device: str | None = None
    """Where the network lives, in torch's words; None: torch's default."""

    @classmethod
    def paper(cls, name: str) -> TrainConfig:
        """The appendix table's values for mnist, cifar, forest, miniboone or diabetes.

        Paper: table A.1 (b)
        """
        if name not in _PAPER:
            raise InputError(f"the paper has no settings for {name!r}; {did_you_mean(name, _PAPER)}")
        return cls(**_PAPER[name])

    @classmethod
    def cpu(cls, name: str) -> TrainConfig:
        """The paper's algorithm for one of its data sets, scaled to what a core can pay in minutes to an hour: its structure and
        its network, with smaller batches and fewer steps. Found on validation rows."""
        paper = cls.paper(name)
        return paper.but(**{**_CPU, **_CPU_BY_NAME[name]})

    @classmethod
    def for_size(cls, rows: int, tests: int) -> TrainConfig:
        """Settings for a table of this size that train in about a minute: small batches and short epochs."""
        batch = min(max(rows, 250), 2_000)
        return cls(
            width=64 if rows < 500 else 128,
            epoch=min(max(rows // 10, 20), 150),
            parallel_cases=batch // 4,
            batch_steps=batch,
            memory_episodes=batch // 2,
            max_epochs=40 if tests < 100 else 60,
            lr_start=1e-3 if rows < 500 else 3e-4,
            shrink_epochs=8,
            pretrain_steps=min(max(rows, 200), 2_000),
            pretrain_batch=min(batch, 512),
            lam_rate=0.05,
            lam_rate_min=0.005,
            lam_clip=True,
            cost_unit=None,
            hard_tradeoff=1e-3,
            window_epochs=0.5,
            stop_epochs=10,
            measure_rows=5_000,
            all_classes=True,
            fill_gaps=True,
            mixture="if better",
        )

    def scaled(self, size: float = 1.0, time: float = 1.0, **changes: Any) -> TrainConfig:
        """A run of the same shape: `size` times the cases, batch and memory, `time` times the epoch and the pretraining.

        Every schedule is counted in epochs and follows. In a shorter run lambda moves in smaller steps: a policy that is measured
        after fewer gradient steps has answered less to the last one. `changes` set single fields afterwards.
        """
        smaller: dict[str, Any] = {
            name: max(1, round(getattr(self, name) * factor))
            for names, factor in (
                (("parallel_cases", "batch_steps", "memory_episodes", "pretrain_batch"), size),
                (("epoch",), time),
            )
            for name in names
        }
        smaller["pretrain_steps"] = round(self.pretrain_steps * time)
        smaller["lam_rate"], smaller["lam_rate_min"] = (rate * min(time, 1.0) for rate in (self.lam_rate, self.lam_rate_min))
        return self.from_dict({**self.to_dict(), **smaller, **changes})

    @property
    def max_steps(self) -> int:
        return round(self.max_epochs * self.epoch)

    @property
    def window(self) -> int:
        """Gradient steps between two snapshots."""
        return max(1, round(self.window_epochs * self.epoch))

    def _falling(self, step: int, start: float, end: float) -> float:
        done = min(1.0, step / max(1.0, self.explore_epochs * self.epoch))
        return start + (end - start) * done

    def epsilon(self, step: int) -> float:
        """Exploration at a step.

        Paper: section 3.2, exploration rate
        """
        return self._falling(step, self.epsilon_start, self.epsilon_end)

    def eta(self, step: int) -> float:
        """Randomness of the target policy at a step.

        Paper: section 3.1, stochastic target policy
        """
        return self._falling(step, self.eta_start, self.eta_end)

    def shrinks(self, step: int) -> int:
        """How often the learning rate and the step of lambda have shrunk."""
        return int(step // (self.shrink_epochs * self.epoch))

    def lr(self, step: int) -> float:
        """The learning rate at a step: exponential, in fixed steps, with a floor.

        Paper: section 3.2, learning rate schedule
        """
        return max(self.lr_min, self.lr_start * self.lr_scale ** self.shrinks(step))

    def lam_step(self, step: int) -> float:
        """The step of lambda, which shrinks as the learning rate does.

        Paper: section 3.2, step of λ
        """
        return max(self.lam_rate_min, self.lam_rate * self.lr_scale ** self.shrinks(step))
