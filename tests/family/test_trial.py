"""What a training calculates with: chosen by a trial that changes nothing, kept by a run that is resumed, on any device."""

import json
from itertools import count

import numpy as np
import pytest
import torch
from tests.support.worlds import VARIANTS, with_batch_norm, with_dropout, world
from torch.utils._python_dispatch import TorchDispatchMode

from askwise.errors import InputError, StateError
from askwise.family import run as family_run
from askwise.family import trial
from askwise.family.config import FamilyConfig
from askwise.family.run import run
from askwise.family.train import FamilyTrainer, Phase

TINY = FamilyConfig(max_steps=12, width=8, bins=3, prefix_batch=8, parallel_cases=6, prefix_share=0.3, max_tests=4)


def trainer(config=TINY, encoder=None, name="plain") -> FamilyTrainer:
    problem = VARIANTS[name][0].problem()
    return FamilyTrainer(problem, problem, np.arange(problem.schema.n_tests)[::-1].copy(), config, 0, encoder)


def everything(t: FamilyTrainer):
    arrays, facts = t.state()
    return {k: (v.dtype, v.shape, v.tobytes()) for k, v in arrays.items()}, json.dumps(facts)


# ------------------------------------------------------------------ the trial


@pytest.mark.parametrize("encoder", [None, with_dropout, with_batch_norm])
def test_a_trial_changes_nothing_of_the_training(encoder):
    t = trainer(encoder=encoder)
    before = everything(t)
    for precision in ("bfloat16", "float32"):
        assert t.tried(precision, iter([1.0, 3.5]).__next__) == 2.5
    assert everything(t) == before
    assert all(p.grad is None for p in t.network.parameters())


def test_what_is_clearly_faster_is_taken_and_else_the_usual_way():
    taken = {"usual": [4.0, 5.0, 90.0], "other": [4.0, 3.0, 5.0]}
    assert trial.clearly_faster(taken, "usual", 0.8) == "other"
    assert trial.clearly_faster(taken, "usual", 0.7) == "usual"


def test_ways_take_turns_and_the_first_round_does_not_count():
    clock = count()
    assert trial.in_turns({"a": lambda: next(clock), "b": lambda: next(clock)}, 2) == {"a": [2, 4], "b": [3, 5]}


def pace(monkeypatch, seconds, free=4):
    """A machine on which a step takes so long, by arithmetic or by the number of threads."""
    now = [1]
    monkeypatch.setattr(trial, "free_cores", lambda: free)
    monkeypatch.setattr(torch, "set_num_threads", lambda n: now.__setitem__(0, n))
    monkeypatch.setattr(FamilyTrainer, "tried", lambda self, precision, clock: seconds[precision] * seconds[now[0]])


FAST = {"float32": 1.0, "bfloat16": 0.5, 1: 1.0, 4: 0.4}


def test_bfloat16_and_threads_are_used_where_they_are_faster(monkeypatch):
    pace(monkeypatch, FAST)
    t = trainer(TINY.but(trial_size=64))
    trial.settle(t, None)
    assert (t.precision, t.threads) == ("bfloat16", 4)
    busy = trainer(TINY.but(trial_size=64))
    pace(monkeypatch, FAST | {"bfloat16": 0.9, 4: 20.0})  # threads wait for each other
    trial.settle(busy, None)
    assert (busy.precision, busy.threads) == ("float32", 1)


def test_small_networks_and_settings_leave_nothing_to_try(monkeypatch):
    monkeypatch.setattr(FamilyTrainer, "tried", None)
    small, told = trainer(), trainer(TINY.but(trial_size=64, precision="bfloat16"))
    trial.settle(small, None)
    trial.settle(told, 3)
    assert (small.precision, small.threads) == ("float32", 1)
    assert (told.precision, told.threads) == ("bfloat16", 3)
    with pytest.raises(InputError, match=r"setting 'precision' is 'float16'; did you mean"):
        FamilyConfig(precision="float16")


# ------------------------------------------------------------------ bfloat16


@pytest.mark.parametrize("encoder", [None, with_dropout])
def test_what_a_trial_chose_goes_on_after_a_kill(encoder):
    whole = trainer(encoder=encoder)
    whole.precision = "bfloat16"
    for _ in range(TINY.max_steps):
        other = trainer(encoder=encoder)
        arrays, facts = whole.state()
        other.load({k: v.copy() for k, v in arrays.items()}, json.loads(json.dumps(facts)))
        whole.advance()
        other.advance()
        assert everything(other) == everything(whole)
    assert other.precision == "bfloat16"


