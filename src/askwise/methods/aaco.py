"""Looks at how similar training rows fared: which tests, bought together, would have told their classes for the least money?

For a case that holds the tests o, its k nearest training rows on o's columns are found, and for each of many sets S ⊇ o the loss
of a masked classifier on these rows, had S been bought, is averaged. The set with the least

    mean loss over the neighbours + λ × what S costs beyond o

is the plan. If it is o itself the class is said; otherwise the one test of the plan is bought that would by itself be best, and
with its value the neighbours and the plan are looked for again. A plan is a set, so two tests that tell something only together
are found. Nothing but the classifier is trained. After Valancius, Lennon and Oliva (2024), who compare 1,000 sets; here it is
256, for the time that a decision takes, unless `supersets` says otherwise.

Gaps of training rows are filled by lot with values of the same class. A policy does not see which tests a case knew before,
unless all cases know them; so a plan may seem cheaper than it is to a case that knew a test with a set-up, or a derived one.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from askwise.components.boosting import loss_scales, unweighted
from askwise.components.networks import inputs, soft_update, stack
from askwise.components.pace import BestNetworks, Pace, set_rate
from askwise.components.prefixes import decide
from askwise.components.torch_state import own_torch
from askwise.core.arrays import Bools, Doubles, Floats, Ints
from askwise.core.budget import Budget, lam_range
from askwise.core.cases import Cases, State
from askwise.core.missingness import filled
from askwise.core.policy import Choice, Policy
from askwise.core.problem import Problem
from askwise.core.sampling import random_sets, some_rows
from askwise.frontier.choice import best_for
from askwise.paper.config import TrainConfig

Classifier = Callable[[Floats, Bools], Doubles]  # B, C values (0 where unknown) and B, F mask to B, K probabilities


@dataclass(frozen=True)
class AacoSettings:
    """The settings of aaco."""

    reference: int = 2_000  # training rows among which neighbours are looked for
    supersets: int = 256  # sets that are compared besides each test alone: all there are, or random ones
    neighbours: int = 20  # reference rows that a case is compared with
    start: int = 200  # neighbours of a case of which nothing is known: any rows
    lambdas: int = 10  # points of the frontier, besides buying nothing
    block: int = 2**22  # numbers in the largest array at a time
    stored: int = 2**27  # bytes of losses that are kept for the next cases that hold the same tests
    rate: float = 1e-3  # the learning rate of Adam
    batch: int = 256  # rows of a step
    follows: float = 0.01  # how fast the averaged classifier follows
    measurements: int = 20  # of the classifier on validation rows; the best is kept


SETTINGS = AacoSettings()


def masked_classifier(problem: Problem, validation: Problem, seconds: float, seed: int, steps: int | None = None) -> Classifier:
    """p(y | any tests): one network of [x ⊙ m, m], trained on random sets of tests for `seconds` or `steps`."""
    rng, scales = np.random.default_rng(seed), loss_scales(problem)
    schema, width = problem.schema, TrainConfig.for_size(len(problem), problem.schema.n_tests).width

    def draw(of: Problem, row: Ints) -> tuple[torch.Tensor, torch.Tensor]:
        mask = random_sets(len(row), schema.n_tests, rng)
        cases = Cases(of, row, mask if of.known is None else mask | of.known[row], None)
        return inputs(cases.values(), cases.mask), torch.from_numpy(np.asarray(of.y)[row])

    with own_torch(seed):
        network, mean = (
            nn.Sequential(stack(len(schema.columns) + schema.n_tests, width, depth=2), nn.Linear(width, schema.n_classes))
            for _ in range(2)
        )
    mean.load_state_dict(network.state_dict())
    held_out, truth = draw(validation, some_rows(len(validation), 5_000, seed))
    weight = torch.from_numpy(scales[truth.numpy()]).float()
    adam = torch.optim.Adam(network.parameters(), SETTINGS.rate, fused=True)
    best, measured = BestNetworks((mean,)), 0

    @torch.inference_mode()
    def measure() -> None:
        best.see(float((functional.cross_entropy(mean(held_out), truth, reduction="none") * weight).mean()))

    for done in Pace(seconds, steps).phase(1.0):
        if int(SETTINGS.measurements * done) > measured:
            measured = int(SETTINGS.measurements * done)
            measure()
        set_rate(adam, SETTINGS.rate * min(1.0, max(2 * (1 - done), 0.02)))
        observed, y = draw(problem, problem.draw(SETTINGS.batch, rng))
        adam.zero_grad()
        functional.cross_entropy(network(observed), y).backward()  # type: ignore[no-untyped-call]
        adam.step()
        soft_update(mean, network, SETTINGS.follows)
    measure()
    best.restore()

    @torch.inference_mode()
    def classify(values: Floats, mask: Bools) -> Doubles:
        return unweighted(mean(inputs(values, mask)).softmax(1).numpy().astype(np.float64), scales)

    return classify


class Plans(NamedTuple):
    """What can be bought beyond the tests that some cases hold."""

    sets: Bools  # U, F: all different, with what is held
    which: Ints  # R: the set that each candidate comes to; the first is what is held, the next F are one test more each
    cost: Doubles  # U: money, beyond what is held
    losses: Floats  # N, U: of each reference row, had it been decided with a set; NaN where nobody asked yet


class ReferenceRows:
    """Reference rows, and how they fare with any tests. The losses are kept for the cases, and lambdas, that ask next."""

    def __init__(
        self, problem: Problem, classify: Classifier, reference: int, supersets: int, neighbours: int, seed: int
    ) -> None:
        rng = np.random.default_rng(seed)
        rows = rng.permutation(len(problem))[:reference]  # in random order, since of equally near rows the first are taken
        self.classify, self.neighbours = classify, min(neighbours, len(rows))
        self.schema, self.X, self.y = problem.schema, problem.X[rows], np.asarray(problem.y)[rows]
        self.scales = loss_scales(problem)
        self.wide = self.X.astype(np.float64)
        self.square = self.wide**2
        self.candidates = candidates(problem.schema.n_tests, supersets, rng)
        self.known = np.zeros(problem.schema.n_tests, bool) if problem.known is None else np.asarray(problem.known.all(0))
        self.kept: OrderedDict[bytes, Plans] = OrderedDict()

    def nearest(self, values: Floats, mask: Bools) -> Ints:
        """B, k: the reference rows with the least squared distance on the columns that are held.

        d = Σ_c m_c (x_c - r_c)² = Σ_c x_c² - 2 x · r + m · r², where x is 0 outside m; the first term is the same for all rows.
        """
        B, N = len(values), len(self.X)
        near = np.empty((B, self.neighbours), np.int64)
        held = self.schema.by_column(mask).astype(np.float64)
        # the order of the rows breaks ties, by more than products of another shape are rounded differently
        tie = np.linspace(0, 1e-7, N)
        for block in _blocks(B, N):
            distance = held[block] @ self.square.T - 2 * (values[block].astype(np.float64) @ self.wide.T) + tie
            if self.neighbours < N:
                near[block] = np.argpartition(distance, self.neighbours - 1, 1)[:, : self.neighbours]
            else:
                near[block] = np.arange(N)
        return near

    def plans(self, held: Bools, on_offer: Bools, now: Doubles) -> Plans:
        """For all cases that hold these tests (F), may buy those, and would pay so much for one of them `now`."""
        key = np.packbits([held, on_offer]).tobytes() + now.tobytes()
        if key in self.kept:
            self.kept.move_to_end(key)
            return self.kept[key]
        sets, which = np.unique(held | (self.candidates & on_offer), axis=0, return_inverse=True)
        costs = self.schema.costs
        paid = costs.paid(np.repeat(held[None], len(sets), 0), np.repeat((self.known & held)[None], len(sets), 0))
        cost = np.asarray(costs.money(costs.bill(paid, sets)), np.float64)
        cost = np.maximum(cost, np.where(sets & on_offer, now, 0).max(1))  # what a case knew has not paid for other tests
        plans = Plans(sets, which.reshape(-1), cost, np.full((len(self.X), len(sets)), np.nan, np.float32))
        self.kept[key] = plans
        while len(self.kept) > 1 and sum(p.losses.nbytes for p in self.kept.values()) > SETTINGS.stored:
            self.kept.popitem(last=False)
        return plans

    def losses(self, plans: Plans, near: Ints) -> Doubles:
        """G, U: the mean loss of each case's neighbours (G, k) with each set."""
        rows = np.unique(near)
        rows = rows[np.isnan(plans.losses[rows, 0])]
        U = len(plans.sets)
        shown = self.schema.by_column(plans.sets)
        for block in _blocks(len(rows), U * (len(self.schema.columns) + self.schema.n_tests)):
            part = rows[block]
            values = (self.X[part, None] * shown).reshape(-1, self.X.shape[1])
            p = self.classify(values, np.tile(plans.sets, (len(part), 1)))
            truth = np.repeat(self.y[part], U)
            plans.losses[part] = cross_entropy(p, truth, self.scales).reshape(-1, U)
        mean = np.empty((len(near), U))
        for block in _blocks(len(near), near.shape[1] * U):
            mean[block] = plans.losses[near[block]].mean(1, dtype=np.float64)
        return mean


