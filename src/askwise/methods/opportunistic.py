"""Two networks that share layers: P says the class, Q says which test changes P's mind most for its cost.

P is trained with dropout, and is believed only as the mean over many dropouts: certainty that rests on few of its units averages
out. The reward of buying a test is how far this mean moves, divided by the test's cost; Q learns the discounted sum of rewards
as a DQN does. The test with the largest Q is bought while the budget allows one, and then the class is said. So every budget
makes a policy, and all share one training. After Kachuee, Goldstein, Karkkainen, Darabi and Sarrafzadeh (2019).

Gaps of training rows are filled by lot with values of the same class, and the networks are trained as if the rows were complete:
what a row lacks says nothing. How much a case has spent is read off the tests that it holds. A policy does not see which of them
were known before, unless all cases know them; so what only some know counts as paid when a policy's own budget is kept, never
more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from askwise.components.boosting import loss_scales, unweighted
from askwise.components.networks import inputs, soft_update
from askwise.components.pace import BestNetworks, Pace
from askwise.components.prefixes import decide
from askwise.components.static_order import free_tests
from askwise.components.torch_state import own_torch
from askwise.core.arrays import Bools, Doubles, Floats, Ints
from askwise.core.budget import Budget
from askwise.core.cases import Cases, State
from askwise.core.costs import CostFunction
from askwise.core.missingness import filled, lacking, lost
from askwise.core.policy import Choice, Policy
from askwise.core.problem import Problem
from askwise.core.sampling import random_sets, some_rows
from askwise.frontier.choice import best_for
from askwise.paper.config import TrainConfig
from askwise.paper.targets import greedy_action


@dataclass(frozen=True)
class OpportunisticSettings:
    """The settings of opportunistic. Only the discount was tuned."""

    discount: float = 0.5  # area on digits' validation rows after 4,000 steps: 0.928, and 0.905 at 0.9
    dropout: float = 0.3  # of P's hidden layers
    rate: float = 1e-3  # the learning rate of Adam
    batch: int = 128  # rows of a step, and purchases from memory
    cases: int = 64  # in progress
    memory: int = 50_000  # purchases that are remembered
    dropouts: int = 8  # over which P is averaged while it learns
    final_dropouts: int = 32  # over which P is averaged afterwards
    alone: float = 0.3  # share of the training in which P learns alone, from random sets of tests
    follows: float = 0.01  # how fast the averaged networks follow
    exploration: float = 0.1  # share of random purchases in the second half
    snapshots: int = 8  # the best of them on validation rows is kept
    measured_purchases: int = 64  # by which a snapshot is measured
    budgets: int = 24  # points of the frontier at most


SETTINGS = OpportunisticSettings()


class PQNetwork(nn.Module):
    """P: two layers and the classes. Q: two layers of its own, each of which also sees that of P, and the tests."""

    def __init__(self, observed: int, width: int, classes: int, tests: int) -> None:
        super().__init__()
        self.p = nn.ModuleList([nn.Linear(observed, width), nn.Linear(width, width), nn.Linear(width, classes)])
        self.q = nn.ModuleList([nn.Linear(observed + width, width), nn.Linear(2 * width, width), nn.Linear(width, tests)])

    def logits(self, observed: Tensor, noise: Tensor) -> Tensor:
        """D, B, K under D dropouts, or B, K under one of each case's own. `noise`: D, 2, 1, width or 2, B, width."""
        first, second = noise.unbind(-3)
        hidden = functional.relu(self.p[0](observed)) * first  # the first product is the same for all dropouts
        hidden = functional.relu(self.p[1](hidden)) * second
        logits: Tensor = self.p[2](hidden)
        return logits

    def belief(self, observed: Tensor, noise: Tensor) -> Tensor:
        """B, K: class probabilities, the mean over D dropouts."""
        return self.logits(observed, noise).softmax(2).mean(0)

    def values(self, observed: Tensor) -> Tensor:
        """B, F: what each test is worth. Q uses what P sees, but does not change it."""
        with torch.no_grad():
            first = functional.relu(self.p[0](observed))
            second = functional.relu(self.p[1](first))
        hidden = functional.relu(self.q[0](torch.cat([observed, first], 1)))
        hidden = functional.relu(self.q[1](torch.cat([hidden, second], 1)))
        values: Tensor = self.q[2](hidden)
        return values


