"""Is the paper's algorithm, as users get it by default, better or worse than in another checkout, on small tables?

    ./dev sh python -m benchmarks.paper.tables OLD NEW [--seeds 10] [--processes 1] [--only heart wine]

OLD and NEW are folders with a src/ under git. They take turns on each table and seed, each in a process of its own. A row is
appended as each of them finishes, under the last commit that changed its src/; what has a row is not run again. So it can be
killed and goes on. Without OLD and NEW the page is written again from the rows: of either side those of its last commit.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from askwise.core.budget import AverageBudget
from askwise.paper.select import History, unsettled
from askwise.training.result import InterimMeasurement
from benchmarks.paper.claims import CLOSE, NOTHING
from benchmarks.paper.fits import SHARES
from benchmarks.paper.intervals import Estimate, Quantity
from benchmarks.rows import Row, fill, read
from benchmarks.script import arguments, head, line

ROOT = Path(__file__).parents[2]
ROWS = Path(__file__).parent / "results" / "tables.jsonl"
TABLES = ("heart", "pima", "hepatitis", "breast_cancer", "wine", "thyroid", "miniboone_tiny")
SIDES = ("before", "after")


# ---------------------------------------------------------------------- rows


def revision_of(checkout: Path) -> str:
    """The last commit that changed its source."""

    def git(*command: str) -> str:
        return subprocess.run(["git", "-C", str(checkout), *command], check=True, capture_output=True, text=True).stdout.strip()

    if git("status", "--porcelain", "--", "src"):
        raise SystemExit(f"{checkout} has changes that are not committed, so its rows could not be told from others")
    return git("log", "-1", "--format=%h", "--", "src")


def row_of(side: str, revision: str, data: str, seed: int, *, checkouts: dict[str, Path]) -> Row:
    """The row of one side, table and seed."""
    checkout = checkouts[side].resolve()
    one_thread = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.paper.fits", str(checkout), data, str(seed)],
        env={**os.environ, **one_thread, "PYTHONPATH": str(checkout / "src")},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    if (now := revision_of(checkout)) != revision:
        raise SystemExit(f"{checkout} has changed meanwhile, from {revision} to {now}")
    row: Row = json.loads(ended.stdout)
    for fit in row["budgets"]:
        fit["doubt"] = doubt(fit.pop("history"), fit["budget"])
    return row


def doubt(history: Sequence[Row], b: float) -> str:
    """Why lambda has not settled, if so, by the same rule for both sides."""
    records = [InterimMeasurement.from_dict(record) for record in history]
    first = replace(records[0], step=0)  # a history begins with deciding at once, which counts only as one record more
    return unsettled(History([first, *records], AverageBudget(b)))


# ---------------------------------------------------------------------- from rows to a page


@dataclass(frozen=True)
class Pair:
    """The rows of one table by seed, as far as both sides have them."""

    data: str
    before: dict[int, Row]
    after: dict[int, Row]

    @property
    def sides(self) -> tuple[list[Row], list[Row]]:
        return list(self.before.values()), list(self.after.values())

    def difference(self, number: Any) -> Estimate:
        """After less before, seed by seed; `number` of a row."""
        before, after = (Quantity({seed: number(row) for seed, row in of.items()}) for of in (self.before, self.after))
        estimate = after.minus(before).estimate
        assert estimate is not None
        return estimate


def last_revisions(rows: Sequence[Row]) -> dict[str, str]:
    """By side."""
    return {row["side"]: row["revision"] for row in rows}


def pairs(rows: Sequence[Row], revisions: dict[str, str]) -> list[Pair]:
    """Of all tables that have any."""
    result = []
    for data in TABLES:
        before, after = (
            {row["seed"]: row for row in rows if (row["side"], row["revision"], row["data"]) == (side, revisions.get(side), data)}
            for side in SIDES
        )
        if both := sorted(before.keys() & after.keys()):
            result.append(Pair(data, *({seed: of[seed] for seed in both} for of in (before, after))))
    return result


def met(fit: Row, cost: str = "cost") -> bool:
    """Whether a single network costs about the budget; or less, and no point of its training is better by more than a standard
    error on validation rows: more money does not help."""
    over = fit[cost] - fit["budget"]
    helps = fit["behind"] > fit["error"]
    return bool(fit["single"] and (abs(over) <= CLOSE * fit["budget"] or (over < 0 and not helps)))


def lower(difference: Estimate) -> str:
    if difference.seeds < 2:
        return NOTHING
    return "yes" if difference.high < 0 else "no"


def count(fits: Sequence[bool]) -> str:
    return f"{sum(fits)} of {len(fits)}"


def area_line(pair: Pair) -> str:
    before, after = (np.mean([row["area"] for row in rows]) for rows in pair.sides)
    difference = pair.difference(lambda row: row["area"])
    return line(pair.data, difference.seeds, f"{before:.4f}", f"{after:.4f}", difference.shown(4, "+"), lower(difference))


def budgets_line(data: str, sides: Sequence[Sequence[Row]]) -> str:
    fits = [[fit for row in rows for fit in row["budgets"]] for rows in sides]
    cells = (
        count([what(fit) for fit in of])
        for what in (met, partial(met, cost="test_cost"), lambda fit: fit["single"], lambda fit: not fit["doubt"])
        for of in fits
    )
    return line(data, *cells)


def score_line(pair: Pair, i: int) -> str:
    """Of the i-th budget."""
    fits = [[row["budgets"][i] for row in rows] for rows in pair.sides]
    difference = pair.difference(lambda row: row["budgets"][i]["score"])
    cost, test_cost, error, score = (
        [float(np.mean([fit[name] for fit in of])) for of in fits] for name in ("cost", "test_cost", "test_cost_error", "score")
    )
    return line(
        pair.data,
        f"{fits[0][0]['budget']:.4g}",
        *(f"{c:.4g}" for c in cost),
        *(f"{c:.4g} ± {e:.2g}" for c, e in zip(test_cost, error, strict=True)),
        *(f"{s:.4f}" for s in score),
        difference.shown(4, "+"),
        lower(difference),
    )


def page(rows: Sequence[Row]) -> str:
    """Markdown."""
    revisions = last_revisions(rows)
    of = pairs(rows, revisions)
    both = [[row for pair in of for row in pair.sides[i]] for i in (0, 1)]
    budgets = ", ".join(f"{100 * share:g} %" for share in SHARES)
    lines = [
        "# The paper's algorithm on small tables, before and after",
        "",
        '`CostlyClassifier(algorithm="paper")` with all settings as they come and no time limit, by the source of two commits:',
        f"{revisions.get('before')} (before) and {revisions.get('after')} (after). Both have the same rows and seeds.",
        "thyroid has balanced class weights. The score is 1 - loss / loss scale. Intervals are Student's, of 95 %, for the mean",
        "difference over the seeds.",
        "",
        "`./dev sh python -m benchmarks.paper.tables OLD NEW`",
        "",
        "## Fits without a budget: area on test rows",
        "",
        *head("data | seeds | before | after | difference | lower beyond the interval"),
        *map(area_line, of),
        "",
        "## Fits for average budgets: are they met?",
        "",
        f"For {budgets} of what all tests cost. A budget is met by a single network that costs within {100 * CLOSE:g} % of it;",
        "or less, where no point of that fit is better on validation rows by more than a standard error. The rows of the fit are",
        "those for training and validation. Whether lambda has settled is judged by one rule for both.",
        "",
        *head(f"data | {twice('met, rows of the fit', 'met, test rows', 'single network', 'lambda settled')}"),
        *(budgets_line(pair.data, pair.sides) for pair in of),
        *([budgets_line("all", both)] if of else []),
        "",
        "## Fits for average budgets: mean costs, and scores on test rows",
        "",
        "± is the standard error of the mean cost of one seed's test rows, on average over the seeds.",
        "",
        *head(
            f"data | budget | {twice('cost, rows of the fit', 'cost, test rows', 'score')} | difference of scores | "
            "lower beyond the interval"
        ),
        *(score_line(pair, i) for pair in of for i in range(len(SHARES))),
    ]
    return "\n".join(lines) + "\n"


def twice(*columns: str) -> str:
    """Heads of columns, each for both sides."""
    return " | ".join(f"{column}, {side}" for column in columns for side in SIDES)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("checkouts", nargs="*", type=Path, metavar="OLD NEW")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=TABLES, default=TABLES)
    parser.add_argument("--out", type=Path, default=ROWS, help="rows; the page is beside them")
    options = parser.parse_args()
    if len(options.checkouts) not in (0, 2):
        parser.error("name two checkouts, or none")
    for checkout in options.checkouts:
        if not (checkout / "src").is_dir():
            parser.error(f"{str(checkout)!r} is no checkout of askwise; it must be a folder that holds src")
    checkouts = dict(zip(SIDES, options.checkouts, strict=False))
    revisions = {side: revision_of(checkout) for side, checkout in checkouts.items()}
    jobs = [
        {"side": side, "revision": revisions[side], "data": data, "seed": seed}
        for data in options.only
        for seed in range(options.seeds)
        for side in checkouts
    ]
    for row in fill(options.out, jobs, partial(row_of, checkouts=checkouts), options.processes):
        print(f"{row['data']}, seed {row['seed']}, {row['side']}: area {row['area']:.4f}, {row['cpu_seconds']} s", flush=True)
        options.out.with_suffix(".md").write_text(page(read(options.out)))
    text = page(read(options.out))
    options.out.with_suffix(".md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
