"""A verdict for every claim of the paper: fills README.md and draws the figures from the rows in results/.

    ./dev sh python -m benchmarks.paper.summary [--settings paper]

With `--settings paper` it only shows what the rows of the paper's own settings say.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from askwise import plots
from askwise.bench.rows import Row
from askwise.reports.pages import Table, markdown
from benchmarks.paper import claims, claims_of_training
from benchmarks.paper.evidence import IMAGES, UNIT, Evidence, called, percent, ran
from benchmarks.paper.experiments import HERE, SETTINGS, TABLE, preset
from benchmarks.paper.figures import pictures
from benchmarks.paper.pooled import Pool, areas
from benchmarks.paper.published import printed
from benchmarks.paper.verdicts import HERE as CANNOT
from benchmarks.paper.verdicts import NOT_REPRODUCED, NOT_RUN, NOTHING, VERDICTS, Finding, below
from benchmarks.script import arguments

RESULTS = HERE / "results"
BEGIN, END = "<!-- filled by benchmarks.paper.summary -->", "<!-- end -->"
CLAIMS: list[dict[str, Any]] = tomllib.loads((HERE / "claims.toml").read_text())["claims"]
JUDGES: dict[str, Callable[[Evidence], Finding]] = {
    "miniboone": claims.beats("miniboone_tiny", ["baseline"]),
    "diabetes": claims.beats("nhanes", ["baseline"]),
    "forest": claims.beats("forest", ["baseline"]),
    "mnist": claims.beats("mnist", ["baseline"]),
    "prior_art": claims.prior_art,
    "others_below_baseline": claims.others_below_baseline,
    "bprune_diabetes": claims.frontier_difference("nhanes", ("budget-prune", "baseline"), below(-claims.FAILS)),
    "cifar_below": claims.beats("cifar", ["baseline"], below()),
    "cifar_few": claims.ahead_at_few_tests,
    "budgets_met": claims.budgets_met,
    "largest_unused": claims.largest_unused,
    "runs_alike": claims.runs_alike,
    "targets_like_tradeoffs": claims.targets_like_tradeoffs,
    "lambda_settles": claims_of_training.lambda_settles,
    "overfitting": claims_of_training.budget_against_overfitting,
    "hard_oplearn": claims.hard_against("oplearn"),
    "hard_baseline": claims.hard_against("baseline"),
    "hard_lambda": claims.hard_below_tradeoffs,
    "never_above": claims.never_above,
    "hard_stops": claims.hard_stops_early,
    "mdp_much": claims_of_training.mdp_against_mice(much=True),
    "mdp_little": claims_of_training.mdp_against_mice(much=False),
    "more_missing": claims_of_training.more_missing_is_worse,
    "run_times": claims_of_training.run_times,
}
FIGURES = {
    4: "Figure 4: trained models and the chosen hull",
    5: "Figure 5: average budget by lambda",
    6: "Figure 6: average budget by target",
    7: "Figure 7: the course of training for b = 10",
    8: "Figure 8: lambda = 0 against a budget",
    9: "Figure 9: hard budgets",
    10: "Figure 10: missing values",
    0: "How long it takes",
}


def text(evidence: Evidence) -> str:
    """All that is filled in, as Markdown."""
    findings = {claim["id"]: JUDGES[claim["id"]](evidence) for claim in CLAIMS}
    names = list(pictures(evidence))
    parts = [overview(evidence, findings)]
    for number, title in FIGURES.items():
        parts.append(f"## {title}")
        if number == 4:
            parts += tables([hull_table(evidence)])
        if number == 5:
            parts += tables([area_table(evidence)])
        parts += linked(title, [name for name in names if name.startswith(f"figure{number}_")])
        if number == 5:
            parts += progress_section(evidence, names)
        parts += [part for claim in CLAIMS if claim["figure"] == number for part in told(claim, findings[claim["id"]])]
    return "\n\n".join([*parts, settings_section()])


def overview(evidence: Evidence, findings: dict[str, Finding]) -> str:
    """All verdicts in one table, and how much of the list of trainings has been run."""
    count = {verdict: sum(f.verdict == verdict for f in findings.values()) for verdict in VERDICTS}
    words = ", ".join(f"{n} {verdict}" for verdict, n in count.items() if n)
    hours = sum(row["cpu_seconds"] for row in evidence.rows) / 3600
    left = len(set(evidence.rl) - evidence.keys)
    others = f" {left} row{'s' * (left > 1)} of other settings {'are' if left > 1 else 'is'} not counted." if left else ""
    lines = [(str(claim["figure"] or NOTHING), claim["title"], findings[claim["id"]].verdict) for claim in CLAIMS]
    table = Table("", ("figure", "claim", "verdict"), tuple(lines))
    return "\n\n".join(
        [
            "## The verdicts",
            f"Of {len(CLAIMS)} claims: {words}. {len(evidence.rows):,} of {len(evidence.keys):,} trainings of the paper's "
            f"algorithm are done, in {hours:.1f} CPU hours.{others}",
            *tables([table]),
        ]
    )


def told(claim: dict[str, Any], finding: Finding) -> list[str]:
    """A claim: what the paper says, what was run, what came out, and the verdict."""
    parts = [f"### {claim['title']}", f"The paper: {claim['sentence']}"]
    if claim.get("note"):
        parts.append(claim["note"])
    parts.append(f"What we ran:\n\n{ran(finding.rows)}" if finding.rows else "What we ran: nothing yet.")
    if finding.verdict != NOT_RUN:
        parts += tables(finding.tables)
    parts += [f"Rule: {claim['rule']}", f"Verdict: **{finding.verdict}**."]
    for verdict, key, words in (
        (NOT_REPRODUCED, "reason", "What we think the reason is"),
        (CANNOT, "takes", "What it would take"),
    ):
        if finding.verdict == verdict and claim[key]:
            parts.append(f"{words}: {claim[key]}")
    return parts


def tables(of: Sequence[Table]) -> list[str]:
    """Without those that have no lines."""
    full = [table for table in of if table.rows]
    return [markdown("", [table]).removeprefix("# \n\n").removeprefix(":\n\n").strip() for table in full]


def linked(title: str, names: Sequence[str]) -> list[str]:
    return [f"![{title}, {name.partition('_')[2]}](results/{name}.svg)" for name in names]


def hull_table(evidence: Evidence) -> Table:
    rows = evidence.sweep("tradeoffs", "miniboone_tiny", "tradeoff").rows
    head = ("data", "models", "seeds", "chosen by validation", "area, all seeds pooled")
    if not rows:
        return Table("", head, ())
    pool = Pool(rows)
    seeds = len({row["task"]["seed"] for row in rows})
    line = (called("miniboone_tiny"), str(len(rows)), str(seeds), str(len(pool.curve.chosen)), f"{pool.curve.area:.4f}")
    return Table("Trained models, and the area under those that validation chooses", head, (line,))


OTHERS = ("random", "baseline", "budget-prune")
LABELS = ("baseline", "rl", "adapt-gbrt", "budget-prune", "random")


def area_table(evidence: Evidence) -> Table:
    """The paper's table with ours in it."""
    lines = []
    for data in UNIT:
        ours = evidence.sweep("images" if data in IMAGES else "tradeoffs", data, "tradeoff")
        of = {label: ours.area if label == "rl" else areas(evidence.other(data, label)) for label in LABELS}
        if any(quantity.by_seed for quantity in of.values()):
            done = NOTHING if ours.whole else f" [{len(ours.rows)} of {len(ours.planned)}]"
            cells = [f"{printed('lambda', data, label)} / {claims.shown(quantity)}" for label, quantity in of.items()]
            cells[1] += done.replace(NOTHING, "")
            lines.append((called(data), *cells))
    return Table("Areas on test rows: the paper's / ours [trainings that are done]", ("data", *LABELS), tuple(lines))


