"""The plans of the paper's tables and figures, and the numbers that are made of their rows."""

import importlib
import re
from pathlib import Path

import numpy as np
import pytest
from tests.support.made_rows import row, write

from askwise.bench.plan import read
from benchmarks.paper import progress, summary
from benchmarks.paper.pooled import Pool, area
from benchmarks.rows import read as read_rows

HERE = Path(summary.__file__).parent
KINDS = [kind for kind in summary.FIGURES if kind != "progress"]


@pytest.mark.parametrize("kind", KINDS)
def test_small_plans_have_the_shape_of_the_full_ones(kind: str) -> None:
    full, small = (read(HERE / f"{name}.toml") for name in (kind, f"{kind}_small"))

    def shape(plan):
        kinds = {(t.data, t.label, t.imputation, t.remove > 0, t.class_weight) for t in plan.tasks}
        budgets = {(t.data, t.label, *sorted(t.budget)) for t in plan.tasks if t.budget and "tradeoff" not in t.budget}
        return kinds, budgets

    assert shape(full) == shape(small)
    assert len(full.tasks) >= len(small.tasks)
    assert all(min(t.most_rows[part] for part in ("validation", "test")) == 0 for t in full.tasks)  # all rows
    for task in full.tasks:
        if "." in task.method:
            assert callable(importlib.import_module(task.method).fit)


def test_small_plans_together_took_what_the_readme_says() -> None:
    found = [row for kind in KINDS for row in read_rows(HERE / "results" / f"{kind}_small.jsonl")]
    minutes = sum(row["minutes_taken"] for row in found) + sum(job["minutes"] for job in progress.jobs(full=False))
    assert f"took {minutes:.0f} minutes" in (HERE / "README.md").read_text()


def test_the_budgets_are_those_of_the_paper() -> None:
    for name in ("target", "target_small"):
        tasks = read(HERE / f"{name}.toml").tasks
        of = {data: sorted({t.budget["average"] for t in tasks if t.data == data}) for data in ("miniboone_tiny", "nhanes")}
        assert of == {"miniboone_tiny": list(range(0, 51, 5)), "nhanes": [9 * b for b in (1, 3, 5, 10)]}
    assert {t.seed for t in read(HERE / "target.toml").tasks} == set(range(5))
    assert {t.remove for t in read(HERE / "missing.toml").tasks if t.label != "full"} == {0.25, 0.5, 0.75, 0.9}
    assert {job["setting"] for job in progress.jobs(full=True)} == {"average 10", "tradeoff 0", "all tests"}


def policy(cost: float, loss: float, seed: int = 0, test_loss: float | None = None, **more):
    """A row of one policy, the same on validation and test cases unless said otherwise."""
    budget = more.pop("budget", {"tradeoff": 1 / (1 + cost)})
    lost = loss if test_loss is None else test_loss
    return row(budget=budget, seed=seed, validation=[[cost, loss]], test=[[cost, lost]], columns=["cost", "loss"], cost=cost,
               score=1 - lost, **more)  # fmt: skip


def test_the_area_of_single_policies_by_hand() -> None:
    pool = Pool((policy(0, 0.5), policy(5, 0.3, test_loss=0.2), policy(6, 0.9)))
    # (0, 0.5), (5, 0.8), then 0.8 up to 10, the cost of everything; the third is not chosen
    assert pool.prior == (0.5, 0.5)
    assert pool.curve.chosen.tolist() == [0, 1] or pool.curve.chosen.tolist() == [1]
    assert pool.area == f"{(5 * 0.65 + 5 * 0.8) / 10:.4f}"
    assert Pool((policy(5, 0.3),)).area == ""  # where it begins is not known
    assert area([row(area=0.25), row(area=0.75, seed=1)]) == "0.5000 ± 0.3536"


def test_steps_of_hard_budgets_by_hand() -> None:
    rows = [policy(c, loss, budget={"hard": b}) for b, c, loss in ((0, 0, 0.5), (4, 3, 0.3), (6, 5, 0.4))]
    # 0.5 up to 4, then 0.7, also from 6 on, where the dearer policy is worse
    assert Pool(tuple(rows)).steps == f"{(4 * 0.5 + 6 * 0.7) / 10:.4f}"


