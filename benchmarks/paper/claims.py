"""Figures 5, 6 and 9: areas compared, and average budgets met. Each function judges one claim by the rows that there are."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from askwise.bench.rows import Row
from askwise.reports.pages import Table
from benchmarks.paper.evidence import IMAGES, UNIT, Evidence, Sweep, called
from benchmarks.paper.intervals import Estimate, Quantity
from benchmarks.paper.pooled import COST, Pool, areas, by_seed, means, most, score_of
from benchmarks.paper.published import PUBLISHED, paper_of, printed
from benchmarks.paper.verdicts import (
    HERE,
    NOT_REPRODUCED,
    NOT_RUN,
    NOTHING,
    REPRODUCED,
    YET,
    Finding,
    Line,
    Rule,
    above,
    below,
    counted,
    finding,
    judged,
    within,
)

CLOSE = 0.05  # of a budget: it is met
OFTEN = 0.8  # of trainings
UNUSED = 0.9  # of all tests: less is not all
NETWORKS = ("chosen", "mixture", "last")
FEW = 20  # tests, on cifar
FAILS = 0.06  # below the baseline: half of what the paper has
ALIKE = 0.01  # of a score
SMALL = ("miniboone_tiny", "nhanes")


def shown(quantity: Quantity) -> str:
    of = quantity.estimate
    return NOTHING if of is None else of.shown(4)


def difference_shown(quantity: Quantity) -> str:
    """With the number of seeds that both have."""
    of = quantity.estimate
    return NOTHING if of is None else f"{of.shown(4, '+')}, {of.seeds} seed{'s' * (of.seeds > 1)}"


def compared(
    data: str, ours: Sweep, theirs: Sequence[Row] | Sweep, names: tuple[str, str], rule: Rule, kind: str = "lambda"
) -> Line:
    """Two areas, and their difference seed by seed."""
    other = theirs.area if isinstance(theirs, Sweep) else areas(theirs)
    difference = ours.area.minus(other)
    complete = bool(ours.complete) and (not isinstance(theirs, Sweep) or bool(theirs.complete))
    whole = ours.whole and (theirs.whole if isinstance(theirs, Sweep) else set(other.by_seed) >= set(ours.area.by_seed))
    published = [printed(kind, data, name) for name in names]
    cells = (called(data), names[1], " / ".join(published), shown(ours.area), shown(other), difference_shown(difference))
    verdict = HERE if bought_nothing(ours.counted) else judged(difference.estimate, rule, complete=complete, whole=whole)
    return Line(cells, verdict)


def bought_nothing(rows: Sequence[Row]) -> bool:
    """Whether no training learned to buy anything: prices were too high for how long it learned, and areas tell nothing."""
    return bool(rows) and not any(row["cost"] for row in rows)


AREAS = ("data", "compared with", "the paper: its own / this", "ours: its own", "this", "difference")


def beats(data: str, labels: Sequence[str], rule: Rule = above()) -> Callable[[Evidence], Finding]:  # noqa: B008
    """The area of rl, one training for each tradeoff, less that of others."""

    def judge(evidence: Evidence) -> Finding:
        name = "images" if data in IMAGES else "tradeoffs"
        ours = evidence.sweep(name, data, "tradeoff")
        others = {label: evidence.other(data, label) for label in labels}
        lines = [compared(data, ours, rows, ("rl", label), rule) for label, rows in others.items()]
        return finding("Areas on test rows", AREAS, lines, [*ours.counted, *(row for rows in others.values() for row in rows)])

    return judge


def prior_art(evidence: Evidence) -> Finding:
    """rl against adapt-gbrt where there are two classes, and against budget-prune."""
    parts = [beats(data, (["adapt-gbrt"] if data == "miniboone_tiny" else []) + ["budget-prune"])(evidence) for data in UNIT]
    rows = [row for part in parts for row in part.rows]
    cells = tuple(row for part in parts for row in part.tables[0].rows)
    lines = [Line(row[:-1], row[-1]) for row in cells]
    return finding("Areas on test rows", AREAS, lines, rows)


def frontier_difference(data: str, labels: tuple[str, str], rule: Rule) -> Callable[[Evidence], Finding]:
    """Two methods that are compared with, one with the other."""

    def judge(evidence: Evidence) -> Finding:
        first, second = (evidence.other(data, label) for label in labels)
        difference = areas(first).minus(areas(second))
        cells = (
            called(data),
            labels[1],
            " / ".join(printed("lambda", data, label) for label in labels),
            shown(areas(first)),
            shown(areas(second)),
            difference_shown(difference),
        )
        line = Line(cells, judged(difference.estimate, rule, complete=True, whole=True))
        return finding(f"Areas on test rows: {labels[0]}", AREAS, [line], [*first, *second])

    return judge


def others_below_baseline(evidence: Evidence) -> Finding:
    parts = [
        frontier_difference("miniboone_tiny", (label, "baseline"), below())(evidence) for label in ("adapt-gbrt", "budget-prune")
    ]
    lines = [
        Line((label, *part.tables[0].rows[0][:-1]), part.verdict)
        for label, part in zip(("adapt-gbrt", "budget-prune"), parts, strict=True)
    ]
    return finding("Areas on test rows", ("method", *AREAS), lines, [row for part in parts for row in part.rows])


def ahead_at_few_tests(evidence: Evidence) -> Finding:
    """On cifar: the mean score of the curves up to a mean cost of 20. Both are shares of test rows, taken as independent."""
    ours, theirs = evidence.sweep("images", "cifar", "tradeoff"), evidence.other("cifar", "baseline")
    estimate, cells = None, (NOTHING, NOTHING, NOTHING)
    if ours.rows and theirs:
        whole = Pool(ours.counted).curve
        first, second = mean_up_to(whole.cost, whole.score, FEW), mean_up_to(*theirs[0]["curve"], FEW)
        half = 1.96 * math.sqrt((first * (1 - first) + second * (1 - second)) / theirs[0]["n_test"])
        estimate = Estimate(first - second, first - second - half, first - second + half, 1)
        cells = (f"{first:.4f}", f"{second:.4f}", estimate.shown(4, "+"))
    verdict = judged(estimate, above(), complete=bool(ours.complete), whole=ours.whole)
    verdict = HERE if bought_nothing(ours.counted) else verdict
    head = ("data", "rl", "baseline", "difference")
    return finding(f"Mean score up to {FEW} tests, test rows", head, [Line(("cifar", *cells), verdict)], [*ours.counted, *theirs])


def mean_up_to(cost: Sequence[float], score: Sequence[float], end: float) -> float:
    """The mean height of a curve from 0 to a cost."""
    x = np.unique(np.r_[[c for c in cost if c < end], 0.0, end])
    return float(np.trapezoid(np.interp(x, cost, score), x) / end)


# ---------------------------------------------------------------------- average budgets by target


def met(row: Row, network: str, runs: Sequence[Row]) -> bool:
    """Whether the network's cost on test rows is within 5 % of the budget; or below it, where more money does not help: on
    validation rows no chosen network of the same seed, for whatever budget, is better by more than a standard error. Dearer ones
    must be among them: they are the ones that show what more money buys."""
    b, cost = row["task"]["budget"]["average"], means(row, "test", network)[COST]
    if abs(cost - b) <= CLOSE * b:
        return True
    if cost > b:
        return False
    own = score_of(row, "validation", network)
    best = max(score_of(r, "validation") for r in runs if r["task"]["seed"] == row["task"]["seed"])
    return best - own <= math.sqrt(own * (1 - own) / row["n_validation"])


def budgets_met(evidence: Evidence) -> Finding:
    lines, rows = [], []
    for data in SMALL:
        sweep = evidence.sweep("targets", data, "average")
        rows += sweep.rows
        hits = {network: [met(row, network, sweep.rows) for row in sweep.rows] for network in NETWORKS}
        share = float(np.mean(hits["chosen"])) if sweep.rows else 0.0
        verdict = counted(share, OFTEN, complete=sweep.whole, any_rows=bool(sweep.rows))
        cells = [f"{sum(of)} of {len(of)}" if of else NOTHING for of in hits.values()]
        doubts = f"{sum(bool(row['doubt']) for row in sweep.rows)}" if sweep.rows else NOTHING
        lines.append(Line((called(data), *cells, doubts), verdict))
    head = ("data", "best single network", "mixture of two", "last network", "lambda had not settled")
    result = finding("Trainings (budget and seed) that meet their budget on test rows", head, lines, rows)
    return Finding(result.verdict, (*result.tables, wanted_and_achieved(evidence)), result.rows)


def wanted_and_achieved(evidence: Evidence) -> Table:
    lines = []
    for data in SMALL:
        sweep = evidence.sweep("targets", data, "average")
        for b in sorted({row["task"]["budget"]["average"] for row in sweep.rows}):
            here = sweep[{"average": b}]
            costs = [spread([means(row, "test", network)[COST] for row in here], 2) for network in NETWORKS]
            scores = [spread([score_of(row, "test", network) for row in here], 4) for network in NETWORKS]
            lines.append((called(data), f"{b:g}", str(len(here)), *costs, *scores))
    heads = [f"{what}, {network}" for what in ("cost", "score") for network in NETWORKS]
    return Table(
        "Wanted and achieved on test rows, mean and deviation over seeds", ("data", "budget", "seeds", *heads), tuple(lines)
    )


def spread(values: Sequence[float], digits: int) -> str:
    """Mean and deviation."""
    mean = f"{np.mean(values):.{digits}f}"
    return f"{mean} ± {np.std(values, ddof=1):.{digits}f}" if len(values) > 1 else mean


def largest_unused(evidence: Evidence) -> Finding:
    """What the best single network spends where it may spend all: on miniboone for the largest budget; on nhanes, whose budgets
    are small, for a tradeoff of 0."""
    lines, rows = [], []
    for data, name, budget in (("miniboone_tiny", "targets", {"average": 50}), ("nhanes", "tradeoffs", {"tradeoff": 0})):
        sweep = evidence.sweep(name, data, next(iter(budget)))
        here = sweep[budget]
        rows += here
        share = Quantity({row["task"]["seed"]: row["cost"] / row["obtainable"] for row in here})
        planned = {t.task.seed for t in sweep.planned if t.task.budget == budget}
        verdict = judged(share.estimate, below(UNUSED), complete=True, whole=len(here) == len(planned))
        unit = UNIT[data]
        spent = f"{np.mean([row['cost'] for row in here]) / unit:.1f} of {here[0]['obtainable'] / unit:.1f}" if here else NOTHING
        lines.append(Line((called(data), PUBLISHED["target"][paper_of(data)], spent, shown(share)), verdict))
    head = ("data", "the paper", "ours, mean over seeds", "share")
    return finding("Mean cost where all may be spent, in units of the dearest test, test rows", head, lines, rows)


def runs_alike(evidence: Evidence) -> Finding:
    """Deviation of the score over the seeds of a budget, root of the mean square over budgets."""
    lines, rows, values = [], [], []
    for data in SMALL:
        sweep = evidence.sweep("targets", data, "average")
        rows += sweep.rows
        budgets = sorted({row["task"]["budget"]["average"] for row in sweep.rows})
        groups = [[score_of(row, "test") for row in sweep[{"average": b}]] for b in budgets]
        squares = [np.var(of, ddof=1) for of in groups if len(of) > 1]
        values.append(float(np.sqrt(np.mean(squares))) if squares else None)
        if values[-1] is None:
            verdict = NOT_RUN if not sweep.rows else YET
        elif not sweep.whole:
            verdict = YET
        elif data == "miniboone_tiny":
            verdict = REPRODUCED if values[-1] <= ALIKE else NOT_REPRODUCED
        else:
            verdict = YET if values[0] is None else REPRODUCED if values[-1] > values[0] else NOT_REPRODUCED
        lines.append(
            Line((called(data), NOTHING if values[-1] is None else f"{values[-1]:.4f}", str(len(by_seed(sweep.rows)))), verdict)
        )
    return finding("Deviation of the test score between seeds of one budget", ("data", "deviation", "seeds"), lines, rows)


def targets_like_tradeoffs(evidence: Evidence) -> Finding:
    data = "miniboone_tiny"
    ours, theirs = evidence.sweep("targets", data, "average"), evidence.sweep("tradeoffs", data, "tradeoff")
    line = compared(data, ours, theirs, ("rl by target", "rl by tradeoff"), within(ALIKE))
    return finding("Areas on test rows", AREAS, [line], [*ours.counted, *theirs.counted])


# ---------------------------------------------------------------------- hard budgets


def hard_against(label: str) -> Callable[[Evidence], Finding]:
    """rl-hard against a frontier whose policies keep to hard budgets."""

    def judge(evidence: Evidence) -> Finding:
        lines, rows = [], []
        for data in SMALL:
            ours, theirs = evidence.sweep("hard", data, "hard"), evidence.other(data, label)
            lines.append(compared(data, ours, theirs, ("rl-hard", label), above(), "hard"))
            rows += [*ours.counted, *theirs]
        return finding("Areas on test rows", AREAS, lines, rows)

    return judge


def hard_below_tradeoffs(evidence: Evidence) -> Finding:
    lines, rows = [], []
    for data in SMALL:
        ours, theirs = evidence.sweep("hard", data, "hard"), evidence.sweep("tradeoffs", data, "tradeoff")
        line = compared(data, ours, theirs, ("rl-hard", "rl-lambda"), below(), "hard")
        lines.append(Line(line.cells, line.verdict, counts=data == "miniboone_tiny"))
        rows += [*ours.counted, *theirs.counted]
    return finding("Areas on test rows", AREAS, lines, rows)


def never_above(evidence: Evidence) -> Finding:
    lines, rows = [], []
    for data in SMALL:
        sweep = evidence.sweep("hard", data, "hard")
        rows += sweep.rows
        over = [most(row, network) - row["task"]["budget"]["hard"] for row in sweep.rows for network in ("chosen", "last")]
        share = float(np.mean([o <= 0 for o in over])) if over else 0.0
        complete = sweep.whole or share < 1  # one case is enough
        verdict = counted(share, 1.0, complete=complete, any_rows=bool(over))
        cases = sum(row["n_test"] for row in sweep.rows)
        cells = (called(data), f"{cases:,}", f"{max(over):g}" if over else NOTHING, str(sum(o > 0 for o in over)))
        lines.append(Line(cells, verdict))
    head = ("data", "test cases, all trainings", "largest cost of a case less its budget", "networks with a case above it")
    return finding("The dearest test case of each training, chosen and last network", head, lines, rows)


def hard_stops_early(evidence: Evidence) -> Finding:
    """At the largest hard budget."""
    lines, rows = [], []
    for data in SMALL:
        sweep = evidence.sweep("hard", data, "hard")
        b = max(t.task.budget["hard"] for t in sweep.planned)
        here = sweep[{"hard": b}]
        rows += here
        share = Quantity({row["task"]["seed"]: row["cost"] / row["obtainable"] for row in here})
        planned = sum(t.task.budget == {"hard": b} for t in sweep.planned)
        verdict = judged(share.estimate, below(UNUSED), complete=True, whole=len(here) == planned)
        cost = spread([row["cost"] for row in here], 1) if here else NOTHING
        lines.append(Line((called(data), f"{b:g}", cost, shown(share)), verdict))
    head = ("data", "largest budget", "mean cost", "share of what can be spent")
    return finding("Mean cost at the largest hard budget, test rows", head, lines, rows)
