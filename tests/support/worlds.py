"""Problems of a few rows in every variant, and encoders of a user's own, for whatever trains."""

import numpy as np
from tests.support.naive import World
from torch import nn


def world(rows=24, seed=0, **more) -> World:
    """Two tests that share a set-up, one derived from both, one free, with several columns. The label is the sign of a."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(rows, 5)).astype(np.float32)
    settings = dict(
        reveals={"a": ["a"], "b": ["b"], "both": ["both"], "scan": ["s1", "s2"]},
        costs={"a": 0.2, "b": 0.7, "scan": 0},
        setup={"draw": (0.1, ["a", "b"])},
        derived={"both": ["a", "b"]},
        X=X,
        y=["yes" if x > 0 else "no" for x in X[:, 0]],
        classes=["no", "yes"],
    )
    return World(**(settings | more))


def with_dropout(schema, width):
    return nn.Sequential(nn.Linear(len(schema.columns) + schema.n_tests, width), nn.ReLU(), nn.Dropout(0.5))


def with_batch_norm(schema, width):
    return nn.Sequential(nn.Linear(len(schema.columns) + schema.n_tests, width), nn.BatchNorm1d(width), nn.ReLU())


KNOWN = np.random.default_rng(1).random((24, 4)) < 0.3
HOLES = np.where(np.random.default_rng(2).random((24, 5)) < 0.3, np.nan, 1).astype(np.float32)
OTHERS = dict(decisions={"defer": 0.3, "treat": 0}, loss=[[0, 1, 0.1, 0.6], [2, 0, 0.1, 0.2]])
EXISTING = dict(needs=["a", "scan"], external=["yes", "no"] * 12)

VARIANTS = {
    "plain": (world(setup={}, derived={}, costs={"a": 1, "b": 2, "both": 3, "scan": 1}), {}, {}),
    "set-ups and derived tests": (world(), {}, {}),
    "loss matrix": (world(loss=[[0.1, 2.0], [5.0, 0.2]]), {}, {}),
    "class weights": (world(), dict(class_weight="balanced"), {}),
    "balanced draws": (world(), dict(weight="balanced"), {}),
    "known by name": (world(known=["b", "scan"]), {}, {}),
    "known by mask": (world(known=KNOWN), {}, {}),
    "everything known": (world(known=np.ones((24, 4), bool)), {}, {}),
    "missing": (world(X=world().X * HOLES), {}, {}),
    "missing, estimated": (world(X=world().X * HOLES), {}, dict(estimate_missing=True)),
    "existing classifier": (world(**EXISTING), {}, {}),
    "other decisions": (world(**OTHERS), {}, {}),
    "other decisions, existing classifier, missing": (
        world(X=world().X * HOLES, **EXISTING, **OTHERS),
        dict(class_weight="balanced"),
        dict(all_classes=True),
    ),
    "existing classifier, missing": (world(X=world().X * HOLES, **EXISTING), {}, dict(estimate_missing=True)),
    "fewer tests than classes": (
        world(
            reveals={"a": ["a"]}, costs={"a": 1}, setup={}, derived={}, X=world().X[:, :1],
            y=["no", "perhaps", "yes"] * 8, classes=["no", "perhaps", "yes"],
        ),
        {},
        {},
    ),
    "all classes": (world(X=world().X * HOLES), dict(class_weight="balanced"), dict(all_classes=True)),
    "no pretraining": (world(), {}, dict(pretrain_steps=0)),
    "one-step targets": (world(), {}, dict(retrace=0.0)),
    "measured on some rows": (world(), {}, dict(measure_rows=5)),
}  # fmt: skip

BELIEVED = np.stack([np.linspace(0.1, 0.9, 24), np.linspace(0.9, 0.1, 24)], 1)
JUDGED = {  # where beliefs are judged, not decisions
    "log loss": (world(loss="log"), {}),
    "Brier score, missing": (world(loss="brier", X=world().X * HOLES), {}),
    "log loss, class weights": (world(loss="log"), dict(class_weight={"yes": 3})),
    "log loss, existing classifier": (world(loss="log", needs=["a", "scan"], external=BELIEVED), {}),
}
