"""The work behind `askwise bench report`: one page about the rows of benches, in HTML and in Markdown, from the rows alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from askwise import plots
from askwise.bench import tables
from askwise.bench.entries import Entry, budget_words, entries, grouped, limits_words, mean_curve, with_distinct_data
from askwise.bench.rows import Gathered, Row, gathered
from askwise.errors import InputError, did_you_mean
from askwise.files import check_out, write_whole
from askwise.reports.pages import Block, Code, Heading, Picture, Table, Words, html, markdown
from askwise.texts import encoded

SCORE = (
    "The score of a policy is 1 − loss / loss scale on test cases, where the loss scale is what can be lost in a case on "
    "average. Where all mistakes count alike it is the accuracy. A frontier goes through the points that validation cases "
    "choose. Its area is the mean score over all mean costs from 0 to the cost of everything, so the best possible is 1."
)
AREAS = (
    "Mean ± deviation over seeds. The interval holds 95 of 100 resamplings of the test cases (the mean over seeds, with the "
    "training as it was); it does not cover other trainings, for which the deviation speaks. Best in bold."
)
READINGS = "A cost that is never reached within the frontier is said to be so. Between two points a mixture of both is meant."
MEASURES = "Of each method the point with the least loss on validation cases, measured on test cases. AUROC: two classes only."
BUDGETS = (
    "One policy was made for each budget. Mean ± deviation over seeds; of the intervals, which come from resamplings of the test "
    "cases, the ends are averaged over seeds. Kept: whether the mean cost of the test cases is within an average budget, and "
    "the dearest case within a hard one."
)
RANKS = (
    "1 is the largest area; areas that are equal to four digits share the mean of their places. A method that is not on all data "
    "sets is ranked on those where it is, so its mean rank is not comparable without a look at the columns."
)
DIFFERENCES = (
    "Both methods on the same resamplings of the same test cases, averaged over the seeds that both have; an interval without 0 "
    "is a difference that the choice of test cases does not explain."
)


def report(paths: Sequence[Path], out: Path, title: str = "", against: str | None = None) -> list[Path]:
    """Reads rows, writes the HTML page, the Markdown page and its pictures; what was written, in this order."""
    if out.suffix != ".html":
        raise InputError(f"the report cannot be written to {str(out)!r}; end its name in .html")
    check_out(out, "the report", paths)
    results = gathered(paths)
    rows = tuple(with_distinct_data(results.rows))  # of frontiers and budgets together: one name in all tables
    results = replace(results, rows=rows)
    if not results.rows:
        names = ", ".join(path.name for path in paths)
        passed = f" ({len(results.remarks)} lines were passed over)" if results.remarks else ""
        raise InputError(f"there are no rows of a bench in {names}{passed}; make some with `askwise bench PLAN.toml`")
    title = title or "Methods compared: " + ", ".join(dict.fromkeys(str(row.get("plan") or "rows") for row in results.rows))
    blocks = contents(results, [path.name for path in paths], out, against)
    for block in blocks:
        if isinstance(block, Picture):
            write_whole(out.with_name(block.file), block.svg.encode())
    write_whole(out, encoded(html(title, blocks, contents=True)))
    write_whole(out.with_suffix(".md"), encoded(markdown(title, blocks)))
    return [out, out.with_suffix(".md"), *(out.with_name(b.file) for b in blocks if isinstance(b, Picture))]


def contents(results: Gathered, names: Sequence[str], out: Path, against: str | None = None) -> list[Block]:
    """The whole page, as blocks."""
    frontiers = entries(row for row in results.done if row["task"]["budget"] is None)
    budgeted = entries(row for row in results.done if row["task"]["budget"] is not None)
    methods = dict.fromkeys(e.name for e in frontiers)
    if against is not None and against not in methods:
        raise InputError(f"--against names the method {against!r}; {did_you_mean(against, methods)}")
    draw = Pictures(out.stem, methods)
    blocks: list[Block] = [Words(overview(results)), *map(Words, results.remarks)]
    if frontiers:
        blocks += [Heading("Frontiers"), Words(SCORE), Words(AREAS)]
        for data, of in tables.by_data(frontiers).items():
            blocks += [Heading(data, 3), tables.areas(data, of), draw.frontiers(data, of)]
        blocks += _each("Measures", (READINGS, MEASURES), frontiers, tables.readings, tables.measures)
    if budgeted:
        blocks += [Heading("Budgets"), *([] if frontiers else [Words(SCORE)]), Words(BUDGETS)]
        for data, of in tables.by_data(budgeted).items():
            blocks += [Heading(data, 3), tables.budgets(data, of), draw.targets(data, of)]
    if len(methods) > 1:
        blocks += [Heading("Ranks"), Words(RANKS), tables.ranking(frontiers)]
        blocks += _each("Differences", (DIFFERENCES,), frontiers, lambda data, of: tables.differences(data, of, against))
    if results.done:
        blocks += [Heading("Times"), tables.times(results.done)]
    trouble = tables.troubles(results.rows)
    if trouble is not None:
        blocks += [Heading("Refusals and failures"), trouble]
    return [*blocks, *repeating(results.rows, names, out)]


def _each(title: str, words: Sequence[str], of: Sequence[Entry], *makers: Any) -> list[Block]:
    """A section with tables for each data set; nothing where there is no such table."""
    every = (maker(data, here) for data, here in tables.by_data(of).items() for maker in makers)
    blocks: list[Block] = [table for table in every if table is not None]
    return [Heading(title), *map(Words, words), *blocks] if blocks else []


def overview(results: Gathered) -> str:
    counts = {status: sum(row["status"] == status for row in results.rows) for status in ("done", "refused", "failed")}
    sets, methods = (list(dict.fromkeys(row["task"][name] for row in results.rows)) for name in ("data", "label"))
    by_status = ", ".join(f"{n} {status}" for status, n in counts.items() if n)
    return f"{len(results.rows)} tasks: {by_status}. Data: {', '.join(sets)}. Methods: {', '.join(methods)}."


class Pictures:
    """Draws, and gives every picture a file name of its own; a method looks the same on all data sets."""

    def __init__(self, stem: str, methods: Iterable[str]) -> None:
        self.stem, self.used = stem, set[str]()
        self.looks = {name: i for i, name in enumerate(methods)}

    def frontiers(self, data: str, of: Sequence[Entry]) -> Picture:
        curves, total = {e.name: mean_curve(e) for e in of}, max(max(e.numbers("total")) for e in of)
        figure = plots.frontiers(curves, total, title=data, score="score, test cases", looks=self.looks)
        areas = ", ".join(f"{e.name} {e.area:.4f}" for e in sorted(of, key=lambda e: -e.area))
        words = f"Score over mean cost on {data}. Areas: {areas}"
        return self._picture("frontier", data, f"{data}: the frontiers, means over seeds", words, figure)

    def targets(self, data: str, of: Sequence[Entry]) -> Picture:
        points: dict[str, tuple[list[float], list[float]]] = {}
        for e in of:
            x, y = points.setdefault(f"{e.name}, {budget_words(e.budget)}", ([], []))
            x += e.numbers("cost")
            y += e.numbers("score")
        wanted = sorted({amount for e in of for kind, amount in (e.budget or {}).items() if kind != "tradeoff"})
        figure = plots.targets(points, wanted, title=data, score="score, test cases")
        words = f"Mean cost and score on {data} of each policy, one mark for each seed; the numbers are in the table."
        return self._picture("budgets", data, f"{data}: each policy; dashed, the costs that were wanted", words, figure)

    def _picture(self, kind: str, data: str, title: str, words: str, figure: Any) -> Picture:
        name = base = f"{self.stem}_{kind}_{re.sub(r'[^A-Za-z0-9-]+', '_', data)[:60]}"
        while name in self.used:
            name = f"{base}_{len(self.used)}"
        self.used.add(name)
        return Picture(title, words, plots.inline(figure), f"{name}.svg")


# ---------------------------------------------------------------------- how to repeat it


def repeating(rows: Sequence[Row], names: Sequence[str], out: Path) -> list[Block]:
    """The plan as far as the rows tell it, the code and the machine's packages, and the commands."""
    plans = list(dict.fromkeys(str(row.get("plan") or "PLAN") for row in rows))
    commits = list(dict.fromkeys(str(row["commit"]) for row in rows if row.get("commit")))
    began = sorted(str(row["began"]) for row in rows if row.get("began"))
    blocks: list[Block] = [Heading("The plan, and how to repeat it"), plan_table(rows)]
    if began:
        blocks.append(Words(f"The first task began {began[0]}, the last {began[-1]}."))
    if any(commit.endswith("+") for commit in commits):
        blocks.append(Words("A commit with a + had changes in its files that were not committed."))
    blocks += _versions(rows)
    checkout = [f"git checkout {commit.rstrip('+')}" for commit in commits[-1:]]
    if len(commits) > 1:
        blocks.append(Words(f"Rows come from {len(commits)} commits: {', '.join(commits)}. The commands name the last."))
    runs = [f"askwise bench {plan}.toml --out {name}" for plan, name in zip(plans, names, strict=False)]
    runs += [f"askwise bench {plan}.toml" for plan in plans[len(names) :]]
    return [*blocks, Code("\n".join([*checkout, *runs, f"askwise bench report {' '.join(names)} --out {out.name}"]))]


