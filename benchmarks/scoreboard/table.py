"""The scoreboard's table and pictures, from its rows alone.

./dev sh askwise bench benchmarks/scoreboard/plan.toml --out benchmarks/scoreboard/results.jsonl
./dev sh python -m benchmarks.scoreboard.table
"""

from __future__ import annotations

from pathlib import Path

from askwise import plots
from askwise.bench.entries import Entry, difference
from benchmarks import rows
from benchmarks.script import head, line

HEAD = (
    "Made by `./dev sh askwise bench benchmarks/scoreboard/plan.toml --out benchmarks/scoreboard/results.jsonl`, the same with "
    "`large.toml` (large data sets, four minutes on one thread for all) and "
    "`./dev sh python -m benchmarks.scoreboard.table`: area under the frontier on test cases, mean and deviation over "
    "seeds; of several times, all are shown. Score: accuracy, and 1 - expected loss where classes are uneven (nhanes, "
    "ann_thyroid, thyroid).\n\n"
)

AT = {"forest": ("4.5", "6.5"), "mnist": ("10", "20", "50")}  # mean costs at which the score is shown
BESIDE = "The same test cases, drawn 200 times with repetition, for both methods; differences are means over seeds.\n\n"


def groups(results: list[rows.Row]) -> dict[tuple[str, str, float], list[rows.Row]]:
    """The rows of all seeds, by data set, method and minutes, in the order in which they first came."""
    grouped: dict[tuple[str, str, float], list[rows.Row]] = {}
    for row in results:
        task = row["task"]
        grouped.setdefault((task["data"], task["label"], task["minutes"]), []).append(row)
    return dict(sorted(grouped.items(), key=lambda item: [r[0] for r in grouped].index(item[0][0])))


def text(results: list[rows.Row]) -> str:
    lines = head("data | method | minutes | taken | area | score at mean cost | seeds | memory, MB")
    for (data, method, minutes), of in groups(results).items():
        at = ", ".join(f"{cost}: {rows.spread([r['accuracy_at'][cost] for r in of], 4)}" for cost in AT.get(data, ()))
        taken, area = (rows.spread([r[name] for r in of], digits) for name, digits in (("minutes_taken", 1), ("area", 4)))
        cells = (data, method, f"{minutes:g}", taken, area, at, len(of), max(r["memory_mb"] for r in of))
        lines.append(line(*cells))
    return "\n".join(lines)


def pairs(results: list[rows.Row]) -> str:
    """The family's area less that of each other method on the same cases, and an interval from samples of these."""
    lines = head("data | minutes | family less | difference | 95 % interval | seeds")
    of_all = groups([row for row in results if "resampled" in row])
    for (data, method, minutes), others in of_all.items():
        ours = of_all.get((data, "family", minutes))
        less = (
            None
            if method == "family" or not ours
            else difference(Entry(data, "family", tuple(ours)), Entry(data, method, tuple(others)))
        )
        if less is not None:
            interval = f"{less.low:+.4f} to {less.high:+.4f}"
            lines.append(f"| {data} | {minutes:g} | {method} | {less.mean:+.4f} | {interval} | {less.seeds} |")
    return "\n".join(lines)


def draw(results: list[rows.Row], data: str, path: Path) -> None:
    """The frontier of each method on one data set: its first seed, at the most minutes it was given."""
    best: dict[str, tuple[float, rows.Row]] = {}
    for (name, method, minutes), of in groups(results).items():
        if name == data and (method not in best or minutes > best[method][0]):
            best[method] = minutes, min(of, key=lambda r: r["task"]["seed"])
    curves = {f"{method}, {minutes:g} min: {row['area']:.4f}": row["curve"] for method, (minutes, row) in best.items()}
    total = next(iter(best.values()))[1]["total"]
    plots.save(plots.frontiers(curves, total, title=data, score="score, test cases"), path)


def write(results: list[rows.Row], out: Path) -> None:
    """results.md and a frontier_*.svg for each data set beside the rows."""
    results = [row for row in results if row["status"] == "done"]
    out.with_suffix(".md").write_text(f"{HEAD}{text(results)}\n\n{BESIDE}{pairs(results)}\n")
    for data in dict.fromkeys(row["task"]["data"] for row in results):
        draw(results, data, out.with_name(f"frontier_{data}.svg"))


if __name__ == "__main__":
    results = Path(__file__).with_name("results.jsonl")
    write(rows.read(results), results)