def progress_section(evidence: Evidence, names: Sequence[str]) -> list[str]:
    """The image sets, whose trainings are far shorter than the paper's."""
    lines = [progress_line(row, evidence) for data in IMAGES for row in evidence.sweep("images", data, "tradeoff").rows]
    if not lines:
        return []
    head = (
        "data",
        "tradeoff",
        "steps",
        "states, share of the paper's",
        "CPU hours",
        "validation accuracy: first",
        "half way",
        "last",
    )
    table = Table(
        "Trainings on images, and where they were going. In the last columns: for as many pixels, on the curve of another method",
        (*head, "test cost", "test accuracy", "at once", *OTHERS),
        tuple(lines),
    )
    return ["### The curve of progress", *tables([table]), *linked("Progress", [n for n in names if n.startswith("progress_")])]


def progress_line(row: Row, evidence: Evidence) -> tuple[str, ...]:
    course = np.asarray(row["course"], float)
    accuracy = [f"{v:.3f}" for v in np.interp([course[0, 0], course[-1, 0] / 2, course[-1, 0]], course[:, 0], course[:, 5])]
    share = percent(row["share_of_states"])
    task = row["task"]
    others = [[np.interp(row["cost"], *other["curve"]) for other in evidence.other(task["data"], name)] for name in OTHERS]
    return (
        task["data"],
        f"{task['budget']['tradeoff']:g}",
        f"{row['steps']:,}",
        share,
        f"{row['cpu_seconds'] / 3600:.1f}",
        *accuracy,
        f"{row['cost']:.1f}",
        f"{row['accuracy']:.4f}",
        f"{row['at_once']['test'][2]:.3f}",
        *(f"{np.mean(scores):.3f}" if scores else NOTHING for scores in others),
    )