def _versions(rows: Sequence[Row]) -> list[Table]:
    """One line for each set of versions that rows come from."""
    texts = dict.fromkeys(json.dumps(row["versions"], sort_keys=True) for row in rows if row.get("versions"))
    each = [json.loads(text) for text in texts]
    packages = tuple(dict.fromkeys(name for versions in each for name in versions))
    lines = tuple(tuple(str(versions.get(name, tables.NOTHING)) for name in packages) for versions in each)
    return [Table("Versions", packages, lines)] if lines else []


def plan_table(rows: Sequence[Row]) -> Table:
    """What was asked for: one line for each data set and method."""
    asked = grouped(rows, lambda row: (str(row.get("plan") or tables.NOTHING), row["task"]["data"], row["task"]["label"]))
    lines = []
    for (plan, data, label), of in asked.items():
        tasks = [row["task"] for row in of]
        options = dict.fromkeys(json.dumps(t["options"], sort_keys=True) for t in tasks if t["options"])
        lines.append(
            (
                plan,
                data,
                label,
                " ".join(dict.fromkeys(t["method"] for t in tasks)),
                _all(t["seed"] for t in tasks),
                _all(t["minutes"] for t in tasks),
                "; ".join(dict.fromkeys(budget_words(t["budget"]) if t["budget"] else "frontier" for t in tasks)),
                _all(t["remove"] for t in tasks),
                ", ".join(dict.fromkeys(str(t["imputation"] or "no") for t in tasks)),
                "; ".join(options) or tables.NOTHING,
                ", ".join(dict.fromkeys(str(row.get("class_weight") or "no") for row in of)),
                ", ".join(dict.fromkeys(str(row.get("rule") or "0/1") for row in of)),
                "; ".join(dict.fromkeys(limits_words(row) for row in of)),
                _all(row.get("threads", 1) for row in of),
            )
        )
    settings = (
        "seeds",
        "minutes",
        "budgets",
        "share removed",
        "imputation",
        "options",
        "class weights",
        "loss",
        "at most so many rows",
    )
    return Table("What was asked for", ("plan", "data", "label", "method", *settings, "threads"), tuple(lines))


def _all(values: Any) -> str:
    return ", ".join(f"{v:g}" if isinstance(v, (int, float)) else str(v) for v in sorted(set(values), key=str))
