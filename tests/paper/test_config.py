"""The appendix table, the schedules at hand-picked steps, and settings that do not exist."""

import ast
import json
from dataclasses import fields
from itertools import pairwise
from pathlib import Path
from typing import get_type_hints

import numpy as np
import pytest

from askwise.errors import InputError
from askwise.paper import config as module
from askwise.paper.config import TrainConfig

# Appendix, table A.1 (a): description, field, value
EVERYWHERE = [
    ("number of parallel environments", "parallel_cases", 1000),
    ("maximum number of steps, in ep_len", "max_epochs", 100),
    ("discount-factor", "gamma", 1.0),
    ("Retrace parameter lambda", "retrace", 1.0),
    ("target network update factor", "rho", 0.1),
    ("number of steps in batch", "batch_steps", 50_000),
    ("number of episodes in memory", "memory_episodes", 40_000),
    ("starting exploration", "epsilon_start", 1.0),
    ("final exploration", "epsilon_end", 0.1),
    ("starting eta-greediness of target policy", "eta_start", 0.5),
    ("final eta-greediness of target policy", "eta_end", 0.0),
    ("length of exploration phase, in ep_len", "explore_epochs", 2),
    ("pre-training learning-rate", "lr_pretrain", 1e-3),
    ("initial learning-rate", "lr_start", 5e-4),
    ("minimal learning-rate", "lr_min", 5e-7),
    ("learning-rate multiplicator", "lr_scale", 0.5),
]
# (b): model size, ep_len, specific
IMAGES = {"memory_episodes": 10_000, "lr_pretrain": 2e-5, "lr_start": 1e-5}
PER_DATA_SET = {
    "mnist": (512, 10_000, IMAGES),
    "cifar": (512, 10_000, IMAGES),
    "forest": (256, 10_000, {}),
    "miniboone": (128, 1_000, {}),
    "diabetes": (128, 100, {}),
}
NUMBERS = [name for name, kind in get_type_hints(TrainConfig).items() if kind in (int, float)]
WHOLE = [name for name, kind in get_type_hints(TrainConfig).items() if kind is int]


@pytest.mark.parametrize("name", PER_DATA_SET)
def test_paper_settings_are_the_appendix_table(name):
    width, epoch, specific = PER_DATA_SET[name]
    expected = {field: value for _, field, value in EVERYWHERE} | {"width": width, "epoch": epoch} | specific
    settings = TrainConfig.paper(name)
    assert {field: getattr(settings, field) for field in expected} == expected
    assert settings.max_steps == 100 * epoch


def test_a_data_set_the_paper_does_not_have():
    with pytest.raises(InputError, match="'minibone'; did you mean 'miniboone'"):
        TrainConfig.paper("minibone")


# ------------------------------------------------------------------ schedules


@pytest.mark.parametrize(
    ("step", "epsilon", "eta"),
    [(0, 1.0, 0.5), (500, 0.775, 0.375), (1_000, 0.55, 0.25), (2_000, 0.1, 0.0), (2_001, 0.1, 0.0), (100_000, 0.1, 0.0)],
)
def test_exploration_falls_linearly_over_two_epochs(step, epsilon, eta):
    settings = TrainConfig.paper("miniboone")
    assert settings.epsilon(step) == pytest.approx(epsilon)
    assert settings.eta(step) == pytest.approx(eta)


@pytest.mark.parametrize(
    ("step", "lr"),
    [
        (0, 5e-4),
        (9_999, 5e-4),
        (10_000, 2.5e-4),
        (29_999, 1.25e-4),
        (30_000, 6.25e-5),
        (90_000, 5e-4 / 512),
        (100_000, 5e-7),  # 5e-4 / 1024 would be below the floor
        (500_000, 5e-7),
    ],
)
def test_the_learning_rate_halves_every_ten_epochs_down_to_a_floor(step, lr):
    assert TrainConfig.paper("miniboone").lr(step) == pytest.approx(lr)


@pytest.mark.parametrize(("step", "rate"), [(0, 0.1), (9_999, 0.1), (10_000, 0.05), (90_000, 0.1 / 512), (200_000, 1e-4)])
def test_the_step_of_lambda_shrinks_as_the_learning_rate_does(step, rate):
    assert TrainConfig.paper("miniboone").lam_step(step) == pytest.approx(rate)


