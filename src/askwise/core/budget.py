"""What may be spent. A budget is a value: it says what is affordable and what one unit of cost is worth.

Tradeoff(0.01)                        one unit of cost is worth 0.01 of loss (eq. 1)
AverageBudget(12)                     12 per case on average (eq. 2)
AverageBudget(12, confidence=0.95)    the same, with that probability over draws of the table
HardBudget(40)                        never more than 40 for any case (eq. 3)
AverageBudget(12) & HardBudget(40)    both
AtLeast(recall={"ill": 0.97})         the cheapest that reaches it; AtLeast(accuracy=0.9), AtMost(loss=0.1) likewise
ClassWeights({"ill": 5})              mistakes about the ill count five times as much as they otherwise would
Budget()                              none of them: training sweeps lambda, to see what each amount of money buys
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np

from askwise.core.arrays import Doubles
from askwise.core.costs import CostFunction, exact
from askwise.core.parameters import Instance, OrNone, Real, checked
from askwise.core.problem import Problem
from askwise.core.target import CONFIDENCE, Target, target, targets_of
from askwise.errors import InputError

AMOUNTS = ("lam", "average", "hard")
PARTS = (*AMOUNTS, "mixing", "confidence", "class_weights")
MIXING = OrNone(Instance(bool, "True or False"))
WEIGHT = Real(at_least=0.001, at_most=1000, noun="a number")


@dataclass(frozen=True)
class Budget:
    """What may be spent, and what has to be reached. Make one with `Tradeoff`, `AverageBudget`, `HardBudget`, `AtLeast`, `AtMost`
    or `ClassWeights`, and join them with `&`.

    Attributes
    ----------
    lam : float or None
        Loss that one unit of cost is worth.
    average : Fraction or None
        Most that cases may cost on average.
    hard : Fraction or None
        Most that any case may cost.
    mixing : bool or None
        Whether an average budget may be met by drawing one of two policies for each case: True where that promises more, False
        never, None only where that is better than every single policy by more than noise.
    confidence : float or None
        Probability with which the mean cost of future cases is at most the average budget. None: it is expected to be.
    targets : tuple of Target
        What has to be reached, at the least cost.
    class_weights : tuple of (class, float) or None
        How many times as much mistakes about a class count as they otherwise would.

    Examples
    --------
    >>> from askwise import AverageBudget, HardBudget
    >>> AverageBudget(12) & HardBudget(40)
    AverageBudget(12) & HardBudget(40)
    """

    lam: float | None = None
    average: Fraction | None = None
    hard: Fraction | None = None
    mixing: bool | None = None
    confidence: float | None = None
    targets: tuple[Target, ...] = ()
    class_weights: tuple[tuple[Any, float], ...] | None = None

    def __and__(self, other: Budget) -> Budget:
        if not isinstance(other, Budget):
            raise InputError(f"{self} is joined with {other!r:.60}; join it with another budget, such as HardBudget(40)")
        if (self.targets and other.lam is not None) or (self.lam is not None and other.targets):
            raise InputError(
                "a tradeoff and a target contradict each other: a target finds its own tradeoff; leave one of them out"
            )
        if (self.average is not None and other.lam is not None) or (self.lam is not None and other.average is not None):
            raise InputError("a tradeoff and an average budget contradict each other: an average budget finds its own tradeoff")
        parts: dict[str, Any] = {}
        for name in PARTS:
            limit, others = getattr(self, name), getattr(other, name)
            if limit is not None and others is not None and limit != others:
                raise InputError(f"{self} & {other} sets the same limit twice; set it once")
            parts[name] = others if limit is None else limit
        targets = dict.fromkeys((*self.targets, *other.targets))
        if len({each.key for each in targets}) < len(targets):
            raise InputError(f"{self} & {other} sets the same target twice; set it once")
        return Budget(**parts, targets=tuple(targets))

    def __str__(self) -> str:
        parts = []
        if self.lam is not None:
            parts.append(f"Tradeoff({self.lam:g})")
        if self.average is not None:
            more = "" if self.confidence is None else f", confidence={self.confidence:g}"
            more += "" if self.mixing is None else f", mixing={self.mixing}"
            parts.append(f"AverageBudget({float(self.average):g}{more})")
        if self.hard is not None:
            parts.append(f"HardBudget({float(self.hard):g})")
        parts += map(str, self.targets)
        if self.class_weights is not None:
            weights = ", ".join(f"{name!r}: {weight:g}" for name, weight in self.class_weights)
            parts.append(f"ClassWeights({{{weights}}})")
        return " & ".join(parts) or "no budget"

    __repr__ = __str__

    def to_dict(self) -> dict[str, Any]:
        """Exactly what it is, in words that fit into JSON."""
        amounts = {name: None if (value := getattr(self, name)) is None else str(value) for name in AMOUNTS}
        limits: dict[str, Any] = {**amounts, "mixing": self.mixing, "confidence": self.confidence}
        if self.targets:
            limits["targets"] = [each.to_dict() for each in self.targets]
        return limits if self.class_weights is None else {**limits, "class_weights": self.class_weights}

    @classmethod
    def from_dict(cls, limits: dict[str, Any]) -> Budget:
        """The inverse of `to_dict`."""
        budget = cls()
        for name, kind in (("lam", Tradeoff), ("average", AverageBudget), ("hard", HardBudget)):
            if limits[name] is not None:
                budget = replace(budget, **{name: getattr(kind(limits[name]), name)})
        checked(limits["mixing"], MIXING, "mixing")
        checked(limits["confidence"], CONFIDENCE, "confidence")
        budget = replace(budget, mixing=limits["mixing"], confidence=limits["confidence"])
        for each in limits.get("targets", ()):
            budget &= Budget(targets=(Target.from_dict(each),))
        weights = limits.get("class_weights")
        return budget if weights is None else budget & ClassWeights({name: weight for name, weight in weights})

    def cap(self, costs: CostFunction) -> int | None:
        """The most whole units a case may cost; None when there is no hard budget.

        Paper: section 2.5, restricted actions
        """
        return None if self.hard is None else min(math.floor(self.hard / costs.smallest_unit), costs.most)

    def fixed_lam(self, problem: Problem, hard_tradeoff: float = 1e-3) -> float:
        """The lambda of a budget that has no average. With only a hard budget costs do not count, but a noisy maximum must not
        spend for nothing: all tests together are worth `hard_tradeoff` of the loss scale, so little that only ties go to
        stopping."""
        if self.lam is not None:
            return self.lam
        everything = float(problem.schema.costs.money(problem.schema.costs.total))
        return hard_tradeoff * problem.loss_scale / everything if everything else 0.0


OPTIONAL_BUDGET = OrNone(Instance(Budget, "Tradeoff(lam), AverageBudget(b), HardBudget(b), AtLeast(...) or several joined by &"))


def Tradeoff(lam: float) -> Budget:
    """Minimise loss + lam * cost.

    Paper: eq. 1

    Parameters
    ----------
    lam : float
        Loss that one unit of cost is worth, 0 or more.

    Returns
    -------
    Budget
    """
    return Budget(lam=float(exact(lam, "the tradeoff")))


def AverageBudget(b: Any, *, confidence: float | None = None, mixing: bool | None = None) -> Budget:
    """Minimise loss where the mean cost over cases is at most b.

    Paper: eq. 2

    Parameters
    ----------
    b : float, str, Decimal or Fraction
        An amount of cost. 0.1 means one tenth exactly.
    confidence : float, default=None
        Probability, over draws of the table, with which the mean cost of future cases is at most b. None: what is expected is at
        most b.
    mixing : bool, default=None
        False: one policy for all cases, so that like cases are treated alike. True: two policies, one of which is drawn for each
        case, wherever that promises more. None: two only where they are better than every single one by more than noise.

    Returns
    -------
    Budget
    """
    checked(confidence, CONFIDENCE, "confidence")
    checked(mixing, MIXING, "mixing")
    return Budget(average=exact(b, "the average budget"), mixing=mixing, confidence=confidence)


def HardBudget(b: Any) -> Budget:
    """Minimise loss where no case ever costs more than b.

    Paper: eq. 3

    Parameters
    ----------
    b : float, str, Decimal or Fraction
        An amount of cost. 0.1 means one tenth exactly.

    Returns
    -------
    Budget
    """
    return Budget(hard=exact(b, "the hard budget"))


def AtLeast(*, accuracy: Any = None, recall: Any = None, specificity: Any = None, confidence: float | None = None) -> Budget:
    """Spend as little as reaches these shares.

    Parameters
    ----------
    accuracy : float, default=None
        Share of all cases for which the right class is decided.
    recall : dict, default=None
        {class: share}: of the cases of a class, those for which it is decided.
    specificity : dict or float, default=None
        {class: share}: of the cases of all other classes, those for which it is not decided. A number is about the class whose
        recall is given.
    confidence : float, default=None
        Probability, over draws of the table, with which future cases reach each of them. None: they are expected to.

    Returns
    -------
    Budget

    Examples
    --------
    >>> from askwise import AtLeast, HardBudget
    >>> AtLeast(recall={"ill": 0.97}, confidence=0.9) & HardBudget(40)
    HardBudget(40) & AtLeast(recall={'ill': 0.97}, confidence=0.9)
    """
    return Budget(targets=targets_of({"accuracy": accuracy, "recall": recall, "specificity": specificity}, confidence))


def AtMost(*, loss: float, confidence: float | None = None) -> Budget:
    """Spend as little as keeps the mean loss at this.

    Parameters
    ----------
    loss : float
        The most that cases may lose on average.
    confidence : float, default=None
        As in `AtLeast`.

    Returns
    -------
    Budget
    """
    return Budget(targets=(target("loss", loss, None, confidence),))


def ClassWeights(weights: dict[Any, float]) -> Budget:
    """Mistakes about these classes count so many times as much as they otherwise would, against those about the others.

    Parameters
    ----------
    weights : dict
        {class: number from 0.001 to 1000}; classes that are not named count 1.

    Returns
    -------
    Budget
    """
    if not isinstance(weights, dict) or not weights:
        raise InputError(f"ClassWeights({weights!r:.60}) needs a number for each class, such as {{'ill': 5}}")
    checks = [
        (name.item() if isinstance(name, np.generic) else name, float(checked(weight, WEIGHT, f"the weight of {name!r}")))
        for name, weight in weights.items()
    ]
    return Budget(class_weights=tuple(checks))


def lam_range(problem: Problem) -> tuple[float, float] | None:
    """The smallest and the largest lambda worth trying: from where everything is worth buying to where hardly anything is. None
    where everything is free."""
    costs = problem.schema.costs
    positive = positive_costs(costs)
    if not positive.size:
        return None
    return 1e-2 * problem.loss_scale / costs.money(costs.total), problem.loss_scale / positive.mean()


def positive_costs(costs: CostFunction) -> Doubles:
    """What each test that is not free costs by itself, in money."""
    alone = np.array([costs.money(int(units)) for units in costs.alone])
    return alone[alone > 0]
