"""The state of a trainer, as arrays and facts that fit into JSON: handed out at any moment, taken over to go on from there."""

from __future__ import annotations

import hashlib
from typing import Any, Protocol

import numpy as np
import torch
from torch import nn

from askwise.components.networks import load_weights, weights_of
from askwise.core.arrays import Arrays
from askwise.core.problem import Problem
from askwise.errors import StateError

TrainingState = tuple[Arrays, dict[str, Any]]


class TorchTrainer(Protocol):
    """What every trainer has: settings, rows, random numbers, networks and an optimiser."""

    config: Any
    seed: int
    step: int
    problem: Problem
    rng: np.random.Generator
    torch_rng: torch.Tensor

    @property
    def optimiser(self) -> torch.optim.Optimizer: ...

    @property
    def networks(self) -> dict[str, nn.Module]: ...


def identity(trainer: TorchTrainer, algorithm: str, held_out: Problem, **more: Any) -> dict[str, Any]:
    """What must agree for a checkpoint to be of this training. `held_out`: the rows that are not learned from."""
    return {
        "algorithm": algorithm,
        **{f"setting {name!r}": value for name, value in trainer.config.to_dict().items()},
        "seed": trainer.seed,
        "training data": trainer.problem.fingerprint,
        "validation data": held_out.fingerprint,
        "network": hashlib.sha256(str(trainer.networks["network"]).encode()).hexdigest()[:16],
        **more,
    }


def state_of(trainer: TorchTrainer, run: dict[str, Any], arrays: Arrays, facts: dict[str, Any]) -> TrainingState:
    """The whole state: what every trainer has, and the arrays and facts of this one. `run`: its identity."""
    state: Arrays = {**arrays, "torch_rng": trainer.torch_rng.numpy()}
    for name, network in trainer.networks.items():
        state |= {f"{name}/{key}": value for key, value in weights_of(network).items()}
    state |= {f"optimiser/{key}": value for key, value in moments_of(trainer.optimiser).items()}
    shared = {"run": run, "step": trainer.step, "rng": trainer.rng.bit_generator.state}
    return {name: np.array(value) for name, value in state.items()}, {**shared, **facts}


def load_shared(trainer: TorchTrainer, arrays: Arrays, facts: dict[str, Any]) -> None:
    """Takes over what every trainer has. Its optimiser must be of the same parameters."""
    trainer.step, trainer.rng.bit_generator.state = facts["step"], facts["rng"]
    trainer.torch_rng = torch.from_numpy(arrays["torch_rng"].copy())
    torch.Generator().set_state(trainer.torch_rng)  # torch refuses what is no state of random numbers
    for name, network in trainer.networks.items():
        load_weights(network, part(arrays, f"{name}/"))
    load_moments(trainer.optimiser, part(arrays, "optimiser/"))


def part(arrays: Arrays, prefix: str) -> Arrays:
    """Those whose names begin so, without it."""
    return {name.removeprefix(prefix): value for name, value in arrays.items() if name.startswith(prefix)}


def moments_of(optimiser: torch.optim.Optimizer) -> Arrays:
    """All that an optimiser remembers."""
    return {
        f"{i}/{name}": value.cpu().numpy()
        for i, moments in optimiser.state_dict()["state"].items()
        for name, value in moments.items()
    }


def load_moments(optimiser: torch.optim.Optimizer, arrays: Arrays) -> None:
    """The inverse of `moments_of`. Shapes are checked: a fused optimiser would write beyond what is too small."""
    moments: dict[int, dict[str, torch.Tensor]] = {}
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    for name, value in arrays.items():
        i, kind = name.split("/")
        moment, parameter = torch.from_numpy(value.copy()), parameters[int(i)]
        expected = () if kind == "step" else tuple(parameter.shape)
        if value.shape != expected:
            should = f"shape {value.shape}, and should have {expected}"
            raise StateError(f"the checkpoint is damaged: 'optimiser/{name}' has {should}")
        may_be = bool(torch.isfinite(moment).all()) and (kind == "exp_avg" or bool((moment >= 0).all()))
        if not may_be or moment.dtype != (torch.float32 if kind == "step" else parameter.dtype):
            raise StateError(f"the checkpoint is damaged: 'optimiser/{name}' holds numbers that cannot be")
        moments.setdefault(int(i), {})[kind] = moment
    if len({frozenset(own) for own in moments.values()}) > 1:
        raise StateError("the checkpoint is damaged: what its optimiser remembers is not complete")
    optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})
