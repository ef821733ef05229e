"""Training of a policy family: one model for every price and every budget.

First a classifier learns on prefixes of a fixed order of the tests. Then a second network learns which test comes next. The
gradient reaches it through the classifier: a test is chosen softly (Gumbel-softmax), so that all tests are compared at once. It
starts as the fixed order, sees one test ahead, and proposes. A third network learns, on rows the classifier has not seen, what to
expect in the end of each proposal. It looks several of them up and learns each step from the next one, so that it sees what pairs
of tests, shared prices and the limits of a budget are worth, and when to stop. All cases in progress have a price of their own,
many have a hard budget, some know things already or refuse tests.
"""

from __future__ import annotations

import copy
import math
from dataclasses import fields
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from askwise.components.encoders import Encoder
from askwise.components.networks import Weights, soft_update, weights_of
from askwise.components.torch_state import own_random_numbers, own_torch
from askwise.core.arrays import Arrays, Bools, Doubles, Ints
from askwise.core.cases import Cases
from askwise.core.problem import Problem
from askwise.errors import StateError, quoted
from askwise.family.conditions import Scale, affordable, list_prices
from askwise.family.config import DESIGN, FamilyConfig
from askwise.family.forward import candidates_and_gaps
from askwise.family.inference import Family, FamilyValues
from askwise.family.network import FamilyNetwork, Seen, View, encoding, own_trunks
from askwise.family.overfitting import OverfitMonitor
from askwise.family.states import Live, Starts
from askwise.training.checkpoint import State, identity, load_shared, part, state_of
from askwise.training.damage import same_run, same_shapes, same_sorts

LOOKS = 4  # tests looked at in each held-out case, where there are more than are compared
PREFIXES, CHOOSING, JUDGING = range(3)  # the phases of a run
CHOOSES = 0.8  # share of the time after the prefixes in which tests are chosen; in the rest they are only judged
CHECK = 200  # so often, in steps, it is checked whether the classifier overfits
COLD = 0.1  # the last temperature of the soft choice
NEVER = -1e9


