"""What may be said of a claim, and the rules that say it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from askwise.bench.rows import Row
from askwise.reports.pages import Table
from benchmarks.paper.intervals import Estimate

REPRODUCED, NOT_REPRODUCED = "reproduced", "not reproduced"
HERE, YET, NOT_RUN = "cannot be told here", "cannot be told yet", "not run yet"
VERDICTS = (REPRODUCED, NOT_REPRODUCED, HERE, YET, NOT_RUN)
NOTHING = "–"

Rule = Callable[[Estimate], str | None]  # None: the interval holds both


@dataclass(frozen=True)
class Line:
    """A line of a claim's table with a verdict of its own. What the paper does not say is shown, but does not count."""

    cells: tuple[str, ...]
    verdict: str
    counts: bool = True


@dataclass(frozen=True)
class Finding:
    """A claim's verdict, its table, and the rows that it comes from."""

    verdict: str
    tables: tuple[Table, ...]
    rows: tuple[Row, ...]


def above(margin: float = 0.0) -> Rule:
    """By more than the margin: reproduced where the whole interval is above it, not reproduced where all of it is below."""

    def rule(of: Estimate) -> str | None:
        return REPRODUCED if of.low > margin else NOT_REPRODUCED if of.high < margin else None

    return rule


def below(margin: float = 0.0) -> Rule:
    """By more than the margin."""

    def rule(of: Estimate) -> str | None:
        return REPRODUCED if of.high < margin else NOT_REPRODUCED if of.low > margin else None

    return rule


def within(margin: float) -> Rule:
    """No more than the margin from 0, on either side."""

    def rule(of: Estimate) -> str | None:
        inside, outside = -margin < of.low and of.high < margin, of.low > margin or of.high < -margin
        return REPRODUCED if inside else NOT_REPRODUCED if outside else None

    return rule


def judged(of: Estimate | None, rule: Rule, *, complete: bool, whole: bool) -> str:
    """The verdict of an estimate. `complete`: no row lacks of the seeds that it is made of; otherwise it may change, whatever it
    says. `whole`: no more rows are planned; otherwise an interval that holds both may shrink."""
    if of is None:
        return NOT_RUN
    if not complete:
        return YET
    return rule(of) or (HERE if whole else YET)


def counted(share: float, least: float, *, complete: bool, any_rows: bool) -> str:
    """The verdict of a share of cases that must be at least so large; all of them must be there."""
    if not any_rows:
        return NOT_RUN
    return YET if not complete else REPRODUCED if share >= least else NOT_REPRODUCED


def together(verdicts: Iterable[str]) -> str:
    """Reproduced if all are; not reproduced if any is not; otherwise it cannot be told."""
    all_of = list(verdicts)
    if NOT_REPRODUCED in all_of:
        return NOT_REPRODUCED
    for verdict in (REPRODUCED, NOT_RUN):
        if set(all_of) <= {verdict}:
            return verdict
    return HERE if YET not in all_of and NOT_RUN not in all_of else YET


def finding(title: str, head: Sequence[str], lines: Sequence[Line], rows: Iterable[Row]) -> Finding:
    """A claim with one table, one verdict for each line, and one for all that count."""
    cells = tuple((*line.cells, line.verdict if line.counts else f"{line.verdict} (not in the paper)") for line in lines)
    verdict = together(line.verdict for line in lines if line.counts)
    return Finding(verdict, (Table(title, (*head, "verdict"), cells),), tuple(rows))
