"""A checkpoint of another training, or one whose parts do not fit, is refused in one sentence."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from askwise.core.arrays import Arrays, Ints
from askwise.core.measures import Measure
from askwise.errors import AskwiseError, StateError, quoted


def intact(holds: bool, words: str) -> None:
    """words: what is wrong with the checkpoint where this does not hold."""
    if not holds:
        raise StateError(f"the checkpoint is damaged: {words}")


def same_run(stored: dict[str, Any] | None, here: dict[str, Any]) -> None:
    """A checkpoint must be of the very training that is to go on."""
    if not isinstance(stored, dict):
        raise StateError("this is not a checkpoint of a training run")
    for name, value in here.items():
        if stored.get(name) != value:
            raise StateError(f"the checkpoint belongs to another run: its {name} is {stored.get(name)}, here it is {value}")


def same_shapes(stored: Arrays, here: Arrays, rows: int) -> None:
    """The arrays of a checkpoint are of the types and sizes that this training has, and its cases are among the rows."""
    for name, value in here.items():
        array = stored.get(name)
        if name.split("/")[0] in ("memory", "least", "optimiser"):  # as large as the training was long
            continue
        if array is None or (array.dtype, array.shape) != (value.dtype, value.shape):
            is_ = "not there" if array is None else f"{array.dtype} of shape {array.shape}"
            raise StateError(f"the checkpoint is damaged: {name!r} is {is_}, and should be {value.dtype} of shape {value.shape}")
    for name, value in stored.items():
        if name.endswith("/row") and not (value.dtype.kind in "iu" and ((value >= 0) & (value < rows)).all()):
            raise StateError(f"the checkpoint is damaged: {name!r} names cases that are not among the {rows} rows")


def same_types(stored: dict[str, Any], here: dict[str, Any]) -> None:
    """The facts of a checkpoint are of the types that this training has."""
    for name, value in here.items():
        fact: Any = stored.get(name)
        if isinstance(value, (int, float, type(None))) and not isinstance(value, bool):
            whole = isinstance(value, int)
            fits = (fact is value is None) or (type(fact) in ((int,) if whole else (int, float)) and 0 <= fact < 2**53)
        else:  # JSON knows lists only
            fits = type(fact) in ((list, tuple) if isinstance(value, (list, tuple)) else (type(value),))
        if not fits:
            raise StateError(f"the checkpoint is damaged: its {name} cannot be {quoted(fact)}")


def order_of(arrays: Arrays, name: str, tests: int) -> Ints:
    """An order of the tests, in which each occurs once."""
    order = arrays.get(name)
    if order is None or order.dtype.kind != "i" or order.ndim != 1 or sorted(order.tolist()) != list(range(tests)):
        raise StateError(f"the checkpoint is damaged: its {name.replace('_', ' ')} does not have every test once")
    return order


def number(facts: dict[str, Any], name: str, *, whole: bool = False) -> Any:
    """A number of a checkpoint."""
    value = facts.get(name)
    if type(value) not in ((int,) if whole else (int, float)) or not abs(value) < 1e300:  # type: ignore[arg-type]
        raise StateError(f"the checkpoint is damaged: its {name} cannot be {quoted(value)}")
    return value


def figures(facts: dict[str, Any]) -> Measure:
    """What a policy came to, as a checkpoint says."""
    measure = Measure.from_dict(facts)
    for name in measure.to_dict():
        number(facts, name, whole=name == "n")
    return measure


def seconds_before(facts: dict[str, Any]) -> float:
    """How long the training took before the checkpoint."""
    value = facts.get("seconds", 0)
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 1e12:
        raise StateError(f"the checkpoint is damaged: its seconds is {quoted(value)}; it must be a number of seconds")
    return float(value)


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
