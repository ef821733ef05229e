"""The last section of a page about rows: the plan as far as the rows tell it, the code and its packages, and the commands."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from askwise.bench.entries import budget_words, limits_words
from askwise.bench.gathering import Row
from askwise.bench.tables import NOTHING
from askwise.reports.pages import Block, Code, Heading, Table, Words


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
    lines = tuple(tuple(str(versions.get(name, NOTHING)) for name in packages) for versions in each)
    return [Table("Versions", packages, lines)] if lines else []


def plan_table(rows: Sequence[Row]) -> Table:
    """What was asked for: one line for each data set and method."""
    asked: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        asked.setdefault((str(row.get("plan") or NOTHING), row["task"]["data"], row["task"]["label"]), []).append(row)
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
                "; ".join(options) or NOTHING,
                ", ".join(dict.fromkeys(str(row.get("class_weight") or "no") for row in of)),
                "; ".join(dict.fromkeys(limits_words(row) for row in of)),
                _all(row.get("threads", 1) for row in of),
            )
        )
    settings = ("seeds", "minutes", "budgets", "share removed", "imputation", "options", "class weights", "at most so many rows")
    return Table("What was asked for", ("plan", "data", "label", "method", *settings, "threads"), tuple(lines))


def _all(values: Any) -> str:
    return ", ".join(f"{v:g}" if isinstance(v, (int, float)) else str(v) for v in sorted(set(values), key=str))
