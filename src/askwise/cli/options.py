"""What options of several commands mean."""

from __future__ import annotations

import argparse

from askwise.core.budget import AverageBudget, Budget, HardBudget, Tradeoff
from askwise.facade import Model, load
from askwise.tables.read_options import OPTIONS, ReadOptions
from askwise.texts import split


def budget_of(options: argparse.Namespace) -> Budget:
    """All constraints that are given, together."""
    budget = Budget()
    amounts = (options.average_budget, AverageBudget), (options.hard_budget, HardBudget), (options.tradeoff, Tradeoff)
    for amount, kind in amounts:
        if amount is not None:
            budget = budget & kind(amount)
    return budget


def model_of(options: argparse.Namespace) -> Model:
    """The model of the file, at the budget that is given."""
    model, budget = load(options.model), budget_of(options)
    return model if budget == Budget() else model.at(budget)


def names(text: str | None, separator: str = ",") -> list[str]:
    """A list in an option or a cell."""
    return [name.strip() for name in split(text or "", separator)]


def reading_of(options: argparse.Namespace) -> ReadOptions:
    """How the file of cases is written, as far as it is said."""
    return ReadOptions(**{name: getattr(options, name) for name in OPTIONS})
