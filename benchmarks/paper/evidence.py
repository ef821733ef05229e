"""The rows that there are beside the trainings that are planned: what each claim is judged by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

from askwise.bench.rows import Row, gathered, identity
from benchmarks.paper.experiments import TABLE, Training, differences, key, trainings
from benchmarks.paper.intervals import Quantity
from benchmarks.paper.pooled import areas, by_seed

COMPARATORS = ("comparators", "hard_comparators")  # plans of `askwise bench`
IMAGES = ("mnist", "cifar")
UNIT = {data: of.get("settings", {}).get("cost_unit", 1) for data, of in TABLE["data"].items()}  # the dearest test


def called(data: str) -> str:
    """With the name of the paper's data set that it stands for."""
    paper = TABLE["data"][data]["paper"]
    return data if paper == data else f"{data} (for {paper})"


@dataclass(frozen=True)
class Sweep:
    """Trainings that make one curve, for each of several seeds: those that are planned, and the rows of those that are done."""

    planned: tuple[Training, ...]
    rows: tuple[Row, ...]

    @cached_property
    def complete(self) -> tuple[int, ...]:
        """The seeds of which no row lacks."""
        done = {seed: len(of) for seed, of in by_seed(self.rows).items()}
        seeds = [training.task.seed for training in self.planned]
        return tuple(seed for seed in dict.fromkeys(seeds) if done.get(seed) == seeds.count(seed))

    @property
    def whole(self) -> bool:
        return bool(self.rows) and len(self.rows) == len(self.planned)

    @property
    def counted(self) -> tuple[Row, ...]:
        """Those of complete seeds; all, where no seed is complete yet."""
        return tuple(row for row in self.rows if row["task"]["seed"] in self.complete) or self.rows

    @cached_property
    def area(self) -> Quantity:
        return areas(self.counted)

    def __getitem__(self, budget: dict[str, float]) -> list[Row]:
        return [row for row in self.rows if row["task"]["budget"] == budget]


@cache
def planned(settings: str = "cpu") -> tuple[tuple[str, Training], ...]:
    """The trainings with their keys, in order of priority; one that several groups list is there for each."""
    return tuple((key(training.task.row, differences(training.task)), training) for training in trainings(settings))


@dataclass(frozen=True)
class Evidence:
    """All rows that are done."""

    trainings: tuple[tuple[str, Training], ...]  # with their keys
    rl: dict[str, Row]  # by the same key
    others: tuple[Row, ...]

    @classmethod
    def read(cls, folder: Path, settings: str = "cpu") -> Evidence:
        """From the files of rows in a folder. A training whose settings have changed since has no row."""
        files = {name: folder / f"{name}.jsonl" for name in ("rl", *COMPARATORS)}
        done = {name: gathered([path]).done if path.exists() else [] for name, path in files.items()}
        rl = {key(row, row["settings"]): row for row in done["rl"] if row["task"]["options"]["settings"] == settings}
        return cls(planned(settings), rl, tuple(row for name in COMPARATORS for row in done[name]))

    def sweep(
        self,
        name: str,
        data: str,
        kind: str,
        filling: str = "mdp",
        *,
        remove: float = 0.0,
        amounts: Sequence[float] | None = None,
    ) -> Sweep:
        """The trainings of a group on a data set for one kind of budget, or for some amounts of it alone."""
        imputation = None if filling == "mdp" else filling

        def fits(training: Training) -> bool:
            task = training.task
            budget = task.budget or {}
            if (training.name, task.data, task.remove, task.imputation) != (name, data, remove, imputation) or kind not in budget:
                return False
            return amounts is None or budget[kind] in amounts

        listed = {where: training for where, training in self.trainings if fits(training)}
        return Sweep(tuple(listed.values()), tuple(self.rl[where] for where in listed if where in self.rl))

    def other(self, data: str, label: str) -> list[Row]:
        """The frontiers of a method that is compared with."""
        return [row for row in self.others if (row["task"]["data"], row["task"]["label"]) == (data, label)]

    @cached_property
    def keys(self) -> set[str]:
        """Of all trainings that are planned."""
        return {where for where, _ in self.trainings}

    @property
    def rows(self) -> list[Row]:
        """All of trainings that are planned."""
        return [row for where, row in self.rl.items() if where in self.keys]


def ran(rows: Sequence[Row]) -> str:
    """What the rows are of, as a list: settings, rows, seeds, time."""
    groups: dict[tuple[str, str], dict[str, Row]] = {}
    for row in rows:
        trained = "steps" in row
        what = f"{row['task']['data']}, " + ("the paper's algorithm" if trained else row["task"]["label"])
        groups.setdefault((what, row["task"]["options"]["settings"] if trained else ""), {})[identity(row)] = row
    return "\n".join(f"- {_words(what, settings, list(of.values()))}" for (what, settings), of in groups.items())


def _words(what: str, settings: str, of: list[Row]) -> str:
    seeds = len(by_seed(of))
    words = [f"{len(of)} trainings" if len(of) > 1 else "1 training", f"{seeds} seeds" if seeds > 1 else "1 seed"]
    words.append(f"{of[0]['n_train']:,} rows to learn from")
    if settings:
        hours = sum(row["cpu_seconds"] for row in of) / 3600
        words.append(f"{hours:.1f} CPU hours" if hours >= 0.95 else f"{60 * hours:.0f} CPU minutes")
        share = sorted(row["share_of_states"] for row in of)
        words.append(f"{percent(share[0], share[-1])} of the states that the paper's schedule learns from")
        what = f"{what} ({'CPU preset' if settings == 'cpu' else 'the paper' + chr(39) + 's settings'})"
    else:
        words.append(f"at most {of[0]['task']['minutes']:g} min each")
    return f"{what}: {', '.join(words)}"


def percent(low: float, high: float | None = None) -> str:
    """One share or two, in per cent with two digits."""
    texts = [f"{100 * v:.2g}" for v in (low, low if high is None else high)]
    return f"{texts[0]} %" if texts[0] == texts[1] else f"{texts[0]} to {texts[1]} %"
