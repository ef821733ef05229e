"""Figures 7, 8 and 10, and run times: the course of training, missing values, and what it takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from askwise.bench.rows import Row
from askwise.reports.pages import Table
from benchmarks.paper.claims import SMALL, compared, difference_shown, shown
from benchmarks.paper.evidence import IMAGES, UNIT, Evidence, Sweep, called, percent
from benchmarks.paper.experiments import preset
from benchmarks.paper.intervals import Quantity
from benchmarks.paper.pooled import rewards
from benchmarks.paper.published import PUBLISHED, paper_of
from benchmarks.paper.verdicts import (
    NOT_REPRODUCED,
    NOT_RUN,
    NOTHING,
    REPRODUCED,
    YET,
    Finding,
    Line,
    above,
    counted,
    finding,
    judged,
)

OFTEN = 0.8  # of trainings
NEAR = 0.1  # of a budget: where lambda has settled
SHARES = (0.25, 0.5, 0.75, 0.9)
MUCH = 0.75  # is missing
HALF_LEAD = 0.01  # of mdp before mice: half of the paper's smallest where much is missing
FILLINGS = ("mean", "mice", "mdp")

# ---------------------------------------------------------------------- figure 7


def binds(row: Row) -> bool:
    """Whether the budget holds the policy back at the end: lambda is above 0 there."""
    return row["task"]["budget"]["average"] > 0 and row["quarters"][-1][0] > 0


def oscillates(row: Row) -> bool:
    """The cost crosses the budget twice or more in the first half."""
    return sum(quarter[4] for quarter in row["quarters"][:2]) >= 2


def settles(row: Row) -> bool:
    """In the last quarter lambda moves less than half as much as in the first, and the mean cost is near the budget."""
    first, last, b = row["quarters"][0], row["quarters"][-1], row["task"]["budget"]["average"]
    return last[1] < first[1] / 2 and abs(last[2] - b) <= NEAR * b


def lambda_settles(evidence: Evidence) -> Finding:
    lines, rows = [], []
    for data in SMALL:
        sweep = evidence.sweep("targets", data, "average")
        bound = [row for row in sweep.rows if binds(row)]
        rows += bound
        both = [oscillates(row) and settles(row) for row in bound]
        share = float(np.mean(both)) if both else 0.0
        verdict = counted(share, OFTEN, complete=sweep.whole, any_rows=bool(bound))
        counts = [sum(map(rule, bound)) for rule in (oscillates, settles)]
        lines.append(Line((called(data), str(len(bound)), *map(str, counts), str(sum(both))), verdict, data == "miniboone_tiny"))
    head = ("data", "trainings whose budget binds", "oscillate at first", "settle", "both")
    return finding("Lambda and cost over the training", head, lines, rows)


# ---------------------------------------------------------------------- figure 8


def course_of(row: Row) -> np.ndarray:
    return np.asarray(row["course"], float)


def at_the_end(row: Row) -> float:
    """Validation accuracy, mean over the last tenth of the course."""
    course = course_of(row)
    return float(course[course[:, 0] > 0.9 * course[-1, 0], 5].mean())


def averaged(rows: Sequence[Row]) -> tuple[np.ndarray, np.ndarray]:
    """Steps, and the columns of the course after them, averaged over trainings up to where the first of them ends."""
    courses = [course_of(row) for row in rows]
    step = courses[0][:, 0]
    step = step[step <= min(course[-1, 0] for course in courses)]
    return step, np.mean([[np.interp(step, c[:, 0], c[:, i]) for i in range(1, c.shape[1])] for c in courses], 0)


def course_sweeps(evidence: Evidence) -> tuple[Sweep, Sweep, Sweep]:
    """A tradeoff of 0; a budget below saturation; all tests."""
    free = evidence.sweep("course", "miniboone_tiny", "tradeoff")
    amounts = sorted({t.task.budget["average"] for t in evidence.sweep("course", "miniboone_tiny", "average").planned})
    below, everything = (evidence.sweep("course", "miniboone_tiny", "average", amounts=[b]) for b in amounts)
    return free, below, everything


def budget_against_overfitting(evidence: Evidence) -> Finding:
    free, bound, everything = course_sweeps(evidence)
    ends = [Quantity({row["task"]["seed"]: at_the_end(row) for row in sweep.rows}) for sweep in (free, bound)]
    difference = ends[1].minus(ends[0])
    verdict = judged(difference.estimate, above(), complete=True, whole=free.whole and bound.whole)
    names = ("tradeoff 0", f"b = {bound.planned[0].task.budget['average']:g}")
    published = PUBLISHED["free"]["tradeoff 0"], PUBLISHED["free"]["all tests"]
    lines = []
    for name, sweep, end, of in zip(names, (free, bound), ends, published, strict=True):
        paper = f"{of['accuracy']:.3f} after {of['steps']:,}"
        cells = (NOTHING,) * 5
        if sweep.rows:
            step, columns = averaged(sweep.rows)
            best = int(columns[4].argmax())
            top, fall = columns[4][best], columns[4][best] - np.mean(list(end.by_seed.values()))
            spent = f"{columns[1][-1]:.1f}", f"{columns[0].max():.4f}"
            cells = (f"{top:.4f} after {step[best]:,.0f}", f"{shown(end)} after {step[-1]:,.0f}", f"{fall:.4f}", *spent)
        lines.append((name, paper, *cells, str(len(sweep.rows))))
    head = (
        "setting",
        "the paper's best (its b: 50)",
        "our best",
        "our last tenth",
        "fall",
        "cost at the end",
        "largest lambda",
        "seeds",
    )
    title = "Validation accuracy over the training, mean over seeds"
    last = finding("At the end", ("difference, b less tradeoff 0",), [Line((difference_shown(difference),), verdict)], [])
    tables = (Table(title, head, tuple(lines)), *last.tables, same_run(free, everything))
    return Finding(verdict, tables, (*free.rows, *bound.rows, *everything.rows))


def same_run(free: Sweep, everything: Sweep) -> Table:
    """Whether a budget of all tests is the same training as a tradeoff of 0."""
    lines = []
    for row in everything.rows:
        twin = [other for other in free.rows if other["task"]["seed"] == row["task"]["seed"]]
        if twin:
            ours, theirs = course_of(row), course_of(twin[0])
            n = min(len(ours), len(theirs))
            same = int((ours[:n] == theirs[:n]).all(1).sum())
            lines.append((str(row["task"]["seed"]), f"{same} of {n}", f"{ours[:, 1].max():g}", f"{ours[:, 2].max():.1f}"))
    head = ("seed", "measurements that are the same", "largest lambda", "largest mean cost")
    return Table("b = 50 as printed, beside a tradeoff of 0", head, tuple(lines))


# ---------------------------------------------------------------------- figure 10


def missing(evidence: Evidence, data: str, filling: str, share: float) -> Sweep:
    """Trainings with a share of the values removed; with 0, those with all values and the same tradeoffs."""
    group = "missing" if data == "miniboone_tiny" else f"missing {data}"
    if share:
        return evidence.sweep(group, data, "tradeoff", filling, remove=share)
    amounts = {t.task.budget["tradeoff"] for t in missing(evidence, data, "mdp", SHARES[-1]).planned}
    return evidence.sweep("tradeoffs" if data == "miniboone_tiny" else group, data, "tradeoff", amounts=sorted(amounts))


def mdp_against_mice(much: bool) -> Callable[[Evidence], Finding]:
    def judge(evidence: Evidence) -> Finding:
        lines, rows, beside = [], [], []
        for data in ("miniboone_tiny", "forest"):
            for share in SHARES:
                ours, theirs = (missing(evidence, data, filling, share) for filling in ("mdp", "mice"))
                if (share >= MUCH) == much and ours.planned:
                    line = compared(data, ours, theirs, ("mdp", "mice"), above(-HALF_LEAD))
                    published = PUBLISHED["missing"].get(paper_of(data), {}).get(f"{share:g}", {})
                    cells = percent(share), " / ".join(f"{published[f]:.3f}" if published else NOTHING for f in ("mdp", "mice"))
                    lines.append(Line((line.cells[0], *cells, *line.cells[3:]), line.verdict, counts=bool(published)))
                    rows += [*ours.counted, *theirs.counted]
                    both = rewards(ours.counted), rewards(theirs.counted)
                    beside.append((*line.cells[:1], percent(share), *map(shown, both), difference_shown(both[0].minus(both[1]))))
        head = ("data", "removed", "the paper", "mdp", "mice", "difference")
        result = finding("Areas on test rows: mdp / mice", head, lines, rows)
        title = "What was learned for on test rows: the score less the tradeoff times the cost"
        return Finding(result.verdict, (*result.tables, Table(title, head[:2] + head[3:], tuple(beside))), result.rows)

    return judge


def more_missing_is_worse(evidence: Evidence) -> Finding:
    """From all values, and from a quarter removed, to nine tenths removed."""
    lines, rows, areas = [], [], []
    for data in ("miniboone_tiny", "forest"):
        for filling in FILLINGS:
            sweeps = [missing(evidence, data, filling, share) for share in (0.0, *SHARES)]
            rows += [row for sweep in sweeps for row in sweep.counted]
            areas.append((called(data), filling, *(shown(sweep.area) for sweep in sweeps)))
            for start in (i for i in (0, 1) if sweeps[i].planned):
                name = "nothing" if start == 0 else percent(SHARES[0])
                lost = sweeps[start].area.minus(sweeps[-1].area)
                complete, whole = (all(getattr(sweeps[i], what) for i in (start, -1)) for what in ("complete", "whole"))
                verdict = judged(lost.estimate, above(), complete=complete, whole=whole)
                lines.append(
                    Line((called(data), filling, name, difference_shown(lost)), verdict, counts=data == "miniboone_tiny")
                )
    head = ("data", "filling", "removed: from", f"area less that with {percent(SHARES[-1])} removed")
    result = finding("What is lost", head, lines, rows)
    table = Table("Areas on test rows by the share removed", ("data", "filling", "nothing", *map(percent, SHARES)), tuple(areas))
    return Finding(result.verdict, (table, *result.tables), result.rows)


# ---------------------------------------------------------------------- run times


def run_times(evidence: Evidence) -> Finding:
    """What the paper's schedule would take here, from our CPU seconds for each state that was learned from."""
    lines, rows, hours = [], [], {}
    for data in UNIT:
        sweep = evidence.sweep("images" if data in IMAGES else "tradeoffs", data, "tradeoff")
        rows += sweep.rows
        minutes = PUBLISHED["minutes"][paper_of(data)]
        cells = (called(data), time_words(minutes * 60), NOTHING, NOTHING, NOTHING)
        if sweep.rows:
            seconds, states = (sum(row[name] for row in sweep.rows) for name in ("cpu_seconds", "states"))
            paper = preset("paper", paper_of(data))
            hours[data] = paper.max_steps * paper.batch_steps * seconds / states / 3600
            mean = seconds / len(sweep.rows)
            cells = (*cells[:2], time_words(mean), f"{1e6 * seconds / states:.1f}", time_words(3600 * hours[data]))
        lines.append((*cells, str(len(sweep.rows))))
    order = [data for data in sorted(UNIT, key=lambda data: PUBLISHED["minutes"][paper_of(data)]) if data in hours]
    pairs = [(a, b) for a in order for b in order if PUBLISHED["minutes"][paper_of(a)] < PUBLISHED["minutes"][paper_of(b)]]
    if not hours:
        verdict = NOT_RUN
    elif len(hours) < len(UNIT):
        verdict = YET
    else:
        verdict = REPRODUCED if all(hours[a] < hours[b] for a, b in pairs) else NOT_REPRODUCED
    head = (
        "data",
        "the paper, GPU",
        "ours, one core, mean",
        "microseconds per state",
        "the paper's schedule here, one core",
        "trainings",
    )
    return Finding(verdict, (Table("One training for one tradeoff", head, tuple(lines)),), tuple(rows))


def time_words(seconds: float) -> str:
    """In the unit that suits."""
    for unit, size in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} seconds"
