"""The paper's numbers beside ours: fills the tables of README.md and draws the figures from the rows in results/.

./dev sh python -m benchmarks.paper.summary
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from askwise import plots
from askwise.bench.rows import Row, gathered
from askwise.bench.tables import spread
from askwise.reports.pages import Strong, Table, markdown
from benchmarks import rows
from benchmarks.paper import progress
from benchmarks.paper.pooled import Pool, area, drawn

HERE = Path(__file__).parent
RESULTS = HERE / "results"
BEGIN, END = "<!-- filled by benchmarks.paper.summary -->", "<!-- end -->"
STANDS_FOR = {"miniboone_tiny": "miniboone", "nhanes": "diabetes"}  # ours: the paper's, which is not at hand
PUBLISHED: dict[str, Any] = tomllib.loads((HERE / "published.toml").read_text())
NOTHING = "–"


def done_rows(name: str) -> list[Row]:
    """The rows of a plan that are done; none where it was not run."""
    path = RESULTS / f"{name}.jsonl"
    return gathered([path]).done if path.exists() else []


def selected(of: Iterable[Row], **task: Any) -> list[Row]:
    """Those whose task is so."""
    return [row for row in of if all(row["task"][key] == value for key, value in task.items())]


def values(of: Iterable[Row], name: str) -> list[Any]:
    """What a setting of their tasks is, each once, in the order in which they came."""
    return list(dict.fromkeys(row["task"][name] for row in of))


def called(data: str) -> str:
    return f"{STANDS_FOR[data]}: ours is {data}" if data in STANDS_FOR else data


def shown(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.3f}"


# ---------------------------------------------------------------------- tables


def scatter(of: list[Row]) -> list[Table]:
    lines = [
        (data, str(len(here)), str(len(curve.chosen)), Pool(tuple(here)).area)
        for data in values(of, "data")
        if (curve := Pool(tuple(here := selected(of, data=data))).curve) is not None
    ]
    return [
        Table(
            "Trained models, and the area under those that validation chooses", ("data", "models", "chosen", "area"), tuple(lines)
        )
    ]


def areas(kind: str, labels: tuple[str, ...]) -> Callable[[list[Row]], list[Table]]:
    """A table of areas by data set and method, the paper's before ours."""

    def table(of: list[Row]) -> list[Table]:
        lines = []
        for data in values(of, "data"):
            published = PUBLISHED[kind].get(STANDS_FOR.get(data, data), {})
            ours = [area(selected(of, data=data, label=label)) for label in labels]
            both = [f"{shown(published.get(label))} / {m or NOTHING}" for label, m in zip(labels, ours, strict=True)]
            lines.append((called(data), *both))
        return [Table("Areas: the paper's / ours", ("data", *labels), tuple(lines))]

    return table


def hard(of: list[Row]) -> list[Table]:
    lines = [
        (data, label, Pool(tuple(here)).steps, f"{max(row['most'] - row['task']['budget']['hard'] for row in here):.3g}")
        for data in values(of, "data")
        for label in ("rl-hard", "oplearn")
        if (here := selected(of, data=data, label=label))
    ]
    head = ("data", "method", "area under the steps over b", "dearest case less its budget, at most")
    return [
        *areas("hard", ("baseline", "rl-hard", "oplearn", "rl-lambda"))(of),
        Table("Between two hard budgets nothing can be had, so also the steps", head, tuple(lines)),
    ]


def target(of: list[Row]) -> list[Table]:
    lines = []
    for data in values(of, "data"):
        for b in sorted({row["task"]["budget"]["average"] for row in selected(of, data=data)}):
            here = selected(of, data=data, budget={"average": b})
            lines.append(
                (
                    data,
                    f"{b:g}",
                    str(len(here)),
                    *(spread([row[name] for row in here], d) for name, d in (("cost", 2), ("score", 4))),
                )
            )
    head = ("data", "target", "seeds", "mean cost", "score")
    return [Table("Wanted and achieved, test cases", head, tuple(lines)), dearest(of)]


def dearest(of: list[Row]) -> Table:
    """The most that was spent on average."""
    lines = []
    for data in values(of, "data"):
        here = selected(of, data=data)
        most = max(row["cost"] for row in here)
        published = PUBLISHED["target"].get(STANDS_FOR.get(data, data))
        unit = {"nhanes": 9}.get(data, 1)  # its dearest test
        lines.append(
            (
                called(data),
                NOTHING if published is None else f"{published:g}",
                f"{most / unit:.1f}",
                f"{here[0]['total'] / unit:.1f}",
            )
        )
    head = ("data", "the paper", "ours", "all tests")
    return Table("The most that any model spends on average, in units of the dearest test", head, tuple(lines))


def missing(of: list[Row]) -> list[Table]:
    labels, lines = ("mean", "mice", "mdp"), []
    for data in values(of, "data"):
        full = area(selected(of, data=data, label="full")) or NOTHING
        for share in sorted(set(values(of, "remove")) - {0.0}):
            published = PUBLISHED["missing"].get(STANDS_FOR.get(data, data), {}).get(f"{share:g}", {})
            ours = [area(selected(of, data=data, label=label, remove=share)) for label in labels]
            numbers = [float(m.split(" ")[0]) if m else float("-inf") for m in ours]
            cells = [
                (Strong if v == max(numbers) else str)(f"{shown(published.get(label))} / {m or NOTHING}")
                for label, m, v in zip(labels, ours, numbers, strict=True)
            ]
            lines.append((called(data), f"{100 * share:g} %", *cells, full))
    head = ("data", "removed", *labels, "full (ours)")
    return [Table("Areas: the paper's / ours; our best in bold", head, tuple(lines))]


