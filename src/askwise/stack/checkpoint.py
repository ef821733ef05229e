"""What must hold for a checkpoint of a stack before it is taken over: its facts, and the names and contents of its arrays."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from askwise.core.arrays import Array, Arrays
from askwise.core.problem import Problem
from askwise.core.schema import Schema
from askwise.errors import StateError, quoted
from askwise.stack.belief import LEARNERS
from askwise.stack.checks import check_features, check_learners, check_numbers
from askwise.stack.config import DESIGN, StackConfig
from askwise.stack.folds import Folds
from askwise.stack.stopping import CURVES, is_layer
from askwise.stack.trees import STORED
from askwise.training.checkpoint import TrainingState, part
from askwise.training.checkpoint_checks import intact, order_of, same_shapes, same_types

FEATURES = {f"bins.{name}" for name in ("source", "low", "slope")} | {f"sines.{name}" for name in ("source", "rate", "phase")}
OF_STAGES = {f"stages.{name}" for name in ("sets", "trees", *STORED)}
WHOLE = {
    **{f"{kind}.source": np.int64 for kind in ("bins", "sines")},
    **{f"{kind}.{name}": np.int32 for kind in ("trees", "stages") for name in STORED if name != "number"},
    "stages.trees": np.int32,
    "stages.sets": np.uint8,
}  # arrays that hold no fractions
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # what the optimiser remembers of each parameter


def check_state(stored: TrainingState, here: TrainingState, problem: Problem, folds: Folds, config: StackConfig) -> None:
    """Whether a state that was stored can be one of this training, whose state is now `here`: that of its beginning."""
    (arrays, facts), schema = stored, problem.schema
    same_types(facts, here[1])
    same_shapes(arrays, here[0], len(problem))
    _check_counts(facts, folds, config)
    _check_stage(arrays, facts, folds, schema.n_tests)
    members = [*range(facts["members"]), *facts["early"]]
    parameters = [name for name in here[0] if name.startswith("network/")]
    _check_names(arrays, here[0], members, parameters if facts["step"] else [])
    of_networks = {name: value for name, value in arrays.items() if name.startswith(("network/", "mean/"))}
    _check_contents("its value heads", of_networks)
    features = part(arrays, "features/")
    intact(set(features) in (set(), FEATURES), "its features are not complete")
    _check_contents("its features", features)
    with _as_damage_of("its features"):
        check_features(features, len(schema.columns))
    complete, weights = facts["members"] == folds.members, part(arrays, "weight/")
    staged = facts["staged"] and folds.members == 1
    for k in members:
        _check_member(f"its member {k}", part(arrays, f"member/{k}/"), features, schema, config, complete, list(weights), staged)
    intact(sorted(weights) == facts["learners"], f"it does not have the weights of the learners {quoted(facts['learners'])}")
    for name, weight in weights.items():
        intact(weight.dtype == np.float64 and _is_weight(weight, weights), f"the weight of its {name} does not fit")
    if pool := part(arrays, "pool/"):
        _check_pool(pool, problem, folds, config)
    for name, value in part(arrays, "optimiser/").items():
        if name.endswith("/step"):
            intact(value.shape == () and float(value) == facts["step"], f"'optimiser/{name}' is not the step of the training")


def _check_counts(facts: dict[str, Any], folds: Folds, config: StackConfig) -> None:
    """Facts within their ranges."""
    for name, most in (("done", 1), ("members", folds.members), ("step", config.value_steps), ("grown", config.growths)):
        intact(facts[name] <= most, f"its {name} is {quoted(facts[name])}, and can be {most} at most")
    progress = max(facts["step"] / config.value_steps, facts["done"])
    intact(facts["grown"] <= progress * (config.growths + 1), f"its pool cannot have grown {facts['grown']} times by now")
    sizes = [0, *config.tree_sizes]
    intact(facts["leaves"] in sizes, f"its trees have {quoted(facts['leaves'])} leaves, and can have {quoted(sizes)}")
    early, first = facts["early"], facts["members"] + 1  # the next member would no longer be early
    fits = all(type(k) is int and first <= k < folds.members for k in early) and len(set(early)) == len(early)
    intact(fits, f"its early members cannot be {quoted(early)}")


def _check_stage(arrays: Arrays, facts: dict[str, Any], folds: Folds, tests: int) -> None:
    """Each part of a training needs those before it."""
    has = {kind: any(name.startswith(f"{kind}/") for name in arrays) for kind in ("features", "weight", "pool")}
    members = facts["members"] > 0 or bool(facts["early"])
    intact(facts["leaves"] or not (members or has["features"]), "it has members or features before the trial of these")
    intact(facts["members"] == folds.members or not has["weight"], "it has weights of learners before all members")
    intact(has["weight"] or not facts["refined"], "its order is refined before there are weights of learners")
    intact(facts["refined"] or not facts["staged"] or folds.members > 1, "it has trees for prefixes before its order is refined")
    intact((facts["refined"] and facts["staged"]) or not has["pool"], "it has a pool before its order is refined")
    intact(has["pool"] or not (facts["step"] or facts["grown"]), "it has taken steps without a pool")
    first, refined = (order_of(arrays, name, tests) for name in ("order", "refined_order"))
    intact(facts["refined"] or np.array_equal(first, refined), "its order has changed before it is refined")


def _check_names(arrays: Arrays, here: Arrays, members: list[int], parameters: list[str]) -> None:
    """No array belongs to nothing, and the optimiser remembers something of each parameter, or nothing at all."""
    groups = ("features/", "pool/", *(f"member/{k}/" for k in members))  # looked at one by one
    moments = {f"optimiser/{i}/{kind}" for i in range(len(parameters)) for kind in MOMENTS}
    expected = {*here, *moments, *(f"weight/{name}" for name in LEARNERS)}
    for name in arrays:
        intact(name in expected or name.startswith(groups), f"there should be no {quoted(name)}")
    for name in sorted(moments - arrays.keys()):
        raise StateError(f"the checkpoint is damaged: {name!r} is not there")


@contextmanager
def _as_damage_of(whose: str) -> Iterator[None]:
    """Checks that models get too, in the words for checkpoints."""
    try:
        yield
    except StateError as error:
        raise StateError(f"the checkpoint is damaged: of {whose}, {error}") from None


def _check_contents(whose: str, arrays: Arrays) -> None:
    """Numbers of the right type, all of them finite."""
    for name, value in arrays.items():
        dtype = np.dtype(WHOLE.get(name.removeprefix("networks."), np.float32))
        intact(value.dtype == dtype, f"{name!r} of {whose} is {value.dtype}, and should be {dtype}")
    with _as_damage_of(whose):
        check_numbers(arrays)


def _check_member(
    whose: str,
    learners: Arrays,
    features: Arrays,
    schema: Schema,
    config: StackConfig,
    stopped: bool,
    weighted: list[str],
    staged: bool,
) -> None:
    """The learners of a member: complete, as large as the settings say, and each what it should be. Before all members are there
    they have their curves and are not yet stopped; `weighted` are those that have weights; if `staged`, it may have trees for
    prefixes."""
    shapes = _network_shapes(schema, features, config)
    by_set = {"linear.by_set"} if schema.n_tests <= DESIGN.by_set_tests else set()
    names = {"linear.main", "linear.bias", *by_set, *shapes, *(f"networks.{name}" for name in features)}
    names |= {"reached", *(f"trees.{name}" for name in STORED), *(f"weight.{name}" for name in weighted)}
    names |= OF_STAGES if "stages.sets" in learners and staged else set()
    intact(set(learners) == names | (set() if stopped else set(CURVES)), f"{whose} is not complete")
    _check_contents(whose, learners)
    if not stopped:
        learners = _checked_curves(whose, learners, schema, config)
    with _as_damage_of(whose):
        check_learners(learners, schema, [name for name in LEARNERS if name != "stages" or "stages.sets" in learners])
    for name, shape in shapes.items():
        intact(learners[name].shape == shape, f"{name!r} of {whose} has shape {learners[name].shape}, and should have {shape}")
    for name in weighted:
        intact(_is_weight(learners[f"weight.{name}"], weighted), f"the weight of the {name} of {whose} does not fit")
    share = learners["reached"]
    intact(share.shape == (3,) and bool(((share >= 0) & (share <= 1)).all()), f"'reached' of {whose} is not three shares")
    same = all(np.array_equal(learners[f"networks.{name}"], value) for name, value in features.items())
    intact(same, f"{whose} sees columns in another way than the others")


def _is_weight(weight: Array, learners: Collection[str]) -> bool:
    return weight.shape == (4 if "stages" in learners else 3,) and bool(np.isfinite(weight).all())


def _checked_curves(whose: str, learners: Arrays, schema: Schema, config: StackConfig) -> Arrays:
    """The learners with all their rounds and at their last check; layers at the other checks are as large."""
    rounds, checks = (learners[name] for name in CURVES)
    outputs = 1 if schema.n_classes == 2 else schema.n_classes
    fits = rounds.ndim == 1 and 0 < len(rounds) * outputs == learners["trees.root"].size
    intact(fits, f"'trees.curve' of {whose} does not fit its trees")
    fits = checks.ndim == 1 and 0 < len(checks) <= config.network_checks
    fits &= all(value.shape[:1] == checks.shape for name, value in learners.items() if is_layer(name))
    intact(fits, f"'networks.curve' of {whose} does not fit its networks")
    return {name: value[-1] if is_layer(name) else value for name, value in learners.items() if name not in CURVES}


def _network_shapes(schema: Schema, features: Arrays, config: StackConfig) -> dict[str, tuple[int, ...]]:
    """Of the layers of the networks of a member."""
    shown = sum(len(features[name]) for name in ("bins.source", "sines.source") if name in features)
    hidden = [config.network_width] * config.network_depth
    sizes = [len(schema.columns) + shown + schema.n_tests, *hidden, schema.n_classes]
    layers = [(i, sizes[i], sizes[i + 1]) for i in range(len(sizes) - 1)]
    shapes: dict[str, tuple[int, ...]] = {f"networks.{i}.weight": (config.networks, a, b) for i, a, b in layers}
    return shapes | {f"networks.{i}.bias": (config.networks, 1, b) for i, _, b in layers}


def _check_pool(pool: Arrays, problem: Problem, folds: Folds, config: StackConfig) -> None:
    """States of rows that some member has not learned from."""
    F, K, N = problem.schema.n_tests, problem.schema.n_classes, len(pool.get("row", ()))
    S = min(config.successors, F)
    expected: dict[str, tuple[Any, tuple[int, ...]]] = {
        "row": (np.int64, (N,)),
        "mask": (np.bool_, (N, F)),
        "belief": (np.float32, (N, K)),
        "test": (np.int64, (N, S)),
        "possible": (np.bool_, (N, S)),
        "after": (np.float32, (N, S, K)),
    }
    intact(set(pool) == set(expected) and N > 0, "its pool is not complete")
    for name, (dtype, shape) in expected.items():
        is_ = f"{pool[name].dtype} of shape {pool[name].shape}"
        fits = (pool[name].dtype, pool[name].shape) == (dtype, shape)
        intact(fits, f"'pool/{name}' is {is_}, and should be {np.dtype(dtype)} of shape {shape}")
    intact(bool(np.isin(pool["row"], folds.held_out).all()), "its pool has rows that every member has learned from")
    intact(bool(((pool["test"] >= 0) & (pool["test"] < F)).all()), f"its pool names tests that are not among the {F}")
    for name in ("belief", "after"):
        intact(_are_probabilities(pool[name]), f"'pool/{name}' holds what are no probabilities")


def _are_probabilities(belief: Array) -> bool:
    return bool(((belief >= 0) & (belief <= 1)).all() and (np.abs(belief.sum(-1) - 1) < 1e-3).all())