def test_a_window_is_a_tenth_of_an_epoch_and_never_empty():
    assert TrainConfig.paper("miniboone").window == 100
    assert TrainConfig.paper("diabetes").window == 10
    assert TrainConfig(epoch=3, window_epochs=0.1).window == 1


# ------------------------------------------------------------------ scaled


def test_scaled_keeps_the_shape_of_the_run():
    paper = TrainConfig.paper("miniboone")
    small = paper.scaled(size=0.01, time=0.1)
    assert (small.parallel_cases, small.batch_steps, small.memory_episodes, small.pretrain_batch) == (10, 500, 400, 10)
    assert (small.epoch, small.pretrain_steps, small.max_steps, small.window) == (100, 1_000, 10_000, 10)
    for part in (0, 0.3, 2, 15, 80):  # the same moment of the run, in epochs
        step, small_step = round(part * paper.epoch), round(part * small.epoch)
        assert small.epsilon(small_step) == pytest.approx(paper.epsilon(step))
        assert small.eta(small_step) == pytest.approx(paper.eta(step))
        assert small.lr(small_step) == paper.lr(step)
    assert small.width == paper.width


def test_scaled_never_reaches_zero_and_takes_single_changes():
    tiny = TrainConfig().scaled(size=1e-9, time=1e-9, width=7)
    assert (tiny.parallel_cases, tiny.batch_steps, tiny.memory_episodes, tiny.pretrain_batch, tiny.epoch) == (1, 1, 1, 1, 1)
    assert tiny.width == 7


def test_scaled_by_one_changes_nothing():
    assert TrainConfig.paper("forest").scaled() == TrainConfig.paper("forest")


# ------------------------------------------------------------------ saving, and what is refused


def test_settings_survive_json():
    settings = TrainConfig.paper("cifar").scaled(0.5, device="cpu", estimate_missing=True)
    assert TrainConfig.from_dict(json.loads(json.dumps(settings.to_dict()))) == settings


@pytest.mark.parametrize("make", [lambda **s: TrainConfig.from_dict(s), lambda **s: TrainConfig().scaled(**s)])
def test_an_unknown_setting_is_refused_with_a_guess(make):
    with pytest.raises(InputError, match="'widht'; did you mean 'width'"):
        make(widht=3)


def refused(name, value) -> bool:
    try:
        TrainConfig(**{name: value})
    except InputError as error:
        return repr(name) in str(error) and repr(value) in str(error)
    except (ValueError, OverflowError, TypeError):
        return False  # somebody else's message
    return False


@pytest.mark.parametrize("value", [-1, float("nan"), "many", None, True])
def test_what_is_no_number_is_refused(value):
    assert [name for name in NUMBERS if not refused(name, value)] == []


def test_what_must_be_counted_is_finite():
    # no training ever ends after infinitely many epochs; elsewhere infinity may make sense, as a gradient norm never reached
    assert [name for name in [*WHOLE, "max_epochs"] if not refused(name, float("inf"))] == []


@pytest.mark.parametrize("name", WHOLE)
def test_counts_are_whole_numbers(name):
    with pytest.raises(InputError, match=f"'{name}' is 1.5; it must be a whole number"):
        TrainConfig(**{name: 1.5})


@pytest.mark.parametrize("written", [64.0, np.int64(64), np.float32(64)])
def test_a_whole_number_however_written_becomes_one_or_is_refused(written):
    try:
        width = TrainConfig(width=written).width
    except InputError:
        return
    assert type(width) is int  # 64.0 would fail much later, in the middle of torch


@pytest.mark.parametrize("name", ["width", "epoch", "parallel_cases", "batch_steps", "memory_episodes", "pretrain_batch"])
def test_sizes_are_at_least_one(name):
    with pytest.raises(InputError, match=f"'{name}' is 0; it must be a whole number, 1 or more"):
        TrainConfig(**{name: 0})


def test_every_setting_has_a_sentence():
    tree = ast.parse(Path(module.__file__).read_text())
    body = next(node.body for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "TrainConfig")
    described = set()
    for node, after in pairwise(body):
        if isinstance(node, ast.AnnAssign) and isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant):
            assert after.value.value.rstrip().endswith(".")
            described.add(node.target.id)
    assert described == {f.name for f in fields(TrainConfig)}
