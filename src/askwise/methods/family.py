"""One training for every price and every budget: a static order, made adaptive by gradients through its classifier."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from askwise.components.encoders import Encoder
from askwise.components.networks import Weights
from askwise.components.static_order import elimination_order
from askwise.core import checks, missingness
from askwise.core.arrays import Arrays, Doubles, Ints
from askwise.core.budget import Budget
from askwise.core.measures import Measure
from askwise.core.policy import Policy
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.errors import StateError
from askwise.family import calibration
from askwise.family.config import FamilyConfig
from askwise.family.frontier import Last, Tried, area_of, frontier
from askwise.family.inference import Family
from askwise.family.train import FamilyTrainer
from askwise.frontier.choice import best_for
from askwise.frontier.point import Point
from askwise.training.checkpoint import State, figures, number, part, put_off_ctrl_c, same_run, same_shapes, taking_over

GLANCE = 8  # prices that are measured while it is trained
FIRST, FEWEST = 1_000, 300  # rows on which everything is measured in the end, and as many however short the time
SAME = 0.002  # areas that are as good as equal
MEASURING, LAST = 0.1, 0.35  # share of the time that may go to measuring on the way; and at the end, if it takes that much
ORDER = 0.12  # share of the time for the order
PACE, MOST_PREFIXES = 50, 0.7  # steps by which the pace is known; most of the time for prefixes, however slow it is
TRIAL = 0.04  # share of the time that each encoding may be tried
CLEARLY = 0.95  # bins are taken rather than plain values when the surprise is less than this part
FOLLOWED = 10  # prices, and as many hard budgets, at which forecasts are set right
LAST_GLANCES = 18  # what it takes to measure everything in the end, in glances on as many rows
REST_GLANCES = 5  # the same for what is still measured after the first rows


@dataclass(frozen=True)
class Record:
    """What the family came to at one moment of its training."""

    step: int
    done: float
    area: float  # under the validation hull of the score, 1 - loss / stake, prefixes included
    lam: float  # of the point with the least loss
    validation: Measure  # of that point

    @property
    def cost(self) -> float:
        return self.validation.cost


@dataclass
class Kept:
    """The best so far, and the course of the run."""

    records: list[Record] = field(default_factory=list)
    area: float = -np.inf
    weights: Weights = field(default_factory=dict)
    spent: float = 0.0  # seconds
    due: float = math.inf  # how much is done when it is measured next

    def add(self, record: Record, weights: Weights) -> None:
        """Where areas, which are measured on some rows and at few prices, hardly differ, the later one is better trained."""
        self.records.append(record)
        if record.area >= self.area - SAME:
            self.area, self.weights = max(self.area, record.area), weights

    def state(self) -> State:
        arrays = {f"best/{name}": value for name, value in self.weights.items()}
        return arrays, {
            "records": [asdict(r) for r in self.records],
            "area": self.area if self.records else None,
            "spent": self.spent,
            "due": None if self.due == math.inf else self.due,
        }

    @classmethod
    def restore(cls, arrays: Arrays, facts: dict[str, Any]) -> Kept:
        records = [
            Record(
                number(r, "step", whole=True), number(r, "done"), number(r, "area"), number(r, "lam"), figures(r["validation"])
            )
            for r in facts["records"]
        ]
        due = math.inf if facts["due"] is None else float(facts["due"])
        spent = checks.seconds({"spent": facts["spent"]}, "spent")
        return cls(records, float(facts["area"]) if records else -np.inf, part(arrays, "best/"), spent, due)


@dataclass(frozen=True, eq=False)
class Run:
    """A finished training run."""

    trainer: FamilyTrainer
    weights: Weights
    points: list[Point]  # all that were measured without a hard budget
    kept: list[Point]  # those that some budget could follow, under hard budgets too, by rising cost; the first decides at once
    records: list[Record]
    seconds: float  # of this call; those before a resumption are the caller's to add
    stopped: str

    @property
    def area(self) -> float:
        return area_of(self.points, self.trainer.scale)

    @cached_property
    def family(self) -> Family:
        return self.trainer.family(self.weights)

    def policy(self, point: Point) -> Policy:
        # who cannot follow a prefix decides: here nothing keeps to the price of its tests
        return self.family.policy(self.trainer.scale.high if point.prefix is not None else point.lam, point.prefix)


def run(
    problem: Problem,
    validation: Problem,
    config: FamilyConfig | None = None,
    seed: int = 0,
    *,
    encoder: Encoder | None = None,
    time_limit: float | None = None,
    cap: int | None = None,
    threads: int = 1,
    callback: Callable[[Record], None] | None = None,
    save: Callable[[State], None] | None = None,
    resume: State | None = None,
) -> Run:
    """Trains for so many seconds, the order included, or without a limit for `config.max_steps` steps. Half of the validation
    rows teach it what to expect. Now and then it is measured on some of the others, and the best is kept; in the end on all of
    them that the time allows, also under some hard budgets and that of `cap` units.

    `save` is given the whole state after each measurement, and on Ctrl-C; `resume` takes such a state, whose seconds count.
    """
    if resume is not None:
        same_run(resume[1].get("run"), {"algorithm": "family"})
    with taking_over():
        kept = Kept() if resume is None else Kept.restore(*resume)
    called = time.monotonic()
    began = called - kept.spent
    config = config or FamilyConfig.for_size(len(problem), problem.schema.n_tests)
    if time_limit is not None:
        config = config.but(max_steps=2**31)
    held_out = validation
    judging, validation = halves(validation)
    rows = Rows.of(problem, judging, seed)
    soon = None if time_limit is None else ORDER * time_limit
    if resume is not None:
        with taking_over():
            order = resume[0]["order"]
            if sorted(order.tolist()) != list(range(problem.schema.n_tests)):
                raise StateError("the checkpoint is damaged: its order does not have every test once")
            chosen = {name: resume[1]["run"].get(f"setting {name!r}", 0) for name in ("bins", "frequencies")}
            tried = {**chosen, "encoding_trial_steps": 0} if config.encoding_trial_steps else {}
            trainer = FamilyTrainer(rows.learn, rows.judge, order, config.but(**tried), seed, encoder, rows.lacking)
            trainer.load(*resume)
            if kept.records:
                same_shapes(kept.weights, trainer.weights(), len(problem))
    else:
        order = elimination_order(rows.learn, seed, threads=threads, seconds=soon)
        trainer = begun(rows, order, config, seed, encoder, None if time_limit is None else TRIAL * time_limit)
    some = some_rows(len(validation), config.measure_rows, seed)
    most = min(config.frontier_rows or len(validation), len(validation))
    started, before, first = time.monotonic(), trainer.done, trainer.step  # the order is paid from the same purse
    pause = (1 - config.prefix_share) / config.interim_measurements
    aside = LAST / 2  # share of the time for the last measurements, until it is known how long they take
    while True:
        if time_limit is not None:
            left = max(began + (1 - aside) * time_limit - started, 1e-3)
            trainer.done = min(1.0, before + (1 - before) * (time.monotonic() - started) / left)
        finished = trainer.finished
        if trainer.adaptive and kept.due == math.inf:
            kept.due = trainer.done
        if trainer.done >= kept.due or finished:
            at = time.monotonic()
            weights = trainer.weights()
            points = frontier(trainer, weights, validation, some, GLANCE)
            area = area_of(points, trainer.scale)
            best = min(points, key=lambda p: (p.loss, p.cost))
            new = not kept.records or kept.records[-1].step < trainer.step  # not so if it was resumed at its end
            if new:
                kept.add(Record(trainer.step, trainer.done, area, best.lam, best.measure), weights)
            kept.spent = time.monotonic() - began
            glance = time.monotonic() - at
            if callback is not None and new:
                callback(kept.records[-1])
            if time_limit:
                pause = max(pause, glance / time_limit / MEASURING)
                fully = (LAST_GLANCES + REST_GLANCES * max(most / len(some) - 1, 0)) * glance / time_limit
                aside = max(min(LAST / 2, fully), min(LAST, LAST_GLANCES * glance / time_limit))
                before, started = trainer.done, time.monotonic()  # what is done never goes back, the rest shares what is left
            kept.due = trainer.done + pause if trainer.done + 1.5 * pause < 1 else 1.0
            if save is not None and new:
                save(_state(trainer, kept))
        if finished:
            break
        if time_limit is not None and not trainer.adaptive and trainer.step == first + PACE:
            wanted = config.prefix_steps * (time.monotonic() - started) / PACE / left  # of the time that is left
            trainer.prefix_share = max(config.prefix_share, min(wanted, MOST_PREFIXES))
        with put_off_ctrl_c(save is not None) as interrupted:
            trainer.advance()
        if interrupted and save is not None:  # between two steps, so that what is saved is whole
            kept.spent = time.monotonic() - began
            save(_state(trainer, kept))
            raise KeyboardInterrupt
    first = FIRST
    if time_limit is not None:  # as many rows as can be measured in the time that is left
        rest = max(began + time_limit - time.monotonic(), 0.0)
        first = min(FIRST, max(FEWEST, int(len(some) * rest / glance / LAST_GLANCES)))
    last = Last(trainer, trainer.family(kept.weights), problem, judging, validation, seed, cap)
    last.begin(first, most)
    told = calibration.fitted(last.family, held_out, followed(last.tried), config)
    found = last.finish(None if time_limit is None else lambda: began + time_limit - time.monotonic())
    weights = {**kept.weights, "calibration": told.astype(np.float32)}
    stopped = "time limit" if time_limit is not None else "end of the schedule"
    return Run(trainer, weights, found.points, found.kept, kept.records, time.monotonic() - called, stopped)


def followed(tried: list[Tried]) -> list[tuple[float, int | None]]:
    """Some of the prices that were measured, and hard budgets, each at one of its prices in turn."""
    adaptive = [t for t in tried if t.prefix is None]
    free, caps = [t.lam for t in adaptive if t.cap is None], sorted({t.cap for t in tried if t.cap is not None})
    limits: list[tuple[float, int | None]] = [(lam, None) for lam in free[:: -(-len(free) // FOLLOWED) or 1]]
    for i, cap in enumerate(caps[:: -(-len(caps) // FOLLOWED) or 1]):
        prices = [t.lam for t in adaptive if t.cap == cap]
        limits += [(prices[i % len(prices)], cap)] if prices else []
    return limits


@dataclass(frozen=True, eq=False)
class Rows:
    """What is learned from. Where gaps go with the class they are filled by lot, or else to hold a test would be to be one of
    those who have it; cases then lack tests as often as before, but whatever their class. Other gaps stay: what two tests say
    together is best learned from the rows that have both."""

    learn: Problem
    judge: Problem
    lacking: Doubles | None

    @classmethod
    def of(cls, problem: Problem, judging: Problem, seed: int) -> Rows:
        if not missingness.go_with_class(problem):
            return cls(problem, judging, None)
        return cls(missingness.filled(problem, seed), missingness.filled(judging, seed), missingness.lacking(problem))


def begun(
    rows: Rows, order: Ints, config: FamilyConfig, seed: int, encoder: Encoder | None, seconds: float | None
) -> FamilyTrainer:
    """A run that begins, with columns in bins or as they are, with waves if there are any, whichever is better in the first
    steps, at most so many seconds. Bins must be clearly better than plain values: they also learn faster where they are not
    better in the end."""
    steps = min(config.encoding_trial_steps, config.max_steps // 20)
    if not (steps and config.bins) or encoder is not None:
        return FamilyTrainer(rows.learn, rows.judge, order, config.but(encoding_trial_steps=0), seed, encoder, rows.lacking)
    rivals = [
        FamilyTrainer(rows.learn, rows.judge, order, config.but(**other, encoding_trial_steps=0), seed, lacking=rows.lacking)
        for other in ({"frequencies": 0}, {"bins": 0})
    ]
    for rival in rivals:
        end = math.inf if seconds is None else time.monotonic() + seconds
        while rival.step < steps and time.monotonic() < end:
            if seconds is not None:
                rival.done = 2 * TRIAL  # rates have risen
            rival.advance()
    in_bins, without = (rival.monitor.surprise(rival.mean) for rival in rivals)
    return rivals[0] if in_bins < (1.0 if config.frequencies else CLEARLY) * without else rivals[1]


def _state(trainer: FamilyTrainer, kept: Kept) -> State:
    (arrays, facts), (more, said) = trainer.state(), kept.state()
    return {**arrays, **more}, {**facts, **said}


def halves(validation: Problem) -> tuple[Problem, Problem]:
    """Rows to learn from what to expect, and rows to measure; each class is shared out evenly."""
    assert validation.y is not None
    if len(validation) < 2:
        return validation, validation
    by_class = np.argsort(validation.y, kind="stable")
    return validation.take(np.sort(by_class[::2])), validation.take(np.sort(by_class[1::2]))


def points(
    problem: Problem,
    validation: Problem,
    *,
    seconds: float,
    seed: int = 0,
    threads: int = 1,
    steps: int | None = None,
    encoder: Encoder | None = None,
    **settings: Any,
) -> list[Policy]:
    """The policies whose costs and scores make the frontier. With `steps` it learns for so many steps, however long they take."""
    config = FamilyConfig.for_size(len(problem), problem.schema.n_tests).but(**settings)
    if steps is not None:
        config = config.but(max_steps=steps)
    limit = seconds if steps is None else None
    done = run(problem, validation, config, seed, encoder=encoder, time_limit=limit, threads=threads)
    return [done.policy(p) for p in done.points]


def fit(
    problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0, steps: int | None = None
) -> Policy:
    """The policy for a budget."""
    return best_for(points(problem, validation, seconds=seconds, seed=seed, steps=steps), validation, budget, seed)
