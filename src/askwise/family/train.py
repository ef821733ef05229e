"""Training of a policy family: one model for every tradeoff and every budget. README.md has the equations.

First the classifier learns on prefixes of a fixed order of the tests. Then the selector learns which test comes next, by
gradients through the classifier, and the value head, on rows the classifier has not seen, what to expect of each test that is
proposed. In the end only the value head learns.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import fields
from enum import IntEnum
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from askwise.components.encoders import Encoder
from askwise.components.networks import Weights, array, gumbel_perturbed, weights_of
from askwise.components.pictures import Convolutions
from askwise.components.torch_state import own_random_numbers, own_torch
from askwise.core.arrays import Array, Arrays, Bools, Doubles, Ints
from askwise.core.problem import Problem
from askwise.errors import StateError, quoted
from askwise.family import losses
from askwise.family.conditions import Scale, costs_alone, decision_money, log_prior
from askwise.family.config import DESIGN, PRECISIONS, FamilyConfig
from askwise.family.descent import Descent, Rates
from askwise.family.encodings import encoding_for
from askwise.family.inference import Family
from askwise.family.losses import Outcome
from askwise.family.network import Assessment, FamilyNetwork, assess, own_trunks
from askwise.family.overfitting import OverfitMonitor
from askwise.family.states import LiveCases, Observation, StateSampler, any_of, as_numbers, best_and_others
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
    order, F tests; encoder: in the place of the usual network, or None; lacking: see `StateSampler`.
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
        self.device = torch.get_default_device() if config.device is None else torch.device(config.device)
        self.precision = "float32" if config.precision == "auto" else config.precision  # a trial may choose another
        self.threads = 1  # that torch uses for it
        self._weigh_classes(problem)
        with own_torch(seed):
            encoding = encoding_for(problem, config) if encoder is None else None
            self.network = FamilyNetwork(problem.schema, config.width, encoding, encoder).to(self.device).eval()
            self.torch_rng = torch.get_rng_state()
        self.network.prior.copy_(self.log_prior)
        with torch.no_grad():  # however short the run, it knows which classes are frequent
            self.network.class_logits.bias.copy_(self.network.prior)
        self.mean = copy.deepcopy(self.network).requires_grad_(False)
        self.descent = self._descent({("classifier", "class_logits"): config.learning_rate})
        lacking = np.zeros(len(order)) if lacking is None else lacking
        self.sampler = StateSampler(self.schema, self.scale, self.rank, config, lacking)
        self.monitor = OverfitMonitor(self.held_out, self.sampler, config, seed, self.device)
        # each held-out case looks several tests up, so that half as many are enough
        sizes = (problem, config.parallel_cases), (held_out, -(-config.parallel_cases // 2))
        self.live = [self.sampler.fresh(p, n, self.rng) for p, n in sizes]
        self.drawn = config.parallel_cases  # rows that were drawn from `problem` so far, each as often as it was

    def _weigh_classes(self, problem: Problem) -> None:
        """The scaled loss, what is at stake in each class, how frequent classes are, and how many nats a unit of loss is."""
        stakes, labels = problem.stakes / problem.mean_stake, problem.labels
        weight = None if problem.weight is None else problem.weight / problem.weight.mean()
        at_stake = stakes[labels] if weight is None else stakes[labels] * weight
        shares = np.bincount(labels, at_stake, len(stakes)) / at_stake.sum()
        self.nats_per_loss = losses.nats_per_loss(shares, problem.prior_loss / problem.loss_scale)
        self.loss = self._here((problem.loss / problem.loss_scale).astype(np.float32))
        self.stake = self._here(stakes.astype(np.float32))
        self.log_prior = self._here(log_prior(problem))

    def _here(self, values: Array) -> Tensor:
        """As a tensor beside the networks."""
        return torch.from_numpy(values).to(self.device)

    # ------------------------------------------------------------------ the loop

    def advance(self) -> None:
        """One gradient step."""
        self.done = max(self.done, self.step / self.config.max_steps)
        with nullcontext() if self.encoder is None else own_random_numbers(self):  # nothing else draws numbers of torch
            self._enter_phase(overfits=self._overfits())
            with self._low_precision():
                loss = (self._prefix_loss, self._selection_loss, self._value_loss)[self.phase]()
            self._descend(loss)
        self.step += 1

    @contextmanager
    def _low_precision(self) -> Iterator[None]:
        """Hidden layers are as precise as was chosen, those of the averaged networks too."""
        precision = getattr(torch, self.precision)
        with self.network.calculating_in(precision), self.mean.calculating_in(precision):
            yield

    def tried(self, precision: str, clock: Callable[[], float]) -> float:
        """What forward and backward pass of a step on prefixes take by this clock. Nothing of the training changes."""
        before, drawn, chosen = self.rng.bit_generator.state, self.drawn, self.precision
        weights = copy.deepcopy(self.network.state_dict())
        self.precision, began = precision, clock()
        with own_torch(self.seed), self._low_precision():
            self._prefix_loss().backward()  # type: ignore[no-untyped-call]
        taken = clock() - began
        self.network.zero_grad()
        self.network.load_state_dict(weights)  # an encoder of the user's own may count what it sees
        self.rng.bit_generator.state, self.drawn, self.precision = before, drawn, chosen
        return taken

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
        rates: Rates = {("value_head",): config.value_rate, ("temperature",): config.temperature_rate}
        if phase == Phase.SELECTION:
            self.network.follow_order(self.rank)
            self.mean.load_state_dict(self.network.state_dict())
            classifier = 0.0 if self.frozen else config.finetune_rate
            rates = {("classifier", "class_logits"): classifier, ("selector", "test_logits"): config.selector_rate, **rates}
        self.network.zero_grad()  # of parts that no longer learn too: gradients are clipped together
        if phase == Phase.VALUES:  # many cases a step: what is learned last should be least noisy
            self.live[1] = self.sampler.fresh(self.held_out, 2 * config.parallel_cases, self.rng)
        self.descent = self._descent(rates)
        self.phase, self.since = phase, (self.step, self.done)

    def _go_back(self, stay: bool) -> None:
        """The classifier goes back to its best, and maybe stays there."""
        self.frozen = stay
        for network in (self.network, self.mean):
            self.monitor.restore(network)
        if stay:
            self.descent.stop_classifier()

    def _descend(self, loss: Tensor) -> None:
        """A step of the optimiser, and of the averaged networks."""
        config = self.config
        weight = config.averaging_weight(self.step - self.since[0], self.phase)
        self.descent.step(loss, config.rate_factor(self._progress()), config.gradient_norm if self.adaptive else None, weight)

    def _descent(self, rates: Rates) -> Descent:
        return Descent(self.network, self.mean, rates, self.config.weight_decay, self.encoder is not None)

    def _progress(self) -> float:
        """How much of the present phase is over."""
        return (self.done - self.since[1]) / max(self._end() - self.since[1], 1e-9)

    # ------------------------------------------------------------------ what is learned in a step

    def _prefix_loss(self) -> Tensor:
        """Cross-entropy on prefixes of the order."""
        size = -(-self.config.prefix_batch // 2) if self.adaptive else self.config.prefix_batch
        row = self.problem.draw(size, self.rng, by_stake=False)
        self.drawn += size
        mask = as_numbers(self.sampler.prefixes(self.problem, row, self.rng), self.device)
        inputs = self.network.inputs(self._here(self.problem.X.take(row, 0)), mask)
        if self.encoder is not None:  # which may do otherwise while it learns
            self.network.classifier.train()
        class_logits, _ = self.network.classify(inputs)
        if self.encoder is not None:
            self.network.classifier.eval()
        return losses.prefix_loss(class_logits, self._here(self.problem.labels[row]))

    def _selection_loss(self) -> Tensor:
        """Prefixes, so that what is known of them stays, and cases in progress; in every second step those of held-out rows too,
        which have less to learn."""
        loss = self._selector_loss() if self.frozen else self._prefix_loss() + self._selector_loss()
        return loss + self._value_loss() if self.step % 2 else loss

    def _selector_loss(self) -> Tensor:
        """Training rows teach the classes and which test is next, and buy one test each."""
        live, network = self.live[0], self.network
        observed = self._observe(live, self.problem)
        encoded = network.encoded(observed.values)
        inputs = network.shown(encoded, observed.mask)
        test_logits, hidden = network.select(inputs, observed.conditions)
        uniform = self.rng.random(test_logits.shape, dtype=np.float32)
        perturbed = gumbel_perturbed(test_logits, observed.legal, uniform)
        share = losses.soft_choice(perturbed, observed.open, self.config.softness(self._progress()))
        mask = losses.soft_mask(observed.mask, share, self.stake[observed.labels])
        class_logits, _ = network.classify(network.shown(encoded, mask))
        loss = losses.selector_loss(class_logits, observed.labels, share, observed.scaled_cost, self.nats_per_loss)
        test, stops = array(perturbed.argmax(1)).copy(), self._may_stop(live)
        by_value = self.rng.random(len(live.row)) < self.config.value_choice_share
        asked = np.flatnonzero(by_value | stops)  # of the others nobody wants to know
        of = self._here(asked)
        with torch.no_grad():
            selection = inputs[of], test_logits[of], hidden[of]
            view = assess(network, observed.keep(asked), *selection, self.loss, self.problem.rule)
        test[asked] = np.where(by_value[asked], array(view.best), test[asked])
        stops[asked] &= ~array(view.continues)
        self._move(live, self.problem, observed, test, stops)
        return loss

    def _value_loss(self) -> Tensor:
        """Held-out rows teach the temperature and what to expect of some tests, and buy one test each."""
        live, problem, network = self.live[1], self.held_out, self.network
        observed = self._observe(live, problem)
        encoded = network.encoded(observed.values)
        inputs = network.shown(encoded, observed.mask)
        with torch.no_grad():
            selection = network.select(inputs, observed.conditions)
        view = assess(network, observed, inputs, *selection, self.loss, self.problem.rule)
        loss = losses.temperature_loss(view.log_belief, observed.labels)
        predicted = view.prediction
        if predicted.external_value is not None:
            lost = self._here((problem.external_losses[live.row] / self.scale.loss_scale).astype(np.float32))
            loss = loss + losses.external_loss(predicted.external_value, lost, observed.bill(live.lam, self.scale), problem.rule)
        case, test = self._looked_up(observed, view)
        if len(case):
            of, looked_up = self._here(case), self._here(test)
            target = self._targets(live.after(case, test, problem), problem, encoded.index_select(0, of))
            loss = loss + losses.value_loss(predicted.value_after[of, looked_up], target.total)
            is_best = view.best[of] == looked_up
            of = of[is_best]
            parts = view.best_value[of], predicted.final_loss[of], predicted.later_cost_share[of]
            best_target = Outcome(*(part[is_best] for part in target))
            loss = loss + losses.best_loss(*parts, best_target, observed.cost_bound[of])
        self._move(live, problem, observed, self._explored(observed, view), self._may_stop(live) & ~array(view.continues))
        return loss

    @torch.no_grad()
    def _targets(self, live: LiveCases, problem: Problem, encoded: Tensor) -> Outcome:
        """What the averaged networks expect of cases that have just bought a test. encoded: their columns, P, E."""
        observed = self._observe(live, problem)
        inputs = self.mean.shown(encoded, observed.mask)
        view = assess(self.mean, observed, inputs, *self.mean.select(inputs, observed.conditions), self.loss, self.problem.rule)
        predicted = view.prediction
        end = losses.ending(view.decision_loss, view.fee)
        if predicted.external_value is not None:
            may_ask = self._here(observed.cases.legal()[:, self.schema.n_decisions])
            bill = observed.bill(live.lam, self.scale)
            end = losses.ending(view.decision_loss, view.fee, predicted.external_value, bill, may_ask)
        cost = view.best_cost + observed.cost_bound * predicted.later_cost_share
        return losses.value_target(end, Outcome(view.continue_value, predicted.final_loss, cost), view.continues)

    # ------------------------------------------------------------------ cases in progress

    def _observe(self, live: LiveCases, problem: Problem) -> Observation:
        return Observation.of(live, problem, self.scale, self.alone, self.device)

    def _looked_up(self, observed: Observation, view: Assessment) -> tuple[Ints, Ints]:
        """Pairs of a case and a test to look up: all where there are few tests; else the best, other candidates, and any."""
        legal = array(observed.legal)
        if legal.shape[1] <= DESIGN.candidates:
            case, test = np.nonzero(legal)
            return case, test
        case, test = best_and_others(array(view.candidates), array(view.best), self.config.value_tests - 1, self.rng)
        able = np.flatnonzero(array(observed.open))
        return np.concatenate([case, able]), np.concatenate([test, any_of(legal[able], self.rng)])

    def _explored(self, observed: Observation, view: Assessment) -> Ints:
        """B: the best test, and now and then any test, so that it is known what follows."""
        config, able = self.config, array(observed.open)
        test: Ints = array(view.best).copy()
        share = config.random_test_share if self.schema.n_tests > DESIGN.candidates else config.random_test_share_few
        at_random = np.flatnonzero(able & (self.rng.random(len(able)) < share))
        test[at_random] = any_of(array(observed.legal)[at_random], self.rng)
        return test

    def _may_stop(self, live: LiveCases) -> Bools:
        """B: by lot, whether a case ends if the policy would stop. Most go on for a while, so that it is known what follows."""
        return self.rng.random(len(live.row)) < self.config.stop_share

    def _move(self, live: LiveCases, problem: Problem, observed: Observation, test: Ints, stops: Bools) -> None:
        """Buys these tests; cases that are over are replaced."""
        can = array(observed.open)
        live.buy(problem, test, can)
        live.age += 1
        over = ~can | (live.age >= live.most_tests) | stops
        if over.any():
            live.replace(over, self.sampler.fresh(problem, int(over.sum()), self.rng))
            self.drawn += int(over.sum()) if problem is self.problem else 0

    # ------------------------------------------------------------------ what was learned

    def weights(self) -> Weights:
        """Of the averaged networks."""
        return weights_of(self.mean)

    def family(self, weights: Weights) -> Family:
        """What can be used without this run."""
        trunks = None if self.encoder is None else own_trunks(self.schema, self.encoder, weights)
        facts = self.scale, self.rank, self.problem.loss, self.schema.owner, self.alone, trunks, self.problem.rule
        return Family(weights, *facts, decision_money(self.schema))

    # ------------------------------------------------------------------ checkpoints

    @property
    def optimiser(self) -> torch.optim.Optimizer:
        return self.descent.optimiser

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
            "drawn": self.drawn,
            "phase": int(self.phase),
            "since": self.since,
            "prefix_share": self.prefix_share,
            "frozen": self.frozen,
            **{name: getattr(self, name) for name in ("precision", "threads")},
            "least": self.monitor.least if self.monitor.best else None,
        }
        convolutions = self.encoder.to_dict() if isinstance(self.encoder, Convolutions) else None
        more = {"order": self.order.tolist(), "convolutions": convolutions}
        return state_of(self, identity(self, "family", self.held_out, **more), arrays, facts)

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        """Takes over what `state` handed out; the training goes on as if it had never stopped."""
        same_run(facts.get("run"), (here := self.state()[1])["run"])
        same_types(facts, here)
        self.prefix_share, self.frozen = facts["prefix_share"], facts["frozen"]
        self.precision, self.threads = facts["precision"], max(facts["threads"], 1)
        if self.precision not in PRECISIONS or self.config.precision not in ("auto", self.precision):
            raise StateError(f"the checkpoint is damaged: there is no precision {quoted(self.precision)}")
        if facts["phase"] not in list(Phase):
            raise StateError(f"the checkpoint is damaged: there is no phase {quoted(facts['phase'])}")
        if facts["phase"] != Phase.PREFIXES:
            self._begin(Phase(facts["phase"]))
        same_shapes(arrays, self.state()[0], max(len(self.problem), len(self.held_out)))
        self.done, self.drawn, self.since = facts["done"], facts["drawn"], (facts["since"][0], facts["since"][1])
        self.monitor.least, self.monitor.best = math.inf if facts["least"] is None else facts["least"], part(arrays, "least/")
        for i in range(2):
            self.live[i] = LiveCases(**{name: value.copy() for name, value in part(arrays, f"live/{i}/").items()})
        load_shared(self, arrays, facts)
