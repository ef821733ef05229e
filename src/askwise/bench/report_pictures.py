"""The pictures of a page about rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from askwise.bench.entries import Entry, budget_words, mean_curve
from askwise.reports.pages import Picture


class Pictures:
    """Draws, and gives every picture a file name of its own; a method looks the same on all data sets."""

    def __init__(self, stem: str, of: Sequence[Entry]) -> None:
        self.stem, self.used = stem, set[str]()
        self.looks = {name: i for i, name in enumerate(dict.fromkeys(e.name for e in of))}

    def frontiers(self, data: str, of: Sequence[Entry]) -> Picture:
        from askwise import plots

        curves, total = {e.name: mean_curve(e) for e in of}, max(max(e.numbers("total")) for e in of)
        figure = plots.frontiers(curves, total, title=data, score="score, test cases", looks=self.looks)
        areas = ", ".join(f"{e.name} {e.area:.4f}" for e in sorted(of, key=lambda e: -e.area))
        words = f"Score over mean cost on {data}. Areas: {areas}"
        return self._picture("frontier", data, f"{data}: the frontiers, means over seeds", words, figure)

    def targets(self, data: str, of: Sequence[Entry]) -> Picture:
        from askwise import plots

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
        from askwise import plots

        name = base = f"{self.stem}_{kind}_{re.sub(r'[^A-Za-z0-9-]+', '_', data)[:60]}"
        while name in self.used:
            name = f"{base}_{len(self.used)}"
        self.used.add(name)
        return Picture(title, words, plots.inline(figure), f"{name}.svg")
