"""Which of given cases a model was fitted on: figures on those are too good. A model holds no cases, but numbers of some of them.

A number is made from all values of a row and its class. Of the rows of a fit those with the smallest numbers are kept, so that of
any rows those whose number is not above the largest that was kept, which are as good as drawn by lot, can be looked up. Rows of
different cases may be alike, and are where values are few; how often is counted in the fit, and only what is more tells.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from askwise.core.arrays import Ints
from askwise.core.problem import Problem
from askwise.core.sampling import hash_cases, uniform

KEPT = 512  # enough to tell shares of 5 %; some kB of a file
NUMBERS = 2**32  # a row has one of so many: not enough to tell its values from it
CLEAR = 0.05  # a share of rows of the fit that is worth a sentence
ERRORS = 3.0  # standard errors that chance explains


def row_numbers(problem: Problem, chunk: int = 65_536) -> Ints:
    """N: the number of each row with its class. Part by part, since a copy of all rows could be as large as the data."""
    numbers = np.empty(len(problem), np.int64)
    for i in range(0, len(problem), chunk):
        part = slice(i, i + chunk)
        rows = np.column_stack([problem.X[part], problem.labels[part]])
        numbers[part] = uniform(hash_cases(rows), 0) * NUMBERS
    return numbers


def to_facts(*problems: Problem) -> dict[str, Any]:
    """What `share_of_fit` looks rows up in, for JSON. problems: rows to learn from, and others to choose by."""
    different = {problem.fingerprint: problem for problem in problems}  # where rows are few both are the same ones
    numbers, often = np.unique(np.concatenate([row_numbers(p) for p in different.values()]), return_counts=True)
    kept, often = numbers[:KEPT], often[:KEPT]
    upto = NUMBERS if len(numbers) == len(kept) else int(kept[-1])
    return {"numbers": kept.tolist(), "upto": upto, "alike": float(often[often > 1].sum() / often.sum())}


def share_of_fit(facts: Mapping[str, Any], problem: Problem) -> float | None:
    """The share of labelled rows that are rows of the fit, beyond those that are alike by chance; 0 where chance explains all of
    it, None where that cannot be told: by models of earlier versions, and by rows that are few beside those of the fit."""
    kept = facts.get("fit_rows")
    if kept is None:
        return None
    numbers = row_numbers(problem)
    looked_up = numbers[numbers <= kept["upto"]]
    if not len(looked_up):
        return None
    n, known = len(looked_up), np.array(kept["numbers"], np.int64)
    met = float(np.isin(looked_up, known).mean())
    alike = (kept["alike"] * len(known) + 1) / (len(known) + 1)
    share = max((met - alike) / (1 - alike), 0.0) if alike < 1 else 0.0
    return (1.0 if met == 1 else share) if share > CLEAR and met - alike > ERRORS * (alike * (1 - alike) / n) ** 0.5 else 0.0


def sentence(facts: Mapping[str, Any], problem: Problem) -> str:
    """That some of the rows, and how many, are rows of the fit; empty where they are not, or where that cannot be told."""
    share = share_of_fit(facts, problem)
    if not share:
        return ""
    many = "these cases are" if share == 1 else f"about {max(100 * share, 1):.0f} % of these cases are"
    return f"{many} rows that the model was fitted on, so these figures are too good; cases that no fit has seen tell more"


def fits(facts: Mapping[str, Any]) -> bool:
    """Whether what a file says of them can be used."""
    kept = facts.get("fit_rows")
    if kept is None:
        return True
    if not isinstance(kept, dict) or set(kept) != {"numbers", "upto", "alike"} or not isinstance(kept["numbers"], list):
        return False
    whole = [kept["upto"], *kept["numbers"]]
    counted = all(type(x) is int and 0 <= x <= NUMBERS for x in whole) and 0 < len(whole) - 1 <= KEPT
    return counted and type(kept["alike"]) is float and 0 <= kept["alike"] <= 1