def reward(before: Tensor, after: Tensor, cost: Tensor) -> Tensor:
    """r = ‖p(s ∪ a) - p(s)‖₁ / c(a | s): how far a test moved the class probabilities, per cost; B."""
    return (after - before).abs().sum(1) / cost


def q_target(r: Tensor, q_next: Tensor, q_mean: Tensor, buyable: Tensor) -> Tensor:
    """q = r + γ Q̄(s', argmax_a Q(s', a)) over what can still be bought; r where that is nothing. Q̄: the averaged network; B."""
    ahead = q_mean.gather(1, greedy_action(q_next, buyable)[:, None])[:, 0]
    return r + SETTINGS.discount * torch.where(buyable.any(1), ahead, torch.zeros_like(ahead))


@dataclass(frozen=True, eq=False)
class Opportunistic(Policy):
    """Buys what is free, then the test with the largest value while it can be paid, then says the class."""

    network: PQNetwork
    noise: Tensor  # D, 2, 1, width: always the same dropouts, so that a case is treated alike in any company
    costs: CostFunction
    known: Bools  # F: what all cases know at the start
    first_test: int
    scales: Doubles  # K
    loss: Doubles  # K, K
    budget: int | None = None  # units; None: all that a case may spend

    @torch.inference_mode()
    def act(self, state: State) -> Choice:
        observed = inputs(state.values, state.mask)
        tests = self.choose(state, self.network.values(observed).numpy())
        says = tests < 0
        action = self.first_test + tests
        if says.any():
            action[says] = self.decide(observed[torch.from_numpy(says)])
        return Choice(action, np.ones(len(action), np.float32))

    def choose(self, state: State, values: Floats) -> Ints:
        """B: the test to buy, -1 where there is none."""
        cost = self.unit_costs(state)
        on_offer = state.legal[:, self.first_test :]
        if self.budget is not None:
            spent = self.costs.cost(state.mask, np.broadcast_to(self.known, state.mask.shape))
            on_offer = on_offer & (cost <= np.maximum(self.budget - spent, 0)[:, None])
        best = np.where(on_offer, np.where(cost == 0, np.inf, values), -np.inf).argmax(1)
        return np.where(on_offer.any(1), best, -1)

    def unit_costs(self, state: State) -> Ints:
        """B, F: what each test costs now, in units."""
        if state.test_cost is None:
            return self.costs.marginal(self.costs.paid(state.mask, np.broadcast_to(self.known, state.mask.shape)))
        unit = self.costs.smallest_unit
        units: Ints = np.rint(state.test_cost * (unit.denominator / unit.numerator)).astype(np.int64)
        return units

    @torch.inference_mode()
    def decide(self, observed: Tensor) -> Ints:
        """B: the class with the least expected loss."""
        return decide(self._believed(observed), self.loss)

    @torch.inference_mode()
    def belief(self, state: State) -> Doubles:
        """B, K: class probabilities."""
        return self._believed(inputs(state.values, state.mask))

    def _believed(self, observed: Tensor) -> Doubles:
        return unweighted(self.network.belief(observed, self.noise).numpy().astype(np.float64), self.scales)


