"""All methods on all data sets in one table, from the rows of this plan and of the scoreboard.

./dev sh askwise bench benchmarks/comparators/plan.toml --out benchmarks/comparators/rows.jsonl
./dev sh python -m benchmarks.comparators.table
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks import rows

HERE = Path(__file__).parent
MOST = 20  # minutes of a cell
DATA = ("forest", "mnist", "cifar", "nhanes", "ann_thyroid", "thyroid", "digits", "miniboone_tiny")
HEAD = """Made by `./dev sh python -m benchmarks.comparators.table` from `rows.jsonl` beside it and, for methods that it lacks on
a data set, the scoreboard's rows of at most 20 minutes: on forest, mnist and cifar all have the same minutes and rows; on the
others the scoreboard's five methods have a minute, and three on nhanes, where the rest has half a minute.

Area under the frontier on test cases, ± the deviation over seeds or, of one seed, over resampled test cases, and in brackets the
minutes that one training took. In bold the best of a data set, and all whose mean is less than 0.005 behind. Score: accuracy, and
1 - expected loss where classes are uneven (nhanes, ann_thyroid, thyroid).
"""


def cells(results: list[rows.Row]) -> dict[tuple[str, str], list[rows.Row]]:
    """Finished rows by method and data set; of several times those with the longest."""
    by: dict[tuple[str, str], dict[float, list[rows.Row]]] = {}
    for row in results:
        task = row["task"]
        if row["status"] == "done" and task["minutes"] <= MOST:
            by.setdefault((task["label"], task["data"]), {}).setdefault(task["minutes"], []).append(row)
    return {key: of[max(of)] for key, of in by.items()}


def text(results: list[rows.Row]) -> str:
    of = cells(results)
    mean = {key: float(np.mean([r["area"] for r in group])) for key, group in of.items()}
    data = [name for name in DATA if any(d == name for _, d in of)]
    best = {d: max(value for (_, of_data), value in mean.items() if of_data == d) for d in data}

    def height(method: str) -> float:
        """Mean distance from the best, for the order of the lines."""
        return float(np.mean([best[d] - mean[method, d] for d in data if (method, d) in mean]))

    def near(method: str, d: str) -> bool:
        return mean[method, d] > best[d] - 0.005

    def shown(method: str, d: str) -> str:
        if (method, d) not in of:
            return ""
        group = of[method, d]
        area = rows.spread([r["area"] for r in group], 3)
        if len(group) == 1 and "resampled" in group[0]:
            area += f" ± {np.std(group[0]['resampled'], ddof=1):.3f}"
        taken = f" ({np.mean([r['minutes_taken'] for r in group]):.1f})"
        return (f"**{area}**" if near(method, d) else area) + taken

    methods = sorted({method for method, _ in of}, key=height)
    lines = [f"| method | {' | '.join(data)} |", "|---" * (len(data) + 1) + "|"]
    lines += [f"| {method} | " + " | ".join(shown(method, d) for d in data) + " |" for method in methods]
    first = {d: sorted((m for m in methods if (m, d) in mean and near(m, d)), key=lambda m: -mean[m, d]) for d in data}
    parts = [*lines, "", "Best, or less than 0.005 behind:", "", *(f"- {d}: {', '.join(of_it)}" for d, of_it in first.items())]
    sizes = {f"- {d}, {m}: {r['n_train']:,} rows to learn from, {r['n_test']:,} to judge by" for (m, d), r in part_of(of).items()}
    return "\n".join([*parts, *(["", "Part of the rows:", "", *sorted(sizes)] if sizes else [])])


def part_of(of: dict[tuple[str, str], list[rows.Row]]) -> dict[tuple[str, str], rows.Row]:
    """Those that learned from, or were judged by, fewer rows than others."""
    firsts = {key: group[0] for key, group in of.items()}
    most = {d: max((r["n_train"], r["n_test"]) for (_, other), r in firsts.items() if other == d) for _, d in firsts}
    return {(m, d): r for (m, d), r in firsts.items() if (r["n_train"], r["n_test"]) != most[d]}


def failures(results: list[rows.Row]) -> str:
    gone = {(r["task"]["label"], r["task"]["data"]): r for r in results if r["status"] != "done"}
    done = {(r["task"]["label"], r["task"]["data"]) for r in results if r["status"] == "done"}
    lines = [
        f"- {method} on {data}: {r.get('why', r['status'])}" for (method, data), r in gone.items() if (method, data) not in done
    ]
    return "\n\nCame to nothing:\n\n" + "\n".join(lines) if lines else ""


def main() -> None:
    results, others = (rows.read(path) for path in (HERE / "rows.jsonl", HERE.parent / "scoreboard" / "results.jsonl"))
    here = {(row["task"]["label"], row["task"]["data"]) for row in results if row["status"] == "done"}
    results += [row for row in others if (row["task"]["label"], row["task"]["data"]) not in here]
    (HERE / "table.md").write_text(f"{HEAD}\n{text(results)}{failures(results)}\n")


if __name__ == "__main__":
    main()
