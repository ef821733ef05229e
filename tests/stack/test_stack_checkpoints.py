"""Whatever a checkpoint of a stack says, it is refused in one sentence, or the training goes on as if nothing had happened."""

import copy
from dataclasses import replace

import numpy as np
import pytest
from tests.support import members as support

from askwise.components.static_order import elimination_order
from askwise.errors import StateError
from askwise.stack import checkpoint
from askwise.stack.folds import Folds
from askwise.stack.networks import features_of
from askwise.stack.train import StackTrainer
from askwise.training.checkpoint_checks import taking_over

QUICK = support.QUICK.but(value_steps=6, folds=3, pool_states=120, value_width=8, value_batch=8, tree_rounds=10)
PROBLEM = support.problem_of(90)
FOLDS = Folds.across(PROBLEM.labels, 3, 0)
ORDER = elimination_order(PROBLEM)
MOMENTS = ("new", "with an early member", "with members", "weighted", "refined", "with a pool", "amid value steps", "finished")


def trainer_of():
    """Its networks see bins and sines, so that these are in its checkpoints."""
    trainer = StackTrainer(PROBLEM, FOLDS, ORDER, QUICK)
    trainer.task = replace(trainer.task, features=features_of(PROBLEM, QUICK, rich=True))
    return trainer


def resumed(state):
    trainer = StackTrainer(PROBLEM, FOLDS, ORDER, QUICK)
    with taking_over():
        trainer.load(*copy.deepcopy(state))
    return trainer


@pytest.fixture(scope="module")
def states():
    """One of each moment."""
    new = StackTrainer(PROBLEM, FOLDS, ORDER, QUICK)
    state_at = {"new": copy.deepcopy(new.state())}
    trainer = trainer_of()
    trainer.early[2] = trainer.task.fit(2, 1e9)
    trainer.advance()
    state_at["with an early member"] = copy.deepcopy(trainer.state())
    for moment, ended in (
        ("with members", lambda: not trainer.missing),
        ("weighted", lambda: trainer.ready),
        ("refined", lambda: trainer.refined),
        ("with a pool", lambda: len(trainer.pool.row)),
        ("amid value steps", lambda: trainer.step == 4),
        ("finished", lambda: trainer.finished),
    ):
        while not ended():
            trainer.advance()
        state_at[moment] = copy.deepcopy(trainer.state())
    assert tuple(state_at) == MOMENTS
    return state_at


def same(one, other):
    (arrays, facts), (others, other_facts) = one.state(), other.state()
    return facts == other_facts and arrays.keys() == others.keys() and all(np.array_equal(arrays[n], others[n]) for n in arrays)


def refused(state) -> None:
    with pytest.raises(StateError, match="the checkpoint is damaged") as caught:
        resumed(state)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_sound_checkpoint_is_taken_over_as_it_is(states, moment):
    arrays, facts = states[moment]
    again = resumed((arrays, facts)).state()
    assert again[1] == facts
    assert again[0].keys() == arrays.keys()
    assert all(np.array_equal(again[0][n], arrays[n]) for n in arrays)


def damages(name, value):
    """What may be wrong with an array. None: it is not there."""
    yield None
    yield value[..., None]
    yield np.concatenate([value.reshape(-1), value.reshape(-1)[:1]])
    yield value.astype("<U5")
    if value.size:
        yield value.reshape(-1)[:-1]
    if value.dtype.kind == "f" and value.size:
        for wrong in (np.nan, -np.inf, np.inf):
            yield np.full_like(value, wrong)
        yield np.zeros(value.shape, np.float16)
    if value.dtype in (np.int64, np.int32) and value.size:
        for wrong in (-1, -(2**62), 2**62, 10**12) if value.dtype == np.int64 else (-1, -(2**31), 2**31 - 1):
            changed = value.copy()
            changed.reshape(-1)[-1] = wrong
            yield changed
        yield value.astype(float)


@pytest.mark.parametrize("moment", ["new", "with an early member", "amid value steps"])
def test_a_damaged_array_is_refused(states, moment):
    arrays, facts = states[moment]
    for name, value in arrays.items():
        if name.startswith("member/1/"):  # as that before it
            continue
        for changed in damages(name, value):
            rest = {n: x for n, x in arrays.items() if n != name}
            refused((rest if changed is None else {**rest, name: changed}, facts))