class PQTrainer:
    """P and Q in training, on parallel cases. Rows are drawn by what is at stake in them, and a copy of the networks, averaged
    over the last steps, gives the DQN's targets and is what comes out."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self.lacking, problem = lacking(problem), filled(problem.trainable(), seed)
        self.problem = problem
        self.schema = schema = problem.schema
        self.rng, self.torch_rng = np.random.default_rng(seed), torch.Generator().manual_seed(seed)
        self.width = TrainConfig.for_size(len(problem), schema.n_tests).width
        with own_torch(seed):
            self.network, self.mean = (self._blank() for _ in range(2))
        self.mean.load_state_dict(self.network.state_dict())
        self.adam = torch.optim.Adam(self.network.parameters(), SETTINGS.rate, fused=True)
        alone = schema.costs.alone
        self.cheapest = int(min(alone[alone > 0], default=1))
        self.middle = float(alone[alone > 0].mean()) if (alone > 0).any() else 1.0  # rewards are for a cost of this size
        self.free = free_tests(problem)
        self.rows = np.zeros(SETTINGS.memory, np.int64)
        self.masks = np.zeros((SETTINGS.memory, -(-schema.n_tests // 8)), np.uint8)  # eight tests in a byte
        self.bought = np.zeros(SETTINGS.memory, np.int64)
        self.filled = 0
        self.live, self.allowance = self._start(SETTINGS.cases)

    def _blank(self) -> PQNetwork:
        schema = self.schema
        return PQNetwork(len(schema.columns) + schema.n_tests, self.width, schema.n_classes, schema.n_tests).eval()

    def _noise(self, *shape: int, generator: torch.Generator | None = None) -> Tensor:
        uniform = torch.rand(*shape, self.width, generator=generator or self.torch_rng)
        return (uniform >= SETTINGS.dropout) / (1 - SETTINGS.dropout)

    def _start(self, n: int) -> tuple[Cases, Ints]:
        """New cases, which hold what is known or free, and what each may spend. Q does not see that; it is such that early
        purchases are learned most often."""
        cases = Cases.start(self.problem, self.problem.draw(n, self.rng), None)
        cases.mask = cases.mask | (self.free & ~lost(self.lacking, n, self.rng))
        total = max(self.schema.costs.total, self.cheapest)
        spend = np.exp(self.rng.uniform(np.log(self.cheapest), np.log(total), n)).round().astype(np.int64)
        return cases, spend + self.schema.costs.cost(cases.mask)

    def step(self, done: float) -> None:
        """One gradient step of P and, later than `ALONE`, of Q. `done`: share of the training that is over."""
        self.adam.param_groups[0]["lr"] = SETTINGS.rate * min(1.0, max(2 * (1 - done), 0.02))
        row = self.problem.draw(SETTINGS.batch, self.rng)
        mask = random_sets(SETTINGS.batch, self.schema.n_tests, self.rng)
        mask |= Cases.start(self.problem, row, None).mask | (self.free & ~lost(self.lacking, SETTINGS.batch, self.rng))
        cases, loss = Cases(self.problem, row, mask, None), torch.zeros(())
        if done >= SETTINGS.alone:
            self._buy(max(1 - 2 * (done - SETTINGS.alone) / (1 - SETTINGS.alone), SETTINGS.exploration))
        if self.filled:  # not while P learns alone, and never where all is known or free
            before, after, test = self._remembered()
            loss = self._q_loss(before, after, test)
            cases = Cases(self.problem, np.concatenate([row, after.row]), np.concatenate([mask, after.mask]), None)
        logits = self.network.logits(_observed(cases), self._noise(2, len(cases.row)))
        loss = loss + functional.cross_entropy(logits, torch.from_numpy(self.problem.labels[cases.row]))
        self.adam.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.adam.step()
        soft_update(self.mean, self.network, SETTINGS.follows)

    def _buy(self, epsilon: float) -> None:
        """One purchase of each live case, at random with probability ε. Those that have spent their budget are replaced."""
        live, n = self.live, len(self.live.row)
        with torch.inference_mode():
            values = self.network.values(_observed(live)).numpy()
        random = self.rng.random(n) < epsilon
        values[random] = self.rng.random((int(random.sum()), values.shape[1]))
        buyable = ~live.mask
        who = np.flatnonzero(buyable.any(1))
        test = np.where(buyable, values, -np.inf).argmax(1)
        place = (self.filled + np.arange(len(who))) % SETTINGS.memory
        self.rows[place], self.masks[place], self.bought[place] = live.row[who], np.packbits(live.mask[who], 1), test[who]
        self.filled += len(who)
        live.step(np.where(buyable.any(1), self.schema.first_test + test, 0))  # action 0, a class, buys nothing
        over = live.mask.all(1) | (self.schema.costs.cost(live.mask) >= self.allowance)
        if over.any():
            fresh, self.allowance[over] = self._start(int(over.sum()))
            live.row[over], live.mask[over] = fresh.row, fresh.mask

    def _remembered(self) -> tuple[Cases, Cases, Ints]:
        """Purchases from memory: the state before, the state after, and the test."""
        pick = self.rng.integers(min(self.filled, SETTINGS.memory), size=SETTINGS.batch)
        row, test = self.rows[pick], self.bought[pick]
        mask = np.unpackbits(self.masks[pick], 1, self.schema.n_tests).astype(bool)
        then = mask.copy()
        then[np.arange(SETTINGS.batch), test] = True
        return Cases(self.problem, row, mask, None), Cases(self.problem, row, then, None), test

    def _q_loss(self, before: Cases, after: Cases, test: Ints) -> Tensor:
        """Rewards are those of today's P, under the same dropouts before and after."""
        now, then = _observed(before), _observed(after)
        units = np.maximum(before.cost_of(self.schema.first_test + test), self.cheapest)  # what is free is bought anyhow
        with torch.no_grad():
            noise = self._noise(SETTINGS.dropouts, 2, 1)
            belief = self.mean.belief(now, noise), self.mean.belief(then, noise)
            r = reward(*belief, torch.from_numpy(units / self.middle).float())
            target = q_target(r, self.network.values(then), self.mean.values(then), torch.from_numpy(~after.mask))
        q = self.network.values(now).gather(1, torch.from_numpy(test)[:, None])[:, 0]
        return functional.smooth_l1_loss(q, target)

    def policy(self, dropouts: int) -> Opportunistic:
        """That of the averaged networks as they are now, without a budget of its own."""
        network, problem = self._blank(), self.problem
        network.load_state_dict(self.mean.state_dict())
        known = np.zeros(self.schema.n_tests, bool) if problem.known is None else np.asarray(problem.known.all(0))
        noise = self._noise(dropouts, 2, 1, generator=torch.Generator().manual_seed(0))
        return Opportunistic(
            network, noise, self.schema.costs, known, self.schema.first_test, loss_scales(problem), problem.free_loss
        )