def test_tables_have_the_papers_numbers_beside_ours(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(summary, "RESULTS", tmp_path)
    monkeypatch.setattr(progress, "RESULTS", tmp_path)
    mini = "miniboone_tiny"
    write(tmp_path / "lambda_small.jsonl", row(mini, "baseline", area=0.91), row(mini, "paper", area=0.92, task={"label": "rl"}),
          row("mnist", "adapt-gbrt", status="refused", why="two classes"), row("mnist", "baseline", area=0.8))  # fmt: skip
    write(tmp_path / "missing.jsonl", *(
        row(mini, "paper", area=a, task={"label": label, "remove": r})
        for label, r, a in (("mean", 0.25, 0.8), ("mice", 0.25, 0.7), ("mdp", 0.25, 0.9), ("full", 0.0, 0.95))
    ))  # fmt: skip
    write(tmp_path / "hard_small.jsonl", *(policy(c, loss, budget={"hard": b}, data=mini, method="opportunistic", most=c,
                                                   task={"label": "oplearn"})
                                            for b, c, loss in ((0, 0, 0.5), (4, 3, 0.3))))  # fmt: skip
    write(tmp_path / "target.jsonl", *(policy(c, 0.1, seed, budget={"average": 9.0}, data="nhanes", total=90.0)
                                        for seed, c in ((0, 8.0), (1, 10.0))))  # fmt: skip
    write(tmp_path / "scatter.jsonl", policy(0, 0.5), policy(5, 0.2))
    steps = {"tradeoff 0": [0.5, 0.9, 0.8], "all tests": [0.4, 0.6, 0.7], "average 10": [0.1, 0.2, 0.3]}
    write(tmp_path / "progress_small.jsonl", *(
        {"setting": setting, "seed": 0, "data": mini, "b": 10, "steps": 300, "cost": 9.5, "accuracy": 0.88,
         "course": [[100 * (i + 1), 0.25, 12 - i, a] for i, a in enumerate(course)]}
        for setting, course in steps.items()
    ))  # fmt: skip
    page = tmp_path / "README.md"
    page.write_text(f"before\n\n{summary.BEGIN}\noutdated\n{summary.END}\nafter\n")
    monkeypatch.setattr(summary, "HERE", tmp_path)
    summary.main()
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "outdated" not in text
    for line in (
        "| miniboone: ours is miniboone_tiny | 0.925 / 0.9100 | 0.935 / 0.9200 | 0.924 / – | 0.914 / – |",
        "| mnist | 0.888 / 0.8000 | 0.954 / – | – / – | 0.921 / – |",
        "| miniboone: ours is miniboone_tiny | 25 % | 0.919 / 0.8000 | 0.928 / 0.7000 | **0.926 / 0.9000** | 0.9500 |",
        "| miniboone_tiny | oplearn | 0.6200 | 0 |",
        "| nhanes | 9 | 2 | 9.00 ± 1.41 | 0.9000 ± 0.0000 |",
        "| diabetes: ours is nhanes | 13 | 1.1 | 10.0 |",
        "| tradeoff 0 | 0.940 after 3500 | 0.9000 after 200 | 0.8000 after 300 | 1 |",
        "| all tests | 0.943 after 20000 | 0.7000 after 300 | 0.7000 after 300 | 1 |",
        "| 300 | 0.2500 | 9.50 | 0.8800 |",
    ):
        assert line in text
    shown = re.findall(r"\]\(results/([^)]+)\)", text)
    assert sorted(shown) == sorted(p.name for p in tmp_path.glob("*.svg"))
    assert {"lambda_small_mnist.svg", "missing_miniboone_tiny_25.svg", "scatter_toy.svg", "progress_small_free.svg"} <= set(shown)
    summary.main()
    assert page.read_text() == text


def test_runs_are_averaged_up_to_where_the_first_ends() -> None:
    long, short = (
        [[s, 0, s / 100, a] for s, a in zip((100, 200, 300), of, strict=False)] for of in ((0.2, 0.4, 0.9), (0.4, 0.8))
    )
    step, (cost, accuracy) = progress.averaged([{"course": long}, {"course": short}])
    assert step.tolist() == [100, 200]
    assert cost.tolist() == [1, 2]
    assert np.allclose(accuracy, [0.3, 0.6])


def test_the_readme_says_what_the_rows_say() -> None:
    page = (HERE / "README.md").read_text()
    assert summary.filled(page) == page, "run ./dev sh python -m benchmarks.paper.summary"
    for name in re.findall(r"`(\w+\.toml)`", page):
        assert (HERE / name).is_file()
