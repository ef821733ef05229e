"""Plans: what they expand to, which setting wins, and what is said about mistakes."""

import json
from dataclasses import asdict
from datetime import date
from pathlib import Path

import pytest
from tests.support.commands import run

from askwise.bench import plan, rows
from askwise.bench.task import Task
from askwise.errors import InputError

SMALL = {"data": ["digits"], "methods": ["random"]}


def made(tmp_path: Path = Path(), **given) -> tuple[Task, ...]:
    return plan.from_dict({**SMALL, **given}, tmp_path).tasks


def test_a_plan_combines_all_its_lists() -> None:
    tasks = made(
        data=["digits", "wine"], methods=["random", "cegb"], seeds=2, remove=[0, 0.5], budgets=[{"average": 3}, "frontier"]
    )
    assert len(tasks) == 2 * 2 * 2 * 2 * 2 == len({rows.identity(t.row) for t in tasks})
    assert {(t.data, t.method, t.seed, t.remove) for t in tasks} == {
        (d, m, s, r) for d in ("digits", "wine") for m in ("random", "cegb") for s in (0, 1) for r in (0.0, 0.5)
    }
    assert [t.budget for t in tasks[:4]] == [{"average": 3}, {"average": 3}, None, None]


def test_amounts_in_lists_are_all_combined() -> None:
    tasks = made(budgets=[{"average": [1, 2.5], "hard": [4, 5]}, {"tradeoff": 0.01}])
    assert [t.budget for t in tasks] == [
        {"average": 1, "hard": 4}, {"average": 1, "hard": 5}, {"average": 2.5, "hard": 4}, {"average": 2.5, "hard": 5},
        {"tradeoff": 0.01},
    ]  # fmt: skip
    assert str(tasks[0].cap) == "AverageBudget(1) & HardBudget(4)"
    assert str(tasks[-1].cap) == "Tradeoff(0.01)"


def test_methods_win_over_data_and_data_over_the_plan() -> None:
    tasks = made(
        data=["wine", {"name": "digits", "minutes": 2, "class_weight": "balanced", "most_rows": {"train": 70, "test": 80}}],
        methods=["random", {"name": "cegb", "minutes": 3, "most_rows": {"test": 9}, "class_weight": "none"}], minutes=1,
        most_rows={"validation": 50},
    )  # fmt: skip
    found = [(t.data, t.method, t.minutes, t.class_weight, *t.most_rows.values()) for t in tasks]
    assert found == [
        ("wine", "random", 1, None, 0, 50, 30_000), ("wine", "cegb", 3, None, 0, 50, 9),
        ("digits", "random", 2, "balanced", 70, 50, 80), ("digits", "cegb", 3, None, 70, 50, 9),
    ]  # fmt: skip


def test_methods_that_are_left_out_of_a_data_set() -> None:
    tasks = made(data=["digits", {"name": "wine", "without": ["slow"]}], methods=["cegb", {"name": "aaco", "label": "slow"}])
    assert [(t.data, t.label) for t in tasks] == [("digits", "cegb"), ("digits", "slow"), ("wine", "cegb")]
    tasks = made(data=["digits", "wine"], methods=["cegb", {"name": "aaco", "only": ["wine"]}])
    assert [(t.data, t.label) for t in tasks] == [("digits", "cegb"), ("wine", "cegb"), ("wine", "aaco")]
    assert made(data=["digits", "wine"], methods=["cegb", {"name": "aaco", "only": "wine"}]) == tasks  # one without brackets
    tasks = made(data=["digits", {"name": "wine", "without": "aaco"}], methods=["cegb", "aaco"])
    assert [(t.data, t.label) for t in tasks] == [("digits", "cegb"), ("digits", "aaco"), ("wine", "cegb")]


def test_a_task_goes_through_json() -> None:
    (task,) = made(budgets=[{"hard": 2}], accuracy_at=[1, 2.5], methods=[{"name": "cegb", "options": {"a": [1]}}])
    assert Task(**json.loads(json.dumps(asdict(task)))) == task
    assert str(task) == "digits cegb seed 0 hard 2"


