"""Long benchmarks do not run here, but every one of them can start."""

import importlib
import sys
from pathlib import Path

import pytest

from benchmarks import rows

ROOT = Path(__file__).parents[2]
MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in (ROOT / "benchmarks").rglob("*.py")
    if path.name != "__init__.py"
)


@pytest.mark.parametrize("name", MODULES)
def test_a_benchmark_can_be_imported(name):
    importlib.import_module(name)


def squared(data, seed):
    return {"squared": seed**2}


def test_a_benchmark_fills_in_what_is_missing_and_writes_its_table(tmp_path, monkeypatch, capsys):
    out = tmp_path / "results.jsonl"

    def text(results):
        return " ".join(f"{row['data']}{row['squared']}" for row in sorted(results, key=lambda row: (row["data"], row["seed"])))

    def fill(*argv):
        monkeypatch.setattr(sys, "argv", ["run", *argv])
        rows.fill_and_write("words", out, ["a", "b"], ("seed", 2), squared, text, lambda row: f"squared {row['squared']}")
        return sorted(capsys.readouterr().out.splitlines())

    assert fill("--data", "a") == ["a 0 squared 0", "a 1 squared 1"]
    assert fill("--seeds", "3") == ["a 2 squared 4", "b 0 squared 0", "b 1 squared 1", "b 2 squared 4"]
    assert out.with_suffix(".md").read_text() == "a0 a1 a4 b0 b1 b4"
    with pytest.raises(SystemExit):
        fill("--data", "c")
