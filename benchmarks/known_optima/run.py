"""The paper's algorithm against exact optima: 20 random small problems, each with a tradeoff, a hard and an average budget.

    ./dev sh python -m benchmarks.known_optima.run [--seeds 0:20] [--processes 2]

Rows are appended to results.jsonl as they finish; what is there is not run again. The table is written to results.md.
"""

from __future__ import annotations

from pathlib import Path

from benchmarks import rows
from benchmarks.known_optima.regret import SETTINGS, regret_of
from benchmarks.script import arguments, head, line

HERE = Path(__file__).parent
COLUMNS = "seed | kind | tests | budget | optimum | learned | regret | absolute | steps | ended by | seconds | "

HEAD = """Made by `./dev sh python -m benchmarks.known_optima.run`. A pair is (mean cost, mean loss). Regret is
(learned - optimum) / (best without spending - optimum). Near enough is at most 0.03, or 0.004 absolute, and for average budgets
a cost of at most 1.02 b and at least 0.95 of min(b, the cost at which more money no longer helps).
"""


def table(results: list[rows.Row]) -> str:
    """Markdown: every row, and how many of each setting are near enough."""
    lines = head(COLUMNS)
    for r in sorted(results, key=lambda r: (SETTINGS.index(r["setting"]), r["seed"])):
        cells = (
            r["seed"],
            r["kind"],
            r["tests"],
            r["budget"],
            f"({r['optimum_cost']:.3f}, {r['optimum_loss']:.4f})",
            f"({r['cost']:.3f}, {r['loss']:.4f})",
            f"{r['regret']:.4f}",
            f"{r['absolute']:.4f}",
            r["steps"],
            r["stopped"],
            r["seconds"],
            "" if r["ok"] else "too far",
        )
        lines.append(line(*cells))
    lines.append("")
    for setting in SETTINGS:
        of = [r for r in results if r["setting"] == setting]
        if of:
            worst = max(r["regret"] for r in of)
            lines.append(f"- {setting}: {sum(r['ok'] for r in of)} of {len(of)} near enough, largest regret {worst:.4f}")
    return "\n".join(lines)


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--seeds", default="0:20", help="first:last+1")
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--out", type=Path, default=HERE / "results.jsonl")
    options = parser.parse_args()
    first, last = map(int, options.seeds.split(":"))
    jobs = [{"seed": seed, "setting": setting} for seed in range(first, last) for setting in SETTINGS]
    for row in rows.fill(options.out, jobs, regret_of, options.processes):
        print(f"{row['setting']:8} seed {row['seed']:2} regret {row['regret']:.4f} {'' if row['ok'] else 'TOO FAR'}", flush=True)
    text = table(rows.read(options.out))
    options.out.with_suffix(".md").write_text(f"{HEAD}\n{text}\n")
    print(text)


if __name__ == "__main__":
    main()
