"""Training of a stack, a piece of work at a time: the learners of each member, their weights, a pool of states, and value heads.

Values are learned by one-step bootstrapping, as Q-learning does, on states of rows that the belief has not seen: what follows a
test is looked up, the belief there is known, and the averaged heads say what is to be expected from there on.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from askwise.components.networks import soft_update
from askwise.components.torch_state import own_random_numbers, own_torch
from askwise.core.arrays import Arrays, Bools, Doubles, Floats, Ints
from askwise.core.episode import replay, rollout
from askwise.core.policy import Exploring
from askwise.core.problem import Problem
from askwise.family import losses
from askwise.family.conditions import Scale, costs_alone, decision_money, log_prior
from askwise.family.config import DESIGN as FAMILY
from askwise.family.config import FamilyConfig
from askwise.family.forward import uncalibrated
from askwise.family.losses import Outcome
from askwise.family.network import ValuePrediction
from askwise.family.states import LiveCases, Observation
from askwise.stack import class_weights
from askwise.stack.checkpoint import check_state
from askwise.stack.config import DESIGN, StackConfig
from askwise.stack.folds import Folds
from askwise.stack.held_out import HeldOutBeliefs
from askwise.stack.inference import Stack, head_inputs, head_sizes, next_in_order
from askwise.stack.learners import shift
from askwise.stack.members import MemberFitting, MemberTask, MemberTime, OneByOne, together
from askwise.stack.order import refined
from askwise.stack.outlook import Outlook
from askwise.stack.pool import Pool
from askwise.stack.side_by_side import SideBySide
from askwise.stack.stages import fit_stages
from askwise.stack.states import StateMaker, some_of
from askwise.stack.stopping import stopped
from askwise.training.checkpoint import TrainingState, identity, load_shared, part, state_of
from askwise.training.checkpoint_checks import same_run

PROBED, FEWEST_STATES = 200, 1_000  # states whose beliefs are timed, and with which the pool begins however short the time
WEIGHT_STATES = 20_000  # from which the weights of the learners are learned, about


class StackTrainer:
    """One training run. `done` is how much of it is over; the caller moves it on by time, if it has a limit."""

    def __init__(
        self,
        problem: Problem,
        folds: Folds,
        order: Ints,
        config: StackConfig,
        seed: int = 0,
        lacking: Doubles | None = None,
        threads: int = 1,
        fitting: MemberFitting | None = None,
    ) -> None:
        self.problem, self.folds, self.config, self.seed = problem.trainable(), folds, config, seed
        self.first_order = order  # of the states that the learners of the classes see
        self.schema, self.scale, self.alone = problem.schema, Scale.of(problem), costs_alone(problem.schema)
        self.breadths, self.rng = DESIGN.breadths_for(problem.schema.n_tests), np.random.default_rng(seed)
        self.maker = StateMaker.of(problem, order, config, lacking)
        self.sampler = self.maker.sampler
        self.task, self.fitting = MemberTask(self.maker, folds, config, seed, threads), fitting or OneByOne(MemberTime())
        self.loss = (problem.loss / problem.loss_scale).astype(np.float32)
        self.common: Arrays = {"prior": log_prior(problem), "shift": shift(problem), "calibration": uncalibrated()}
        self.seconds: Callable[[str], float] = lambda part: math.inf  # for a part of the training that begins now, see `plan`
        self.members: list[Arrays] = []  # the learners of each
        self.early: dict[int, Arrays] = {}  # and of members that were fitted before their turn
        self.refined, self.staged = False, folds.members > 1
        self._follow(order)
        self.step, self.done, self.grown = 0, 0.0, 0
        self.weighs = problem.rule is None and self.schema.n_classes <= config.weighed_classes
        inputs, outputs = head_sizes(self.schema, self.weighs)
        with own_torch(seed):
            self.network = SideBySide(folds.heads, inputs, config.value_width, 2, outputs)
            self.torch_rng = torch.get_rng_state()
        self.mean = copy.deepcopy(self.network).requires_grad_(False)
        self.optimiser = torch.optim.AdamW(
            self.network.parameters(), lr=config.value_rate, weight_decay=config.weight_decay, fused=True
        )

    def _follow(self, order: Ints) -> None:
        """Values are learned for this order."""
        self.order, self.rank = order, np.argsort(order)
        self.maker = StateMaker.of(self.problem, order, self.config, self.sampler.lacking)
        self.sampler = self.maker.sampler
        self.pool = Pool(self.problem, self.rank, self.config.successors, self._held_out_belief)

    # ------------------------------------------------------------------ the loop

    @property
    def finished(self) -> bool:
        return self.step >= self.config.value_steps

    @property
    def ready(self) -> bool:  # to be measured: it has beliefs
        return any(name.startswith("weight.") for name in self.common)

    def advance(self) -> None:
        """How networks see columns and how large trees are, the learners of a member or several, the weights of the learners, the
        order, trees for its prefixes, the pool, or a gradient step of the value heads."""
        if self.task.features is None:
            self.task = self.task.tried(self.seconds("trial"))
        elif len(self.members) < self.folds.members:
            self._fit_members()
        elif not self.ready:
            self._fit_weights()
        elif not self.refined:
            self._refine_order()
        elif not self.staged:
            self._fit_stages()
        elif not len(self.pool.row):
            rows = self._pool_rows()
            beliefs = 1 + min(self.config.successors, self.schema.n_tests)  # of a state, and after each of its tests
            states = self._affordable_states(rows, self.config.pool_states, self.seconds("pool") / beliefs, self.beliefs)
            row = some_of(rows, states, self.rng)
            self.pool.add(row, self.maker.masks(row, self.rng), None, self.rng)
        else:
            if self.progress * (self.config.growths + 1) >= self.grown + 1:
                self._grow()
            with own_random_numbers(self):
                self._value_step()
            self.step += 1

    @property
    def progress(self) -> float:
        """How much of the value steps is over."""
        return max(self.step / self.config.value_steps, self.done)

    # ------------------------------------------------------------------ the belief

    def _fit_members(self) -> None:
        self.early |= self.fitting(self.task, self.missing)
        while (learners := self.early.pop(len(self.members), None)) is not None:
            self.members.append(learners)
        if len(self.members) == self.folds.members:
            self.members = stopped(self.members)

    @property
    def missing(self) -> list[int]:
        """Members that are still to be fitted."""
        return [k for k in range(len(self.members), self.folds.members) if k not in self.early]

    @property
    def beliefs(self) -> HeldOutBeliefs:
        return HeldOutBeliefs(self.problem, self.folds, self.common, self.members)

    def _fit_weights(self) -> None:
        rows = self.folds.held_out  # what is learned from the logits takes as long as these, about
        states = self._affordable_states(rows, WEIGHT_STATES, self.seconds("weights") / 2, self.beliefs.logits)
        row = some_of(rows, states, self.rng)
        mask = self.maker.masks(row, self.rng)
        with own_random_numbers(self):
            common, own = self.beliefs.fitted_weights(row, mask)
        before = self.common, *self.members  # they may have weights of learners that count no more
        self.common, *self.members = (
            {name: value for name, value in old.items() if not name.startswith("weight.")} | new
            for old, new in zip(before, (common, *own), strict=True)
        )

    def _fit_stages(self) -> None:
        nodes = self.config.most_nodes - len(self.members[0]["trees.column"])
        if stages := fit_stages(self.task, self.order, nodes, self.seconds("stages")):
            self.members[0] |= {f"stages.{name}": value for name, value in stages.items()}
            self._fit_weights()
        self.staged = True

    def _refine_order(self) -> None:
        lost = self.beliefs.comparison(self.config.refining_rows, self.rng)
        self._follow(refined(self.first_order, self.schema.costs, lost, self.config.refined_tests, self.seconds("moves")))
        self.refined = True

    def _held_out_belief(self, row: Ints, mask: Bools) -> Floats:
        return self.beliefs(row, mask)

    # ------------------------------------------------------------------ the pool

    def _pool_rows(self) -> Ints:
        """Rows that values are learned from: of many some, in proportion to their weights."""
        rows, most = self.folds.held_out, self.config.pool_rows
        if self.problem.weight is not None:
            share = self.problem.weight[rows]
            return self.rng.choice(rows, min(most, len(rows)), p=share / share.sum())
        return self.rng.permutation(rows)[:most]

    def _affordable_states(self, rows: Ints, most: int, seconds: float, compute: Callable[[Ints, Bools], Any]) -> int:
        """For how many states of the rows this can be computed in the time."""
        if math.isinf(seconds):
            return most
        probe, began = rows[:PROBED], time.monotonic()
        compute(probe, self.maker.masks(probe, self.rng))
        each = (time.monotonic() - began) / len(probe)
        return min(most, max(FEWEST_STATES, int(seconds / max(each, 1e-9))))

    def _grow(self) -> None:
        """States that the present policies visit, at random tradeoffs and budgets, with some exploration."""
        config, first, visited = self.config, self.schema.first_test, []
        lams = np.exp(self.rng.uniform(math.log(self.scale.least), math.log(self.scale.high), 8)).tolist()
        costs, rows = self.schema.costs, np.unique(self.pool.row)
        for b, h, part_rows in self.folds.parts:
            member, own_rows = self.member(b, h), np.intersect1d(rows, part_rows)
            for i, lam in enumerate(lams):
                followed = own_rows[i :: len(lams)]
                if not len(followed):
                    continue
                cap = None if i % 2 else max(1, int(costs.total * self.rng.random() ** 2))
                breadth = self.breadths[i % len(self.breadths)]
                weights = tuple(self._class_weights(1)[0].tolist()) if self.weighs else None
                values = member.values(lam if i % 4 else 0.0, breadth=breadth, class_weights=weights)
                explorer = Exploring(values, config.explore_share, self.rng)
                done = rollout(self.problem, explorer, cap, followed)
                steps = replay(self.problem, done.row, done.padded, done.length, cap)
                visited.append((steps.cases.row, steps.cases.mask, steps.action - first))
        row, mask, taken = (np.concatenate([f[i] for f in visited]) for i in range(3))
        most = config.pool_states if math.isinf(self.seconds("pool")) else len(self.pool.row)
        pick = self.rng.permutation(len(row))[: most // 2]
        row, mask, taken = row[pick], mask[pick], taken[pick]
        self.sampler.take_free(self.problem, row, mask, np.zeros_like(mask))
        self.pool.add(row, mask, np.where(taken >= 0, taken, self.order[0]), self.rng)
        self.grown += 1

    # ------------------------------------------------------------------ the value heads

    def _value_step(self) -> None:
        config, pool, n = self.config, self.pool, self.config.value_batch
        who = np.concatenate([rows[self.rng.integers(len(rows), size=n)] for rows in self._eligible])
        row, mask = pool.row[who], pool.parts["mask"][who]
        live, breadth = self._asked(row, mask), self.rng.choice(self.breadths, len(who))
        observed, weights = Observation.of(live, self.problem, self.scale, self.alone), self._class_weights(len(who))
        view = self._outlook(self.network, observed, pool.parts["belief"][who], breadth, weights)
        slot = self._looked_up(who, view.best.numpy(), observed.legal.numpy())
        case = np.repeat(np.arange(len(who)), slot.shape[1])
        test = np.take_along_axis(pool.parts["test"][who], slot, 1).reshape(-1)
        target = self._targets(
            live.after(case, test, self.problem), pool.parts["after"][who[case], slot.reshape(-1)], breadth[case], weights[case]
        )
        holds = torch.from_numpy(pool.parts["possible"][who[case], slot.reshape(-1)]) & observed.legal[case, test]
        loss = 0 * view.predicted.optimism.sum()
        if holds.any():
            loss = losses.value_loss(view.predicted.value_after[case, test][holds], _at(target, holds).total)
        is_best = holds & (view.best[case] == torch.from_numpy(test))
        if is_best.any():
            at = torch.from_numpy(case)[is_best]
            best_value = view.predicted.value_after.detach()[at, view.best[at]] + view.predicted.optimism[at]
            parts = best_value, view.predicted.final_loss[at], view.predicted.later_cost_share[at]
            loss = loss + losses.best_loss(*parts, _at(target, is_best), observed.cost_bound[at])
        if view.predicted.external_value is not None:
            weight = weights[np.arange(len(row)), self.problem.labels[row]] / self.scale.loss_scale
            lost = torch.from_numpy(self.problem.external_losses[row] * weight).float()
            bill = observed.bill(live.lam, self.scale)
            loss = loss + losses.external_loss(view.predicted.external_value, lost, bill, self.problem.rule)
        for group in self.optimiser.param_groups:
            group["lr"] = config.value_rate * FamilyConfig.rate_factor(self.progress)
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), 1.0)
        self.optimiser.step()
        soft_update(self.mean, self.network, max(2e-3, 5 / (self.step + 10)))

    @property
    def _eligible(self) -> list[Ints]:
        """Of each head: the states of the pool that it may learn from."""
        part_of = self.folds.head[self.pool.row]
        states = [np.flatnonzero(part_of != h) for h in range(self.folds.heads)]
        return [rows if len(rows) else np.arange(len(part_of)) for rows in states]

    def _asked(self, row: Ints, mask: Bools) -> LiveCases:
        """The states under random tradeoffs, hard budgets and refusals."""
        n, rng, scale = len(row), self.rng, self.scale
        lam = scale.least * (scale.high / scale.least) ** rng.random(n)
        cap, capped = self.sampler.caps(self.problem, row, mask, rng)
        lam[capped & (rng.random(n) < self.config.only_capped_share)] = scale.least
        none = np.zeros(n, np.int64)
        return LiveCases(row, mask, lam, cap, self.sampler.refusals(n, rng), none, none)

    def _class_weights(self, n: int) -> Doubles:
        """n, K: how the classes weigh in states that are learned from."""
        alike = np.ones((n, self.schema.n_classes))
        return class_weights.drawn(n, self.common["prior"], self.config.weighed_share, self.rng) if self.weighs else alike

    def _looked_up(self, who: Ints, best: Ints, legal: Bools) -> Ints:
        """B, value_tests: which of the tests of the pool are looked up: the best, and any others that are legal."""
        test = self.pool.parts["test"][who]
        key = self.rng.random(test.shape) + 2 * np.take_along_axis(legal, test, 1) + 4 * (test == best[:, None])
        return np.argsort(-key, 1)[:, : self.config.value_tests]

    def _outlook(self, network: SideBySide, observed: Observation, belief: Floats, breadth: Ints, weights: Doubles) -> Outlook:
        F, rows, mask = self.schema.n_tests, observed.cases.row, observed.cases.mask
        stakes = (belief * weights).astype(np.float32) if self.weighs else belief
        decision_loss, fee = observed.deciding(stakes, self.loss, self.problem.rule)
        shown = head_inputs(belief, decision_loss[:, None], *self.beliefs.inputs(rows, mask))
        one_hot = breadth[:, None] == np.array(DESIGN.breadths)
        chosen = np.concatenate([one_hot, np.log(weights)] if self.weighs else [one_hot], 1, dtype=np.float32)
        asked = observed.conditions, observed.affordable, torch.from_numpy(chosen)
        inputs = torch.cat([torch.from_numpy(shown), *asked], 1)
        out = network(inputs.view(self.folds.heads, -1, inputs.shape[1])).reshape(len(rows), -1)
        candidates = next_in_order(observed.legal.numpy(), self.order, self.rank, breadth[:, None])
        D = torch.from_numpy(decision_loss)
        value_after = D[:, None] + out[:, :F]
        totals = (value_after.detach() + observed.scaled_cost).masked_fill(~torch.from_numpy(candidates), math.inf)
        best = totals.argmin(1)
        best_cost = observed.scaled_cost.gather(1, best[:, None])[:, 0]
        G = (value_after.gather(1, best[:, None])[:, 0] + best_cost + out[:, F]).detach()
        predicted = ValuePrediction(
            value_after,
            out[:, F],
            D + out[:, F + 1],
            nn.functional.softplus(out[:, F + 2] - FAMILY.cost_offset),
            out[:, F + 3] if out.shape[1] > F + 3 else None,
        )
        return Outlook(predicted, D, torch.from_numpy(fee), best, best_cost, G, observed.open & (G + FAMILY.tie_margin < D))

    @torch.no_grad()
    def _targets(self, live: LiveCases, belief: Floats, breadth: Ints, weights: Doubles) -> Outcome:
        """What the averaged heads expect of cases that have just bought a test."""
        observed = Observation.of(live, self.problem, self.scale, self.alone)
        view = self._outlook(self.mean, observed, belief, breadth, weights)
        end = losses.ending(view.decision_loss, view.fee)
        if view.predicted.external_value is not None:
            may_ask = torch.from_numpy(observed.cases.legal()[:, self.schema.n_decisions])
            end = losses.ending(
                view.decision_loss, view.fee, view.predicted.external_value, observed.bill(live.lam, self.scale), may_ask
            )
        cost = view.best_cost + observed.cost_bound * view.predicted.later_cost_share
        return losses.value_target(end, Outcome(view.continue_value, view.predicted.final_loss, cost), view.continues)

    # ------------------------------------------------------------------ what was learned

    def member(self, b: int, h: int) -> Stack:
        """The policy of one member of the belief and one head."""
        return self._stack({**self.common, **self.members[b], **self._heads(slice(h, h + 1))})

    def stack(self) -> Stack:
        """The policy that is used: all members together."""
        learners = [name.removeprefix("weight.") for name in self.common if name.startswith("weight.")]
        return self._stack({**self.common, **together(self.members, learners), **self._heads(slice(None))})

    def _heads(self, which: slice) -> Arrays:
        """Some of the value heads, by the names under which they are stored."""
        return {f"heads.{name}": value[which] for name, value in self.mean.arrays().items()}

    def _stack(self, weights: Arrays) -> Stack:
        facts = self.scale, self.rank, self.problem.loss, self.schema.owner, self.alone, None, self.problem.rule
        return Stack(weights, *facts, decision_money(self.schema))

    # ------------------------------------------------------------------ checkpoints

    @property
    def networks(self) -> dict[str, nn.Module]:
        return {"network": self.network, "mean": self.mean}

    def state(self) -> TrainingState:
        """Everything the training consists of: arrays, and facts that fit into JSON."""
        arrays: Arrays = {
            "order": self.first_order,
            "refined_order": self.order,
            **{f"features/{name}": value for name, value in (self.task.features or {}).items()},
        }
        for k, learners in [*enumerate(self.members), *self.early.items()]:
            arrays |= {f"member/{k}/{name}": value for name, value in learners.items()}
        weights = part(self.common, "weight.")  # what else the members have in common follows from the rows
        arrays |= {f"weight/{name}": value for name, value in weights.items()}
        arrays |= {f"pool/{name}": value for name, value in self.pool.state().items()} if len(self.pool.row) else {}
        leaves = 0 if self.task.features is None else self.task.config.leaves
        facts: dict[str, Any] = {"done": self.done, "grown": self.grown, "leaves": leaves}
        facts |= {"members": len(self.members), "early": sorted(self.early), "learners": sorted(weights), "refined": self.refined}
        facts["staged"] = self.staged
        return state_of(self, identity(self, "stack", self.problem, order=self.first_order.tolist()), arrays, facts)

    def load(self, arrays: Arrays, facts: dict[str, Any]) -> None:
        """Takes over what `state` handed out; the training goes on as if it had never stopped."""
        here = self.state()
        same_run(facts.get("run"), here[1]["run"])
        check_state((arrays, facts), here, self.problem, self.folds, self.config)
        if facts["leaves"]:
            self.task = self.task.with_trial(part(arrays, "features/"), facts["leaves"])
        self.members = [part(arrays, f"member/{k}/") for k in range(facts["members"])]
        self.early = {k: part(arrays, f"member/{k}/") for k in facts["early"]}
        self.common |= {f"weight.{name}": value for name, value in part(arrays, "weight/").items()}
        self.done, self.grown, self.refined, self.staged = (facts[name] for name in ("done", "grown", "refined", "staged"))
        self._follow(arrays["refined_order"])
        if pool := part(arrays, "pool/"):
            self.pool.load(pool)
        load_shared(self, arrays, facts)


def _at(outcome: Outcome, which: Tensor) -> Outcome:
    return Outcome(*(each[which] for each in outcome))
