"""What import-linter (see pyproject.toml) does not say of the house: sizes, names, lists of modules, what no module may do."""

import ast
import importlib.util
import io
import re
import subprocess
import sys
import tokenize
from collections import defaultdict
from pathlib import Path

import pytest

SRC = Path(importlib.util.find_spec("askwise").origin).parent
FILES = sorted(SRC.rglob("*.py"))
CORE = sorted((SRC / "core").glob("*.py"))
PACKAGES = sorted(path.parent for path in FILES if path.name == "__init__.py" and path.parent != SRC)
WITHOUT_TORCH = [
    *(f"core.{path.stem}" for path in CORE if path.stem != "__init__"),
    "paper.config",
    "paper.numpy_network",
    "family.config",
    "family.conditions",
    "family.inference",
    "family.calibration",
    "frontier",
    "tables.encoding",
    "session.session",
    "web",
]
# Words that say nothing of what a variable holds.
EMPTY_WORDS = {"found", "given", "seen", "told", "made", "said", "some", "mine", "theirs"}


def imports(path: Path) -> set[str]:
    """The top-level packages that a file imports."""
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names.add(node.module.split(".")[0])
    return names


def calls(path: Path) -> set[str]:
    """Plain names that a file calls: print(...) but not network.eval()."""
    tree = ast.parse(path.read_text())
    return {node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}


def ids(paths):
    return [str(path.relative_to(SRC)) for path in paths]


def test_the_checks_find_the_package():
    assert {"errors.py", "core/costs.py", "paper/train.py"} <= set(ids(FILES))


@pytest.mark.parametrize("package", PACKAGES, ids=ids(PACKAGES))
def test_a_package_lists_its_modules(package):
    listed = re.findall(
        r"^(?:- )?`?(\w+)`?: +\S", ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or "", re.M
    )
    modules = {path.stem for path in package.glob("*.py")} - {"__init__"} | {
        path.parent.name for path in package.glob("*/__init__.py")
    }
    assert sorted(listed) == sorted(modules)


def test_a_module_comes_after_those_it_imports_in_the_reading_order():
    """Reading a package in the order of its list, one meets nothing that is explained later."""
    for package in PACKAGES:
        listed = re.findall(
            r"^(?:- )?`?(\w+)`?: +\S", ast.get_docstring(ast.parse((package / "__init__.py").read_text())) or "", re.M
        )
        name = "askwise." + ".".join(package.relative_to(SRC).parts)
        for i, module in enumerate(listed):
            path = package / f"{module}.py"
            if not path.exists():
                continue
            text = path.read_text()
            inner = set(re.findall(rf"^\s*from {re.escape(name)}\.(\w+) import", text, re.M))
            for names in re.findall(rf"^\s*from {re.escape(name)} import ([^\n(]+)", text, re.M):
                inner |= {word.split(" as ")[0].strip() for word in names.split(",")}
            assert inner & set(listed[i + 1 :]) == set(), f"{name}.{module} imports what is listed after it"


def test_class_names_are_unique():
    where = defaultdict(list)
    for path in FILES:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ClassDef):
                where[node.name].append(str(path.relative_to(SRC)))
    assert {name: paths for name, paths in where.items() if len(paths) > 1} == {}


@pytest.mark.parametrize("path", FILES, ids=ids(FILES))
def test_variable_names_are_not_on_the_list_of_vague_words(path):
    tokens = tokenize.generate_tokens(io.StringIO(path.read_text()).readline)
    assert {t.string for t in tokens if t.type == tokenize.NAME} & EMPTY_WORDS == set()


@pytest.mark.parametrize("path", FILES, ids=ids(FILES))
def test_the_formatter_formats_every_line(path):
    assert not re.search(r"# fmt: ?(skip|off)", path.read_text())


@pytest.mark.parametrize("path", FILES, ids=ids(FILES))
def test_no_file_is_longer_than_400_lines(path):
    assert len(path.read_text().splitlines()) <= 400


def test_what_the_paper_needs_is_read_in_700_lines():
    order = ("lagrangian", "targets", "network", "memory", "train")
    assert sum(len((SRC / "paper" / f"{name}.py").read_text().splitlines()) for name in order) <= 700


def test_importing_what_sessions_and_servers_need_leaves_torch_unloaded():
    # what is imported indirectly counts too, so it is tried in a fresh process
    modules = ", ".join(["askwise", *(f"askwise.{name}" for name in WITHOUT_TORCH)])
    program = f"import sys, {modules}; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@pytest.mark.parametrize("path", CORE, ids=ids(CORE))
def test_core_neither_prints_nor_logs_nor_opens_files(path):
    assert calls(path) & {"print", "open", "input"} == set()
    assert imports(path) & {"logging", "pathlib"} == set()


@pytest.mark.parametrize("path", FILES, ids=ids(FILES))
def test_no_module_can_execute_code_from_a_file(path):
    assert imports(path) & {"pickle", "cloudpickle", "dill", "shelve", "marshal"} == set()
    assert calls(path) & {"eval", "exec", "compile", "__import__"} == set()
    tree = ast.parse(path.read_text())
    assert {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)} & {
        "torch.load",
        "torch.save",
    } == set()
    assert not any(isinstance(node, ast.keyword) and node.arg == "allow_pickle" and node.value.value for node in ast.walk(tree))
