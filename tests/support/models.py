"""Models whose networks are random: they ask and decide in many ways, and need no training."""

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import torch
from tests.support.patients import PRICES, patients

from askwise import AverageBudget, Budget, HardBudget
from askwise.components.networks import weights_of
from askwise.core.cost_spec import CostSpec
from askwise.core.measures import Measure
from askwise.core.policy import decision_values
from askwise.core.problem import Problem
from askwise.facade import Model
from askwise.family.conditions import Scale, costs_alone
from askwise.family.config import FamilyConfig
from askwise.family.encodings import encoding_for
from askwise.family.inference import Family
from askwise.family.network import FamilyNetwork
from askwise.frontier.point import Point
from askwise.paper.network import QNetwork
from askwise.tables.encoding import Encoding, schema_of
from askwise.tables.gaps import BLIND, INFORMATIVE, known_at_start, telling

COST, LOSS = (0.0, 0.8, 1.5, 2.5), (0.5, 0.3, 0.2, 0.15)  # as if they had been measured


def wide(rows: int = 200, seed: int = 0, columns: int = 12) -> tuple[pd.DataFrame, np.ndarray]:
    """More tests than are ever compared, and three classes."""
    X = np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32).astype(float)
    return pd.DataFrame(X, columns=[f"x{i}" for i in range(columns)]), np.digitize(X[:, 0] + X[:, 1], [-0.5, 0.5])


def table(rows: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray]:
    """Patients whose numbers float32 holds exactly."""
    X, y = patients(rows, seed)
    return X.assign(pressure=(X["pressure"] * 64).round() / 64, index=(X["index"] * 64).round() / 64), y


def _parts(X, y, known, loss, prices, missing):
    encoding, classes = Encoding.fit(X), np.unique(y).tolist()
    schema = schema_of(encoding, classes, CostSpec(**prices))
    if missing == INFORMATIVE:
        encoding, schema = telling(encoding, schema, [encoding.transform(X)], True)
    values = encoding.transform(X)
    problem = Problem.build(schema, values, y, known=known_at_start(schema, values, [tuple(known) or None]), loss=loss)
    facts = {
        "loss_scale": problem.loss_scale,
        "seconds": 0,
        "stopped": "never began",
        "config": FamilyConfig().to_dict(),
        "rows": [0, 0],
    }
    return problem, dict(
        schema=schema, encoding=encoding, loss=problem.loss, rule=problem.rule, at_once=decision_values(problem),
        trained_for=Budget(), known=tuple(known), seed=3, unit="€", facts=facts,
    )  # fmt: skip


def _found(cost: float, loss: float) -> Measure:
    return Measure(cost, loss, 1 - loss, 400, 0.02, 0.01, 0.01)


def _shaken(network, seed: int, spread: float):
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(seed)
        for part in network.parameters():
            part.normal_(0, spread)
    return network.eval()


def family(
    X=None, y=None, *, bins=0, waves=0, seed=0, known=(), loss=None, budget=None, spread=0.3, missing=BLIND, **prices
) -> Model:
    """A family; its points: at once, adaptive, a prefix of the order, adaptive."""
    if X is None:
        (X, y), prices = table(), prices or PRICES
    problem, more = _parts(X, y, known, loss, prices, missing)
    schema, scale = problem.schema, Scale.of(problem)
    with torch.random.fork_rng(devices=[]):
        network = FamilyNetwork(schema, 16, encoding_for(problem, FamilyConfig(bins=bins, frequencies=waves)))
    weights = weights_of(_shaken(network, seed, spread))
    weights["value_head.4.weight"] *= 0.03  # so that values are as large as those of trained networks
    weights["value_head.4.bias"] *= 0.3
    weights["value_head.4.bias"][:-4] -= 0.3  # and that it likes to go on
    rank = np.random.default_rng(seed).permutation(schema.n_tests)
    made = Family(weights, scale, rank, problem.loss, schema.owner, costs_alone(schema), rule=problem.rule)
    lams, prefixes = (scale.high, scale.high / 30, scale.high, scale.low), (0, None, 2, None)
    points = tuple(
        Point(lam, _found(cost, expected), prefix=prefix)
        for lam, cost, expected, prefix in zip(lams, COST, LOSS, prefixes, strict=True)
    )
    caps = [round(schema.costs.total / part) for part in (1, 2, 4, 8)]
    under = [replace(p, cap=cap) for cap in caps for p in points]
    measured = tuple(sorted([*points, *under], key=lambda p: p.cost))
    return Model(points=measured, budget=budget or Budget(), family=made, **more)


