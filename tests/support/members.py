"""A small stack whose members are fitted in several places, and how one tells that they are the same."""

from dataclasses import replace

import numpy as np
from tests.support.patients import numbers

from askwise import StackConfig
from askwise.components.static_order import elimination_order
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.stack.folds import Folds
from askwise.stack.networks import features_of
from askwise.stack.train import StackTrainer

QUICK_TREES = {"tree_rounds": 20, "leaves": 8, "states_per_row": 4}
QUICK_NETWORKS = {"networks": 2, "network_steps": 60, "network_width": 16}
QUICK = StackConfig(value_steps=20, pool_states=400, growths=1, folds=4, **QUICK_TREES, **QUICK_NETWORKS)


def problem_of(n=160, seed=0, columns=4, **more):
    X, y = numbers(n, seed, columns)
    schema = Schema.build([f"x{i}" for i in range(columns)], [0, 1], **more)
    return Problem.build(schema, X, y)


def trainer_of(problem, config=QUICK, **more):
    """Its networks see bins and sines, so that these are sent to other processes, too."""
    trainer = StackTrainer(problem, Folds.across(problem.labels, config.folds, 0), elimination_order(problem), config, **more)
    trainer.task = replace(trainer.task, features=features_of(trainer.problem, config, rich=True))
    return trainer


def all_members(trainer):
    """Fits them, however that is done."""
    while trainer.missing:
        trainer.advance()
    return trainer.members


def same_members(one, other):
    return len(one) == len(other) and all(
        a.keys() == b.keys() and all(a[n].dtype == b[n].dtype and np.array_equal(a[n], b[n]) for n in a)
        for a, b in zip(one, other, strict=True)
    )
