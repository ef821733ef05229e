"""A trained model as data: the policies on its frontier, how tables become cases, the budget it works under; and how it decides.

Sessions, files, exports and descriptions are functions of it, elsewhere; `askwise.facade.Model` has them as methods. It needs no
torch, unless it was trained with an encoder of the user's own.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from askwise.core.arrays import Array, Doubles, Ints
from askwise.core.budget import OPTIONAL_BUDGET, Budget
from askwise.core.cases import Cases
from askwise.core.episode import Episodes, by_row, rollout
from askwise.core.measures import Measure
from askwise.core.parameters import checked
from askwise.core.policy import Constant, Greedy, Mixture, Policy
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.core.scoring import RULES
from askwise.errors import Doubt, InputError
from askwise.evaluation import Report
from askwise.family.inference import Family
from askwise.frontier.choice import Blend, choose
from askwise.frontier.confidence import upper_bound
from askwise.frontier.hull import staircase
from askwise.frontier.point import AT_ONCE, Point, neighbours
from askwise.frontier.targets import Judge
from askwise.model import fit_rows, targeting
from askwise.model.acquisitions import AcquisitionReport
from askwise.paper.numpy_network import DenseValues
from askwise.tables.encoding import Encoding
from askwise.tables.external import answers
from askwise.tables.forms import Form
from askwise.tables.gaps import known_at_start
from askwise.training.result import VALIDATION

if TYPE_CHECKING:
    from askwise.components.encoders import Encoder


@dataclass(frozen=True, eq=False, repr=False)
class LearnedModel:
    """What a fit learns and a file holds."""

    schema: Schema
    encoding: Encoding
    loss: Doubles  # K, K: loss[truth, decision], class weights included
    at_once: tuple[float, ...]  # values of the decisions when nothing is known
    points: tuple[Point, ...]  # all that some budget could follow, by rising cost; the first decides at once
    trained_for: Budget
    budget: Budget
    known: tuple[str, ...]
    seed: int
    unit: str  # of the costs, for showing
    facts: dict[str, Any]  # settings, versions, metrics, fingerprint of the data
    external: Any = None  # an existing classifier, fitted or `Recorded`
    encoder: Encoder | None = None  # of the user's own
    family: Family | None = None  # one set of weights for all points, at any tradeoff and any hard budget
    rule: str | None = None  # the scoring rule by which beliefs were judged; None: decisions were, by `loss`
    targeted: tuple[Point, ...] = ()  # measured class by class, under several class weights; the first decides at once

    @cached_property
    def blend(self) -> Blend:
        """Which points of the frontier the budget follows."""
        if self._target is not None:
            at = next(i for i, point in enumerate(self.frontier) if point is self._target)
            return Blend(at, at, 0.0)
        cost, loss, error = zip(*((self._at_most(p), p.loss, p.measure.loss_error) for p in self.frontier), strict=True)
        if self.family is None:
            return choose(cost, -np.array(loss), error, self.budget, str(self.facts["config"].get("mixture", "always")))
        return choose(np.maximum.accumulate(cost), -np.array(loss), error, self.budget, "if better", neighbours(self.frontier))

    @cached_property
    def _target(self) -> Point | None:
        """What reaches the targets of the budget, if it has any."""
        if not self.budget.targets:
            return None
        judge = Judge(self.schema.classes, self.losses, self.rule)
        points = targeting.candidates(self.points, self.targeted, self.budget)
        kept = targeting.within(points, self.budget, self.schema.costs, self.family)
        point = targeting.targeted(points, judge, self.budget, kept, f" {self.unit}".rstrip())
        return point if self.class_weights is None else targeting.judged(point, self.losses)

    @cached_property
    def class_weights(self) -> tuple[float, ...] | None:
        """How the classes weigh against each other at the budget; None: as in the fit."""
        if self.budget.class_weights is None or self.family is None:
            return None
        return targeting.asked_weights(self.budget, self.schema.classes, self.family.weights["prior"])

    @property
    def losses(self) -> Doubles:
        """K, D: `loss`, as the classes weigh at the budget."""
        return targeting.weighed_loss(self.loss, self.class_weights)

    @cached_property
    def _points(self) -> tuple[Point, ...]:
        """All that the budget could follow, but for its targets. An average budget follows what was measured to cost so much."""
        weights, exactly = self.class_weights, self.budget.average is None
        return self.points if weights is None else targeting.weighed(self.targeted, weights, self.loss, exactly)

    def _at_most(self, point: Point) -> float:
        """What a point costs or, where the budget asks for a confidence, what it costs at most with that probability."""
        return upper_bound(point.cost, point.measure.cost_error, self.budget.confidence)

    @cached_property
    def followed(self) -> tuple[Point, Point]:
        """The two policies of which one is drawn; twice the same where nothing is."""
        first, second = self.frontier[self.blend.first], self.frontier[self.blend.second]
        if self.family is not None and self.blend.single:
            first = second = first.between(second, self.blend.share, self.family.scale.least)
        return first, second

    @cached_property
    def frontier(self) -> tuple[Point, ...]:
        """The points among which the budget chooses, by rising cost: deciding at once, and all that were measured, are sure to
        keep its hard part, and are better than every cheaper one. So a further constraint never promises more, and what is
        promised is what is run."""
        if self.family is None:
            within = on = self._points
        else:
            costs, most = self.schema.costs, self.budget.cap(self.schema.costs)
            within = self._points
            if most is not None and most < costs.most:
                within = tuple(p for p in within if self.family.most_paid(costs, p.prefix, p.cap) <= most)
            on = tuple(within[i] for i in staircase([p.cost for p in within], [-p.loss for p in within]).tolist())
        first, others = self._points[0], [p for p in on if p is not self._points[0]]
        if self._target is not None and self._target not in others:  # what a target follows may not be the best for its money
            others = sorted([*others, self._target], key=lambda p: p.cost)
        return (first, *others)

    @property
    def frontier_figures(self) -> list[dict[str, Any]]:
        """The frontier for machines: of every point its tradeoff, its kind of policy and what was measured."""
        return [{"lam": p.lam, "kind": self.kind_of(i), **p.measure.to_dict()} for i, p in enumerate(self.frontier)]

    def kind_of(self, i: int) -> str:
        """The kind of a policy of the frontier; the first of them buys nothing, and what a target follows may be like it."""
        return self.frontier[i].kind if i and self.frontier[i].prefix != 0 else AT_ONCE

    def limit(self, point: Point) -> int | None:
        """The units that cases which follow a point keep to; None where nothing limits them. A point that was measured under a
        hard budget is run under the same one; whoever follows an order pays no more than that costs."""
        costs = self.schema.costs
        most = self.budget.cap(costs)
        if self.family is None:
            return most
        limit = self.family.limit(costs, point.prefix, point.cap)
        return limit if limit is not None or most == costs.most else most

    @property
    def cap(self) -> int | None:
        """What no case may exceed by what it is asked, in units of the costs: the hard budget or a smaller measured one."""
        limits = [self.limit(point) for point in self.followed]
        return self.budget.cap(self.schema.costs) if None in limits else max(limits)  # type: ignore[type-var]

    @property
    def measured(self) -> Measure:
        """What the model is expected to come to at its budget, and how sure that is."""
        first, second = self.followed
        return first.measure.mixed(second.measure, self.blend.drawn)

    @property
    def measured_on(self) -> str:
        """Which cases its figures come from, in words that go on after their number."""
        return str(self.facts.get("measured_on", VALIDATION))

    @property
    def held_out_cases(self) -> str:
        """The same, without a number before it."""
        return "cases that the fit kept apart" if self.measured_on == VALIDATION else self.measured_on

    @property
    def expected(self) -> dict[str, Any]:
        """The same by name."""
        return self.measured.to_dict()

    @property
    def saturation(self) -> Point:
        """The cheapest of the best: no dearer policy did better where they were measured."""
        return self.frontier[int(np.argmin([p.loss for p in self.frontier]))]

    def at(self, budget: Budget | None) -> Self:
        """The same model under another budget, without training; None is the usual point. Hard budgets change what is learned, so
        they must not become smaller than the one it was trained for. With a larger one it still keeps to that, and says so: what
        it would do with more money was never measured."""
        budget = checked(budget, OPTIONAL_BUDGET, "budget") or Budget()
        targeting.check(budget, self.schema.classes, bool(self.targeted), str(self.facts.get("algorithm")))
        if self.family is not None:  # knows every budget
            return targeting.reached(replace(self, budget=budget))
        trained = self.trained_for.hard
        if budget.hard is not None and (trained is None or budget.hard < trained):
            was = "without a hard budget" if trained is None else f"for a hard budget of {float(trained):g}"
            less = f"it cannot keep to {float(budget.hard):g}"
            raise InputError(f"this model was trained {was}, so {less}; fit again with {budget}")
        if trained is not None and budget.hard is not None and budget.hard > trained:
            was = f"this model was trained for a hard budget of {float(trained):g} and keeps to it"
            warnings.warn(f"{was}; to spend up to {float(budget.hard):g} fit again with {budget}", Doubt, stacklevel=2)
        return targeting.reached(replace(self, budget=replace(budget, hard=trained)))

    @cached_property
    def policy(self) -> Policy:
        return self._policy(np.float32)

    @cached_property
    def _precise(self) -> Policy:
        """The same in double precision, whose sums do not depend on the batch in any digit that is shown."""
        return self._policy(np.float64)

    def _policy(self, dtype: Any) -> Policy:
        first, second = (self.arm(point, dtype) for point in self.followed)
        return Mixture(first, second, self.blend.drawn, self.seed) if self.blend.drawn else first

    def arm(self, point: Point, dtype: Any = np.float32) -> Greedy:
        """The policy of one point."""
        if self.family is not None:
            return self.family.follow(point, dtype)
        weights = point.weights
        if weights is None:
            return Greedy(Constant(self.at_once))
        if self.encoder is None:
            return Greedy(DenseValues(weights, dtype))
        from askwise.paper.config import TrainConfig
        from askwise.paper.train import policy_of

        return policy_of(weights, self.schema, TrainConfig.from_dict(self.facts["config"]), self.encoder)

    @cached_property
    def form(self) -> Form:
        """What can be answered to each test."""
        return Form(self.schema, self.encoding)

    @cached_property
    def fingerprint(self) -> str:
        """Short, and different for models that may decide differently, whatever their budget."""
        schema, costs = self.schema, self.schema.costs
        card = (schema.columns, schema.tests, schema.classes, costs.smallest_unit, self.known, self.seed, self.encoding.to_dict())
        every = *self.points, *self.targeted
        points = [(p.lam, p.prefix, p.cost, p.loss, p.cap, p.breadth, p.tests, p.class_weights) for p in every]
        digest = hashlib.sha256(repr((*card, points, *([] if self.rule is None else [self.rule]))).encode())
        sets = [self.family.weights] if self.family is not None else [p.weights or {} for p in self.points]
        weights = [weights[name] for weights in sets for name in sorted(weights)]
        for part in (self.loss, schema.owner, costs.own, costs.setup, costs.member, costs.sources, *weights):
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()[:16]

    def problem(self, X: Any, y: Any = None, known: Any = None, ids: Any = None) -> Problem:
        """Rows of a table as cases. `known`: a mask rows x tests of what these cases know, besides what everyone does."""
        values = self.encoding.transform(X)
        for name in self.encoding.strange(values):
            why = f"no value of column {name!r} in these rows occurred in training, so the column tells nothing here"
            warnings.warn(f"{why}; check that the values are written as in training", Doubt, stacklevel=3)
        external = answers(self.external, X, self.schema, values, self.encoding.columns, rule=self.rule)
        mask = known_at_start(self.schema, values, [self.known or None, known])
        judged = self.loss if self.rule is None else self.rule
        return Problem.build(self.schema, values, y, known=mask, external=external, ids=ids, loss=judged).with_loss(self.losses)

    def predict(self, X: Any, known: Any = None, ids: Any = None) -> Array:
        """The decisions."""
        decided = [done.decision for _, done in self._blocks(self.problem(X, known=known, ids=ids))]
        return self.names_of(np.concatenate(decided))

    def predict_proba(self, X: Any, known: Any = None, ids: Any = None) -> Doubles:
        """See `belief`."""
        problem = self.problem(X, known=known, ids=ids)
        return self.belief(problem, self.rollout(problem))

    def rollout(self, problem: Problem) -> Episodes:
        """Buys and decides. The two policies of a mixture may keep to different limits."""
        limits = [self.limit(point) for point in self.followed]
        if limits[0] == limits[1] or not isinstance(self.policy, Mixture):
            return rollout(problem, self.policy, limits[0])
        second = self.policy.takes_second(problem.keys)
        arms = zip((self.policy.first, self.policy.second), limits, (~second, second), strict=True)
        return by_row([rollout(problem, arm, limit, np.flatnonzero(who)) for arm, limit, who in arms if who.any()])

    def report(self, problem: Problem) -> Report:
        """What it does on cases whose classes are known, with the probabilities with which it decides."""
        if problem.y is not None and (too_good := fit_rows.sentence(self.facts, problem)):
            warnings.warn(too_good, Doubt, stacklevel=2)
        done = self.rollout(problem)
        return Report(problem, replace(done, belief=self.belief(problem, done)))

    def acquire(self, X: Any, known: Any = None, ids: Any = None) -> AcquisitionReport:
        """Buys and decides, case by case."""
        costs, decisions, beliefs, tests = [], [], [], []
        for block, done in self._blocks(self.problem(X, known=known, ids=ids)):
            costs.append(done.cost)
            decisions.append(done.decision)
            beliefs.append(self.belief(block, done))
            tests += Report(block, done).sequences
        cost = self.schema.costs.money(np.concatenate(costs))
        decision, belief = np.concatenate(decisions), np.concatenate(beliefs)
        prediction, of_class = self.names_of(decision), np.minimum(decision, self.schema.n_classes - 1)
        chances = np.where(decision == of_class, belief[np.arange(len(belief)), of_class], np.nan)
        index = getattr(X, "index", None) if hasattr(X, "columns") else None
        by_class = None if self.rule is None else dict(zip(self.schema.classes, belief.T, strict=True))
        return AcquisitionReport(cost, prediction, chances, tests, index, by_class)

    def names_of(self, decision: Ints) -> Array:
        """N: what is decided, by name."""
        schema = self.schema
        names = np.array(schema.classes)
        if schema.other_decisions:  # which may be of another type
            names = np.empty(schema.n_decisions, object)
            names[:] = schema.decisions
        named: Array = names[decision]
        return named

    def _blocks(self, problem: Problem, rows: int = 65_536) -> Iterator[tuple[Problem, Episodes]]:
        """Some cases at a time: the decisions of all of them could take more memory than the data."""
        for i in range(0, len(problem), rows):
            block = problem.take(slice(i, i + rows))
            yield block, self.rollout(block)

    def belief(self, problem: Problem, done: Episodes, policy: Policy | None = None, chunk: int = 4096) -> Doubles:
        """N, K: the class probabilities with which each case was decided: those of cases as they come or, by the paper's
        algorithm with class weights, of the weighted cases. `policy`: the one that was followed, unless it is the model's."""
        out = np.empty((len(done.row), self.schema.n_classes))
        following = policy or self._precise
        shared = None if self.family is None else self.family.values(0.0, np.float64)  # the same at every tradeoff
        for i in range(0, len(out), chunk):
            part = slice(i, i + chunk)
            state = Cases(problem, done.row[part], done.mask[part], None).observe()
            if shared is not None:
                out[part] = shared.believe(state.values, state.mask)
            else:
                values = following.values(state)
                assert values is not None
                out[part] = self.believed(values)
        return Cases(problem, done.row, done.mask, None).believed(out, done.action[done.first + done.length - 1])

    def believed(self, q: Array) -> Doubles:
        """B, K: by the paper's algorithm, class probabilities from the values of the classes."""
        K = self.schema.n_classes
        return probabilities(-q[:, :K].astype(np.float64), self.loss[:, :K])

    @property
    def loss_scale(self) -> float:
        """What losses were divided by in training, see `Problem.loss_scale`."""
        return float(self.facts["loss_scale"])

    @property
    def weighted(self) -> bool:
        """Decisions are judged and errors are not all alike, so accuracy is not what it was trained for."""
        return self.rule is None and not self._alike

    @property
    def _alike(self) -> bool:
        return np.array_equal(self.loss, 1 - np.eye(self.schema.n_classes))

    @property
    def judged_by_loss(self) -> bool:
        """What it was trained for is a loss, and not the accuracy: mistakes are not all alike, or beliefs are judged."""
        return self.rule is not None or self.weighted

    @property
    def objective(self) -> str:
        """What training was about, in words: where mistakes are not all alike, or beliefs are judged, it is not the accuracy."""
        if self.rule is not None:
            return f"{'' if self._alike else 'weighted '}{RULES[self.rule]}"
        if not self.weighted:
            return "accuracy"
        return "loss" if abs(self.loss_scale - 1) < 1e-9 else "loss / scale"

    def objective_value(self, loss: float, accuracy: float) -> float:
        """The same as a number."""
        if self.rule is not None:
            return loss
        return loss / self.loss_scale if self.weighted else accuracy


def probabilities(expected_loss: Doubles, loss: Doubles) -> Doubles:
    """B, K: the class probabilities p that explain expected losses, e = p L, where the largest loss of each row of L is 1.

    For 0/1 losses p = 1 - e. Estimates are not exact, so what comes out is moved to the nearest probabilities, which keeps the
    order of the classes wherever these differ.
    """
    largest = loss.max(1, keepdims=True)
    scaled = loss / np.where(largest > 0, largest, 1)
    K = len(loss)
    usual = np.allclose(scaled, 1 - np.eye(K))
    p = 1 - expected_loss if usual else expected_loss @ np.linalg.pinv(scaled)
    # the projection on the simplex: max(p - t, 0) with the t that makes the sum 1
    ordered = -np.sort(-p, 1)
    above = (np.cumsum(ordered, 1) - 1) / np.arange(1, K + 1)
    t = np.take_along_axis(above, (ordered > above).sum(1, keepdims=True) - 1, 1)
    p = np.maximum(p - t, 1e-6)
    normalised: Doubles = p / p.sum(1, keepdims=True)
    return normalised