def course(of: list[Row]) -> list[Table]:
    """From the rows of progress.py, which are no rows of a bench."""
    lines = []
    for setting in progress.FREE:
        here = [row for row in of if row["setting"] == setting]
        if here:
            ours, published = progress.top(here), PUBLISHED["free"][setting]
            best = f"{ours['accuracy']:.4f} after {ours['steps']:.0f}", f"{ours['last']:.4f} after {ours['end']:.0f}"
            lines.append((setting, f"{published['accuracy']:.3f} after {published['steps']}", *best, str(len(here))))
    ten = [
        (f"{row['steps']}", f"{row['course'][-1][1]:.4f}", f"{row['cost']:.2f}", f"{row['accuracy']:.4f}")
        for row in of
        if row["setting"] == "average 10"
    ]
    tables = (
        [Table("Average budget 10: how it ends", ("steps", "lambda", "test cost", "test accuracy"), tuple(ten))] if ten else []
    )
    head = ("setting", "the paper's best", "our best", "our last", "seeds")
    return [
        *tables,
        *([Table("Validation accuracy, mean over seeds, and after how many steps", head, tuple(lines))] if lines else []),
    ]


TABLES: dict[str, Callable[[list[Row]], list[Table]]] = {
    "scatter": scatter,
    "lambda": areas("lambda", ("baseline", "rl", "adapt-gbrt", "budget-prune")),
    "target": target,
    "hard": hard,
    "missing": missing,
}
FIGURES = {
    "scatter": "Figure 4: trained models and the chosen hull",
    "lambda": "Figure 5: average budget by lambda",
    "target": "Figure 6: average budget by target",
    "progress": "Figures 7 and 8: the course of training",
    "hard": "Figure 9: hard budgets",
    "missing": "Figure 10: missing features",
}


def text() -> str:
    """All tables, in Markdown; results of full plans where there are any, and of small ones."""
    parts = []
    for kind, title in FIGURES.items():
        parts.append(f"### {title}")
        any_rows = False
        for name in (kind, f"{kind}_small"):
            of = rows.read(RESULTS / f"{name}.jsonl") if kind == "progress" else done_rows(name)
            if of:
                any_rows = True
                tables = course(of) if kind == "progress" else TABLES[kind](of)
                parts += [f"From `results/{name}.jsonl`, {len(of)} runs.", markdown("", tables).removeprefix("# \n\n").strip()]
                parts += [f"![{title}](results/{path.name})" for path in drawn_for(name)]
        if not any_rows:
            parts.append("Not run yet.")
    return "\n\n".join(parts)


def drawn_for(name: str) -> list[Path]:
    """The pictures of a plan; those of lambda_small are not those of lambda."""
    small = [] if name.endswith("_small") else list(RESULTS.glob(f"{name}_small_*.svg"))
    return sorted(set(RESULTS.glob(f"{name}_*.svg")) - set(small))


# ---------------------------------------------------------------------- pictures


def pictures(kind: str, name: str, of: list[Row]) -> None:
    """The figures of a plan, one for each data set; of missing features one for each share too."""
    for data in values(of, "data"):
        here = selected(of, data=data)
        if kind == "scatter":
            pool = Pool(tuple(here))
            if pool.curve is not None and pool.prior is not None:
                figure = plots.frontier(
                    pool.points("validation"),
                    pool.points("test"),
                    pool.curve.chosen,
                    prior=pool.prior[1],
                    everything=(pool.total, None),
                )
                plots.save(figure, RESULTS / f"{name}_{data}.svg")
        elif kind == "target":
            budgets = sorted({row["task"]["budget"]["average"] for row in here})
            marks = {f"target {b:g}": _marks(selected(here, budget={"average": b})) for b in budgets}
            plots.save(plots.targets(marks, budgets, title=data, score="score, test cases"), RESULTS / f"{name}_{data}.svg")
        elif kind == "missing":
            for share in sorted(set(values(here, "remove")) - {0.0}):
                picked = [row for row in here if row["task"]["remove"] in (0.0, share)]
                _planes(picked, f"{data}, {100 * share:g} % removed", RESULTS / f"{name}_{data}_{100 * share:g}.svg")
        else:
            _planes(here, data, RESULTS / f"{name}_{data}.svg")


def _marks(of: list[Row]) -> tuple[list[float], list[float]]:
    return [row["cost"] for row in of], [row["score"] for row in of]


def _planes(of: list[Row], title: str, path: Path) -> None:
    curves = {label: line for label in values(of, "label") if (line := drawn(selected(of, label=label))) is not None}
    if curves:
        plots.save(plots.frontiers(curves, of[0]["total"], title=title, score="score, test cases"), path)


def filled(page: str) -> str:
    """The page with its tables as they are now."""
    before, rest = page.split(BEGIN)
    return f"{before}{BEGIN}\n\n{text()}\n\n{END}{rest.split(END)[1]}"


def main() -> None:
    for kind in FIGURES:
        for name in (kind, f"{kind}_small"):
            if kind == "progress":
                progress.pictures(rows.read(RESULTS / f"{name}.jsonl"), name)
            else:
                pictures(kind, name, done_rows(name))
    page = HERE / "README.md"
    page.write_text(filled(page.read_text()))


if __name__ == "__main__":
    main()