def settings_section() -> str:
    """The CPU preset beside the paper's settings, row by row."""
    names = list(dict.fromkeys(of["paper"] for of in TABLE["data"].values()))
    pairs = {name: (preset("paper", name), preset("cpu", name)) for name in names}
    lines = [
        (field, *(arrow(getattr(paper, field), getattr(cpu, field)) for paper, cpu in pairs.values()))
        for field in pairs[names[0]][0].to_dict()
    ]
    states = [(paper.max_steps * paper.batch_steps, cpu.max_steps * cpu.batch_steps) for paper, cpu in pairs.values()]
    lines += [
        ("gradient steps", *(arrow(paper.max_steps, cpu.max_steps) for paper, cpu in pairs.values())),
        ("states learned from", *(arrow(*pair) for pair in states)),
        ("their share of the paper's", *(percent(cpu / paper) for paper, cpu in states)),
    ]
    own = [
        f"{data}: {', '.join(f'`{k}` = {v}' for k, v in of['settings'].items())}"
        for data, of in TABLE["data"].items()
        if "settings" in of
    ]
    return "\n\n".join(
        [
            "## The CPU preset beside the paper's settings",
            "`TrainConfig.paper(name)` → `TrainConfig.cpu(name)`; one value where both are the same. Other settings, since the "
            f"data set is another: {'; '.join(own)}.",
            *tables([Table("", ("setting", *names), tuple(lines))]),
        ]
    )


def arrow(paper: Any, cpu: Any) -> str:
    words = [f"{value:,}" if type(value) is int else str(value) for value in (paper, cpu)]
    return words[0] if paper == cpu else f"{words[0]} → {words[1]}"


def filled(page: str) -> str:
    """The page with what the rows say."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{text(Evidence.read(RESULTS))}\n\n{END}{rest.split(END)[1]}"


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--settings", choices=SETTINGS, default="cpu")
    if (settings := parser.parse_args().settings) != "cpu":
        print(text(Evidence.read(RESULTS, settings)))
        return
    RESULTS.mkdir(exist_ok=True)
    for old in RESULTS.glob("*.svg"):
        old.unlink()
    for name, draw in pictures(Evidence.read(RESULTS)).items():
        plots.save(draw(), RESULTS / f"{name}.svg")
    page = HERE / "README.md"
    page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    main()