def _observed(cases: Cases) -> Tensor:
    return inputs(cases.values(), cases.mask)


def _mean_loss(policy: Opportunistic, validation: Problem) -> float:
    """The loss of deciding, averaged over the money that is spent in the first purchases: the area above the frontier."""
    schema = validation.schema
    cases = Cases.start(validation, some_rows(len(validation), min(max(400_000 // schema.n_tests, 200), 2_000), 0), None)
    area, spent = 0.0, 0.0
    for _ in range(min(schema.n_tests, SETTINGS.measured_purchases)):
        state = cases.observe()
        with torch.inference_mode():
            test = policy.choose(state, policy.network.values(inputs(state.values, state.mask)).numpy())
        buys = np.flatnonzero(test >= 0)
        cases, test = cases.keep(buys), test[buys]
        if not len(buys):
            break
        paid = cases.cost_of(schema.first_test + test)
        lost = cases.loss_of(policy.decide(inputs(cases.values(), cases.mask)))
        area, spent = area + float(lost @ paid), spent + float(paid.sum())
        cases.step(schema.first_test + test)
    return area / spent if spent else 0.0


def _train(problem: Problem, validation: Problem, seconds: float, seed: int, steps: int | None) -> Opportunistic:
    """For so many steps, or so many seconds; the best of its snapshots on validation rows."""
    trainer, held_out = PQTrainer(problem, seed), validation.with_loss(problem.loss)
    best, measured = BestNetworks((trainer.mean,)), 0
    for done in Pace(seconds, steps).phase(1.0):
        share = int(SETTINGS.snapshots * (done - SETTINGS.alone) / (1 - SETTINGS.alone))
        if share > measured:
            measured = share
            best.see(_mean_loss(trainer.policy(SETTINGS.dropouts), held_out))
        trainer.step(done)
    best.see(_mean_loss(trainer.policy(SETTINGS.dropouts), held_out))
    best.restore()
    return trainer.policy(SETTINGS.final_dropouts)


def points(
    problem: Problem, validation: Problem, *, seconds: float, seed: int = 0, threads: int = 1, steps: int | None = None
) -> list[Policy]:
    """One training of about `seconds`, or of `steps`; then a policy for each of a range of budgets, from nothing to all."""
    with own_torch(seed, threads):
        trained = _train(problem, validation, seconds, seed, steps)
    total, alone = problem.schema.costs.total, problem.schema.costs.alone
    grid = np.geomspace(min(alone[alone > 0], default=1), max(total, 1), SETTINGS.budgets)
    budgets = [0, *np.unique(grid.astype(np.int64))[:-1].tolist(), None]
    return [replace(trained, budget=budget) for budget in budgets]


def fit(
    problem: Problem, validation: Problem, budget: Budget, *, seconds: float = 60, seed: int = 0, steps: int | None = None
) -> Policy:
    """The stopping budget that is best on validation rows, or a mixture of two. Under a hard budget all of it may be spent."""
    return best_for(points(problem, validation, seconds=seconds, seed=seed, steps=steps), validation, budget, seed)
