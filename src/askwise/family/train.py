"""Training of a policy family: one model for every tradeoff and every budget. README.md has the equations.

First the classifier learns on prefixes of a fixed order of the tests. Then the selector learns which test comes next, by
gradients through the classifier, and the value head, on rows the classifier has not seen, what to expect of each test that is
proposed. In the end only the value head learns.
"""

from __future__ import annotations

import copy
import math
from dataclasses import fields
from enum import IntEnum
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from askwise.components.encoders import Encoder
from askwise.components.networks import Weights, gumbel_perturbed, soft_update, weights_of
from askwise.components.torch_state import own_random_numbers, own_torch
from askwise.core.arrays import Arrays, Bools, Doubles, Ints
from askwise.core.problem import Problem
from askwise.errors import StateError, quoted
from askwise.family import losses
from askwise.family.conditions import Scale, costs_alone, decision_money, log_prior
from askwise.family.config import DESIGN, FamilyConfig
from askwise.family.encodings import encoding_for
from askwise.family.inference import Family
from askwise.family.losses import Outcome
from askwise.family.network import Assessment, FamilyNetwork, assess, own_trunks
from askwise.family.overfitting import OverfitMonitor
from askwise.family.states import LiveCases, Observation, StateSampler
from askwise.training.checkpoint import TrainingState, identity, load_shared, part, state_of
from askwise.training.checkpoint_checks import same_run, same_shapes, same_types


class Phase(IntEnum):
    """Of a run: what learns."""

    PREFIXES = 0
    SELECTION = 1
    VALUES = 2


