"""Stacks as large as a fit makes them: all rounds of real trees, and networks and value heads that are hardly trained."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnxruntime

from askwise import Budget
from askwise.core.cases import State
from askwise.core.measures import Measure
from askwise.core.policy import Choice, Policy, decision_values
from askwise.core.problem import Problem
from askwise.facade import Model
from askwise.frontier.point import Point
from askwise.stack.belief import LEARNERS
from askwise.stack.config import DESIGN, StackConfig
from askwise.stack.folds import Folds
from askwise.stack.networks import features_of
from askwise.stack.train import StackTrainer
from askwise.tables.encoding import Encoding, schema_of


def stacks(rows: int, tests: int, classes: int, rich: bool) -> tuple[Model, Problem]:
    """A model that asks for everything, and its rows. Each is there ten times, so that held-out rows do not stop the boosting.
    rich: networks see bins and sines of the columns too, which a fit tries, and takes where it is better."""
    X = np.tile(np.random.default_rng(0).normal(size=(rows // 10, tests)), (10, 1)).astype(np.float32)
    score = (np.sin(2 * X) + X * np.roll(X, 1, 1)) @ 0.8 ** np.arange(tests)
    y = np.digitize(score, np.quantile(score, np.arange(1, classes) / classes))
    encoding = Encoding.fit(X)
    problem = Problem.build(schema_of(encoding, range(classes)), encoding.transform(X), y)
    config = StackConfig.for_size(rows, tests).but(network_steps=20, value_steps=20, growths=0, pool_rows=200, pool_states=200)
    trainer = StackTrainer(problem, Folds.across(problem.labels, config.folds, 0), np.arange(tests), config)
    trainer.task = replace(trainer.task, features=features_of(problem, config, rich))
    trainer.common |= {f"weight.{name}": np.zeros(3) for name in LEARNERS if name != "stages"}  # none is left out
    while not trainer.finished:
        trainer.advance()
    family = trainer.stack()
    family.weights["heads.2.bias"][:, 0, tests] = -10  # going on is always worth it
    points = tuple(
        Point(lam, Measure(cost, loss, 1 - loss, rows, 0.01, 0.01, 0.01), breadth=DESIGN.breadths[-1])
        for lam, cost, loss in ((1.0, 0.0, 0.5), (0.01, float(tests), 0.1))
    )
    facts = {"loss_scale": problem.loss_scale, "seconds": 0, "stopped": "", "config": config.to_dict(), "rows": [rows, 0]}
    model = Model(
        schema=problem.schema,
        encoding=encoding,
        loss=problem.loss,
        at_once=decision_values(problem),
        points=points,
        trained_for=Budget(),
        budget=Budget(),
        known=(),
        seed=0,
        unit="",
        facts=facts,
        family=family,
    )
    return model, problem


class OnnxPolicy(Policy):
    """A model's graph in onnxruntime, by one thread."""

    def __init__(self, model: Model, path: Path) -> None:
        model.export(path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
        self.mean, self.deviation = (np.concatenate([getattr(p, n) for p in model.encoding.parts]) for n in ("mean", "deviation"))

    def act(self, state: State) -> Choice:
        assert state.test_cost is not None
        given = {
            "values": state.values * self.deviation + self.mean,
            "mask": state.mask,
            "legal": np.ascontiguousarray(state.legal[:, -state.mask.shape[1] :]),
            "test_cost": np.ascontiguousarray(state.test_cost),
            "left": np.full(len(state.mask), np.inf),
        }
        return Choice(self.session.run(["action"], given)[0], np.ones(len(state.mask), np.float32))
