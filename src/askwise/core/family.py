"""Training of a policy family: one model for every price and every budget.

First a classifier learns on prefixes of a fixed order of the tests. Then a second network learns which test comes next. The
gradient reaches it through the classifier: a test is chosen softly (Gumbel-softmax), so that all tests are compared at once. It
starts as the fixed order. A third network learns, on rows the classifier has not seen, what to expect of going on. All cases in
progress have a price of their own, many have a hard budget, some know things already or refuse tests.
"""

from __future__ import annotations

import copy
import hashlib
import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from askwise.core.checkpoint import Arrays, State, load_moments, moments_of, own_random_numbers, part, same_run
from askwise.core.episode import Cases
from askwise.core.family_config import FamilyConfig
from askwise.core.family_network import Bins, FamilyNetwork, own_trunks
from askwise.core.family_values import TIE, Family, FamilyValues, Scale
from askwise.core.network import Encoder, Weights, load_weights, soft_update, weights_of
from askwise.core.prices import Bools, Ints
from askwise.core.problem import Doubles, Problem

FREE = 4  # times the cost of everything: a hard budget that never binds
REFUSES, KNOWS, DEEP = 0.15, 0.15, 0.25  # shares of cases that refuse tests, know some already, or begin on a prefix of the order
COLD = 0.1  # the last temperature of the soft choice
NEVER = -1e9


@dataclass(eq=False)
class Live:
    """Cases in progress."""

    row: Ints
    mask: Bools
    lam: Doubles
    cap: Ints  # units
    refused: Bools
    life: Ints  # tests it buys at most
    age: Ints

    def replace(self, where: Bools, fresh: Live) -> None:
        for field in fields(self):
            getattr(self, field.name)[where] = getattr(fresh, field.name)