@pytest.mark.parametrize(("config", "stored"), [(TINY, "float8"), (TINY.but(precision="float32"), "bfloat16")])
def test_a_checkpoint_with_another_arithmetic_is_refused(config, stored):
    arrays, facts = trainer(config).state()
    with pytest.raises(StateError, match=f"damaged: there is no precision '{stored}'"):
        trainer(config).load(arrays, {**facts, "precision": stored})


def test_a_run_that_is_resumed_makes_no_trial_and_ends_as_if_it_had_not_been_killed(monkeypatch):
    problem, config, states = world().problem(), TINY.but(trial_size=64), []
    before = torch.get_num_threads()

    def settled(t: FamilyTrainer, threads: int | None) -> None:
        t.precision, t.threads = "bfloat16", 1

    monkeypatch.setattr(family_run, "settle", settled)
    whole = run(problem, problem, None, config, save=lambda state: states.append(json_copy(state)))
    monkeypatch.setattr(family_run, "settle", None)
    again = run(problem, problem, None, config, resume=states[0])
    assert states[0][1]["precision"] == "bfloat16"
    for name, value in whole.shared.weights.items():
        assert np.array_equal(value, again.shared.weights[name]), name
    assert torch.get_num_threads() == before


def json_copy(state):
    return {k: v.copy() for k, v in state[0].items()}, json.loads(json.dumps(state[1]))


def losses_of(t: FamilyTrainer) -> float:
    """Of one step, which is not taken."""
    with t._low_precision():
        return float((t._prefix_loss, t._selection_loss, t._value_loss)[t.phase]().detach())


@pytest.mark.parametrize("phase", Phase)
def test_losses_in_bfloat16_are_those_of_float32_but_for_a_rounding_error_and_weights_stay_float32(phase):
    config = TINY.but(width=64, prefix_batch=256, parallel_cases=256)
    exact, low = trainer(config), trainer(config)
    for t in (exact, low):
        if phase != Phase.PREFIXES:
            t._begin(phase)
    low.precision = "bfloat16"
    one, other = losses_of(exact), losses_of(low)
    assert one != other
    assert other == pytest.approx(one, rel=0.02)
    low.advance()
    assert {v.dtype for v in low.weights().values()} <= {np.dtype("float32"), np.dtype("int64")}
    assert {v.dtype for s in low.optimiser.state.values() for v in s.values()} == {torch.float32}
    assert low.network.precision == low.mean.precision == torch.float32


# ------------------------------------------------------------------ devices


class Elsewhere(TorchDispatchMode):
    """Plays a device: numbers of 'meta' come back as zeros, and each operation must find all its tensors on one device."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        parts = [p for a in (*args, *kwargs.values()) for p in (a if isinstance(a, (list, tuple)) else [a])]
        where = {p.device.type for p in parts if isinstance(p, torch.Tensor) and p.ndim}
        name = func.overloadpacket.__name__
        if name == "_to_copy" and where == {"meta"} and kwargs.get("device", torch.device("meta")).type == "cpu":
            return torch.zeros(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype)
        if name in ("_local_scalar_dense", "item"):
            return 0.0
        assert name in ("copy_", "_to_copy", "lift_fresh") or len(where) <= 1, f"{name} finds tensors on {sorted(where)}"
        if name in ("index", "nonzero"):  # how many there are depends on the numbers
            return torch.zeros_like(func(*_here(args), **kwargs), device="meta") if where == {"meta"} else func(*args, **kwargs)
        return func(*args, **kwargs)


def _here(part):
    if isinstance(part, (list, tuple)):
        return type(part)(map(_here, part))
    return torch.zeros(part.shape, dtype=part.dtype) if isinstance(part, torch.Tensor) else part


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize("name", ["plain", "loss matrix", "existing classifier"])
def test_no_tensor_of_a_step_is_left_on_another_device(name, phase, monkeypatch):
    t, learned = trainer(TINY.but(device="meta"), name=name), []
    assert {p.device.type for net in (t.network, t.mean) for p in [*net.parameters(), *net.buffers()]} == {"meta"}
    monkeypatch.setattr(torch.optim.AdamW, "step", lambda self: learned.append(self))  # there are no weights to change
    with Elsewhere():
        if phase != Phase.PREFIXES:
            t._begin(phase)
        for _ in range(2):
            t.advance()
    assert len(learned) == 2
    assert {p.grad.device.type for p in t.network.parameters() if p.grad is not None} == {"meta"}
