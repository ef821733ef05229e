"""Pictures as pictures: shape= and patch=."""

import re

import numpy as np
import pytest
from tests.support.commands import ok, run

from askwise import CostlyClassifier, FamilyConfig, HardBudget, StackConfig, load
from askwise.components.pictures import Convolutions
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import AskwiseError, InputError
from askwise.family.config import MeasuringConfig
from askwise.family.start import Rows, _mean_the_same_mirrored
from askwise.model.file import read_state, write_state

QUICK = FamilyConfig(max_steps=60, width=16, prefix_batch=32, parallel_cases=16, picture_trial_steps=20, interim_measurements=2)


def pictures(n=240, seed=0):
    """Bright above or below."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    X = rng.normal(size=(n, 4, 6))
    X[:, :2] += np.where(y == 0, 1.5, 0)[:, None, None]
    X[:, 2:] += np.where(y == 1, 1.5, 0)[:, None, None]
    return X, np.array(["above", "below"])[y]


def fitted(steps=60):
    X, y = pictures()
    return CostlyClassifier(shape=(4, 6), patch=2, config=QUICK.but(max_steps=steps), random_state=0).fit(X, y)


@pytest.fixture(scope="module")
def model():
    return fitted(400)


def with_convolutions(monkeypatch):
    """Whatever the trial would say."""
    monkeypatch.setattr("askwise.family.overfitting.OverfitMonitor.surprise", lambda self, network: float(network.dense))


def test_pictures_are_bought_patch_by_patch_and_arrays_and_tables_are_alike(model):
    X, y = pictures(50, seed=1)
    assert model.model_.schema.tests == tuple(f"patch {r},{c}" for r in range(2) for c in range(3))
    flat = X.reshape(50, -1)
    assert (model.predict(X) == model.predict(flat)).all()
    assert np.array_equal(model.predict_proba(X), model.predict_proba(flat))
    assert model.acquire(X).cost.tolist() == model.acquire(flat).cost.tolist()
    assert model.score(X, y) > 0.8
    assert model.at(HardBudget(1)).acquire(X).cost.max() <= 1


def test_a_model_with_convolutions_is_one_file(monkeypatch, tmp_path):
    with_convolutions(monkeypatch)
    model = fitted()
    assert isinstance(model.model_.encoder, Convolutions)
    model.save(tmp_path / "m.askwise")
    again, (X, _) = load(tmp_path / "m.askwise"), pictures(30, seed=2)
    assert again.encoder == model.model_.encoder
    assert np.array_equal(again.predict_proba(X.reshape(30, -1)), model.predict_proba(X))
    assert again.session().next().test.startswith("patch")
    for name in ("m.npz", "m.onnx"):
        with pytest.raises(InputError, match="a model with convolutions cannot be exported: only torch computes that"):
            again.export(tmp_path / name)
    with pytest.raises(AskwiseError, match="was fitted without a custom encoder"):
        load(tmp_path / "m.askwise", network=Convolutions(4, 6))


def test_a_plain_network_that_is_better_needs_no_convolutions(monkeypatch, tmp_path):
    monkeypatch.setattr("askwise.family.overfitting.OverfitMonitor.surprise", lambda self, network: float(not network.dense))
    model = fitted()
    assert model.model_.encoder is None
    model.model_.export(tmp_path / "m.npz")


@pytest.mark.parametrize(("wrong", "words"), [
    ({"channels": [4000, 64, 128]}, "the convolutions have their sizes"),
    ({"rows": 3}, "do not fit|have their sizes"),
    ({"rows": 10**6}, "whole numbers"),
    (None, "damaged"),
])  # fmt: skip
def test_a_file_that_lies_about_convolutions_is_refused(monkeypatch, tmp_path, wrong, words):
    from askwise.model import archives

    with_convolutions(monkeypatch)
    fitted().save(tmp_path / "m.askwise")
    arrays, card = archives.read(tmp_path / "m.askwise", archives.MODEL)
    card["convolutions"] = None if wrong is None else card["convolutions"] | wrong
    archives.write(tmp_path / "bad.askwise", archives.MODEL, arrays, card)
    with pytest.raises(AskwiseError, match=words):
        load(tmp_path / "bad.askwise")


@pytest.mark.parametrize("chosen", [True, False])
def test_a_training_of_pictures_goes_on_as_if_it_had_never_stopped(monkeypatch, tmp_path, chosen):
    if chosen:
        with_convolutions(monkeypatch)
    states, (X, y) = [], pictures()
    whole = CostlyClassifier(shape=(4, 6), config=QUICK, random_state=0).fit(X, y, save=lambda state: states.append(state))
    write_state(tmp_path / "s.state", *states[0])
    again = CostlyClassifier(shape=(4, 6), config=QUICK, random_state=0).fit(X, y, resume=read_state(tmp_path / "s.state"))
    assert again.model_.encoder == whole.model_.encoder
    assert np.array_equal(again.predict_proba(X), whole.predict_proba(X))


def test_pictures_in_a_mirror_are_learned_from_where_they_mean_the_same():
    """Above and below stay what they are in a mirror; left and right do not."""
    X, y = pictures(400)
    for table, alike in ((X, True), (X.transpose(0, 2, 1), False)):
        shape = table.shape[1:]
        schema = Schema.build([f"x{i}" for i in range(24)], ["above", "below"])
        problem = Problem.build(schema, table.reshape(len(table), -1).astype(np.float32), y)
        rows = Rows(problem.take(np.arange(300)), problem.take(np.arange(300, 400)), None)
        trainer = rows.trainer(np.arange(24), QUICK.for_convolutions.but(max_steps=200), 0, Convolutions(*shape))
        for _ in range(60):
            trainer.advance()
        assert _mean_the_same_mirrored(trainer, MeasuringConfig().same_mirrored) == alike


@pytest.mark.parametrize(("more", "words"), [
    ({"reveals": {"a": ["x0"]}}, "shape and reveals are given, and patch= says what a test shows"),
    ({"network": Convolutions(4, 6)}, "shape and network are given, and a trial chooses the network"),
    ({"algorithm": "paper", "config": None}, "which algorithm 'paper' has no use for"),
    ({"algorithm": "stack", "config": StackConfig.quick()}, "which algorithm 'stack' has no use for"),
    ({"patch": 5}, "the patch is 5 x 5, which is more than a picture of 4 x 6"),
])  # fmt: skip
def test_what_does_not_go_with_a_shape_is_said(more, words):
    X, y = pictures(40)
    with pytest.raises(InputError, match=words):
        CostlyClassifier(**{"shape": (4, 6), "config": QUICK, **more}).fit(X, y)


def test_the_command_takes_pictures(tmp_path):
    X, y = pictures(120)
    rows = ["y," + ",".join(f"p{i}" for i in range(24))]
    rows += [f"{label}," + ",".join(f"{v:.3f}" for v in row) for label, row in zip(y, X.reshape(120, -1), strict=True)]
    (tmp_path / "c.csv").write_text("\n".join(rows) + "\n")
    argv = ["fit", tmp_path / "c.csv", "--target", "y", "--time-limit", "2", "--quiet", "--out", tmp_path / "m.askwise"]
    ok(*argv, "--shape", "4x6", "--patch", "2x3")
    assert load(tmp_path / "m.askwise").schema.tests == ("patch 0,0", "patch 0,1", "patch 1,0", "patch 1,1")
    code, _, err = run(*argv, "--shape", "4 by 6")
    assert code
    assert re.search("--shape is '4 by 6'; it must be whole numbers such as 28x28", err)