class FamilyTrainer:
    """One training run, a step at a time. `done` is how much of it is over; the caller moves it on by time, if it has a limit."""

    def __init__(
        self,
        problem: Problem,
        validation: Problem,
        order: Ints,
        config: FamilyConfig,
        seed: int = 0,
        encoder: Encoder | None = None,
        lacking: Doubles | None = None,
    ) -> None:
        self.problem, self.validation = problem.trainable(), validation.labelled()
        self.config, self.seed, self.schema, self.encoder = config, seed, problem.schema, encoder
        self.scale = Scale.of(problem)
        self.order, self.rank = order, np.argsort(order)
        self.alone = list_prices(problem.schema)
        self.rng = np.random.default_rng(seed)
        self.step, self.done = 0, 0.0
        self.phase = PREFIXES
        self.since = 0, 0.0  # the step, and how much was done, when this phase began
        self.prefix_share = config.prefix_share  # the caller may make it longer
        self.frozen = False  # the classifier began to overfit, and learns no more
        assert problem.y is not None
        stakes = problem.loss.max(1) / problem.loss_scale
        often = None if problem.weight is None else problem.weight / problem.weight.mean()
        at_stake = stakes[problem.y] if often is None else stakes[problem.y] * often
        shares = np.bincount(problem.y, at_stake, len(stakes)) / at_stake.sum()
        without = float(problem.mean(problem.loss[problem.y]).min()) / problem.loss_scale
        # losses and information have different units; both are measured against knowing nothing
        self.exchange = float(-(shares * np.log(np.maximum(shares, 1e-12))).sum() / max(without, 1e-3))
        self.loss = torch.from_numpy(problem.loss / problem.loss_scale).float()
        self.weight = torch.from_numpy(stakes).float()
        with own_torch(seed):
            encode = encoding(problem, config) if encoder is None else None
            self.network = FamilyNetwork(problem.schema, config.width, encode, encoder).eval()
            self.torch_rng = torch.get_rng_state()
        shares = np.bincount(problem.y, often, minlength=problem.schema.n_classes) + 0.5
        self.network.prior.copy_(torch.from_numpy(np.log(shares / shares.sum())))
        with torch.no_grad():  # however short the run, it knows which classes are frequent
            self.network.class_logits.bias.copy_(self.network.prior)
        self.mean = copy.deepcopy(self.network).requires_grad_(False)
        self.optimiser = self._adam([("classifier", config.learning_rate), ("class_logits", config.learning_rate)])
        # each held-out case looks at several tests, so that half as many are enough
        self.starts = Starts(self.schema, self.scale, self.rank, config, np.zeros(len(order)) if lacking is None else lacking)
        self.watch = OverfitMonitor(self.validation, self.starts, seed)
        sizes = (problem, config.parallel_cases), (validation, -(-config.parallel_cases // 2))
        self.live = [self.starts.fresh(p, n, self.rng) for p, n in sizes]

    # ------------------------------------------------------------------ the loop

    def advance(self) -> None:
        """One gradient step."""
        self.done = max(self.done, self.step / self.config.max_steps)
        with own_random_numbers(self):
            worse = self.phase != JUDGING and not self.frozen and self.step % CHECK == 0 and self.watch.overfits(self.mean)
            # of few tests the sets that are chosen are others than prefixes, and slow learning on them still pays
            if worse and (self.phase == PREFIXES or self.schema.n_tests > DESIGN.few_tests):
                self._go_back(stay=self.schema.n_tests > DESIGN.few_tests)
            if self.phase == PREFIXES and (self.done >= self._end() or worse):
                self._begin(CHOOSING)
            if self.phase == CHOOSING and self.done >= self._end():
                self._begin(JUDGING)
            self._descend((self._prefix_loss, self._choosing_loss, self._judging_loss)[self.phase]())
        self.step += 1

    @property
    def finished(self) -> bool:
        return self.done >= 1 or self.step >= self.config.max_steps

    @property
    def adaptive(self) -> bool:
        """Whether it has begun to choose tests; before, it knows only prefixes of the order."""
        return self.phase != PREFIXES

    def _end(self) -> float:
        """How much is done when this phase is over."""
        share = self.prefix_share
        return (share, share + (1 - share) * CHOOSES, 1.0)[self.phase]

    def _begin(self, phase: int) -> None:
        """The averaged networks stay. The policy follows the order at first; in the end classes and proposals stand still and the
        judge sees them as they will be used."""
        self.network.load_state_dict(self.mean.state_dict())
        later, choose, judge = self.config.finetune_rate, self.config.selector_rate, self.config.value_rate
        rates = {"value_head": judge, "temperature": 1e-3}
        if phase == CHOOSING:
            self.network.follow(self.rank)
            self.mean.load_state_dict(self.network.state_dict())
            later = 0.0 if self.frozen else later
            rates = {"classifier": later, "class_logits": later, "selector": choose, "test_logits": choose, **rates}
        self.network.zero_grad()  # of parts that no longer learn too: gradients are clipped together
        if phase == JUDGING:  # many cases a step: what is learned last should be least noisy
            self.live[1] = self.starts.fresh(self.validation, 2 * self.config.parallel_cases, self.rng)
        self.optimiser = self._adam(list(rates.items()))
        self.phase, self.since = phase, (self.step, self.done)

    def _go_back(self, stay: bool) -> None:
        """The classifier goes back to its best, and maybe stays there."""
        self.frozen = stay
        for network in (self.network, self.mean):
            self.watch.restore(network)
        for group in self.optimiser.param_groups[:2] if stay else ():
            group["peak"] = 0.0

    def _descend(self, loss: Tensor) -> None:
        """The rate rises for a moment, since a fresh optimiser takes large steps, stays, and falls over the second half."""
        done = self._of_phase()
        for group in self.optimiser.param_groups:
            group["lr"] = group["peak"] * min(1.0, 50 * done + 0.01, 2 * (1 - done) + 0.01)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.phase != PREFIXES:
            small = [
                p
                for name in ("selector", "test_logits", "value_head", "temperature")
                for p in getattr(self.network, name).parameters()
            ]
            nn.utils.clip_grad_norm_(small, 1.0)
        self.optimiser.step()
        # a mean over few steps while there are few
        age = self.step - self.since[0] + 40 * self.phase
        soft_update(self.mean, self.network, max(1 - self.config.averaging, 5 / (age + 10)))

    def _of_phase(self) -> float:
        """How much of the present phase is over."""
        return (self.done - self.since[1]) / max(self._end() - self.since[1], 1e-9)

    def _prefix_loss(self) -> Tensor:
        """Cross-entropy on prefixes of the order."""
        size = self.config.prefix_batch if self.phase == PREFIXES else -(-self.config.prefix_batch // 2)
        row = self.problem.draw(size, self.rng, by_loss_scale=False)
        mask = torch.from_numpy(self.starts.prefixes(self.problem, row, self.rng)).float()
        inputs = self.network.inputs(torch.from_numpy(self.problem.X[row]), mask)
        self.network.classifier.train()  # an encoder of the user's own may do otherwise while it learns
        logits, _ = self.network.logits(inputs)
        self.network.classifier.eval()
        return functional.cross_entropy(logits, self._labels(self.problem, row))

    # ------------------------------------------------------------------ cases in progress

    def _choosing_loss(self) -> Tensor:
        """Prefixes, so that what is known of them stays, and cases in progress; in every second step those of held-out rows too,
        which have less to learn."""
        loss = self._learning_loss() if self.frozen else self._prefix_loss() + self._learning_loss()
        return loss + self._judging_loss() if self.step % 2 else loss

    def _learning_loss(self) -> Tensor:
        """Training rows teach the classes and which test is next; half of them go on as proposed, half as judged."""
        live, problem = self.live[0], self.problem
        seen = self._look(live, problem)
        scores, guide = self.network.scores(seen.inputs, seen.conditions)
        noise = -torch.log(-torch.log(torch.rand_like(scores).clamp(1e-9, 1 - 1e-6)))
        noisy = (scores + noise).masked_fill(~seen.legal, NEVER)
        loss = self._soft_choice(seen, noisy)
        with torch.no_grad():
            logits, hidden = self.network.logits(seen.inputs)
            view = self._view(self.network, seen, logits, hidden, scores, guide)
            as_judged = torch.from_numpy(self.rng.random(len(live.row)) < 0.5)
            picked = torch.where(as_judged, view.pick, noisy.argmax(1)).numpy()
        self._move(live, problem, seen, picked, ~view.goes_on.numpy())
        return loss

    def _look(self, live: Live, problem: Problem) -> Seen:
        costs, first = self.schema.costs, self.schema.first_test
        cases = Cases(problem, live.row, live.mask, live.cap)
        left, money = costs.money(cases.left()), cases.test_cost()
        legal = costs.obtainable(cases.legal()[:, first:] & ~live.refused, live.mask)
        mask, values = torch.from_numpy(live.mask).float(), torch.from_numpy(problem.X[live.row])
        return Seen(
            cases,
            values,
            mask,
            self.network.inputs(values, mask),
            torch.from_numpy(self.scale.conditions(live.lam, left)),
            self._labels(problem, live.row),
            torch.from_numpy(legal),
            torch.from_numpy(legal.any(1)),
            torch.from_numpy(money * (live.lam[:, None] / self.scale.loss_scale)).float(),
            torch.from_numpy(self.scale.reach(live.lam, left)).float(),
            torch.from_numpy(affordable(self.alone, money, left)),
        )

    def _view(self, network: FamilyNetwork, seen: Seen, logits: Tensor, hidden: Tensor, scores: Tensor, guide: Tensor) -> View:
        """What the judge makes of it."""
        log_belief = network.belief(logits.detach(), seen.mask)
        decide = log_belief.detach().exp() @ self.loss
        stop = decide.min(1).values
        offers, late = (torch.from_numpy(made) for made in candidates_and_gaps(scores.detach().numpy(), seen.legal.numpy()))
        judged = network.judged(
            log_belief.detach(), hidden.detach(), guide.detach(), stop, late, seen.mask, seen.conditions, seen.rooms
        )
        pick = (judged.rest.detach() + seen.price).masked_fill(~offers, math.inf).argmin(1)
        now = seen.price.gather(1, pick[:, None])[:, 0]
        value = judged.rest.detach().gather(1, pick[:, None])[:, 0] + judged.luck
        on = (value + now).detach()
        return View(log_belief, stop, judged, offers, pick, now, value, on, seen.open & (on + DESIGN.tie_margin < stop))

    def _soft_choice(self, seen: Seen, noisy: Tensor) -> Tensor:
        """What is not yet known after the next test, and its price."""
        share = functional.softmax(noisy / COLD ** self._of_phase(), 1) * seen.open[:, None]
        # what is at stake counts for the choice; the classifier must learn how things are
        felt = share.detach() + self.weight[seen.labels, None] * (share - share.detach())
        logits, _ = self.network.logits(self.network.inputs(seen.values, torch.maximum(seen.mask, felt)))
        return functional.cross_entropy(logits, seen.labels) + self.exchange * (share * seen.price).sum(1).mean()

    def _judging_loss(self) -> Tensor:
        """Held-out rows teach how much to believe, and what to expect of some tests: what it looks like when each is bought."""
        live, problem = self.live[1], self.validation
        seen = self._look(live, problem)
        with torch.no_grad():
            logits, hidden = self.network.logits(seen.inputs)
            scores, guide = self.network.scores(seen.inputs, seen.conditions)
        view = self._view(self.network, seen, logits, hidden, scores, guide)
        loss = functional.nll_loss(view.log_belief, seen.labels)
        if view.judged.ask is not None:
            assert problem.external is not None
            lost = self.loss[seen.labels, torch.from_numpy(problem.external[live.row])]
            loss = loss + functional.mse_loss(view.judged.ask, (lost + self._bill(seen.cases, live.lam)).clamp(max=3))
        case, test = self._some_tests(seen, view)
        if len(case):
            both, ends, paid = self._after(live, problem, case, test)
            loss = loss + functional.mse_loss(view.judged.rest[case, test], both)
            chosen = view.pick[case] == torch.from_numpy(test)
            case, both, ends, paid = case[chosen.numpy()], both[chosen], ends[chosen], paid[chosen]
            loss = loss + 2 * functional.mse_loss(view.value[case], both)
            loss = loss + functional.mse_loss(view.judged.ends[case], ends)
            loss = loss + functional.mse_loss(view.judged.more[case], (paid / seen.reach[case]).clamp(max=2))
        # now and then any test, so that it is known what follows
        at_random = self.rng.random(len(live.row)) < (0.15 if self.schema.n_tests > DESIGN.candidates else 0.3)
        any_test = np.where(seen.legal.numpy(), self.rng.random(seen.legal.shape), -1).argmax(1)
        picked = np.where(at_random, any_test, view.pick.numpy())
        self._move(live, problem, seen, picked, ~view.goes_on.numpy())
        return loss

    def _some_tests(self, seen: Seen, view: View) -> tuple[Ints, Ints]:
        """Pairs of a case and a test to look at: all where there are few; else the best, others that are proposed, and any."""
        legal = seen.legal.numpy()
        if legal.shape[1] <= DESIGN.candidates:
            case, test = np.nonzero(legal)
            return case, test
        rows = np.arange(len(legal))
        key = self.rng.random(legal.shape, dtype=np.float32)
        anyone = np.where(legal, key, -1).argmax(1)
        key += 2 * view.offers.numpy()
        key[rows, view.pick.numpy()] += 4
        test = np.argpartition(np.where(legal, key, -1), -LOOKS + 1, 1)[:, -LOOKS + 1 :]
        test = np.concatenate([test, anyone[:, None]], 1)
        case = np.repeat(rows, LOOKS).reshape(test.shape)
        possible = legal[case, test]
        return case[possible], test[possible]

    @torch.no_grad()
    def _after(self, live: Live, problem: Problem, case: Ints, test: Ints) -> tuple[Tensor, ...]:
        """What the averaged networks expect once a test is bought: loss at the end and further payments, and each of them. Their
        sum is learned by itself: it changes gently with price and budget, its parts jump where the policy does."""
        mask = live.mask[case]
        mask[np.arange(len(case)), test] = True
        then = Live(live.row[case], mask, live.lam[case], live.cap[case], live.refused[case], live.life[case], live.age[case])
        seen = self._look(then, problem)
        logits, hidden = self.mean.logits(seen.inputs)
        view = self._view(self.mean, seen, logits, hidden, *self.mean.scores(seen.inputs, seen.conditions))
        now: tuple[Tensor, ...] = view.stop, view.stop, torch.zeros_like(view.stop)  # decides
        if view.judged.ask is not None:
            bill, may = self._bill(seen.cases, then.lam), torch.from_numpy(seen.cases.legal()[:, self.schema.n_classes])
            asks = may & (view.judged.ask < view.stop)
            asked = view.judged.ask, view.judged.ask - bill, bill
            now = tuple(torch.where(asks, *both) for both in zip(asked, now, strict=True))
        on = view.goes_on & (view.on < now[0])
        later = view.on, view.judged.ends, view.now + seen.reach * view.judged.more
        return tuple(torch.where(on, *both) for both in zip(later, now, strict=True))

    def _bill(self, cases: Cases, lam: Doubles) -> Tensor:
        """B: in stakes, what asking the existing classifier would cost."""
        bill = self.schema.costs.money(cases.cost_of(np.full(len(lam), self.schema.n_classes)))
        return torch.from_numpy(bill * lam / self.scale.loss_scale).float()

    def _move(self, live: Live, problem: Problem, seen: Seen, picked: Ints, would_stop: Bools) -> None:
        """Buys what was picked. Where the policy would stop, a case goes on for a while, so that it is known what follows."""
        can = seen.open.numpy()
        live.mask[np.flatnonzero(can), picked[can]] = True
        live.age += 1
        over = ~can | (live.age >= live.life) | (would_stop & (self.rng.random(len(can)) < 0.1))
        if over.any():
            live.replace(over, self.starts.fresh(problem, int(over.sum()), self.rng))

    # ------------------------------------------------------------------ what was learned

    def weights(self) -> Weights:
        """Of the averaged networks."""
        return weights_of(self.mean)

    def family(self, weights: Weights) -> Family:
        """What can be used without this run."""
        trunks = None if self.encoder is None else own_trunks(self.schema, self.config.width, self.encoder, weights)
        return Family(weights, self.scale, self.rank, self.problem.loss, self.schema.owner, self.alone, trunks)

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

    @property
    def networks(self) -> dict[str, nn.Module]:
        return {"network": self.network, "mean": self.mean}

    def state(self) -> State:
        """Everything the training consists of: arrays, and facts that fit into JSON."""
        arrays: Arrays = {"order": self.order, **{f"least/{name}": value for name, value in self.watch.best.items()}}
        for i, live in enumerate(self.live):
            arrays |= {f"live/{i}/{field.name}": getattr(live, field.name) for field in fields(live)}
        facts = {
            "done": self.done,
            "phase": self.phase,
            "since": self.since,
            "prefix_share": self.prefix_share,
            "frozen": self.frozen,
            "least": self.watch.least if self.watch.best else None,
        }
        return state_of(self, identity(self, "family", order=self.order.tolist()), arrays, facts)

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        """Takes over what `state` handed out; the training goes on as if it had never stopped."""
        here = self.state()[1]
        same_run(facts.get("run"), here["run"])
        same_sorts(facts, here)
        self.prefix_share, self.frozen = facts["prefix_share"], facts["frozen"]
        if facts["phase"] not in (PREFIXES, CHOOSING, JUDGING):
            raise StateError(f"the checkpoint is damaged: there is no phase {quoted(facts['phase'])}")
        if facts["phase"] != PREFIXES:
            self._begin(facts["phase"])
        same_shapes(arrays, self.state()[0], max(len(self.problem), len(self.validation)))
        self.done, self.since = facts["done"], (facts["since"][0], facts["since"][1])
        self.watch.least, self.watch.best = math.inf if facts["least"] is None else facts["least"], part(arrays, "least/")
        for i in range(2):
            self.live[i] = Live(**{name: value.copy() for name, value in part(arrays, f"live/{i}/").items()})
        load_shared(self, arrays, facts)