def cross_entropy(p: Doubles, y: Ints, scales: Doubles) -> Doubles:
    """-w_y log p'_y, where p' are the probabilities if each class were as frequent as its loss scale w makes it; B.

    This is what the classifier was trained to make small. Never more than for one in a million.
    """
    weighted = p * scales
    likelihood = weighted[np.arange(len(y)), y] / weighted.sum(1)
    lost: Doubles = -np.log(np.maximum(likelihood, 1e-6)) * scales[y]
    return lost


def candidates(F: int, most: int, rng: np.random.Generator) -> Bools:
    """R, F: nothing, each test alone, and then all other sets, or `most` random ones; small sets more often."""
    first = np.concatenate([np.zeros((1, F), bool), np.eye(F, dtype=bool)])
    if most + len(first) >= 2**F:
        every = (np.arange(2**F)[:, None] >> np.arange(F) & 1).astype(bool)
        return np.concatenate([first, every[every.sum(1) > 1]])
    return np.concatenate([first, random_sets(most, F, rng)])


def _blocks(n: int, numbers_each: int) -> list[slice]:
    size = max(SETTINGS.block // max(numbers_each, 1), 1)
    return [slice(i, i + size) for i in range(0, n, size)]


@dataclass(frozen=True, eq=False)
class Aaco(Policy):
    """Plans at one λ, buys the first test of its plan, and decides when the plan is to buy nothing."""

    reference_rows: ReferenceRows
    lam: float  # loss per unit of cost; infinite: nothing but what is free
    loss: Doubles  # K, K

    def act(self, state: State) -> Choice:
        first_test = self.reference_rows.schema.first_test
        test = self.choose(state)
        says = test < 0
        action = first_test + test
        if says.any():
            action[says] = decide(self.belief(state.keep(says)), self.loss)
        return Choice(action, np.ones(len(action), np.float32))

    def belief(self, state: State) -> Doubles:
        """B, K: class probabilities."""
        return self.reference_rows.classify(state.values, state.mask)

    def choose(self, state: State) -> Ints:
        """B: the test to buy, -1 where there is none. Cases that hold the same and may buy the same are looked at together."""
        schema = self.reference_rows.schema
        mask, on_offer = state.mask, state.legal[:, schema.first_test :]
        now = np.zeros(mask.shape)
        if state.test_cost is not None and not schema.costs.plain:  # otherwise a test's cost is always the same
            now[on_offer] = state.test_cost[on_offer]
        test = np.full(len(mask), -1)
        asks = np.flatnonzero(on_offer.any(1))
        if not len(asks):
            return test
        same = np.concatenate([np.packbits(mask[asks], 1), np.packbits(on_offer[asks], 1), now[asks].view(np.uint8)], 1)
        group = np.unique(same, axis=0, return_inverse=True)[1].reshape(-1)
        order = np.argsort(group, kind="stable")
        for cases in np.split(asks[order], np.cumsum(np.bincount(group))[:-1]):
            held = mask[cases[0]]
            plans = self.reference_rows.plans(held, on_offer[cases[0]], now[cases[0]])
            if held.any():
                lost = self.reference_rows.losses(plans, self.reference_rows.nearest(state.values[cases], mask[cases]))
            else:  # all rows are equally near, to all of these cases
                lost = self.reference_rows.losses(plans, np.arange(min(SETTINGS.start, len(self.reference_rows.X)))[None])
                lost = np.repeat(lost, len(cases), 0)
            test[cases] = best_first(plans, lost, self.lam, None if state.left is None else state.left[cases])
        return test


def best_first(plans: Plans, lost: Doubles, lam: float, left: Doubles | None) -> Ints:
    """G: of the best set that can be paid the test that is best alone; -1 where the best is what is held."""
    paid = np.zeros_like(plans.cost)
    np.multiply(lam, plans.cost, out=paid, where=plans.cost > 0)  # what is free is free at any λ
    total = lost + paid
    if left is not None:
        total[plans.cost > left[:, None] + 1e-9] = np.inf  # money left is a float here; what may be bought is known exactly
    held, alone = plans.which[0], plans.which[1 : plans.sets.shape[1] + 1]
    total[:, held] -= 1e-12  # of equals, stop
    best = total.argmin(1)
    # the plan's own tests; those that are held, or cannot be had, come to what is held
    own = plans.sets[best] & (alone != held)
    first = np.where(own, total[:, alone], np.inf).argmin(1)
    return np.where(best == held, -1, first)


def points(
    problem: Problem,
    validation: Problem,
    *,
    seconds: float,
    seed: int = 0,
    threads: int = 1,
    steps: int | None = None,
    reference: int = SETTINGS.reference,
    supersets: int = SETTINGS.supersets,
    neighbours: int = SETTINGS.neighbours,
) -> list[Policy]:
    """A policy for each of a range of lambdas, over one classifier that is trained for `seconds`, or `steps`. Using them is slow:
    time grows with the number of neighbours and of supersets, and memory with that of reference rows and supersets."""
    with own_torch(seed, threads):
        complete, held_out = filled(problem.trainable(), seed), filled(validation.with_loss(problem.loss), seed)
        classify = masked_classifier(complete, held_out, seconds, seed, steps)
    reference_rows = ReferenceRows(complete, classify, reference=reference, supersets=supersets, neighbours=neighbours, seed=seed)
    ends = lam_range(problem)
    grid: Sequence[float] | Doubles = [] if ends is None else np.geomspace(*ends, SETTINGS.lambdas) / problem.loss_scale
    return [Aaco(reference_rows, float(lam), problem.free_loss) for lam in (np.inf, *grid)]


def fit(
    problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0, steps: int | None = None
) -> Policy:
    """The lambda that is best for the budget on validation rows, or a mixture of two."""
    return best_for(points(problem, validation, seconds=seconds, seed=seed, steps=steps), validation, budget, seed)