@pytest.mark.parametrize("moment", MOMENTS)
def test_an_array_too_many_is_refused(states, moment):
    arrays, facts = states[moment]
    for name in (
        "x",
        "weight/x",
        "weight/trees.x",
        "features/x",
        "pool/x",
        "member/0/x",
        "member/9/linear.bias",
        "optimiser/9/step",
        "optimiser/-1/exp_avg",
        "network/x",
        "mean/x",
    ):
        refused(({**arrays, name: np.zeros(3)}, facts))


WRONG = [None, "x", {}, [[]], [0], [True], [5], [-1], ["x"], [10**30], -1, 0.5, 10**12, 10**400, float("nan"), float("inf")]
# moments that may have been as well: columns are shown as they are, the order stays, the pool is still to grow
POSSIBLE = {
    ("new", "leaves"),
    ("refined", "refined"),
    ("weighted", "refined"),
    ("finished", "grown"),
    ("amid value steps", "grown"),
}


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_fact_that_cannot_be_is_refused(states, moment):
    arrays, facts = states[moment]
    for name in ("members", "early", "grown", "leaves", "learners", "refined", "step", "done"):
        refused((arrays, {n: x for n, x in facts.items() if n != name}))
        for value in WRONG:
            if name != "done" or value != 0.5:
                refused((arrays, {**facts, name: value}))
        others = [not facts[name]] if isinstance(facts[name], bool) else [x for x in range(9) if x != facts[name]]
        for value in others if name in ("members", "leaves", "refined", "step", "grown") else []:
            may_be = value == support.QUICK.leaves if name == "leaves" else value <= 1
            if (moment, name) not in POSSIBLE or not may_be:
                refused((arrays, {**facts, name: value}))
            else:
                resumed((arrays, {**facts, name: value})).advance()
    for learners in (["trees"], ["linear", "linear"], ["x"], [0]):
        refused((arrays, {**facts, "learners": learners}))
    for early in ([], [1], [2], [1, 2], [2, 2], [3]):
        if early != facts["early"]:
            refused((arrays, {**facts, "early": early}))


def test_states_of_random_numbers_that_cannot_be_are_refused(states):
    arrays, facts = states["amid value steps"]
    refused(({**arrays, "torch_rng": arrays["torch_rng"] * 0 + 255}, facts))
    refused((arrays, {**facts, "rng": {**facts["rng"], "state": {"state": -1, "inc": 1}}}))
    refused((arrays, {**facts, "rng": {**facts["rng"], "bit_generator": "MT19937"}}))


def test_trees_of_a_checkpoint_are_trees(states):
    """Otherwise they could go on for ever, or read what is not theirs."""
    arrays, facts = states["with members"]
    for name, change in (
        ("depth", lambda x: x * 0 + 10**9),
        ("depth", lambda x: x * 0 + 1),
        ("child", lambda x: x * 0),
        ("root", lambda x: x * 0),
        ("column", lambda x: x + 1000),
    ):
        name = f"member/1/trees.{name}"
        refused(({**arrays, name: change(arrays[name])}, facts))


def test_the_pool_holds_beliefs_in_states_that_are_held_out(states):
    arrays, facts = states["with a pool"]
    for name, change in (
        ("pool/belief", lambda x: x * 2),
        ("pool/after", lambda x: x - 1),
        ("pool/test", lambda x: x + 4),
        ("pool/row", lambda x: x + 10**6),
    ):
        refused(({**arrays, name: change(arrays[name])}, facts))
    apart = Folds.apart(60, PROBLEM.labels[60:])
    with pytest.raises(StateError, match="every member has learned from"):
        checkpoint._check_pool({n.removeprefix("pool/"): x for n, x in arrays.items() if "pool/" in n}, PROBLEM, apart, QUICK)


def test_members_that_do_not_fit_each_other_are_refused(states):
    arrays, facts = states["with members"]
    other = {n: x[..., :8] for n, x in arrays.items() if "member/1/networks.0" in n}
    refused(({**arrays, **other, "member/1/networks.1.weight": arrays["member/1/networks.1.weight"][:, :8]}, facts))
    name = "member/1/networks.bins.low"
    refused(({**arrays, name: arrays[name] + 1}, facts))
