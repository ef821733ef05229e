"""What both kinds of training need to be stopped and to go on as if nothing had happened."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch

from askwise.core.arrays import Arrays
from askwise.core.measures import Measure
from askwise.errors import AskwiseError, StateError, quoted

State = tuple[Arrays, dict[str, Any]]


class _Run(Protocol):
    torch_rng: torch.Tensor


@contextmanager
def own_random_numbers(run: _Run) -> Iterator[None]:
    """Torch draws from this run's numbers, not from the program's."""
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(run.torch_rng)
        yield
        run.torch_rng = torch.get_rng_state()


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
    """The inverse of `moments_of`."""
    moments: dict[int, dict[str, torch.Tensor]] = {}
    for name, value in arrays.items():
        i, kind = name.split("/")
        moments.setdefault(int(i), {})[kind] = torch.from_numpy(value.copy())
    optimiser.load_state_dict({**optimiser.state_dict(), "state": moments})


def same_run(theirs: dict[str, Any] | None, mine: dict[str, Any]) -> None:
    """A checkpoint must be of the very run that is to go on."""
    if not isinstance(theirs, dict):
        raise StateError("this is not a checkpoint of a training run")
    for name, value in mine.items():
        if theirs.get(name) != value:
            raise StateError(f"the checkpoint belongs to another run: its {name} is {theirs.get(name)}, here it is {value}")


def same_shapes(theirs: Arrays, mine: Arrays, rows: int) -> None:
    """The arrays of a checkpoint are of the types and sizes that this run has, and its cases are among the rows."""
    for name, value in mine.items():
        found = theirs.get(name)
        if name.split("/")[0] in ("memory", "least", "optimiser"):  # as large as the run was long
            continue
        if found is None or (found.dtype, found.shape) != (value.dtype, value.shape):
            is_ = "not there" if found is None else f"{found.dtype} of shape {found.shape}"
            raise StateError(f"the checkpoint is damaged: {name!r} is {is_}, and should be {value.dtype} of shape {value.shape}")
    for name, value in theirs.items():
        if name.endswith("/row") and not (value.dtype.kind in "iu" and ((value >= 0) & (value < rows)).all()):
            raise StateError(f"the checkpoint is damaged: {name!r} names cases that are not among the {rows} rows")


def same_sorts(theirs: dict[str, Any], mine: dict[str, Any]) -> None:
    """The facts of a checkpoint are of the sorts that this run has."""
    for name, value in mine.items():
        found: Any = theirs.get(name)
        if isinstance(value, (int, float, type(None))) and not isinstance(value, bool):
            whole = isinstance(value, int)
            fits = (found is value is None) or (type(found) in ((int,) if whole else (int, float)) and 0 <= found < 2**53)
        else:  # JSON knows lists only
            fits = type(found) in ((list, tuple) if isinstance(value, (list, tuple)) else (type(value),))
        if not fits:
            raise StateError(f"the checkpoint is damaged: its {name} cannot be {quoted(found)}")


def number(given: dict[str, Any], name: str, *, whole: bool = False) -> Any:
    """A number of a checkpoint."""
    found = given.get(name)
    if type(found) not in ((int,) if whole else (int, float)) or not abs(found) < 1e300:  # type: ignore[arg-type]
        raise StateError(f"the checkpoint is damaged: its {name} cannot be {quoted(found)}")
    return found


def figures(given: dict[str, Any]) -> Measure:
    """What a policy came to, as a checkpoint says."""
    found = Measure.from_dict(given)
    for name, value in found.to_dict().items():
        if value is not None or name in ("cost", "loss", "accuracy", "n"):
            number({name: value}, name, whole=name == "n")
    return found


@contextmanager
def taking_over() -> Iterator[None]:
    """Whatever goes wrong while a checkpoint is taken over is told in one sentence: it is the checkpoint that is wrong."""
    try:
        yield
    except AskwiseError:
        raise
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        raise StateError(
            f"the checkpoint is damaged: it does not hold together ({type(error).__name__}: {reason:.200})"
        ) from None


@contextmanager
def put_off_ctrl_c(wanted: bool) -> Iterator[list[int]]:
    """Ctrl-C is noted in the list, rather than raised in the middle of a step."""
    noted: list[int] = []
    if not wanted or threading.current_thread() is not threading.main_thread():
        yield noted
        return
    before = signal.signal(signal.SIGINT, lambda number, _: noted.append(number))
    try:
        yield noted
    finally:
        signal.signal(signal.SIGINT, before)
