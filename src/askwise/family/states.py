"""States to learn a family from: prefixes of its static order, and cases in progress."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor

from askwise.core.arrays import Array, Bools, Doubles, Floats, Ints
from askwise.core.cases import Cases
from askwise.core.missingness import lost
from askwise.core.problem import Problem
from askwise.core.sampling import random_sets
from askwise.core.schema import Schema
from askwise.core.scoring import expected_losses
from askwise.family.conditions import Scale, affordable
from askwise.family.config import DESIGN, StateSettings


@dataclass(eq=False)
class LiveCases:
    """B cases in progress."""

    row: Ints
    mask: Bools
    lam: Doubles
    cap: Ints  # units
    refused: Bools
    most_tests: Ints  # that it buys
    age: Ints  # tests it has bought

    def replace(self, where: Bools, fresh: LiveCases) -> None:
        for field in fields(self):
            getattr(self, field.name)[where] = getattr(fresh, field.name)

    def after(self, case: Ints, test: Ints, problem: Problem) -> LiveCases:
        """P: for each pair of a case and a test, that case once the test is bought."""
        chosen = LiveCases(*(getattr(self, field.name)[case] for field in fields(self)))
        chosen.buy(problem, test, np.ones(len(case), bool))
        return chosen

    def buy(self, problem: Problem, test: Ints, buys: Bools) -> None:
        """The cases that buy get their test, by the one transition that there is, `Cases.step`. The others stay as they are."""
        cases = Cases(problem, self.row, self.mask, self.cap)
        cases.step(np.where(buys, test + problem.schema.first_test, 0))  # to name a class leaves a case as it is
        self.mask = cases.mask


@dataclass(frozen=True, eq=False)
class Observation:
    """All that there is to know about B cases in progress, as tensors. Symbols: README.md."""

    cases: Cases
    mask: Tensor  # B, F: m
    conditions: Tensor  # φ
    labels: Tensor  # B: y
    legal: Tensor  # B, F: A
    open: Tensor  # B: something can be bought
    scaled_cost: Tensor  # B, F: c̃
    cost_bound: Tensor  # B: ρ
    affordable: Tensor  # B, F or nothing: a
    fees: Floats | None  # B, D: what decisions cost, scaled, infinity where the hard budget forbids one; None: nothing

    @classmethod
    def of(
        cls, live: LiveCases, problem: Problem, scale: Scale, alone: Doubles, device: torch.device | None = None
    ) -> Observation:
        """`alone`: see `costs_alone`; device: where the tensors are to be."""

        def tensor(values: Array) -> Tensor:
            return torch.from_numpy(values).to(device)

        costs, first = problem.schema.costs, problem.schema.first_test
        cases = Cases(problem, live.row, live.mask, live.cap)
        left, money = costs.money(cases.left()), cases.test_cost()
        each = costs.listed[None] if costs.plain else money  # all cases share what costs are where they are plain
        scaled = each.astype(np.float32) * (live.lam / scale.loss_scale).astype(np.float32)[:, None]
        actions, fees = cases.legal(), None
        legal = costs.obtainable(actions[:, first:] & ~live.refused, live.mask)
        if costs.decisions.any():
            money_of = costs.money(problem.schema.decision_cost) * (live.lam[:, None] / scale.loss_scale)
            fees = np.where(actions[:, : problem.schema.n_decisions], money_of, np.inf).astype(np.float32)
        return cls(
            cases,
            as_numbers(live.mask, device),
            tensor(scale.conditions(live.lam, left)),
            tensor(problem.labels[live.row]),
            tensor(legal),
            tensor(np.asarray(legal.any(1))),
            tensor(scaled),
            tensor(scale.cost_bound(live.lam, left).astype(np.float32)),
            tensor(affordable(alone, money, left)),
            fees,
        )

    def keep(self, which: Ints) -> Observation:
        """Only some of the cases."""
        place = torch.from_numpy(which).to(self.mask.device)
        tensors = {name: part.index_select(0, place) for name, part in vars(self).items() if isinstance(part, Tensor)}
        return replace(self, cases=self.cases.keep(which), fees=None if self.fees is None else self.fees[which], **tensors)

    @property
    def values(self) -> Tensor:
        """B, C: of the rows, whatever is held."""
        return torch.from_numpy(self.cases.problem.X.take(self.cases.row, 0)).to(self.mask.device)

    def deciding(self, belief: Floats, loss: Floats, rule: str | None) -> tuple[Floats, Floats]:
        """(F9) B and B: D, the least that deciding now is expected to lose and cost, for beliefs (B, K) and a scaled loss (K, D);
        and the part of it that is cost."""
        lost = expected_losses(belief, loss, rule)
        if self.fees is None:
            return lost.min(1), np.zeros(len(lost), np.float32)
        rows, decision = np.arange(len(lost)), (lost + self.fees).argmin(1)
        fee = self.fees[rows, decision]
        return lost[rows, decision] + fee, fee

    def bill(self, lam: Doubles, scale: Scale) -> Tensor:
        """B: the scaled cost of asking the existing classifier."""
        schema = self.cases.problem.schema
        bill = schema.costs.money(self.cases.cost_of(np.full(len(lam), schema.n_decisions)))
        return torch.from_numpy((bill * lam / scale.loss_scale).astype(np.float32)).to(self.mask.device)


@dataclass(frozen=True, eq=False)
class StateSampler:
    """Draws states to learn from.

    Family: F14; F15
    """

    schema: Schema
    scale: Scale
    rank: Ints  # F: the place of each test in the static order
    config: StateSettings
    lacking: Doubles  # F: how often cases will lack a test that the rows here have, see `missingness.lacking`

    def prefixes(self, problem: Problem, row: Ints, rng: np.random.Generator) -> Bools:
        """B, F: prefixes with some tests flipped, and now and then any set at all, for cases that come another way.

        Family: F14
        """
        config, n, F = self.config, len(row), self.schema.n_tests
        mask: Bools = self.rank < np.round(F * rng.random((n, 1)) ** config.prefix_power)
        share = config.random_set_share if DESIGN.candidates < F else config.random_set_share_few
        return self.varied(problem, row, mask, share, rng)

    def varied(self, problem: Problem, row: Ints, mask: Bools, any_share: float, rng: np.random.Generator) -> Bools:
        """B, F: the sets with some tests flipped, this share of them replaced by any set, and without what rows lack."""
        config, n, F = self.config, len(row), self.schema.n_tests
        mask = mask ^ (rng.random((n, F), dtype=np.float32) < config.flip_share * rng.random((n, 1), dtype=np.float32) ** 2)
        any_set = np.flatnonzero(rng.random(n) < any_share)
        mask[any_set] = random_sets(len(any_set), F, rng)
        if problem.available is not None:
            mask &= problem.available[row]
            # a set without some test must not be known only from rows that lack it
            thin = np.flatnonzero(rng.random(n) < config.thinned_share)
            mask[thin] &= rng.random((len(thin), F)) < rng.random((len(thin), 1))
        mask &= ~lost(self.lacking, n, rng)
        if problem.known is not None:
            mask |= problem.known[row]
        return mask

    def fresh(self, problem: Problem, n: int, rng: np.random.Generator) -> LiveCases:
        """New cases, each with a tradeoff of its own, and some of them with a hard budget.

        Family: F15
        """
        row = problem.draw(n, rng, by_stake=False)
        lam = self.scale.least * (self.scale.high / self.scale.least) ** rng.random(n)
        mask, refused = self._held(problem, row, rng)
        refused |= self.refusals(n, rng)
        self.take_free(problem, row, mask, refused)
        cap, capped = self.caps(problem, row, mask, rng)
        lam[capped & (rng.random(n) < self.config.only_capped_share)] = self.scale.least
        most_tests = np.ceil(min(self.config.max_tests, self.schema.n_tests) * rng.random(n) ** 2).astype(np.int64)
        return LiveCases(row, mask, lam, cap, refused, most_tests, np.zeros(n, np.int64))

    def refusals(self, n: int, rng: np.random.Generator) -> Bools:
        """B, F: what cases do not want."""
        refused = np.zeros((n, self.schema.n_tests), bool)
        refuses = np.flatnonzero(rng.random(n) < self.config.refusing_share)
        refused[refuses] = rng.random((len(refuses), self.schema.n_tests)) < 0.6 * rng.random((len(refuses), 1))
        return refused

    def _held(self, problem: Problem, row: Ints, rng: np.random.Generator) -> tuple[Bools, Bools]:
        """B, F: what the cases hold at first; B, F: what they will lack although the rows have it."""
        n, F, config = len(row), self.schema.n_tests, self.config
        mask = np.zeros((n, F), bool)
        knows, deep = (np.flatnonzero(rng.random(n) < share) for share in (config.knowing_share, config.deep_share))
        mask[knows] = rng.random((len(knows), F)) < 0.5 * rng.random((len(knows), 1))
        mask[deep] |= self.rank < np.round(F * rng.random((len(deep), 1)) ** 2)
        lacks = lost(self.lacking, n, rng)
        mask &= ~lacks
        if problem.available is not None:
            mask &= problem.available[row]
        if problem.known is not None:
            mask |= problem.known[row]
        return mask, lacks

    def take_free(self, problem: Problem, row: Ints, mask: Bools, refused: Bools) -> None:
        """What costs nothing is taken before anything else."""
        free = self.schema.costs.alone == 0
        if free.any():
            can = ~refused if problem.available is None else ~refused & problem.available[row]
            mask |= free & self.schema.costs.obtainable(can, mask)

    def caps(self, problem: Problem, row: Ints, mask: Bools, rng: np.random.Generator) -> tuple[Ints, Bools]:
        """B: hard budgets in units, log-uniform from the cheapest test to everything, on top of what is paid already; B: which of
        them bind. The others are twice the cost of everything, so that more than everything is always left."""
        costs, n = self.schema.costs, len(row)
        least = max(1.0, costs.total * self.scale.cheapest / self.scale.total)
        cap = np.exp(rng.uniform(math.log(least), math.log(max(costs.total, least)), n)).round().astype(np.int64)
        capped = rng.random(n) < self.config.capped_share
        spent = costs.cost(mask, None if problem.known is None else problem.known[row])
        return np.where(capped, cap + spent, 2 * costs.total), capped


def as_numbers(mask: Bools, device: torch.device | None = None) -> Tensor:
    """The same as 0 and 1, on a device. Torch takes its time with truths."""
    return torch.from_numpy(mask.view(np.uint8)).to(device).float()


def any_of(which: Bools, rng: np.random.Generator) -> Ints:
    """B: one of the tests that are True in each row (B, F), each as likely as the others. There must be one."""
    place, n = np.flatnonzero(which), np.count_nonzero(which, 1)
    drawn: Ints = place[np.cumsum(n) - n + (rng.random(len(n)) * n).astype(np.int64)] % which.shape[1]
    return drawn


def best_and_others(candidates: Bools, best: Ints, n: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Pairs of a case and a test: of each case the best of its candidates (B, F) and others of them by lot, n in all or as many
    as there are."""
    case, test = np.divmod(np.flatnonzero(candidates), candidates.shape[1])
    count = np.count_nonzero(candidates, 1)
    place = np.arange(len(case)) - (np.cumsum(count) - count)[case]
    key = np.full((len(best), max(int(count.max(initial=0)), n)), -1.0)
    key[case, place] = rng.random(len(case)) + (test == best[case])
    last = np.partition(key, -n, 1)[:, -n]
    taken = key[case, place] >= last[case]
    return case[taken], test[taken]
