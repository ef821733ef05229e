"""Training: double dueling DQN with Retrace, one step at a time. Choosing among its snapshots is the caller's work.

Paper: algorithm 1; algorithm 2
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from askwise.components.encoders import Encoder
from askwise.components.networks import Weights, inputs, load_weights, soft_update, weights_of
from askwise.components.torch_state import own_random_numbers, own_torch
from askwise.core import missingness
from askwise.core.arrays import Arrays, Ints
from askwise.core.budget import Budget
from askwise.core.cases import Cases, only_free
from askwise.core.episode import Replayed, advance, measure, replay, rollout
from askwise.core.policy import Exploring, Greedy, random_policy
from askwise.core.problem import Problem
from askwise.core.sampling import some_rows
from askwise.core.schema import Schema
from askwise.errors import InputError
from askwise.paper.config import TrainConfig
from askwise.paper.lagrangian import LambdaController, controller_for
from askwise.paper.memory import Batch, Memory
from askwise.paper.network import NetworkValues, QNetwork, dense
from askwise.paper.targets import (
    clip_target,
    greedy_action,
    retrace,
    squared_error,
    target_policy_probability,
    target_policy_value,
    truncated_ratio,
)
from askwise.training.checkpoint import TrainingState, identity, load_shared, part, state_of
from askwise.training.checkpoint_checks import same_run, same_shapes, same_types
from askwise.training.result import InterimMeasurement


class Trainer:
    """One training. Iterate over it for interim measurements, or call `advance` for one step at a time.

    State lives in the network, the memory and the controller of lambda; `state` hands all of it out.
    """

    def __init__(
        self, problem: Problem, validation: Problem, budget: Budget, config: TrainConfig, seed: int = 0, encoder: Encoder = dense
    ) -> None:
        if problem.rule is not None:
            only = f"loss is {problem.rule!r}, but the paper's algorithm learns what classes are worth, not how probable they are"
            raise InputError(f"{only}; use another algorithm, or a loss matrix")
        self.rows, self.validation = problem.trainable(), validation.labelled()
        fill = config.fill_gaps and missingness.go_with_class(problem)
        self.problem = missingness.filled(problem, seed) if fill else problem  # that is learned from
        self.budget, self.config, self.seed = budget, config, seed
        self.cap = budget.cap(problem.schema.costs)
        self.controller = controller_for(budget, problem, config)
        stakes = problem.loss.max(1, keepdims=True)
        scale = problem.loss_scale if problem.reward_scale is None else np.where(stakes > 0, stakes, np.inf)
        self.smallest_loss = float((problem.loss / scale).min())  # counted in stakes, so that losses may be in any currency
        self.rng = np.random.default_rng(seed)
        self.time_share = 0.0  # how much of its time is over, where there is a limit: a sweep must not be late
        self.step = 0
        self.pretrained = 0
        self.pretrain_errors: list[float] = []
        self.device = torch.get_default_device() if config.device is None else torch.device(config.device)
        with own_torch(seed):
            self.network = QNetwork(problem.schema, config.width, encoder).to(self.device).eval()
            self.torch_rng = torch.get_rng_state()
        self.target = copy.deepcopy(self.network)
        self.optimiser = self._adam(config.lr_pretrain)
        self.memory = Memory(config.memory_episodes, problem.schema.n_tests + 1, problem.schema.n_actions)
        self.measured = [some_rows(len(p), config.measure_rows, seed) for p in (problem, validation)]
        B = config.parallel_cases
        self.live = Cases.start(self.problem, np.zeros(B, np.int64), self.cap)
        self.trail_action = np.zeros((B, self.memory.action.shape[1]), self.memory.action.dtype)
        self.trail_probability = np.zeros(self.trail_action.shape, np.float32)
        self.trail_length = np.zeros(B, np.int32)
        # what is drawn must be the same after a restart, whatever was drawn before it
        self._check = self._pretrain_states(min(len(validation), 2_048), validation, np.random.default_rng(seed + 1))

    # ------------------------------------------------------------------ the loop

    def __iter__(self) -> Iterator[InterimMeasurement]:
        """Trains to the end of the schedule and yields what was measured after every window."""
        while not self.finished:
            measurement = self.advance()
            if measurement is not None:
                yield measurement

    @property
    def finished(self) -> bool:
        return self.step >= self.config.max_steps

    @property
    def pretraining(self) -> bool:
        return self.step == 0 and self.memory.size == 0

    def advance(self) -> InterimMeasurement | None:
        """One gradient step, of pretraining first and then of learning; at the end of each window the policy is measured and
        lambda moves.

        Paper: algorithm 1
        """
        with own_random_numbers(self):  # an encoder may have dropout
            if self.pretraining:
                if self._pretrain_more():
                    self._pretrain_step()
                else:
                    self._begin()
                return None
            self._act()
            self._learn(self.memory.sample(self.config.batch_steps, self.rng))
            self.step += 1
            if self.step % self.config.window:
                return None
            measurement = self.measure()
            assert measurement.train is not None
            self.controller.update(measurement.train.cost, self.config.lam_step(self.step), measurement.done)
            return measurement

    def measure(self) -> InterimMeasurement:
        """What the greedy policy comes to as it is now."""
        greedy = self.policy()
        train = measure(self.rows, greedy, self.cap, self.measured[0])
        validation = measure(self.validation, greedy, self.cap, self.measured[1])
        done = max(self.step / self.config.max_steps, self.time_share)
        return InterimMeasurement(self.step, done, self.controller.lam, train, validation)

    def weights(self) -> Weights:
        return weights_of(self.network)

    def policy(self) -> Greedy:
        """The greedy policy of the network as it is now; it changes as training goes on."""
        return Greedy(NetworkValues(self.network, self.device))

    # ------------------------------------------------------------------ pretraining

    def _pretrain_more(self) -> bool:
        """Every twentieth of the way the error on validation states is measured; three times no better is enough."""
        if self.pretrained >= self.config.pretrain_steps:
            return False
        if self.pretrained % max(1, self.config.pretrain_steps // 20) == 0:
            with torch.inference_mode():
                self.pretrain_errors.append(float(self._pretrain_error(*self._check)))
            return not np.argmin(self.pretrain_errors) < len(self.pretrain_errors) - 3
        return True

    def _pretrain_step(self) -> None:
        """Fits the class outputs on randomly masked rows.

        Paper: algorithm 2, pretrain; section 3.2, pretraining
        """
        states = self._pretrain_states(self.config.pretrain_batch, self.problem, self.rng)
        with self._learning():
            error = self._pretrain_error(*states)
        self._descend(error)
        self.pretrained += 1

    def _pretrain_states(self, n: int, problem: Problem, rng: np.random.Generator) -> tuple[torch.Tensor, torch.Tensor]:
        """Inputs and targets of n states: m_i ~ Bernoulli(p), p = u³ for each state, u ~ U(0, 1)."""
        row = problem.draw(n, rng)
        cases = Cases.start(problem, row, None)
        p = rng.random((n, 1), dtype=np.float32) ** np.float32(self.config.pretrain_power)
        more = rng.random(cases.mask.shape, dtype=np.float32) < p
        cases.mask |= more if problem.available is None else more & problem.available[row]
        states = cases.observe()
        return inputs(states.values, states.mask).to(self.device), self._decision_values(row, problem)

    def _decision_values(self, row: Ints, problem: Problem) -> torch.Tensor:
        """S, D: minus what each decision loses and costs, in stakes."""
        fees = self.controller.lam * problem.schema.costs.money(problem.schema.decision_cost)
        values = -(problem.loss[problem.labels[row]] + fees) / self.problem.loss_scale
        if problem.reward_scale is not None:
            values *= problem.reward_scale[row, None]
        return torch.from_numpy(values).float().to(self.device)

    def _pretrain_error(self, states: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        q: torch.Tensor = self.network(states)
        return squared_error(target, q[:, : target.shape[1]])

    def _begin(self) -> None:
        """From pretraining to learning: φ := θ, a new optimiser, cases to work on, a memory of random episodes.

        Paper: algorithm 2, initialise φ; algorithm 2, initialise environments; algorithm 2, initialise memory
        """
        self.target.load_state_dict(self.network.state_dict())
        self.optimiser = self._adam(self.config.lr_start)
        self.live = Cases.start(self.problem, self.problem.draw(len(self.live.row), self.rng), self.cap)
        rows = self.problem.draw(self.config.memory_episodes, self.rng)
        self.memory.add_episodes(rollout(self.problem, random_policy(self.rng), self.cap, rows))

    # ------------------------------------------------------------------ acting and learning

    def _act(self) -> None:
        """One step of every parallel case with the ε-greedy policy; finished episodes go to memory, new cases take their place.

        Paper: algorithm 2, simulate one step; algorithm 2, add to memory; algorithm 3, reset
        """
        epsilon = self.config.epsilon(self.step)
        explorer = Exploring(NetworkValues(self.network, self.device), epsilon, self.rng)
        with self._low_precision():
            choice, done = advance(self.live, explorer)
        everyone = np.arange(len(done))
        self.trail_action[everyone, self.trail_length] = choice.action
        self.trail_probability[everyone, self.trail_length] = choice.probability
        self.trail_length += 1
        over = np.flatnonzero(done)
        if not over.size:
            return
        longest = int(self.trail_length[over].max())
        self.memory.add(
            self.live.row[over],
            self.trail_action[over, :longest],
            self.trail_probability[over, :longest],
            self.trail_length[over],
        )
        fresh = Cases.start(self.problem, self.problem.draw(len(over), self.rng), self.cap)
        self.live.row[over], self.live.mask[over] = fresh.row, fresh.mask
        self.trail_length[over] = 0

    def _learn(self, batch: Batch) -> None:
        """One step of gradient descent on a batch of whole episodes, then one of the target network.

        Paper: eq. 6; algorithm 1, update θ; algorithm 2, gradient descent
        """
        steps = replay(self.problem, batch.row, batch.action, batch.length, self.cap)
        may = steps.cases.legal(self.config.estimate_missing)
        if self.problem.schema.costs.ever_free and not self.config.estimate_missing:  # which counts what is not there, too
            may = only_free(may, steps.cases.test_cost())
        legal = torch.from_numpy(may).to(self.device)
        action = torch.from_numpy(steps.action).to(self.device)
        states = inputs(steps.cases.values(), steps.cases.mask).to(self.device)
        with self._learning():
            q_theta = self.network(states)
            with torch.no_grad():
                q_phi = self.target(states)
        with torch.no_grad():
            q = self._targets(steps, batch, q_theta.detach(), q_phi, action, legal)
        self.optimiser.param_groups[0]["lr"] = self.config.lr(self.step)
        error = squared_error(q, q_theta.gather(1, action[:, None])[:, 0])
        if self.config.all_classes:
            decisions = self._decision_values(steps.cases.row, self.problem)
            error = error + squared_error(decisions, q_theta[:, : decisions.shape[1]])
        self._descend(error)
        soft_update(self.target, self.network, self.config.rho)

    def _targets(
        self, steps: Replayed, batch: Batch, q_theta: torch.Tensor, q_phi: torch.Tensor, action: torch.Tensor, legal: torch.Tensor
    ) -> torch.Tensor:
        """S: q_t of every replayed step, its rewards priced with today's lambda.

        Paper: eq. 12; algorithm 2, compute target
        """
        cases, eta = steps.cases, self.config.eta(self.step)
        money = self.problem.schema.costs.money(cases.cost_of(steps.action))
        reward = -(self.controller.lam * money + cases.loss_of(steps.action)) / self.problem.loss_scale
        if self.problem.reward_scale is not None:
            reward *= self.problem.reward_scale[cases.row]
        best = greedy_action(q_theta, legal)
        pi = target_policy_probability(action, best, legal, eta)
        at = torch.from_numpy(steps.episode).to(self.device), torch.from_numpy(steps.t).to(self.device)

        def padded(flat: torch.Tensor) -> torch.Tensor:  # S -> E, L
            return torch.zeros(batch.action.shape, device=self.device).index_put_(at, flat)

        mu = torch.from_numpy(batch.probability).to(self.device)[at]
        q = retrace(
            padded(torch.from_numpy(reward).float().to(self.device)),
            padded(target_policy_value(q_phi, best, legal, eta)),
            padded(q_phi.gather(1, action[:, None])[:, 0]),
            padded(truncated_ratio(pi, mu, self.config.retrace)),
            self.config.gamma,
        )
        return clip_target(q[at], self.smallest_loss)

    @contextmanager
    def _learning(self) -> Iterator[None]:
        """Networks as they are in learning: dropout and the like are on."""
        self.network.train()
        try:
            with self._low_precision():
                yield
        finally:
            self.network.eval()

    @contextmanager
    def _low_precision(self) -> Iterator[None]:
        """Hidden layers as precise as the settings say, both in acting and in learning: what was chosen is greedy in both."""
        self.network.precision = self.target.precision = getattr(torch, self.config.precision)
        try:
            yield
        finally:  # also after Ctrl-C: what is measured then is float32
            self.network.precision = self.target.precision = torch.float32

    def _descend(self, loss: torch.Tensor) -> None:
        """Adam, with the gradient's norm clipped.

        Paper: section 3.2, gradient norm
        """
        parameters = self.optimiser.param_groups[0]["params"]
        for parameter in parameters:
            parameter.grad = None
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(parameters, self.config.gradient_norm)
        self.optimiser.step()

    def _adam(self, lr: float) -> torch.optim.Adam:
        return torch.optim.Adam(self.network.parameters(), lr=lr, fused=True)

    # ------------------------------------------------------------------ checkpoints

    @property
    def networks(self) -> dict[str, torch.nn.Module]:
        return {"network": self.network, "target": self.target}

    def state(self) -> TrainingState:
        """Everything the training consists of: arrays, and facts that fit into JSON."""
        arrays: Arrays = {
            "live/row": self.live.row,
            "live/mask": self.live.mask,
            "trail/action": self.trail_action,
            "trail/probability": self.trail_probability,
            "trail/length": self.trail_length,
            **{f"memory/{name}": value for name, value in self.memory.state().items()},
        }
        facts = {"pretrained": self.pretrained, "pretrain_errors": self.pretrain_errors, "lambda": asdict(self.controller)}
        return state_of(self, identity(self, "paper", self.validation, budget=self.budget.to_dict()), arrays, facts)

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        """Takes over what `state` handed out; the training goes on as if it had never stopped."""
        here = self.state()
        same_run(facts.get("run"), here[1]["run"])
        same_types(facts, here[1])
        same_shapes(arrays, here[0], len(self.problem))
        self.pretrained, self.pretrain_errors = facts["pretrained"], list(facts["pretrain_errors"])
        self.controller = LambdaController(**facts["lambda"])
        self.live = Cases(self.problem, arrays["live/row"].copy(), arrays["live/mask"].copy(), self.cap)
        self.trail_action = arrays["trail/action"].copy()
        self.trail_probability = arrays["trail/probability"].copy()
        self.trail_length = arrays["trail/length"].copy()
        self.memory.load(part(arrays, "memory/"))
        if facts["step"] or self.memory.size:
            self.optimiser = self._adam(self.config.lr_start)
        load_shared(self, arrays, facts)


def policy_of(weights: Weights, schema: Schema, config: TrainConfig, encoder: Encoder = dense) -> Greedy:
    """The greedy policy of a snapshot's weights."""
    device = torch.get_default_device() if config.device is None else torch.device(config.device)
    with own_torch(0):
        network = QNetwork(schema, config.width, encoder)
    load_weights(network, weights)
    return Greedy(NetworkValues(network.to(device).eval(), device))