def test_the_label_and_what_is_read_off_do_not_make_another_task() -> None:
    (one,), (two,) = made(), made(methods=[{"name": "random", "label": "by lot"}], accuracy_at=[3], kill_after=5)
    (other,) = made(methods=[{"name": "random", "options": {"steps": 3}}])
    assert rows.identity(one.row) == rows.identity(two.row) != rows.identity(other.row)


def test_a_file_is_known_by_what_is_in_it(tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text("a,b,y\n1,2,0\n3,4,1\n")
    (tmp_path / "prices.csv").write_text("test,cost\na,2\nb,0.5\n")
    entry = {"file": "cases.csv", "target": "y", "costs": "prices.csv"}
    (before,) = made(tmp_path, data=[entry])
    assert (before.data, before.source["costs"]) == ("cases", {"a": "2", "b": "0.5"})
    (tmp_path / "cases.csv").write_text("a,b,y\n1,2,1\n3,4,1\n")
    (after,) = made(tmp_path, data=[entry])
    assert rows.identity(before.row) != rows.identity(after.row)


MISTAKES = [
    ({"metods": []}, "'metods', which is not a setting here; did you mean 'methods'?"),
    ({"data": []}, "`data` is []"),
    ({"data": ["digitz"]}, "there is no data set 'digitz'; for a table of your own give a `file`; did you mean 'digits'?"),
    ({"data": ["digits", "digits"]}, "the data set 'digits' appears twice"),
    ({"data": [3]}, "`data` holds 3"),
    ({"data": [{"name": "digits", "target": "y"}]}, "`target`, which is for files"),
    ({"data": [{"file": "nowhere.csv", "target": "y"}]}, "there is no file 'nowhere.csv'"),
    ({"data": [{"name": "digits", "without": ["randm"]}]}, "did you mean 'random'?"),
    ({"methods": [{"name": "random", "only": ["digit"]}]}, "`only` of 'random' names the data 'digit'; did you mean 'digits'?"),
    ({"methods": ["gdsf"]}, "there is no method 'gdsf'; did you mean 'gdfs'?"),
    ({"methods": ["."]}, "the name of a method is '.'; it must be that of a module that can be imported"),
    ({"methods": ["random", "random"]}, "the label 'random' appears twice; give one of them a label"),
    ({"methods": ["random", {"name": "random", "label": "lots"}]}, "'random' and 'lots' are the same method"),
    ({"methods": [{"name": "random", "imputation": "median"}]}, "`imputation` of 'random' is 'median'; did you mean 'mean'?"),
    ({"methods": [{"name": "random", "option": {}}]}, "did you mean 'options'?"),
    ({"methods": [{"name": "random", "options": 3}]}, "`options` of 'random' is 3"),
    ({"budgets": {"average": 3}}, "`budgets` is {'average': 3}; it must be a list"),
    ({"budgets": [{"averge": 3}]}, "did you mean 'average'?"),
    ({"budgets": [{"average": -3}]}, "`average` of a budget is -3; it must be a finite number, 0 or more"),
    ({"budgets": [{"average": 3, "tradeoff": 0.1}]}, "both a tradeoff and an average"),
    ({"budgets": ["all"]}, "a budget is 'all'"),
    ({"seeds": [1, 1]}, "`seeds` is [1, 1]"),
    ({"seeds": 0}, "`seeds` is 0"),
    ({"minutes": 0}, "`minutes` is 0; it must be a finite number above 0"),
    ({"minutes": "5m"}, "`minutes` is '5m'; it must be a finite number"),
    ({"remove": [1.0]}, "`remove` is [1.0]; it must be different shares"),
    ({"most_rows": {"training": 5}}, "did you mean 'train'?"),
    ({"most_rows": {"train": 2.5}}, "`most_rows` of train is 2.5"),
    ({"class_weight": "even"}, "`class_weight` is 'even'"),
    ({"threads": 0}, "`threads` is 0"),
    ({"kill_after": 0}, "`kill_after` is 0; it must be a finite number above 0"),
    ({"cost_at": 0.9}, "`cost_at` is 0.9; it must be a list of numbers"),
    ({"accuracy_at": [-1]}, "`accuracy_at` is [-1]; it must be a list of numbers, 0 or more"),
    ({"methods": [{"name": "random", "only": 5}]}, "`only` of 'random' is 5; it must be a list of names"),
    ({"data": [{"name": "digits", "without": 5}]}, "`without` of 'digits' is 5; it must be a list of names"),
    ({"data": [{"name": "digits", "without": "random"}]}, "it has no tasks, because `only` and `without` leave every method"),
    ({"methods": [{"name": "random", "only": []}]}, "it has no tasks"),
    (
        {"methods": [{"name": "random", "options": {"day": date(2020, 1, 1)}}]},
        "the option 'day' of 'random' is 2020-01-01; a date",
    ),
    ({"budgets": [{"average": 5}, {"average": 5.0}]}, "`budgets` has {'average': 5} twice; they must be different"),
    ({"budgets": ["frontier", "frontier"]}, "`budgets` has 'frontier' twice"),
    ({"budgets": [{"hard": [1, 1]}]}, "`budgets` has {'hard': 1} twice"),
]


@pytest.mark.parametrize(("given", "says"), MISTAKES, ids=lambda v: v if isinstance(v, str) else "")
def test_mistakes_are_told_in_one_sentence(given: dict, says: str) -> None:
    with pytest.raises(InputError) as caught:
        made(**given)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


OF_A_TABLE = [
    ({"target": "yy"}, "'cases.csv' has no column 'yy'; did you mean 'y'?"),
    ({"ignore": "cuont"}, "'cases.csv' has no column 'cuont'; did you mean 'count'?"),
    ({"ignore": 3}, "`ignore` of 'cases.csv' is 3; it must be a list of names"),
    (
        {"ignore": ["age", "sugar", "count"]},
        "'cases.csv' has no column besides its target and those in `ignore`; leave one as a test",
    ),
    ({"categorical": "aeg"}, "'cases.csv': column 'aeg' is listed as categorical, but does not exist; did you mean 'age'?"),
    ({"scaling": "rows"}, "'cases.csv': the scaling is 'rows'"),
    ({"costs": 5}, "`costs` of 'cases.csv' is 5; it must be a table like {age = 2}"),
    ({"costs": {"aeg": 1}}, "'cases.csv': the list of costs names the test 'aeg', which does not exist; did you mean 'age'?"),
    ({"costs": {"age": 1}}, "'cases.csv': test 'sugar' has no cost"),
    ({"costs": {"age": -1, "sugar": 1, "count": 1}}, "'cases.csv': the cost of test 'age' is -1; it must be a finite number"),
    ({"costs": {"age": date(2020, 1, 1), "sugar": 1, "count": 1}}, "the cost of test 'age' is datetime.date(2020, 1, 1)"),
    ({"setup": ["age"]}, "`setup` of 'cases.csv' is ['age']; it must be a table like"),
    ({"setup": {"draw": 3}}, "the set-up 'draw' of 'cases.csv' is 3; it must be like {cost = 2, tests = [\"sugar\"]}"),
    ({"setup": {"draw": {"cost": 3}}}, "the set-up 'draw' of 'cases.csv' is {'cost': 3}"),
    ({"setup": {"draw": {"cost": 3, "tests": 1}}}, "`tests` of the set-up 'draw' of 'cases.csv' is 1; it must be a list"),
    ({"setup": {"draw": {"cost": 3, "tests": "aeg"}}}, "'cases.csv': set-up 'draw' names the test 'aeg'"),
    ({"derived": {"age": 1}}, "'age' in `derived` of 'cases.csv' is 1; it must be a list of names"),
    ({"derived": {"bmi": ["age"]}}, "'cases.csv': `derived` names the test 'bmi', which does not exist"),
    ({"reveals": {"form": ["aeg"]}}, "'cases.csv': a test reveals the column 'aeg', which does not exist; did you mean 'age'?"),
    ({"shares": 0.5}, "`shares` of 'cases.csv' is 0.5; it must be three shares above 0"),
    (
        {"shares": [0.5, 0.5]},
        "`shares` of 'cases.csv' is [0.5, 0.5]; it must be three shares above 0, for train, validation, test",
    ),
    ({"shares": [0.5, 0.5, 0.5]}, "`shares` of 'cases.csv' is [0.5, 0.5, 0.5]"),
    ({"shares": [0.5, "a", 0.5]}, "`shares` of 'cases.csv' is [0.5, 'a', 0.5]; it must be three shares above 0"),
]


@pytest.mark.parametrize(("given", "says"), OF_A_TABLE, ids=lambda v: v if isinstance(v, str) else "")
def test_what_is_said_of_a_table_must_fit_its_header(tmp_path: Path, given: dict, says: str) -> None:
    (tmp_path / "cases.csv").write_text("age,sugar,count,y\n1,2,3,0\n")
    with pytest.raises(InputError) as caught:
        made(tmp_path, data=[{"file": "cases.csv", "target": "y", **given}])
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_one_column_may_come_without_brackets(tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text("age,town,y\n1,2,0\n")
    entry = {"file": "cases.csv", "target": "y"}
    one, many = (
        made(tmp_path, data=[{**entry, "ignore": i, "categorical": c}]) for i, c in (("town", "age"), (["town"], ["age"]))
    )
    assert one == many
    assert one[0].source["ignore"] == ["town"]


@pytest.mark.parametrize(
    ("text", "more", "says"),
    [
        (None, [], "there is no file"),
        ("data = [", [], "is not TOML"),
        ("data = " + "[" * 10_000, [], "is not TOML"),
        ("seeds = " + "9" * 10_000, [], "is not TOML"),
        ('data = ["digits"]\nmethods = ["randon"]', [], "the plan 'p.toml': there is no method 'randon'"),
        ('data = ["digits"]\nmethods = ["random"]', ["--engine", "spark"], "the engine is 'spark'"),
        ('data = ["digits"]\nmethods = ["random"]', ["--engine", "10.0.0.5:8786"], "it must be 'local', 'dask' for a cluster"),
        ('data = ["digits"]\nmethods = ["random"]', ["--processes", "0"], "--processes is 0"),
        ('data = ["digits"]\nmethods = ["random"]', ["--out", "no/where.jsonl"], "no' is not a folder"),
    ],
)
def test_mistakes_on_the_command_line(tmp_path: Path, text: str | None, more: list[str], says: str) -> None:
    if text is not None:
        (tmp_path / "p.toml").write_text(text)
    code, out, err = run("bench", tmp_path / "p.toml", *more)
    assert (code, out) == (2, "")
    assert says in err
    assert err.count("\n") == 1


def test_only_a_file_of_rows_is_added_to(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('minutes = 5\ndata = [{file = "cases.csv", target = "y"}]\nmethods = ["random"]\n')
    (tmp_path / "cases.csv").write_text("a,y\n1,2\n")
    for name, text, says in (
        ("p.toml", None, "the rows cannot be written to '{}': that file is also an input; name another file"),
        ("cases.csv", None, "the rows cannot be written to '{}': that file is also an input; name another file"),
        ("notes.txt", b"mine\n", "'{}' exists, and its first line is not a row of a bench; name another file with --out"),
        ("noise", b"\xff\x00\xfe", "its first line is not a row of a bench"),
        ("other.jsonl", b'{"data": 1}\n', "its first line is not a row of a bench"),
        ("rows.jsonl", b'{"task": {}}\n{"be', ""),
        ("cut.jsonl", b'{"began": "2026-0', ""),  # killed while the first row was written
        ("short.jsonl", b'{"b', ""),
        ("empty.jsonl", b"", ""),
    ):
        out = tmp_path / name
        if text is not None:
            out.write_bytes(text)
        before = out.read_bytes()
        code, _, err = run("bench", tmp_path / "p.toml", "--out", out, "--dry-run")
        assert (code, err.count("\n")) == ((2, 1) if says else (0, 0)), err
        assert says.format(out) in err
        assert out.read_bytes() == before


def test_a_dry_run_lists_the_tasks_and_writes_nothing(tmp_path: Path) -> None:
    (tmp_path / "p.toml").write_text('name = "mine"\nminutes = 5\nseeds = 2\ndata = ["digits"]\nmethods = ["random"]\n')
    code, out, err = run("bench", tmp_path / "p.toml", "--dry-run")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        "digits random seed 0, 5 min", "digits random seed 1, 5 min", "mine: 2 tasks, 0 of them finished before, 2 to do",
    ]  # fmt: skip
    assert [p.name for p in tmp_path.iterdir()] == ["p.toml"]
