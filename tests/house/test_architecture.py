"""Who may import whom, read from the source. The rules are those of docs/architecture.md."""

import ast
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(importlib.util.find_spec("askwise").origin).parent
FILES = sorted(SRC.rglob("*.py"))
CORE = sorted((SRC / "core").glob("*.py"))

LEVELS = [
    {"errors", "files", "archives", "pages", "texts"},
    {"core"},
    {"methods", "evaluate", "frontier", "choosing", "measuring", "data"},
    {
        "estimator",
        "learning",
        "progress",
        "benchmark",
        "session",
        "steps",
        "store",
        "export",
        "gym",
        "plots",
        "model",
        "providers",
        "calls",
        "usage",
        "report",
    },
    {"fitting", "bench", "scoring", "asking"},
    {"cli", "web", "__main__"},
]
WITHOUT_TORCH = [
    "prices",
    "checks",
    "problem",
    "budget",
    "episode",
    "policy",
    "config",
    "dense",
    "family_config",
    "family_values",
    "family_scale",
    "forecast",
]


def name_of(path: Path) -> str:
    """askwise.core.costs for .../askwise/core/costs.py"""
    parts = path.relative_to(SRC.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def level_of(module: str) -> int | None:
    room = [*module.split("."), ""][1]
    return next((i for i, rooms in enumerate(LEVELS) if room in rooms), None)


def imports(path: Path) -> set[str]:
    """Every module a file imports, with the names taken from packages, since these may be modules too."""
    found, package = set(), name_of(path).split(".") if path.name == "__init__.py" else name_of(path).split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            base = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")] if node.level else [node.module]
            module = ".".join(part for part in base if part)
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def calls(path: Path) -> set[str]:
    """Plain names that a file calls: print(...) but not network.eval()."""
    tree = ast.parse(path.read_text())
    return {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def ids(paths):
    return [str(p.relative_to(SRC)) for p in paths]


def test_there_is_something_to_look_at():
    assert {"errors.py", "core/costs.py", "paper/train.py"} <= set(ids(FILES))


@pytest.mark.parametrize(
    "path", [p for p in FILES if p != SRC / "__init__.py"], ids=ids([p for p in FILES if p != SRC / "__init__.py"])
)
def test_a_file_has_a_level_and_imports_nothing_above_it(path):
    mine = level_of(name_of(path))
    assert mine is not None, "a room that the architecture does not know"
    ours = {m for m in imports(path) if m.split(".")[0] == "askwise" and level_of(m) is not None}
    assert {m for m in ours if level_of(m) > mine} == set()
    # the package itself imports from every level, so taking names from it would be a way around
    if mine < len(LEVELS) - 1:
        assert {m for m in imports(path) - {"askwise"} if m.startswith("askwise.")} == ours - {"askwise"}


@pytest.mark.parametrize("path", sorted((SRC / "methods").glob("*.py")), ids=lambda p: p.name)
def test_methods_do_not_import_each_other(path):
    if path.name == "__init__.py":  # the list of methods
        return
    others = {name_of(p) for p in (SRC / "methods").glob("*.py")} - {name_of(path), "askwise.methods"}
    assert {m for m in imports(path) if any(m == o or m.startswith(o + ".") for o in others)} == set()


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_what_sessions_and_servers_need_does_not_import_torch(name):
    assert {m for m in imports(SRC / "core" / f"{name}.py") if m.split(".")[0] == "torch"} == set()


def test_importing_it_leaves_torch_unloaded():
    # also what is imported indirectly counts, so it is tried in a fresh process
    modules = ", ".join(["askwise", "askwise.errors", *(f"askwise.core.{name}" for name in WITHOUT_TORCH)])
    program = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("path", CORE, ids=ids(CORE))
def test_core_neither_prints_nor_logs_nor_opens_files(path):
    assert calls(path) & {"print", "open", "input"} == set()
    assert {m.split(".")[0] for m in imports(path)} & {"logging", "pathlib"} == set()


@pytest.mark.parametrize("path", FILES, ids=ids(FILES))
def test_no_file_is_longer_than_400_lines(path):
    assert len(path.read_text().splitlines()) <= 400


@pytest.mark.parametrize("path", FILES, ids=ids(FILES))
def test_nothing_can_run_what_a_file_says(path):
    assert {m.split(".")[0] for m in imports(path)} & {"pickle", "cloudpickle", "dill", "shelve", "marshal"} == set()
    assert calls(path) & {"eval", "exec", "compile", "__import__"} == set()
    tree = ast.parse(path.read_text())
    assert {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & {
        "torch.load",
        "torch.save",
    } == set()
    assert not any(isinstance(node, ast.keyword) and node.arg == "allow_pickle" and node.value.value for node in ast.walk(tree))
