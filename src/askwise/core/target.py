"""What a policy has to reach: a share of right decisions, of all cases or of those of a class, or a mean loss.

    accuracy        the share of all cases for which the right class is decided
    recall          the share of the cases of a class for which that class is decided
    specificity     the share of the cases of all other classes for which that class is not decided
    loss            the mean loss

All are read from a table of counts: how often each class (row) met each decision (column).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np

from askwise.core.arrays import Doubles
from askwise.core.parameters import OrNone, Real, checked
from askwise.errors import InputError, did_you_mean

OF_A_CLASS, SHARES = ("recall", "specificity"), ("accuracy", "recall", "specificity")
CONFIDENCE = OrNone(Real(at_least=0.5, below=1, noun="a probability"))
SHARE = Real(above=0, at_most=1, noun="a share")
LOSS = Real(at_least=0, noun="a number")


class Figure(NamedTuple):
    """A mean of values between 0 and `most`, and of how many cases."""

    value: float
    cases: float
    most: float = 1.0
    two_valued: bool = True  # each value is 0 or `most`


@dataclass(frozen=True)
class Target:
    """One figure that has to be reached.

    Attributes
    ----------
    figure : str
        'accuracy', 'recall', 'specificity' or 'loss'.
    value : float
        The least that a share may be, or the most that the loss may be.
    of : object or None
        The class, of recall and specificity.
    confidence : float or None
        Probability, over draws of the table, with which it is reached. None: it is expected to be.
    """

    figure: str
    value: float
    of: Any = None
    confidence: float | None = None

    def __str__(self) -> str:
        value = f"{self.value:g}" if self.of is None else f"{{{self.of!r}: {self.value:g}}}"
        more = "" if self.confidence is None else f", confidence={self.confidence:g}"
        return f"{'AtMost' if self.figure == 'loss' else 'AtLeast'}({self.figure}={value}{more})"

    @property
    def words(self) -> str:
        """What it is about, in words."""
        return self.figure if self.of is None else f"{self.figure} of {self.of!r}"

    @property
    def key(self) -> tuple[str, Any]:
        """Two targets with the same key are about the same figure."""
        return self.figure, self.of

    @property
    def sign(self) -> int:
        """1 where more is better, -1 where less is."""
        return -1 if self.figure == "loss" else 1

    def class_of(self, classes: Sequence[Any]) -> int:
        """The number of its class."""
        return class_number(self.of, classes, str(self))

    def measured(self, counts: Doubles, classes: Sequence[Any], loss: Doubles, cases: Doubles | None = None) -> Figure:
        """What it is about, by counts (K, D) of each class and decision. cases: K, see `worth`."""
        of_class = counts.sum(1)
        if self.figure == "loss":
            n, most = worth(of_class, cases), float(loss.max())
            return Figure(float((counts * loss).sum() / counts.sum()), n, most, bool(np.isin(loss, (0.0, most)).all()))
        if self.figure == "accuracy":
            return Figure(float(np.trace(counts) / counts.sum()), worth(of_class, cases))
        own = np.arange(len(counts)) == self.class_of(classes)
        among = own if self.figure == "recall" else ~own
        of, called = of_class[among].sum(), counts[among][:, : len(own)][:, own].sum()
        right = called if self.figure == "recall" else of - called
        return Figure(float(right / of) if of else 0.0, worth(of_class[among], None if cases is None else cases[among]))

    def to_dict(self) -> dict[str, Any]:
        """Exactly what it is, in words that fit into JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, facts: dict[str, Any]) -> Target:
        """The inverse of `to_dict`."""
        return target(facts["figure"], facts["value"], facts["of"], facts["confidence"])


def worth(counted: Doubles, cases: Doubles | None) -> float:
    """How many cases weighted rows of some classes are worth together, (Σ w)² / Σ w². counted: of each class, in proportion to
    its Σ w; cases: what each is worth alone, None where no row is weighted."""
    total = float(counted.sum())
    if cases is None or not total:
        return total
    met = counted > 0
    return total**2 / float((counted[met] ** 2 / cases[met]).sum())


def class_number(name: Any, classes: Sequence[Any], who: str) -> int:
    """The number of a class that somebody names."""
    names = [str(c) for c in classes]
    if name in classes:
        return list(classes).index(name)
    if str(name) not in names:  # a command line has texts only
        raise InputError(f"{who} names the class {name!r}, which does not exist; {did_you_mean(str(name), names)}")
    return names.index(str(name))


def target(figure: str, value: Any, of: Any, confidence: float | None) -> Target:
    """A target whose parts are right."""
    if figure not in (*SHARES, "loss") or (figure in OF_A_CLASS) != (of is not None):
        raise InputError(f"a target cannot be the {figure!r} of {of!r}; it is the accuracy, the loss, or the recall of a class")
    checked(confidence, CONFIDENCE, "confidence")
    of = of.item() if isinstance(of, np.generic) else of
    name = figure if of is None else f"the {figure} of {of!r}"
    return Target(figure, float(checked(value, LOSS if figure == "loss" else SHARE, name)), of, confidence)


def targets_of(shares: dict[str, Any], confidence: float | None) -> tuple[Target, ...]:
    """Of what `AtLeast` was given: numbers and, for recall and specificity, {class: number}."""
    named, targets = shares.get("recall"), list[Target]()
    only = next(iter(named)) if isinstance(named, dict) and len(named) == 1 else None
    for figure, asked in shares.items():
        if asked is None:
            continue
        if figure == "specificity" and not isinstance(asked, dict) and only is not None:
            asked = {only: asked}  # that of the class whose recall is asked for
        if figure in OF_A_CLASS and not isinstance(asked, dict):
            raise InputError(f"{figure}={asked!r} does not say of which class; write {figure}={{'a class': {asked!r}}}")
        parts = asked.items() if isinstance(asked, dict) and figure in OF_A_CLASS else [(None, asked)]
        targets += [target(figure, value, of, confidence) for of, value in parts]
    if not targets:
        raise InputError("AtLeast() says nothing; give it accuracy=, recall={class: share} or specificity={class: share}")
    return tuple(targets)