class FamilyTrainer:
    """One training run, a step at a time. `done` is how much of it is over; the caller moves it on by time, if it has a limit.

    problem: rows that teach classifier and selector; held_out: rows that teach temperature and value head; order: the static
    order, F tests; encoder: the user's own, or None; lacking: see `StateSampler`.
    """

    def __init__(
        self,
        problem: Problem,
        held_out: Problem,
        order: Ints,
        config: FamilyConfig,
        seed: int = 0,
        encoder: Encoder | None = None,
        lacking: Doubles | None = None,
    ) -> None:
        self.problem, self.held_out = problem.trainable(), held_out.labelled()
        self.config, self.seed, self.schema, self.encoder = config, seed, problem.schema, encoder
        self.scale = Scale.of(problem)
        self.order, self.rank = order, np.argsort(order)
        self.alone = costs_alone(problem.schema)
        self.rng = np.random.default_rng(seed)
        self.step, self.done = 0, 0.0
        self.phase = Phase.PREFIXES
        self.since = 0, 0.0  # the step, and how much was done, when this phase began
        self.prefix_share = config.prefix_share  # the caller may make it longer
        self.frozen = False  # the classifier began to overfit, and learns no more
        self._weigh_classes(problem)
        with own_torch(seed):
            encoding = encoding_for(problem, config) if encoder is None else None
            self.network = FamilyNetwork(problem.schema, config.width, encoding, encoder).eval()
            self.torch_rng = torch.get_rng_state()
        self.network.prior.copy_(self.log_prior)
        with torch.no_grad():  # however short the run, it knows which classes are frequent
            self.network.class_logits.bias.copy_(self.network.prior)
        self.mean = copy.deepcopy(self.network).requires_grad_(False)
        self.optimiser = self._adam({"classifier": config.learning_rate, "class_logits": config.learning_rate})
        lacking = np.zeros(len(order)) if lacking is None else lacking
        self.sampler = StateSampler(self.schema, self.scale, self.rank, config, lacking)
        self.monitor = OverfitMonitor(self.held_out, self.sampler, config, seed)
        # each held-out case looks several tests up, so that half as many are enough
        sizes = (problem, config.parallel_cases), (held_out, -(-config.parallel_cases // 2))
        self.live = [self.sampler.fresh(p, n, self.rng) for p, n in sizes]

    def _weigh_classes(self, problem: Problem) -> None:
        """The scaled loss, what is at stake in each class, how frequent classes are, and how many nats a unit of loss is."""
        stakes, labels = problem.stakes / problem.mean_stake, problem.labels
        weight = None if problem.weight is None else problem.weight / problem.weight.mean()
        at_stake = stakes[labels] if weight is None else stakes[labels] * weight
        shares = np.bincount(labels, at_stake, len(stakes)) / at_stake.sum()
        self.nats_per_loss = losses.nats_per_loss(shares, problem.prior_loss / problem.loss_scale)
        self.loss = torch.from_numpy(problem.loss / problem.loss_scale).float()
        self.stake = torch.from_numpy(stakes).float()
        self.log_prior = torch.from_numpy(log_prior(problem))

    # ------------------------------------------------------------------ the loop

    def advance(self) -> None:
        """One gradient step."""
        self.done = max(self.done, self.step / self.config.max_steps)
        with own_random_numbers(self):
            self._enter_phase(overfits=self._overfits())
            self._descend((self._prefix_loss, self._selection_loss, self._value_loss)[self.phase]())
        self.step += 1

    @property
    def finished(self) -> bool:
        return self.done >= 1 or self.step >= self.config.max_steps

    @property
    def adaptive(self) -> bool:
        """Whether it has begun to select tests; before, it knows only prefixes of the order."""
        return self.phase != Phase.PREFIXES

    def _overfits(self) -> bool:
        """Whether the classifier does, as far as it is checked in this step."""
        due = self.phase != Phase.VALUES and not self.frozen and self.step % self.config.overfit_check_steps == 0
        return due and self.monitor.overfits(self.mean)

    def _enter_phase(self, overfits: bool) -> None:
        """Goes back to the best classifier, and on to the next phase, when it is time."""
        many = self.schema.n_tests > DESIGN.few_tests
        # of few tests the sets that are selected are others than prefixes, and slow learning on them still pays
        if overfits and (self.phase == Phase.PREFIXES or many):
            self._go_back(stay=many)
        if self.phase == Phase.PREFIXES and (self.done >= self._end() or overfits):
            self._begin(Phase.SELECTION)
        if self.phase == Phase.SELECTION and self.done >= self._end():
            self._begin(Phase.VALUES)

    def _end(self) -> float:
        """How much is done when this phase is over."""
        share = self.prefix_share
        return (share, share + (1 - share) * self.config.selector_share, 1.0)[self.phase]

    def _begin(self, phase: Phase) -> None:
        """The averaged networks stay. The policy follows the order at first; in the end classes and proposals stand still and the
        value head sees them as they will be used."""
        config = self.config
        self.network.load_state_dict(self.mean.state_dict())
        rates = {"value_head": config.value_rate, "temperature": config.temperature_rate}
        if phase == Phase.SELECTION:
            self.network.follow_order(self.rank)
            self.mean.load_state_dict(self.network.state_dict())
            classifier = 0.0 if self.frozen else config.finetune_rate
            selector = {"selector": config.selector_rate, "test_logits": config.selector_rate}
            rates = {"classifier": classifier, "class_logits": classifier, **selector, **rates}
        self.network.zero_grad()  # of parts that no longer learn too: gradients are clipped together
        if phase == Phase.VALUES:  # many cases a step: what is learned last should be least noisy
            self.live[1] = self.sampler.fresh(self.held_out, 2 * config.parallel_cases, self.rng)
        self.optimiser = self._adam(rates)
        self.phase, self.since = phase, (self.step, self.done)

    def _go_back(self, stay: bool) -> None:
        """The classifier goes back to its best, and maybe stays there."""
        self.frozen = stay
        for network in (self.network, self.mean):
            self.monitor.restore(network)
        for group in self.optimiser.param_groups[:2] if stay else ():
            group["peak"] = 0.0

    def _descend(self, loss: Tensor) -> None:
        """A step of the optimiser, and of the averaged networks."""
        for group in self.optimiser.param_groups:
            group["lr"] = group["peak"] * self.config.rate_factor(self._progress())
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        if self.adaptive:
            names = ("selector", "test_logits", "value_head", "temperature")
            clipped = [p for name in names for p in getattr(self.network, name).parameters()]
            nn.utils.clip_grad_norm_(clipped, self.config.gradient_norm)
        self.optimiser.step()
        soft_update(self.mean, self.network, self.config.averaging_weight(self.step - self.since[0], self.phase))

    def _progress(self) -> float:
        """How much of the present phase is over."""
        return (self.done - self.since[1]) / max(self._end() - self.since[1], 1e-9)

    # ------------------------------------------------------------------ what is learned in a step

    def _prefix_loss(self) -> Tensor:
        """Cross-entropy on prefixes of the order."""
        size = -(-self.config.prefix_batch // 2) if self.adaptive else self.config.prefix_batch
        row = self.problem.draw(size, self.rng, by_stake=False)
        mask = torch.from_numpy(self.sampler.prefixes(self.problem, row, self.rng)).float()
        inputs = self.network.inputs(torch.from_numpy(self.problem.X[row]), mask)
        self.network.classifier.train()  # an encoder of the user's own may do otherwise while it learns
        class_logits, _ = self.network.classify(inputs)
        self.network.classifier.eval()
        return losses.prefix_loss(class_logits, torch.from_numpy(self.problem.labels[row]))

    def _selection_loss(self) -> Tensor:
        """Prefixes, so that what is known of them stays, and cases in progress; in every second step those of held-out rows too,
        which have less to learn."""
        loss = self._selector_loss() if self.frozen else self._prefix_loss() + self._selector_loss()
        return loss + self._value_loss() if self.step % 2 else loss

    def _selector_loss(self) -> Tensor:
        """Training rows teach the classes and which test is next, and buy one test each."""
        live, network = self.live[0], self.network
        observed = self._observe(live, self.problem)
        inputs = network.inputs(observed.values, observed.mask)
        test_logits, hidden = network.select(inputs, observed.conditions)
        perturbed = gumbel_perturbed(test_logits, observed.legal, torch.rand_like(test_logits))
        share = losses.soft_choice(perturbed, observed.open, self.config.softness(self._progress()))
        mask = losses.soft_mask(observed.mask, share, self.stake[observed.labels])
        class_logits, _ = network.classify(network.inputs(observed.values, mask))
        loss = losses.selector_loss(class_logits, observed.labels, share, observed.scaled_cost, self.nats_per_loss)
        with torch.no_grad():
            view = assess(network, observed, inputs, test_logits, hidden, self.loss, self.problem.rule)
            by_value = torch.from_numpy(self.rng.random(len(live.row)) < self.config.value_choice_share)
            test = torch.where(by_value, view.best, perturbed.argmax(1)).numpy()
        self._move(live, self.problem, observed, test, ~view.continues.numpy())
        return loss

    def _value_loss(self) -> Tensor:
        """Held-out rows teach the temperature and what to expect of some tests, and buy one test each."""
        live, problem, network = self.live[1], self.held_out, self.network
        observed = self._observe(live, problem)
        inputs = network.inputs(observed.values, observed.mask)
        with torch.no_grad():
            selection = network.select(inputs, observed.conditions)
        view = assess(network, observed, inputs, *selection, self.loss, self.problem.rule)
        loss = losses.temperature_loss(view.log_belief, observed.labels)
        predicted = view.prediction
        if predicted.external_value is not None:
            lost = torch.from_numpy(problem.external_losses[live.row] / self.scale.loss_scale).float()
            loss = loss + losses.external_loss(predicted.external_value, lost, observed.bill(live.lam, self.scale), problem.rule)
        case, test = self._looked_up(observed, view)
        if len(case):
            target = self._targets(live.after(case, test, problem), problem)
            loss = loss + losses.value_loss(predicted.value_after[case, test], target.total)
            is_best = view.best[case] == torch.from_numpy(test)
            case = case[is_best.numpy()]
            parts = view.best_value[case], predicted.final_loss[case], predicted.later_cost_share[case]
            best_target = Outcome(*(part[is_best] for part in target))
            loss = loss + losses.best_loss(*parts, best_target, observed.cost_bound[case])
        self._move(live, problem, observed, self._explored(observed, view), ~view.continues.numpy())
        return loss

    @torch.no_grad()
    def _targets(self, live: LiveCases, problem: Problem) -> Outcome:
        """What the averaged networks expect of cases that have just bought a test."""
        observed = self._observe(live, problem)
        inputs = self.mean.inputs(observed.values, observed.mask)
        view = assess(self.mean, observed, inputs, *self.mean.select(inputs, observed.conditions), self.loss, self.problem.rule)
        predicted = view.prediction
        end = losses.ending(view.decision_loss, view.fee)
        if predicted.external_value is not None:
            may_ask = torch.from_numpy(observed.cases.legal()[:, self.schema.n_decisions])
            bill = observed.bill(live.lam, self.scale)
            end = losses.ending(view.decision_loss, view.fee, predicted.external_value, bill, may_ask)
        cost = view.best_cost + observed.cost_bound * predicted.later_cost_share
        return losses.value_target(end, Outcome(view.continue_value, predicted.final_loss, cost), view.continues)

    # ------------------------------------------------------------------ cases in progress

    def _observe(self, live: LiveCases, problem: Problem) -> Observation:
        return Observation.of(live, problem, self.scale, self.alone)

    def _looked_up(self, observed: Observation, view: Assessment) -> tuple[Ints, Ints]:
        """Pairs of a case and a test to look up: all where there are few tests; else the best, other candidates, and any."""
        legal = observed.legal.numpy()
        if legal.shape[1] <= DESIGN.candidates:
            case, test = np.nonzero(legal)
            return case, test
        rows, others = np.arange(len(legal)), self.config.value_tests - 1
        key = self.rng.random(legal.shape, dtype=np.float32)
        any_test = np.where(legal, key, -1).argmax(1)
        key += 2 * view.candidates.numpy()
        key[rows, view.best.numpy()] += 4
        test = np.argpartition(np.where(legal, key, -1), -others, 1)[:, -others:]
        test = np.concatenate([test, any_test[:, None]], 1)
        case = np.repeat(rows, others + 1).reshape(test.shape)
        possible = legal[case, test]
        return case[possible], test[possible]

    def _explored(self, observed: Observation, view: Assessment) -> Ints:
        """B: the best test, and now and then any test, so that it is known what follows."""
        config, legal = self.config, observed.legal.numpy()
        share = config.random_test_share if legal.shape[1] > DESIGN.candidates else config.random_test_share_few
        at_random = self.rng.random(len(legal)) < share
        any_test = np.where(legal, self.rng.random(legal.shape), -1).argmax(1)
        return np.where(at_random, any_test, view.best.numpy())

    def _move(self, live: LiveCases, problem: Problem, observed: Observation, test: Ints, would_stop: Bools) -> None:
        """Buys these tests. Where the policy would stop, a case goes on for a while, so that it is known what follows."""
        can = observed.open.numpy()
        live.buy(problem, test, can)
        live.age += 1
        over = ~can | (live.age >= live.most_tests) | (would_stop & (self.rng.random(len(can)) < self.config.stop_share))
        if over.any():
            live.replace(over, self.sampler.fresh(problem, int(over.sum()), self.rng))

    # ------------------------------------------------------------------ what was learned

    def weights(self) -> Weights:
        """Of the averaged networks."""
        return weights_of(self.mean)

    def family(self, weights: Weights) -> Family:
        """What can be used without this run."""
        trunks = None if self.encoder is None else own_trunks(self.schema, self.config.width, self.encoder, weights)
        facts = self.scale, self.rank, self.problem.loss, self.schema.owner, self.alone, trunks, self.problem.rule
        return Family(weights, *facts, decision_money(self.schema))

    def _adam(self, rates: dict[str, float]) -> torch.optim.AdamW:
        groups = [{"params": list(getattr(self.network, name).parameters()), "peak": rate} for name, rate in rates.items()]
        return torch.optim.AdamW(groups, lr=1e-3, weight_decay=self.config.weight_decay, fused=True)

    # ------------------------------------------------------------------ checkpoints

    @property
    def networks(self) -> dict[str, nn.Module]:
        return {"network": self.network, "mean": self.mean}

    def state(self) -> TrainingState:
        """Everything the training consists of: arrays, and facts that fit into JSON."""
        arrays: Arrays = {"order": self.order, **{f"least/{name}": value for name, value in self.monitor.best.items()}}
        for i, live in enumerate(self.live):
            arrays |= {f"live/{i}/{field.name}": getattr(live, field.name) for field in fields(live)}
        facts = {
            "done": self.done,
            "phase": int(self.phase),
            "since": self.since,
            "prefix_share": self.prefix_share,
            "frozen": self.frozen,
            "least": self.monitor.least if self.monitor.best else None,
        }
        return state_of(self, identity(self, "family", self.held_out, order=self.order.tolist()), arrays, facts)

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        """Takes over what `state` handed out; the training goes on as if it had never stopped."""
        here = self.state()[1]
        same_run(facts.get("run"), here["run"])
        same_types(facts, here)
        self.prefix_share, self.frozen = facts["prefix_share"], facts["frozen"]
        if facts["phase"] not in list(Phase):
            raise StateError(f"the checkpoint is damaged: there is no phase {quoted(facts['phase'])}")
        if facts["phase"] != Phase.PREFIXES:
            self._begin(Phase(facts["phase"]))
        same_shapes(arrays, self.state()[0], max(len(self.problem), len(self.held_out)))
        self.done, self.since = facts["done"], (facts["since"][0], facts["since"][1])
        self.monitor.least, self.monitor.best = math.inf if facts["least"] is None else facts["least"], part(arrays, "least/")
        for i in range(2):
            self.live[i] = LiveCases(**{name: value.copy() for name, value in part(arrays, f"live/{i}/").items()})
        load_shared(self, arrays, facts)