def paper(X=None, y=None, *, seed=0, known=(), loss=None, budget=None, spread=0.3, missing=BLIND, **prices) -> Model:
    """The paper's; its points: at once, and two networks."""
    if X is None:
        (X, y), prices = table(), prices or PRICES
    problem, more = _parts(X, y, known, loss, prices, missing)
    networks = [_shaken(QNetwork(problem.schema, 16), seed + i, spread) for i in range(2)]
    weights = [None, *map(weights_of, networks)]
    for each in weights[1:]:
        each["head.bias"][1 + problem.schema.n_classes :] += 0.5
    points = tuple(
        Point(0.05 * i, _found(cost, expected), w)
        for i, (cost, expected, w) in enumerate(zip(COST[:3], LOSS[:3], weights, strict=True))
    )
    return Model(points=points, budget=budget or Budget(), **more)


def answer(model: Model, row: pd.Series, test: str):
    """What a row of a table says to a test; None where something is missing."""
    names = [field.column for field in model.form.fields(test)]
    if row[names].isna().any():
        return None
    return row[names[0]] if len(names) == 1 else row[names].to_dict()


def lacking(model: Model, row: pd.Series) -> list[str]:
    return [test for test in model.schema.offered if answer(model, row, test) is None]


def alike(mine, theirs) -> bool:
    """The same in every word, and in numbers up to the digits that depend on where arrays lie in memory."""
    if isinstance(mine, dict) and isinstance(theirs, dict):
        return mine.keys() == theirs.keys() and all(alike(mine[key], theirs[key]) for key in mine)
    if isinstance(mine, (list, tuple)) and isinstance(theirs, (list, tuple)):
        return len(mine) == len(theirs) and all(map(alike, mine, theirs))
    if isinstance(mine, float) and isinstance(theirs, float):
        return abs(mine - theirs) <= 1e-4 * max(1, abs(mine))
    if isinstance(mine, str) and isinstance(theirs, str) and " is expected to save " in mine:
        return mine.split(" to save ")[0] == theirs.split(" to save ")[0]
    return mine == theirs


FORM = {"costs": {"form": "0.4", "pressure": 1, "age": "0.1", "index": 0}, "reveals": {"form": ["smoker", "colour", "town"]},
        "setup": {"lab": ("0.5", ["pressure", "form"])}, "derived": {"index": ["age", "pressure"]}}  # fmt: skip
MODELS = {
    "family": lambda: family(),
    "a mixture": lambda: family(budget=AverageBudget(1.1), seed=1),
    "a hard budget": lambda: family(budget=HardBudget("1.9"), seed=2),
    "a fixed order": lambda: family(budget=AverageBudget(1.5)),
    "known for everyone": lambda: family(known=["age", "town"], seed=4),
    "several columns": lambda: family(*table(), seed=5, **FORM),
    "losses": lambda: family(loss=[[0, 1], [20, 0]], bins=3, seed=6),
    "log loss": lambda: family(loss="log", seed=7),
    "Brier score, a mixture": lambda: family(loss="brier", budget=AverageBudget(1.1), seed=8),
    "paper": lambda: paper(),
    "paper, a mixture": lambda: paper(budget=AverageBudget(1.1), seed=2),
    "paper, several columns": lambda: paper(*table(), known=["age"], **FORM),
}


@cache
def made(name: str):
    return MODELS[name]()
