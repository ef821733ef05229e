"""A slow second opinion on prices and on the MDP: sets, dictionaries and fractions, one case at a time.

Nothing here looks at what the package derives from its inputs; a `World` holds what a user would write, and the rules are
applied to that. `random_world` makes small worlds in which everything may occur.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from askwise.core.budget import HardBudget
from askwise.core.cost_spec import CostSpec
from askwise.core.episode import Episodes
from askwise.core.problem import Problem
from askwise.core.schema import Schema

MONEY = ("0", "0.1", "0.2", "0.3", "0.7", "1", "2.5")  # 0.1, 0.2 and 0.7 have no exact binary form


class NaiveCosts:
    """cost(S) read aloud: carry out what S needs and is not known, pay each set-up that any of it needs, once."""

    def __init__(self, costs: dict[str, Any], setup: dict[str, Any] | None = None, derived: dict[str, Any] | None = None) -> None:
        self.own = {test: Fraction(str(price)) for test, price in costs.items()}
        self.setup = {name: (Fraction(str(price)), set(tests)) for name, (price, tests) in (setup or {}).items()}
        self.derived = derived or {}

    def needs(self, test: str, known: set[str]) -> set[str]:
        """What must be carried out for one test; nothing for a known one, nor for what that was computed from."""
        if test in known:
            return set()
        return {test}.union(*(self.needs(source, known) for source in self.derived.get(test, ())))

    def cost(self, tests: set[str], known: set[str] = frozenset()) -> Fraction:
        done = set().union(*(self.needs(test, known) for test in tests))
        setups = sum((price for price, members in self.setup.values() if done & members), Fraction(0))
        return sum((self.own.get(test, Fraction(0)) for test in done), Fraction(0)) + setups

    def price(self, test: str, held: set[str], known: set[str] = frozenset()) -> Fraction:
        return self.cost(held | {test}, known) - self.cost(held, known)


@dataclass
class World:
    """A problem as a user writes it, every test with the columns it reveals."""

    reveals: dict[str, list[str]]
    costs: dict[str, Any]
    X: np.ndarray
    y: list[Any]
    classes: list[Any]
    setup: dict[str, Any] = field(default_factory=dict)
    derived: dict[str, list[str]] = field(default_factory=dict)
    known: Any = None  # mask N x F, or names
    needs: list[str] | None = None  # of the existing classifier
    external: list[Any] | None = None
    loss: list[list[float]] | str | None = None
    hard: Any = None
    name: str = "a world"
    decisions: dict[str, Any] = field(default_factory=dict)  # that are not classes, with what they cost

    @property
    def tests(self) -> list[str]:
        return list(self.reveals)

    @property
    def naive_costs(self) -> NaiveCosts:
        return NaiveCosts(self.costs, self.setup, self.derived)

    def problem(self, **more: Any) -> Problem:
        columns = [c for names in self.reveals.values() for c in names]
        schema = Schema.build(
            columns,
            self.classes,
            CostSpec(self.costs, self.setup, self.derived, self.reveals, self.decisions),
            external_needs=self.needs,
        )
        return Problem.build(schema, self.X, self.y, known=self.known, external=self.external, loss=self.loss, **more)

    def cap(self, problem: Problem) -> int | None:
        return None if self.hard is None else HardBudget(self.hard).cap(problem.schema.costs)


class NaiveCase:
    """One row of a world, decided step by step."""

    def __init__(self, world: World, row: int) -> None:
        self.world, self.costs = world, world.naive_costs
        values = iter(world.X[row])
        self.values = {test: [float(next(values)) for _ in names] for test, names in world.reveals.items()}
        self.missing = {test for test, found in self.values.items() if any(v != v for v in found)}
        if world.known is None:
            self.known = set()
        elif isinstance(world.known, list):  # names: known wherever there is a value
            self.known = set(world.known) - self.missing
        else:
            self.known = {test for test, is_known in zip(world.tests, world.known[row], strict=True) if is_known}
        self.held = set(self.known)
        self.truth = world.y[row]
        self.answer = None if world.external is None else world.external[row]
        if np.ndim(self.answer):  # probabilities
            self.answer = world.classes[int(np.argmax(self.answer))]
        self.spent = Fraction(0)
        self.decision: Any = None

    def actions(self) -> list[tuple[str, Any]]:
        """All actions in the order in which they are numbered."""
        w = self.world
        ask = [] if w.needs is None else [("ask", None)]
        return [("say", c) for c in (*w.classes, *w.decisions)] + ask + [("buy", t) for t in w.tests]

    def wanted(self, action: int) -> set[str]:
        kind, what = self.actions()[action]
        return {"say": set(), "ask": set(self.world.needs or ()), "buy": {what}}[kind]

    def cost_of(self, action: int) -> Fraction:
        kind, what = self.actions()[action]
        if kind == "say":
            return Fraction(str(self.world.decisions.get(what, 0)))
        return self.costs.cost(self.held | self.wanted(action), self.known) - self.costs.cost(self.held, self.known)

    def can_have(self, test: str) -> bool:
        """Held, or there with all that it is computed from."""
        sources = self.world.derived.get(test, ())
        return test in self.held or (test not in self.missing and all(self.can_have(source) for source in sources))

    def legal(self, action: int) -> bool:
        kind, what = self.actions()[action]
        has_all = all(self.can_have(test) for test in self.wanted(action))
        affords = self.world.hard is None or self.spent + self.cost_of(action) <= Fraction(str(self.world.hard))
        return has_all and affords and not (kind == "buy" and what in self.held)

    def score_of(self, belief: list[float]) -> float:
        """What a belief loses, by a scoring rule."""
        if self.world.loss == "log":
            return -math.log(max(belief[self.world.classes.index(self.truth)], 1e-6))
        return sum((p - (name == self.truth)) ** 2 for p, name in zip(belief, self.world.classes, strict=True))

    def loss_of(self, action: int, belief: Any = None) -> float:
        kind, what = self.actions()[action]
        said = {"say": what, "ask": self.answer, "buy": None}[kind]
        if said is None:
            return 0.0
        if self.world.loss is None:
            return float(said != self.truth)
        if isinstance(self.world.loss, str):
            return self.score_of([float(p) for p in belief])
        return self.world.loss[self.world.classes.index(self.truth)][[*self.world.classes, *self.world.decisions].index(said)]

    def step(self, action: int) -> None:
        kind, what = self.actions()[action]
        self.spent += self.cost_of(action)
        self.held |= self.wanted(action)
        self.decision = {"say": what, "ask": self.answer, "buy": None}[kind]

    def observation(self) -> list[float]:
        return [v if test in self.held else 0.0 for test, found in self.values.items() for v in found]


def expected_losses(beliefs: Any, loss: Any, rule: str | None) -> np.ndarray:
    """What each decision is expected to lose, one case and one class at a time."""
    out = []
    for p in np.asarray(beliefs, float).tolist():
        K, D = range(len(p)), range(len(loss[0]))
        named = [sum(p[y] * float(loss[y][d]) for y in K) for d in D]
        if rule is not None:
            stake = [max(float(x) for x in loss[y]) for y in K]
            log = [-math.log(max(p[y], 1e-6)) for y in K]
            squares = [sum((p[k] - (y == k)) ** 2 for k in K) for y in K]
            lost = sum(p[y] * stake[y] * (log if rule == "log" else squares)[y] for y in K)
            named = [lost + n - min(named) for n in named]
        out.append(named)
    return np.array(out)


def check_rules(world: World, problem: Problem, done: Episodes) -> None:
    """What holds for every policy: each action legal when it was taken, one decision at the end, the bill right to the digit."""
    for i, row in enumerate(done.row):
        where = f"in {world.name}, row {row}"
        case = NaiveCase(world, int(row))
        actions = done.action[done.first[i] : done.first[i] + done.length[i]].tolist()
        for action in actions:
            assert case.decision is None, f"went on after deciding {where}"
            kind, test = case.actions()[action]
            assert not (kind == "buy" and test in case.known), f"bought what was known {where}"
            assert not (kind == "buy" and test in case.held), f"bought twice {where}"
            assert not (kind == "buy" and test in case.missing), f"bought what is not there {where}"
            assert case.legal(action), f"could not afford it, or the existing classifier lacked a test {where}"
            case.step(action)
        assert case.decision is not None, f"did not end with a decision {where}"
        assert problem.schema.decisions[done.decision[i]] == case.decision, f"reports another decision {where}"
        assert {t for t, held in zip(world.tests, done.mask[i], strict=True) if held} == case.held, where
        assert int(done.cost[i]) * problem.schema.costs.smallest_unit == case.spent, f"reports another cost {where}"
        assert world.hard is None or case.spent <= Fraction(str(world.hard)), f"over the hard budget {where}"
        if isinstance(world.loss, str):
            assert sum(done.belief[i]) == pytest.approx(1), f"its probabilities do not add up {where}"
            lost = problem.stakes[world.classes.index(case.truth)] * case.loss_of(actions[-1], done.belief[i])
            assert done.loss[i] == pytest.approx(lost), f"reports another loss {where}"
            continue
        assert done.loss[i] == case.loss_of(actions[-1]), f"reports another loss {where}"


def random_prices(rng: np.random.Generator, tests: list[str]) -> tuple[dict[str, str], dict[str, Any], dict[str, list[str]]]:
    """Costs, set-ups and derived tests; a test is derived from earlier ones only, which may be derived themselves."""
    derived = {}
    for i, test in enumerate(tests):
        if i and rng.random() < 0.3:
            derived[test] = rng.choice(tests[:i], rng.integers(1, min(i, 3) + 1), replace=False).tolist()
    # a derived test may have a fee of its own or none
    costs = {t: str(rng.choice(MONEY)) for t in tests if t not in derived or rng.random() < 0.3}
    plain = [t for t in tests if t not in derived]
    setup = {}
    for g in range(rng.integers(0, 3)):
        members = rng.choice(plain, rng.integers(1, len(plain) + 1), replace=False).tolist()
        setup[f"setup{g}"] = (str(rng.choice(MONEY)), members)
    return costs, setup, derived


def random_world(seed: int, rows: int = 5) -> World:
    """A small world; each kind of complication is there in some of them."""
    rng = np.random.default_rng(seed)

    def sometimes(p: float = 0.4) -> bool:
        return bool(rng.random() < p)

    tests = [f"t{i}" for i in range(rng.integers(1, 7))]
    macro = sometimes()
    reveals = {t: [f"{t}.{c}" for c in range(rng.integers(1, 4))] if macro else [t] for t in tests}
    costs, setup, derived = random_prices(rng, tests)
    X = rng.normal(size=(rows, sum(map(len, reveals.values())))).astype(np.float32)
    if sometimes():
        X[rng.random(X.shape) < 0.25] = np.nan
    classes = [["no", "yes"], [3, 7, -1]][rng.integers(2)]
    y = [classes[k] for k in rng.integers(len(classes), size=rows)]
    world = World(reveals, costs, X, y, classes, setup, derived, name=f"random_world({seed})")
    if sometimes(0.2):
        world.known = rng.choice(tests, rng.integers(1, len(tests) + 1), replace=False).tolist()
    elif sometimes():
        missing = [NaiveCase(world, row).missing for row in range(rows)]
        mask = rng.random((rows, len(tests))) < 0.3
        world.known = mask & np.array([[t not in gone for t in tests] for gone in missing])
    if sometimes():
        world.needs = [t for t in tests if sometimes()]
        world.external = [classes[k] for k in rng.integers(len(classes), size=rows)]
    if sometimes(0.3):
        world.loss = rng.uniform(size=(len(classes), len(classes))).round(2).tolist()
    if sometimes(0.7):
        world.hard = [0, 0.05, 0.1, 0.3, 0.7, 0.9, 1.2, 2.1, 3.3, 5][rng.integers(10)]
    if sometimes(0.25):
        world.decisions = {name: str(rng.choice(MONEY)) for name in ("defer", "treat")[: rng.integers(1, 3)]}
        plain = 1 - np.eye(len(classes)) if world.loss is None else np.array(world.loss)
        world.loss = np.hstack([plain, rng.uniform(size=(len(classes), len(world.decisions))).round(2)]).tolist()
    return world