class FamilyTrainer:
    """One training run, a step at a time. `done` is how much of it is over; the caller moves it on by time, if it has a limit."""

    def __init__(
        self, problem: Problem, validation: Problem, order: Ints, config: FamilyConfig, seed: int = 0,
        encoder: Encoder | None = None,
    ) -> None:  # fmt: skip
        self.problem, self.validation = problem.trainable(), validation.labelled()
        self.config, self.seed, self.schema, self.encoder = config, seed, problem.schema, encoder
        self.scale = Scale.of(problem)
        self.order, self.rank = order, np.argsort(order)
        self.rng = np.random.default_rng(seed)
        self.step, self.done = 0, 0.0
        self.began: int | None = None  # the step at which tests began to be chosen
        assert problem.y is not None
        stakes = problem.loss.max(1) / problem.stake
        shares = np.bincount(problem.y, stakes[problem.y], len(stakes)) / stakes[problem.y].sum()
        without = float(problem.loss[problem.y].mean(0).min()) / problem.stake
        # losses and information have different units; both are measured against knowing nothing
        self.exchange = float(-(shares * np.log(np.maximum(shares, 1e-12))).sum() / max(without, 1e-3))
        self.loss = torch.from_numpy(problem.loss / problem.stake).float()
        self.weight = torch.from_numpy(stakes).float()
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            bins = Bins(problem, config.bins) if config.bins and encoder is None else None
            self.network = FamilyNetwork(problem.schema, config.width, bins, encoder).eval()
            self.torch_rng = torch.get_rng_state()
        self.mean = copy.deepcopy(self.network).requires_grad_(False)
        self.optimiser = self._adam([("classify", config.learning_rate), ("classes", config.learning_rate)])
        self.live = [self._fresh(config.cases, p) for p in (problem, validation)]

    # ------------------------------------------------------------------ the loop

    def advance(self) -> None:
        """One gradient step."""
        self.done = max(self.done, self.step / self.config.max_steps)
        if self.began is None and self.done >= self.config.prefix_share:
            self._begin_choosing()
        with own_random_numbers(self):
            self._descend(self._prefix_loss() if self.began is None else self._choosing_loss())
        self.step += 1

    @property
    def finished(self) -> bool:
        return self.done >= 1 or self.step >= self.config.max_steps

    def _begin_choosing(self) -> None:
        """The averaged classifier stays; the policy follows the order at first."""
        self.network.load_state_dict(self.mean.state_dict())
        self.network.follow(self.rank)
        self.mean.load_state_dict(self.network.state_dict())
        later, choose = self.config.later_rate, self.config.choose_rate
        rates = {"classify": later, "classes": later, "choose": choose, "tests": choose, "judge": 1e-3, "temper": 1e-3}
        self.optimiser = self._adam(list(rates.items()))
        self.began = self.step

    def _descend(self, loss: Tensor) -> None:
        """The rate rises for a moment, since a fresh optimiser takes large steps, stays, and falls over the second half."""
        done = self._of_phase()
        for group in self.optimiser.param_groups:
            group["lr"] = group["peak"] * min(1.0, 50 * done + 0.01, 2 * (1 - done) + 0.01)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.began is not None:
            small = [p for name in ("choose", "tests", "judge", "temper") for p in getattr(self.network, name).parameters()]
            nn.utils.clip_grad_norm_(small, 1.0)
        self.optimiser.step()
        # a mean over few steps while there are few
        age = self.step if self.began is None else self.step - self.began + 40
        soft_update(self.mean, self.network, max(1 - self.config.averaging, 5 / (age + 10)))

    def _of_phase(self) -> float:
        """How much of the present phase is over."""
        share = self.config.prefix_share
        return self.done / max(share, 1e-9) if self.began is None else (self.done - share) / (1 - share)

    def _prefix_loss(self) -> Tensor:
        """Cross-entropy on prefixes of the order."""
        row = self.rng.integers(len(self.problem), size=self.config.batch)
        mask = torch.from_numpy(self._prefixes(row)).float()
        self.network.train()
        logits, _ = self.network.logits(self.network.inputs(torch.from_numpy(self.problem.X[row]), mask))
        self.network.eval()
        return functional.cross_entropy(logits, self._labels(self.problem, row))

    def _prefixes(self, row: Ints) -> Bools:
        """B, F: prefixes with some tests flipped, and now and then any set at all, for cases that come another way."""
        n, F, rng = len(row), self.schema.n_tests, self.rng
        mask: Bools = self.rank < np.round(F * rng.random((n, 1)) ** self.config.prefix_power)
        mask = mask ^ (rng.random((n, F), dtype=np.float32) < 0.15 * rng.random((n, 1), dtype=np.float32) ** 2)
        any_set = np.flatnonzero(rng.random(n) < 0.1)
        mask[any_set] = rng.random((len(any_set), F)) < rng.random((len(any_set), 1)) ** 2
        if self.problem.available is not None:
            mask &= self.problem.available[row]
            # a set without some test must not be known only from rows that lack it
            thin = np.flatnonzero(rng.random(n) < 0.3)
            mask[thin] &= rng.random((len(thin), F)) < rng.random((len(thin), 1))
        if self.problem.known is not None:
            mask |= self.problem.known[row]
        return mask

    # ------------------------------------------------------------------ cases in progress

    def _fresh(self, n: int, problem: Problem) -> Live:
        """New cases, each with a price; half of them with a hard budget."""
        rng, prices, F = self.rng, self.schema.prices, self.schema.n_tests
        row = rng.integers(len(problem), size=n)
        lam = self.scale.low * (self.scale.high / self.scale.low) ** rng.random(n)
        mask = np.zeros((n, F), bool)
        knows, deep = (np.flatnonzero(rng.random(n) < share) for share in (KNOWS, DEEP))
        mask[knows] = rng.random((len(knows), F)) < 0.5 * rng.random((len(knows), 1))
        mask[deep] |= self.rank < np.round(F * rng.random((len(deep), 1)) ** 2)
        if problem.available is not None:
            mask &= problem.available[row]
        if problem.known is not None:
            mask |= problem.known[row]
        refused = np.zeros((n, F), bool)
        refuses = np.flatnonzero(rng.random(n) < REFUSES)
        refused[refuses] = rng.random((len(refuses), F)) < 0.6 * rng.random((len(refuses), 1))
        least = max(1.0, prices.total * self.scale.cheapest / self.scale.total)
        cap = np.exp(rng.uniform(math.log(least), math.log(max(prices.total, least)), n)).round().astype(np.int64)
        cap = np.where(rng.random(n) < 0.5, FREE * prices.total, cap) + prices.cost(mask)
        life = np.ceil(min(self.config.longest, F) * rng.random(n) ** 2).astype(np.int64)
        return Live(row, mask, lam, cap, refused, life, np.zeros(n, np.int64))

    def _choosing_loss(self) -> Tensor:
        """Prefixes and training rows in every step, held-out rows in every second one: they learn less and sooner."""
        loss = self._prefix_loss() + self._live_loss(self.live[0], self.problem, learn=True)
        return loss + self._live_loss(self.live[1], self.validation, learn=False) if self.step % 2 else loss

    def _live_loss(self, live: Live, problem: Problem, learn: bool) -> Tensor:
        """One step of every case. Training rows teach which test is next; the others how much to believe and what to expect."""
        seen = self._look(live, problem)
        logits, hidden = self.network.logits(seen.inputs)
        log_belief = self.network.belief(logits.detach(), seen.mask)
        decide = log_belief.exp() @ self.loss
        scores = self.network.scores(seen.inputs, seen.conditions)
        if learn:
            loss = functional.cross_entropy(logits, seen.labels)
            noise = -torch.log(-torch.log(torch.rand_like(scores).clamp(1e-9, 1 - 1e-6)))
            noisy = (scores + noise).masked_fill(~seen.legal, NEVER)
            if seen.open.any():
                loss = loss + self._soft_choice(live, seen, noisy)
            picked = noisy.detach().argmax(1)
        else:
            loss = functional.nll_loss(log_belief, seen.labels)
            picked = scores.detach().masked_fill(~seen.legal, NEVER).argmax(1)
            loss = loss + self._judging_loss(live, problem, seen, log_belief.detach(), hidden.detach(), decide.detach(), picked)
        self._move(live, problem, seen, picked.numpy(), log_belief.detach(), hidden.detach(), decide.detach().min(1).values)
        return loss

    def _look(self, live: Live, problem: Problem) -> Seen:
        prices, first = self.schema.prices, self.schema.first_test
        cases = Cases(problem, live.row, live.mask, live.cap)
        known = None if problem.known is None else problem.known[live.row]
        money = prices.money(prices.marginal(prices.paid(live.mask, known)))
        left = prices.money(live.cap - prices.cost(live.mask, known))
        legal = cases.legal()[:, first:] & ~live.refused
        mask, values = torch.from_numpy(live.mask).float(), torch.from_numpy(problem.X[live.row])
        return Seen(
            cases, values, mask, self.network.inputs(values, mask), self._conditions(live.lam, left),
            self._labels(problem, live.row), torch.from_numpy(legal), torch.from_numpy(legal.any(1)), money, left,
            torch.from_numpy(money * live.lam[:, None] / self.scale.stake).float(),
        )  # fmt: skip

    def _conditions(self, lam: Doubles, left: Doubles) -> Tensor:
        return torch.from_numpy(self.scale.conditions(lam, left))

    def _soft_choice(self, live: Live, seen: Seen, noisy: Tensor) -> Tensor:
        """What is not yet known after the next test, its price and, with some weight, what is expected from there on."""
        done = self._of_phase()
        share = functional.softmax(noisy / COLD ** min(1.0, done / 0.8), 1)
        mask = torch.maximum(seen.mask, share)
        logits, _ = self.network.logits(self.network.inputs(seen.values, mask))
        surprise = self.weight[seen.labels] * functional.cross_entropy(logits, seen.labels, reduction="none")
        loss = surprise + self.exchange * (share * seen.price).sum(1)
        if self.config.foresight and done > 0.15 and not self.step % 2:  # not before there is something to foresee
            logits, hidden = self.mean.logits(self.mean.inputs(seen.values, mask))
            log_belief = self.mean.belief(logits, mask)
            stop = (log_belief.exp() @ self.loss).min(1).values
            left = seen.left - (share.detach().numpy() * seen.money).sum(1)
            ends, price, _ = self.mean.judged(log_belief, hidden, self._conditions(live.lam, left), stop)
            loss = loss + self.config.foresight * self.exchange * torch.minimum(stop, ends + price)
        return loss[seen.open].mean()

    def _judging_loss(
        self, live: Live, problem: Problem, seen: Seen, log_belief: Tensor, hidden: Tensor, decide: Tensor, picked: Tensor
    ) -> Tensor:
        """Errors of what was expected of going on, against what it looks like one test later."""
        stop = decide.min(1).values
        ends, price, ask = self.network.judged(log_belief, hidden, seen.conditions, stop)
        loss = torch.zeros(())
        if ask is not None:
            bill = self.schema.prices.money(seen.cases.cost_of(np.full(len(live.row), self.schema.n_classes)))
            assert problem.external is not None
            lost = self.loss[seen.labels, torch.from_numpy(problem.external[live.row])]
            priced = torch.from_numpy(bill * live.lam / self.scale.stake).float()
            loss = loss + functional.mse_loss(ask, (lost + priced).clamp(max=3))
        on = torch.nonzero(seen.open)[:, 0]
        if not len(on):
            return loss
        rows, test = on.numpy(), picked[on]
        mask = seen.mask[on].scatter(1, test[:, None], 1.0)
        left = seen.left[rows] - seen.money[rows, test.numpy()]
        with torch.no_grad():
            logits, their_hidden = self.mean.logits(self.mean.inputs(seen.values[on], mask))
            belief = self.mean.belief(logits, mask)
            now = (belief.exp() @ self.loss).min(1).values
            later, more, _ = self.mean.judged(belief, their_hidden, self._conditions(live.lam[rows], left), now)
            cases = Cases(problem, live.row[rows], mask.numpy() > 0, live.cap[rows])
            can = torch.from_numpy((cases.legal()[:, self.schema.first_test :] & ~live.refused[rows]).any(1))
            goes_on = can & (later + more + TIE < now)
            ends_at = torch.where(goes_on, later, now)
            paid = seen.price[on, test] + torch.where(goes_on, more, 0.0)
        return loss + 2 * (functional.mse_loss(ends[on], ends_at) + functional.mse_loss(price[on], paid.clamp(max=2)))

    @torch.no_grad()
    def _move(
        self, live: Live, problem: Problem, seen: Seen, picked: Ints, log_belief: Tensor, hidden: Tensor, stop: Tensor
    ) -> None:
        """Buys what was picked. Where the policy would stop, a case goes on for a while, so that it is known what follows."""
        can = seen.open.numpy()
        live.mask[np.flatnonzero(can), picked[can]] = True
        live.age += 1
        ends, price, _ = self.mean.judged(log_belief, hidden, seen.conditions, stop)
        would_stop = (ends + price + TIE >= stop).numpy() & (self.rng.random(len(can)) < 0.1)
        over = ~can | (live.age >= live.life) | would_stop
        if over.any():
            live.replace(over, self._fresh(int(over.sum()), problem))

    # ------------------------------------------------------------------ what was learned

    def weights(self) -> Weights:
        """Of the averaged networks."""
        return weights_of(self.mean)

    def family(self, weights: Weights) -> Family:
        """What can be used without this run."""
        trunks = None if self.encoder is None else own_trunks(self.schema, self.config.width, self.encoder, weights)
        return Family(weights, self.scale, self.rank, self.problem.loss, self.schema.owner, trunks)

    def values(self, weights: Weights, lam: float) -> FamilyValues:
        """A family's values at one price."""
        return self.family(weights).values(lam)

    def _labels(self, problem: Problem, row: Ints) -> Tensor:
        assert problem.y is not None
        return torch.from_numpy(problem.y[row])

    def _adam(self, rates: list[tuple[str, float]]) -> torch.optim.AdamW:
        groups = [{"params": list(getattr(self.network, name).parameters()), "peak": rate} for name, rate in rates]
        return torch.optim.AdamW(groups, lr=1e-3, weight_decay=self.config.weight_decay, fused=True)

    # ------------------------------------------------------------------ checkpoints

    def state(self) -> State:
        """Everything the run consists of: arrays, and facts that fit into JSON."""
        arrays: Arrays = {"torch_rng": self.torch_rng.numpy(), "order": self.order}
        for i, live in enumerate(self.live):
            arrays |= {f"live/{i}/{field.name}": getattr(live, field.name) for field in fields(live)}
        arrays |= {f"network/{k}": v for k, v in weights_of(self.network).items()}
        arrays |= {f"mean/{k}": v for k, v in weights_of(self.mean).items()}
        arrays |= {f"optimiser/{k}": v for k, v in moments_of(self.optimiser).items()}
        facts = {"run": self._identity(), "step": self.step, "done": self.done, "began": self.began,
                 "rng": self.rng.bit_generator.state}  # fmt: skip
        return {k: np.array(v) for k, v in arrays.items()}, facts

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        """Takes over what `state` handed out; the run goes on as if it had never stopped."""
        same_run(facts.get("run"), self._identity())
        if facts["began"] is not None:
            self._begin_choosing()
        self.step, self.done, self.began = facts["step"], facts["done"], facts["began"]
        self.rng.bit_generator.state = facts["rng"]
        self.torch_rng = torch.from_numpy(arrays["torch_rng"].copy())
        for i in range(2):
            self.live[i] = Live(**{k: v.copy() for k, v in part(arrays, f"live/{i}/").items()})
        load_weights(self.network, part(arrays, "network/"))
        load_weights(self.mean, part(arrays, "mean/"))
        load_moments(self.optimiser, part(arrays, "optimiser/"))

    def _identity(self) -> dict[str, Any]:
        """What must agree for a checkpoint to be this run's."""
        return {
            **{f"setting {name!r}": value for name, value in self.config.to_dict().items()},
            "seed": self.seed,
            "training data": self.problem.fingerprint,
            "validation data": self.validation.fingerprint,
            "order": self.order.tolist(),
            "network": hashlib.sha256(str(self.network).encode()).hexdigest()[:16],
        }


@dataclass(frozen=True, eq=False)
class Seen:
    """What there is to know about B cases in progress."""

    cases: Cases
    values: Tensor
    mask: Tensor
    inputs: Tensor
    conditions: Tensor
    labels: Tensor
    legal: Tensor  # B, F
    open: Tensor  # B: something can be bought
    money: NDArray[Any]  # B, F
    left: Doubles  # B
    price: Tensor  # B, F: in stakes, at the case's lambda
